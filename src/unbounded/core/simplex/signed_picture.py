"""The picture of many arms whose estimates rise and fall: what is in it, and sums from it.

`lazy_signed` says what it is for. With a center c and a distance g, arms have u_k = g / (L_k - c).
Those with u_k <= 1 are in the moments, and have a weight in the tree. The others, and some that are
near them, are *leaders*: they are in a list, with weight 0 in the tree. Sums over all arms are a
power series in z = (x - c) / g and the terms of the leaders.
"""

from __future__ import annotations

import math

import numpy as np

from unbounded.core.arrays import ROUNDING, Vector, close, require, require_numbers
from unbounded.core.simplex import lazy
from unbounded.core.simplex.lazy import ANCHORS, BETA, CHANGES, FACTOR, FLOOR, MOMENTS, TERMS
from unbounded.core.simplex.tree import TREE, check_tree, heaviest, weigh
from unbounded.core.simplex.tsallis_arms import REACH, predicted_step
from unbounded.jit.kernel import kernel, subroutine

LEADERS = 64  # at most; then an anchor is due
ROOM_TO_FALL = 1.25  # times nearer, before an arm becomes a leader
WIDE = 0.3  # where the past fades: the series then leaves out 5e-14 of the sum, 1e-11 at worst
FASTEST = 2.0  # S grows by no more than this between anchors
_EXPANDED = 1e-8  # an error of S2 whose square is rounding error
_MOST_STEPS = 50
NEAR = 0.25  # up to which z = x sqrt(p_k) / (2 S) is a small change
_FAR = 256.0  # times S, beside which S has lost 8 of its bits

# Of the picture, before the numbers that `lazy` has: c, g and 1 / g; x now; the bound of proposals;
# the weight of the leaders, and their number. In the place of the rate is S at the anchor.
CENTER, GAP, PER_GAP, X, BOUND, HEAVY, COUNT = range(7)
S_S = lazy.ETA_S
# After the moments: sums of (g / (L - x))^j over all arms, which guide the next step; the sum of
# the cubes over all but the leaders; x at the anchor; how far z may go; for every leader its arm,
# its estimate, and g / (L - x).
S2, S3, S4, CUBES, X_S, LIMIT, LIST = range(MOMENTS + lazy.ROOM, MOMENTS + lazy.ROOM + 7)
_SLOTS = LEADERS + 1
ARM, LOSS, ROOT = LIST, LIST + _SLOTS, LIST + 2 * _SLOTS
_SIZE = LIST + 3 * _SLOTS

_S2 = lazy.constant([j + 1 for j in range(TERMS)])
# These two only guide the steps.
_GUIDE3 = lazy.constant([(j + 1) * (j + 2) / 2 for j in range(12)])
_GUIDE4 = lazy.constant([(j + 1) * (j + 2) * (j + 3) / 6 for j in range(8)])


def new_signed(n: int) -> tuple[Vector, Vector]:
    """Return picture and tree with no estimates yet: the uniform distribution."""
    picture, tree = np.zeros(_SIZE), np.zeros(TREE * n)
    picture[X], picture[BETA], picture[FLOOR] = -1.0, 1.0, 1.0 / n
    return picture, tree


@subroutine
def forget(picture: Vector, tree: Vector) -> None:
    """Make the distribution uniform; the next solve takes a picture."""
    anchors = picture[ANCHORS]
    picture[:] = 0.0
    tree[:] = 0.0
    picture[ANCHORS] = anchors
    picture[X] = -1.0
    picture[BETA] = 1.0
    picture[FLOOR] = 1.0 / (tree.size // TREE)


def check(picture: Vector, tree: Vector, M: Vector, S: float, beta: float) -> None:
    """Reject a picture, and a tree, from which the arms would not be drawn by their law."""
    n = M.size
    if S == 0.0:
        fresh, none = new_signed(n)
        fresh[ANCHORS] = picture[ANCHORS]
        require(np.array_equal(picture, fresh), "nothing was learned yet")
        require(not np.any(M) and np.array_equal(tree, none), "nothing was learned yet")
        return
    c, g, x, count = (float(picture[i]) for i in (CENTER, GAP, X, COUNT))
    require(0.0 < picture[S_S] <= S * (1.0 + ROUNDING), "there is no such anchor")
    require(S / picture[S_S] <= FASTEST * (1.0 + ROUNDING), "the anchor is too old")
    require(g > 0.0 and close(picture[PER_GAP] * g, 1.0), "there is no such anchor")
    require(abs(picture[X_S]) <= 2.0 * S * math.sqrt(n) * (1.0 + ROUNDING), "no such anchor")
    require(picture[LIMIT] in (REACH, WIDE), "there is no such anchor")
    require(abs(x - c) <= picture[LIMIT] * g * (1.0 + ROUNDING), "the anchor is too far away")
    require(_is_told(x, picture[X_S], S), "the estimates are too far away")
    require_numbers(picture[COUNT : COUNT + 1], LEADERS + 1, "leaders")
    arms, losses, roots = (picture[i : i + int(count)] for i in (ARM, LOSS, ROOT))
    require_numbers(arms, n, "leaders")
    check_tree(tree, M)
    leading = np.zeros(n, dtype=bool)
    leading[arms.astype(np.int64)] = True
    require(leading.sum() == count, "an arm leads twice")
    require(np.array_equal(tree[n : 2 * n] == 0.0, leading), "a weight is not that of its arm")
    require(np.array_equal(losses, M[arms.astype(np.int64)]), "leaders have other estimates")
    require(np.all(M - x > 0.0) and np.all(M[~leading] - c >= g), "estimates are below the anchor")
    h, u = g / (M - x), np.where(leading, 0.0, g / np.where(leading, g, M - c))
    lazy.check_moments(picture, u * u, u)
    weights = np.maximum(1.0, np.ceil(u * u * heaviest(n)))[~leading]
    require(np.all(abs(tree[n : 2 * n][~leading] - weights) <= 1.0), "there are no such weights")
    z = (x - c) / g
    require(close(picture[BOUND], 1.0 if z <= 0.0 else (1.0 - z) ** -2.0), "a bound is none")
    total = (0.5 * g / S) ** 2
    require(abs(np.sum(h * h) / total - 1.0) <= ROUNDING, "p is not a distribution")
    require(close(roots, h[arms.astype(np.int64)]), "leaders have other probabilities")
    require(close(picture[HEAVY], np.sum(roots * roots)), "leaders have other probabilities")
    sums = [np.sum(h**j) for j in (2.0, 3.0, 4.0)]
    require(np.allclose(picture[[S2, S3, S4]], sums, rtol=1e-3), "a solve would start nowhere")
    others = np.sum(h[~leading] ** 3)
    require(abs(picture[CUBES] - others) <= ROUNDING * sums[1], "there are no such sums")
    require(picture[CHANGES] >= 0.0 and picture[ANCHORS] >= 1.0, "there is no such anchor")
    require(close(picture[BETA], beta) and close(picture[FLOOR], beta / n), "no such exploration")
    require(close(picture[FACTOR] * total, 1.0 - beta), "q is not p, mixed")
    proposed = picture[HEAVY] + picture[BOUND] * tree[1] / heaviest(n)
    require(total >= 0.5 * lazy.ACCEPTED * proposed, "proposals that are never accepted")


@subroutine
def rescale(picture: Vector, tree: Vector, M: Vector, factor: float) -> None:
    """Multiply all estimates by a power of two, and what is measured by them."""
    n = M.size
    for i in range(n):
        M[i] *= factor
        tree[2 * n + i] *= factor
    for i in (CENTER, GAP, X, X_S, S_S):
        picture[i] *= factor
    picture[PER_GAP] /= factor
    for j in range(int(picture[COUNT])):
        picture[LOSS + j] *= factor


@kernel
def slot_of(picture: Vector, k: int) -> int:
    j = 0
    while picture[ARM + j] != k:
        j += 1
    return j


@kernel
def append(picture: Vector, k: int, estimate: float) -> int:
    """Make a leader of arm ``k``; there is one place more than `LEADERS`."""
    j = int(picture[COUNT])
    picture[ARM + j] = k
    picture[LOSS + j] = estimate
    picture[COUNT] = j + 1
    return j


@kernel
def exchange_one(picture: Vector, u: float, v: float) -> None:
    """Replace one arm in the moments; count what rounding errors may add up to, in units of M_0."""
    lazy.exchange(picture[MOMENTS : MOMENTS + lazy.ROOM], u * u, u, v * v, v)
    picture[CHANGES] += picture[MOMENTS] + u * u


@kernel
def move(
    picture: Vector, tree: Vector, k: int, slot: int, before: float, after: float, room: float
) -> None:
    """Put arm ``k`` where it belongs; ``slot`` is that of a leader, or -1."""
    n = tree.size // TREE
    c, g = picture[CENTER], picture[GAP]
    weight = 0.0
    if slot < 0:
        u = g / (before - c)
        if after - c >= g:
            v = g / (after - c)
            exchange_one(picture, u, v)
            weight = weight_of(v, heaviest(n))
        else:
            exchange_one(picture, u, 0.0)
            append(picture, k, after)
    elif after - c >= room * g:
        v = g / (after - c)
        exchange_one(picture, 0.0, v)
        weight = weight_of(v, heaviest(n))
        last = int(picture[COUNT]) - 1
        for part in (ARM, LOSS, ROOT):
            picture[part + slot] = picture[part + last]
            picture[part + last] = 0.0
        picture[COUNT] = last
    else:
        picture[LOSS + slot] = after
    weigh(tree, n, k, weight)
    if picture[COUNT] > LEADERS:
        picture[S_S] = 0.0


@kernel
def weight_of(u: float, units: float) -> float:
    """u^2 in units of 1 / ``units``, rounded up; ``units`` is `heaviest` of all arms."""
    return max(1.0, math.ceil(u * u * units))


@kernel
def find(picture: Vector, S: float, x: float) -> bool:
    """Find x, from a start below all estimates; or find that the series do not reach it."""
    g, per_gap = picture[GAP], picture[PER_GAP]
    unit = 2.0 * S * per_gap
    M = picture[MOMENTS:]
    for _ in range(_MOST_STEPS):
        z = (x - picture[CENTER]) * per_gap
        if not abs(z) <= picture[LIMIT]:
            return False
        s2, s3 = lazy.series(M, _S2, z), lazy.series(M[1:], _GUIDE3, z)
        s4 = lazy.series(M[2:], _GUIDE4, z)
        for j in range(int(picture[COUNT])):
            h = g / (picture[LOSS + j] - x)
            s2 += h * h
            s3 += h * h * h
            s4 += h * h * (h * h)
        error = s2 * (unit * unit) - 1.0
        if abs(error) <= _EXPANDED:  # one step of Newton's on S2 itself, taken with it
            x -= 0.5 * error * (s2 / s3) * g
            if not _is_told(x, picture[X_S], S):
                return False
            picture[X] = x
            picture[S2], picture[S3], picture[S4] = 1.0 / (unit * unit), s3, s4
            return True
        x += g * predicted_step(s2, s3, s4, 2.0 / unit, error)
    return False


@kernel
def _is_told(x: float, x_s: float, S: float) -> bool:
    """Whether distances to x, which are at least 2 S, can be told from differences of estimates."""
    return abs(x) <= 2.0 * (abs(x_s) + _FAR * S)


@kernel
def crossed(picture: Vector, before: float, slot: int) -> float:
    """The sum of g^3 / ((L - x_before)^2 (L - x)) over all arms but the leader in ``slot``."""
    z = (before - picture[CENTER]) * picture[PER_GAP]
    y = (picture[X] - picture[CENTER]) * picture[PER_GAP]
    power, once, twice, total = 1.0, 1.0, 1.0, 0.0  # of the products of j factors y and z, z, z
    for j in range(TERMS - 1):
        total += twice * picture[MOMENTS + 1 + j]
        power *= y
        once = once * z + power
        twice = twice * z + once
    for j in range(int(picture[COUNT])):
        if j != slot:
            h = picture[ROOT + j]
            total += h * h * (picture[GAP] / (picture[LOSS + j] - picture[X]))
    return total


@kernel
def near_gap(z: float, r: float, cubes: float, highest: float) -> float:
    """Bound the mixability gap of a small change of one arm, in units of 2 S.

    Lemma 1 of docs/theory/ada-inf.md at a good tau, or at 0.

    ``r`` is sqrt(p_k), ``cubes`` the sum of p_i^1.5 over the other arms, ``highest`` the largest
    sqrt(p).
    """
    share = 1.0 / (r * r * r + cubes)
    tau = z * r * r * share
    s = z * cubes * share  # z - tau r, of which nothing may be left
    other = min(highest, math.sqrt(max(0.0, 1.0 - r * r)))  # no other sqrt(p) is larger
    others = tau * tau * cubes / (1.0 - max(tau, 0.0) * other)
    return min(r * s * s / (1.0 + s) + others, r * z * z / (1.0 + z))
