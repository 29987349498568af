"""Units of the losses and weights, and what a solve concludes."""

import math

import numpy as np
import pytest

from unbounded.core.occupancy.layout import Layers
from unbounded.core.occupancy.solver.outcome import COLD, ROUGH, SOLVED, UNSOLVED, certificate
from unbounded.core.occupancy.solver.units import Units, conclude, normalise, wanted_gap
from unbounded.core.occupancy.solver.work import carve, work_size

LAYERS = Layers([2, 1], 2)


def work():
    return carve(LAYERS.table, np.full(work_size(LAYERS.table), np.nan))


@pytest.mark.parametrize("k", [-900, 0, 7, 900])
def test_the_largest_weight_is_from_a_half_to_one(k):
    W = work()
    L = np.ldexp([99.0, 5.0, 3.0, 4.0, 8.0, 6.0, 2.0], k)
    units = normalise(LAYERS.table, L, np.ldexp([3.0, 1.5], k), W)
    assert units == Units(2 + k, 0.375, 0.75, False)
    assert W.w.tolist() == [0.75, 0.75, 0.375]
    assert W.L.tolist() == [0.0, 0.5, 0.0, 0.25, 1.25, 1.0, 0.0]  # of each layer less its least


def test_e16_without_a_scale_weights_are_one():
    W = work()
    units = normalise(LAYERS.table, np.zeros(7), np.zeros(2), W)
    assert units == Units(0, 1.0, 1.0, True)
    assert W.w.tolist() == [1.0, 1.0, 1.0]
    assert not W.L.any()


def test_conclusions():
    W = work()
    W.parts[:] = 0.25, 0.5
    units = Units(3, 0.125, 0.5, False)
    assert wanted_gap(units, 1e-8) == 1e-8 * 0.125
    assert wanted_gap(units, 1e-16) == 1e-13 * 0.5
    for gap, status in (
        (1.25e-9, SOLVED), (1.26e-9, ROUGH), (5e-9, ROUGH), (5.1e-9, UNSOLVED),
        (math.inf, UNSOLVED), (math.nan, UNSOLVED),
    ):  # fmt: skip
        outcome = conclude(units, 1e-8, gap, 4, 3, 2, COLD, W)
        assert outcome.status == status
        assert outcome[3:7] == (4, 3, 2, COLD)
        assert outcome[8:] == (0.5, 1.0)
        if math.isfinite(gap):
            assert outcome[:3] == (8 * gap, 8 * gap, 2 * gap)
        assert certificate(outcome).solved == (status == SOLVED)
        assert certificate(outcome).method == "cold"
        assert certificate(outcome).newton_steps == 4
        assert certificate(outcome).interior_iterations == 2
