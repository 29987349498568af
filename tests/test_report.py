"""The report: its numbers again from the Parquet files, and what it says of mistakes."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cyclopts")
pytest.importorskip("polars")

import polars as pl
from scipy import stats

import report_helpers as helpers
from unbounded import cli, config, lab
from unbounded.report import contents, page, report, sections, source
from unbounded.report import statistics as own

CLOSE = {"rel": 1e-7, "abs": 1e-12}  # the page keeps 8 digits
VIEWS = {
    "sizes": ["time", "rounds", "arms", "scale", "shift", "slopes", "thresholds", "heatmap",
              "bounds", "paired"],
    "tails": ["time", "slopes", "quantiles", "thresholds", "bounds", "paired"],
}  # fmt: skip


class Page:
    """A report's numbers beside its rows."""

    def __init__(self, out: Path) -> None:
        self.data = helpers.embedded(out / "report.html")
        self.names = self.data["learners"]
        charts = [section["charts"] for section in self.data["sections"]]
        self.charts = {
            name: {chart["view"]: chart for chart in one}
            for name, one in zip(VIEWS, charts, strict=True)
        }
        self.rows = {name: helpers.Stored(out / name) for name in VIEWS}

    def curves(self, name: str, view: str):
        """Each panel's keys with each of its curves and the rows that belong to it."""
        for panel in self.charts[name][view]["panels"]:
            for series in panel["series"]:
                learner = self.names[series["learner"]]
                yield panel["keys"], series, learner, panel


@pytest.fixture(scope="session")
def found(reported: Path) -> Page:
    return Page(reported)


def check(series, i, values):
    for name, value in helpers.statistics(values).items():
        assert series[name][i] == pytest.approx(value, **CLOSE)
    assert series["replicates"] == len(values)


def test_the_views_that_the_data_ask_for(found):
    assert {name: list(charts) for name, charts in found.charts.items()} == VIEWS
    assert found.names == list(helpers.LEARNERS)


@pytest.mark.parametrize("name", VIEWS)
def test_regret_over_time(found, name):
    count = 0
    for keys, series, learner, _ in found.curves(name, "time"):
        for i, t in enumerate(series["x"]):
            rows = found.rows[name].rows(learner, keys, round=t)
            check(series, i, rows["relative_regret"])
            count += 1
    assert count == {"sizes": 4 * 4 * 4 * 7, "tails": 2 * 3}[name]


@pytest.mark.parametrize("view", ["arms", "rounds"])
def test_normalised_regret(found, view):
    column = view
    for keys, series, learner, _ in found.curves("sizes", view):
        assert len(series["x"]) == 2
        for i, size in enumerate(series["x"]):
            rows = found.rows["sizes"].rows(learner, keys, **{column: size})
            last = rows["round"] == rows["rounds"]
            norm = np.sqrt(rows["arms"][last] * rows["rounds"][last])
            check(series, i, rows["relative_regret"][last] / norm)


@pytest.mark.parametrize(("view", "adversary"), [
    ("scale", {1e-6: "StochasticGap scale=1e-6", 1.0: "StochasticGap"}),
    ("shift", {0.0: "StochasticGap", 5.0: "StochasticGap shift=5"}),
])  # fmt: skip
def test_against_settings_of_the_adversary(found, view, adversary):
    for keys, series, learner, _ in found.curves("sizes", view):
        assert series["x"] == list(adversary)
        for i, size in enumerate(series["x"]):
            n, T = int(keys["n"]), int(keys["T"].replace(",", ""))
            case = keys | {"adversary": adversary[size]}
            rows = found.rows["sizes"].rows(learner, case, round=T)
            check(series, i, rows["relative_regret"] / math.sqrt(n * T))


def test_thresholds(found):
    learners = set()
    for keys, series, learner, _ in found.curves("sizes", "thresholds"):
        learners.add(learner)
        for i, t in enumerate(series["x"]):
            rows = found.rows["sizes"].rows(learner, keys, round=t)
            values = rows["threshold"][rows["threshold"] > 0.0]
            assert series["median"][i] == pytest.approx(helpers.quantile(values, 0.5), **CLOSE)
    assert learners == {"SCB", "SCB clip=range", "TsallisINF"}


@pytest.mark.parametrize(("name", "column"), [("sizes", "rounds"), ("tails", "round")])
def test_slopes(found, name, column):
    symbols = set()
    for keys, series, learner, _ in found.curves(name, "slopes"):
        symbols.add(keys["slope in"])
        x = column if keys["slope in"] == "T" else "arms"
        rows = found.rows[name].rows(learner, keys)
        if x != "round":
            at_end = rows["round"] == rows["rounds"]
            rows = {key: values[at_end] for key, values in rows.items()}
        sizes = np.unique(rows[x])
        table = np.array([
            [rows["relative_regret"][(rows["replicate"] == r) & (rows[x] == size)][0]
             for size in sizes]
            for r in np.unique(rows["replicate"])
        ])  # fmt: skip
        means = table.mean(axis=0)
        if means.min() <= 0.0:
            assert series["mean"] == [None]
            continue
        assert series["mean"][0] == pytest.approx(helpers.slope(sizes, means), **CLOSE)
        chosen = np.random.default_rng(own.SEED).integers(0, len(table), (1000, len(table)))
        resampled = table[chosen].mean(axis=1)
        if resampled.min() > 0.0:
            all_slopes = [helpers.slope(sizes, one) for one in resampled]
            assert series["low"][0] == pytest.approx(helpers.quantile(all_slopes, 0.025), **CLOSE)
            assert series["high"][0] == pytest.approx(helpers.quantile(all_slopes, 0.975), **CLOSE)
        else:
            assert series["low"] == [None]
    assert symbols == ({"T", "n"} if name == "sizes" else {"T"})


def test_tails(found):
    for keys, series, learner, _ in found.curves("tails", "quantiles"):
        rows = found.rows["tails"].rows(learner, keys, round=400)
        values = np.sort(rows["relative_regret"]) / math.sqrt(3 * 400)
        assert series["x"][0] == pytest.approx(math.log(2))
        assert series["x"][-1] == pytest.approx(math.log(150 / 10))
        for x, level, low, high in zip(
            series["x"], series["mean"], series["low"], series["high"], strict=True
        ):
            p = 1.0 - math.exp(-x)
            assert level == pytest.approx(helpers.quantile(values, p), rel=1e-6)
            assert low <= level <= high


def test_heat_map(found):
    chart = found.charts["sizes"]["heatmap"]
    assert len(chart["panels"]) == 4
    for panel in chart["panels"]:
        n, T = int(panel["keys"]["n"]), int(panel["keys"]["T"].replace(",", ""))
        assert set(panel["columns"]) == set(helpers.ADVERSARIES)
        for learner, line in zip(panel["learners"], panel["heat"], strict=True):
            for adversary, value in zip(panel["columns"], line, strict=True):
                case = panel["keys"] | {"adversary": adversary}
                rows = found.rows["sizes"].rows(found.names[learner], case, round=T)
                mean = np.mean(rows["relative_regret"]) / math.sqrt(n * T)
                assert value == pytest.approx(mean, **CLOSE)


def test_paired_comparisons(found):
    for name, rows in found.rows.items():
        for panel in found.charts[name]["paired"]["panels"]:
            n, T = int(panel["keys"]["n"]), int(panel["keys"]["T"].replace(",", ""))
            assert len(panel["rows"]) == {"sizes": 6, "tails": 1}[name]
            for i, j, mean, low, high, won, count in panel["rows"]:
                a, b = (
                    rows.rows(found.names[k], panel["keys"], round=T)["relative_regret"]
                    for k in (i, j)
                )
                difference = (b - a) / math.sqrt(n * T)
                interval = stats.ttest_1samp(difference, 0.0).confidence_interval(0.95)
                assert mean == pytest.approx(difference.mean(), **CLOSE)
                assert [low, high] == pytest.approx([*interval], rel=1e-6, abs=1e-12)
                wins = sum(1.0 if d < 0 else 0.5 if d == 0 else 0.0 for d in difference)
                assert won == pytest.approx(wins / len(difference), **CLOSE)
                assert count == len(difference)


def test_bounds_beside_the_curves(found):
    drawn = set()
    for view in ("time", "arms", "rounds", "scale"):
        for panel in found.charts["sizes"][view]["panels"]:
            for line in panel.get("bounds", []):
                learner = found.names[line["learner"]]
                drawn.add(learner)
                for x, y in zip(line["x"], line["y"], strict=True):
                    if view == "time":
                        n, t, norm = int(panel["keys"]["n"]), x, 1.0
                    else:
                        known = {"n": panel["keys"].get("n"), "T": panel["keys"].get("T")}
                        known |= {"arms": {"n": str(x)}, "rounds": {"T": str(x)}}.get(view, {})
                        n, t = (int(float(known[k].replace(",", ""))) for k in ("n", "T"))
                        norm = math.sqrt(n * t)
                    if learner == "SCB clip=range":
                        assert y * norm == pytest.approx(8 * math.sqrt(n * t) + 2 * n + 1, rel=1e-6)
                    elif learner == "TsallisINF" and panel["keys"]["adversary"] == "StochasticGap":
                        assert y * norm >= (4 * math.sqrt(n * t) + 1) * (1 - 1e-7)
                    assert y * norm < t
    assert drawn == {"SCB clip=range", "TsallisINF"}  # 27 sqrt(nT) is more than T here


def test_the_table_of_bounds(found):
    rows = found.charts["tails"]["bounds"]["panels"][0]["rows"]
    assert [found.names[row[0]] for row in rows] == ["SCB clip=range", "Exp3IX"]
    for row, p in zip(rows, (None, 0.9), strict=True):
        stored = found.rows["tails"].rows(found.names[row[0]], {}, round=400)
        values = stored["relative_regret"] / math.sqrt(3 * 400)
        seen = np.mean(values) if p is None else helpers.quantile(values, p)
        assert row[5] == pytest.approx(seen, **CLOSE)
        assert row[8] == pytest.approx(seen / row[4], rel=1e-6)


@pytest.mark.parametrize("count", [40, 150, 10_000])
def test_intervals_of_quantiles(count):
    values = np.arange(count, dtype=float)  # so that an order statistic is its own place
    deltas = own.tail_levels(count)
    assert deltas[-1] == pytest.approx(10 / count if count >= 100 else 1 / count)
    for delta, low, high in zip(deltas, *own.tail_quantiles(values, deltas)[1:], strict=True):
        below = stats.binom(count, 1.0 - delta)  # how many values are below the true quantile
        certain = high == count - 1  # nothing larger was seen: no upper end can be given
        chance = (1.0 if certain else below.cdf(high)) - below.cdf(low)
        assert 0.94 < chance < (1.0 if certain or delta * count < 30 else 0.98)


def test_student_and_resampling():
    for freedom in (1, 2, 3, 4, 9, 10, 49, 500, 1999):
        assert own.student(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-9)
    rng = np.random.default_rng(0)
    x = np.array([1.0, 10.0, 100.0])
    exact = np.outer(np.ones(5), 3.0 * x**0.5)
    assert own.slope_interval(x, exact) == pytest.approx((0.5, 0.5, 0.5))
    assert math.isnan(own.slope_interval(x, exact - 4.0)[0])
    inside = 0
    for _ in range(200):  # the interval of the bootstrap holds the truth about as often as it says
        low, high = own.slope_interval(x, exact[:1] * rng.gamma(4.0, 0.25, (40, 3)))[1:]
        inside += low <= 0.5 <= high
    assert 170 <= inside <= 199


# ---------------------------------------------------------------- where something is wrong


def test_command_line(reported, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(reported / "tails", "out/tails")
    before = set(Path().rglob("*"))
    assert cli.main(["report", "out/tails"]) == 0
    assert "The page: out/tails/report.html" in capsys.readouterr().out
    new = {str(path) for path in set(Path().rglob("*")) - before}
    drawn = [view for view in VIEWS["tails"] if view not in ("bounds", "paired")]
    figures = {f"out/tails/figures/tails-{v}.{kind}" for v in drawn for kind in ("svg", "pdf")}
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
    for name in VIEWS:
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
    monkeypatch.setattr("unbounded.grid.code_version", lambda *names, **kind: "newer")
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


def test_without_matplotlib(reported, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    monkeypatch.delitem(__import__("sys").modules, "unbounded.report.figures", raising=False)
    written = report(reported / "tails", output=tmp_path / "page.html")
    assert written.figures == []
    assert "pip install 'unbounded[plot]'" in written.without_figures
    assert written.page.is_file()
