"""What the process does that `schedule` starts: compile what one learner needs into the cache."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import threading
from importlib import import_module

_MOST = 900.0  # seconds: nothing takes so long to compile


def main(module: str, name: str) -> None:
    """Make a learner of this class, compiled; its settings are a line of JSON from stdin."""
    faulthandler.dump_traceback_later(_MOST, exit=True)
    arguments = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    getattr(import_module(module), name)(**arguments, seed=0)


def _end_with_parent() -> None:
    while os.read(0, 1):  # waits for the end of the pipe, which the parent holds
        pass
    os._exit(1)
