"""Steps shared by the algorithms that play one Markov policy an episode, kept in ``state.pi``."""

from __future__ import annotations

from typing import Any

from unbounded._jit import subroutine
from unbounded.core.arrays import (
    Integers,
    Vector,
)
from unbounded.core.occupancy.layout import (
    roll_forward,
)


@subroutine
def choose(lay: Integers, params: Any, state: Any, word: int, pi: Vector) -> int:
    """Fill ``pi`` with the policy of the next episode."""
    pi[:] = state.pi
    return -1


@subroutine
def expected(lay: Integers, params: Any, state: Any, P: Vector, cache: Vector, q: Vector) -> None:
    """Its occupancy under ``P``; ``cache`` has at least 1 + 2 n_pairs + n_states entries."""
    roll_forward(lay, P, state.pi, cache[1 + 2 * q.size :], q)
