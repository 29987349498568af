"""What the process does that `schedule` starts: compile what one learner needs into the cache."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from importlib import import_module


def main(module: str, name: str) -> None:
    """Make a learner of this class, compiled; its settings are what comes in, as JSON."""
    with suppress(OSError, AttributeError):  # not everywhere
        os.nice(5)  # nobody waits for it
    getattr(import_module(module), name)(**json.load(sys.stdin), seed=0)
