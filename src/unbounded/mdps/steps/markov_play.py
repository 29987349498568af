"""Steps shared by the algorithms that play one Markov policy per episode, kept in ``state.pi``."""

from __future__ import annotations

from typing import Any

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import roll_forward
from unbounded.jit.kernel import assign, kernel
from unbounded.learners.spec import Cache

OWN = -1  # the memo of a plan that is the learner's own policy, not an explorer's


@kernel
def act(lay: Integers, params: Any, state: Any, word: int, pi: Vector) -> int:
    """Fill ``pi`` with the policy of the next episode."""
    assign(pi, state.pi)
    return OWN


@kernel
def distribution(
    lay: Integers, params: Any, state: Any, P: Vector, cache: Cache, q: Vector
) -> None:
    """Its occupancy under ``P``."""
    roll_forward(lay, P, state.pi, cache.mass, q)
