"""The bounds that the report draws, against the formulas of the papers and of the docs."""

from __future__ import annotations

import math

import pytest

from unbounded.bandits import algorithms
from unbounded.bounds import Losses, bound_of

log, sqrt = math.log, math.sqrt
UNIT = Losses(0.0, 1.0, 1.0, 1.0)
WIDE = Losses(-2.0, 3.0, 0.6, 0.2)  # in [-2, 3]: l_inf = 3 = 0.6 ranges

FORMULAS = [  # for losses that just fill [0, 1]
    ("SCB", {"profile": "paper"}, lambda n, T: 27 * sqrt(n * T) + 2 * n),
    ("SCB", {}, lambda n, T: 7 * sqrt(n * T) + 4 * n + 1),
    ("SCB", {"profile": "paper", "clip": "range"}, lambda n, T: 8 * sqrt(n * T) + 2 * n + 1),
    ("SCB", {"mixing": 1.0}, lambda n, T: 7 * sqrt(n * T) + 2 * n + 1),
    ("SCB", {"rate": 1.0, "mixing": 0.25}, lambda n, T: 9.5 * sqrt(n * T) + 8 * n + 1),
    (
        "SCB",
        {"mixing": 1.0, "rate": 4.0},
        lambda n, T: (4 + 4 * (1 + log(1 + sqrt(T / n)) / sqrt(T / n))) * sqrt(n * T) + 2 * n + 1,
    ),
    ("TsallisINF", {}, lambda n, T: 4 * sqrt(n * T) + 1),
    ("TsallisINFRV", {}, lambda n, T: 2 * sqrt(n * T) + 14 * n * log(T) + 16),
    ("Exp3", {}, lambda n, T: 2 * sqrt(n * T * log(n))),
    ("Exp3", {"rounds": 5000}, lambda n, T: sqrt(2 * n * T * log(n))),
    ("Exp3Auer", {"rounds": 5000}, lambda n, T: 2 * sqrt(math.e - 1) * sqrt(n * T * log(n))),
    (
        "Exp3S",
        {"rounds": 5000, "switches": 2},
        lambda n, T: 2 * sqrt((math.e - 1) * n * T * (3 * log(n * T) + math.e)),
    ),
    ("INF", {"rounds": 5000}, lambda n, T: 8 * sqrt(n * T)),
    ("AdaHedge", {}, lambda n, T: sqrt(T * log(n)) + 4 / 3 * log(n) + 2),
    ("AdaFTRL", {}, lambda n, T: (1 + log(n)) * sqrt(1.25 * T)),
    ("SOLOFTRL", {}, lambda n, T: 2 * sqrt(2.75 * T * log(n)) + 7),
    (
        "AHB",
        {},
        lambda n, T: (
            3 * sqrt(n * T * log(n))
            + 5 * n * log(n) / min(0.5, sqrt(2.5 * n * log(n) / T))
            + 2 * sqrt(2.5 * n * T * log(n))
            + n
        ),
    ),
    (
        "SCBIX",
        {},
        lambda n, T: (
            (8 / 3 + 3.5) * sqrt(n * T * log(n))
            + sqrt(n * T / log(n)) * log(3 / 0.01)
            + 2 * 1.59 * max(2 * n, sqrt(n**2 + n * T / log(n))) * log(3 * math.e / 0.01)
            + (4 / 3 + 1) * log(3 / 0.01)
            + 2
        ),
    ),
    (
        "SCBIX",
        {"mixing": 1.0},
        lambda n, T: (
            8.5 * sqrt(n * T * log(n))
            + sqrt(n * T / log(n)) * log(3 / 0.01)
            + 1.59 * max(2 * n, sqrt(n**2 + n * T / log(n))) * log(3 * math.e / 0.01)
            + 3.5 * log(3 / 0.01)
            + 2
        ),
    ),
    (
        "CostSCB",
        {},
        lambda n, T: 4 * sqrt(n * (T + 1)) + 2 + 0.5 * log(T + 1) + n * log(1 + T / n),
    ),
    (
        "CostSCB",
        {"tune": "scale", "outliers": 3, "rate": 1.0, "implicit": 0.0},
        lambda n, T: 5 * sqrt(n * T) + 4,
    ),
    (
        "CostSCB",
        {"tune": "scale", "outliers": "sqrt", "implicit": 0.0},
        lambda n, T: 4 * sqrt(n * T) + math.ceil(sqrt(n * T)),
    ),
    (
        "CostSCBIX",
        {"outliers": 2},
        lambda n, T: 4 * sqrt(n * T * log(n)) + (sqrt(n * T / log(n)) + 1) * log(2 / 0.01) + 3,
    ),
    (
        "CostSCBIX",
        {"delta": 0.01},
        lambda n, T: (
            4 * sqrt(n * T * log(n / 0.01)) + 0.7 * sqrt(n * T / log(n / 0.01)) + log(2 / 0.01) + 1
        ),
    ),
    (
        "Exp3IX",
        {},
        lambda n, T: 4 * sqrt(n * T * log(n)) + (2 * sqrt(n * T / log(n)) + 1) * log(2 / 0.01),
    ),
    (
        "Exp3IX",
        {"rounds": 5000},
        lambda n, T: 2 * sqrt(2 * n * T * log(n)) + (sqrt(2 * n * T / log(n)) + 1) * log(2 / 0.01),
    ),
    (
        "Exp3P",
        {"rounds": 5000, "delta": 0.01},
        lambda n, T: 5.15 * sqrt(n * T * log(n / 0.01)),
    ),
]


@pytest.mark.parametrize(("learner", "settings", "formula"), FORMULAS)
@pytest.mark.parametrize("n", [2, 7, 100])
def test_formula(learner, settings, formula, n):
    bound = bound_of(learner, settings)
    assert bound is not None
    assert bound.over_range(n, 5000, UNIT, 0.01) == pytest.approx(formula(n, 5000), rel=1e-12)


def test_units():
    def over_range(learner, settings):
        return bound_of(learner, settings).over_range(4, 10_000, WIDE)

    assert over_range("SCB", {}) == pytest.approx(7 * 200 + 17)
    assert over_range("SCB", {"profile": "paper"}) == pytest.approx(0.6 * (27 * 200 + 8))
    assert math.isnan(over_range("TsallisINF", {}))  # told [0, 1], which does not hold
    for told in ([-2.0, 2.9], [-1.9, 3.0]):  # of losses in [-2, 3]
        assert math.isnan(over_range("TsallisINF", {"loss_range": told}))
    told = {"loss_range": [-5.0, 5.0]}
    assert over_range("TsallisINF", told) == pytest.approx(2.0 * (4 * 200 + 1))


def test_costs_are_measured_from_the_lower_bound():
    """Losses in [2, 5], M = 5 - lower; below ``lower`` nothing is proved."""
    losses, n, T = Losses(2.0, 5.0, 5 / 3, 1 / 3), 4, 10_000
    one = bound_of("CostSCB", {}).of(n, T, 0.1)
    for settings, M in [({}, 5), ({"lower": 2.0}, 3), ({"best_reward": 7}, 12)]:
        bound = bound_of("CostSCB", settings)
        assert bound.over_range(n, T, losses) == pytest.approx(M / 3 * one, rel=1e-12)
    for name in ("CostSCB", "CostSCBIX"):
        assert math.isnan(bound_of(name, {"lower": 2.1}).over_range(n, T, losses))
        assert math.isnan(bound_of(name, {"best_reward": -2.1}).over_range(n, T, losses))
    tuned = bound_of("CostSCBIX", {"delta": 0.05})
    assert math.isnan(tuned.over_range(n, T, losses, 0.01))
    assert tuned.over_range(n, T, losses, 0.2) == tuned.over_range(n, T, losses, 0.05) > 0.0


def test_settings_that_are_the_default_change_nothing():
    """However they are written: a signature has tuples, what is stored has lists."""
    for loss_range in ([0.0, 1.0], (0.0, 1.0)):
        bound = bound_of("TsallisINF", {"loss_range": loss_range})
        assert bound.over_range(4, 10_000, UNIT) == 4 * 200 + 1
    for settings in ({"clip": "range", "rate": 2.0, "threshold": "lazy"}, {"clip": None}):
        assert bound_of("SCB", settings).text == bound_of("SCB", {}).text
    written_out = {"clip": "scale", "rate": 1.0, "mixing": 1.0}
    assert bound_of("SCB", written_out).text == bound_of("SCB", {"profile": "paper"}).text
    replay = bound_of("Exp3P", {"rounds": 100, "loss_range": [0.0, 1.0]})
    assert replay.over_range(4, 100, UNIT) == bound_of("Exp3P", {"rounds": 100}).over_range(
        4, 100, UNIT
    )


def test_only_where_proved():
    assert bound_of("SCB", {"profile": "paper", "rate": 2.0}) is None
    assert bound_of("SCB", {"clip": "scale"}) is None
    assert bound_of("SCB", {"mixing": 0.0, "ablation": True}) is None
    assert bound_of("SCBIX", {"profile": "paper"}) is None
    assert bound_of("SCBIX", {"mixing": 0.0, "ablation": True}) is None
    assert bound_of("SCBIX", {"beta_cap": 0.9}) is None
    assert bound_of("Uniform", {}) is None
    assert bound_of("NoSuchLearner", {}) is None
    for_5000 = bound_of("Exp3", {"rounds": 5000})
    assert math.isnan(for_5000.over_range(4, 4999, UNIT))
    assert math.isnan(bound_of("Exp3", {}).over_range(1, 100, UNIT))
    exp3_p = bound_of("Exp3P", {"rounds": 100, "delta": 0.05})
    assert math.isnan(exp3_p.over_range(4, 100, UNIT, 0.01))
    assert exp3_p.over_range(4, 100, UNIT, 0.1) == exp3_p.over_range(4, 100, UNIT, 0.05)


def test_every_bound_that_an_algorithm_states_is_known():
    stating = {name for name, cls in algorithms().items() if cls.spec.bound is not None}
    needed = {"Exp3Auer": {"rounds": 100}, "INF": {"rounds": 100}, "Exp3S": {"rounds": 100}}
    assert all(bound_of(name, needed.get(name, {})) is not None for name in stating)
