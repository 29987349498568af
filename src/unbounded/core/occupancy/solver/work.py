"""Lay out the solvers' scratch in one flat buffer, and normalize a program into it.

Losses and weights are taken in units of 2^e, the largest weight in [1/2, 1): multiplying all of
them by a power of two changes no bit of a solution.
"""

from __future__ import annotations

import math
from typing import NamedTuple, get_type_hints

from numba import types

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, TRIPLE, horizon
from unbounded.core.occupancy.solver import ROUGH, SOLVED, UNSOLVED, Outcome
from unbounded.jit.kernel import integers, kernel, section, subroutine

FEW = 8  # there are lists if at most one transition in so many is possible
_ITERATE = 10, 10  # vectors over triples and over pairs of the interior point method
_ROUNDING = 1e-13  # no gap below this, relative to the largest weight, is asked for
VECTOR, TABLE = types.float64[::1], types.int64[:, ::1]
OUTCOME = types.NamedTuple(
    [{float: types.float64, int: types.int64}[kind] for kind in get_type_hints(Outcome).values()],
    Outcome,
)


class Work(NamedTuple):
    """Name the parts of the buffer.

    Sizes: S states, X pairs, T triples; n states and m pairs in the largest layer.
    """

    L: Vector  # X: normalized losses
    w: Vector  # H + 1
    rho: Vector  # H + 1
    P: Vector  # T
    x: Vector  # X: dual softmax
    bound: Vector  # X
    slack: Vector  # X
    v_old: Vector  # S
    dv: Vector  # S
    grad: Vector  # S
    q: Vector  # S: outflow
    r: Vector  # S: inflow
    inverse: Vector  # S
    D: Vector
    E: Vector
    pair: Vector  # 6 m
    rows: Vector  # n m
    c: Vector  # n + m
    best_v: Vector  # S: the best certified point
    best_theta: Vector  # X
    best_P: Vector  # T
    best_q: Vector  # X
    best_pi: Vector  # X
    q_out: Vector  # X: occupancy and policy of the last certificate
    pi_out: Vector  # X
    mass: Vector  # S
    ln_x: Vector  # n
    lists: Vector  # X + 2 + 5 T/FEW: lists of the possible transitions and their boxes
    cg: Vector  # 3 S: of conjugate gradients
    triples: Vector  # 10 T: of the interior point method
    pairs: Vector  # 10 X: likewise
    begin: Integers  # X + 1: the first possible transition of each pair; empty without lists
    to: Integers  # states that they lead to


@kernel
def _shape(lay: Integers) -> tuple[int, int, int, int]:
    """n, m, and the sizes of D and E."""
    H = horizon(lay)
    n = 1
    m = 1
    d = 0
    e = 0
    for h in range(H + 1):
        n = max(n, lay[SIZE, h])
        m = max(m, lay[SIZE, h] * lay[ACTIONS, h])
        if h > 0:
            d += lay[SIZE, h] * lay[SIZE, h]
            if h < H:
                e += lay[SIZE, h] * lay[SIZE, h + 1]
    return n, m, d, e


@subroutine
def work_size(lay: Integers) -> int:
    """Count the entries that `carve` cuts up."""
    H = horizon(lay)
    S = lay[STATE, H + 1]
    X = lay[PAIR, H + 1]
    T = lay[TRIPLE, H + 1]
    n, m, d, e = _shape(lay)
    layers = 2 * (H + 1) + d + e + n * m + 7 * m + 2 * n
    lists = X + 2 + 5 * (T // FEW)
    return layers + 11 * S + (9 + _ITERATE[1]) * X + (2 + _ITERATE[0]) * T + lists


@kernel
def _next(buffer: Vector, k: int, size: int) -> tuple[Vector, int]:
    return section(buffer, k, k + size), k + size


@subroutine
def carve(lay: Integers, buffer: Vector) -> Work:
    """Cut the flat buffer, of `work_size` entries, into the solver's arrays."""
    H = horizon(lay)
    S = lay[STATE, H + 1]
    X = lay[PAIR, H + 1]
    T = lay[TRIPLE, H + 1]
    n, m, d, e = _shape(lay)
    L, k = _next(buffer, 0, X)
    w, k = _next(buffer, k, H + 1)
    rho, k = _next(buffer, k, H + 1)
    P, k = _next(buffer, k, T)
    x, k = _next(buffer, k, X)
    bound, k = _next(buffer, k, X)
    slack, k = _next(buffer, k, X)
    v_old, k = _next(buffer, k, S)
    dv, k = _next(buffer, k, S)
    grad, k = _next(buffer, k, S)
    q, k = _next(buffer, k, S)
    r, k = _next(buffer, k, S)
    inverse, k = _next(buffer, k, S)
    D, k = _next(buffer, k, d)
    E, k = _next(buffer, k, e)
    pair, k = _next(buffer, k, 6 * m)
    rows, k = _next(buffer, k, n * m)
    c, k = _next(buffer, k, n + m)
    best_v, k = _next(buffer, k, S)
    best_theta, k = _next(buffer, k, X)
    best_P, k = _next(buffer, k, T)
    best_q, k = _next(buffer, k, X)
    best_pi, k = _next(buffer, k, X)
    q_out, k = _next(buffer, k, X)
    pi_out, k = _next(buffer, k, X)
    mass, k = _next(buffer, k, S)
    ln_x, k = _next(buffer, k, n)
    lists, k = _next(buffer, k, X + 2 + 5 * (T // FEW))
    cg, k = _next(buffer, k, 3 * S)
    triples, k = _next(buffer, k, _ITERATE[0] * T)
    pairs, k = _next(buffer, k, _ITERATE[1] * X)
    none = integers(section(buffer, 0, 0))
    return Work(
        L, w, rho, P, x, bound, slack, v_old, dv, grad, q, r, inverse, D, E, pair, rows, c,
        best_v, best_theta, best_P, best_q, best_pi, q_out, pi_out, mass, ln_x,
        lists, cg, triples, pairs, none, none,
    )  # fmt: skip


@kernel
def with_lists(W: Work, X: int, size: int) -> Work:
    """Restrict the arrays to ``size`` possible transitions, with space for their lists."""
    begin = integers(section(W.lists, 1, X + 2))
    to = integers(section(W.lists, X + 2, X + 2 + size))
    return Work(
        W.L, W.w, W.rho, section(W.P, 0, size), W.x, W.bound, W.slack, W.v_old, W.dv, W.grad, W.q,
        W.r, W.inverse, W.D, W.E, W.pair, W.rows, W.c, W.best_v, W.best_theta,
        section(W.best_P, 0, size), W.best_q, W.best_pi, W.q_out, W.pi_out, W.mass,
        W.ln_x, W.lists, W.cg, W.triples, W.pairs, begin, to,
    )  # fmt: skip


@kernel
def list_scratch(W: Work, i: int) -> Vector:
    """Take scratch i = 0, .., 3 for a vector over the possible transitions."""
    first = W.begin.size + 1 + (i + 1) * W.to.size
    return section(W.lists, first, first + W.to.size)


class Units(NamedTuple):
    """Hold the unit 2^e, and the range of the weights in it."""

    e: int
    w_min: float
    w_max: float
    placeholder: bool  # no scale was seen yet: the weights stand for any (erratum E16)


@subroutine
def normalize(lay: Integers, L: Vector, w: Vector, W: Work) -> Units:
    """Write losses and weights, in units of 2^e, to W.L and W.w.

    Scaling is exact and comes first; then each layer's smallest loss is subtracted. Pairs that W.L
    has infinity for (`reach.mark`) keep it.
    """
    H = horizon(lay)
    top = 0.0
    for h in range(H):
        top = max(top, w[h])
    placeholder = not top > 0.0
    e = 0
    if not placeholder:
        _, e = math.frexp(top)
    w_min = 1.0
    w_max = 0.0
    W.L[0] = 0.0
    for h in range(1, H + 1):
        W.w[h] = 1.0 if placeholder else math.ldexp(w[h - 1], -e)
        w_min = min(w_min, W.w[h])
        w_max = max(w_max, W.w[h])
        least = math.inf
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            if W.L[p] != math.inf:
                W.L[p] = 0.0 if placeholder else math.ldexp(L[p], -e)
                least = min(least, W.L[p])
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            W.L[p] -= least
    W.w[0] = W.w[1]
    return Units(e, w_min, w_max, placeholder)


@kernel
def wanted_gap(units: Units, tol: float) -> float:
    """Say at which gap, in units of 2^e, a program counts as solved."""
    return max(tol * units.w_min, _ROUNDING * units.w_max)


@kernel
def conclude(
    units: Units, tol: float, gap: float, steps: int, certificates: int, iterations: int,
    method: int,
) -> Outcome:  # fmt: skip
    """Sum up a solve whose best point has this ``gap``, in units of 2^e."""
    status = UNSOLVED
    if gap <= wanted_gap(units, tol):
        status = SOLVED
    elif gap <= tol * units.w_max:
        status = ROUGH
    return Outcome(
        math.ldexp(gap, units.e), gap / units.w_min, gap / units.w_max, steps, certificates,
        iterations, method, status,
    )  # fmt: skip
