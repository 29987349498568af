"""Feedback: checked, as the journal stores it, and as a learner takes it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unbounded.core.arrays import Vector
from unbounded.learners.bandit import Learner
from unbounded.learners.base import AskTell
from unbounded.validation import checked_loss, checked_losses, checked_numbers


class Feedback(NamedTuple):
    """Return feedback as the journal stores it: one number, or a payload and its sum."""

    loss: float
    payload: bytes | None = None


def checked_feedback(learner: AskTell[Any], given: Mapping[str, Any], n_arms: int) -> Feedback:
    """Return what `Durable.tell` was given, as it is kept; or an error.

    ``n_arms`` is the number of arms that there were when the choice was made.
    """
    said = {name: value for name, value in given.items() if value is not None}
    if not isinstance(learner, Learner):
        return _episode(learner, said)
    full = learner.spec.feedback == "full"
    ways = {"losses"} if full else {"loss", "reward"}
    if len(said) != 1 or not said.keys() <= ways:
        raise TypeError(f"tell() of {learner.spec.name} needs {' or '.join(sorted(ways))}")
    if full:
        vector = checked_losses("losses", said["losses"], n_arms, "arm") + 0.0
        return Feedback(_sum(vector), vector.astype("<f8").tobytes())
    if "loss" in said:
        return Feedback(checked_loss("loss", said["loss"]) + 0.0)
    return Feedback(0.0 - checked_loss("reward", said["reward"]))  # 0, never -0: SQLite has no -0


def _episode(learner: Any, said: dict[str, ArrayLike]) -> Feedback:
    ways = [{"states", "actions", "losses"}, {"states", "actions", "rewards"}]
    if said.keys() not in ways:
        raise TypeError(
            f"tell() of {learner.spec.name} needs states, actions, and losses or rewards"
        )
    from unbounded.learners.episodes import (  # late: bandits need not wait for it
        check_end,
        completed,
    )

    layers, full = learner.layers, learner.spec.feedback == "full"
    name = "losses" if "losses" in said else "rewards"
    told: Any = said[name]
    whole = completed(layers, said["states"], said["actions"], None if full else told)
    states = checked_numbers("states", whole[0], layers.sizes)
    actions = checked_numbers("actions", whole[1], (layers.n_actions,) * layers.horizon)
    if full:
        values = learner._checked_tables(name, told)
    else:
        values = checked_losses(name, whole[2], layers.horizon, "layer")
    losses = (values if name == "losses" else -values) + 0.0
    paid = _visited(layers, states, actions, losses) if full else losses
    if layers.ends:
        check_end(layers, states, paid)
    parts = (states.astype("<i8"), actions.astype("<i8"), losses.astype("<f8"))
    return Feedback(_sum(paid), b"".join(part.tobytes() for part in parts))


def _visited(layers: Any, states: Any, actions: Any, losses: Vector) -> Vector:
    """Of the losses of all pairs, those that were paid."""
    from unbounded.core.occupancy.layout import PAIR

    paid: Vector = losses[layers.table[PAIR, 1:-1] + states * layers.n_actions + actions]
    return paid


def _sum(losses: Vector) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(losses.sum())
        if math.isnan(total):  # of infinite parts: their mean is finite
            total = float((losses / losses.size).sum() * losses.size)
    return total


def episode_of(learner: Any, payload: bytes) -> tuple[list[int], list[int], list[float]]:
    """States, actions and the losses that were paid in an episode, from the payload of its row."""
    states, actions, losses = _told(learner, payload)
    if learner.spec.feedback == "full":
        losses = _visited(learner.layers, states, actions, losses)
    return states.tolist(), actions.tolist(), losses.tolist()


def _told(learner: Any, payload: bytes) -> tuple[Any, Any, Vector]:
    H = learner.layers.horizon
    states, actions = np.frombuffer(payload, "<i8", 2 * H).reshape(2, -1)
    return states, actions, np.frombuffer(payload, "<f8", offset=16 * H)


def tell(learner: Any, ticket: Any, feedback: Feedback) -> None:
    """Tell a learner what was kept."""
    if feedback.payload is None:
        learner.tell(ticket, feedback.loss)
    elif isinstance(learner, Learner):
        learner.tell(ticket, losses=np.frombuffer(feedback.payload, "<f8"))
    elif learner.spec.feedback == "full":
        states, actions, losses = _told(learner, feedback.payload)
        learner.tell(ticket, states, actions, learner.layers.unpack_pairs(losses))
    else:
        learner.tell(ticket, *episode_of(learner, feedback.payload))
