"""p_k = 4 / (eta (L_k - x))^2 for many arms, at a cost a round that hardly depends on their number.

Estimates L_k only grow, one a round, and eta falls slowly. So a picture of the arms is taken now
and then, in O(n): an *anchor*. Between anchors

- sums over all arms come from a power series. With g = min L - c at the anchor for a centre c, and
  u_k = g / (L_k - c) <= 1, sum_k (L_k - x)^-2 = g^-2 sum_j (j + 1) M_j z^j, z = (x - c) / g, where
  M_j = sum_k u_k^(j+2) is corrected in O(1) when one L_k changes;
- an arm is drawn by its weight at the anchor and accepted with a probability that makes the law
  exactly p: the ratio of p_k to that weight is bounded, because no L_k has fallen.

A new anchor is due when |z| > REACH, where the rest of the series is no longer rounding error;
when less than ACCEPTED of the proposals would be accepted; and after so many changes that their
rounding errors might be seen. docs/many-arms.md derives it and bounds how often that is.
"""

from __future__ import annotations

import numpy as np

from unbounded._jit import kernel, subroutine
from unbounded.core.arrays import (
    Vector,
)
from unbounded.core.random import uniform_at, word_at
from unbounded.core.simplex.ftrl import Anchor, halley_step, tsallis, tsallis_cold
from unbounded.core.simplex.moments import ROOM, TERMS, constant, exchange, gather, series
from unbounded.core.simplex.proposal import (
    LOSS,
    RECORD,
    WEIGHT,
    below,
    propose,
    quantum,
    round_up,
    tabulate,
)
from unbounded.core.simplex.sampling import uniform

REACH = 0.2  # the series then leaves out 5e-16 of the sum
LEAN = 0.1  # the centre stands this far ahead, in z, where x is drifting
ACCEPTED = 0.4
_FEWEST_CHANGES = 65_536  # whose rounding errors add up to less than 1e-11 at worst
_EXPANDED = 1e-8  # an error of S2 whose square is rounding error
_NEAR = 0.01  # an error whose fifth power does not matter to the first of two steps
_MOST_STEPS = 20
_MOST_TRIALS = 10_000  # at ACCEPTED = 0.4 never reached: 0.6^10000

# The head: the anchor, then what a draw needs, then the moments.
CENTRE, GAP, PER_GAP, X_S, ROOM_S, ETA_S, CHANGES, ANCHORS = range(8)
X, SQUARE, FACTOR, FLOOR, BETA = range(8, 13)
_M = 13
HEAD = _M + ROOM

_S2 = constant([j + 1 for j in range(TERMS)])
_S3 = constant([(j + 1) * (j + 2) / 2 for j in range(12)])  # these two only guide the steps
_S4 = constant([(j + 1) * (j + 2) * (j + 3) / 6 for j in range(8)])


@kernel
def start(head: Vector, n: int) -> None:
    """No anchor yet: the uniform distribution."""
    head[X] = -1.0
    head[BETA] = 1.0
    head[FLOOR] = 1.0 / n


@subroutine
def add(head: Vector, table: Vector, k: int, amount: float) -> tuple[float, float]:
    """Let L_k grow by ``amount`` and correct the moments; return L_k before and after."""
    before = table[RECORD * k + LOSS]
    after = before + amount
    table[RECORD * k + LOSS] = after
    if head[ETA_S] > 0.0:
        u = head[GAP] / (before - head[CENTRE])
        v = head[GAP] / (after - head[CENTRE])
        exchange(head[_M:], u * u, u, v * v, v)
        head[CHANGES] += 1.0
    return before, after


@subroutine
def rescale(head: Vector, table: Vector, factor: float) -> None:
    """Change the unit of the losses; the next solve anchors anew."""
    for k in range(0, table.size, RECORD):
        table[k + LOSS] *= factor
    head[ETA_S] = 0.0


@subroutine
def solve(head: Vector, n: int, eta: float, beta: float, now: Anchor) -> tuple[bool, Anchor]:
    """Find x for this ``eta`` by Halley's method, as `ftrl.tsallis` does, on the series.

    ``now`` holds x and its power sums before the step. Returns whether that was possible: if not,
    an `anchor` is due.
    """
    M = head[_M:]
    fresh = head[ETA_S] > 0.0 and head[CHANGES] < max(n, _FEWEST_CHANGES)
    x, S2, S3, S4 = now.x, now.S2, now.S3, now.S4
    if fresh:
        i, target = head[PER_GAP], 4.0 / (eta * eta)
        x += _step(S2, S3, S4, eta, S2 * target - 1.0)
        fresh = False
        for _ in range(_MOST_STEPS):
            z = (x - head[CENTRE]) * i
            if abs(z) > REACH:
                break
            S2 = series(M, _S2, z) * (i * i)
            S3 = series(M[1:], _S3, z) * (i * i * i)
            S4 = series(M[2:], _S4, z) * (i * i * i * i)
            error = S2 * target - 1.0
            if abs(error) <= _EXPANDED:  # one step of Newton's on S2 itself, taken with it
                x -= 0.5 * error * (S2 / S3)
                S2 = 0.25 * eta * eta
                fresh = True
                break
            x += _step(S2, S3, S4, eta, error)
        room = min(head[ROOM_S], head[ROOM_S] - (x - head[X_S]))
        accepted = eta * room  # its square, in units of that at the anchor
        fresh = fresh and accepted * accepted >= ACCEPTED * (head[ETA_S] * head[ROOM_S]) ** 2
        head[SQUARE] = room * room
    found = Anchor(x, S2, S3, S4)
    _settle(head, n, found, beta)
    return fresh, found


@kernel
def _settle(head: Vector, n: int, found: Anchor, beta: float) -> None:
    head[X] = found.x
    head[FACTOR] = (1.0 - beta) / found.S2
    head[FLOOR] = beta / n
    head[BETA] = beta


@kernel
def _step(S2: float, S3: float, S4: float, eta: float, error: float) -> float:
    """Halley's step of x, given the relative error of S2.

    The error is small from one round to the next: then sqrt(1 + error) can be expanded, and a
    root and two divisions that wait for each other are saved.
    """
    if abs(error) > _NEAR:
        return halley_step(S2, S3, S4, eta)
    inverse = 1.0 / (S2 * S3)
    root = 0.5 * error * ((1.0 - 0.25 * error) + (error * error) * (0.125 - 0.078125 * error))
    newton = -S2 * S2 * inverse * root
    return newton * (1.0 - 1.5 * newton * (S2 * S4 - S3 * S3) * inverse)


@subroutine
def anchor(
    head: Vector, table: Vector, eta: float, beta: float, now: Anchor,
    L: Vector, p: Vector, lanes: Vector,
) -> Anchor:  # fmt: skip
    """Solve over all the arms, and take the picture; ``L`` and ``p`` are room for n numbers."""
    n = L.size
    smallest = table[LOSS]
    for k in range(n):
        L[k] = table[RECORD * k + LOSS]
        smallest = min(smallest, L[k])
    falling = head[ETA_S] == 0.0 or now.x < head[X_S]
    warm = now if head[ETA_S] > 0.0 else tsallis_cold(L, eta)
    found = tsallis(L, eta, warm, p, lanes)
    x = found.x
    room = smallest - x
    g = room / (1.0 - LEAN if falling else 1.0 + LEAN)
    c = smallest - g
    unit = quantum(n)
    for k in range(n):
        table[RECORD * k + WEIGHT] = round_up(room * room * p[k], unit)
    for k in range(n):
        u = g / (L[k] - c)
        L[k] = u
        p[k] = u * u
    gather(head[_M : _M + ROOM], p, L, lanes)
    tabulate(table)
    head[CENTRE] = c
    head[GAP] = g
    head[PER_GAP] = 1.0 / g
    head[X_S] = x
    head[ROOM_S] = room
    head[ETA_S] = eta
    head[CHANGES] = 0.0
    head[ANCHORS] += 1.0
    head[SQUARE] = room * room
    _settle(head, n, found, beta)
    return found


@subroutine
def draw(head: Vector, table: Vector, word: int) -> tuple[int, float]:
    """An arm drawn from (1 - beta) p + beta / n, and its probability."""
    x = head[X]
    stream = np.uint64(word)
    k = 0
    if uniform(word) < head[BETA]:
        k = below(word_at(stream, 0), table.size // RECORD)
    else:
        for trial in range(_MOST_TRIALS):
            k = propose(table, stream, 3 * trial)
            d = table[RECORD * k + LOSS] - x
            weight = table[RECORD * k + WEIGHT]
            if uniform_at(stream, 3 * trial + 2) * weight * (d * d) < head[SQUARE]:
                break
    return k, probability(head, table, k)


@kernel
def probability(head: Vector, table: Vector, k: int) -> float:
    """Of arm ``k``."""
    d = 1.0 / (table[RECORD * k + LOSS] - head[X])
    return head[FACTOR] * (d * d) + head[FLOOR]
