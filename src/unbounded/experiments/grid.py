"""An experiment's cells, each with the key of its results, and the rows that come of them.

The key of a cell contains a hash of this file (`unbounded.experiments.task.code_version`).
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from unbounded import __version__
from unbounded.experiments import names
from unbounded.experiments.experiment import VIEWS, ConfigError, Experiment
from unbounded.experiments.names import Field
from unbounded.experiments.provenance import content_hash, named_file
from unbounded.experiments.registered import Registered
from unbounded.experiments.task import Outcome, Settings, code_version


class Cell(NamedTuple):
    """One combination of an experiment; bandits have no world."""

    key: str  # a hash of the settings and of the code: equal keys, equal results
    settings: Settings  # what a worker needs; settings that were not given are left out
    code: str  # the version of the code that the results come from
    learner_settings: str  # all of them, defaults included, as JSON with sorted keys
    adversary_settings: str
    world_settings: str | None = None
    states: int | None = None  # the size of the world
    actions: int | None = None
    horizon: int | None = None

    @property
    def label(self) -> str:
        """Without the settings that were not given, for people."""
        s = self.settings
        size = f"n={s.arms}" if s.world is None else _call(s.world, s.world_settings)
        return (
            f"{_call(s.learner, s.learner_settings)} · "
            f"{_call(s.adversary, s.adversary_settings)} · {size} · T={s.rounds}"
        )

    @property
    def columns(self) -> dict[str, Any]:
        """What every row of results says of its cell, but for the key and the code."""
        s = self.settings
        return {
            "learner": s.learner,
            "learner_settings": self.learner_settings,
            "adversary": s.adversary,
            "adversary_settings": self.adversary_settings,
            "arms": s.arms,
            "world": s.world,
            "world_settings": self.world_settings,
            "states": self.states,
            "actions": self.actions,
            "horizon": self.horizon,
            "rounds": s.rounds,
            "seed": s.seed,
        }


class Described(msgspec.Struct, frozen=True):
    """What a report says of somebody's own learner, adversary or world, without importing it."""

    defaults: dict[str, Any]
    reference: str
    origin: str


class Plan(msgspec.Struct, frozen=True):
    """Return what is stored beside results, so that reading them imports nothing."""

    experiment: Experiment
    cells: list[Cell]
    foreign: dict[Field, dict[str, Described]]

    def known(self, field: Field) -> dict[str, Registered | Described]:
        """Return what the package has in a field, and what the experiment has named beside it."""
        return {**names.known(self.experiment.kind, field).ours, **self.foreign.get(field, {})}


def plan_of(e: Experiment, cells: Sequence[Cell]) -> Plan:
    """Make the plan of an experiment that is about to be run."""
    foreign: dict[Field, dict[str, Described]] = {}
    for field in names.FAMILIES[e.kind]:
        found = (names.known(e.kind, field)[entry.name] for entry in getattr(e, field))
        foreign[field] = {
            one.name: Described(one.defaults, one.reference, one.origin)
            for one in found
            if one.package
        }
    return Plan(e, list(cells), foreign)


def encoded(plan: Plan) -> bytes:
    """Write a plan as JSON."""
    return msgspec.json.encode(plan, enc_hook=repr)  # a default may be anything


def decoded(content: bytes) -> Plan:
    """Read a plan; raise a ValueError if it is none."""
    plan = msgspec.json.decode(content, type=Plan)
    e = plan.experiment
    if not plan.cells or any(view not in VIEWS for view in e.views):
        raise ValueError("it has no cells, or views that there are not")
    cells = [one._replace(settings=one.settings._replace(checkpoints=e.checkpoints))
             for one in plan.cells]  # fmt: skip
    return msgspec.structs.replace(plan, cells=cells)


def made_otherwise(cell: Cell) -> bool:
    """Whether the package's code has changed since a cell was planned; of other code, say no."""
    s = cell.settings
    given = (s.learner_settings, s.adversary_settings, s.world_settings)
    named = {"learners": s.learner, "adversaries": s.adversary, "worlds": s.world}
    ours = all(named[field] in names.known(s.kind, field).ours for field in names.FAMILIES[s.kind])
    return ours and not any("path" in one for one in given) and code_version(s) != cell.code


class _Size(NamedTuple):
    """The size of what is played: a number of arms, or an MDP."""

    arms: int | None
    world: str | None
    world_settings: dict[str, Any]
    world_json: str | None = None
    states: int | None = None
    actions: int | None = None
    horizon: int | None = None


def cells(e: Experiment) -> list[Cell]:
    """Return the cells of an experiment, each once, in the order of the file."""
    learners = _variants(e, "learners")
    sizes = [_Size(arms, None, {}) for arms in e.arms] or _worlds(e)
    found: dict[str, Cell] = {}
    for adversary, adversary_settings, adversary_json in _variants(e, "adversaries"):
        for learner, learner_settings, learner_json in learners:
            for size in sizes:
                for rounds in e.lengths:
                    settings = Settings(
                        learner, learner_settings, adversary, adversary_settings,
                        size.arms, rounds, e.checkpoints, e.pseudo_regret, e.seed,
                        size.world, size.world_settings, e.dynamic, e.switches,
                    )  # fmt: skip
                    code = code_version(settings)
                    whole = (
                        learner, learner_json, adversary, adversary_json,
                        size.arms if size.world is None else (size.world, size.world_json),
                        rounds, e.checkpoints, e.pseudo_regret, e.dynamic, e.switches, e.seed, code,
                    )  # fmt: skip
                    key = hashlib.sha256(msgspec.json.encode(whole)).hexdigest()[:24]
                    cell = Cell(
                        key, settings, code, learner_json, adversary_json,
                        size.world_json, size.states, size.actions, size.horizon,
                    )  # fmt: skip
                    found.setdefault(key, cell)
    return list(found.values())


def _worlds(e: Experiment) -> list[_Size]:
    """Return every world, built once to learn its size."""
    sizes = []
    for name, settings, text in _variants(e, "worlds"):
        layers = names.world(name, settings).layers
        shape = sum(layers.sizes), layers.n_actions, layers.horizon
        sizes.append(_Size(None, name, settings, text, *shape))
    return sizes


def _variants(e: Experiment, field: Field) -> list[tuple[str, dict[str, Any], str]]:
    """Name, settings, and all settings as JSON, of each thing that ``field`` lists."""
    known = names.known(e.kind, field)
    return [
        (entry.name, settings, _json(known[entry.name], settings))
        for entry in getattr(e, field)
        for settings in entry.variants()
    ]


def _json(known: Registered, settings: Mapping[str, Any]) -> str:
    try:
        whole = known.defaults | dict(settings)
        if file := named_file(whole):  # it is what is in it, wherever it lies
            whole |= {"path": Path(file).name, "content": content_hash(file)}
        return msgspec.json.encode(whole, order="deterministic").decode()
    except TypeError as error:
        raise ConfigError(
            f"{known.name} has a setting that an experiment cannot keep: {error}"
        ) from None


def _call(name: str, settings: Mapping[str, Any]) -> str:
    if not settings:
        return name
    return f"{name}({', '.join(f'{key}={_brief(value)}' for key, value in settings.items())})"


def _brief(value: Any) -> str:
    value = list(value) if isinstance(value, tuple) else value  # as JSON gives it back
    text = f"{value:g}" if isinstance(value, float) else str(value)
    if os.path.isabs(text):  # of a file
        text = Path(text).name
    return text if len(text) <= 24 else f"{text[:21]}..."


_TEXT = pl.Categorical
SCHEMA: dict[str, Any] = {
    "cell": _TEXT,
    "learner": _TEXT,
    "learner_settings": _TEXT,
    "adversary": _TEXT,
    "adversary_settings": _TEXT,
    "arms": pl.Int64,
    "world": _TEXT,
    "world_settings": _TEXT,
    "states": pl.Int64,
    "actions": pl.Int64,
    "horizon": pl.Int64,
    "rounds": pl.Int64,
    "seed": pl.Int64,
    "replicate": pl.Int64,
    "round": pl.Int64,
    "regret": pl.Float64,
    "pseudo_regret": pl.Float64,
    "relative_regret": pl.Float64,
    "relative_pseudo_regret": pl.Float64,
    "dynamic_regret": pl.Float64,
    "relative_dynamic_regret": pl.Float64,
    "dynamic_pseudo_regret": pl.Float64,
    "switching_regret": pl.Float64,
    "relative_switching_regret": pl.Float64,
    "best_probability": pl.Float64,
    "best_changes": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "clipped": pl.Int64,
    "threshold": pl.Float64,
    "explored": pl.Int64,
    "reach": pl.Float64,
    "code": _TEXT,
    "versions": _TEXT,
    "seconds": pl.Float64,
    "finished": pl.Datetime("ms", "UTC"),
}
"""The columns of results. ``seconds`` is the computing time of the replicate."""

TIMING = ("seconds", "finished")
"""The columns that differ between equal runs."""


@cache
def versions() -> str:
    """Of the package and of what its numbers depend on."""
    below = f"Python {platform.python_version()}, NumPy {np.__version__}"
    return f"unbounded {__version__}, {below}, Numba {version('numba')}"


def frame_of(outcomes: Iterable[Outcome], plan: Sequence[Cell]) -> pl.DataFrame:
    """Return rows, one for each replicate and checkpoint, of outcomes that did not fail."""
    frames = [_rows(outcome, plan[outcome.span.cell]) for outcome in outcomes]
    return pl.concat(frames) if frames else pl.DataFrame(schema=SCHEMA)


def _rows(outcome: Outcome, cell: Cell) -> pl.DataFrame:
    first, count = outcome.span.first, outcome.span.replicates
    height = count * outcome.rounds.size
    constant: dict[str, Any] = {
        "cell": cell.key,
        **cell.columns,
        "code": outcome.code,
        "versions": versions(),
        "seconds": outcome.seconds / count,
        "finished": datetime.now(UTC),
    }
    changing = {
        "replicate": np.repeat(np.arange(first, first + count), outcome.rounds.size),
        "round": np.tile(outcome.rounds, count),
        **{name: values.ravel() for name, values in outcome.columns.items()},
    }

    def series(name: str) -> pl.Series:
        if name in changing:  # before its exploration is over a learner has no reach: null
            values = changing[name]
            return pl.Series(name, values, dtype=SCHEMA[name], nan_to_null=name == "reach")
        # What was not followed, or what a learner does not have, is null too.
        one = pl.Series(name, [constant.get(name)], dtype=SCHEMA[name])
        return one.new_from_index(0, height)

    return pl.DataFrame([series(name) for name in SCHEMA])
