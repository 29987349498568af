"""The process that `steps` starts: it compiles what one learner needs into the cache, and ends."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from importlib import import_module


def main(module: str, name: str) -> None:
    """Play a round with a learner of this class; its settings are what comes in, as JSON."""
    with suppress(OSError, AttributeError):  # not everywhere
        os.nice(5)  # nobody waits for it
    arguments = json.load(sys.stdin)
    cls = getattr(import_module(module), name)
    cls(**arguments, seed=0)._rehearse()


if __name__ == "__main__":
    main(*sys.argv[1:])
