"""What an experiment is: a frozen record, made and checked by `unbounded.experiments.config`."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec

from unbounded.experiments.names import Kind

VIEWS = (
    "ranking", "time", "rounds", "arms", "states", "actions", "scale", "shift", "slopes",
    "quantiles", "thresholds", "best", "dynamic", "explored", "reach", "heatmap", "bounds",
    "paired",
)  # fmt: skip
"""What a report can show of an experiment, in the order in which it does by itself."""


class ConfigError(ValueError):
    """An error in an experiment: where, what is wrong, and the remedy."""


class Entry(msgspec.Struct, frozen=True):
    """A name, and for each setting the values that it takes."""

    name: str
    settings: dict[str, tuple[Any, ...]] = {}

    def variants(self) -> list[dict[str, Any]]:
        """Return every combination of the values."""
        combinations = itertools.product(*self.settings.values())
        return [dict(zip(self.settings, values, strict=True)) for values in combinations]


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """Learners x adversaries x sizes x lengths, each combination played ``replicates`` times.

    Of bandits the size is ``arms`` and the length ``rounds``; of MDPs they are ``worlds`` and
    ``episodes``. One of the two pairs is empty.

    Made by `unbounded.experiments.config.load` from a file or by
    `unbounded.experiments.config.experiment` from a dict, which check it.

    Attributes
    ----------
    learners, adversaries : tuple of Entry
    arms, rounds : tuple of int
    worlds : tuple of Entry
    episodes : tuple of int
    name : str
        Letters, digits, ``.``, ``_`` and ``-``; by default that of the file.
    title, claim : str
        For people: what is looked at, and what should be seen. Results do not depend on them.
    views : tuple of str
        What a report should show: some of ``VIEWS``.
    replicates : int
        Replicate r has the same losses and the same random words in every cell.
    seed : int
        The root of all randomness.
    checkpoints : int or tuple of int
        At which rounds to record; an int means that many, log-spaced, the last included.
    pseudo_regret : bool
        Whether to follow pseudo-regret too, which costs a pass over the arms per round. MDPs
        always have it.
    dynamic : bool
        Whether to follow dynamic regret, against the best arm of each round; of bandits.
    switches : int, optional
        Follow also regret against the best sequence of arms with at most so many switches.

    Examples
    --------
    >>> from unbounded.experiments.config import experiment
    >>> both = {"learners": [{"name": "SCB"}], "adversaries": [{"name": "Switch"}]}
    >>> experiment({**both, "name": "one", "arms": [10], "rounds": [1000]}).replicates
    10
    """

    learners: tuple[Entry, ...]
    adversaries: tuple[Entry, ...]
    arms: tuple[int, ...] = ()
    rounds: tuple[int, ...] = ()
    worlds: tuple[Entry, ...] = ()
    episodes: tuple[int, ...] = ()
    name: str = ""
    title: str = ""
    claim: str = ""
    views: tuple[str, ...] = ()
    replicates: int = 10
    seed: int = 0
    checkpoints: int | tuple[int, ...] = 20
    pseudo_regret: bool = True
    dynamic: bool = False
    switches: int | None = None

    @property
    def kind(self) -> Kind:
        """Whose learners and adversaries it names."""
        return "MDPs" if self.worlds else "bandits"

    @property
    def lengths(self) -> tuple[int, ...]:
        """``rounds``, or ``episodes``."""
        return self.rounds or self.episodes
