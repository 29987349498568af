"""Interrupts at any point of the package's code."""

import dis
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import unbounded

PACKAGE = os.path.dirname(unbounded.__file__)
CHECKED = {"CALL", "CALL_FUNCTION_EX", "RESUME", "JUMP_BACKWARD"}
"""Bytecodes after which Python calls the handlers of signals."""


@contextmanager
def no_callbacks() -> Iterator[None]:
    """Python ignores what is raised in callbacks of its garbage collector, as Hypothesis has one:
    a signal that came in one would be lost, and who waits for it would wait for ever."""
    callbacks = gc.callbacks.copy()
    gc.callbacks.clear()
    try:
        yield
    finally:
        gc.callbacks.extend(callbacks)


def interrupted(work, after, error=KeyboardInterrupt, where=(PACKAGE,), following=None):
    """Raise ``error`` in ``work`` at the bytecode number ``after`` of files ``where``; False if
    ``work`` has fewer. Of bytecodes only those count that come ``following`` one of these."""
    left, last = after, {}

    def trace(frame, event, _):
        nonlocal left
        if not frame.f_code.co_filename.startswith(where):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            before = last.get(frame)
            if following is not None:
                last[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if following is None or before in following:
                left -= 1
                if left < 0:
                    sys.settrace(None)
                    raise error
        return trace

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 asks for it at settrace
    sys.settrace(trace)
    try:
        work()
    except error:
        return True
    finally:
        sys.settrace(before)
    return False
