"""Uniform play: a control that does not learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy.typing as npt

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import Layers
from unbounded.core.occupancy.mdp import Markov
from unbounded.jit.kernel import kernel
from unbounded.learners.mdp import MDPLearner, MDPSpec, Seed, checked_layers


class Params(NamedTuple):
    n_actions: int


class State(NamedTuple):
    t: int
    clipped: int  # nothing is ever clipped
    version: int
    pi: Vector


def init(layers: Layers, params: Params) -> State:
    """Return uniform actions."""
    return State(1, 0, 0, Markov.uniform(layers).pi)


@kernel
def update(
    lay: Integers, params: Params, state: State, solver: int, ask_info: int,
    states: Integers, actions: Integers, losses: Vector,
) -> State:  # fmt: skip
    """Count the episode."""
    return State(state.t + 1, 0, 0, state.pi)


class UniformPolicy(MDPLearner):
    """Every action with the same probability, for ever.

    Examples
    --------
    >>> UniformPolicy([1, 2], n_actions=2, seed=0).ask().policy[0].tolist()
    [[0.5, 0.5]]
    """

    _keeps_transitions = False

    spec = MDPSpec.of(__name__, reference="", scale_free=True)

    def __init__(
        self,
        layers: Sequence[int],
        n_actions: int,
        *,
        allowed: Sequence[npt.ArrayLike] | None = None,
        ends: bool = False,
        seed: Seed = None,
    ) -> None:
        shape = checked_layers(layers, n_actions, allowed, ends)
        self._begin(shape, Params(shape.n_actions), seed)
