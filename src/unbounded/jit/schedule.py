"""When to interpret and when to compile: the play is the same to the last bit, whenever it changes.

Interpreted, a round takes some fifty times as long; compiling takes as long as a hundred thousand
rounds. A learner whose compiled code is not cached yet plays its steps in Python while another
process compiles them into the cache; between two calls it changes over. A simulation begins
interpreted too. As soon as what is left would take longer than compiling, or what was spent has
taken as long, it compiles, and goes on from where it is.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, NamedTuple
from weakref import WeakSet

import unbounded.settings as settings
from unbounded.jit.interpreter import quietly
from unbounded.jit.kernel import NotCachedError, Pointer, cached_only, can_cache

_SAID = 1.0  # seconds of waiting, after which a message says why
_BEHIND = 0.25  # seconds of interpreting, after which another process begins to compile
_AHEAD = 2.0  # ... after which this one does, where no other can
_SLICE = 0.05  # seconds of interpreting, after which a simulation thinks again
_FIRST = 4  # rounds that are played to learn how long one takes
# What another process is started with: the parent's flags, among them those that change bytecode,
# and its path without entries that depend on the current directory. An interrupt from the keyboard
# is for the parent, which may go on.
_FLAGS = {
    "isolated": "I", "ignore_environment": "E", "no_user_site": "s", "no_site": "S",
    "optimize": "O", "dont_write_bytecode": "B",
}  # fmt: skip
_PROGRAM = """
import json, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = json.loads(sys.stdin.readline())
from unbounded.jit.warm_up import main
main(*sys.argv[1:])
"""


class Seconds:
    """About how long it takes to compile, by kind; learners of one kind differ twofold."""

    SMALL = 0.7  # an adversary, the sums of a simulation
    BANDIT = 2.0
    MDP = 3.0
    SOLVER = 20.0  # a learner for MDPs that solves a program in every episode


class Worker(NamedTuple):
    """What another process needs to know to compile the steps of a learner."""

    cls: type
    settings: Mapping[str, Any]


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
        What another process can compile it by.
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
        self._worker = worker
        self._ready = self._tried = self._busy = False
        self._lock = threading.RLock()  # of threads, one compiles
        self._behind = threading.Thread()  # that waits for another process; not started yet
        self.spent = 0.0  # seconds of interpreting
        _codes.add(self)

    @property
    def ready(self) -> bool:
        """Whether to use the compiled code: loads it if it is cached, and compiles it if that is
        what the user wants in any case."""
        if self._ready:
            return True
        jit = settings.chosen_jit()
        if jit == "always":
            self.compile()
        elif jit == "auto" and not self._tried:
            self.load()
        return self._ready

    def load(self) -> None:
        """Take everything from the cache, if it is all there."""
        with suppress(NotCachedError), cached_only():
            self._run()
        self._tried = True

    def compile(self) -> None:
        """Take it from the cache, or compile it, and say so if that takes long."""
        with self._lock:
            if self._ready or self._busy:
                return
            self.load()
            if self._ready:
                return
            how_often = "once per machine" if can_cache() else "in each process: nothing is cached"
            with said(f"compiling {self.name}, about {self.seconds:.0f} s, {how_often}"):
                self._run()

    def _run(self) -> None:
        with self._lock:
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
        if self.spent < _BEHIND or self._behind.is_alive() or settings.chosen_jit() != "auto":
            return
        command = self._command()
        if command is None:
            if self.spent > _AHEAD:
                self.compile()
        elif self._lock.acquire(blocking=False):  # of threads, one starts another process
            try:
                if not self._behind.is_alive():
                    self._behind = threading.Thread(
                        target=self._compile_behind, args=(command,), daemon=True
                    )
                    self._behind.start()
            except RuntimeError:  # there are too many threads, or the program ends
                self._worker = None
            finally:
                self._lock.release()

    def _command(self) -> list[str] | None:
        """Return what starts another process, if that can import the learner's class."""
        if self._worker is None or not sys.executable or getattr(sys, "frozen", False):
            return None  # a program of its own would be started again
        cls = self._worker.cls
        found = getattr(sys.modules.get(cls.__module__), cls.__qualname__, None)
        if cls.__module__ == "__main__" or found is not cls or not can_cache():
            return None
        flags = ["-" + letter * getattr(sys.flags, name) for name, letter in _FLAGS.items()]
        flags = [flag for flag in flags if len(flag) > 1]
        return [sys.executable, "-P", *flags, "-c", _PROGRAM, cls.__module__, cls.__name__]

    def _compile_behind(self, command: list[str]) -> None:
        """In a thread: let another process fill the cache, and load from it.

        Where that fails, for whatever reason, this process compiles, and says what is wrong.
        """
        assert self._worker is not None
        with suppress(Exception):
            path = [entry for entry in sys.path if os.path.isabs(entry)]
            text = f"{json.dumps(path)}\n{json.dumps(self._worker.settings)}"
            child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, env=os.environ | {"UNBOUNDED_JIT": "always"},
            )  # fmt: skip
            _children.add(child)
            child.communicate(text.encode())
            _children.discard(child)
            with _loading:
                self.load()
        if not self._ready:
            self._worker = None


_codes: WeakSet[Code] = WeakSet()
_children: set[subprocess.Popen[bytes]] = set()  # processes that compile for this one
_loading = threading.Lock()  # while a thread loads that the user does not know of


@atexit.register
def _end_children() -> None:
    for child in tuple(_children):
        child.kill()


def _begin_after_fork() -> None:
    """In a forked process: there is one thread, and what others had begun is not under way."""
    _children.clear()  # they are the parent's
    _loading.release()
    for code in tuple(_codes):
        code._lock, code._busy, code._tried = threading.RLock(), False, False


if hasattr(os, "register_at_fork"):
    # Not while a thread loads: it holds locks of Numba and LLVM, which nobody would ever free.
    os.register_at_fork(
        before=_loading.acquire,
        after_in_parent=_loading.release,
        after_in_child=_begin_after_fork,
    )

_steps: dict[Any, Code] = {}  # by the algorithm's spec


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
    """

    def __init__(self, parts: Sequence[Code], rounds: int, *, first: bool = False) -> None:
        self._parts = parts
        self._first = first
        self._left = rounds
        self._seconds = 0.0  # per round
        self._lock = threading.Lock()  # of threads, one compiles

    @property
    def compiled(self) -> bool:
        """Whether to play compiled code now."""
        with self._lock:
            missing = [part for part in self._parts if not part.ready]
            if missing and self._first and settings.chosen_jit() == "auto":
                self._compile(missing)
                return True
            return not missing

    @property
    def rounds(self) -> int:
        """How many rounds to interpret at a time."""
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
