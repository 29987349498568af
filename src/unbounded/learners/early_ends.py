"""Episodes that end early, as they are told: what is left of them goes on in the end, for free."""

from __future__ import annotations

from typing import Any

import numpy as np

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import Layers


def completed(layers: Layers, states: Any, actions: Any, losses: Any) -> tuple[Any, Any, Any]:
    """What was told of an episode, with the end for the layers that it did not see.

    Where the losses of all pairs are told, ``losses`` is None, and stays so.

    Examples
    --------
    >>> completed(Layers([1, 3, 3], n_actions=2, ends=True), [0], [1], [7.0])
    ([0, 2, 2], [1, 0, 0], [7.0, 0.0, 0.0])
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
    """Whether these are numbers in a row; text, sets, and truth values are not."""
    try:
        array = np.asarray(told)
    except ValueError:  # ragged
        return False
    return array.ndim == 1 and array.dtype.kind in "iufO"


def check_end(layers: Layers, states: Integers, losses: Vector) -> None:
    """Refuse an episode that goes on after its end, or pays for it."""
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
