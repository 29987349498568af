"""The page as text: nothing in it breaks it, and nothing is loaded."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("polars")

import report_helpers as helpers
from unbounded.report import contents, page
from unbounded.report.model import Chart


def test_text_cannot_break_the_page(reported, tmp_path):
    evil = "<b>&\"'</script><script>alert(1)</script><!--"
    made = contents(reported)
    made.title = evil
    section = made.sections[0]
    section.title, section.claim, section.warnings = evil, [evil, "second"], [evil]
    section.command = section.experiment = evil
    section.charts[0].title = section.charts[0].note = evil
    made.learners[0] = evil
    section.charts[0].panels[0].keys["adversary"] = evil
    text = page.html(made)
    assert text.count("<script") == text.count("</script>") == 2
    assert "alert(1)</script>" not in text
    assert "<b>" not in text
    assert "<p>second</p>" in text
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    data = helpers.embedded(tmp_path / "page.html")
    assert data["learners"][0] == evil
    assert data["sections"][0]["charts"][0]["panels"][0]["keys"]["adversary"] == evil


def test_nothing_is_loaded(reported):
    text = (reported / "report.html").read_text(encoding="utf-8")
    followed = re.compile(r'<a href="https://arxiv\.org/abs/[\d.]+">')  # by a click only
    assert followed.search(text)
    assert not re.findall(r"""(?:src|href)\s*=\s*["']?[^"'#\s]""", followed.sub("", text))
    assert not re.findall(r"@import|url\((?!#)", text)
    assert "default-src 'none'" in text


def test_links_to_the_figures(reported):
    made = contents(reported)
    text = page.html(made, figures=["figures/a <b>-time.svg", "figures/a <b>-time.pdf"])
    links = re.findall(r'<a href="(figures/[^"]*)">(\w+)</a>', text)
    assert links == [
        ("figures/a%20%3Cb%3E-time.pdf", "PDF"), ("figures/a%20%3Cb%3E-time.svg", "SVG"),
    ]  # fmt: skip
    assert "a &lt;b&gt;-time: " in text
    assert "Figures for print" not in page.html(made)


@pytest.mark.parametrize(
    ("kinds", "alone"),
    [
        (["dots", "lines", "lines", "heat", "lines"], [False, False, True, True, True]),
        (["dots", "heat", "paired", "lines", "none"], [True, True, True, False, False]),
        ([], []),
    ],
)
def test_no_chart_stands_beside_an_empty_place(kinds, alone):
    charts = [Chart("time", "", "", kind) for kind in kinds]
    assert page._alone(charts) == alone
