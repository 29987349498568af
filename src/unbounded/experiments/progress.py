"""Progress of a run, and the time that it will take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol

from unbounded.experiments.grid import Cell
from unbounded.experiments.store import SHOWN
from unbounded.experiments.task import Outcome, Settings, Span, Warmed, Work

_UNKNOWN_RATE = 1e-6  # seconds per round, where none could be measured

Group = tuple[str, str, int | str]


class Watcher(Protocol):
    """What follows a run as it goes: a display."""

    def __call__(self, progress: Progress) -> None: ...


class Progress:
    """Progress of a run: replicates of each cell that are done, running and failed.

    ``share`` are those that the run is about, ``spans`` those that were missing when it began.
    """

    def __init__(self, plan: Sequence[Cell], share: Sequence[Span], spans: Sequence[Span]) -> None:
        self.plan = plan
        self.replicates = [0] * len(plan)
        for span in share:
            self.replicates[span.cell] += span.replicates
        self.total = sum(self.replicates)
        self.left = [0] * len(plan)
        for span in spans:
            self.left[span.cell] += span.replicates
        self.already_stored = self.total - sum(self.left)
        self.done = self.already_stored
        self.running = [0] * len(plan)
        self.failed = [0] * len(plan)
        self.workers = 1
        self.compiling: list[str] = []  # learners that are being compiled, or measured
        self.compile_seconds = 0.0
        self.latest: int | None = None  # the cell that was last heard of
        self._regret = [(0, 0.0)] * len(plan)  # replicates, and their relative regret in sum
        self._rounds_left: dict[Group, int] = defaultdict(int)
        for i, cell in enumerate(plan):
            self._rounds_left[group_of(cell.settings)] += self.left[i] * cell.settings.rounds
        self._seconds: dict[Group, float] = defaultdict(float)
        self._rounds: dict[Group, int] = defaultdict(int)
        self._measured: dict[Group, float] = {}

    def measured(self, settings: Settings, warmed: Warmed) -> None:
        """A first measurement of a learner's speed."""
        self._measured[group_of(settings)] = warmed.seconds_per_round
        self.compile_seconds += warmed.compiling

    def started_work(self, work: Work) -> None:
        """Tell that a task was submitted."""
        for span, _ in work:
            self.running[span.cell] += span.replicates

    def stopped_work(self, work: Work) -> None:
        """Tell that a task came back, with or without results."""
        for span, _ in work:
            self.running[span.cell] -= span.replicates

    def finished(self, outcome: Outcome, settings: Settings) -> None:
        """Enter an outcome."""
        span, group = outcome.span, group_of(settings)
        self.left[span.cell] -= span.replicates
        self._rounds_left[group] -= span.replicates * settings.rounds
        if outcome.error:
            self.failed[span.cell] += span.replicates
        else:
            self.done += span.replicates
            self.compile_seconds += outcome.compiling
            self._note_regret(outcome, settings)
            self._seconds[group] += outcome.seconds
            self._rounds[group] += span.replicates * settings.rounds

    def _note_regret(self, outcome: Outcome, settings: Settings) -> None:
        column = f"relative_{SHOWN[settings.kind].column}"
        if column in outcome.columns:
            cell, last = outcome.span.cell, outcome.columns[column][:, -1]
            count, total = self._regret[cell]
            self._regret[cell] = count + last.size, total + float(last.sum())
            self.latest = cell

    def regret_of(self, cell: int) -> float | None:
        """Return the mean relative regret at the end, of the replicates that were run now."""
        count, total = self._regret[cell]
        return total / count if count else None

    def rate(self, group: Group) -> float:
        """Return seconds per round, as measured so far."""
        if self._rounds[group]:
            return max(self._seconds[group] / self._rounds[group], 1e-12)
        return self._measured.get(group, _UNKNOWN_RATE)

    @property
    def all_measured(self) -> bool:
        """Whether the speed of everything that is left is known."""
        return all(
            self._rounds[group] or group in self._measured
            for group, rounds in self._rounds_left.items()
            if rounds
        )

    def seconds_left(self) -> float:
        """Return an estimate, from the speed of what is done; without what is not measured yet."""
        total = sum(self.rate(group) * rounds for group, rounds in self._rounds_left.items())
        return total / self.workers

    def seconds_left_of(self, cell: int) -> float:
        """Return the same for one cell, on one worker."""
        settings = self.plan[cell].settings
        return self.rate(group_of(settings)) * settings.rounds * self.left[cell]


def group_of(settings: Settings) -> Group:
    """Cells of one group are taken to need the same time per round."""
    return settings.learner, settings.adversary, settings.size
