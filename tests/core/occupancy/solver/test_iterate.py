"""The interior point method's start."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from occupancy_reference import boxes_as_arrays, violations
from occupancy_work import Case, started
from unbounded.core.occupancy.layout import PAIR, SIZE, Layers, roll_forward
from unbounded.core.occupancy.solver.iterate import (
    AT_HI,
    AT_LO,
    BOXED,
    OPEN,
    PINNED,
    SEVERAL,
    interior,
)

seeds = st.integers(0, 2**32 - 1)


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_the_middle_of_every_box_is_a_distribution_inside_it(seed):
    case = Case(seed, max_states=8)
    P = np.full(case.P0.size, np.nan)
    interior(case.lay, case.lo, case.hi, P)
    box, _ = violations(case.layers, case.lo, case.hi, np.ones(case.layers.n_pairs), P)
    assert box <= 1e-14
    lows, highs, Ps = (boxes_as_arrays(case.layers, x) for x in (case.lo, case.hi, P))
    for lo, hi, p in zip(lows, highs, Ps, strict=True):  # the same share of every side of a box
        t = (1 - lo.sum(2)) / np.maximum((hi - lo).sum(2), 1e-300)
        assert np.allclose(p, lo + np.clip(t, 0, 1)[:, :, None] * (hi - lo), rtol=0, atol=1e-14)


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_the_start_is_strictly_feasible_with_equal_products(seed):
    case = Case(seed)
    it, count = started(case.lay, case.lo, case.hi, case.W)
    free = it.entry != PINNED
    both = it.entry == BOXED
    assert count == case.layers.n_pairs - 1 + free.sum() + both.sum()
    products = np.concatenate([(it.x * it.z)[1:], (it.a * it.alpha)[free], (it.b * it.beta)[both]])
    assert np.all(products > 0)
    assert np.allclose(products, products[0], rtol=1e-12)
    uniform = np.full(case.layers.n_pairs, 1.0 / case.layers.n_actions)
    uniform[0] = 1.0
    mass, x = np.empty(case.layers.n_states), np.empty(case.layers.n_pairs)
    roll_forward(case.lay, it.Pc, uniform, mass, x)
    assert np.allclose(it.x, np.maximum(x, 1e-290), rtol=1e-14)
    amount = x[1:].sum() + it.a[free].sum() + it.b[both].sum()
    spread = max(*case.w, *(np.ptp(t) for t in case.layers.unpack_pairs(case.L)))
    assert products[0] * count == pytest.approx(spread * amount, rel=1e-12)
    # y = x P with slacks a = y - lo x and b = hi x - y
    pair = np.concatenate(
        [np.tile(np.arange(a, b), n) for a, b, n in zip(
            case.lay[PAIR], case.lay[PAIR, 1:], case.lay[SIZE, 1:-1], strict=False)]
    )  # fmt: skip
    y = it.Pc * it.x[pair]
    assert np.allclose(it.a[free], (y - case.lo * it.x[pair])[free], rtol=0, atol=1e-15)
    assert np.allclose(it.b[both], (case.hi * it.x[pair] - y)[both], rtol=0, atol=1e-15)


def test_entries_and_pairs_are_told_apart():
    layers = Layers([3], 1)
    case = Case(0)
    W = case.W._replace(w=np.ones(2), L=np.zeros(4), pair=np.zeros(18), ln_x=np.zeros(3))
    for lo, hi, entries, point in (
        ([0.0, 0.1, 0.2], [1.0, 0.5, 0.2], [OPEN, BOXED, PINNED], SEVERAL),
        ([0.2, 0.3, 0.5], [1.0, 0.9, 0.9], [PINNED] * 3, AT_LO),
        ([0.0, 0.0, 0.0], [0.2, 0.3, 0.5], [PINNED] * 3, AT_HI),
    ):
        it, count = started(layers.table, np.array(lo), np.array(hi), W)
        assert it.entry.tolist() == entries
        assert it.point[0] == point
        assert count == 3 + (3 if point == SEVERAL else 0)
