"""The process that compiles what a learner needs into the cache, while others interpret.

Of all processes of a machine, one starts it for a learner's class: it takes a file lock, which the
new process inherits and holds until it ends. The others see that the lock is taken. It gets the
flags and the module path of the process that starts it, without entries that depend on the current
directory, and it ends with that process: when nobody holds the other end of its stdin any more.
"""

from __future__ import annotations

import atexit
import faulthandler
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple

import unbounded.settings as settings
from unbounded.io import HAS_LOCKS
from unbounded.jit.cache import can_cache
from unbounded.jit.files import cache_directory, lock_file

_MOST = 900.0  # seconds: nothing takes so long to compile
_FLAGS = {
    "isolated": "I", "ignore_environment": "E", "no_user_site": "s", "no_site": "S",
    "optimize": "O", "dont_write_bytecode": "B", "bytes_warning": "b",
}  # fmt: skip
_PROGRAM = """
import json, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the parent, which may go on
sys.path[:] = json.loads(sys.stdin.readline())
from unbounded.jit.worker import main
main(*sys.argv[1:])
"""


def main(module: str, name: str, with_side: str = "") -> None:
    """Make a learner of this class, compiled; its settings are a line of JSON from stdin.

    Anything for ``with_side`` compiles its steps with side information instead.
    """
    faulthandler.dump_traceback_later(_MOST, exit=True)
    arguments = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    made = getattr(import_module(module), name)
    if not with_side:
        made(**arguments, seed=0)
    else:
        settings.jit = "auto"  # its other steps need not be compiled
        made(**arguments, seed=0)._with_side.compile()


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


class Child(NamedTuple):
    """A process that this one has started."""

    process: subprocess.Popen[bytes]
    errors: IO[bytes]

    def end(self) -> str:
        """Wait for it, let go of it, and say how it has ended."""
        with self.process, self.errors as errors:
            errors.seek(0)
            lines = errors.read().decode(errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "without a message")
        return f"exit code {self.process.returncode}: {last}"


class Worker:
    """Starts the process that compiles a class of learners; ``arguments`` make one of them."""

    def __init__(self, cls: type, arguments: Mapping[str, Any], *, with_side: bool = False) -> None:
        self._cls, self._arguments = cls, arguments
        self._extra = ["with_side"] if with_side else []

    def can_start(self) -> bool:
        """Return whether another process can import the class and cache its code."""
        cls = self._cls
        python = "python" in os.path.basename(sys.executable or "").lower()
        if not python or getattr(sys, "frozen", False) or not can_cache():
            return False  # a program of its own would be started again
        found = getattr(sys.modules.get(cls.__module__), cls.__qualname__, None)
        return cls.__module__ != "__main__" and found is cls

    def is_busy(self) -> bool:
        """Return whether a process compiles the class, started here or elsewhere."""
        child = _children.get(self)
        if child is not None:
            return child.process.poll() is None
        try:
            self._take().close()
        except BlockingIOError:
            return True
        except OSError:  # `start` will raise it
            pass
        return False

    def ended(self) -> str:
        """Say how the process that was started here has ended; empty if none was."""
        child = _children.pop(self, None)
        return "" if child is None else child.end()

    def start(self) -> None:
        """Start a process, unless somebody else was faster."""
        path = [entry for entry in sys.path if os.path.isabs(entry)]
        text = f"{json.dumps(path)}\n{json.dumps(self._arguments)}\n"
        command = [sys.executable, "-P", *_flags(), "-c", _PROGRAM]
        with ExitStack() as stack:
            try:
                lock = stack.enter_context(self._take())
            except BlockingIOError:
                return
            with ExitStack() as on_error:
                errors = on_error.enter_context(tempfile.TemporaryFile())
                process = subprocess.Popen(
                    [*command, self._cls.__module__, self._cls.__name__, *self._extra],
                    stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors,
                    env=os.environ | {"UNBOUNDED_JIT": "always"},
                    pass_fds=[lock.fileno()] if HAS_LOCKS else [],
                )  # fmt: skip
                on_error.pop_all()
        _children[self] = Child(process, errors)
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # it has failed, and will be asked why
            process.stdin.write(text.encode())
            process.stdin.flush()  # and it stays open

    def _take(self) -> IO[bytes]:
        """Take the lock of the process that compiles."""
        parts = [self._cls.__module__, self._cls.__name__, *self._extra, "worker.lock"]
        name = ".".join(parts)
        return lock_file((cache_directory() or Path()) / name)


def _flags() -> list[str]:
    """Return the options that this interpreter was started with, for another one."""
    flags = ["-" + letter * getattr(sys.flags, name) for name, letter in _FLAGS.items()]
    flags = [flag for flag in flags if len(flag) > 1]
    flags += [f"-W{option}" for option in sys.warnoptions]
    for name, value in sys._xoptions.items():
        flags.append(f"-X{name}" if value is True else f"-X{name}={value}")
    return flags


_children: dict[Worker, Child] = {}


@atexit.register
def _end_children() -> None:
    while _children:
        _, child = _children.popitem()
        child.process.kill()
        child.end()


def _leave_to_parent() -> None:
    """In a forked process: let go of the parent's processes, which end with it and not with this
    one."""
    while _children:
        _, child = _children.popitem()
        child.process.returncode = 0
        child.end()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
