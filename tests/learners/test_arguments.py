"""Fresh learners by `get_params` and `clone`, scikit-learn's own included."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from alns.select import OperatorSelectionScheme
from numpy.random import SeedSequence
from sklearn.base import clone

from bandit_examples import EXAMPLES
from mdp_examples import EXAMPLES as MDP_EXAMPLES
from tiers import tiered
from unbounded import SCB, CostSCB
from unbounded.adapters.alns import ScaleFreeSelect
from unbounded.adapters.river import ScaleFree
from unbounded.adapters.teacher import Teacher


@pytest.mark.parametrize("example", tiered(EXAMPLES))
def test_scikit_learn_clones_every_bandit(example):
    learner = example.make(seed=3)
    assert set(learner.get_params()) == {*learner.settings, "seed"}
    losses = np.random.default_rng(0).random((20, 5))
    first = example.play(learner, losses)
    fresh = clone(learner)
    assert (type(fresh), fresh.rounds) == (type(learner), 0)
    assert repr(learner) == f"{fresh!r} after 20 rounds"
    again = example.play(fresh, losses)
    assert again[0] == first[0]
    assert (again[1] == first[1]).all()


@pytest.mark.parametrize("example", tiered(MDP_EXAMPLES))
def test_scikit_learn_clones_every_learner_of_mdps(example):
    learner = example.make(seed=3)
    fresh = clone(learner)
    assert repr(fresh) == repr(learner)
    assert fresh.save() == learner.save()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("seed", [None, 5, SeedSequence(5)])
def test_copies_know_their_seed(copied, seed):
    other = copied(SCB(3, seed=seed)).get_params()["seed"]
    assert (other is None) == (seed is None)
    if seed is not None:
        assert SCB(3, seed=other).save() == SCB(3, seed=seed).save()


def test_what_was_loaded_or_spawned_has_no_seed_to_begin_from():
    learner = SCB(3, seed=5)
    assert SCB.load(learner.save()).get_params()["seed"] is None
    assert learner.spawn(1)[0].get_params()["seed"] is None


@pytest.mark.parametrize(
    "made",
    [
        Teacher(4, CostSCB, {"lower": -2.0}, seed=1),
        ScaleFreeSelect(2, 2, [[1, 0], [1, 1]], CostSCB, {"lower": -2.0}, loss="gain"),
        ScaleFree(CostSCB, {"lower": -2.0}, burn_in=2, seed=1),
    ],
    ids=lambda made: type(made).__name__,
)
def test_adapters_are_cloned_too(made):
    fresh = clone(made)
    assert type(fresh) is type(made)
    assert repr(fresh) == repr(made)
    given, again = made.get_params(), fresh.get_params()
    assert given.keys() == again.keys()
    for name in given.keys() - {"op_coupling", "reward_obj"}:
        assert given[name] == again[name]
    if isinstance(made, OperatorSelectionScheme):
        assert fresh.pairs == made.pairs == [(0, 0), (1, 0), (1, 1)]
