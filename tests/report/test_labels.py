"""Names and numbers for people."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("polars")

from unbounded.experiments.names import known
from unbounded.report.labels import about, brief, learner_names, short_names, thousands


def named(make, kind, field, *variants):
    pairs = [(name, json.dumps(settings)) for name, settings in variants]
    return list(make(pairs, known(kind, field)).values())


def test_only_what_differs_between_adversaries():
    gap = "StochasticGap"
    assert named(short_names, "bandits", "adversaries", (gap, {"gap": 0.3, "scale": 1.0})) == [gap]
    assert named(
        short_names, "bandits", "adversaries",
        (gap, {"gap": 0.3, "scale": 1.0}), (gap, {"gap": 0.3, "scale": 1e-6}), ("Switch", {}),
    ) == [f"{gap} scale=1", f"{gap} scale=1e-6", "Switch"]  # fmt: skip


def test_numbers_have_three_digits_where_these_differ():
    gap = "StochasticGap"
    assert named(
        short_names, "bandits", "adversaries",
        *((gap, {"scale": 2.0**k, "shift": s}) for k, s in ((900, 0.0), (-900, 0.0), (0, 1024.0))),
    ) == [f"{gap} scale=8.45e270", f"{gap} scale=1.18e-271", f"{gap} shift=1024"]  # fmt: skip
    assert named(
        short_names, "bandits", "adversaries",
        (gap, {"scale": 0.12345}), (gap, {"scale": 0.12349}), (gap, {"scale": 0.56789}),
    ) == [f"{gap} scale=0.12345", f"{gap} scale=0.12349", f"{gap} scale=0.568"]  # fmt: skip


def test_learners_have_all_that_is_not_the_default():
    assert named(
        learner_names, "bandits", "learners",
        ("SCB", {"profile": "practical", "rate": None}), ("SCB", {"clip": "range", "rate": 2.0}),
        ("TsallisINF", {"loss_range": [0.0, 1.0]}), ("TsallisINF", {"loss_range": [0, 5]}),
    ) == [
        "SCB", "SCB clip=range, rate=2", "TsallisINF", "TsallisINF loss_range=[0, 5]",
    ]  # fmt: skip


def test_a_name_that_is_not_known_has_all_its_settings():
    assert named(learner_names, "bandits", "learners", ("Old", {"a": 1, "on": True})) == ["Old a=1"]


def test_long_values_have_numbers():
    phases = [{"losses": [[0.125, 0.25], [k, 1.0], [0.5, 0.75]]} for k in (1, 2)]
    assert named(
        short_names, "bandits", "adversaries", *(("Replay", one) for one in (*phases, phases[0]))
    ) == ["Replay losses 1", "Replay losses 2"]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "yes"), (False, "no"), (None, "none"), (1e6, "1e6"), (1e-6, "1e-6"), (2.0, "2"),
     (0.1234567, "0.1234567"), ([0.0, 1.0], "[0, 1]"), ("range", "range"), (3, "3")],
)  # fmt: skip
def test_values(value, text):
    assert brief(value) == text


def test_rounded_values():
    assert about([2.0**900, 0.1234567, 1e-300]) == "[8.45e270, 0.123, 1e-300]"
    assert [about(v) for v in (True, None, 7, 123456.0, "range")] == [
        "yes", "none", "7", "123456", "range",
    ]  # fmt: skip


def test_thousands():
    assert thousands(20_000) == "20,000"
