"""A parent and a child of a fork share a durable learner, one of them ends, the other goes on.

    python tests/durable/forked_workers.py FILE NOTES FORK WHO HOW

FORK is "python" or "c" (a fork that Python does not know of), WHO ends is "parent" or "child", HOW
is "close", "exit" or "kill". A stranger, a process that was there before, opens and closes the file
whenever one of the two has done something. What was acknowledged is written to NOTES.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import NoReturn

from unbounded import SCB
from unbounded.durable import Durable, DurableError


def stranger(path: str) -> tuple[int, int]:
    """A process that opens and closes the file whenever a byte is sent; pipes to it and from it."""
    (ours, to), (back, theirs) = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(to)
        while os.read(ours, 1):
            Durable(path, timeout=60.0).close()
            os.write(theirs, b".")
        os._exit(0)
    os.close(ours)
    os.close(theirs)
    return to, back


def play(arms: Durable, notes: str, rounds: int) -> None:
    with open(notes, "a", buffering=1) as file:
        for _ in range(rounds):
            choice = arms.ask()
            arms.tell(choice.id, loss=1.0)
            file.write(f"{choice.id}\n")


def main(path: str, notes: str, fork: str, who: str, how: str) -> NoReturn:
    Durable(path, SCB(n_arms=3, seed=0)).close()
    to, back = stranger(path)

    def visit() -> None:
        os.write(to, b".")
        os.read(back, 1)

    arms = Durable(path, timeout=60.0)
    play(arms, notes, 5)
    ended, end = os.pipe()
    child = os.fork() if fork == "python" else ctypes.CDLL(None).fork()
    if fork == "c" and child == 0:
        for use in (arms.ask, arms.status, arms.verify, lambda: Durable(path), arms.ask):
            try:
                use()
            except DurableError as error:
                if "was open when this process was forked" in str(error):
                    continue
            raise AssertionError(f"{use} was let through")
    if (child == 0) == (who == "child"):
        if fork == "python" or child:
            play(arms, notes, 20)
        visit()
        if how == "close":
            arms.close()
        elif how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        sys.exit(0)
    os.close(end)
    play(arms, notes, 20)
    os.read(ended, 1)  # the other has ended
    for _ in range(3):
        visit()
        play(arms, notes, 20)
    os._exit(0)  # nothing is closed


if __name__ == "__main__":
    main(*sys.argv[1:])
