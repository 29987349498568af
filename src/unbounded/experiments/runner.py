"""From an experiment to its results: plan, run what is missing, keep what comes back.

The results do not depend on the engine, on how replicates are cut into tasks, or on how often a
run was stopped and resumed: replicate r of a cell is a function of the settings and of (seed, r).
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from contextlib import ExitStack, nullcontext
from functools import partial
from typing import Any, NamedTuple

import polars as pl

from unbounded.experiments import task
from unbounded.experiments.engine import Engine, EngineError, check_engine, open_engine
from unbounded.experiments.grid import Cell, frame_of
from unbounded.experiments.names import Kind
from unbounded.experiments.progress import Group, Progress, Watcher, group_of
from unbounded.experiments.shards import missing, of_other_code, of_share, rows_of_share, share_of
from unbounded.experiments.store import Failure, Store, failure_of, in_order
from unbounded.experiments.task import Outcome, Settings, Span, Work
from unbounded.jit.schedule import said

_LONG, _SHORT = 0.6, 0.3  # seconds that a task should last: in general, and towards the end
_MOST_ROWS = 1 << 18  # of one task, so that neither memory nor a loss of work grows with speed
_WORKERS_START = 3.0  # seconds, in which nothing is compiled yet
_DEATHS = 3  # of workers that a task may cause; at the next it is called a failure


class Result(NamedTuple):
    """What a run ends with."""

    frame: pl.DataFrame
    failures: list[Failure]
    already_stored: int  # replicates
    task_seconds: list[float]  # what each task took in its worker
    compile_seconds: float  # what was needed before, of all workers
    other_code: int  # of a shard: cells of which the directory has results of other code


def run_cells(
    plan: Sequence[Cell],
    replicates: int,
    *,
    store: Store | None = None,
    engine: str = "local",
    workers: int | None = None,
    watcher: Watcher | None = None,
) -> Result:
    """Run what is missing of these cells.

    Parameters
    ----------
    plan : sequence of Cell
    replicates : int
        Of each cell.
    store : Store, optional
        Where results are stored as they come, and looked up before; without it, in memory. One of a
        shard has only the replicates of the shard run, and the result has only these.
    engine, workers
        See `unbounded.experiments.engine.open_engine`.
    watcher : callable, optional
        Called with the `Progress` several times a second.
    """
    check_engine(engine, workers)
    with nullcontext() if store is None else store.locked():
        return _run(plan, replicates, store, engine, workers, watcher)


def _run(
    plan: Sequence[Cell], replicates: int, store: Store | None, engine_name: str,
    workers: int | None, watcher: Watcher | None,
) -> Result:  # fmt: skip
    have = frame_of([], plan)
    other_code = 0
    if store is not None:
        stored = store.read(move=True)
        other_code = of_other_code(stored, plan) if store.shard else 0
        have = in_order(stored, plan, replicates)
        store.failures(move=True)
        store.forget_failures()  # they are tried again
    share = share_of(store.shard if store is not None else None, plan, replicates)
    have = rows_of_share(have, plan, share)
    spans = of_share(missing(have, plan, replicates), share)
    progress = Progress(plan, share, spans)
    # A display says what is compiled; where there is none, a line does.
    says = watcher is None and engine_name != "serial"
    loop = _Loop(plan, progress, store, watcher, says=says)
    if spans:
        engine = open_engine(engine_name, workers)
        try:
            loop.run(engine, spans)
        except BaseException:
            try:
                loop.save_finished()
            finally:
                engine.close(kill=True)
            raise
        engine.close(kill=False)
    if store is not None:
        store.merge()
    return Result(
        in_order(pl.concat([have, *loop.frames]), plan, replicates), loop.failures,
        progress.already_stored, loop.task_seconds, progress.compile_seconds, other_code,
    )  # fmt: skip


_ahead: list[Future[Any]] = []  # what is compiled for later runs


def compile_ahead(later: Sequence[tuple[Sequence[Cell], int]], workers: int | None = None) -> None:
    """Have local workers compile the slowest learners of later runs, without waiting for it.

    Otherwise a run with one learner that takes a minute would have the other workers idle. One
    worker is left for the first run, of which something is to be seen soon.

    ``later`` has of each run its cells, and the replicates of each.
    """
    engine = open_engine("local", workers)
    of_learner: dict[str, list[tuple[Settings, int]]] = defaultdict(list)
    for cells, replicates in later:
        for settings, rounds in _rounds_of_each(cells, replicates):
            if settings.kind == "MDPs":  # the others are soon done
                of_learner[settings.learner].append((settings, rounds))
    slowest = sorted(of_learner, key=lambda name: -task.seconds_to_compile("MDPs", name))
    first = slowest[: engine.workers - 1]
    _ahead.extend(_submitted(engine, task.warm, of_learner[name]) for name in first)


def _rounds_of_each(cells: Sequence[Cell], replicates: int) -> list[tuple[Settings, int]]:
    """Return one cell of each group, with the rounds of all."""
    first: dict[Group, Settings] = {}
    rounds: dict[Group, int] = defaultdict(int)
    for cell in cells:
        group = group_of(cell.settings)
        first.setdefault(group, cell.settings)
        rounds[group] += cell.settings.rounds * replicates
    return [(first[group], rounds[group]) for group in first]


def _submitted(engine: Engine, function: Callable[..., Any], argument: Any) -> Future[Any]:
    """Return a future in any case: if submitting fails, the error is found in it later."""
    try:
        return engine.submit(function, argument)
    except Exception as error:
        future: Future[Any] = Future()
        future.set_exception(error)
        return future


def _error_of(future: Future[Any]) -> BaseException | None:
    """Return why a future has no result; tasks are cancelled when a cluster is lost."""
    try:
        return future.exception()
    except CancelledError as error:
        return error


class _Loop:
    """Keeps an engine busy with what is missing."""

    def __init__(
        self, plan: Sequence[Cell], progress: Progress, store: Store | None,
        watcher: Watcher | None, *, says: bool,
    ) -> None:  # fmt: skip
        self._says = says
        self.frames: list[pl.DataFrame] = []
        self.failures: list[Failure] = []
        self.task_seconds: list[float] = []
        self._plan = plan
        self._progress = progress
        self._store = store
        self._watcher = watcher
        self._queue: deque[Span] = deque()
        self._running: dict[Future[Any], Work] = {}
        self._cold: deque[tuple[str, list[Span]]] = deque()  # the quickest to compile first
        self._warming: dict[Future[Any], tuple[str, list[Settings], list[Span]]] = {}
        self._suspects: deque[Span] = deque()  # ran when a worker died: repeated one at a time
        self._deaths: dict[Span, int] = defaultdict(int)

    def run(self, engine: Engine, spans: Sequence[Span]) -> None:
        self._progress.workers = engine.workers
        self._sort_by_learner(spans)
        with ExitStack() as waiting:
            if self._says:
                names = ", ".join(name for name, _ in self._cold)
                what = f"compiling what is not cached yet of {names}, once per machine"
                waiting.enter_context(said(what, after=_WORKERS_START))
            while self._cold or self._running or self._warming or self._queue or self._suspects:
                self._submit(engine)
                self._warm_up(engine)
                if not self._cold and not self._warming:
                    waiting.close()
                if self._watcher is not None:
                    self._watcher(self._progress)
                done = wait([*self._running, *self._warming], 0.2, FIRST_COMPLETED).done
                for future in done:
                    if future in self._warming:
                        self._warmed(future)
                    else:
                        self._take(future)
        if self._watcher is not None:
            self._watcher(self._progress)

    def save_finished(self) -> None:
        """Before stopping: keep what has come back in the meantime."""
        for future in [future for future in self._running if future.done()]:
            if _error_of(future) is None:
                self._take(future)

    # ------------------------------------------------------------- compilation

    def _sort_by_learner(self, spans: Sequence[Span]) -> None:
        of_learner: dict[tuple[Kind, str], list[Span]] = defaultdict(list)
        for span in spans:
            settings = self._plan[span.cell].settings
            of_learner[settings.kind, settings.learner].append(span)
        quickest_first = sorted(of_learner, key=lambda one: task.seconds_to_compile(*one))
        self._cold.extend((name, of_learner[kind, name]) for kind, name in quickest_first)

    def _warm_up(self, engine: Engine) -> None:
        """Have each learner compiled by one worker before the others want it from the cache.

        The quickest comes first, so that there is something to run; then the slowest, so that
        nobody waits for it at the end.
        """
        free = max(1, engine.workers - sum(not future.done() for future in _ahead))
        while self._cold and len(self._warming) < free:
            name, spans = self._cold.pop() if self._warming else self._cold.popleft()
            cells = [self._plan[span.cell] for span in spans]
            asked = _rounds_of_each(cells, max(span.replicates for span in spans))
            future = _submitted(engine, task.warm, asked)
            self._warming[future] = name, [settings for settings, _ in asked], spans
        self._progress.compiling = [name for name, _, _ in self._warming.values()]

    def _warmed(self, future: Future[Any]) -> None:
        _, settings, spans = self._warming.pop(future)
        if _error_of(future) is None:
            for one, warmed in zip(settings, future.result(), strict=True):
                self._progress.measured(one, warmed)
        self._queue.extend(spans)  # also after an error: each cell then records its own

    # ------------------------------------------------------------------- tasks

    def _submit(self, engine: Engine) -> None:
        if self._suspects:
            if not self._running and not self._warming:
                span = self._suspects.popleft()
                self._send(engine, [(span, self._plan[span.cell].settings)])
            return
        while self._queue and len(self._running) < 2 * engine.workers:
            self._send(engine, self._next_work(engine.workers))

    def _send(self, engine: Engine, work: Work) -> None:
        run = partial(task.run_with, task.parsed(), task.run)
        self._running[_submitted(engine, run, work)] = work
        self._progress.started_work(work)

    def _next_work(self, workers: int) -> Work:
        """Spans that last ``_LONG`` together; less towards the end."""
        share = self._progress.seconds_left() / 3.0
        aim = max(_SHORT, min(_LONG, share), 0.02 * workers)  # one driver serves many workers
        work: Work = []
        rows, seconds = 0, 0.0
        while self._queue and seconds < aim and rows < _MOST_ROWS:
            span = self._queue.popleft()
            settings = self._plan[span.cell].settings
            each = self._progress.rate(group_of(settings)) * settings.rounds
            points = settings.checkpoints
            points = points if isinstance(points, int) else len(points)
            fit = math.ceil(min((aim - seconds) / each, (_MOST_ROWS - rows) / points))
            if fit < span.replicates:
                rest = Span(span.cell, span.first + fit, span.replicates - fit)
                self._queue.appendleft(rest)
                span = Span(span.cell, span.first, fit)
            work.append((span, settings))
            seconds += each * span.replicates
            rows += points * span.replicates
        return work

    def _take(self, future: Future[Any]) -> None:
        work = self._running.pop(future)
        self._progress.stopped_work(work)
        error = _error_of(future)
        if error is None:
            self._keep(future.result(), work)
        elif isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker":
            self._worker_died(work, error)
        else:
            raise EngineError(
                f"a task could not be run: {type(error).__name__}: {error}. Is the same version "
                "of unbounded installed where the workers run, and is the cluster still there?"
            ) from error

    def _keep(self, outcomes: Sequence[Outcome], work: Work) -> None:
        self.task_seconds.append(sum(outcome.seconds for outcome in outcomes))
        for outcome in outcomes:
            cell = self._plan[outcome.span.cell]
            if not outcome.error and outcome.code != cell.code:
                raise EngineError(
                    f"a worker runs other code ({outcome.code}) than this process ({cell.code}): "
                    "install the same versions of unbounded, Python, NumPy, Numba and of what the "
                    "experiment names on both, and let the files that it names (path = ...) be the "
                    "same"
                )
        good = [outcome for outcome in outcomes if not outcome.error]
        if good:
            frame = frame_of(good, self._plan)
            if self._store is not None:
                self._store.write(frame)
            self.frames.append(frame)
        for outcome, (_, settings) in zip(outcomes, work, strict=True):
            self._progress.finished(outcome, settings)
            if outcome.error:
                self._failed(outcome)

    def _failed(self, outcome: Outcome) -> None:
        failure = failure_of(outcome, self._plan[outcome.span.cell])
        self.failures.append(failure)
        if self._store is not None:
            self._store.write_failure(failure)

    def _worker_died(self, work: Work, error: BaseException) -> None:
        """Repeat a task whose worker was killed, by hand or by the task itself."""
        for span, settings in work:
            self._deaths[span] += 1
            if len(work) > 1 or self._deaths[span] <= _DEATHS:
                self._suspects.append(span)
                continue
            text = f"its worker died {self._deaths[span]} times: {error}"
            outcome = task.failed(span, text)
            self._progress.finished(outcome, settings)
            self._failed(outcome)
