"""Power sums that follow a change of one term."""

from __future__ import annotations

import numpy as np
import pytest

from unbounded.core.simplex.lazy import ROOM, TERMS, exchange, gather, series
from unbounded.core.simplex.sampling import LANES


@pytest.mark.parametrize("n", [3, 64, 100, 2500])
def test_moments_follow_a_change(n):
    rng = np.random.default_rng(n)
    a, u = rng.random(n), rng.random(n)
    M, lanes = np.zeros(ROOM), np.zeros(4 * LANES)
    gather(M, a.copy(), u, lanes)
    np.testing.assert_allclose(M[:TERMS], [(a * u**j).sum() for j in range(TERMS)], rtol=1e-13)
    exchange(M, a[0], u[0], 0.25, 0.5)
    a[0], u[0] = 0.25, 0.5
    wanted = np.array([(a * u**j).sum() for j in range(TERMS)])
    np.testing.assert_allclose(M[:TERMS], wanted, rtol=1e-12)
    assert (M[TERMS:] == 0.0).all()
    c = rng.random(TERMS)
    assert series(M, c, -0.3) == pytest.approx(np.polyval((c * wanted)[::-1], -0.3), rel=1e-13)
