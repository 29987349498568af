"""Snapshots of a durable learner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unbounded.durable.replica import Replica
from unbounded.learners.bandit import Learner


@dataclass(frozen=True)
class Status:
    """A snapshot of a durable learner: what `Durable.status` returns."""

    algorithm: str
    settings: Mapping[str, Any]
    epoch: int  # how often arms were added or retired
    arms: tuple[str, ...]  # empty for MDPs
    probabilities: tuple[float, ...]  # of the next ask; empty for MDPs
    scale: float | None  # None for MDPs
    rounds: int  # told in this epoch
    clipped: int  # ... and clipped
    outstanding: int
    rows: int  # of the journal, all epochs


def status_of(replica: Replica) -> Status:
    """Return what there is to see of a learner."""
    learner = replica.learner
    bandit = isinstance(learner, Learner)
    return Status(
        algorithm=learner.spec.name,
        settings=learner.settings,
        epoch=replica.epoch,
        arms=tuple(replica.names),
        probabilities=tuple(learner.probabilities().tolist()) if bandit else (),
        scale=learner.scale if bandit else None,
        rounds=int(learner._scalar("t")) - 1,
        clipped=learner.clipped,
        outstanding=len(replica.waiting),
        rows=replica.n,
    )
