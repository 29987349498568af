"""The steps of a learner for MDPs that its file need not define.

A state that holds a policy ``pi``, itself or in its ``solver``, is played by that policy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import roll_forward
from unbounded.jit.kernel import assign, kernel
from unbounded.learners.spec import Cache

OWN = -1  # memo of a plan that is the learner's own policy, not an explorer's


def default_mdp_steps(State: Any) -> dict[str, Callable[..., Any]]:
    """``distribution`` and ``act`` for a state that holds the policy of the next episode."""
    held = getattr(State, "_fields", ())
    if "pi" in held:
        return {"distribution": markov_distribution, "act": markov_act}
    if "solver" in held:
        return {"distribution": _solver_distribution, "act": _solver_act}
    return {}


@kernel
def markov_act(lay: Integers, params: Any, state: Any, word: int, pi: Vector) -> int:
    """Play the policy of the state."""
    assign(pi, state.pi)
    return OWN


@kernel
def markov_distribution(
    lay: Integers, params: Any, state: Any, P: Vector, cache: Cache, q: Vector
) -> None:
    """Fill ``q`` with its occupancy under ``P``."""
    roll_forward(lay, P, state.pi, cache.mass, q)


@kernel
def _solver_act(lay: Integers, params: Any, state: Any, word: int, pi: Vector) -> int:
    """Play the policy of the last solution, q~."""
    assign(pi, state.solver.pi)
    return OWN


@kernel
def _solver_distribution(
    lay: Integers, params: Any, state: Any, P: Vector, cache: Cache, q: Vector
) -> None:
    """Fill ``q`` with its occupancy under ``P``."""
    roll_forward(lay, P, state.solver.pi, cache.mass, q)
