"""The report as a user meets it: the command, what it writes, and what it says of mistakes."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

pytest.importorskip("cyclopts")
pytest.importorskip("polars")

import polars as pl

import report_helpers as helpers
from unbounded import cli, lab
from unbounded.lab import config
from unbounded.report import contents, page, report, sections, source
from unbounded.report.figures import draw

FIGURES = ("time", "slopes", "quantiles", "thresholds")  # of the experiment "tails"


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


def test_page_names_its_origin(reported):
    text = (reported / "report.html").read_text(encoding="utf-8")
    assert text.count("<section ") == 2
    for name in ("sizes", "tails"):
        assert f'<a href="#{name}">' in text
        assert f"unbounded run {reported / name}/experiment.toml --out {reported / name}" in text
    frame = lab.results(reported / "sizes")
    assert set(frame["versions"].cast(pl.String)) <= set(
        re.findall(r"<dd>(unbounded .*?)</dd>", text)
    )
    for code in frame["code"].cast(pl.String).unique():
        assert f"<td>{code}</td>" in text
    assert "gap = 0.3" in text


def test_nothing_to_report_on(tmp_path, capsys):
    assert cli.main(["report", str(tmp_path / "nowhere")]) == 2
    assert "is not a directory" in capsys.readouterr().err
    assert cli.main(["report", str(tmp_path)]) == 2
    assert "there is no experiment.toml" in capsys.readouterr().err
    (tmp_path / "experiment.toml").write_text(config.dumps(config.experiment(helpers.TAILS)))
    assert cli.main(["report", str(tmp_path)]) == 2
    assert "no results are stored" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["experiment.toml"]


def test_two_experiments_of_one_name(reported, tmp_path):
    for name in ("a", "b"):
        shutil.copytree(reported / "tails", tmp_path / name)
    written = report(tmp_path)
    assert len(set(written.figures)) == 2 * 8
    text = written.page.read_text(encoding="utf-8")
    assert all(f'<section id="{name}"' in text for name in ("tails", "tails-2"))


def test_last_checkpoint_before_the_end(tmp_path):
    """Bounds are those of the rounds that were recorded."""
    early = {**helpers.TAILS, "replicates": 3, "checkpoints": [100, 200]}
    lab.run(early, out=tmp_path, engine="serial")
    charts = {chart.view: chart for chart in contents(tmp_path).sections[0].charts}
    limit = charts["bounds"].panels[0].rows[0][4]
    assert limit == pytest.approx((8 * 600**0.5 + 7) / 600**0.5, rel=1e-6)


def test_unfinished_experiment(reported, tmp_path):
    shutil.copytree(reported / "tails", tmp_path / "out")
    more = {**helpers.TAILS, "replicates": 160, "arms": [3, 4]}
    (tmp_path / "out/experiment.toml").write_text(config.dumps(config.experiment(more)))
    text = report(tmp_path / "out", figures=False).page.read_text(encoding="utf-8")
    assert "Unfinished: 340 replicates of 4 cells are missing" in text
    assert "SCB(clip=range) · StochasticGap(gap=0.3) · n=3 · T=400: 10 of 160 missing" in text
    assert "Exp3IX · StochasticGap(gap=0.3) · n=4 · T=400: 160 of 160 missing" in text


def test_damaged_files_are_named_and_stay(reported, tmp_path):
    shutil.copytree(reported / "tails", tmp_path / "out")
    (tmp_path / "out/results/notes.txt").write_text("mine")
    text = report(tmp_path / "out", figures=False).page.read_text(encoding="utf-8")
    assert "notes.txt: not a file of results" in text
    assert (tmp_path / "out/results/notes.txt").read_text() == "mine"


def test_rows_of_other_code_are_shown_and_named(reported, monkeypatch):
    monkeypatch.setattr("unbounded.lab.grid.code_version", lambda *names, **kind: "newer")
    results = source.read(reported / "tails")
    assert results.other_code == 2
    assert results.frame.equals(source.read(reported / "tails").frame)
    assert results.frame.height == 2 * 150 * 3
    assert not results.missing
    made = sections.assembled([results], reported)
    assert "The rows of 2 cells were made by other code" in made.sections[0].warnings[0]


def test_views_that_were_asked_for(reported, monkeypatch):
    results = source.read(reported / "tails")

    def with_views(*names):
        class Asking:
            def __getattr__(self, name):
                return list(names) if name == "views" else getattr(results.experiment, name)

        return sections.assembled([results._replace(experiment=Asking())], reported)

    charts = with_views("paired", "rounds", "scale").sections[0].charts
    assert [(chart.view, chart.kind) for chart in charts] == [
        ("paired", "paired"), ("rounds", "lines"), ("scale", "none")]  # fmt: skip
    assert charts[2].note == "This view needs an adversary with two values of scale."
    assert charts[1].panels[0].series[0].x == [100, 200, 400]
    with pytest.raises(config.ConfigError, match=r"unknown name 'heat'; the nearest .* 'heatmap'"):
        with_views("time", "heat")


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
    assert not re.findall(r"""(?:src|href)\s*=\s*["']?[^"'#\s]""", text)
    assert not re.findall(r"@import|url\((?!#)", text)
    assert "default-src 'none'" in text


@pytest.mark.parametrize("y", [
    [1e-300, 1.0, 1e300], [1.0, 1.0, 1.0], [-1.0, 0.0, 5.0], [None, None, None], [1.0, 2.0, 11.0],
])  # fmt: skip
def test_figures_of_numbers_of_any_size(reported, tmp_path, y):
    made = contents(reported / "tails")
    for series in (s for chart in made.sections[0].charts for p in chart.panels for s in p.series):
        if series.x:
            series.x = [1e-307, 1.0, 1e307]
            series.mean = series.low = series.high = y
        else:
            series.mean, series.low, series.high = y[:1], y[1:2], y[2:]
    assert len(draw(made, tmp_path)) == 8


def test_without_matplotlib(reported, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "unbounded.report.figures", raising=False)
    written = report(reported / "tails", output=tmp_path / "page.html")
    assert written.figures == []
    assert "pip install 'unbounded[plot]'" in written.without_figures
    assert written.page.is_file()
