"""Errors of compiled adversaries.

Loops call the ``fill`` of an adversary by a C pointer. What it raises cannot pass through the call:
Numba gives it to `sys.unraisablehook`, which prints it, and the play goes on with wrong losses.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_playing: dict[int, list[BaseException]] = {}  # by thread: the first error of its play
_before: Any = sys.__unraisablehook__


@contextmanager
def adversary_errors() -> Iterator[None]:
    """Raise at the end what a compiled adversary has raised in this thread."""
    global _before
    me = threading.get_ident()
    found: list[BaseException] = []
    with _lock:
        _playing[me] = found
        if sys.unraisablehook is not _note:
            _before, sys.unraisablehook = sys.unraisablehook, _note
    try:
        yield
    finally:
        with _lock:
            del _playing[me]
            if not _playing and sys.unraisablehook is _note:
                sys.unraisablehook = _before
    if found:
        raise found[0]


def _note(unraisable: Any) -> None:
    found = _playing.get(threading.get_ident())
    if found is None or not isinstance(unraisable.object, str):  # Numba says where, as text
        _before(unraisable)
    elif not found:
        found.append(unraisable.exc_value)
