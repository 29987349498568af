"""What an experiment is."""

from __future__ import annotations

import pytest

pytest.importorskip("msgspec")

from experiment_helpers import MDP, TEXT
from unbounded.experiments import config
from unbounded.experiments.experiment import Entry


def test_variants_are_every_combination_in_the_order_of_the_file() -> None:
    entry = Entry("SCB", {"clip": ("scale", "range"), "rate": (1.0, 2.0)})
    assert entry.variants() == [
        {"clip": "scale", "rate": 1.0}, {"clip": "scale", "rate": 2.0},
        {"clip": "range", "rate": 1.0}, {"clip": "range", "rate": 2.0},
    ]  # fmt: skip
    assert Entry("AHB").variants() == [{}]


def test_kinds_and_lengths() -> None:
    bandits, mdps = config.loads(TEXT), config.loads(MDP)
    assert (bandits.kind, bandits.lengths) == ("bandits", bandits.rounds)
    assert (mdps.kind, mdps.lengths) == ("MDPs", mdps.episodes)
