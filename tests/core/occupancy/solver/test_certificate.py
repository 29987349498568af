"""Duality gaps, and the best certified point so far."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import rel_entr

from occupancy_facades import greedy_transitions
from occupancy_reference import boxes_as_arrays, greedy_value, objective, states_as_arrays
from occupancy_work import Case
from unbounded.core.occupancy.mdp import LayeredMDP, Markov, occupancy
from unbounded.core.occupancy.solver.certificate import bounds, certify, divergence, offer

seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("q", [0.0, 1e-100, 1e-9, 0.3, 1.0])
@pytest.mark.parametrize(
    "ratio", [1e-200, 0.5, 1 - 2e-3, 1 - 9e-4, 1.0, 1 + 1e-7, 1 + 9e-4, 1 + 2e-3, 40.0]
)
def test_divergence_to_full_precision(q, ratio):
    x = (q or 0.2) * ratio
    with mpmath.workdps(50):
        exact = mpmath.mpf(x)
        if q > 0:
            exact += q * mpmath.log(mpmath.mpf(q) / x) - q
    ours = divergence(q, x, float(mpmath.log(x)))
    assert ours >= 0
    if abs(q - x) <= 1e-3 * x:  # a series, to full precision
        assert ours == pytest.approx(float(exact), rel=1e-14, abs=0.0)
    else:  # the logarithm of a tiny number carries an absolute error of its size
        rounding = 4e-16 * max(q, x) * max(1.0, abs(np.log(x)))
        assert ours == pytest.approx(float(exact), rel=1e-11, abs=rounding)


def inside(case):
    """Random transitions in the boxes."""
    ends = [
        greedy_transitions(case.layers, case.lo, case.hi, case.rng.normal(size=case.v.size))
        for _ in range(2)
    ]
    share = case.rng.random()
    return share * ends[0] + (1 - share) * ends[1]


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_bounds_and_slacks_follow_the_definitions(seed):
    case = Case(seed)
    layers, W, P = case.layers, case.W, inside(case)
    bounds(case.lay, case.lo, case.hi, case.v, case.theta, P, W.bound, W.slack)
    lows, highs, Ps = (boxes_as_arrays(layers, x) for x in (case.lo, case.hi, P))
    values = states_as_arrays(layers, case.v)
    at = 0
    for h in range(layers.horizon):
        v = values[h + 1]
        for s, a in np.ndindex(Ps[h].shape[:2]):
            lo, hi, p, theta = lows[h][s, a], highs[h][s, a], Ps[h][s, a], case.theta[at]
            up, down = np.maximum(v - theta, 0), np.maximum(theta - v, 0)
            assert W.bound[at] == pytest.approx(theta + np.sum(up * hi - down * lo), abs=1e-14)
            slack = np.sum(up * (hi - p) + down * (p - lo))
            assert W.slack[at] == pytest.approx(slack, abs=1e-14)
            assert W.bound[at] - p @ v == pytest.approx(slack, abs=1e-13)
            assert W.bound[at] >= greedy_value(lo, hi, v) - 1e-14
            at += 1
    assert not W.bound[at:].any()
    assert not W.slack[at:].any()


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_the_best_theta_makes_the_bound_tight(seed):
    case = Case(seed)
    lows, highs = (boxes_as_arrays(case.layers, x) for x in (case.lo, case.hi))
    values = states_as_arrays(case.layers, case.v)
    best = np.full(case.layers.n_pairs, np.inf)
    P = inside(case)
    tight = [
        greedy_value(lo, hi, values[h + 1])
        for h in range(case.layers.horizon)
        for lo, hi in zip(*(x[h].reshape(-1, x[h].shape[2]) for x in (lows, highs)), strict=True)
    ]
    for theta in case.v[1:]:  # the marginal value is that of some state of the next layer
        bounds(
            case.lay, case.lo, case.hi, case.v, np.full(case.theta.size, theta), P, case.W.bound,
            case.W.slack,
        )  # fmt: skip
        best = np.minimum(best, case.W.bound)
    assert np.allclose(best[: len(tight)], tight, rtol=0, atol=1e-13)


@pytest.mark.parametrize("given_policy", [False, True])
@given(seed=seeds)
@settings(max_examples=30, deadline=None)
def test_the_gap_is_primal_minus_dual(given_policy, seed):
    case = Case(seed)
    layers, W, P, w = case.layers, case.W, inside(case), case.w
    bounds(case.lay, case.lo, case.hi, case.v, case.theta, P, W.bound, W.slack)
    tables = [case.rng.dirichlet(np.ones(layers.n_actions), n) for n in layers.sizes]
    pi, q = layers.pack_pairs(tables, first=1.0), np.full(layers.n_pairs, np.nan)
    kl, slack = certify(
        case.lay, case.L, W.w, case.v, P, W.bound, W.slack, given_policy, pi, q, W.mass, W.ln_x,
        W.begin, W.to,
    )  # fmt: skip
    g, kls = -W.bound[0], 0.0
    dual = zip(layers.unpack_pairs(case.L), layers.unpack_pairs(W.bound), strict=True)
    for h, (L, bound) in enumerate(dual):
        v = states_as_arrays(layers, case.v)[h + 1]
        e = np.exp(-(L + v[:, None] - bound) / w[h])
        g -= w[h] * np.log(e.sum())
        x, qh = e / e.sum(), layers.unpack_pairs(q)[h]
        kls += w[h] * np.sum(rel_entr(qh, x))
        if not given_policy:
            policy = layers.unpack_pairs(pi)[h]
            assert np.allclose(policy, e / e.sum(1, keepdims=True), rtol=1e-12)
    initial, arrays = layers.unpack_transitions(P)
    mdp = LayeredMDP(initial, arrays, layers.n_actions)
    assert np.allclose(q, occupancy(mdp, Markov(layers, pi)), rtol=0, atol=1e-14)
    assert kl == pytest.approx(kls, abs=1e-12)
    assert slack == pytest.approx(q @ W.slack, abs=1e-12)
    assert kl + slack == pytest.approx(objective(layers, case.L, w, q) - g, abs=1e-12)
    if given_policy:
        assert np.array_equal(pi, layers.pack_pairs(tables, first=1.0))


@pytest.mark.parametrize("seed", range(5))
def test_a_point_is_kept_if_and_only_if_its_gap_is_smaller(seed):
    case = Case(seed)
    W = case.W
    W.P[:] = case.P0
    bounds(case.lay, case.lo, case.hi, case.v, case.theta, W.P, W.bound, W.slack)
    best, gap, slack = offer(case.lay, case.v, case.theta, False, np.inf, W)
    assert best == gap
    assert slack == pytest.approx(W.q_out @ W.slack, abs=1e-12)
    for kept, of in (
        (W.best_v, case.v), (W.best_theta, case.theta), (W.best_P, W.P), (W.best_q, W.q_out),
        (W.best_pi, W.pi_out),
    ):  # fmt: skip
        assert np.array_equal(kept, of)
        kept[:] = 7.0
    for limit in (gap, 0.9 * gap):  # not smaller: nothing is written
        assert offer(case.lay, case.v, case.theta, False, limit, W) == (limit, gap, slack)
        for kept in (W.best_v, W.best_theta, W.best_P, W.best_q, W.best_pi):
            assert np.all(kept == 7.0)
