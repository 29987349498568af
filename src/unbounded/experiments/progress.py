"""Progress of a run: the time that it will take, and what a terminal or a log shows of it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, RenderableType
from rich.console import Group as Lines
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from unbounded.experiments.grid import Cell
from unbounded.experiments.store import SHOWN
from unbounded.experiments.task import Outcome, Settings, Span, Warmed, Work
from unbounded.io import printable

_UNKNOWN_RATE = 1e-6  # seconds per round, where none could be measured
_ROWS = 12  # cells that are shown at a time
_LOG_SECONDS = 10.0  # between lines where there is no terminal
_FIRST_SECONDS = 2.0  # ... before there is a first result

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


class Display:
    """A live table on a terminal; elsewhere a line every few seconds.

    Give it to `unbounded.experiments.runner.run_cells` as the watcher, inside a ``with`` block.

    Attributes
    ----------
    heading : str
        Shown before the numbers: which experiment it is, if there are several.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._next = 0.0
        self.heading = ""

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, t: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        if self._console.is_terminal:
            self._next = now + 0.2
            self._live.update(render(progress, self.heading), refresh=True)
        else:
            self._next = now + _LOG_SECONDS
            if progress.latest is None:  # a first result is told as soon as it is there
                self._next = now + _FIRST_SECONDS
            self._console.print(headline(progress, self.heading), highlight=False)
            if progress.latest is not None:
                self._console.print(latest(progress), highlight=False)


def headline(progress: Progress, heading: str = "") -> Text:
    """Done, running, failed and time left, in one line."""
    failed = sum(progress.failed)
    at_least = "" if progress.all_measured else "at least "
    names = printable(", ".join(progress.compiling))
    return Text.assemble(
        f"{heading}: " if heading else "",
        f"{progress.done}/{progress.total} done, {sum(progress.running)} running, ",
        (f"{failed} failed", "red" if failed else ""),
        f", {at_least}{span_of(progress.seconds_left())} left",
        f", being compiled or measured: {names}" if names else "",
    )


def latest(progress: Progress) -> Text:
    """Return the newest result, in one line; empty if there is none."""
    cell = progress.latest
    if cell is None:
        return Text()
    label = printable(progress.plan[cell].label)
    return Text(f"{label}: {_regret(progress, cell)} {_unit(progress)}")


def _regret(progress: Progress, cell: int) -> str:
    mean = progress.regret_of(cell)
    return "" if mean is None else f"{mean:.4g}"


def _unit(progress: Progress) -> str:
    _, name, unit = SHOWN[progress.plan[0].settings.kind]
    return f"{name} / {unit}"


def render(progress: Progress, heading: str = "") -> RenderableType:
    """Return the headline, the cells that are being run, and the newest result."""
    table = Table(box=None, pad_edge=False)
    table.add_column("cell", no_wrap=True, overflow="ellipsis", ratio=1)
    for name in ("done", "running", "failed", "left", _unit(progress)):
        table.add_column(name, justify="right")
    active = [i for i, running in enumerate(progress.running) if running]
    for i in active[:_ROWS]:
        failed = progress.failed[i]
        table.add_row(
            Text(printable(progress.plan[i].label)),
            f"{progress.replicates[i] - progress.left[i] - failed}/{progress.replicates[i]}",
            str(progress.running[i]),
            Text(str(failed), "red" if failed else ""),
            span_of(progress.seconds_left_of(i)),
            _regret(progress, i),
        )
    more = len(active) - _ROWS
    rest = [Text(f"and {more} more cells")] if more > 0 else []
    bar = ProgressBar(total=progress.total, completed=progress.done)
    return Lines(headline(progress, heading), bar, table, *rest, latest(progress))


def span_of(seconds: float) -> str:
    """Return a span of time in words: ``42 s``, ``3 min 20 s``, ``5 h 12 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
