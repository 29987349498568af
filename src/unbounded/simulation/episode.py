"""One simulated episode of an MDP: what it costs, and how it is walked through.

The book of a run holds what was expected and what was paid so far, times a unit: a power of two
that brings the largest loss so far below 1, so that no sum overflows and a common factor 2^k of all
losses changes the unit and nothing else.

The end of an episode that ended early costs nothing, whatever the adversary says. What is not
allowed has infinite cumulative losses, so that no comparator takes it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, TRIPLE, Layers, draw, horizon
from unbounded.core.random import stream_of, word_at
from unbounded.jit.kernel import counting_subroutine as subroutine

EXPECTED, PAID, UNIT, LARGEST = range(4)  # slots of ``Book.sums``
_TRANSITIONS = 7919  # the environment's stream is the adversary's key plus this
_LEAST_EXPONENT = -1000  # 2^1000 is a unit, 2^1074 is not a float


class Book(NamedTuple):
    """What a play has cost so far; sums are times ``sums[UNIT]``."""

    sums: Vector  # (4,)
    low: Vector  # (H,): extreme losses of each layer, of any pair
    high: Vector
    cumulative: Vector  # (n_pairs,): losses of each pair
    free: Integers  # pairs that cost nothing: those of the end, and what is not allowed


class Walk(NamedTuple):
    """Scratch for the losses, the policy and the course of an episode."""

    losses: Vector  # (n_pairs,)
    pi: Vector  # (n_pairs,)
    states: Integers  # (H,)
    actions: Integers  # (H,)
    seen: Vector  # (H,): losses that were paid


def new_book(layers: Layers) -> Book:
    """Of a play that has not begun."""
    H = layers.horizon
    sums = np.array([0.0, 0.0, 1.0, 0.0])
    return Book(sums, np.full(H, np.inf), np.full(H, -np.inf), layers.barred, layers.free)


def new_walk(layers: Layers) -> Walk:
    """Scratch for one episode at a time."""
    H, X = layers.horizon, layers.n_pairs
    return Walk(np.empty(X), np.empty(X), np.empty(H, np.int64), np.empty(H, np.int64), np.empty(H))


@subroutine
def tally(lay: Integers, losses: Vector, q: Vector, book: Book) -> None:
    """Enter the losses of an episode that is played with occupancy ``q``."""
    sums, cumulative = book.sums, book.cumulative
    for p in book.free:
        losses[p] = 0.0
    largest = 0.0
    for h in range(1, horizon(lay) + 1):
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            x = losses[p]
            if cumulative[p] < math.inf:
                book.low[h - 1] = min(book.low[h - 1], x)
                book.high[h - 1] = max(book.high[h - 1], x)
        largest = max(largest, -book.low[h - 1], book.high[h - 1])
    if largest > sums[LARGEST]:
        sums[LARGEST] = largest
        unit = math.ldexp(1.0, -max(math.frexp(largest)[1], _LEAST_EXPONENT))
        if unit != sums[UNIT]:
            ratio = unit / sums[UNIT]
            sums[UNIT] = unit
            sums[EXPECTED] *= ratio
            sums[PAID] *= ratio
            for p in range(cumulative.size):
                cumulative[p] *= ratio
    unit = sums[UNIT]
    expected = 0.0
    for p in range(1, losses.size):
        x = losses[p] * unit
        expected += q[p] * x
        cumulative[p] += x
    sums[EXPECTED] += expected


@subroutine
def play(lay: Integers, P: Vector, key: int, t: int, words: Any, walk: Walk, book: Book) -> None:
    """Play one episode: actions by the learner's words, states by the environment's stream."""
    stream = stream_of(key + _TRANSITIONS, t)
    i = 0
    for h in range(horizon(lay)):
        A = lay[ACTIONS, h + 1]
        stride = lay[SIZE, h] * lay[ACTIONS, h]
        word: Any = word_at(stream, h)  # a uint64, which kernels take as an int
        s = draw(P, lay[TRIPLE, h] + i, stride, lay[SIZE, h + 1], word)
        a = draw(walk.pi, lay[PAIR, h + 1] + s * A, 1, A, words[1 + h])
        i = s * A + a
        walk.states[h] = s
        walk.actions[h] = a
        walk.seen[h] = walk.losses[lay[PAIR, h + 1] + i]
        book.sums[PAID] += walk.seen[h] * book.sums[UNIT]
