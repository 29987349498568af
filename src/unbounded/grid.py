"""An experiment's cells: every combination, each with the key that its results are kept under."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from unbounded.config import ConfigError, Experiment, resolved
from unbounded.registry import Registered, adversaries, learners
from unbounded.task import Settings, code_version


class Cell(NamedTuple):
    """One combination of an experiment.

    Attributes
    ----------
    key : str
        A hash of the settings and of the code: equal keys, equal results.
    settings : Settings
        What a worker needs; settings that were not given are left out.
    learner_settings, adversary_settings : str
        All of them, defaults included, as JSON with sorted keys.
    code : str
        The version of the code that the results come from.
    """

    key: str
    settings: Settings
    learner_settings: str
    adversary_settings: str
    code: str

    @property
    def label(self) -> str:
        """For people: without the settings that were not given."""
        s = self.settings
        return (
            f"{_call(s.learner, s.learner_settings)} · "
            f"{_call(s.adversary, s.adversary_settings)} · n={s.arms} · T={s.rounds}"
        )


def cells(e: Experiment) -> list[Cell]:
    """The cells of an experiment, each once, in the order of the file.

    Examples
    --------
    >>> from unbounded import config, grid
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
    played = [
        (entry.name, settings, _json(learners()[entry.name], settings))
        for entry in e.learners
        for settings in entry.variants()
    ]
    faced = [
        (entry.name, settings, _json(adversaries()[entry.name], settings))
        for entry in e.adversaries
        for settings in entry.variants()
    ]
    found: dict[str, Cell] = {}
    for adversary, adversary_settings, adversary_json in faced:
        for learner, learner_settings, learner_json in played:
            code = code_version(learner, adversary)
            for arms in e.arms:
                for rounds in e.rounds:
                    settings = Settings(
                        learner, learner_settings, adversary, adversary_settings,
                        arms, rounds, e.checkpoints, e.pseudo_regret, e.seed,
                    )  # fmt: skip
                    whole = (
                        learner, learner_json, adversary, adversary_json,
                        arms, rounds, e.checkpoints, e.pseudo_regret, e.seed, code,
                    )  # fmt: skip
                    key = hashlib.sha256(msgspec.json.encode(whole)).hexdigest()[:24]
                    cell = Cell(key, settings, learner_json, adversary_json, code)
                    found.setdefault(key, cell)
    return list(found.values())


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
