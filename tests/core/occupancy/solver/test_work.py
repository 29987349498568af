"""The solvers' arrays share one buffer and no entry; units, and what a solve concludes."""

import math
from itertools import pairwise

import numpy as np
import pytest

from occupancy_facades import certificate
from unbounded.core.occupancy.layout import Layers
from unbounded.core.occupancy.solver import COLD, ROUGH, SOLVED, UNSOLVED
from unbounded.core.occupancy.solver.work import (
    Units,
    carve,
    conclude,
    normalize,
    wanted_gap,
    work_size,
)


@pytest.mark.parametrize(("sizes", "n_actions"), [([1], 1), ([4, 2, 3], 3), ([2, 5], 1)])
def test_arrays_fill_the_buffer_and_do_not_overlap(sizes, n_actions):
    layers = Layers(sizes, n_actions)
    H, S, X, T = layers.horizon, layers.n_states, layers.n_pairs, layers.n_transitions
    n, m = max(sizes), max(sizes) * n_actions
    buffer = np.zeros(work_size(layers.table))
    work = carve(layers.table, buffer)
    for x in work[:-2]:  # without lists the last two are empty
        x += 1.0
    assert np.all(buffer == 1.0)
    squares = sum(k * k for k in sizes)
    between = sum(a * b for a, b in pairwise(sizes))
    expected = {
        "L": X, "w": H + 1, "rho": H + 1, "P": T, "x": X, "bound": X, "slack": X, "v_old": S,
        "dv": S, "grad": S, "q": S, "r": S, "inverse": S, "D": squares, "E": between,
        "pair": 6 * m, "rows": n * m, "c": n + m, "best_v": S, "best_theta": X, "best_P": T,
        "best_q": X, "best_pi": X, "q_out": X, "pi_out": X, "mass": S, "ln_x": n,
        "lists": X + 2 + 5 * (T // 8), "cg": 3 * S, "triples": 10 * T, "pairs": 10 * X,
        "begin": 0, "to": 0,
    }  # fmt: skip
    assert {name: x.size for name, x in work._asdict().items()} == expected


LAYERS = Layers([2, 1], 2)


def work():
    return carve(LAYERS.table, np.full(work_size(LAYERS.table), np.nan))


@pytest.mark.parametrize("k", [-900, 0, 7, 900])
def test_the_largest_weight_is_from_a_half_to_one(k):
    W = work()
    L = np.ldexp([99.0, 5.0, 3.0, 4.0, 8.0, 6.0, 2.0], k)
    units = normalize(LAYERS.table, L, np.ldexp([3.0, 1.5], k), W)
    assert units == Units(2 + k, 0.375, 0.75, False)
    assert W.w.tolist() == [0.75, 0.75, 0.375]
    assert W.L.tolist() == [0.0, 0.5, 0.0, 0.25, 1.25, 1.0, 0.0]  # of each layer less its least


def test_e16_without_a_scale_weights_are_one():
    W = work()
    units = normalize(LAYERS.table, np.zeros(7), np.zeros(2), W)
    assert units == Units(0, 1.0, 1.0, True)
    assert W.w.tolist() == [1.0, 1.0, 1.0]
    assert not W.L.any()


def test_conclusions():
    units = Units(3, 0.125, 0.5, False)
    assert wanted_gap(units, 1e-8) == 1e-8 * 0.125
    assert wanted_gap(units, 1e-16) == 1e-13 * 0.5
    for gap, status in (
        (1.25e-9, SOLVED), (1.26e-9, ROUGH), (5e-9, ROUGH), (5.1e-9, UNSOLVED),
        (math.inf, UNSOLVED), (math.nan, UNSOLVED),
    ):  # fmt: skip
        outcome = conclude(units, 1e-8, gap, 4, 3, 2, COLD)
        assert outcome.status == status
        assert outcome[3:7] == (4, 3, 2, COLD)
        if math.isfinite(gap):
            assert outcome[:3] == (8 * gap, 8 * gap, 2 * gap)
        assert certificate(outcome).solved == (status == SOLVED)
        assert certificate(outcome).method == "cold"
        assert certificate(outcome).newton_steps == 4
        assert certificate(outcome).interior_iterations == 2
