"""Code that is compiled by running it once, or taken from the cache."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any

import unbounded.settings as settings
from unbounded.jit.interpreter import bytecode
from unbounded.jit.kernel import NotKeptError, can_keep, only_kept

_SAID = 1.0  # seconds of waiting, after which one is told why
# What compiling takes, as measured: seconds in any case, and per byte of Python's bytecode.
_FIXED, _PER_BYTE = 0.3, 2.7e-4
# What `tsallis_arms`, `shannon_arms` and `signed_arms` do without where arms are few.
_OF_MANY_ARMS = {
    f"unbounded.core.simplex.{name}"
    for name in (
        "lazy", "lazy_shannon", "lazy_signed", "lazy_tsallis", "moments", "proposal",
        "signed_picture", "tree",
    )
}  # fmt: skip

_here = threading.local()
_quiet = False


class Code:
    """What one run of something compiles, and whether it is there.

    Parameters
    ----------
    name : str
        What to call it.
    kernels : sequence of kernels
        What is compiled, with all that it calls.
    rehearse : callable
        Runs them once.
    few : bool
        Whether it is for few arms, where there is other code for many.
    """

    def __init__(
        self, name: str, kernels: Sequence[Any], rehearse: Callable[[], Any], *, few: bool = False
    ) -> None:
        self.name = name
        self._kernels = kernels
        self._few = few
        self._run = rehearse
        self._ready = self._tried = False
        self.spent = 0.0  # seconds of doing without it

    @property
    def ready(self) -> bool:
        """Whether the compiled code is to be used: loads it if it is kept, and compiles it if that
        is what the user wants in any case."""
        if self._ready or getattr(_here, "rehearses", False):
            return True
        jit = settings.chosen_jit()
        if jit == "always":
            self.compile()
        elif jit == "auto" and not self._tried:
            self._tried = True
            self.load()
        return self._ready

    @cached_property
    def seconds(self) -> float:
        """About how long it takes to compile."""
        return seconds_to_compile(self._kernels, few=self._few)

    def compile(self) -> None:
        """Take it from the cache, or compile it, and say so if that takes long."""
        self.load()
        if self._ready:
            return
        how_often = "once per machine" if can_keep() else "in each process, as nothing can be kept"
        with said(f"compiling {self.name}, about {self.seconds:.0f} s, {how_often}"):
            self._rehearse()
        self._ready = True

    def load(self) -> None:
        """Take everything from the cache, if it is all there."""
        with suppress(NotKeptError), only_kept():
            self._rehearse()
            self._ready = True

    def _rehearse(self) -> None:
        _here.rehearses = True
        try:
            self._run()
        finally:
            _here.rehearses = False


def seconds_to_compile(kernels: Sequence[Any], *, few: bool = False) -> float:
    """About how long it takes to compile some kernels, with all that they call."""
    return _FIXED + _PER_BYTE * bytecode(kernels, _OF_MANY_ARMS if few else ())


def be_quiet() -> None:
    """Say nothing in this process: somebody else tells the user what it does."""
    global _quiet
    _quiet = True


@contextmanager
def said(what: str, after: float | None = None) -> Iterator[None]:
    """Tell on stderr why one waits, if it takes more than a second, or so many seconds."""
    patience = _SAID if after is None else after
    timer = threading.Timer(patience, _say, (what,))
    timer.daemon = True
    timer.start()
    began = time.perf_counter()
    try:
        yield
    finally:
        timer.cancel()
    if time.perf_counter() - began > patience:
        _say(f"done in {time.perf_counter() - began:.0f} s")


def _say(what: str) -> None:
    if not _quiet:
        print(f"unbounded: {what}", file=sys.stderr, flush=True)
