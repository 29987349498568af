"""When to interpret and when to compile: the play is the same to the last bit, whenever it changes.

Interpreted, a round takes some fifty times as long; compiling takes as long as a hundred thousand
rounds, and loading compiled code from the cache as long as a few thousand. A learner plays its
steps in Python first. After a quarter of a second a thread loads the compiled ones, or another
process (`worker`) compiles them into the cache; between two calls it changes over. A simulation
uses what is cached, or begins interpreted too. As soon as what is left would take longer than
compiling, or what was spent has taken as long, it compiles, and goes on from where it is.

No thread waits for the other process: a learner that interprets looks now and then. One thread
loads what was compiled, which takes half a second; a fork waits for it, because it holds locks of
Numba that a forked process could never free.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

try:
    from numba.core.compiler_lock import global_compiler_lock
except ImportError:  # of another Numba
    global_compiler_lock = threading.RLock()

import unbounded.settings as settings
from unbounded.jit.cache import NotCachedError, cached_only, can_cache
from unbounded.jit.interpreter import quietly
from unbounded.jit.kernel import Pointer
from unbounded.jit.worker import Worker

_SAID = 1.0  # seconds of waiting, after which a message says why
_BEHIND = 0.25  # seconds of interpreting, after which a thread loads or another process compiles
_AHEAD = 2.0  # ... after which this one does, where no other can
_POLL = 0.1  # seconds, after which a learner looks again whether somebody compiles
_SLICE = 0.05  # seconds of interpreting, after which a simulation thinks again
_LOADING = 0.5  # seconds to load a learner's steps from the cache
_PER_NUMBER = 7e-6  # seconds of an interpreted round per number of a learner's state, at most
_FIRST = 4  # rounds that are played to learn how long one takes
_LOADER = "unbounded: load compiled code"  # the name of threads


class Seconds:
    """About how long it takes to compile, by kind; learners of one kind differ twofold."""

    SMALL = 0.7  # an adversary, the sums of a simulation
    BANDIT = 2.0
    MDP = 3.0
    SOLVER = 20.0  # a learner for MDPs that solves a program in every episode


class Code:
    """What one run of something compiles: interpreted, being compiled, or compiled.

    Parameters
    ----------
    name : str
        What to call it.
    warm_up : callable
        Runs every kernel once, compiled.
    seconds : float
        About how long that takes to compile.
    compiled : NamedTuple of kernels, optional
        The entries, for those who ask for ``compiled`` and ``interpreted`` ones.
    worker : Worker, optional
        By which another process can compile it.
    """

    def __init__(
        self,
        name: str,
        warm_up: Callable[[], Any],
        seconds: float,
        *,
        compiled: Any = (),
        worker: Worker | None = None,
    ) -> None:
        self.name, self.seconds = name, seconds
        self.compiled = compiled
        self.interpreted: Any = type(compiled)(*map(quietly, compiled)) if compiled else ()
        self._warm_up = warm_up
        self._worker = worker  # without one, this process compiles
        self._ready = self._tried = self._busy = False
        self._loader = threading.Thread()  # not started yet
        self._next = 0.0  # when to look again
        self.spent = 0.0  # seconds of interpreting

    @property
    def ready(self) -> bool:
        """Whether to use the compiled code; compiles it if the user wants that in any case."""
        if not self._ready and settings.chosen_jit() == "always":
            self.compile()
        return self._ready

    @property
    def loaded(self) -> bool:
        """Whether to use the compiled code; loads it first if it is cached."""
        if not (self._ready or self._tried) and settings.chosen_jit() == "auto":
            self.load()
        return self.ready

    def load(self) -> None:
        """Take everything from the cache, if it is all there."""
        with suppress(NotCachedError), cached_only():
            self._run()
        self._tried = True

    def compile(self, why: str = "") -> None:
        """Take it from the cache, or compile it, and say so if that takes long."""
        with _lock:
            if self._ready or self._busy:
                return
            self.load()
            if self._ready:
                return
            how_often = "once per machine" if can_cache() else "in each process: nothing is cached"
            with said(f"compiling {self.name}, about {self.seconds:.0f} s, {how_often}{why}"):
                self._run()

    def begin(self, numbers: int) -> None:
        """Load or compile first, if an interpreted round of a learner of so many numbers takes
        longer."""
        seconds = _PER_NUMBER * numbers
        if seconds < _LOADING or self.loaded or settings.chosen_jit() != "auto":
            return
        if seconds > self.seconds:
            self.compile(f": interpreted, a round over {numbers:,} numbers takes {seconds:.0f} s")

    def _run(self) -> None:
        with _lock:
            if self._ready or self._busy:  # a warm-up makes a learner, which asks for this
                return
            self._busy = True
            try:
                self._warm_up()
                self._ready = True
            finally:
                self._busy = False

    def spend(self, seconds: float) -> None:
        """Note that interpreting took so long; begin to compile when it is worth it."""
        self.spent += seconds
        now = time.monotonic()
        if self.spent < _BEHIND or now < self._next or settings.chosen_jit() != "auto":
            return
        self._next = now + _POLL
        if self._tried and not (self._worker and self._worker.can_start()):
            if self.spent > _AHEAD:
                self.compile()
        elif _lock.acquire(blocking=False):  # else another thread compiles, loads or looks
            try:
                self._look()
            finally:
                _lock.release()

    def _look(self) -> None:
        """Unless a process compiles this, load what is cached in a thread, or start one."""
        if self._loader.is_alive() or (self._worker and self._worker.is_busy()):
            return
        self._loader = threading.Thread(target=self._load_or_start, name=_LOADER)
        try:
            self._loader.start()
        except RuntimeError:  # there are too many threads, or the program ends
            self._load_or_start()

    def _load_or_start(self) -> None:
        """Load what is cached. If it is not there, start a process; if that has failed, give up."""
        worker = self._worker
        try:
            failure = worker.ended() if worker else ""
            self.load()
            if self._ready:
                return
            if failure:
                raise RuntimeError(failure)
            if worker and worker.can_start():
                worker.start()
        except Exception as error:
            self._worker, self._tried = None, True
            logging.getLogger("unbounded").warning(
                f"another process was to compile {self.name}, and it failed ({error}): this one "
                "compiles. 'unbounded warm' does it ahead; UNBOUNDED_JIT=never interprets."
            )


_lock = threading.RLock()  # of threads, one compiles, loads or starts a process


def _before_fork() -> None:
    """Wait until no thread loads or compiles: a forked process could never free its locks."""
    for thread in threading.enumerate():
        if thread.name == _LOADER:
            thread.join()
    _lock.acquire()
    global_compiler_lock.acquire()


def _after_fork() -> None:
    global_compiler_lock.release()
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )

_steps: dict[Any, Code] = {}  # by the algorithm's spec
_side_steps: dict[Any, Code] = {}  # those with side information


def steps_of(
    cls: type, spec: Any, arguments: Mapping[str, Any], entries: Callable[[Any], Any]
) -> Code:
    """Return the steps of a learner's class; ``arguments`` are the settings of its first learner.

    ``entries`` makes the compiled ones from the ``spec``, or from the variant that the learner has.
    """
    if spec not in _steps:
        declared, settings = declaring(cls), dict(arguments)

        def warm_up() -> None:
            declared(**settings, seed=0)._warm_up()

        _steps[spec] = Code(
            spec.name, warm_up, spec.seconds_to_compile, compiled=entries(spec),
            worker=Worker(declared, settings),
        )  # fmt: skip
    return _steps[spec]


def side_steps_of(
    cls: type, spec: Any, arguments: Mapping[str, Any], entries: Callable[[Any], Any]
) -> Code:
    """Return the steps of a learner's class with side information."""
    if spec not in _side_steps:
        declared, settings = declaring(cls), dict(arguments)

        def warm_up() -> None:
            declared(**settings, seed=0)._warm_up_with()

        _side_steps[spec] = Code(
            f"{spec.name} with side information", warm_up, spec.seconds_to_compile,
            compiled=entries(spec), worker=Worker(declared, settings, with_side=True),
        )  # fmt: skip
    return _side_steps[spec]


def declaring(cls: type) -> Any:
    """Return the class that declares the algorithm of a learner's class: itself, or a base."""
    return next(base for base in cls.__mro__ if "spec" in vars(base))


@cache
def pointed(pointer: Pointer, name: str) -> Code:
    """Return what is compiled for an adversary of this name."""
    return Code(name, pointer, Seconds.SMALL)


class Pace:
    """The schedule of one simulation, or of all its replicates.

    Parameters
    ----------
    parts : sequence of Code
        What it would compile.
    rounds : int
        How many rounds there are to play, of all replicates.
    first : bool
        Whether to compile before the first round, however many there are.
    numbers : int
        The size of the learner's state: if one interpreted round takes longer than compiling, it
        is compiled before the first round too.
    """

    def __init__(
        self, parts: Sequence[Code], rounds: int, *, first: bool = False, numbers: int = 0
    ) -> None:
        self._parts = parts
        self._first = first or _PER_NUMBER * numbers > sum(part.seconds for part in parts)
        self._left = rounds
        self._seconds = 0.0  # per round
        self._lock = threading.Lock()  # of threads, one compiles

    @property
    def compiled(self) -> bool:
        """Whether to play compiled code now."""
        with self._lock:
            missing = [part for part in self._parts if not part.loaded]
            if missing and self._first and settings.chosen_jit() == "auto":
                self._compile(missing)
                return True
            return not missing

    @property
    def rounds(self) -> int:
        """Return how many rounds to interpret at a time."""
        return max(1, int(_SLICE / self._seconds)) if self._seconds else _FIRST

    @contextmanager
    def interpreting(self, rounds: int) -> Iterator[None]:
        """Interpret so many rounds; afterwards compile, if the rest had better be compiled."""
        began = time.thread_time()  # threads take turns: each counts its own
        yield
        spent = time.thread_time() - began
        with self._lock:
            known = self._seconds > 0.0  # a first few rounds tell little
            self._left -= rounds
            self._seconds = spent / rounds
            missing = [part for part in self._parts if not part.ready]
            for part in missing:
                part.spent += spent
            if settings.chosen_jit() != "auto":
                return
            needed = sum(part.seconds for part in missing)
            most = max((part.spent for part in missing), default=0.0)
            if most > needed or (known and self._seconds * self._left > needed):
                self._compile(missing)

    def _compile(self, parts: Sequence[Code]) -> None:
        for part in parts:
            part.compile()


COMPILED = Pace((), 0)
"""The pace of a warm-up: compiled code is played at once."""


@contextmanager
def said(what: str, after: float | None = None) -> Iterator[None]:
    """Say on stderr why one waits, if it takes more than a second, or so many seconds."""
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
    if settings.messages:
        print(f"unbounded: {what}", file=sys.stderr, flush=True)
