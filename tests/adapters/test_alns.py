"""Operator selection in runs of ALNS itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from alns import ALNS
from alns.accept import HillClimbing
from alns.stop import MaxIterations

from unbounded import AHB, SCB, AdaHedge, CostSCB
from unbounded.adapters.alns import ScaleFreeSelect


class Tour:
    """A closed tour through points in the plane; ``missing`` are not on it."""

    def __init__(self, points, order, missing=(), unit=1.0):
        self.points, self.order, self.missing, self.unit = points, order, missing, unit

    def objective(self):
        at = self.points[self.order]
        return float(np.hypot(*(at - np.roll(at, 1, axis=0)).T).sum()) * self.unit

    def without(self, places):
        rest = [city for i, city in enumerate(self.order) if i not in places]
        return Tour(self.points, rest, [self.order[i] for i in places], self.unit)


def remove_some(tour, rng):
    return tour.without(set(rng.choice(len(tour.order), 6, replace=False).tolist()))


def remove_stretch(tour, rng):
    first = int(rng.integers(len(tour.order)))
    return tour.without({(first + i) % len(tour.order) for i in range(6)})


def insert_anywhere(tour, rng):
    order = list(tour.order)
    for city in tour.missing:
        order.insert(int(rng.integers(len(order))), city)
    return Tour(tour.points, order, unit=tour.unit)


def insert_best(tour, rng):
    order = list(tour.order)
    for city in tour.missing:
        at = tour.points[order]
        far = np.hypot(*(at - tour.points[city]).T)
        detour = far + np.roll(far, 1) - np.hypot(*(at - np.roll(at, 1, axis=0)).T)
        order.insert(int(np.argmin(detour)), city)
    return Tour(tour.points, order, unit=tour.unit)


def run(select, unit=1.0, iterations=150):
    points = np.random.default_rng(1).random((30, 2))
    alns = ALNS(np.random.default_rng(2))
    alns.add_destroy_operator(remove_some)
    alns.add_destroy_operator(remove_stretch)
    alns.add_repair_operator(insert_anywhere)
    alns.add_repair_operator(insert_best)
    first = Tour(points, list(range(30)), unit=unit)
    return alns.iterate(first, select, HillClimbing(), MaxIterations(iterations))


@pytest.mark.parametrize("loss", ["delta", "gain"])
@pytest.mark.parametrize("power", [-900, 20, 900])
def test_powers_of_two_change_nothing_in_a_run(loss, power):
    plain = run(ScaleFreeSelect(2, 2, loss=loss))
    scaled = run(ScaleFreeSelect(2, 2, loss=loss), unit=2.0**power)
    assert (scaled.statistics.objectives == plain.statistics.objectives * 2.0**power).all()
    counts = plain.statistics.destroy_operator_counts
    assert scaled.statistics.destroy_operator_counts == counts
    assert scaled.best_state.order == plain.best_state.order


@pytest.mark.parametrize("learner", [SCB, AHB])
def test_it_finds_the_repair_operator_that_works(learner):
    select = ScaleFreeSelect(2, 2, learner=learner)
    run(select, unit=1e9, iterations=600)
    q = select.learner.probabilities()
    assert sum(q[k] for k, (_, r) in enumerate(select.pairs) if r == 1) > 0.8


def test_only_coupled_pairs_are_selected():
    select = ScaleFreeSelect(2, 2, op_coupling=[[True, False], [True, True]])
    rng, state = np.random.default_rng(0), Value(1.0)
    seen = set()
    for _ in range(100):
        pair = select(rng, state, state)
        select.update(state, *pair, None)
        seen.add(pair)
    assert seen == {(0, 0), (1, 0), (1, 1)}


class Value:
    def __init__(self, value):
        self.value = value

    def objective(self):
        return self.value


@pytest.mark.parametrize(("loss", "told"), [("delta", [2.0, -3.0]), ("gain", [0.0, -3.0])])
def test_what_is_told(loss, told):
    select, rng = ScaleFreeSelect(1, 1, loss=loss), np.random.default_rng(0)
    heard = []
    for after in (7.0, 2.0):
        pair = select(rng, None, Value(5.0))
        select.learner.tell = lambda choice, value: heard.append(value)
        select.update(Value(after), *pair, None)
        del select.learner.tell
        select.learner.expire(0)
    assert heard == told


def test_the_seed_comes_from_the_generator_of_alns():
    def pairs(seed):
        select, rng = ScaleFreeSelect(3, 3), np.random.default_rng(seed)
        chosen = []
        for _ in range(20):
            chosen.append(select(rng, None, Value(0.0)))
            select.update(Value(0.0), *chosen[-1], None)
        return chosen

    assert pairs(1) == pairs(1) != pairs(2)


def test_an_operator_that_raises_leaves_nothing_behind():
    select, rng = ScaleFreeSelect(2, 2), np.random.default_rng(0)
    for _ in range(5):
        select(rng, None, Value(1.0))
    assert len(select.learner.outstanding) == 1


def test_what_cannot_be_learned_is_rejected_and_changes_nothing():
    select, rng = ScaleFreeSelect(2, 2), np.random.default_rng(0)
    with pytest.raises(ValueError, match="selected last"):
        select.update(Value(1.0), 0, 0, None)
    d, r = select(rng, None, Value(1.0))
    with pytest.raises(ValueError, match="selected last"):
        select.update(Value(1.0), 1 - d, r, None)
    with pytest.raises(ValueError, match="infeasible"):
        select.update(Value(math.inf), d, r, None)
    select.update(Value(2.0), d, r, None)
    assert select.learner.rounds == 1
    with pytest.raises(ValueError, match="'delta', 'gain'"):
        ScaleFreeSelect(2, 2, loss="score")


def test_settings_go_to_the_learner():
    select = ScaleFreeSelect(1, 2, learner=CostSCB, settings={"lower": -9.0})
    select(np.random.default_rng(0), None, Value(0.0))
    assert select.learner.settings["lower"] == -9.0
    assert repr(select) == (
        "ScaleFreeSelect(1, 2, learner=CostSCB, settings={'lower': -9.0}, loss='delta')"
    )


def test_objectives_may_be_as_far_from_one_another_as_floats_are():
    select, rng = ScaleFreeSelect(1, 2), np.random.default_rng(0)
    for before, after in ((1.7e308, -1.7e308), (10**400, 10**400 + 1), (10**400, 0)):
        pair = select(rng, None, Value(before))
        select.update(Value(after), *pair, None)
    assert select.learner.rounds == 3


@pytest.mark.parametrize("learner", ["SCB", AdaHedge])
def test_what_is_no_bandit_is_rejected(learner):
    with pytest.raises((TypeError, ValueError), match="SCB"):
        ScaleFreeSelect(1, 2, learner=learner)
