"""Newton's direction by conjugate gradients, over lists of the possible transitions.

The matrix is that of `ascent` and `ssn`, never written down: a product with it goes twice over the
lists, while its factors would fill up and cost |S_h|^3. It is positive definite, so that the
direction is one of ascent wherever the iteration stops; and the certificate does not depend on it.
Scaled by its diagonal.
"""

from __future__ import annotations

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, horizon
from unbounded.core.occupancy.solver.ascent import mass_to_move, slope_along
from unbounded.core.occupancy.solver.work import Work, list_room
from unbounded.jit.kernel import borrowed, kernel, subroutine

_ACCURACY = 1e-2  # of the residual, relative to the gradient
_MOST = 500  # products


@subroutine
def direction(lay: Integers, lo: Vector, hi: Vector, damping: float, W: Work) -> float:
    """Newton's direction W.dv at the point of the last `evaluate`; the slope along it."""
    lay, lo, hi, W = borrowed((lay, lo, hi, W))
    S = W.dv.size
    left = W.cg[:S]
    towards = W.cg[S : 2 * S]
    product = W.cg[2 * S :]
    free = list_room(W, 3)
    _diagonal(lay, lo, hi, damping, W, free)
    size = 0.0
    for s in range(S):
        W.dv[s] = 0.0
        left[s] = W.grad[s] if s > 0 else 0.0
        towards[s] = left[s] * W.inverse[s]
        size += left[s] * towards[s]
    enough = _ACCURACY * _ACCURACY * size
    for _ in range(_MOST):
        _multiply(lay, damping, free, towards, W, product)
        bend = 0.0
        for s in range(1, S):
            bend += towards[s] * product[s]
        if not bend > 0.0:
            break
        step = size / bend
        rest = 0.0
        for s in range(1, S):
            W.dv[s] += step * towards[s]
            left[s] -= step * product[s]
            rest += left[s] * left[s] * W.inverse[s]
        if not rest > enough:
            break
        for s in range(1, S):
            towards[s] = left[s] * W.inverse[s] + rest / size * towards[s]
        size = rest
    return slope_along(W)


@kernel
def _diagonal(lay: Integers, lo: Vector, hi: Vector, damping: float, W: Work, free: Vector) -> None:
    """1/diagonal into W.inverse; which entries are free, and 1/their number into W.slack."""
    W.inverse[0] = 0.0
    for h in range(1, horizon(lay) + 1):
        for s in range(lay[STATE, h], lay[STATE, h + 1]):
            W.inverse[s] = (mass_to_move(W.q[s], W.r[s]) + damping) / W.w[h]
    for h in range(horizon(lay)):
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            count = 0.0
            for k in range(W.begin[p], W.begin[p + 1]):
                free[k] = 1.0 if lo[k] < W.P[k] < hi[k] else 0.0
                count += free[k]
            W.slack[p] = 1.0 / max(count, 1.0)
            pull = W.x[p] / W.rho[h] * (1.0 - W.slack[p])
            for k in range(W.begin[p], W.begin[p + 1]):
                W.inverse[W.to[k]] += W.x[p] * W.P[k] * W.P[k] / W.w[h] + pull * free[k]
    for s in range(1, W.inverse.size):
        W.inverse[s] = 1.0 / W.inverse[s] if W.inverse[s] > 1e-300 else 0.0


@subroutine
def _multiply(lay: Integers, damping: float, free: Vector, z: Vector, W: Work, y: Vector) -> None:
    """y = M z."""
    lay, free, z, W, y = borrowed((lay, free, z, W, y))
    H = horizon(lay)
    y[0] = 0.0
    for h in range(1, H + 1):
        for s in range(lay[STATE, h], lay[STATE, h + 1]):
            y[s] = (mass_to_move(W.q[s], W.r[s]) - W.q[s] + damping) / W.w[h] * z[s]
    for h in range(H + 1):
        A = lay[ACTIONS, h]
        out = 0.0  # of q, and of r, with z
        into = 0.0
        for s in range(lay[STATE, h], lay[STATE, h + 1]):
            out += W.q[s] * z[s]
        for s in range(lay[STATE, h + 1], lay[STATE, h + 2] if h < H else 0):
            into += W.r[s] * z[s]
        for s in range(lay[SIZE, h]):
            at = lay[STATE, h] + s
            y[at] += W.q[at] * into / W.w[h] if h > 0 else 0.0
            for p in range(lay[PAIR, h] + s * A, lay[PAIR, h] + s * A + A):
                mean = 0.0
                middle = 0.0
                for k in range(W.begin[p], W.begin[p + 1]):
                    mean += W.P[k] * z[W.to[k]]
                    middle += free[k] * z[W.to[k]]
                middle *= W.slack[p]
                push = W.x[p] / W.w[h] * (mean - z[at])
                pull = W.x[p] / W.rho[h]
                y[at] -= push if h > 0 else 0.0
                for k in range(W.begin[p], W.begin[p + 1]):
                    y[W.to[k]] += push * W.P[k] + pull * free[k] * (z[W.to[k]] - middle)
        if h > 0:
            for s in range(lay[STATE, h + 1], lay[STATE, h + 2] if h < H else 0):
                y[s] += W.r[s] * out / W.w[h]
