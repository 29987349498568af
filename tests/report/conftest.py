"""Two experiments, run, and the report on both: shared by the tests of the report."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("polars")

import report_helpers as helpers
from unbounded import lab
from unbounded.report import report


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with two experiments, run, and the report on both."""
    out = tmp_path_factory.mktemp("reported")
    for experiment in (helpers.SIZES, helpers.TAILS):
        lab.run(experiment, out=out / str(experiment["name"]), engine="serial")
    report(out, figures=False)
    return out


@pytest.fixture(scope="session")
def found(reported: Path) -> helpers.Page:
    """Its numbers beside its rows."""
    return helpers.Page(reported)
