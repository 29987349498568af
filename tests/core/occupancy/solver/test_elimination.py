"""One Newton step of the interior point method: all its linear equations hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from occupancy_work import Case, started
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, TRIPLE
from unbounded.core.occupancy.solver.elimination import (
    BOXED,
    PINNED,
    back_substitute,
    direction,
    eliminate,
)

seeds = st.integers(0, 2**32 - 1)


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_a_step_solves_the_linearised_optimality_conditions(seed):
    case = Case(seed)
    lay, lo, hi, W, rng = case.lay, case.lo, case.hi, case.W, case.rng
    it, count = started(lay, lo, hi, W)
    it.v[1:] = rng.normal(size=it.v.size - 1) * 0.1
    inner = lay[PAIR, case.layers.horizon]  # theta of layer H is zero
    it.theta[:inner] = rng.normal(size=inner) * 0.1
    for terms in (it.ca, it.cb, it.cz, it.ce):
        terms[:] = rng.normal(size=terms.size) * 1e-3
    ca, cb, cz, ce = (terms.copy() for terms in (it.ca, it.cb, it.cz, it.ce))
    target = 0.3 * float(it.x[1:] @ it.z[1:]) / count
    eliminate(lay, lo, hi, it, W)
    direction(lay, lo, hi, it, W, target)
    step = back_substitute(lay, lo, hi, it, target)
    H = case.layers.horizon
    inflow, outflow = np.zeros((2, case.layers.n_states))
    scale = max(np.abs(x).max() for x in (it.dx, it.dtheta, it.dv, it.alpha, it.z, case.L)) + 1.0
    for h in range(H + 1):
        m, A = lay[SIZE, h] * lay[ACTIONS, h], lay[ACTIONS, h]
        for i in range(m):
            p, s = lay[PAIR, h] + i, lay[STATE, h] + i // A
            x, dx, theta = it.x[p], it.dx[p], it.theta[p] + it.dtheta[p]
            outflow[s] += x + dx if h else 0.0
            y_sum, stationary = 0.0, -theta if h < H else 0.0
            for j in range(lay[SIZE, h + 1] if h < H else 0):
                f, t = lay[TRIPLE, h] + j * m + i, lay[STATE, h + 1] + j
                v = it.v[t] + it.dv[t]
                if it.entry[f] == PINNED:
                    y = it.a[f] * (x + dx)
                    stationary += it.a[f] * (theta - v)
                else:
                    alpha, a = it.alpha[f] + it.dalpha[f], it.a[f]
                    y = lo[f] * (x + dx) + a + it.da[f]
                    product = a * alpha + it.alpha[f] * it.da[f] + ca[f]
                    assert product == pytest.approx(target, abs=1e-9 * scale)
                    beta = 0.0
                    if it.entry[f] == BOXED:
                        beta = it.beta[f] + it.dbeta[f]
                        product = it.b[f] * beta + it.beta[f] * it.db[f] + cb[f]
                        assert product == pytest.approx(target, abs=1e-9 * scale)
                        width = (hi[f] - lo[f]) * dx
                        assert it.da[f] + it.db[f] == pytest.approx(width, abs=1e-10 * scale)
                    # theta - v_j - alpha + beta = 0
                    assert theta - v - alpha + beta == pytest.approx(0.0, abs=1e-8 * scale)
                    stationary += lo[f] * alpha - hi[f] * beta
                y_sum += y
                inflow[t] += y
            if h < H:
                assert y_sum == pytest.approx(x + dx, abs=1e-10 * scale)
            if h == 0:
                assert dx == pytest.approx(0.0, abs=1e-12 * scale)
                continue
            w, z = W.w[h], it.z[p] + it.dz[p]
            assert x * z + it.z[p] * dx + cz[p] == pytest.approx(target, abs=1e-9 * scale)
            stationary += W.L[p] + w * (np.log(x) + 1 + dx / x) + it.v[s] + it.dv[s] - z
            assert stationary == pytest.approx(ce[p], abs=1e-7 * scale)
    assert np.allclose(inflow[1:], outflow[1:], rtol=0, atol=1e-9 * scale)
    # the step: the longest that keeps every slack and multiplier of what is free at least zero
    free, both = it.entry != PINNED, it.entry == BOXED
    pairs = [(it.x[1:], it.dx[1:]), (it.z[1:], it.dz[1:]), (it.a[free], it.da[free]),
             (it.alpha[free], it.dalpha[free]), (it.b[both], it.db[both]),
             (it.beta[both], it.dbeta[both])]  # fmt: skip
    longest = min((np.min(-x[d < 0] / d[d < 0], initial=1.0) for x, d in pairs), default=1.0)
    assert step == pytest.approx(longest, rel=1e-12)
