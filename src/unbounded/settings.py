"""What a program may choose about the package as a whole.

``jit``: when kernels are compiled. Also the environment variable ``UNBOUNDED_JIT``.

- "auto": play interpreted at once, compile in another process, and switch between two calls; where
  compiled code is cached, use it. Long simulations compile first.
- "always": compile before the first call.
- "never": interpret. No other process is started.

``messages``: whether to say on stderr why one waits.

The environment variable ``UNBOUNDED_ACCELERATOR=off`` compiles by the reference path, with public
means of Numba as far as possible: more slowly, and to the same results. `compiled_path` says which
path is used. The play is the same to the last bit, whatever is chosen.

>>> from unbounded import settings
>>> settings.jit in ("auto", "always", "never")
True
>>> settings.compiled_path() in ("accelerated", "reference")
True
"""

from __future__ import annotations

import os

from unbounded.validation import checked_option

__all__ = ["compiled_path", "jit", "messages", "path_reason"]


def __dir__() -> list[str]:
    return sorted(__all__)


_JIT = ("auto", "always", "never")
_ACCELERATOR = ("auto", "off")

jit: str = os.environ.get("UNBOUNDED_JIT", "auto")
messages: bool = True

_path, _reason = "accelerated", ""


def chosen_jit() -> str:
    """Return ``jit``, checked."""
    return _JIT[checked_option("unbounded.settings.jit (or UNBOUNDED_JIT)", jit, _JIT)]


def chosen_accelerator() -> str:
    """Return what ``UNBOUNDED_ACCELERATOR`` says, checked."""
    chosen = os.environ.get("UNBOUNDED_ACCELERATOR", "auto")
    return _ACCELERATOR[checked_option("UNBOUNDED_ACCELERATOR", chosen, _ACCELERATOR)]


def compiled_path() -> str:
    """Return how kernels are compiled: "accelerated" or "reference".

    The accelerator tests itself when a process first compiles something; a failure changes the
    answer.
    """
    return _path


def path_reason() -> str:
    """Return why the reference path is used; empty if it is not."""
    return _reason


def note_path(path: str, reason: str) -> None:
    """Note how kernels are compiled, and why."""
    global _path, _reason
    _path, _reason = path, reason
