"""Adapters go to other processes and come back."""

from __future__ import annotations

import multiprocessing

import numpy as np
import pytest
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
    return played._playing if isinstance(played, ScaleFree) else played.learner


EVERY = [
    (teach, lambda: Teacher(3, seed=1)),
    (pull, lambda: ScaleFree(seed=1)),
    (select, lambda: ScaleFreeSelect(2, 2)),
]


@pytest.mark.parametrize(("play", "make"), EVERY)
def test_two_turns_in_other_processes_are_two_turns_here(play, make):
    here = play(play(make()))
    there = make()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        there = pool.apply(play, (there,))
    there = Parallel(n_jobs=2)([delayed(play)(there)])[0]
    assert learner_of(there).rounds == 40
    expected = learner_of(here).probabilities()
    assert learner_of(there).probabilities().tolist() == expected.tolist()
