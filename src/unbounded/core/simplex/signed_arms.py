"""The arms as FTRL with the 1/2-Tsallis entropy sees them, for estimates of either sign.

p = argmin <L, p> - 4 S sum sqrt(p), where 1 / S is the learning rate. Estimates are kept as
M = L - min L: an arm may fall so far below the others that min L would swallow what matters, S.
In units of 2 S they are m = M / (2 S), and p_i = (m_i + y)^-2 with y in [1, sqrt(n)]; the solver of
`ftrl`, at the rate 2, finds y as its -x.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unbounded._jit import kernel
from unbounded.core.arrays import Room, Vector
from unbounded.core.legal import ROUNDING, close, require
from unbounded.core.simplex import sampling
from unbounded.core.simplex.ftrl import (
    NO_ANCHOR,
    Anchor,
    halley_step,
    total,
    tsallis,
    tsallis_mixed,
)
from unbounded.core.simplex.sampling import Law, new_law

_LEAST = 2.0**-700  # of S; x / S, with x up to 2^260, stays finite
_MOST = 2.0**300  # of estimates, and of S
_NEAR = 0.25  # up to which z = x sqrt(p_k) / (2 S) is a small change


class Arms(NamedTuple):
    """Estimates, and the distribution that follows from them."""

    S: float  # 1 / eta; 0 as long as all estimates are 0
    anchor: Anchor  # x = -y and sums of (m - x)^-j, in units of 2 S
    M: Vector  # (n,) L - min L
    law: Law  # q: p, mixed with the uniform distribution
    m: Room  # (n,) M in units of 2 S
    roots: Room  # (n,) sqrt(p)

    def check(self, beta: float) -> None:
        """Refuse arms that do not fit together; ``beta`` is the share of uniform exploration."""
        S, anchor, M, law = self[:4]
        n = M.size
        self.law.check()
        require(np.all((M >= 0.0) & (M <= _MOST)) and np.any(M == 0.0), "no such estimates")
        require(S == 0.0 or _LEAST <= S <= _MOST, "there is no such learning rate")
        p = np.full(n, 1.0 / n)
        if S == 0.0:
            require(np.all(M == 0.0), "nothing was learned yet")
        else:
            m = M * (0.5 / S)
            require(-math.sqrt(n) * (1.0 + ROUNDING) <= anchor.x <= -1.0 + ROUNDING, "no such y")
            anchor.check_for(m)
            p = (m - anchor.x) ** -2.0
            require(abs(p.sum() - 1.0) <= ROUNDING, "p is not a distribution")
        require(close(law.q, (1.0 - beta) * p + beta / n), "q is not p, mixed")


def new_arms(n: int) -> Arms:
    """No estimates yet, and the uniform distribution."""
    return Arms(0.0, NO_ANCHOR, np.zeros(n), new_law(n), np.zeros(n), np.zeros(n))


@kernel
def root(arms: Arms, k: int) -> float:
    """sqrt(p_k)."""
    if arms.S == 0.0:
        return 1.0 / math.sqrt(arms.M.size)
    return 1.0 / (arms.M[k] * (0.5 / arms.S) - arms.anchor.x)


@kernel
def rescale(arms: Arms, factor: float) -> Arms:
    """Multiply the estimates and S by a power of two; where S gets lost, all begins anew."""
    S, anchor, M, law, m, roots = arms
    if factor == 1.0 or S == 0.0:
        return arms
    S *= factor
    if S < _LEAST:
        S = 0.0
        anchor = NO_ANCHOR
        factor = 0.0
        sampling.make_uniform(law)
    for i in range(M.size):
        M[i] *= factor
    return Arms(S, anchor, M, law, m, roots)


@kernel
def add(arms: Arms, k: int, x: float) -> tuple[Arms, float]:
    """Add ``x`` to the estimate of arm ``k``, and return what this costs: the mixability gap.

    It is x p_k + Phi(L) - Phi(L + x e_k) >= 0, where Phi(L) = min_p <L, p> - 4 S sum sqrt(p); where
    the change is small, a bound from above which is hardly more (docs/theory/ada-inf.md, Lemma 1).
    `solve` must follow.
    """
    S, anchor, M, law, m, roots = arms
    n = M.size
    if S == 0.0:
        _shift(M, k, x)
        return arms, (x / n if x > 0.0 else -x * (1.0 - 1.0 / n))
    inverse = 0.5 / S
    for i in range(n):
        roots[i] = 1.0 / (M[i] * inverse - anchor.x)
    r = roots[k]
    z = x * inverse * r
    moved = anchor.x - _shift(M, k, x) * inverse
    if abs(z) <= _NEAR:
        for i in range(n):
            roots[i] = roots[i] * roots[i] * roots[i]
        roots[k] = 0.0  # not subtracted from a sum of which the others may be a rounding error
        cubes = total(roots, law.room)
        new = r / (1.0 + z)
        gap = 2.0 * S * near_gap(z, r, cubes, -1.0 / anchor.x)
        S2 = anchor.S2 + (new * new - r * r)
        S3 = anchor.S3 + (new * new * new - r * r * r)
        S4 = anchor.S4 + (new * new * new * new - r * r * r * r)
        return Arms(S, Anchor(moved, S2, S3, S4), M, law, m, roots), gap
    for i in range(n):
        m[i] = M[i] * inverse
    found = tsallis(m, 2.0, Anchor(-1.0, 0.0, 0.0, 0.0), law.q, law.room)
    tau = found.x - moved
    own = (x - 2.0 * S * tau) * r * (r - math.sqrt(law.q[k]))
    for i in range(n):
        roots[i] = roots[i] * roots[i] * math.sqrt(law.q[i])
    roots[k] = 0.0
    gap = max(0.0, own) + 2.0 * S * tau * (tau * total(roots, law.room))
    return Arms(S, found, M, law, m, roots), gap


@kernel
def _shift(M: Vector, k: int, x: float) -> float:
    """Add ``x`` to ``M[k]``; then subtract the minimum, which is returned, from all."""
    before = M[k]
    M[k] = before + x
    base = min(0.0, M[k])
    if before == 0.0:
        base = M[k]
        for i in range(M.size):
            base = min(base, M[i])
    if base != 0.0:
        for i in range(M.size):
            M[i] -= base
    return base


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


@kernel
def solve(arms: Arms, S: float, beta: float) -> Arms:
    """Make p the distribution for the new S > 0, at least the one before, and q from p."""
    before, anchor, M, law, m, roots = arms
    n = M.size
    inverse = 0.5 / S
    for i in range(n):
        m[i] = M[i] * inverse
    ratio = before / S
    start = -1.0
    if ratio >= 0.5:
        step = halley_step(anchor.S2, anchor.S3, anchor.S4, 2.0 * ratio)
        start = min(-1.0, max(-math.sqrt(n), (anchor.x + step) * ratio))
    anchor = tsallis_mixed(m, 2.0, Anchor(start, 0.0, 0.0, 0.0), beta, law)
    return Arms(S, anchor, M, law, m, roots)
