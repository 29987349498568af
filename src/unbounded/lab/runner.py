"""From an experiment to its results: plan, run what is missing, keep what comes back.

The results do not depend on the engine, on how replicates are cut into tasks, or on how often a
run was stopped and resumed: replicate r of a cell is a function of the settings and of (seed, r).
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from typing import Any, NamedTuple, Protocol

import polars as pl

from unbounded.lab import task
from unbounded.lab.engine import Engine, EngineError, check_engine, open_engine
from unbounded.lab.grid import Cell
from unbounded.lab.names import known
from unbounded.lab.rows import frame_of
from unbounded.lab.store import Failure, Store, failure_of, in_order, missing
from unbounded.lab.task import Outcome, Settings, Span

_LONG, _SHORT = 0.6, 0.3  # seconds that a task should last: in general, and towards the end
_MOST_ROWS = 1 << 18  # of one task, so that neither memory nor a loss of work grows with speed
_UNKNOWN_RATE = 1e-6  # seconds per round, where none could be measured
_DEATHS = 3  # of workers that a task may cause; at the next it is called a failure

Work = list[tuple[Span, Settings]]
Group = tuple[str, str, int | str]


class Watcher(Protocol):
    """What follows a run as it goes: a display."""

    def __call__(self, progress: Progress) -> None: ...


class Result(NamedTuple):
    """What a run ends with."""

    frame: pl.DataFrame
    failures: list[Failure]
    already_stored: int  # replicates
    task_seconds: list[float]  # what each task took in its worker


class Progress:
    """How far a run is: replicates of each cell that are done, running and failed."""

    def __init__(self, plan: Sequence[Cell], replicates: int, spans: Sequence[Span]) -> None:
        self.plan = plan
        self.replicates = replicates
        self.total = len(plan) * replicates
        self.left = [0] * len(plan)
        for span in spans:
            self.left[span.cell] += span.replicates
        self.already_stored = self.total - sum(self.left)
        self.done = self.already_stored
        self.running = [0] * len(plan)
        self.failed = [0] * len(plan)
        self.workers = 1
        self.compiling = 0  # learners that are not ready yet
        self._rounds_left: dict[Group, int] = defaultdict(int)
        for i, cell in enumerate(plan):
            self._rounds_left[_group(cell.settings)] += self.left[i] * cell.settings.rounds
        self._seconds: dict[Group, float] = defaultdict(float)
        self._rounds: dict[Group, int] = defaultdict(int)
        self._measured: dict[tuple[str, int | str], float] = {}

    def measured(self, settings: Settings, seconds_per_round: float) -> None:
        """A first measurement of a learner's speed."""
        self._measured[settings.learner, settings.size] = seconds_per_round

    def started_work(self, work: Work) -> None:
        """Tell that a task was submitted."""
        for span, _ in work:
            self.running[span.cell] += span.replicates

    def stopped_work(self, work: Work) -> None:
        """Tell that a task came back, with or without results."""
        for span, _ in work:
            self.running[span.cell] -= span.replicates

    def finished(self, outcome: Outcome, settings: Settings) -> None:
        """Enter an outcome."""
        span, group = outcome.span, _group(settings)
        self.left[span.cell] -= span.replicates
        self._rounds_left[group] -= span.replicates * settings.rounds
        if outcome.error:
            self.failed[span.cell] += span.replicates
        else:
            self.done += span.replicates
            self._seconds[group] += outcome.seconds
            self._rounds[group] += span.replicates * settings.rounds

    def rate(self, group: Group) -> float:
        """Seconds per round, as measured so far."""
        if self._rounds[group]:
            return max(self._seconds[group] / self._rounds[group], 1e-12)
        learner, _, size = group
        return self._measured.get((learner, size), _UNKNOWN_RATE)

    def seconds_left(self) -> float:
        """An estimate, from the speed of what is done."""
        total = sum(self.rate(group) * rounds for group, rounds in self._rounds_left.items())
        return total / self.workers

    def seconds_left_of(self, cell: int) -> float:
        """The same for one cell, on one worker."""
        settings = self.plan[cell].settings
        return self.rate(_group(settings)) * settings.rounds * self.left[cell]


def _group(settings: Settings) -> Group:
    """Cells of one group are taken to need the same time per round."""
    return settings.learner, settings.adversary, settings.size


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
        Where results are kept as they come, and looked up before; without it, in memory.
    engine, workers
        See `unbounded.lab.engine.open_engine`.
    watcher : callable, optional
        Called with the `Progress` several times a second.

    Examples
    --------
    >>> from unbounded.lab import config, grid
    >>> from unbounded.lab.runner import run_cells
    >>> e = config.experiment({
    ...     "learners": [{"name": "SCB"}], "adversaries": [{"name": "StochasticGap"}],
    ...     "arms": 3, "rounds": 100})
    >>> result = run_cells(grid.cells(e), e.replicates, engine="serial")
    >>> result.frame["replicate"].n_unique(), result.failures
    (10, [])
    """
    check_engine(engine, workers)
    if store is None:
        return _run(plan, replicates, None, engine, workers, watcher)
    with store.locked():
        return _run(plan, replicates, store, engine, workers, watcher)


def _run(
    plan: Sequence[Cell],
    replicates: int,
    store: Store | None,
    engine_name: str,
    workers: int | None,
    watcher: Watcher | None,
) -> Result:
    have = frame_of([], plan)
    if store is not None:
        have = in_order(store.read(move=True), plan, replicates)
        store.failures(move=True)
        store.forget_failures()  # they are tried again
    spans = missing(have, plan, replicates)
    progress = Progress(plan, replicates, spans)
    loop = _Loop(plan, progress, store, watcher)
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
        in_order(pl.concat([have, *loop.frames]), plan, replicates),
        loop.failures,
        progress.already_stored,
        loop.task_seconds,
    )


def compile_ahead(plans: Sequence[Sequence[Cell]], workers: int | None = None) -> None:
    """Have the local workers compile all learners of several runs, without waiting for it.

    Otherwise a run with one learner that takes a minute would have the other workers idle.
    """
    first: dict[tuple[str, str], Settings] = {}
    for plan in plans:
        for cell in plan:
            first.setdefault((cell.settings.kind, cell.settings.learner), cell.settings)
    engine = open_engine("local", workers)
    slowest_first = sorted(first.values(), key=lambda one: one.kind == "bandits")
    for settings in slowest_first:
        _submitted(engine, task.load, settings)


def _submitted(engine: Engine, function: Callable[..., Any], argument: Any) -> Future[Any]:
    """A future in any case: if submitting fails, the error is found in it later."""
    try:
        return engine.submit(function, argument)
    except Exception as error:
        future: Future[Any] = Future()
        future.set_exception(error)
        return future


def _error_of(future: Future[Any]) -> BaseException | None:
    """Why a future has no result; tasks are cancelled when a cluster is lost."""
    try:
        return future.exception()
    except CancelledError as error:
        return error


class _Loop:
    """Keeps an engine busy with what is missing."""

    def __init__(
        self,
        plan: Sequence[Cell],
        progress: Progress,
        store: Store | None,
        watcher: Watcher | None,
    ) -> None:
        self.frames: list[pl.DataFrame] = []
        self.failures: list[Failure] = []
        self.task_seconds: list[float] = []
        self._plan = plan
        self._progress = progress
        self._store = store
        self._watcher = watcher
        self._queue: deque[Span] = deque()
        self._running: dict[Future[Any], Work] = {}
        self._warming: dict[Future[Any], tuple[list[Settings], list[Span]]] = {}
        self._suspects: deque[Span] = deque()  # ran when a worker died: repeated one at a time
        self._deaths: dict[Span, int] = defaultdict(int)

    def run(self, engine: Engine, spans: Sequence[Span]) -> None:
        self._progress.workers = engine.workers
        self._warm_up(engine, spans)
        while self._running or self._warming or self._queue or self._suspects:
            self._submit(engine)
            self._progress.compiling = len(self._warming)
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

    def _warm_up(self, engine: Engine, spans: Sequence[Span]) -> None:
        """Have each learner compiled by one worker before the others want it from the cache."""
        of_learner: dict[str, list[Span]] = defaultdict(list)
        for span in spans:
            of_learner[self._plan[span.cell].settings.learner].append(span)
        ready = _submitted(engine, task.warm, [])  # start the workers ...
        of_bandits = {
            settings.adversary
            for span in spans
            if (settings := self._plan[span.cell].settings).kind == "bandits"
        }
        for name in of_bandits:
            known("bandits", "adversaries")[name].cls.rows()  # ... and compile this meanwhile
        _error_of(ready)
        for its_spans in of_learner.values():
            sizes: dict[int | str, Settings] = {}
            for span in its_spans:
                settings = self._plan[span.cell].settings
                sizes.setdefault(settings.size, settings)
            future = _submitted(engine, task.warm, list(sizes.values()))
            self._warming[future] = list(sizes.values()), its_spans

    def _warmed(self, future: Future[Any]) -> None:
        settings, spans = self._warming.pop(future)
        if _error_of(future) is None:
            for one, rate in zip(settings, future.result(), strict=True):
                self._progress.measured(one, rate)
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
        self._running[_submitted(engine, task.run, work)] = work
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
            each = self._progress.rate(_group(settings)) * settings.rounds
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
                    "install the same versions of unbounded, Python, NumPy and Numba on both"
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
