"""The page for those who cannot see it or use no pointer: what axe-core says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from browser_helpers import Browser
from unbounded.report import report


@pytest.mark.parametrize(("width", "dark"), [(400, True), (1200, False)])
def test_a_report(browser: Browser, reported: Path, width: int, dark: bool) -> None:
    browser.open(reported / "report.html", width=width, dark=dark)
    assert browser.violations() == []


def test_two_runs_side_by_side(browser: Browser, reported: Path, tmp_path: Path) -> None:
    sizes = reported / "sizes"
    written = report(sizes, sizes, output=tmp_path / "versus.html", figures=False)
    browser.open(written.page)
    assert browser.violations() == []


def test_what_is_wrong_would_be_found(opened: Browser) -> None:
    opened.run(
        "const figure = document.querySelector('figure');"
        "figure.insertAdjacentHTML('beforebegin', '<p style=\"color: #bbb; background: #fff\">"
        'pale</p><button></button><img src="data:,">\')'
    )
    found = {each.split(":")[0] for each in opened.violations()}
    assert found == {"button-name", "color-contrast", "image-alt"}
