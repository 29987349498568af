"""A report that is made anew while an experiment runs, for a browser on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from unbounded.experiments.store import StoreError
from unbounded.report import page
from unbounded.report.sections import assembled
from unbounded.report.source import directories, read

_HOSTS = ("127.0.0.1", "localhost")


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
    """The page as it would be now, and whether it is the last."""
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
