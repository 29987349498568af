"""Arms drawn by weights that change one at a time, and the least of their estimates, in O(log n).

One vector of 3 n floats holds two binary trees of the same shape: node i < n has the children 2 i
and 2 i + 1, and leaf n + k is arm k. Slots 0 .. 2 n - 1 have the weights and their sums. Weights
are integers, and their sum stays below 2^53: no sum is ever rounded, and what is drawn from is
known exactly. Slots 2 n .. 3 n - 1 have the least estimate below each node that is no leaf.
"""

from __future__ import annotations

import math

import numpy as np

from unbounded.core.arrays import Vector, require, require_numbers
from unbounded.core.random import Word
from unbounded.jit.kernel import kernel, subroutine

TREE = 3  # floats per arm

_LOW_HALF = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def check_tree(tree: Vector, M: Vector) -> None:
    """Reject a tree that does not draw by its weights, or has another least estimate."""
    n = M.size
    sums, lows = tree[: 2 * n], np.append(tree[2 * n :], M)
    require_numbers(sums[n:], heaviest(n) + 1.0, "weights")
    inner = np.arange(1, n)
    require(np.all(sums[inner] == sums[2 * inner] + sums[2 * inner + 1]), "there are no such sums")
    require(
        np.all(lows[inner] == np.minimum(lows[2 * inner], lows[2 * inner + 1])),
        "there are no such least estimates",
    )


@kernel
def heaviest(n: int) -> float:
    """Return the largest weight that n arms may have, a power of two."""
    return math.ldexp(1.0, 53 - math.frexp(float(n))[1])


@kernel
def weigh(tree: Vector, n: int, k: int, weight: float) -> None:
    """Change the weight of arm ``k``."""
    i = n + k
    change = weight - tree[i]
    if change != 0.0:
        while i > 0:
            tree[i] += change
            i >>= 1


@kernel
def lowest(tree: Vector, n: int) -> float:
    """Return the least estimate of all."""
    return tree[2 * n + 1]


@kernel
def follow(tree: Vector, M: Vector, k: int) -> None:
    """Find the least estimates again after that of arm ``k`` has changed."""
    n = M.size
    i = (n + k) >> 1
    while i > 0:
        least = min(_low(tree, M, 2 * i), _low(tree, M, 2 * i + 1))
        if tree[2 * n + i] == least:
            break
        tree[2 * n + i] = least
        i >>= 1


@kernel
def _low(tree: Vector, M: Vector, i: int) -> float:
    n = M.size
    return M[i - n] if i >= n else tree[2 * n + i]


@subroutine
def grow(tree: Vector, M: Vector) -> None:
    """Make both trees from their leaves."""
    n = M.size
    for i in range(n - 1, n // 2, -1):  # whose children are leaves
        tree[i] = tree[2 * i] + tree[2 * i + 1]
        tree[2 * n + i] = min(M[2 * i - n], M[2 * i + 1 - n])
    for i in range(min(n - 1, n // 2), 0, -1):
        tree[i] = tree[2 * i] + tree[2 * i + 1]
        tree[2 * n + i] = min(_low(tree, M, 2 * i), _low(tree, M, 2 * i + 1))


@kernel
def pick(tree: Vector, n: int, word: Word) -> int:
    """Return an arm drawn by its weight from 64 random bits."""
    place = float(_share(word, np.uint64(tree[1])))
    i = 1
    while i < n:
        i *= 2
        left = tree[i]
        right = place >= left  # without a branch, which would be guesswork
        place -= left if right else 0.0
        i += 1 if right else 0
    return i - n


@kernel
def _share(word: Word, total: Word) -> Word:
    """Return the upper 64 bits of ``word * total``: a number below ``total`` < 2^53."""
    high, low = word >> _HALF, word & _LOW_HALF
    top, bottom = total >> _HALF, total & _LOW_HALF
    middle = high * bottom + ((low * bottom) >> _HALF)
    rest = (middle & _LOW_HALF) + low * top
    return high * top + (middle >> _HALF) + (rest >> _HALF)
