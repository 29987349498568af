"""A run as it goes, on a terminal or in a log."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from unbounded.experiments.progress import Progress
from unbounded.experiments.store import SHOWN
from unbounded.io import printable

_ROWS = 12  # cells that are shown at a time
_LOG_SECONDS = 10.0  # between lines where there is no terminal
_FIRST_SECONDS = 2.0  # ... before there is a first result


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
    return Group(headline(progress, heading), bar, table, *rest, latest(progress))


def span_of(seconds: float) -> str:
    """Return a span of time in words: ``42 s``, ``3 min 20 s``, ``5 h 12 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
