"""Counters of a durable learner, as the journal makes them: the same in every process.

They are part of each snapshot, so that neither a process that starts nor a journal that is pruned
loses them, and nobody reads the journal for them.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from unbounded.durable.rows import ASK, TELL, Row

RECENT = 1000  # losses, of all arms
_MOST = sys.float_info.max  # what a sum is clipped to


class Counts(NamedTuple):
    """What has happened to the choices of an arm."""

    asked: int = 0
    told: int = 0
    expired: int = 0  # with a loss that was booked
    forgotten: int = 0
    loss: float = 0.0  # sum of those told and booked


class Counters:
    """`Counts` by the name of the arm, in all epochs, and the newest losses.

    Parameters
    ----------
    arms : mapping, optional
        By name, what `Counts` has; for MDPs, the name is empty.
    recent : iterable, optional
        Names and losses, oldest first.
    """

    def __init__(
        self, arms: Mapping[str, Iterable[Any]] | None = None, recent: Iterable[Any] = ()
    ) -> None:
        self.arms = {name: Counts(*entry) for name, entry in (arms or {}).items()}
        self.recent = deque(((name, loss) for name, loss in recent), RECENT)

    def add(self, row: Row, name: str) -> None:
        """Count an ask, or the end of one, of the arm of this name."""
        asked, told, expired, forgotten, total = self.arms.get(name, Counts())
        if row.kind == ASK:
            asked += 1
        elif row.loss is None:
            forgotten += 1
        else:
            told, expired = told + (row.kind == TELL), expired + (row.kind != TELL)
            total = min(max(total + row.loss, -_MOST), _MOST)
            self.recent.append((name, row.loss))
        self.arms[name] = Counts(asked, told, expired, forgotten, total)
