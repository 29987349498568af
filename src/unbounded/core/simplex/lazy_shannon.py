"""p_k proportional to exp(-eta L_k) for many arms, at a cost a round that hardly depends on them.

As in `core.lazy_tsallis`, an anchor is taken now and then in O(n), for estimates L_k that only
grow and a rate that only falls. With lam_k = eta_s (L_k - min L) at the anchor's rate eta_s and
eps = 1 - eta / eta_s,

- sum_k exp(-eta (L_k - min L)) = sum_j (eps^j / j!) M_j, M_j = sum_k exp(-lam_k) lam_k^j, all of
  it positive, and M_j is corrected in O(1) when one L_k changes;
- an arm is drawn in proportion to exp(-(1 - width) lam_k) at the anchor, which bounds
  exp(-eta (L_k - min L)) for as long as eps <= width, and accepted by the ratio.

The width is chosen at the anchor, from the moments, so that these proposals have at most ENVELOPE
times the mass of what they bound. docs/many-arms.md derives it.
"""

from __future__ import annotations

import math

import numpy as np

from unbounded._jit import kernel, subroutine
from unbounded.core.arrays import (
    Vector,
)
from unbounded.core.random import uniform_at, word_at
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

ENVELOPE = 1.5
ACCEPTED = 0.4
_LEFT_OUT = 1e-15  # of the sum, by the series
_FEWEST_CHANGES = 65_536  # whose rounding errors add up to less than 1e-11 at worst
_MOST_TRIALS = 10_000  # at ACCEPTED = 0.4 never reached: 0.6^10000

# The head: the anchor, then what a draw needs, then the moments.
L_0, ETA_S, WIDTH, MASS, CHANGES, ANCHORS, ETA, FACTOR, FLOOR, BETA = range(10)
_M = 10
HEAD = _M + ROOM

_INVERSE_FACTORIALS = constant([1.0 / math.factorial(j) for j in range(TERMS)])


@kernel
def start(head: Vector, n: int) -> None:
    """No anchor yet: the uniform distribution."""
    head[BETA] = 1.0
    head[FLOOR] = 1.0 / n


@subroutine
def add(head: Vector, table: Vector, k: int, amount: float) -> None:
    """Let L_k grow by ``amount`` and correct the moments."""
    before = table[RECORD * k + LOSS]
    after = before + amount
    table[RECORD * k + LOSS] = after
    if head[ETA_S] > 0.0:
        u = head[ETA_S] * (before - head[L_0])
        v = head[ETA_S] * (after - head[L_0])
        a, b = math.exp(-u), math.exp(-v)
        exchange(head[_M:], a, u if a > 0.0 else 0.0, b, v if b > 0.0 else 0.0)
        head[CHANGES] += 1.0


@subroutine
def rescale(head: Vector, table: Vector, factor: float) -> None:
    """Change the unit of the losses; the next solve anchors anew."""
    for k in range(0, table.size, RECORD):
        table[k + LOSS] *= factor
    head[ETA_S] = 0.0


@subroutine
def solve(head: Vector, n: int, eta: float, beta: float) -> bool:
    """Find the normaliser for this ``eta``; return whether that was possible: if not, an `anchor`
    is due."""
    if not (head[ETA_S] > 0.0 and head[CHANGES] < max(n, _FEWEST_CHANGES)):
        return False
    eps = 1.0 - eta / head[ETA_S]
    total = series(head[_M:], _INVERSE_FACTORIALS, eps)
    _settle(head, n, eta, beta, total)
    return eps <= head[WIDTH] and total >= ACCEPTED * head[MASS]


@kernel
def _settle(head: Vector, n: int, eta: float, beta: float, total: float) -> None:
    head[ETA] = eta
    head[FACTOR] = (1.0 - beta) / total
    head[FLOOR] = beta / n
    head[BETA] = beta


@subroutine
def anchor(
    head: Vector, table: Vector, eta: float, beta: float, lam: Vector, p: Vector, lanes: Vector
) -> None:
    """Sum over all the arms, and take the picture; ``lam`` and ``p`` are room for n numbers."""
    n = lam.size
    smallest = table[LOSS]
    for k in range(n):
        lam[k] = table[RECORD * k + LOSS]
        smallest = min(smallest, lam[k])
    for k in range(n):
        u = eta * (lam[k] - smallest)
        p[k] = math.exp(-u)
        lam[k] = u if p[k] > 0.0 else 0.0
        table[RECORD * k + WEIGHT] = p[k]
    M = head[_M : _M + ROOM]
    gather(M, p, lam, lanes)
    width = math.exp(math.log(_LEFT_OUT / n) / TERMS)
    while series(M, _INVERSE_FACTORIALS, width) > ENVELOPE * M[0]:
        width *= 0.5
    unit = quantum(n)
    for k in range(n):
        weight = table[RECORD * k + WEIGHT] * math.exp(width * lam[k])
        table[RECORD * k + WEIGHT] = round_up(weight, unit)
    head[MASS] = tabulate(table)
    head[L_0] = smallest
    head[ETA_S] = eta
    head[WIDTH] = width
    head[CHANGES] = 0.0
    head[ANCHORS] += 1.0
    _settle(head, n, eta, beta, M[0])


@subroutine
def draw(head: Vector, table: Vector, word: int) -> tuple[int, float]:
    """An arm drawn from (1 - beta) p + beta / n, and its probability."""
    eta, smallest = head[ETA], head[L_0]
    stream = np.uint64(word)
    k = 0
    if uniform(word) < head[BETA]:
        k = below(word_at(stream, 0), table.size // RECORD)
        return k, probability(head, table, k)
    weight = 0.0
    for trial in range(_MOST_TRIALS):
        k = propose(table, stream, 3 * trial)
        weight = math.exp(-eta * (table[RECORD * k + LOSS] - smallest))
        if uniform_at(stream, 3 * trial + 2) * table[RECORD * k + WEIGHT] < weight:
            break
    return k, head[FACTOR] * weight + head[FLOOR]


@kernel
def probability(head: Vector, table: Vector, k: int) -> float:
    """Of arm ``k``."""
    weight = math.exp(-head[ETA] * (table[RECORD * k + LOSS] - head[L_0]))
    return head[FACTOR] * weight + head[FLOOR]
