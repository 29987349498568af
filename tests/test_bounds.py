"""The bounds that the report draws, against the formulas of the papers and of the docs."""

from __future__ import annotations

import math

import pytest

from unbounded import SCB, CostSCB, Exp3
from unbounded.bandits import algorithms
from unbounded.bounds import Losses, bound_of, discounted_bound_of

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
    (  # 5 windows of 1000 rounds
        "FixedShare",
        {"window": 1000, "outliers": 1},
        lambda n, T: 5 * (sqrt(2000 * n * (log(1000 * n) + 1.4)) + 2),
    ),
    (  # 5 times that of 1000 rounds
        "RestartingCostSCB",
        {"every": 1000, "outliers": 1},
        lambda n, T: 5 * (4 * sqrt(n * 1001) + 1 + log(1001) / 2 + 2 + n * log(1 + 1000 / n)),
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


def test_of_a_learner_itself():
    paper = SCB(4, profile="paper")
    for learner in (SCB(4), paper, Exp3(4, rounds=5000), CostSCB(4, half_life=99)):
        settings = {name: one for name, one in learner.settings.items() if name != "n_arms"}
        name, settled = type(learner).__name__, bound_of(learner)
        expected = bound_of(name, settings)
        assert (settled and settled._replace(of=None)) == (expected and expected._replace(of=None))
    assert bound_of(SCB(4)).text != bound_of(paper).text
    with pytest.raises(TypeError, match="settings=3000"):
        bound_of(SCB(4), 3000)


def test_only_where_proved():
    assert bound_of("SCB", {"profile": "paper", "rate": 2.0}) is None
    assert bound_of("SCB", {"clip": "scale"}) is None
    assert bound_of("SCB", {"mixing": 0.0, "ablation": True}) is None
    assert bound_of("SCBIX", {"profile": "paper"}) is None
    assert bound_of("SCBIX", {"mixing": 0.0, "ablation": True}) is None
    assert bound_of("SCBIX", {"beta_cap": 0.9}) is None
    assert bound_of("Uniform", {}) is None
    assert bound_of("NoSuchLearner", {}) is None
    assert bound_of("RestartingCostSCB", {"every": 9, "detect": "cusum"}) is None
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


def rounds(h, T, power=1):
    """The sum of the weights of T rounds, to some power."""
    return sum(2.0 ** (-power * age / h) for age in range(T))


def f7(n, T, h, a, robust=False, trim=0, falls=False):
    """Theorem F7 and its additions, as they are printed."""
    N, N2, blocks = rounds(h, T), rounds(h, T, 2), min(3, math.ceil(T / h))
    reach = sqrt(n * N) / a + 2 * n
    beta, H0, h_B = n / reach, 4 * (sqrt(n) - 1), min(h, max(h / 16, 32))
    H = H0 / (2 * sqrt((1 - beta) / reach))
    bracket = 1.3 if h >= 17 else 1 + 5.1 / h
    bracket += log(8 * sqrt(n) / (1 - 4 ** (-1 / h_B))) + h / h_B + 9.4 * robust
    Q = 0.92 * H0 * sqrt(reach) * bracket
    under = (1 - 1 / sqrt(n)) * n * (N2 + 4 * a * sqrt(n * N)) + Q
    R = min(
        4 + 2 * sqrt((reach + 1.1**j * H) ** 2 + under / (1 - 1 / (2 * 1.1**j))) for j in range(120)
    )
    m = 1 + math.floor(min(63, sqrt(N) / 4)) if robust else 0
    low = blocks * (trim + 1) * reach if trim else 0
    first = 8 if robust else 1
    return (
        first + 2 * a * (1 - 1 / n) * sqrt(n * N) + R * (blocks if falls else 1) + blocks * m + low
    )


@pytest.mark.parametrize("n", [2, 7, 100])
@pytest.mark.parametrize(("h", "T"), [(50, 30), (50, 80), (100, 700), (8, 40)])
def test_discounted_formula(n, h, T):
    def of(learner, falls, **settings):
        bound = discounted_bound_of(learner, {"half_life": h, **settings}, falls=falls)
        return bound.over_range(n, T, UNIT, 0.01)

    N, N2, blocks = rounds(h, T), rounds(h, T, 2), min(3, math.ceil(T / h))
    bias = 1.39 * n * log(1 + 0.72 * min(T, h) / n)
    usual = max(bias, 2 * n) if h < T else bias
    by_scale = {"tune": "scale", "implicit": 0.0, "outliers": 2, "rate": 1.0}
    paid = 4 * sqrt(n * (N2 + 1)) + 1 + 0.5 * log(N2 + 1)
    found = [
        (of("CostSCB", False, **by_scale), 5 * sqrt(n * N2) + 3 * blocks),
        (of("CostSCB", True, **by_scale), blocks * (5 * sqrt(n * N2) + 3)),
        (of("CostSCB", False), paid + blocks + usual),
        (of("CostSCB", True), blocks * (paid + 1 + bias)),
        (of("CostSCB", False, outliers="sqrt", implicit=0.0),
         paid + blocks * min(h, math.ceil(sqrt(n * N)))),
        (of("CostSCBIX", True, outliers=1),
         4 * sqrt(n * N * log(n)) + (sqrt(n * N / log(n)) + 1) * log(200) + 2 * blocks),
        (of("CostSCBIX", True, delta=0.01),
         4 * sqrt(n * N * log(100 * n)) + 0.7 * sqrt(n * N / log(100 * n)) + log(200) + blocks),
        (of("AdaINF", False, robust=False, exploration=1.0), f7(n, T, h, 1.0)),
        (of("AdaINF", True, robust=False), f7(n, T, h, n / (2 * (n - 1)), falls=True)),
        (of("AdaINF", False, trim=2), f7(n, T, h, n / (2 * (n - 1)), robust=True, trim=2)),
    ]  # fmt: skip
    for value, expected in found:
        assert value == pytest.approx(expected, rel=1e-9)


def test_discounted_bounds_for_long_half_lives_are_those_without():
    """Up to lower order: a half-life of 10^9 rounds does not forget in 10^4."""
    losses, n, T = UNIT, 10, 10_000
    for learner, settings in [("CostSCB", {}), ("CostSCB", {"tune": "scale"}), ("CostSCBIX", {})]:
        never = bound_of(learner, settings).over_range(n, T, losses)
        long = discounted_bound_of(learner, {**settings, "half_life": 10**9})
        assert long.over_range(n, T, losses) == pytest.approx(never, rel=0.02)
        short = discounted_bound_of(learner, {**settings, "half_life": 100})
        assert short.over_range(n, T, losses) < 0.9 * never


def test_regret_of_learners_that_forget():
    """F2 (4): at most 1 + (1 - lambda)(T - 1) times what discounted regret can be."""
    for learner, settings in [("CostSCB", {}), ("AdaINF", {"trim": 1})]:
        settings = {**settings, "half_life": 300}
        bound, discounted = bound_of(learner, settings), discounted_bound_of(learner, settings)
        for T in (1, 200, 5000):
            times = 1.0 + (1.0 - 2.0 ** (-1.0 / 300)) * (T - 1)
            expected = times * discounted.over_range(4, T, UNIT)
            assert bound.over_range(4, T, UNIT) == pytest.approx(expected, rel=1e-9)
        assert "F2" in bound.reference
        never = {name: value for name, value in settings.items() if name != "half_life"}
        assert bound.over_range(4, 5000, UNIT) > 2.0 * bound_of(learner, never).of(4, 5000, 0.1)


def test_discounted_only_where_proved():
    assert discounted_bound_of("CostSCB", {}) is None
    assert discounted_bound_of("SCB", {"half_life": 100}) is None
    assert discounted_bound_of("AdaINF", {"half_life": "auto"}) is None
    assert discounted_bound_of("CostSCB", {"half_life": 100, "outliers": "sqrt"}) is None
    assert discounted_bound_of("CostSCB", {"half_life": 100, "unknown": 1}) is None
    assert bound_of("CostSCB", {"unknown": 1}) is None
    assert bound_of("CostSCBIX", {"half_life": 100}) is None  # for each T, not all at once
    assert bound_of("CostSCB", {"half_life": 100, "outliers": "sqrt"}) is None
    given = discounted_bound_of("CostSCBIX", {"half_life": 100, "delta": 0.05})
    assert math.isnan(given.over_range(4, 1000, UNIT, 0.01))
