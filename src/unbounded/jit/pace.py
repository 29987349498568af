"""How a simulation is played: interpreted while it is short, compiled where that pays.

Interpreted, a round takes some fifty times as long; compiling takes as long as a hundred thousand
rounds. A simulation begins interpreted if its code is not kept yet. As soon as what is left would
take longer than compiling, or what was spent has taken as long, it compiles, and goes on from where
it is: the play is the same to the last bit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import unbounded.settings as settings
from unbounded.jit.code import Code
from unbounded.jit.kernel import Pointer

_SLICE = 0.05  # seconds of interpreting, after which one thinks again
_FIRST = 4  # rounds that are played to learn how long one takes


class Pace:
    """Of one simulation, or of all its replicates.

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


def is_ours(function: Any) -> bool:
    """Whether it belongs to the package, whose tests hold interpreted and compiled code together.

    What others wrote may count on what compiled code does, as on integers that wrap around.
    """
    return str(function.__module__).partition(".")[0] == "unbounded"


@cache
def pointed(pointer: Pointer, name: str) -> Code:
    """What is compiled for an adversary of this name."""
    return Code(name, [pointer.kernel], pointer)


COMPILED = Pace((), 0)  # of a rehearsal
