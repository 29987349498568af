"""The work of one process: play some replicates of some cells, and return arrays.

Workers import this module and not the rest of `unbounded.experiments`, so that they start fast and
need neither the disk nor its formats. Only numbers, strings and arrays travel.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import unbounded.settings as package_settings
from unbounded.experiments import names, provenance
from unbounded.experiments.names import TRUE, Kind, known
from unbounded.jit.schedule import Code
from unbounded.settings import chosen_jit
from unbounded.simulation import bandit_loops
from unbounded.simulation.bandit import simulate
from unbounded.validation import recorded_rounds

Array = NDArray[Any]


class Span(NamedTuple):
    """Replicates ``first``, ``first + 1``, ... of one cell."""

    cell: int  # its position in the plan
    first: int
    replicates: int


class Settings(NamedTuple):
    """All that the results of a cell depend on, the code apart.

    Of an MDP, ``arms`` is None and ``rounds`` are the episodes; of a bandit, ``world`` is None.
    """

    learner: str
    learner_settings: Mapping[str, Any]
    adversary: str
    adversary_settings: Mapping[str, Any]
    arms: int | None
    rounds: int
    checkpoints: int | Sequence[int]
    pseudo_regret: bool
    seed: int
    world: str | None = None
    world_settings: Mapping[str, Any] = MappingProxyType({})
    dynamic: bool = False
    switches: int | None = None

    @property
    def kind(self) -> Kind:
        """Whose learner and adversary it names."""
        return "bandits" if self.world is None else "MDPs"

    @property
    def watched(self) -> bool:
        """Whether dynamic regret is followed."""
        return self.dynamic or self.switches is not None

    @property
    def files(self) -> list[str]:
        """The files that it names by settings called ``path``."""
        every = (self.learner_settings, self.adversary_settings, self.world_settings)
        return [path for settings in every if (path := provenance.named_file(settings))]

    @property
    def size(self) -> int | str:
        """What the speed of a round depends on, beside the learner and the adversary."""
        if self.arms is not None:
            return self.arms
        return f"{self.world} {sorted(self.world_settings.items())}"


Work = list[tuple[Span, Settings]]


class Outcome(NamedTuple):
    """What came of a span: either arrays or an error."""

    span: Span
    code: str
    seconds: float
    rounds: Array  # (checkpoints,)
    columns: Mapping[str, Array]  # each of shape (count, checkpoints)
    error: str = ""
    traceback: str = ""
    compiling: float = 0.0  # seconds before the play, of compiling or loading what it needs


class Warmed(NamedTuple):
    """Return what is known of a cell before it is run."""

    seconds_per_round: float
    compiling: float  # seconds


def code_version(settings: Settings) -> str:
    """Hash all that a result comes from: sources, versions, and the files that it names."""
    named = [
        known(settings.kind, "learners")[settings.learner],
        known(settings.kind, "adversaries")[settings.adversary],
    ]
    if settings.world is not None:
        named.append(known("MDPs", "worlds")[settings.world])
    modules: list[str] = []
    foreign: list[str] = []
    for one in named:
        if one.package:
            digest, ours = provenance.sources_of(one.module)
            foreign.append(digest)
            modules += ours
        else:
            modules.append(one.module)
    sources = _code_version(settings.kind, tuple(modules), tuple(foreign))
    if not settings.files:
        return sources
    contents = "".join(provenance.content_hash(path) for path in settings.files)
    return hashlib.sha256(f"{sources} {contents}".encode()).hexdigest()[:16]


_Code = tuple[Kind, tuple[str, ...], tuple[str, ...]]
_versions: dict[_Code, str] = {}  # parsing the sources takes most of a second: once for all workers


def _code_version(kind: Kind, modules: tuple[str, ...], foreign: tuple[str, ...]) -> str:
    code = kind, modules, foreign
    if code in _versions:
        return _versions[code]
    provenance.fingerprint()  # before parsing: of files that change in between, the older one
    digest = hashlib.sha256("".join(foreign).encode())
    for module in [*modules, *_SIMULATORS[kind]]:
        digest.update(provenance.package_hash(module).encode())
    for name in _COLUMNS:
        digest.update(provenance.module_digest(f"unbounded.experiments.{name}"))
    return _versions.setdefault(code, digest.hexdigest()[:16])


class Parsed(NamedTuple):
    """The versions of the code that a process has found, and the `fingerprint` of its files."""

    fingerprint: str
    versions: Mapping[_Code, str]


def parsed() -> Parsed:
    """Return what spares workers from parsing the same files."""
    return Parsed(provenance.fingerprint(), dict(_versions))


def run_with(parsed: Parsed, run: Callable[[Work], list[Outcome]], work: Work) -> list[Outcome]:
    """Run work; parse nothing if the files here are those that were parsed."""
    if parsed.fingerprint == provenance.fingerprint():
        _versions.update(parsed.versions)
    return run(work)


# What makes columns of a play, of this directory. Named here, and not found by their imports: those
# lead to all of `unbounded.experiments`, and an edit of the display should not run anything again.
_COLUMNS = ("grid", "names", "task")
_SIMULATORS: Mapping[Kind, tuple[str, ...]] = {
    "bandits": ("unbounded.simulation.bandit",),
    "MDPs": ("unbounded.worlds", "unbounded.simulation.mdp"),
}


def run(work: Work) -> list[Outcome]:
    """Play each span; one that fails does not stop the others."""
    return [_outcome(span, settings) for span, settings in work]


def _outcome(span: Span, settings: Settings) -> Outcome:
    started = time.perf_counter()
    try:
        code = code_version(settings)
        compiling = load(settings)
        started = time.perf_counter()
        columns = play(settings, span.first, span.replicates)
        seconds = time.perf_counter() - started
        rounds = recorded_rounds(settings.checkpoints, settings.rounds)
        return Outcome(span, code, seconds, rounds, columns, compiling=compiling)
    except Exception as error:  # whatever it is, it is recorded as the result of this span
        notes = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
        text = f"{type(error).__name__}: {error}{notes}"
        return failed(span, text, traceback.format_exc(), time.perf_counter() - started)


def failed(span: Span, error: str, trace: str = "", seconds: float = 0.0) -> Outcome:
    """Return the outcome of a span that has no results."""
    return Outcome(span, "", seconds, np.empty(0), {}, error, trace)


def play(settings: Settings, first: int, count: int) -> dict[str, Array]:
    """Columns of replicates ``first`` .. ``first + count - 1`` of a cell."""
    learner, given = settings.learner, settings.learner_settings
    if given.get("loss_range") != TRUE:
        columns: dict[str, Array] = _simulated(settings, learner, given, first, count).columns()
        return columns
    parts = [
        _simulated(settings, learner, _told(settings, r), r, 1).columns()
        for r in range(first, first + count)
    ]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _simulated(settings: Settings, name: str, given: Any, first: int, count: int) -> Any:
    """Play the learner of this name with the settings that it is given."""
    play: Any
    if settings.kind == "bandits":
        play = partial(
            simulate, pseudo_regret=settings.pseudo_regret, dynamic=settings.dynamic,
            switches=settings.switches,
        )  # fmt: skip
        played: Any = (known("bandits", "learners")[name].cls(settings.arms, **given),)
    else:
        from unbounded.simulation.mdp import simulate_mdp  # late: bandits need not wait for it

        play, mdp = simulate_mdp, _world(settings)
        played = names.mdp_learner(name, given, mdp, settings.rounds), mdp
    return play(
        *played, _adversary(settings), settings.rounds, count, settings.seed,
        first_replicate=first, checkpoints=settings.checkpoints, workers=1,
    )  # fmt: skip


def _adversary(settings: Settings) -> Any:
    cls = known(settings.kind, "adversaries")[settings.adversary].cls
    return cls(**settings.adversary_settings)


def _world(settings: Settings) -> Any:
    assert settings.world is not None
    return names.world(settings.world, settings.world_settings)


def _told(settings: Settings, replicate: int) -> dict[str, Any]:
    """The learner's settings with the range of the losses of one replicate, as uniform play has it.

    Losses do not depend on the learner, unless the adversary looks at it; then the range is what
    it did to uniform play, in an MDP for every layer what it did in any.
    """
    last = settings._replace(
        checkpoints=[settings.rounds], pseudo_regret=False, dynamic=False, switches=None
    )
    bandits = settings.kind == "bandits"
    met = _simulated(last, "Uniform" if bandits else "UniformPolicy", {}, replicate, 1)
    low, high = met.low[0, -1], met.high[0, -1]
    if not bandits and getattr(_adversary(settings), "looks", True):
        low, high = np.full_like(low, low.min()), np.full_like(high, high.max())
    ends = zip(np.atleast_1d(low).tolist(), np.atleast_1d(high).tolist(), strict=True)
    told = [_wide(*pair) for pair in ends]
    return names.without_true(settings.learner_settings, told[0] if bandits else told)


def _wide(low: float, high: float) -> tuple[float, float]:
    """Learners reject an empty range."""
    return low, high if high > low else low + max(1.0, abs(low))


def begin_work(driver: int) -> None:
    """At the start of a worker: its driver tells the user what it does, and it ends with that
    process, even by kill -9."""

    def watch() -> None:
        while os.getppid() == driver:
            time.sleep(1.0)
        os._exit(1)

    package_settings.messages = False
    threading.Thread(target=watch, daemon=True).start()


def warm(cells: Sequence[tuple[Settings, int]]) -> list[Warmed]:
    """Compile what these cells need, if so many rounds of each pay for it, and measure a round."""
    return [_warmed(settings, rounds) for settings, rounds in cells]


def _warmed(settings: Settings, rounds: int) -> Warmed:
    compiling = load(settings)
    seconds = _seconds_per_round(settings)
    missing = [part for part in _parts(settings) if not part.loaded]
    if chosen_jit() == "auto" and seconds * rounds > sum(part.seconds for part in missing):
        started = time.perf_counter()
        for part in missing:
            part.compile()
        compiling += time.perf_counter() - started
        seconds = _seconds_per_round(settings) if missing else seconds
    return Warmed(seconds, compiling)


def _parts(settings: Settings) -> list[Code]:
    """Return what is compiled for a cell."""
    given = names.without_true(settings.learner_settings)
    if settings.kind == "bandits":
        learner = known("bandits", "learners")[settings.learner].cls(settings.arms, **given)
        return bandit_loops.parts_of(learner, _adversary(settings), watched=settings.watched)
    from unbounded.simulation import mdp_loops

    mdp = _world(settings)
    told = names.mdp_learner(settings.learner, given, mdp, settings.rounds)
    return mdp_loops.parts_of(told, mdp, _adversary(settings))


def seconds_to_compile(kind: Kind, learner: str) -> float:
    """Estimate the seconds to compile a learner, if that is not cached."""
    return float(known(kind, "learners")[learner].cls.spec.seconds_to_compile)


# Learners, adversaries, numbers of arms, and with dynamic regret or not: what this process has run.
_loaded: set[tuple[Kind, str, str, int | None, bool]] = set()


def load(settings: Settings) -> float:
    """Play a cell for a moment, if its like was not played before, so that what is compiled or
    loaded for that is not timed with it; returns the seconds."""
    started = time.perf_counter()
    like = settings.kind, settings.learner, settings.adversary, settings.arms, settings.watched
    if like not in _loaded:
        rounds = _few(settings)
        play(settings._replace(rounds=rounds, checkpoints=[rounds]), 0, 1)
        _loaded.add(like)
    return time.perf_counter() - started


def _few(settings: Settings) -> int:
    """Rounds that are soon over, and enough for an MDP to be explored and played."""
    least = 32 if settings.kind == "bandits" else 8 * sum(_world(settings).layers.sizes)
    return min(least, settings.rounds)


def _seconds_per_round(settings: Settings) -> float:
    """Return what a round costs, without what a play costs whatever its length."""
    rounds = few = _few(settings)
    fixed = more = _seconds(settings, few)
    while rounds < settings.rounds:
        rounds = min(4 * rounds, settings.rounds)
        more = _seconds(settings, rounds) - fixed
        if more > max(0.01, fixed):
            return more / (rounds - few)
    return max(more, 1e-9) / rounds  # too short to tell


def _seconds(settings: Settings, rounds: int) -> float:
    started = time.perf_counter()
    play(settings._replace(rounds=rounds, checkpoints=[rounds]), 0, 1)
    return time.perf_counter() - started
