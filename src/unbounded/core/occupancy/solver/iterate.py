"""The interior point method's iterate and its strictly feasible start.

Start: the uniform policy through the middle of every box, and multipliers that make all
complementarity products equal. Pairs of infinite loss (`reach`) have x = 0 and never move. An entry
with hi = lo, and every entry of a pair whose box is a point, is pinned: eliminated from the
problem. An upper bound hi = 1 is implied and dropped.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import (
    ACTIONS,
    PAIR,
    SIZE,
    STATE,
    TRIPLE,
    horizon,
    roll_forward,
)
from unbounded.core.occupancy.solver.work import Work
from unbounded.jit.kernel import kernel, section, subroutine

_POINT = 1e-13  # a box narrower than this is a point
_START = 1.0  # first complementarity, relative to the spread of the losses
BOXED, PINNED, OPEN = 0.0, 1.0, 2.0  # an entry: both bounds, eliminated, no upper bound
AT_LO, AT_HI, SEVERAL = 1.0, -1.0, 0.0  # a pair: P = lo is the only choice, P = hi is, neither
DEAD = 2.0  # a pair that can have no mass


@kernel
def _box_sums(m: int, n: int, k: int, lo: Vector, hi: Vector) -> tuple[float, float]:
    """Sums of lo and of hi over the n entries of the pair whose first is ``k``."""
    low = 0.0
    high = 0.0
    for j in range(n):
        low += lo[k + j * m]
        high += hi[k + j * m]
    return low, high


@subroutine
def interior(lay: Integers, lo: Vector, hi: Vector, P: Vector) -> None:
    """P = lo + t (hi - lo) with sum one: the middle of every box."""
    for h in range(horizon(lay)):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        n = lay[SIZE, h + 1]
        for i in range(m):
            k = lay[TRIPLE, h] + i
            low, high = _box_sums(m, n, k, lo, hi)
            t = (1.0 - low) / (high - low) if high > low else 0.0
            t = min(max(t, 0.0), 1.0)
            for j in range(n):
                P[k + j * m] = lo[k + j * m] + t * (hi[k + j * m] - lo[k + j * m])


class Iterate(NamedTuple):
    """Iterate, direction and the quantities of the elimination; X over pairs, T over triples."""

    Pc: Vector  # T: P of the start, and of the eliminated entries throughout
    entry: Vector  # T: BOXED, PINNED or OPEN
    point: Vector  # X: AT_LO, AT_HI, SEVERAL or DEAD
    x: Vector
    z: Vector
    v: Vector  # states
    theta: Vector
    a: Vector
    b: Vector
    alpha: Vector
    beta: Vector
    dx: Vector
    dz: Vector
    dv: Vector
    dtheta: Vector
    da: Vector
    db: Vector
    dalpha: Vector
    dbeta: Vector
    ca: Vector  # second-order terms
    cb: Vector
    cz: Vector
    ce: Vector
    inv_d: Vector
    e: Vector
    p: Vector
    t: Vector
    inv_K: Vector
    inv_W: Vector
    ratio: Vector  # delta/W
    R: Vector
    rs: Vector  # x - sum y
    tsum: Vector
    rows: Vector
    c: Vector


@kernel
def _part(memory: Vector, size: int, i: int) -> Vector:
    return section(memory, i * size, (i + 1) * size)


@kernel
def room_sizes(lay: Integers, W: Work) -> tuple[int, int, int]:
    """Of the vectors that `start` cuts up: for triples, pairs, and the rest."""
    layer = W.ln_x.size * (W.pair.size // 6) + W.pair.size // 6
    return 16 * lay[TRIPLE, -1], 15 * lay[PAIR, -1], 2 * lay[STATE, -1] + layer


@subroutine
def start(
    lay: Integers, lo: Vector, hi: Vector, Z: Vector, Y: Vector, V: Vector, W: Work
) -> tuple[Iterate, int]:
    """A strictly feasible start: uniform policy, middle of the boxes; number of products.

    The iterate is cut out of three vectors of zeros, as long as `room_sizes` says.
    """
    H = horizon(lay)
    S = lay[STATE, H + 1]
    X = lay[PAIR, H + 1]
    T = lay[TRIPLE, H + 1]
    m_max = W.pair.size // 6
    n_max = W.ln_x.size
    it = Iterate(
        Pc=_part(Z, T, 0), entry=_part(Z, T, 1), point=_part(Y, X, 0), x=_part(Y, X, 1),
        z=_part(Y, X, 2), v=_part(V, S, 0), theta=_part(Y, X, 3),
        a=_part(Z, T, 2), b=_part(Z, T, 3), alpha=_part(Z, T, 4), beta=_part(Z, T, 5),
        dx=_part(Y, X, 4), dz=_part(Y, X, 5), dv=_part(V, S, 1), dtheta=_part(Y, X, 6),
        da=_part(Z, T, 6), db=_part(Z, T, 7), dalpha=_part(Z, T, 8), dbeta=_part(Z, T, 9),
        ca=_part(Z, T, 10), cb=_part(Z, T, 11), cz=_part(Y, X, 7), ce=_part(Y, X, 8),
        inv_d=_part(Z, T, 12), e=_part(Z, T, 13), p=_part(Z, T, 14), t=_part(Z, T, 15),
        inv_K=_part(Y, X, 9), inv_W=_part(Y, X, 10), ratio=_part(Y, X, 11), R=_part(Y, X, 12),
        rs=_part(Y, X, 13), tsum=_part(Y, X, 14),
        rows=section(V, 2 * S, 2 * S + n_max * m_max), c=section(V, V.size - m_max, V.size),
    )  # fmt: skip
    interior(lay, lo, hi, it.Pc)
    _even(lay, W.L, it.R)
    roll_forward(lay, it.Pc, it.R, it.dv, it.x)
    scale = 0.0
    for h in range(1, H + 1):
        scale = max(scale, W.w[h])
        low = math.inf
        high = -math.inf
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            if W.L[p] < math.inf:
                low = min(low, W.L[p])
                high = max(high, W.L[p])
        scale = max(scale, high - low)
    count = 0
    amount = 0.0
    for p in range(1, X):
        if W.L[p] < math.inf:
            it.x[p] = max(it.x[p], 1e-290)
            amount += it.x[p]
            count += 1
        else:
            it.x[p] = 0.0
            it.point[p] = DEAD
    for h in range(H):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        n = lay[SIZE, h + 1]
        for i in range(m):
            k = lay[TRIPLE, h] + i
            low, high = _box_sums(m, n, k, lo, hi)
            if it.point[lay[PAIR, h] + i] == DEAD:
                pass
            elif 1.0 - low <= _POINT:
                it.point[lay[PAIR, h] + i] = AT_LO
            elif high - 1.0 <= _POINT:
                it.point[lay[PAIR, h] + i] = AT_HI
            xi = it.x[lay[PAIR, h] + i]
            for j in range(n):
                f = k + j * m
                it.a[f] = 1.0
                it.b[f] = 1.0
                if it.point[lay[PAIR, h] + i] != SEVERAL or hi[f] - lo[f] <= _POINT:
                    it.entry[f] = PINNED
                else:
                    it.a[f] = max((it.Pc[f] - lo[f]) * xi, 1e-290)
                    count += 1
                    amount += it.a[f]
                    if hi[f] >= 1.0:
                        it.entry[f] = OPEN
                    else:
                        it.b[f] = max((hi[f] - it.Pc[f]) * xi, 1e-290)
                        count += 1
                        amount += it.b[f]
    mu = _START * scale * amount / count
    for f in range(T):
        if it.entry[f] != PINNED:
            it.alpha[f] = mu / it.a[f]
            if it.entry[f] == BOXED:
                it.beta[f] = mu / it.b[f]
    for p in range(1, X):
        if it.point[p] != DEAD:
            it.z[p] = mu / it.x[p]
    return it, count


@kernel
def _even(lay: Integers, L: Vector, pi: Vector) -> None:
    """The uniform policy over actions of finite loss; zero in states that have none."""
    pi[0] = 1.0
    for h in range(1, horizon(lay) + 1):
        A = lay[ACTIONS, h]
        for p in range(lay[PAIR, h], lay[PAIR, h + 1], A):
            alive = 0
            for a in range(A):
                alive += 1 if L[p + a] < math.inf else 0
            for a in range(A):
                pi[p + a] = 1.0 / alive if L[p + a] < math.inf else 0.0
