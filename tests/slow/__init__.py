"""Every bandit algorithm once more: slow, plain, and written from the formulas.

The twin of ``unbounded/bandits/NAME.py`` is ``play(n, ...)`` in ``slow/NAME.py``, a generator
that yields the distribution of the coming round and is sent (arm, losses). It uses none of the
package's code.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from slow.formulas import Player


def twin_of(learner: type) -> Callable[..., Player]:
    """The slow twin of a learner's class, or an error that says what to write."""
    name = learner.__module__.rpartition(".")[2]
    if find_spec(f"slow.{name}") is None:
        raise LookupError(
            f"{learner.__name__} has no slow twin: write tests/slow/{name}.py with a generator "
            "play(n, ...) from the formulas"
        )
    module: Any = importlib.import_module(f"slow.{name}")
    return module.play
