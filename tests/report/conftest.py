"""Two experiments, run, and the report on both: shared by the tests of the report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("polars")

import browser_helpers
import report_helpers as helpers
from browser_helpers import Browser
from unbounded import experiments
from unbounded.report import report


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with two experiments, run, and the report on both."""
    out = tmp_path_factory.mktemp("reported")
    for experiment in (helpers.SIZES, helpers.TAILS):
        experiments.run(experiment, out=out / str(experiment["name"]), engine="serial")
    report(out, figures=False)
    return out


@pytest.fixture(scope="session")
def found(reported: Path) -> helpers.Page:
    """Its numbers beside its rows."""
    return helpers.Page(reported)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium."""
    with browser_helpers.started(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest.fixture
def opened(browser: Browser, reported: Path) -> Browser:
    """Chromium with the report."""
    browser.open(reported / "report.html")
    return browser
