"""The report as a user meets it: the command, what it writes, and what it says of mistakes."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

pytest.importorskip("cyclopts")
pytest.importorskip("polars")


import report_helpers as helpers
from unbounded.cli import app as cli
from unbounded.report import report

FIGURES = ("ranking", "time", "slopes", "quantiles", "thresholds")  # of the experiment "tails"


def test_command_line(reported, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(reported / "tails", "out/tails")
    before = set(Path().rglob("*"))
    assert cli.main(["report", "out/tails"]) == 0
    assert "The page: out/tails/report.html" in capsys.readouterr().out
    new = {str(path) for path in set(Path().rglob("*")) - before}
    figures = {f"out/tails/figures/tails-{v}.{kind}" for v in FIGURES for kind in ("svg", "pdf")}
    assert new == {"out/tails/report.html", "out/tails/figures", *figures}
    first = {path: Path(path).read_bytes() for path in [*figures, "out/tails/report.html"]}
    assert all(first[path].startswith(b"%PDF") for path in figures if path.endswith("pdf"))
    assert cli.main(["report", "out/tails", "--output", "other/page.html", "--no-figures"]) == 0
    assert [str(path) for path in Path("other").rglob("*")] == ["other/page.html"]
    assert cli.main(["report", "out/tails"]) == 0
    assert all(Path(path).read_bytes() == content for path, content in first.items())


def test_nothing_to_report_on(tmp_path, capsys):
    assert cli.main(["report", str(tmp_path / "nowhere")]) == 2
    assert "is not a directory" in capsys.readouterr().err
    assert cli.main(["report", str(tmp_path)]) == 2
    assert "there is no experiment.toml" in capsys.readouterr().err
    helpers.keep(helpers.TAILS, tmp_path)
    before = set(tmp_path.rglob("*"))
    assert cli.main(["report", str(tmp_path)]) == 2
    assert "no results are stored" in capsys.readouterr().err
    assert set(tmp_path.rglob("*")) == before
    (tmp_path / "plan.json").unlink()
    assert cli.main(["report", str(tmp_path)]) == 2
    assert "plan.json cannot be read" in capsys.readouterr().err


def test_two_experiments_of_one_name(reported, tmp_path):
    for name in ("a", "b"):
        shutil.copytree(reported / "tails", tmp_path / name)
    written = report(tmp_path)
    assert len(set(written.figures)) == 2 * 10
    text = written.page.read_text(encoding="utf-8")
    assert all(f'<section id="{name}"' in text for name in ("tails", "tails-2"))


def test_without_matplotlib(reported, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "unbounded.report.figures", raising=False)
    written = report(reported / "tails", output=tmp_path / "page.html")
    assert written.figures == []
    assert "pip install 'unbounded[plot]'" in written.without_figures
    assert written.page.is_file()
