"""What the lazy samplers share: a picture of many arms, taken at an anchor, and exploration.

`lazy_tsallis` and `lazy_shannon` say what is in the picture, when it is too old, and how an arm
that it proposes is accepted. docs/theory/many-arms.md derives both. Beside the picture there is a
table with a record for each arm (`proposal`).
"""

from __future__ import annotations

import numpy as np

from unbounded.core.arrays import Vector
from unbounded.core.random import word_at
from unbounded.core.simplex import moments
from unbounded.core.simplex.proposal import LOSS, RECORD, below, check_table
from unbounded.core.simplex.sampling import uniform
from unbounded.core.state_validation import ROUNDING, close, require
from unbounded.jit.kernel import kernel, subroutine

ACCEPTED = 0.4  # of the proposals; an anchor is due when it would be less
MOST_TRIALS = 10_000  # at ACCEPTED = 0.4 never reached: 0.6^10000
_FEWEST_CHANGES = 65_536  # whose rounding errors add up to less than 1e-11 at worst

# The picture: a sampler's own numbers; the rate at the anchor (0: there is none), the changes since
# and the number of anchors; q_k = FACTOR * weight_k + FLOOR, of which BETA is uniform; the moments.
# It is one vector, because a call takes longer with every array that it passes.
OWN = 7
ETA_S, CHANGES, ANCHORS, FACTOR, FLOOR, BETA, MOMENTS = range(OWN, OWN + 7)


def new_lazy(n: int) -> tuple[Vector, Vector]:
    """Picture and table with no losses and no anchor yet: the uniform distribution."""
    picture, table = np.zeros(MOMENTS + moments.ROOM), np.zeros(RECORD * n)
    picture[BETA] = 1.0
    picture[FLOOR] = 1.0 / n
    return picture, table


def is_anchored(picture: Vector, table: Vector) -> bool:
    """Whether a picture has been taken; refuse one that cannot be of any arms."""
    n = table.size // RECORD
    beta = picture[BETA]
    require(0.0 <= beta <= 1.0 and close(picture[FLOOR], beta / n), "no such exploration")
    require(not np.any(picture[MOMENTS + moments.TERMS :]), "there are no such moments")
    if picture[ETA_S] == 0.0:  # never: a change of the unit is followed by an anchor at once
        require(beta == 1.0 and picture[FACTOR] == 0.0 and not np.any(table), "no anchor")
        return False
    require(picture[ETA_S] > 0.0 and picture[CHANGES] >= 0.0, "there is no such anchor")
    check_table(table)
    return True


def check_moments(picture: Vector, a: Vector, u: Vector) -> None:
    """Refuse moments that are not those of the terms ``a u^j``."""
    M = picture[MOMENTS : MOMENTS + moments.TERMS]
    for j in range(moments.TERMS):
        true = np.sum(a * u**j)
        require(abs(M[j] - true) <= ROUNDING * max(true, 1.0), "its moments are others")


@kernel
def grow(table: Vector, k: int, amount: float) -> tuple[float, float]:
    """Let L_k grow by ``amount``; return it before and after."""
    before = table[RECORD * k + LOSS]
    after = before + amount
    table[RECORD * k + LOSS] = after
    return before, after


@subroutine
def rescale(picture: Vector, table: Vector, factor: float) -> None:
    """Change the unit of the losses; the next solve anchors anew."""
    for k in range(0, table.size, RECORD):
        table[k + LOSS] *= factor
    picture[ETA_S] = 0.0


@kernel
def usable(picture: Vector, n: int) -> bool:
    """Whether there is a picture that rounding errors have not spoilt."""
    return picture[ETA_S] > 0.0 and picture[CHANGES] < max(n, _FEWEST_CHANGES)


@kernel
def taken(picture: Vector, eta: float) -> None:
    """Note that the picture is of now."""
    picture[ETA_S] = eta
    picture[CHANGES] = 0.0
    picture[ANCHORS] += 1.0


@kernel
def settle(picture: Vector, n: int, beta: float, total: float) -> None:
    """Let the weights, which sum to ``total``, be normalised and mixed with the uniform."""
    picture[FACTOR] = (1.0 - beta) / total
    picture[FLOOR] = beta / n
    picture[BETA] = beta


@kernel
def explored(picture: Vector, n: int, word: int) -> int:
    """With probability beta an arm drawn uniformly, else -1."""
    if uniform(word) < picture[BETA]:
        return below(word_at(np.uint64(word), 0), n)
    return -1
