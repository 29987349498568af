"""The mixability gap of a small change of one arm (docs/theory/ada-inf.md, Lemma 1)."""

from __future__ import annotations

import math

from unbounded.jit.kernel import kernel

NEAR = 0.25  # up to which z = x sqrt(p_k) / (2 S) is a small change


@kernel
def near_gap(z: float, r: float, cubes: float, highest: float) -> float:
    """A bound on the gap of a small change, in units of 2 S: Lemma 1 at a good tau, or at 0.

    ``r`` is sqrt(p_k), ``cubes`` the sum of p_i^1.5 over the other arms, ``highest`` the largest
    sqrt(p).
    """
    share = 1.0 / (r * r * r + cubes)
    tau = z * r * r * share
    s = z * cubes * share  # z - tau r, of which nothing may be left
    other = min(highest, math.sqrt(max(0.0, 1.0 - r * r)))  # no other sqrt(p) is larger
    others = tau * tau * cubes / (1.0 - max(tau, 0.0) * other)
    return min(r * s * s / (1.0 + s) + others, r * z * z / (1.0 + z))
