"""The thread in which asyncio's calls wait for the file."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any


class Worker(Executor):
    """One thread that makes one call after the other.

    Python does not wait for it at exit. For the threads of a `ThreadPoolExecutor` it does, and for
    ever if they are a parent's (after a fork by C code), or if an interrupt came while they began.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock, self._ended = threading.Lock(), False
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="unbounded-durable", daemon=True)
        self._thread.start()

    @property
    def is_ours(self) -> bool:
        """Whether the thread runs in this process: it does not come along into a child."""
        return self._process == os.getpid()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return the future of a call."""
        future: Future[Any] = Future()
        with self._lock:
            if self._ended:
                raise RuntimeError("this Durable was closed: open it again")
            self._calls.put((future, lambda: fn(*args, **kwargs)))
        return future

    def _run(self) -> None:
        while (given := self._calls.get()) is not None:
            future, call = given
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:
                    future.set_exception(error)
            del given, future, call  # while it waits for the next, nothing of this call stays alive

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End when all calls have been made; wait for that."""
        if self.is_ours:
            with self._lock:
                self._ended = True
                self._calls.put(None)
            self._thread.join()
