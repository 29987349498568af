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

from unbounded._jit import assign, kernel
from unbounded.core.arrays import Room, Vector
from unbounded.core.legal import ROUNDING, close, require
from unbounded.core.simplex import sampling
from unbounded.core.simplex.ftrl import NO_ANCHOR, Anchor, halley_step, total, tsallis
from unbounded.core.simplex.sampling import Law, new_law

_LEAST = 2.0**-700  # of S; x / S, with x up to 2^260, stays finite
_MOST = 2.0**300  # of estimates, and of S
_NEAR = 0.5  # up to which z = x sqrt(p_k) / (2 S) is a small change
_LITTLE = 0.01  # of the sum of p, that it leaves at the old normaliser


class Arms(NamedTuple):
    """Estimates, and the distribution that follows from them."""

    S: float  # 1 / eta; 0 as long as all estimates are 0
    anchor: Anchor  # x = -y and sums of (m - x)^-j, in units of 2 S
    M: Vector  # (n,) L - min L
    p: Vector  # (n,) the distribution of FTRL, which sums to 1 but for rounding
    law: Law  # q: p, mixed with the uniform distribution
    m: Room  # (n,) M in units of 2 S
    p_next: Room  # (n,)

    def check(self, beta: float) -> None:
        """Refuse arms that do not fit together; ``beta`` is the share of uniform exploration."""
        S, anchor, M, p, law = self[:5]
        n = M.size
        self.law.check()
        require(np.all((M >= 0.0) & (M <= _MOST)) and np.any(M == 0.0), "no such estimates")
        require(S == 0.0 or _LEAST <= S <= _MOST, "there is no such learning rate")
        if S == 0.0:
            require(np.all(M == 0.0) and close(p, 1.0 / n), "nothing was learned yet")
        else:
            m = M * (0.5 / S)
            require(-math.sqrt(n) * (1.0 + ROUNDING) <= anchor.x <= -1.0 + ROUNDING, "no such y")
            anchor.check_for(m)
            require(np.all(abs(p - (m - anchor.x) ** -2.0) <= ROUNDING * p + 1e-300), "not its p")
            require(abs(p.sum() - 1.0) <= ROUNDING, "p is not a distribution")
        require(close(law.q, (1.0 - beta) * p + beta / n), "q is not p, mixed")


def new_arms(n: int) -> Arms:
    """No estimates yet, and the uniform distribution."""
    p = np.full(n, 1.0 / n)
    return Arms(0.0, NO_ANCHOR, np.zeros(n), p, new_law(n), np.zeros(n), np.zeros(n))


@kernel
def rescale(arms: Arms, factor: float) -> Arms:
    """Multiply the estimates and S by a power of two; where S gets lost, all begins anew."""
    S, anchor, M, p, law, m, p_next = arms
    if factor == 1.0 or S == 0.0:
        return arms
    S *= factor
    if S < _LEAST:
        S = 0.0
        anchor = NO_ANCHOR
        for i in range(M.size):
            M[i] = 0.0
            p[i] = 1.0 / M.size
        sampling.make_uniform(law)
    else:
        for i in range(M.size):
            M[i] *= factor
    return Arms(S, anchor, M, p, law, m, p_next)


@kernel
def add(arms: Arms, k: int, x: float) -> tuple[Arms, float]:
    """Add ``x`` to the estimate of arm ``k``, and return what this costs: the mixability gap.

    It is x p_k + Phi(L) - Phi(L + x e_k) >= 0, where Phi(L) = min_p <L, p> - 4 S sum sqrt(p). With
    r = sqrt(p), p' the distribution after the change and tau the change of the normaliser in units
    of 2 S, it equals 2 S (r_k s^2 / (1 + s) + tau^2 sum_{i != k} p_i r'_i) for s = r_k / r'_k - 1 =
    z - tau r_k, in which nothing cancels (docs/ada-inf.md, Lemma 1). `solve` must follow.
    """
    S, anchor, M, p, law, m, p_next = arms
    n = M.size
    before = M[k]
    M[k] = before + x
    base = 0.0  # min M
    if M[k] < 0.0:
        base = M[k]
    elif before == 0.0:
        base = M[k]
        for i in range(n):
            base = min(base, M[i])
    if base != 0.0:
        for i in range(n):
            M[i] -= base
    if S == 0.0:
        return arms, (x / n if x > 0.0 else -x * (1.0 - 1.0 / n))
    inverse = 0.5 / S
    for i in range(n):
        m[i] = M[i] * inverse
    root = math.sqrt(p[k])
    z = x * inverse * root
    start = -1.0
    if z > -_NEAR:
        new = root / (1.0 + z)
        S2 = anchor.S2 + (new * new - root * root)
        if S2 > _LITTLE:  # else the old normaliser is nothing to go by
            S3 = anchor.S3 + (new * new * new - root * root * root)
            S4 = anchor.S4 + (new * new * new * new - root * root * root * root)
            start = within(anchor.x + halley_step(S2, S3, S4, 2.0) - base * inverse, n)
    found = tsallis(m, 2.0, Anchor(start, 0.0, 0.0, 0.0), p_next, law.room)
    tau = (found.x - anchor.x) + base * inverse
    if abs(z) <= _NEAR:
        s = z - tau * root
        own = 2.0 * S * root * s * s / (1.0 + s)
    else:  # r_k - r'_k does not cancel, or what it stands for is negligible
        own = max(0.0, (x - 2.0 * S * tau) * root * (root - math.sqrt(p_next[k])))
    for i in range(n):
        p_next[i] = p[i] * math.sqrt(p_next[i])
    p_next[k] = 0.0
    others = 2.0 * S * tau * (tau * total(p_next, law.room))
    return Arms(S, found, M, p, law, m, p_next), own + others


@kernel
def within(x: float, n: int) -> float:
    """``x``, or the nearest that a normaliser can be."""
    return min(-1.0, max(-math.sqrt(n), x))


@kernel
def solve(arms: Arms, S: float, beta: float) -> Arms:
    """Make p the distribution for the new S > 0, at least the one before, and q from p."""
    before, anchor, M, p, law, m, p_next = arms
    n = M.size
    ratio = before / S
    start = -1.0
    if ratio >= 0.5:
        for i in range(n):
            m[i] *= ratio
        step = halley_step(anchor.S2, anchor.S3, anchor.S4, 2.0 * ratio)
        start = within((anchor.x + step) * ratio, n)
    else:
        inverse = 0.5 / S
        for i in range(n):
            m[i] = M[i] * inverse
    anchor = tsallis(m, 2.0, Anchor(start, 0.0, 0.0, 0.0), p, law.room)
    assign(law.q, p)
    sampling.blend(law, (1.0 - beta) / anchor.S2, beta / n)
    return Arms(S, anchor, M, p, law, m, p_next)
