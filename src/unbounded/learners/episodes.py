"""An episode of an MDP: the plan that a learner hands out, and what it is told afterwards.

An episode that ends early goes on in the end, for free. Learners with full information are told
the losses of all pairs, one table per layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import Layers, draw
from unbounded.jit.interpreter import interpreted
from unbounded.learners.tickets import Ticket
from unbounded.validation import checked_count, checked_loss, shown

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

    __slots__ = ("_ask_info", "_layers", "_pi", "_words")

    def __init__(
        self, layers: Layers, pi: Vector, ask_info: int, words: Any, number: int, learner: str
    ) -> None:
        self.id = number
        self._layers = layers
        self._pi = pi
        self._ask_info = ask_info
        self._words = words
        self._learner = learner

    @property
    def policy(self) -> list[Vector]:
        """Action probabilities, an array of shape (n_h, A) for each layer."""
        return self._layers.unpack_pairs(self._pi.copy())

    @property
    def component(self) -> int | None:
        """Which exploration policy it is; None for the learner's own."""
        return None if self._ask_info < 0 else self._ask_info

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


def completed(layers: Layers, states: Any, actions: Any, losses: Any) -> tuple[Any, Any, Any]:
    """Return what was told of an episode, with the end for the layers that it did not see.

    Where the losses of all pairs are told, ``losses`` is None, and stays so.
    """
    told = [states, actions] if losses is None else [states, actions, losses]
    if not all(map(_is_list, told)):  # what checks the values says what is wrong
        return states, actions, losses
    H, counts = layers.horizon, [len(one) for one in told]
    if not layers.ends:
        if len(set(counts)) == 1 and counts[0] < H:
            raise ValueError(
                f"states must have shape ({H},), one per layer; got ({counts[0]},): make the "
                "learner with ends=True if episodes may end early"
            )
        return states, actions, losses
    if len(set(counts)) > 1:
        what = "actions" if losses is None else "actions and losses"
        *most, last = counts
        raise ValueError(
            f"tell as many states as {what}, one of each per step; got "
            f"{', '.join(map(str, most))} and {last}"
        )
    if not 1 <= counts[0] <= H:
        raise ValueError(f"an episode has 1 to {H} steps, got {counts[0]}")
    if counts[0] == H:
        return states, actions, losses
    rest = range(counts[0], H)
    return (
        [*states, *(layers.sizes[h] - 1 for h in rest)],
        [*actions, *(0 for _ in rest)],
        None if losses is None else [*losses, *(0.0 for _ in rest)],
    )


def _is_list(told: Any) -> bool:
    """Return whether these are numbers in a row; text, sets, and booleans are not."""
    try:
        array = np.asarray(told)
    except ValueError:  # ragged
        return False
    return array.ndim == 1 and array.dtype.kind in "iufO"


def check_end(layers: Layers, states: Integers, losses: Vector) -> None:
    """Reject an episode that goes on after its end, or pays for it."""
    over = states == np.array(layers.sizes) - 1
    over[0] = False
    after = np.maximum.accumulate(over)
    if np.any(after != over):
        h = int(np.argmax(after != over))
        raise ValueError(
            f"state {states[h]} of layer {h} follows the end, which is state "
            f"{layers.sizes[h - 1] - 1} of layer {h - 1}: tell only the steps before the end"
        )
    if np.any(losses[over] != 0.0):
        h = int(np.argmax(over & (losses != 0.0)))
        raise ValueError(
            f"the loss of layer {h} is {losses[h]:g}, and the end, state {states[h]}, costs "
            "nothing: tell only the steps before the end"
        )


def all_losses(layers: Layers, learner: str, name: str, tables: Any) -> Vector:
    """Losses of all pairs, a new flat vector, from one table (n_h, A) per layer; or a clear error.

    What is said of actions that are not allowed, and of the end, does not count and need not be
    finite; the row of the end may be left out.
    """
    shapes = [(n, layers.n_actions) for n in layers.sizes]
    try:
        given = [] if isinstance(tables, str | bytes | Mapping) else list(tables)
    except TypeError:
        given = []
    if len(given) != len(shapes) or not is_tables(given):
        raise ValueError(
            f"{learner} learns from the {name} of all states and actions: tell {name}= as one "
            f"table per layer, of shapes {shapes}, got {shown(tables)}"
        )
    flat = np.ones(layers.n_pairs)
    flat[layers.free] = 0.0
    counts, parts = layers.unpack_pairs(flat), []
    for h, shape in enumerate(shapes):
        found, n = np.shape(given[h]), shape[0]
        if layers.is_end(h + 1, n - 1) and found == (n - 1, shape[1]):
            n -= 1
        if found != (n, shape[1]):
            raise ValueError(
                f"{name}[{h}] must have shape {shape}, states and actions; got {found}"
            )
        table = np.zeros(shape)
        table[:n] = _numbers(f"{name}[{h}]", given[h], counts[h])
        parts.append(table.ravel())
    flat = np.concatenate([np.zeros(1), *parts])
    flat[layers.free] = 0.0
    if not np.isfinite(flat).all():
        h, (s, a) = next(
            (h, where)
            for h, table in enumerate(layers.unpack_pairs(flat))
            for where in np.argwhere(~np.isfinite(table)).tolist()
        )
        checked_loss(f"{name}[{h}][{s}, {a}]", float(layers.unpack_pairs(flat)[h][s, a]))
    return flat


def is_tables(values: Any) -> bool:
    """Return whether these are tables, and not numbers."""
    try:
        return len(values) > 0 and all(np.ndim(value) == 2 for value in values)
    except (TypeError, ValueError):  # no list, or one of ragged rows
        return False


def _numbers(name: str, table: Any, counts: Any) -> Any:
    """Return the numbers of a table, of which those count where ``counts`` is not 0."""
    if type(table) is np.ndarray and table.dtype.kind in "iuf":
        with np.errstate(over="ignore"):  # of a long double; inf is found later
            return table.astype(np.float64)
    return [
        [
            checked_loss(f"{name}[{s}, {a}]", one) if counts[s, a] else 0.0
            for a, one in enumerate(row)
        ]
        for s, row in enumerate(table)
    ]
