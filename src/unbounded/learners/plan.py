"""What a learner for MDPs hands out for one episode."""

from __future__ import annotations

from typing import Any

from unbounded.core.arrays import Vector
from unbounded.core.occupancy.layout import Layers, draw
from unbounded.jit.interpreter import interpreted
from unbounded.learners.tickets import Ticket
from unbounded.validation import checked_count

_draw = interpreted(draw)  # a few actions: as quick as a call of compiled code


class Plan(Ticket):
    """A ticket for one episode: the policy to follow.

    ``policy[h][s, a]`` is the probability of action ``a`` in state ``s`` of layer ``h``, where
    ``h = 0 .. H - 1`` counts the entries of ``layers``. `act` draws an action: the same one however
    often it is called in one episode.

    Examples
    --------
    >>> from unbounded import UniformPolicy
    >>> plan = UniformPolicy(layers=[1, 2], n_actions=4, seed=0).ask()
    >>> plan.policy[1].tolist()
    [[0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]]
    >>> plan.act(0, 0) == plan.act(0, 0)
    True
    """

    __slots__ = ("_layers", "_memo", "_pi", "_words")

    def __init__(
        self, layers: Layers, pi: Vector, memo: int, words: Any, number: int, learner: str
    ) -> None:
        self.id = number
        self._layers = layers
        self._pi = pi
        self._memo = memo
        self._words = words
        self._learner = learner

    @property
    def policy(self) -> list[Vector]:
        """Action probabilities, an array of shape (n_h, A) for each layer."""
        return self._layers.unpack_pairs(self._pi.copy())

    @property
    def component(self) -> int | None:
        """Which exploration policy it is; None for the learner's own."""
        return None if self._memo < 0 else self._memo

    def act(self, h: int, state: int) -> int:
        """Action in state ``state`` of layer ``h = 0 .. H - 1``."""
        h, state = checked_count("h", h, least=0), checked_count("state", state, least=0)
        sizes = self._layers.sizes
        if h >= len(sizes):
            raise ValueError(f"h must be in 0 .. {len(sizes) - 1}, got {h}")
        if state >= sizes[h]:
            raise ValueError(f"layer {h} has states 0 .. {sizes[h] - 1}, got {state}")
        first = self._layers.index(h + 1, state)
        return int(_draw(self._pi, first, 1, self._layers.n_actions, self._words[1 + h]))

    def __repr__(self) -> str:
        return f"Plan(id={self.id}, layers={self._layers.sizes})"
