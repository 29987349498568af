"""Where tasks run: here, in local worker processes, or on a dask cluster; one interface.

An engine has the ``submit`` of `concurrent.futures.Executor`. What differs between them is how
they start, how they stop, and what happens when a worker dies.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

from unbounded.experiments import task
from unbounded.experiments.names import nearest
from unbounded.io import read_regular

ENGINES = ("local", "serial", "dask", "dask://HOST:PORT", "dask-file:PATH")
_ADDRESS, _FILE = "dask://", "dask-file:"
_IDLE_SECONDS = 60  # after which a local worker leaves
_PATIENCE = "10s"  # with a scheduler that does not answer


class EngineError(RuntimeError):
    """Why tasks cannot be run, and what to do."""


class Engine(Protocol):
    """Runs tasks.

    Attributes
    ----------
    workers : int
        How many tasks it runs at a time.
    """

    workers: int

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """As `concurrent.futures.Executor.submit`; after a worker has died, with new workers."""

    def close(self, *, kill: bool) -> None:
        """Give back what was started; ``kill`` does not wait for what is running."""


def open_engine(name: str, workers: int | None = None) -> Engine:
    """Return an engine by name: "local", "serial", "dask", "dask://HOST:PORT", "dask-file:PATH".

    Parameters
    ----------
    name : str
        "local" has worker processes, "serial" none, "dask" starts a dask cluster on this machine,
        "dask://HOST:PORT" uses one that is there, and "dask-file:PATH" one whose scheduler was
        started with ``dask scheduler --scheduler-file PATH``.
    workers : int, optional
        How many processes; by default one for each core.
    """
    check_engine(name, workers)
    if name.startswith(_ADDRESS):
        return _Dask(f"tcp://{name.removeprefix(_ADDRESS)}", None)
    if name.startswith(_FILE):
        return _Dask(_address_in(name.removeprefix(_FILE)), None)
    count = workers or _cores()
    if name == "local":
        return _Local(count)
    if name == "serial":
        return _Serial()
    return _Dask(None, count)


def check_engine(name: str, workers: int | None) -> None:
    """Reject an engine that there is not, also where nothing is left to run."""
    if workers is not None and workers < 1:
        raise EngineError(f"workers must be at least 1, got {workers}")
    if name not in ENGINES[:3] and not name.startswith((_ADDRESS, _FILE)):
        raise EngineError(f"there is no engine {name!r}; {nearest(name, ENGINES)}")


def _address_in(path: str) -> str:
    """Return where the scheduler is that has written this file."""
    started = f"start one with 'dask scheduler --scheduler-file {path}'"
    try:
        address = json.loads(read_regular(path))["address"]
    except OSError as error:
        raise EngineError(f"{path} cannot be read: {error.strerror}; {started}") from None
    except (ValueError, RecursionError, KeyError, TypeError, IndexError):
        address = None
    if not isinstance(address, str):
        raise EngineError(f"{path} is not the file of a dask scheduler; {started}")
    return address


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Serial:
    """Runs a task when it is submitted, in this process."""

    workers = 1

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def close(self, *, kill: bool) -> None:
        pass


class _Local:
    """Worker processes of loky; they stay a while for the next run in the same session."""

    def __init__(self, workers: int) -> None:
        try:
            from loky import get_reusable_executor
        except ImportError:
            raise EngineError(
                "local workers need loky: pip install 'unbounded[experiments]', or use the "
                "engine 'serial'"
            ) from None
        self.workers = workers
        # Called for each task: it gives the same executor until a worker dies, then a new one.
        self._executor: Callable[[], Any] = partial(
            get_reusable_executor, workers, timeout=_IDLE_SECONDS,
            initializer=task.begin_work, initargs=(os.getpid(),), env=_as_here(),
        )  # fmt: skip

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        with _beginning_processes():
            future: Future[Any] = self._executor().submit(function, *arguments)
        return future

    def close(self, *, kill: bool) -> None:
        if kill:
            with _beginning_processes():
                self._executor().shutdown(wait=True, kill_workers=True)


class _Dask:
    """A dask cluster, through its own ``concurrent.futures`` interface."""

    def __init__(self, address: str | None, workers: int | None) -> None:
        try:
            import dask
            from distributed import Client, LocalCluster
        except ImportError:
            raise EngineError("dask is not here: pip install 'unbounded[cluster]'") from None
        self._cluster = None
        usual = dask.config.get("distributed.nanny.pre-spawn-environ", {})
        anew = {"distributed.nanny.pre-spawn-environ": usual | _as_here()}  # after one has died
        with _beginning_processes(), dask.config.set(anew):
            if address is None:
                try:
                    self._cluster = LocalCluster(
                        n_workers=workers, threads_per_worker=1, host="127.0.0.1",
                        dashboard_address="127.0.0.1:0", scheduler_kwargs={"dashboard": False},
                    )  # fmt: skip
                except RuntimeError as error:
                    raise EngineError(
                        f"a dask cluster could not be started: {error} In a script, run() must "
                        "stand under 'if __name__ == \"__main__\":'"
                    ) from error
            try:
                self._client = Client(self._cluster or address, timeout=_PATIENCE)
            except (OSError, ValueError) as error:
                raise EngineError(
                    f"no dask scheduler answers at {address}: {error}; start one with "
                    "'dask scheduler' and workers with 'dask worker HOST:PORT'"
                ) from None
            self.workers = sum(self._client.nthreads().values())
            if not self.workers:
                self.close(kill=True)
                raise EngineError(
                    f"the cluster at {address} has no workers: start some with 'dask worker'"
                )
            self._executor = self._client.get_executor()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = self._executor.submit(function, *arguments)
        return future

    def close(self, *, kill: bool) -> None:
        with _beginning_processes():
            self._client.close()
            if self._cluster is not None:
                self._cluster.close()


def _as_here() -> dict[str, str]:
    """Return the environment in which a new Python imports nothing that this one would not.

    Workers get the path of this process, but only after they have begun: without this, they look
    for the modules of the standard library in the current directory first.
    """
    environment = {"PYTHONSAFEPATH": "1"}
    if sys.flags.ignore_environment:
        environment |= {"PYTHONPATH": "", "PYTHONHOME": ""}
    if sys.flags.no_user_site:
        environment["PYTHONNOUSERSITE"] = "1"
    return environment


@contextmanager
def _beginning_processes() -> Iterator[None]:
    """Begin processes that import as this one does, and that Ctrl-C does not reach.

    A terminal sends SIGINT to the driver and to every worker; only the driver should answer, at the
    end of the block. The mask of blocked signals passes to threads and processes that are started
    under it, and so does the environment, also to what loky and dask start beside their workers.
    """
    masks = hasattr(signal, "pthread_sigmask")
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masks else set()
    before = {name: os.environ.get(name) for name in _as_here()}
    os.environ.update(_as_here())
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
