"""Forks: SQLite's connections and tables of locks must never come along into a child.

Before `os.fork` every turn ends and every connection is closed; parent and child open the file
again when they next use it. A fork that runs no Python hooks (of C code), or one in the middle of a
call, leaves an open connection in the child. There the file is rejected: SQLite would take the
parent's locks for its own.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import threading
import time
import weakref
from operator import methodcaller
from typing import Protocol

_PATIENCE = 60.0  # seconds that a fork waits for a turn to end
_RELEASE = methodcaller("release")


class Waits(Exception):  # noqa: N818 - no error: the turn begins again after the fork
    """A thread wants to fork: end the turn and take it again."""


class Forkable(Protocol):
    """What has a connection, and a lock that is held while the connection is used."""

    lock: threading.Lock
    owner: int

    def before_fork(self) -> None:
        """Close the connection; this thread has the lock."""

    def hurry(self) -> None:
        """Make another thread end a long statement."""

    def inherit(self) -> None:
        """In a child: take a new lock, and give up what is still open."""


inherited: set[tuple[int, int]] = set()
"""Device and inode of files that were open here when this process was forked."""
_alive: weakref.WeakSet[Forkable] = weakref.WeakSet()
_forking: dict[int, list[threading.Lock]] = {}  # by thread: the locks that it holds meanwhile
_pid = os.getpid()


def register(one: Forkable) -> None:
    """Close the connection of ``one`` before each fork."""
    _alive.add(one)


def check() -> None:
    """Raise `Waits` if a thread wants to fork."""
    if _forking:
        raise Waits


def wait(seconds: float) -> None:
    """Wait until no thread wants to fork, or for so long."""
    until = time.monotonic() + seconds
    while _forking and time.monotonic() < until:
        time.sleep(1e-3)


def look() -> None:
    """Notice a fork that has run no hooks."""
    if _pid != os.getpid():
        _in_child()


def begin_turn() -> None:
    """Notice a fork that has run no hooks, or whose last hook was interrupted."""
    look()
    if threading.get_ident() in _forking:
        _in_parent()


def leak(connection: sqlite3.Connection) -> None:
    """Keep a connection open for ever: to close it would write to the file."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _before() -> None:
    look()
    me = threading.get_ident()
    held = _forking[me] = []  # from here on no thread begins a turn
    until = time.monotonic() + _PATIENCE
    for one in list(_alive):
        if one.owner == me:
            continue  # in the middle of its own call: the child will reject the file
        while time.monotonic() < until and not _acquired(one.lock, held):
            one.hurry()
        if one.lock in held:
            one.before_fork()


def _acquired(lock: threading.Lock, held: list[threading.Lock]) -> bool:
    """Acquire a lock and note it; an interrupt can come between no two of these steps."""
    got: list[bool] = []
    try:
        got.extend(map(lock.acquire, (True,), (0.02,)))
    finally:
        if got and got[0]:
            held.append(lock)
    return lock in held


def _in_parent() -> None:
    me = threading.get_ident()
    held = _forking.get(me, [])
    try:
        list(map(_RELEASE, held))
    finally:
        held.clear()
    _forking.pop(me, None)


def _in_child() -> None:
    global _pid
    _forking.clear()
    for one in list(_alive):
        one.inherit()
    _pid = os.getpid()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
