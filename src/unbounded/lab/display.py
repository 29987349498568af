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

from unbounded.lab.runner import Progress

_ROWS = 12  # cells that are shown at a time
_LOG_SECONDS = 10.0  # between lines where there is no terminal


class Display:
    """A live table on a terminal; elsewhere a line every few seconds.

    Give it to `unbounded.lab.runner.run_cells` as the watcher, inside a ``with`` block.

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
            self._console.print(headline(progress, self.heading), highlight=False)


def headline(progress: Progress, heading: str = "") -> Text:
    """Done, running, failed and time left, in one line."""
    failed = sum(progress.failed)
    return Text.assemble(
        f"{heading}: " if heading else "",
        f"{progress.done}/{progress.total} done, {sum(progress.running)} running, ",
        (f"{failed} failed", "red" if failed else ""),
        f", {span_of(progress.seconds_left())} left",
        f", {progress.compiling} learners being compiled" if progress.compiling else "",
    )


def render(progress: Progress, heading: str = "") -> RenderableType:
    """The headline, and the cells that are being run."""
    table = Table(box=None, pad_edge=False)
    table.add_column("cell", no_wrap=True, overflow="ellipsis", ratio=1)
    for name in ("done", "running", "failed", "left"):
        table.add_column(name, justify="right")
    active = [i for i, running in enumerate(progress.running) if running]
    for i in active[:_ROWS]:
        failed = progress.failed[i]
        table.add_row(
            progress.plan[i].label,
            f"{progress.replicates - progress.left[i] - failed}/{progress.replicates}",
            str(progress.running[i]),
            Text(str(failed), "red" if failed else ""),
            span_of(progress.seconds_left_of(i)),
        )
    more = len(active) - _ROWS
    rest = [Text(f"and {more} more cells")] if more > 0 else []
    bar = ProgressBar(total=progress.total, completed=progress.done)
    return Group(headline(progress, heading), bar, table, *rest)


def span_of(seconds: float) -> str:
    """A span of time in words: ``42 s``, ``3 min 20 s``, ``5 h 12 min``.

    Examples
    --------
    >>> from unbounded.lab.display import span_of
    >>> span_of(200.4)
    '3 min 20 s'
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
