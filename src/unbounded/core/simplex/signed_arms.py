"""The arms as FTRL with the 1/2-Tsallis entropy sees them, for estimates of either sign.

p = argmin <L, p> - 4 S sum sqrt(p), where 1 / S is the learning rate. Estimates are kept as
M = L - min L: an arm may fall so far below the others that min L would swallow what matters, S.
In units of 2 S they are m = M / (2 S), and p_i = (m_i + y)^-2 with y in [1, sqrt(n)]; the solver of
`ftrl`, at the rate 2, finds y as its -x.

From `MANY_ARMS` on, `lazy_signed` draws from the same law without touching more than a few arms.
Callers see no difference. As in `tsallis_arms`, kernels with an underscore are given ``tree`` as an
argument, because Numba leaves out what only others do where an argument is None.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from unbounded.core.arrays import ROUNDING, Scratch, Vector, close, require
from unbounded.core.simplex import ftrl, lazy_signed, sampling, signed_picture
from unbounded.core.simplex.ftrl import NO_ANCHOR, Anchor
from unbounded.core.simplex.lazy import BETA
from unbounded.core.simplex.sampling import Law, new_law
from unbounded.core.simplex.signed_picture import NEAR, WIDE, near_gap
from unbounded.core.simplex.tsallis_arms import REACH
from unbounded.jit.interpreter import quietly
from unbounded.jit.kernel import kernel, subroutine

MANY_ARMS = 128  # measured: benchmarks/many_arms.py

_LEAST = 2.0**-700  # of S; x / S, with x up to 2^260, stays finite
_MOST = 2.0**300  # of estimates, and of S
_VANISHING = 2.0**-1000  # of p, whose square root is lost with it
_EQUAL = 1e-14  # relative difference of roots that differ by rounding errors, if at all


class Arms(NamedTuple):
    """Estimates, and the distribution that follows from them."""

    S: float  # 1 / eta; 0 as long as all estimates are 0
    anchor: Anchor  # x = -y and sums of (m - x)^-j, in units of 2 S; not with many arms
    M: Vector  # (n,) L - min L; with many arms, the min L of an earlier round
    law: Law  # q: p, mixed with the uniform distribution; with many arms, room
    m: Scratch  # (n,) M in units of 2 S
    roots: Scratch  # (n,) sqrt(p)
    picture: Vector | None  # with many arms, what is drawn from (`lazy_signed`)
    tree: Vector | None  # with many arms, their weights

    def check_for(self, beta: float) -> None:
        """Reject arms that do not fit together; ``beta`` is the share of uniform exploration."""
        S, anchor, M, law = self[:4]
        n = M.size
        require(S == 0.0 or _LEAST <= S <= _MOST, "there is no such learning rate")
        if self.picture is not None and self.tree is not None:
            require(np.all(abs(M) <= _MOST) and anchor == NO_ANCHOR, "no such estimates")
            signed_picture.check(self.picture, self.tree, M, S, beta)
            return
        self.law.check()
        require(np.all((M >= 0.0) & (M <= _MOST)) and np.any(M == 0.0), "no such estimates")
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
    picture, tree = signed_picture.new_signed(n) if n >= MANY_ARMS else (None, None)
    none = np.zeros((3, n))
    return Arms(0.0, NO_ANCHOR, none[0], new_law(n), none[1], none[2], picture, tree)


@kernel
def draw(arms: Arms, word: int) -> tuple[int, float]:
    """Draw an arm from q; return it and its probability."""
    return _draw(arms, arms.picture, arms.tree, word)


@kernel
def _draw(arms: Arms, picture: Any, tree: Any, word: int) -> tuple[int, float]:
    if tree is None:
        return sampling.draw(arms.law, word)
    return lazy_signed.draw(picture, tree, arms.M, word)


@kernel
def fill(arms: Arms, q: Vector) -> None:
    """Fill ``q`` with the whole distribution."""
    _fill(arms, arms.picture, q)


@kernel
def _fill(arms: Arms, picture: Any, q: Vector) -> None:
    if picture is None:
        sampling.fill(arms.law, q)
    else:
        for k in range(q.size):
            q[k] = lazy_signed.probability(picture, arms.M, k)


@kernel
def probability(arms: Arms, k: int) -> float:
    """Return q_k."""
    return _probability(arms.law, arms.picture, arms.M, k)


@kernel
def _probability(law: Law, picture: Any, M: Vector, k: int) -> float:
    if picture is None:
        return law.q[k]
    return lazy_signed.probability(picture, M, k)


@kernel
def root(arms: Arms, k: int) -> float:
    """sqrt(p_k)."""
    if arms.S == 0.0:
        return 1.0 / math.sqrt(arms.M.size)
    return _root(arms, arms.picture, k)


@kernel
def _root(arms: Arms, picture: Any, k: int) -> float:
    if picture is None:
        return 1.0 / (arms.M[k] * (0.5 / arms.S) - arms.anchor.x)
    return lazy_signed.root(picture, arms.M, arms.S, k)


@kernel
def rescale(arms: Arms, factor: float) -> Arms:
    """Multiply the estimates and S by a power of two; where S gets lost, all begins anew."""
    S, anchor, M, law, m, roots, picture, tree = arms
    if factor == 1.0 or S == 0.0:
        return arms
    S *= factor
    if S < _LEAST:
        S = 0.0
        anchor = NO_ANCHOR
        factor = 0.0
    _rescale(law, M, picture, tree, factor)
    return Arms(S, anchor, M, law, m, roots, picture, tree)


@kernel
def _rescale(law: Law, M: Vector, picture: Any, tree: Any, factor: float) -> None:
    if tree is None:
        if factor == 0.0:
            sampling.make_uniform(law)
        for i in range(M.size):
            M[i] *= factor
    elif factor == 0.0:
        M[:] = 0.0
        signed_picture.forget(picture, tree)
    else:
        signed_picture.rescale(picture, tree, M, factor)


@kernel
def add(arms: Arms, k: int, x: float) -> tuple[Arms, float]:
    """Add ``x`` to the estimate of arm ``k``, and return what this costs: the mixability gap.

    It is x p_k + Phi(L) - Phi(L + x e_k) >= 0, where Phi(L) = min_p <L, p> - 4 S sum sqrt(p); where
    the change is small, a bound from above which is hardly more (docs/theory/ada-inf.md, Lemma 1).
    `solve` must follow.
    """
    return _add(arms, arms.picture, arms.tree, k, x)


@kernel
def _add(arms: Arms, picture: Any, tree: Any, k: int, x: float) -> tuple[Arms, float]:
    S, anchor, M, law, m, roots = arms[:6]
    if tree is None:
        anchor, gap = _add_to_all(S, anchor, M, law, m, roots, k, x)
    else:
        done, gap = x == 0.0, 0.0
        if S > 0.0:
            done, gap = lazy_signed.add(picture, tree, M, S, k, x)
        if not done:
            gap = _add_spoiling(picture, S, M, law, m, roots, k, x)
    return Arms(S, anchor, M, law, m, roots, picture, tree), gap


@kernel
def add_fading(arms: Arms, k: int, x: float) -> tuple[Arms, float]:
    """As `add`, where the past fades, so that pictures of many arms are soon too old: then another
    is taken before the change, which costs less than to do without."""
    return _add_fading(arms, arms.picture, arms.tree, k, x)


@kernel
def _add_fading(arms: Arms, picture: Any, tree: Any, k: int, x: float) -> tuple[Arms, float]:
    if tree is None:
        return _add(arms, picture, tree, k, x)
    S, anchor, M, law, m, roots = arms[:6]
    done, gap = False, 0.0
    if S > 0.0:
        for again in range(2):
            if again > 0:
                beta = picture[BETA]
                lazy_signed.anchor(picture, tree, M, S, beta, m, law.q, law.room, WIDE)
            done, gap = lazy_signed.add(picture, tree, M, S, k, x)
            if done:
                break
    if not done:
        gap = _add_spoiling(picture, S, M, law, m, roots, k, x)
    return Arms(S, anchor, M, law, m, roots, picture, tree), gap


@subroutine
def _add_spoiling(
    picture: Vector, S: float, M: Vector, law: Law, m: Vector, roots: Vector, k: int, x: float
) -> float:
    """`_add_to_all` with many arms; the next solve takes a picture."""
    base = sampling.least(M)
    for i in range(M.size):
        M[i] -= base
    if S == 0.0:
        _, gap = _add_to_all(S, NO_ANCHOR, M, law, m, roots, k, x)
        return gap
    now = Anchor((picture[signed_picture.X] - base) * (0.5 / S), 1.0, 1.0, 1.0)
    found, gap = _add_to_all(S, now, M, law, m, roots, k, x)
    picture[signed_picture.X] = found.x * (2.0 * S)
    picture[signed_picture.S_S] = 0.0
    return gap


@kernel
def _add_to_all(
    S: float, anchor: Anchor, M: Vector, law: Law, m: Vector, roots: Vector, k: int, x: float
) -> tuple[Anchor, float]:
    n = M.size
    if S == 0.0:
        _shift(M, k, x)
        return anchor, (x / n if x > 0.0 else -x * (1.0 - 1.0 / n))
    inverse = 0.5 / S
    for i in range(n):
        roots[i] = 1.0 / (M[i] * inverse - anchor.x)
    r = roots[k]
    z = x * inverse * r
    moved = anchor.x - _shift(M, k, x) * inverse
    if abs(z) <= NEAR:
        for i in range(n):
            roots[i] = roots[i] * roots[i] * roots[i]
        roots[k] = 0.0  # not subtracted from a sum of which the others may be a rounding error
        cubes = ftrl.total(roots, law.room)
        new = r / (1.0 + z)
        gap = 2.0 * S * near_gap(z, r, cubes, -1.0 / anchor.x)
        S2 = anchor.S2 + (new * new - r * r)
        S3 = anchor.S3 + (new * new * new - r * r * r)
        S4 = anchor.S4 + (new * new * new * new - r * r * r * r)
        return Anchor(moved, S2, S3, S4), gap
    for i in range(n):
        m[i] = M[i] * inverse
    found = ftrl.tsallis(m, 2.0, Anchor(-1.0, 0.0, 0.0, 0.0), law.q, law.room)
    tau = found.x - moved
    new = math.sqrt(law.q[k])
    own = (x - 2.0 * S * tau) * r * (r - new)
    if abs(r - new) <= _EQUAL * r:  # and x - 2 S tau is a rounding error of x, large beside S
        own = 2.0 * S * (r - new) * ((r - new) / new)
    for i in range(n):
        p = law.q[i]
        new = math.sqrt(p) if p > _VANISHING else 1.0 / (m[i] - found.x)
        roots[i] = roots[i] * roots[i] * new
    roots[k] = 0.0
    gap = max(0.0, own) + 2.0 * S * tau * (tau * ftrl.total(roots, law.room))
    return found, gap


@kernel
def add_with(arms: Arms, k: int, x: float, asleep: Vector, y: float) -> tuple[Arms, float]:
    """As `add`, and add ``y``, of the sign of ``x``, to the estimates of arms that were ``asleep``.

    The gap is that of all changes together, 2 S sum (r_i - r'_i)^2 / r'_i for the roots before and
    after. Takes O(n). `solve` must follow.
    """
    return _add_with(arms, arms.picture, arms.tree, k, x, asleep, y)


@kernel
def _add_with(
    arms: Arms, picture: Any, tree: Any, k: int, x: float, asleep: Vector, y: float
) -> tuple[Arms, float]:
    S, anchor, M, law, m, roots = arms[:6]
    if tree is not None:
        base = sampling.least(M)
        for i in range(M.size):
            M[i] -= base
        if S > 0.0:
            anchor = Anchor((picture[signed_picture.X] - base) * (0.5 / S), 1.0, 1.0, 1.0)
    found, gap = _add_to_several(S, anchor, M, law, m, roots, k, x, asleep, y)
    if tree is not None and S > 0.0:  # the next solve takes a picture
        picture[signed_picture.X] = found.x * (2.0 * S)
        picture[signed_picture.S_S] = 0.0
        found = NO_ANCHOR
    return Arms(S, found, M, law, m, roots, picture, tree), gap


@subroutine
def _add_to_several(
    S: float, anchor: Anchor, M: Vector, law: Law, m: Vector, roots: Vector,
    k: int, x: float, asleep: Vector, y: float,
) -> tuple[Anchor, float]:  # fmt: skip
    n = M.size
    inverse = 0.5 / S if S > 0.0 else 0.0
    mean = 0.0
    for i in range(n):
        change = x if i == k else asleep[i] * y
        mean += change / n
        roots[i] = 1.0 / (M[i] * inverse - anchor.x) if S > 0.0 else 0.0
        M[i] += change
    base = sampling.least(M)
    for i in range(n):
        M[i] -= base
        m[i] = M[i] * inverse
    if S == 0.0:
        return anchor, max(0.0, mean - base)
    found = ftrl.tsallis(m, 2.0, Anchor(-1.0, 0.0, 0.0, 0.0), law.q, law.room)
    for i in range(n):
        p = law.q[i]
        new = math.sqrt(p) if p > _VANISHING else 1.0 / (m[i] - found.x)
        roots[i] = (roots[i] - new) * ((roots[i] - new) / new)
    return found, 2.0 * S * ftrl.total(roots, law.room)


@kernel
def cubes(arms: Arms, asleep: Vector) -> float:
    """Sum of p^(3/2) over the arms that were ``asleep``."""
    total = 0.0
    for i in range(arms.M.size):
        if asleep[i] != 0.0:
            r = root(arms, i)
            total += r * r * r
    return total


def with_arms(arms: Arms, keep: Vector, beta: float) -> Arms:
    """Return the arms after some came or went, as in `tsallis_arms`, with the same S."""
    old, S = keep >= 0, arms.S
    fresh = new_arms(keep.size)
    if S == 0.0 or keep.size == 1:
        return fresh
    kept = arms.M[keep[old].astype(np.int64)]
    kept = kept - kept.min()
    m = kept.size
    some = quietly(solve)(new_arms(m)._replace(M=kept.copy()), S, 0.0)
    q = np.empty(m)
    quietly(fill)(some, q)
    best = int(q.argmax())
    x = kept[best] - 2.0 * S / math.sqrt(q[best])
    fresh.M[old] = kept
    fresh.M[~old] = x + (2.0 * S) * np.sqrt(np.arange(m + 1.0, keep.size + 1.0))
    fresh.M[:] -= fresh.M.min()
    solved: Arms = quietly(solve)(fresh, S, beta)
    return solved


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
def solve(arms: Arms, S: float, beta: float) -> Arms:
    """Make p the distribution for the new S > 0, at least the one before, and q from p."""
    return _solve(arms, arms.picture, arms.tree, S, beta)


@kernel
def _solve(arms: Arms, picture: Any, tree: Any, S: float, beta: float) -> Arms:
    before, anchor, M, law, m, roots = arms[:6]
    if tree is None:
        anchor = _solve_for_all(before, anchor, M, law, m, S, beta)
    elif not lazy_signed.solve(picture, tree, S, beta):
        lazy_signed.anchor(picture, tree, M, S, beta, m, law.q, law.room, REACH)
    return Arms(S, anchor, M, law, m, roots, picture, tree)


@kernel
def _solve_for_all(
    before: float, anchor: Anchor, M: Vector, law: Law, m: Vector, S: float, beta: float
) -> Anchor:
    n = M.size
    inverse = 0.5 / S
    for i in range(n):
        m[i] = M[i] * inverse
    ratio = before / S
    start = -1.0
    if ratio >= 0.5:
        step = ftrl.halley_step(anchor.S2, anchor.S3, anchor.S4, 2.0 * ratio)
        start = min(-1.0, max(-math.sqrt(n), (anchor.x + step) * ratio))
    return ftrl.tsallis_mixed(m, 2.0, Anchor(start, 0.0, 0.0, 0.0), beta, law)
