"""What a learner for MDPs runs: an algorithm's steps over its buffer, and steps that are usual.

A state that holds a policy ``pi``, itself or in its ``solver``, is played by that policy: its file
need not define ``distribution`` and ``act``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import roll_forward
from unbounded.jit.kernel import assign, borrowed, kernel
from unbounded.learners.spec import Cache, MDPSpec

OWN = -1  # ask_info of a plan that is the learner's own policy, not an explorer's


class Entries(NamedTuple):
    """An algorithm's steps over its buffer, compiled."""

    look: Any  # buffer, lay, P, cache, q
    ask: Any  # buffer, lay, word, pi -> ask_info
    tell: Any  # buffer, lay, solver, ask_info, states, actions, losses -> told, room for another


@cache
def entries(spec: MDPSpec) -> Entries:
    """Return the compiled entries of an algorithm; made on first use."""
    params_of, state_of, pack = spec.packing.compiled
    distribution, act, update, room = spec.distribution, spec.act, spec.update, spec.room

    def look(owner: Any, lay: Any, P: Any, cache: Any, q: Any) -> None:
        buffer = borrowed(owner)
        distribution(lay, params_of(buffer), state_of(buffer), P, cache, q)

    def ask(owner: Any, lay: Any, word: Any, pi: Any) -> int:
        buffer = borrowed(owner)
        return act(lay, params_of(buffer), state_of(buffer), word, pi)

    def tell(
        owner: Any, lay: Any, solver: Any, ask_info: int, states: Any, actions: Any, losses: Any
    ) -> tuple[bool, bool]:
        buffer = borrowed(owner)
        params, state = params_of(buffer), state_of(buffer)
        if not room(state):
            return False, False
        state = update(lay, params, state, solver, ask_info, states, actions, losses)
        pack(buffer, state)
        return True, room(state)

    return Entries(*(spec.entry(step) for step in (look, ask, tell)))


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
