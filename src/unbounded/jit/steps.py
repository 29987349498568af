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
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import unbounded.settings as settings
from unbounded.jit.code import Code
from unbounded.jit.interpreter import quietly
from unbounded.jit.kernel import can_keep

_BEHIND = 0.25  # seconds of interpreting, after which another process begins to compile
_AHEAD = 2.0  # ... after which this one does, where no other can

E = TypeVar("E", bound=tuple[Any, ...])


class Steps(Code, Generic[E]):
    """The steps of one algorithm, and which of them to use now.

    Parameters
    ----------
    cls : type
        The class that declares the algorithm.
    arguments : mapping
        Settings of one of its learners.
    compiled : NamedTuple of kernels
        The steps. Nothing is compiled before it is called.
    few : bool
        As for `Code`.
    """

    def __init__(
        self, cls: Any, arguments: Mapping[str, Any], compiled: E, *, few: bool = False
    ) -> None:
        self.compiled = compiled
        kind: Any = type(compiled)
        self.interpreted: E = kind(*map(quietly, compiled))
        self._cls, self._arguments = cls, dict(arguments)
        self._spent = 0.0
        self._behind: threading.Thread | None = None
        solver = getattr(getattr(cls.spec, "solver", None), "kernel", None)
        kernels = [*compiled] if solver is None else [*compiled, solver]
        super().__init__(cls.spec.name, kernels, self._play, few=few)

    def _play(self) -> None:
        self._cls(**self._arguments, seed=0)._rehearse()

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

    def _compile_behind(self, command: list[str]) -> None:
        """In a thread: let another process fill the cache, and load from it."""
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "UNBOUNDED_JIT": "always"},
        )  # fmt: skip
        atexit.register(child.kill)
        child.communicate(json.dumps(self._arguments).encode())  # may be too long for a command
        atexit.unregister(child.kill)
        self.load()

    def _command(self) -> list[str] | None:
        """What another process is started with, if it can import the learner's class."""
        module, name = self._cls.__module__, self._cls.__qualname__
        found = getattr(sys.modules.get(module), name, None)
        if module == "__main__" or found is not self._cls or not can_keep():
            return None
        if not sys.executable or getattr(sys, "frozen", False):
            return None  # a program of its own, which would be started again
        return [sys.executable, "-m", "unbounded.jit.warm_up", module, name]


_known: dict[Any, Steps[Any]] = {}  # by the algorithm's spec


def steps_of(
    cls: type, spec: Any, arguments: Mapping[str, Any], entries: Callable[[Any], E]
) -> Steps[E]:
    """The steps of a learner's class; ``arguments`` are the settings of the first of its learners.

    ``entries`` makes the compiled ones from the ``spec``, or from the variant that the learner has.
    """
    if spec not in _known:
        _known[spec] = Steps(declaring(cls), arguments, entries(spec), few=bool(spec.absent))
    return _known[spec]


def declaring(cls: type) -> Any:
    """The class that declares the algorithm of a learner's class: itself, or a base of it."""
    return next(base for base in cls.__mro__ if "spec" in vars(base))
