"""Adapters go to other processes and come back."""

from __future__ import annotations

import multiprocessing

import numpy as np
from joblib import Parallel, delayed

from unbounded.adapters.alns import ScaleFreeSelect
from unbounded.adapters.river import ScaleFree
from unbounded.adapters.teacher import Teacher


class Worth:
    def __init__(self, value):
        self.value = value

    def objective(self):
        return self.value


def teach(teacher):
    for _ in range(20):
        task = teacher.sample()
        teacher.update(task, float(task))
    return teacher


def pull(policy):
    for _ in range(20):
        arm = policy.pull("abc")
        policy.update(arm, float(ord(arm)))
    return policy


def select(scheme):
    rng = np.random.default_rng(0)
    for _ in range(20):
        pair = scheme(rng, None, Worth(0.0))
        scheme.update(Worth(float(sum(pair))), *pair, None)
    return scheme


def learner_of(played):
    return played._playing.learner if isinstance(played, ScaleFree) else played.learner


EVERY = [
    (teach, lambda: Teacher(3, seed=1)),
    (pull, lambda: ScaleFree(seed=1)),
    (select, lambda: ScaleFreeSelect(2, 2)),
]


def test_two_turns_in_other_processes_are_two_turns_here():
    ours = [play(play(make())) for play, make in EVERY]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        theirs = [pool.apply(play, (make(),)) for play, make in EVERY]
    turns = [delayed(play)(one) for (play, _), one in zip(EVERY, theirs, strict=True)]
    for here, there in zip(ours, Parallel(n_jobs=2)(turns), strict=True):
        assert learner_of(there).rounds == 40
        expected = learner_of(here).probabilities()
        assert learner_of(there).probabilities().tolist() == expected.tolist()
