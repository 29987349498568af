"""An algorithm's steps: interpreted at once, and compiled as soon as that is done.

A learner whose compiled code is not kept yet plays its steps in Python, while another process
compiles them into the cache; between two calls it changes over. The play is the same to the last
bit, whenever that happens.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

import numpy as np

import unbounded.settings as settings
from unbounded._interpret import interpreted
from unbounded._jit import NotKeptError, can_keep, only_kept

_BEHIND = 0.25  # seconds of interpreting, after which another process begins to compile
_AHEAD = 2.0  # ... after which this one does, where no other can
_SAID = 1.0  # seconds of waiting, after which one is told why

E = TypeVar("E", bound=tuple[Any, ...])
_here = threading.local()


class Steps(Generic[E]):
    """The steps of one algorithm, and which of them to use now.

    Parameters
    ----------
    cls : type
        The class that declares the algorithm.
    arguments : mapping
        Settings of one of its learners.
    compiled : NamedTuple of kernels
        The steps. Nothing is compiled before it is called.
    """

    def __init__(self, cls: Any, arguments: Mapping[str, Any], compiled: E) -> None:
        self.compiled = compiled
        kind: Any = type(compiled)
        quiet = np.errstate(all="ignore")  # compiled code does not warn of what it is meant to do
        self.interpreted: E = kind(*(quiet(interpreted(step)) for step in compiled))
        self._cls, self._arguments = cls, dict(arguments)
        self._ready = self._tried = False
        self._spent = 0.0
        self._behind: threading.Thread | None = None

    @property
    def ready(self) -> bool:
        """Whether the compiled steps are to be used."""
        if self._ready or getattr(_here, "rehearses", False):
            return True
        jit = settings.chosen_jit()
        if jit == "always":
            self.compile()
        elif jit == "auto" and not self._tried:
            self._tried = True
            self._load()
        return self._ready

    def spend(self, seconds: float) -> None:
        """Note that interpreting took so long; begin to compile when it is worth it."""
        self._spent += seconds
        if self._behind is not None or self._spent < _BEHIND or settings.chosen_jit() != "auto":
            return
        command = self._command()
        if command is not None:
            self._behind = threading.Thread(
                target=self._compile_behind, args=(command,), daemon=True
            )
            self._behind.start()
        elif self._spent > _AHEAD:
            self.compile()

    def compile(self) -> None:
        """Compile all that a play needs, or take it from the cache; say so if that takes long."""
        with said(f"compiling {self._cls.spec.name}, once per machine"):
            self._rehearse()
        self._ready = True

    def _load(self) -> None:
        """Take everything from the cache, if it is all there."""
        with suppress(NotKeptError), only_kept():
            self._rehearse()
            self._ready = True

    def _rehearse(self) -> None:
        _here.rehearses = True
        try:
            self._cls(**self._arguments, seed=0)._rehearse()
        finally:
            _here.rehearses = False

    def _compile_behind(self, command: list[str]) -> None:
        """In a thread: let another process fill the cache, and load from it."""
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "UNBOUNDED_JIT": "always"},
        )  # fmt: skip
        atexit.register(child.kill)
        child.wait()
        atexit.unregister(child.kill)
        self._load()

    def _command(self) -> list[str] | None:
        """What another process is started with, if it can import the learner's class."""
        module, name = self._cls.__module__, self._cls.__qualname__
        found = getattr(sys.modules.get(module), name, None)
        if module == "__main__" or found is not self._cls or not can_keep():
            return None
        if not sys.executable or getattr(sys, "frozen", False):
            return None  # a program of its own, which would be started again
        arguments = json.dumps(self._arguments)
        return [sys.executable, "-m", "unbounded.play.rehearsal", module, name, arguments]


_known: dict[Any, Steps[Any]] = {}  # by the algorithm's spec


def steps_of(cls: type, arguments: Mapping[str, Any], entries: Callable[[Any], E]) -> Steps[E]:
    """The steps of a learner's class; ``arguments`` are the settings of the first of its learners.

    ``entries`` makes the compiled ones from the spec.
    """
    declares: Any = declaring(cls)
    if declares.spec not in _known:
        _known[declares.spec] = Steps(declares, arguments, entries(declares.spec))
    return _known[declares.spec]


def declaring(cls: type) -> Any:
    """The class that declares the algorithm of a learner's class: itself, or a base of it."""
    return next(base for base in cls.__mro__ if "spec" in vars(base))


@contextmanager
def said(what: str) -> Iterator[None]:
    """Tell on stderr why one waits, if it takes more than a second."""
    timer = threading.Timer(_SAID, lambda: print(f"unbounded: {what}", file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    began = time.perf_counter()
    try:
        yield
    finally:
        timer.cancel()
    if time.perf_counter() - began > _SAID:
        print(
            f"unbounded: done in {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True
        )
