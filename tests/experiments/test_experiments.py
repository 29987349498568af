"""The experiments that come with the package can be run, and say what they are about."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("msgspec")

from unbounded import experiments
from unbounded.experiments import config, grid

DIRECTORY = Path(__file__).resolve().parents[2] / "experiments"
PAPER = sorted(DIRECTORY.glob("paper/*.toml"))


def rounds(e: experiments.Experiment) -> int:
    return sum(cell.settings.rounds for cell in grid.cells(e)) * e.replicates


@pytest.mark.parametrize("path", PAPER, ids=lambda path: path.stem)
def test_a_claim_is_stated_and_can_be_looked_at_quickly(path: Path) -> None:
    e = config.load(path)
    assert e.name == path.stem
    assert e.title
    assert "Measured: " in e.claim
    assert e.views
    assert rounds(config.load(path, quick=True)) < 0.2 * rounds(e)


def test_the_whole_directory_is_read() -> None:
    jobs = experiments.jobs(DIRECTORY / "paper", quick=True)
    assert len(jobs) == len(PAPER) > 10
    assert jobs[0].store.directory.parts[:2] == ("out", "paper-quick")


def test_the_other_experiments_are_read() -> None:
    others = [*DIRECTORY.glob("*.toml"), *DIRECTORY.glob("tour/*.toml")]
    others += DIRECTORY.glob("costs/*.toml")
    assert len(others) > 3
    for path in others:
        assert grid.cells(config.load(path))
