"""The tables of a report for LaTeX: the numbers of the page, escaped."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("polars")

from unbounded.cli.app import main
from unbounded.report import contents, report


def tables(text: str) -> list[tuple[str, list[list[str]]]]:
    """Columns and rows of every table in a file."""
    found = re.findall(r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}", text, re.DOTALL)
    return [
        (columns, [re.split(r" (?<!\\)& ", row.strip()[:-2].strip()) for row in rows])
        for columns, body in found
        for rows in [[line for line in body.splitlines() if line.endswith(r"\\")]]
    ]


def test_tables_have_the_numbers_of_the_page(reported, tmp_path):
    written = report(reported, output=tmp_path / "page.html", figures=False, latex=True)
    names = {path.name for path in written.tables}
    assert {"sizes-ranking.tex", "sizes-heatmap.tex", "tails-bounds.tex"} <= names
    for path in written.tables:
        for columns, rows in tables(path.read_text(encoding="utf-8")):
            assert {len(row) for row in rows} == {len(columns)}, path
    chart = contents(reported).sections[0].charts[0]
    panel = chart.panels[chart.start]
    [_, *rows] = tables((tmp_path / "tables" / "sizes-ranking.tex").read_text("utf-8"))[0][1]
    assert [row[1] for row in rows] == [f"{one.mean[0]:.3g}" for one in panel.series]
    assert len(set(re.findall(r"\\label\{(.*?)\}", path.read_text("utf-8")))) >= 1


def test_the_command_writes_them_when_asked(reported, tmp_path, capsys):
    page = str(tmp_path / "page.html")
    assert main(["report", str(reported), "--output", page, "--no-figures"]) == 0
    assert not (tmp_path / "tables").exists()  # the control
    assert main(["report", str(reported), "--output", page, "--no-figures", "--latex"]) == 0
    assert f"tables: {tmp_path / 'tables'}" in capsys.readouterr().out
