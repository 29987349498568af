"""What the lazy samplers share: a picture of many arms, taken at an anchor, and exploration.

`lazy_tsallis` and `lazy_shannon` say what is in the picture, when it is too old, and how an arm
that it proposes is accepted. docs/many-arms.md derives both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbounded._jit import kernel, subroutine
from unbounded.core.arrays import Vector
from unbounded.core.random import word_at
from unbounded.core.simplex import moments, proposal
from unbounded.core.simplex.proposal import LOSS, RECORD, below
from unbounded.core.simplex.sampling import uniform

ACCEPTED = 0.4  # of the proposals; an anchor is due when it would be less
MOST_TRIALS = 10_000  # at ACCEPTED = 0.4 never reached: 0.6^10000
_FEWEST_CHANGES = 65_536  # whose rounding errors add up to less than 1e-11 at worst


class Lazy(NamedTuple):
    """Many arms; with few, and touched every round, all of it is empty."""

    picture: Vector  # the anchor, and what a draw needs
    M: Vector  # moments of the arms at the anchor, corrected when an arm changes
    table: Vector  # a record for each arm


# The picture: the rate at the anchor (0: there is none), the changes since, and how many anchors
# there were; then q_k = FACTOR * weight_k + FLOOR, of which BETA is uniform. The rest, from OWN on,
# is the sampler's own.
ETA_S, CHANGES, ANCHORS, FACTOR, FLOOR, BETA, OWN = range(7)

NOT_LAZY = Lazy(np.zeros(0), np.zeros(0), np.zeros(0))


def new_lazy(n: int, slots: int) -> Lazy:
    """No anchor yet: the uniform distribution. ``slots`` is how many the picture has."""
    lazy = Lazy(np.zeros(slots), np.zeros(moments.ROOM), np.zeros(proposal.RECORD * n))
    lazy.picture[BETA] = 1.0
    lazy.picture[FLOOR] = 1.0 / n
    return lazy


@kernel
def in_use(lazy: Lazy) -> bool:
    """Whether there are so many arms that only few are touched."""
    return lazy.table.size > 0


@kernel
def grow(lazy: Lazy, k: int, amount: float) -> tuple[float, float]:
    """Let L_k grow by ``amount``; return it before and after."""
    before = lazy.table[RECORD * k + LOSS]
    after = before + amount
    lazy.table[RECORD * k + LOSS] = after
    return before, after


@kernel
def rescale(lazy: Lazy, L: Vector, factor: float) -> None:
    """Change the unit of the losses, which stand in ``L`` where ``lazy`` is not in use."""
    if in_use(lazy):
        _rescale(lazy, factor)
    else:
        for k in range(L.size):
            L[k] *= factor


@subroutine
def _rescale(lazy: Lazy, factor: float) -> None:
    for k in range(0, lazy.table.size, RECORD):
        lazy.table[k + LOSS] *= factor
    lazy.picture[ETA_S] = 0.0  # the next solve anchors anew


@kernel
def usable(lazy: Lazy, n: int) -> bool:
    """Whether there is a picture that rounding errors have not spoilt."""
    return lazy.picture[ETA_S] > 0.0 and lazy.picture[CHANGES] < max(n, _FEWEST_CHANGES)


@kernel
def taken(lazy: Lazy, eta: float) -> None:
    """Note that the picture is of now."""
    lazy.picture[ETA_S] = eta
    lazy.picture[CHANGES] = 0.0
    lazy.picture[ANCHORS] += 1.0


@kernel
def settle(lazy: Lazy, n: int, beta: float, total: float) -> None:
    """Let the weights, which sum to ``total``, be normalised and mixed with the uniform."""
    lazy.picture[FACTOR] = (1.0 - beta) / total
    lazy.picture[FLOOR] = beta / n
    lazy.picture[BETA] = beta


@kernel
def explored(lazy: Lazy, word: int) -> int:
    """With probability beta an arm drawn uniformly, else -1."""
    if uniform(word) < lazy.picture[BETA]:
        return below(word_at(np.uint64(word), 0), lazy.table.size // RECORD)
    return -1
