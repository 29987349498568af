"""A durable learner in the terminal and as a page."""

import json
import os
import re
import warnings

import numpy as np
import pytest

from unbounded import SCB, UniformPolicy
from unbounded.cli.app import main
from unbounded.durable import Durable, DurableError
from unbounded.report.live import lines, live_report, look
from unbounded.report.page import html

NAMES = ["eu <1>", "us & 2", "asia"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "arms.db"


def played(path, rounds=240):
    arms = Durable(path, SCB(n_arms=3, seed=0), arms=NAMES)
    for t in range(rounds):
        choice = arms.ask()
        arms.tell(choice.id, loss=[1.0, 2.0, 3.0][choice.arm] + (t >= 200) * 100.0)
    arms.ask()
    return arms


def test_the_terminal_shows_the_state_and_the_losses_over_time(path):
    arms = played(path)
    status = arms.status()
    text = lines(look(path))  # while it is open
    assert text[0].startswith("SCB(n_arms=3, profile='practical', clip='range'")
    assert text[1] == (
        f"240 rounds told in epoch 0, 1 outstanding; scale {status.scale:.4g}, "
        f"{status.clipped} clipped"
    )
    rows = {name: next(line for line in text if line.startswith(f"  {name}")) for name in NAMES}
    log = arms.log().filter(~arms.log()["loss"].is_null())
    for name, chance in zip(NAMES, status.probabilities, strict=True):
        own = log.filter(log["name"] == name)["loss"]
        assert f"{chance:6.1%}" in rows[name]
        assert f"mean {own.mean():.4g} of {len(own)}" in rows[name]
        bars = re.search("[▁▂▃▄▅▆▇█ ]{24}", rows[name].partition("%")[2][2:])[0]
        assert set(bars[:18]) <= set("▁ ")  # small losses at first
        assert set(bars[21:]) <= set("█ ")
    assert "▁" in text[-1]
    assert text[-1].rstrip().endswith("█")


def test_losses_whose_sum_overflows_are_shown(path):
    arms = Durable(path, SCB(n_arms=1, seed=0), arms=["a"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for t in range(60):
            arms.tell(arms.ask().id, loss=[1.5e308, 0.5e308][t % 2])
    text = lines(look(path))
    assert "mean 1e+308 of 60" in text[3]
    report = live_report(look(path))
    assert report.sections[0].charts[0].panels[0].rows[0][4] == pytest.approx(1e308)
    assert main(["inspect", str(path), "--html", str(path.with_name("page.html"))]) == 0


def test_means_whose_difference_overflows_are_drawn_apart(path):
    arms = Durable(path, SCB(n_arms=2, seed=0), arms=["high", "low"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(60):
            choice = arms.ask()
            arms.tell(choice.id, loss=[1.5e308, -1.5e308][choice])
    high, low = lines(look(path))[3:5]
    assert "█" in high
    assert "▁" in low
    assert "█" not in low


def test_infinite_sums_of_episodes_are_shown(path):
    largest = np.finfo(float).max
    plans = Durable(path, UniformPolicy([1, 1], 1, seed=0))
    for losses in ([largest, largest], [-largest, -largest], [1.0, 2.0]):
        plans.tell(plans.ask(), states=[0, 0], actions=[0, 0], losses=losses)
    assert "of 3" in lines(look(path))[-1]
    assert main(["inspect", str(path), "--html", str(path.with_name("page.html"))]) == 0


def test_looking_writes_nothing(path):
    arms = played(path)
    before = arms._session.store.snapshot("latest"), arms.status().rows
    watch = Durable(path, read_only=True)
    assert watch.status() == arms.status()
    for change in (watch.ask, lambda: watch.tell(arms.outstanding()[0], loss=1.0)):
        with pytest.raises(DurableError, match="cannot be written"):
            change()
    watch.close()
    assert (arms._session.store.snapshot("latest"), arms.status().rows) == before
    with pytest.raises(DurableError, match="there is no"):
        Durable(path.with_name("none.db"), SCB(n_arms=2), read_only=True)


def test_the_page_has_the_numbers_and_no_foreign_markup(path):
    arms = played(path)
    arms.retire_arm("asia")
    made = live_report(look(path))
    assert made.learners == [*NAMES, "scale"]
    charts = {chart.view: chart for chart in made.sections[0].charts}
    assert list(charts) == ["arms", "losses", "shares", "scale"]
    table = charts["arms"].panels[0].rows
    log = arms.log()
    for i, name in enumerate(NAMES):
        own = log.filter(log["name"] == name)
        told = own["loss"].drop_nulls()
        assert table[i][0] == i
        assert table[i][2:4] == [own.height, len(told)]
        assert table[i][4] == pytest.approx(told.mean())
    assert [row[1] for row in table] == [0.5, 0.5, None]
    shares = charts["shares"].panels[0].series
    assert sum(s.mean[0] for s in shares if s.x[0] == 10.0) == pytest.approx(1.0)
    scale = charts["scale"].panels[0].series[0]
    assert (scale.learner, scale.mean[-1]) == (3, arms.log()["scale"].drop_nulls()[-1])
    page = html(made)
    assert "eu <1>" not in page.replace("eu \\u003c1\\u003e", "")
    embedded = re.search(r'id="report-data">(.*?)</script>', page, re.DOTALL)[1]
    assert json.loads(embedded)["learners"] == made.learners


def test_an_empty_file_and_episodes_can_be_looked_at(path, tmp_path):
    with Durable(path, SCB(n_arms=2)):
        pass
    assert lines(look(path))[1].startswith("0 rounds told")
    assert [chart.view for chart in live_report(look(path)).sections[0].charts] == ["arms"]
    with Durable(tmp_path / "plans.db", UniformPolicy([1, 2], 2, seed=0)) as plans:
        for _ in range(5):
            plan = plans.ask()
            actions = [plan.act(0, 0), plan.act(1, 1)]
            plans.tell(plan.id, states=[0, 1], actions=actions, losses=[1.0, 2.0])
    seen = look(tmp_path / "plans.db")
    assert lines(seen)[1] == "5 episodes told in epoch 0, 0 outstanding; 0 clipped"
    assert "mean 3 of 5" in lines(seen)[-1]
    assert html(live_report(seen)).startswith("<!doctype html>")


def test_the_command(path, tmp_path, capsys):
    played(path).close()
    assert main(["inspect", str(path), "--html", str(tmp_path / "page.html")]) == 0
    shown = capsys.readouterr().out
    assert "us & 2" in shown
    assert "The page: " in shown
    assert (tmp_path / "page.html").read_text(encoding="utf-8").endswith("</html>\n")
    path.write_bytes(os.urandom(5000))
    assert main(["inspect", str(path)]) == 2
    assert "is not the file of a durable learner" in capsys.readouterr().err
    assert main(["inspect", str(tmp_path / "none.db")]) == 2
    assert "there is no" in capsys.readouterr().err
