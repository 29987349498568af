"""Newton's method on the dual of an occupancy program: what both programs share.

Minus the Hessian has a block per layer. Of its parts, those that come from the softmax x over a
layer's pairs are the same whatever the inner problem is: with q = sum_a x and r the inflow,

    M[h+1, h+1] += sum (x/w_h) P P^T,   M[h, h] += diag(q)/w_h,
    M[h, h+1]    = -(1/w_h) ( [sum_a x P]_s - q r^T ).

The rank-one terms -q q^T/w_h and -r r^T/w_h of the diagonal blocks are left out on purpose: the
dual does not change when a layer's v is shifted, leaving them out removes that null space, and the
step changes only to second order because q - r is the gradient.
"""

from __future__ import annotations

import math

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, TRIPLE
from unbounded.core.occupancy.solver import block_tridiagonal as blocktri
from unbounded.core.occupancy.solver.work import Work
from unbounded.jit.kernel import assign, borrowed, kernel, subroutine

_STARVED = 1.5  # inflow/outflow beyond which a state takes a step in the log domain


@kernel
def imbalance(grad: Vector) -> float:
    """sum |outflow - inflow| over the states."""
    size = 0.0
    for k in range(1, grad.size):
        size += abs(grad[k])
    return size


@kernel
def mass_to_move(q: float, r: float) -> float:
    """Outflow of a state, or what takes a starved one to its inflow in one step."""
    if r > _STARVED * q:
        return (r - q) / math.log(r / max(q, 1e-300))
    return q


@kernel
def couple(lay: Integers, h: int, e: int, next_block: Vector, W: Work) -> None:
    """x P P^T/w_h into the block of layer h + 1, and the block between, which begins at W.E[e].

    Leaves x/w_h in W.c and P, pair by pair, in W.rows.
    """
    n = lay[SIZE, h]
    A = lay[ACTIONS, h]
    m = n * A
    r = lay[SIZE, h + 1]
    c = W.c
    rows = W.rows
    scale = 1.0 / W.w[h]
    x = W.x[lay[PAIR, h] : lay[PAIR, h] + m]
    for i in range(m):
        c[i] = x[i] * scale
    blocktri.transpose(r, m, W.P, lay[TRIPLE, h], rows)
    blocktri.add_gram(r, m, c, rows, next_block)
    if h == 0:  # s_0 has no multiplier
        return
    into = W.r[lay[STATE, h + 1] : lay[STATE, h + 1] + r]
    for s in range(n):
        row = W.E[e + s * r : e + (s + 1) * r]
        t = W.q[lay[STATE, h] + s] * scale
        for j in range(r):
            row[j] = t * into[j]
        for i in range(s * A, s * A + A):
            one = rows[i * r : (i + 1) * r]
            t = c[i]
            for j in range(r):
                row[j] -= t * one[j]


@subroutine
def direction(lay: Integers, W: Work) -> float:
    """Newton's direction W.dv from the matrix in W.D, W.E; the slope along it."""
    W = borrowed(W)
    blocktri.factor(lay, W.D, W.E, W.inverse, W.c)
    assign(W.dv, W.grad)
    blocktri.solve(lay, W.D, W.E, W.inverse, W.dv)
    return slope_along(W)


@kernel
def slope_along(W: Work) -> float:
    """Of the dual, along W.dv."""
    slope = 0.0
    for k in range(1, W.grad.size):
        slope += W.grad[k] * W.dv[k]
    return slope


@kernel
def step_to(v: Vector, t: float, W: Work) -> None:
    """v = W.v_old + t W.dv."""
    for k in range(1, v.size):
        v[k] = W.v_old[k] + t * W.dv[k]


@kernel
def good_step(value: float, trial: float, t: float, slope: float, after: float) -> bool:
    """Armijo's condition; or, where rounding hides the increase, Wolfe's on the slopes."""
    noise = 1e-13 * (1.0 + abs(value))
    enough = trial >= value + 1e-4 * t * slope
    return enough or (trial >= value - noise and after >= -0.8 * slope)
