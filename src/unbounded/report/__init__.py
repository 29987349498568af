"""From directories of results to one page, also while they are written, and to figures for print.

Data flow: `source` reads the store, `data` prepares the rows, `curves` and `comparisons` make
charts of plain numbers (`model`), `sections` puts them together, and `page` and `figures` draw
those. `labels` are the names and numbers that people read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

from unbounded.experiments.store import StoreError, write_whole, writing
from unbounded.report import page
from unbounded.report.model import Report
from unbounded.report.sections import assembled
from unbounded.report.source import directories, read

__all__ = ["Written", "report"]

_HOSTS = ("127.0.0.1", "localhost")  # by which `watch` is asked for


class Written(NamedTuple):
    """What `report` wrote: the page, figures, why there are no figures if so, LaTeX tables.

    Examples
    --------
    >>> from unbounded.report import Written
    >>> Written(Path("out/report.html"), [], "matplotlib is missing").page.name
    'report.html'
    """

    page: Path
    figures: list[Path]
    without_figures: str
    tables: Sequence[Path] = ()


def report(
    directory: str | os.PathLike[str],
    other: str | os.PathLike[str] | None = None,
    *,
    output: str | os.PathLike[str] | None = None,
    figures: bool = True,
    latex: bool = False,
) -> Written:
    """Make a page, figures for print, and LaTeX tables, of one or several stored experiments.

    Parameters
    ----------
    directory : path
        Results as `run` leaves them, or a directory of several such.
    other : path, optional
        Results of another run of the same or a similar experiment: the page then begins with the
        differences to ``directory``, replicate by replicate.
    output : path, optional
        The page; by default ``report.html`` in ``directory``, or ``versus.html`` in ``other``.
        The figures go into ``figures`` or ``versus-figures`` beside it.
    figures : bool
        Whether to write figures, as SVG and PDF. They need matplotlib.
    latex : bool
        Whether to write the tables for LaTeX, into ``tables`` or ``versus-tables`` beside the page.

    Returns
    -------
    Written

    Examples
    --------
    >>> import tempfile
    >>> from unbounded import experiments
    >>> from unbounded.report import report
    >>> e = {"learners": [{"name": "SCB"}, {"name": "Uniform"}], "rounds": 100, "arms": 3,
    ...      "adversaries": [{"name": "StochasticGap"}], "replicates": 2}
    >>> with tempfile.TemporaryDirectory() as out:
    ...     frame = experiments.run(e, out=out, engine="serial")
    ...     written = report(out, figures=False)
    ...     written.page.name, written.page.read_text(encoding="utf-8")[:15]
    ('report.html', '<!doctype html>')
    """
    usual = Path(directory) / "report.html" if other is None else Path(other) / "versus.html"
    target = usual if output is None else Path(output)
    made = contents(directory, other)
    with writing(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, page.html(made).encode(errors="backslashreplace"))
    place = "figures" if other is None else "versus-figures"
    tables: list[Path] = []
    if latex:
        from unbounded.report.latex import write

        tables = write(made, target.parent / place.replace("figures", "tables"))
    if not figures:
        return Written(target, [], "", tables)
    try:
        from unbounded.report.figures import draw
    except ImportError as error:
        missing = f"no figures: {error.name} is missing: pip install 'unbounded[plot]'"
        return Written(target, [], missing, tables)
    drawn = draw(made, target.parent / place)
    links = [f"{place}/{path.name}" for path in drawn]
    write_whole(target, page.html(made, figures=links).encode(errors="backslashreplace"))
    return Written(target, drawn, "", tables)


def contents(
    directory: str | os.PathLike[str], other: str | os.PathLike[str] | None = None
) -> Report:
    """Return the numbers of a report, before they are drawn."""
    both = [directory] if other is None else [directory, other]
    found = [read(path) for one in both for path in directories(one)]
    if other is not None and len(found) != 2:
        raise StoreError(
            "two runs are compared one experiment at a time: give the directories of one each"
        )
    if all(results.frame.height == 0 for results in found):
        raise StoreError(
            f"no results are stored in {directory}: `unbounded run {found[0].file} --out "
            f"{found[0].directory}` makes them"
        )
    return assembled(found, Path(directory), compare=other is not None)


def watch(
    directory: str | os.PathLike[str],
    *,
    port: int = 0,
    every: float = 5.0,
    ready: Callable[[str], None] = print,
) -> None:
    """Serve the report on a directory until nothing of its experiments is missing.

    The page reloads itself. It can be opened from this machine only.

    Parameters
    ----------
    directory : path
        Where `run` writes, or will.
    port : int
        Of the loopback interface; 0 takes one that is free.
    every : float
        Seconds between two pages.
    ready : callable
        Is given the address as soon as it can be opened.
    """
    top = Path(directory)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host = self.headers.get("Host", "").rpartition(":")[0]
            if host not in _HOSTS:  # another site's name that leads here
                self.send_error(403)
                return
            if self.path != "/":
                self.send_error(404)
                return
            text, finished = _page(top, every)
            content = text.encode(errors="backslashreplace")
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(content)
            if finished:
                server.finished = True

        def log_message(self, *_: object) -> None:
            """Nothing: the terminal shows the run."""

    class Server(ThreadingHTTPServer):
        finished = False
        timeout = 0.5

    with Server(("127.0.0.1", port), Handler) as server:
        ready(f"http://127.0.0.1:{server.server_address[1]}/")
        while not server.finished:
            server.handle_request()


def _page(top: Path, every: float) -> tuple[str, bool]:
    """Return the page as it would be now, and whether it is the last."""
    try:
        found = [read(path) for path in directories(top)]
    except StoreError as error:  # nothing is there yet
        return _waiting(str(error), every), False
    if all(results.frame.height == 0 for results in found):
        return _waiting("The first results are awaited.", every), False
    finished = not any(results.missing for results in found)
    return page.html(assembled(found, top), every=None if finished else every), finished


def _waiting(text: str, every: float) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="refresh" content="{every:g}"><title>Waiting</title></head>'
        f"<body><p>{escape(text)}</p></body></html>\n"
    )
