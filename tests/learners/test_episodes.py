"""Plans: a policy for one episode."""

import numpy as np
import pytest

from unbounded import RFELP, Plan, UniformPolicy, worlds
from unbounded.core.occupancy.layout import Layers

LAYERS = Layers([2, 3, 2], 2)


def a_plan(pi=None, ask_info=-1, words=(0, 0, 0, 0)):
    pi = np.full(LAYERS.n_pairs, 0.5) if pi is None else pi
    return Plan(LAYERS, pi, ask_info, np.array(words, dtype=np.uint64), 4, "name")


def test_an_action_is_asked_for_a_state_that_there_is():
    plan = a_plan()
    for h, state, message in [
        (3, 0, r"h must be in 0 .. 2, got 3"),
        (-1, 0, "h must be at least 0"),
        (1, 3, r"layer 1 has states 0 .. 2, got 3"),
        (1, -1, "state must be at least 0"),
        (0, 0.5, "state must be an integer"),
        (0.0, 0, "h must be an integer"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            plan.act(h, state)
    assert plan.act(np.int64(2), np.uint8(1)) in (0, 1)


def test_the_policy_is_a_copy():
    plan = a_plan()
    assert [table.shape for table in plan.policy] == [(2, 2), (3, 2), (2, 2)]
    plan.policy[0][:] = 7.0
    assert plan.policy[0].max() <= 1.0


def test_an_action_is_drawn_by_the_word_of_its_layer():
    """u = (word >> 11) 2^-53 falls on the cumulative probabilities; word 0 is the policy's."""
    pi = np.concatenate([[1.0], np.tile([0.25, 0.75], 7)])
    just_below, at = (int(0.25 * 2**53) - 1) << 11, int(0.25 * 2**53) << 11
    plan = a_plan(pi, words=(2**64 - 1, just_below, at, 2**64 - 1))
    assert [plan.act(0, s) for s in range(2)] == [0, 0]
    assert [plan.act(1, s) for s in range(3)] == [1, 1, 1]
    assert [plan.act(2, s) for s in range(2)] == [1, 1]
    assert plan.act(0, 0) == plan.act(0, 0)  # however often


def test_each_state_has_its_own_row():
    tables = [[[1, 0], [0, 1]], [[0, 1], [1, 0], [0, 1]], [[1, 0], [0, 1]]]
    plan = a_plan(LAYERS.pack_pairs(tables, first=1.0), words=(1 << 60,) * 4)
    for h, table in enumerate(tables):
        assert [plan.act(h, s) for s in range(len(table))] == np.argmax(table, axis=1).tolist()


def test_actions_have_the_probabilities_of_the_policy():
    learner, counts = UniformPolicy([1], 4, seed=0), np.zeros(4)
    for _ in range(2000):
        plan = learner.ask()
        counts[plan.act(0, 0)] += 1
        learner.forget(plan)
    assert ((counts - 500) ** 2 / 500).sum() < 3 + 5 * np.sqrt(6)


def test_the_component():
    assert a_plan().component is None
    assert a_plan(ask_info=3).component == 3
    mdp = worlds.dirichlet([2], 2, np.random.default_rng(0))
    assert RFELP(mdp.layers.sizes, 2, 5, seed=0).ask().component == 0


def test_it_says_what_it_is():
    assert repr(a_plan()) == "Plan(id=4, layers=(2, 3, 2))"
