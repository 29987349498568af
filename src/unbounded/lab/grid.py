"""An experiment's cells: every combination, each with the key that its results are kept under."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from unbounded.lab.config import ConfigError, Experiment, resolved
from unbounded.lab.names import Registered
from unbounded.lab.reader import FAMILIES
from unbounded.lab.task import Settings, code_version


class Cell(NamedTuple):
    """One combination of an experiment.

    Attributes
    ----------
    key : str
        A hash of the settings and of the code: equal keys, equal results.
    settings : Settings
        What a worker needs; settings that were not given are left out.
    learner_settings, adversary_settings, world_settings : str
        All of them, defaults included, as JSON with sorted keys; bandits have no
        ``world_settings``.
    code : str
        The version of the code that the results come from.
    """

    key: str
    settings: Settings
    learner_settings: str
    adversary_settings: str
    code: str
    world_settings: str | None = None

    @property
    def label(self) -> str:
        """For people: without the settings that were not given."""
        s = self.settings
        size = f"n={s.arms}" if s.world is None else _call(s.world, s.world_settings)
        return (
            f"{_call(s.learner, s.learner_settings)} · "
            f"{_call(s.adversary, s.adversary_settings)} · {size} · T={s.rounds}"
        )


def cells(e: Experiment) -> list[Cell]:
    """The cells of an experiment, each once, in the order of the file.

    Examples
    --------
    from unbounded.lab import config, grid
    >>> e = config.experiment({
    ...     "learners": [{"name": "SCB", "clip": ["scale", "range"]}],
    ...     "adversaries": [{"name": "StochasticGap"}], "arms": 5, "rounds": [100, 1000]})
    >>> for cell in grid.cells(e):
    ...     print(cell.label)
    SCB(clip=scale) · StochasticGap · n=5 · T=100
    SCB(clip=scale) · StochasticGap · n=5 · T=1000
    SCB(clip=range) · StochasticGap · n=5 · T=100
    SCB(clip=range) · StochasticGap · n=5 · T=1000
    """
    kind = "MDPs" if e.worlds else "bandits"
    named = {field: _variants(e, kind, field) for field in FAMILIES[kind]}
    sizes: list[tuple[int | None, str | None, dict[str, Any], str | None]]
    sizes = [(arms, None, {}, None) for arms in e.arms]
    sizes += [(None, *world) for world in named.get("worlds", [])]
    found: dict[str, Cell] = {}
    for adversary, adversary_settings, adversary_json in named["adversaries"]:
        for learner, learner_settings, learner_json in named["learners"]:
            code = code_version(learner, adversary, mdp=bool(e.worlds))
            for arms, world, world_settings, world_json in sizes:
                for rounds in e.lengths:
                    settings = Settings(
                        learner, learner_settings, adversary, adversary_settings,
                        arms, rounds, e.checkpoints, e.pseudo_regret, e.seed,
                        world, world_settings,
                    )  # fmt: skip
                    whole = (
                        learner, learner_json, adversary, adversary_json,
                        arms if world is None else (world, world_json),
                        rounds, e.checkpoints, e.pseudo_regret, e.seed, code,
                    )  # fmt: skip
                    key = hashlib.sha256(msgspec.json.encode(whole)).hexdigest()[:24]
                    cell = Cell(key, settings, learner_json, adversary_json, code, world_json)
                    found.setdefault(key, cell)
    return list(found.values())


def _variants(e: Experiment, kind: str, field: str) -> list[tuple[str, dict[str, Any], str]]:
    """Name, settings, and all settings as JSON, of each thing that ``field`` lists."""
    known = FAMILIES[kind][field]()
    return [
        (entry.name, settings, _json(known[entry.name], settings))
        for entry in getattr(e, field)
        for settings in entry.variants()
    ]


def _json(known: Registered, settings: Mapping[str, Any]) -> str:
    try:
        return msgspec.json.encode(resolved(known, settings), order="deterministic").decode()
    except TypeError as error:
        raise ConfigError(
            f"{known.name} has a setting that an experiment cannot keep: {error}"
        ) from None


def _call(name: str, settings: Mapping[str, Any]) -> str:
    if not settings:
        return name
    return f"{name}({', '.join(f'{key}={_brief(value)}' for key, value in settings.items())})"


def _brief(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 24 else f"{text[:21]}..."
