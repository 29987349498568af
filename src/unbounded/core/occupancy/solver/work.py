"""The arrays that the solvers work on: views into one flat buffer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, TRIPLE, horizon
from unbounded.jit.kernel import integers, kernel, section, subroutine

KL, SLACK = range(2)  # of Work.parts
FEW = 8  # there are lists if at most one transition in so many is possible


class Work(NamedTuple):
    """Sizes: S states, X pairs, T triples; n states and m pairs in the largest layer."""

    L: Vector  # X: normalised losses
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
    parts: Vector  # 2: the KL and the slack part of its gap
    q_out: Vector  # X: occupancy and policy of the last certificate
    pi_out: Vector  # X
    mass: Vector  # S
    ln_x: Vector  # n
    lists: Vector  # X + 2 + 5 T/FEW: room for lists of the possible transitions and their boxes
    cg: Vector  # 3 S: of conjugate gradients
    begin: Integers  # X + 1: the first possible transition of each pair; empty without lists
    to: Integers  # states that they lead to


@subroutine
def work_size(lay: Integers) -> int:
    """Length of the flat buffer that `carve` cuts."""
    return int(_cut(lay, np.empty(0))[1])


@subroutine
def carve(lay: Integers, buffer: Vector) -> Work:
    """Cut the flat buffer into the solver's arrays."""
    return _cut(lay, buffer)[0]


@kernel
def _next(buffer: Vector, k: int, size: int) -> tuple[Vector, int]:
    return buffer[k : k + size], k + size


@kernel
def _cut(lay: Integers, buffer: Vector) -> tuple[Work, int]:
    """The views, and how long the buffer must be: the one list of sizes."""
    H = horizon(lay)
    S = lay[STATE, H + 1]
    X = lay[PAIR, H + 1]
    T = lay[TRIPLE, H + 1]
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
    parts, k = _next(buffer, k, 2)
    q_out, k = _next(buffer, k, X)
    pi_out, k = _next(buffer, k, X)
    mass, k = _next(buffer, k, S)
    ln_x, k = _next(buffer, k, n)
    lists, k = _next(buffer, k, X + 2 + 5 * (T // FEW))
    cg, k = _next(buffer, k, 3 * S)
    none = integers(section(buffer, 0, 0))
    work = Work(
        L, w, rho, P, x, bound, slack, v_old, dv, grad, q, r, inverse, D, E, pair, rows, c,
        best_v, best_theta, best_P, best_q, best_pi, parts, q_out, pi_out, mass, ln_x,
        lists, cg, none, none,
    )  # fmt: skip
    return work, k


@kernel
def with_lists(W: Work, X: int, size: int) -> Work:
    """The same arrays where ``size`` transitions are possible: over these, with room for lists."""
    begin = integers(section(W.lists, 1, X + 2))
    to = integers(section(W.lists, X + 2, X + 2 + size))
    return Work(
        W.L, W.w, W.rho, section(W.P, 0, size), W.x, W.bound, W.slack, W.v_old, W.dv, W.grad, W.q,
        W.r, W.inverse, W.D, W.E, W.pair, W.rows, W.c, W.best_v, W.best_theta,
        section(W.best_P, 0, size), W.best_q, W.best_pi, W.parts, W.q_out, W.pi_out, W.mass,
        W.ln_x, W.lists, W.cg, begin, to,
    )  # fmt: skip


@kernel
def list_room(W: Work, i: int) -> Vector:
    """Room i = 0, .., 3 for a vector over the possible transitions."""
    first = W.begin.size + 1 + (i + 1) * W.to.size
    return section(W.lists, first, first + W.to.size)
