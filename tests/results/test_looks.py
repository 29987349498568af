"""What a learner looks like: in a notebook, as a history, as a chart."""

from __future__ import annotations

import copy
import pickle
import re
from html.parser import HTMLParser

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest

from unbounded import SCB, SCBRL, AdaHedge, CostSCB, CostSCBRL, PythonLearner
from unbounded.durable import FewSamplesWarning, estimate

mpl.use("agg")


class Even(PythonLearner):
    def __init__(self, n_arms, *, mood="calm", seed=None):
        super().__init__(n_arms, seed=seed)
        self.told = 0

    def distribution(self):
        return np.full(self.n_arms, 1.0 / self.n_arms)

    def update(self, arm, probability, loss):
        self.told += 1


class Text(HTMLParser):
    """The text of a page, and the tags that are open at its end."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.open = "", []

    def handle_starttag(self, tag, attrs):
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data + " "


def read(html):
    page = Text()
    page.feed(html)
    assert page.open == []
    return page.text


def played(learner, rounds=40):
    for t in range(rounds):
        choice = learner.ask()
        learner.tell(choice, float(choice.arm) if t % 2 else float(choice.arm) + 1.0)
    return learner


def test_a_notebook_shows_settings_rounds_scale_clipped_and_probabilities():
    learner = played(SCB(3, rate=0.5, seed=0))
    text = read(learner._repr_html_())
    assert "SCB(n_arms=3, rate=0.5) after 40 rounds" in text
    assert f"scale {learner.scale:.6g}" in text
    assert f"{learner.clipped} clipped" in text
    shown = [float(number) for number in re.findall(r" (\d\.\d{4}) ", text)]
    np.testing.assert_allclose(shown, np.sort(learner.probabilities())[::-1], atol=6e-5)
    many = read(CostSCB(1000, seed=0)._repr_html_())
    assert "988 others 0.9880" in many
    assert "SCBRL" in read(SCBRL([1, 2], 2)._repr_html_())


def test_what_users_wrote_is_escaped():
    html = Even(2, mood="<script>alert(1)</script>")._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    read(html)


def test_a_history_is_what_was_told_and_only_when_asked_for():
    learner, control = SCB(3, seed=0), SCB(3, seed=0)
    with pytest.raises(RuntimeError, match="follow"):
        _ = learner.history
    assert "tell" not in vars(learner)  # no step more without it
    learner.follow()
    assert learner.history["loss"].size == 0
    played(learner)
    played(control)
    assert learner.save() == control.save()
    history = learner.history
    assert history["scale"][-1] == learner.scale
    frame = pl.DataFrame(history)
    assert frame.height == pd.DataFrame(history).shape[0] == 40
    again = SCB(3, seed=0)
    for row in frame.iter_rows(named=True):
        choice = again.ask()
        assert (choice.arm, choice.probability) == (row["arm"], row["probability"])
        again.tell(choice, row["loss"])
        assert again.scale == row["scale"]
    assert "name" not in history
    named = SCB(["eu", "us"], seed=0)
    named.follow()
    chosen = [named.ask() for _ in range(5)]
    for choice in chosen:
        named.tell(choice, 1.0)
    assert named.history["name"].tolist() == [choice.name for choice in chosen]
    learner.follow()  # goes on
    learner.tell(learner.ask(), reward=3.0)
    assert learner.history["loss"][-1] == -3.0
    with pytest.warns(FewSamplesWarning):
        assert estimate(learner.history, 0).rounds == 41
    with pytest.raises(ValueError, match="loss"):
        learner.tell(learner.ask(), float("nan"))
    assert learner.history["loss"].size == 41


def test_copies_are_not_followed_and_do_not_write_to_the_history():
    learner = SCB(2, seed=0)
    learner.follow()
    for twin in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner)), learner.clone()):
        played(twin)
        assert learner.history["loss"].size == 0
        assert learner.rounds == 0


def test_of_every_kind_of_learner():
    full = AdaHedge(2, seed=0)
    full.follow()
    full.tell(choice := full.ask(), losses=[3.0, 4.0])
    assert full.history["loss"].tolist() == [[3.0, 4.0][choice]]
    mine = Even(2, seed=0)
    mine.follow()
    played(mine, 5)
    assert mine.history["arm"].size == mine.told == 5
    assert Even.load(mine.save()).told == 5
    mdp = CostSCBRL([1, 2], 2, seed=0)
    mdp.follow()
    plan = mdp.ask()
    mdp.tell(plan, [0, 1], [plan.act(0, 0), plan.act(1, 1)], [1.0, 2.5])
    assert mdp.history["loss"].tolist() == [3.5]


def test_a_chart_of_what_was_played():
    learner = SCB(3, seed=0)
    learner.follow()
    played(learner, 100)
    axes = learner.plot()
    shares = np.array([line.get_ydata() for line in axes.get_lines()])
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)
    by_arm = {line.get_label(): np.mean(line.get_ydata()) for line in axes.get_lines()}
    for arm in range(3):
        assert by_arm[f"arm {arm}"] == pytest.approx((learner.history["arm"] == arm).mean())
    with pytest.raises(RuntimeError, match="follow"):
        SCB(3).plot()
    axes.figure.clear()
