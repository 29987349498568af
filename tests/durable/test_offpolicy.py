"""Estimates of what another policy would have lost: right on average, with intervals that hold."""

import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from unbounded import SCB, CostSCB, Uniform
from unbounded.durable import Durable, FewSamplesWarning, estimate

MEANS = (0.3, 0.5, 0.7)
POLICIES = ({"0": 1.0}, {"2": 1.0}, {"0": 0.5, "1": 0.5})


def frame(rows):
    names = ["asked_as", "told_as", "epoch", "name", "probability", "loss"]
    return pl.DataFrame(rows, schema=names, orient="row")


def exploring(n, seed):
    """Play of which there is enough of every arm: the default explores half as much."""
    return SCB(n, profile="paper", seed=seed)


def simulated(seed, *, cls=exploring, rounds=1000, drift=0.0, scale=1.0):
    """A log of three arms whose losses are skewed, and the plain average of each arm's mean."""
    learner, rng = cls(3, seed=seed), np.random.default_rng([seed, 1])
    noise = 0.3 * rng.standard_exponential(rounds)
    falls = drift * np.linspace(1.0, 0.0, rounds)
    rows = []
    for t in range(rounds):
        choice = learner.ask()
        loss = scale * float(MEANS[choice.arm] + noise[t] + falls[t])
        learner.tell(choice, loss)
        rows.append((2 * t + 1, 2 * t + 2, 0, str(choice.arm), choice.probability, loss))
    return frame(rows), [scale * (mean + 0.3 + falls.mean()) for mean in MEANS]


def naive(log, policy):
    """The mean of each arm's own losses, as if they were independent."""
    mean = square = 0.0
    for name, share in policy.items():
        losses = log.filter(name=name)["loss"].to_numpy()
        mean += share * losses.mean()
        square += share**2 * losses.var(ddof=1) / losses.size
    return mean - 1.96 * math.sqrt(square), mean + 1.96 * math.sqrt(square)


def coverage(logs, **settings):
    """How often the intervals of all policies hold, and their mean width; estimated and naive."""
    held, width, wrong = [], [], []
    for seed in range(logs):
        log, truth = simulated(seed, **settings)
        for policy in POLICIES:
            value = sum(share * truth[int(name)] for name, share in policy.items())
            ways = ["even"] if settings.get("drift") else ["even", "stable"]
            for weights in ways:
                for method in ("dr", "ips"):
                    found = estimate(log, policy, weights=weights, method=method)
                    held.append((str(policy), weights, method, found.low <= value <= found.high))
                    width.append((found.high - found.low) / settings.get("scale", 1.0))
            low, high = naive(log, policy)
            wrong.append(low <= value <= high)
    kept = pl.DataFrame(held, schema=["policy", "weights", "method", "held"], orient="row")
    kept = kept.with_columns(width=pl.Series(width))
    by = kept.group_by("policy", "weights", "method").agg(pl.mean("held"), pl.mean("width"))
    return by, float(np.mean(wrong))


@pytest.mark.parametrize("drift", [0.0, 1.0])
def test_intervals_hold_and_a_naive_one_does_not(drift):
    """A small dose: of 60 intervals that hold with 0.95, fewer than 51 do once in 3000 times."""
    by, wrong = coverage(60, drift=drift, rounds=500)
    assert by["held"].min() >= 51 / 60, by
    if drift:
        assert wrong < 0.85


@pytest.mark.long
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("drift", [0.0, 1.0])
def test_intervals_hold_in_2000_logs(drift, scale):
    by, wrong = coverage(2000, drift=drift, scale=scale)
    print(f"\ndrift {drift:g}, scale {scale:g}, naive {wrong:.3f}")
    print(by.sort("policy", "weights", "method").rows())
    assert by["held"].min() >= 0.935, by
    if drift:
        assert wrong < 0.85


@pytest.mark.parametrize("method", ["dr", "ips"])
@pytest.mark.parametrize("weights", ["even", "stable"])
def test_estimates_are_right_on_average(method, weights):
    errors = []
    for seed in range(60):
        log, truth = simulated(seed, cls=CostSCB, rounds=300)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewSamplesWarning)
            errors.append(estimate(log, "1", method=method, weights=weights).loss - truth[1])
    error = np.std(errors) / math.sqrt(len(errors))
    assert abs(np.mean(errors)) < 3.5 * error


def by_the_formula(log, policy, method, weights):
    """Gamma_t and h_t as the module's text has them, from the whole past of each ask."""
    gammas, hs = [], []
    for row in log.iter_rows(named=True):
        known = log.filter(pl.col("told_as") < row["asked_as"])
        asked = log.filter(pl.col("asked_as") < row["asked_as"])
        m, p = {}, {}
        for a in policy:
            own = known.filter(name=a)["loss"]
            m[a] = own.mean() if len(own) else (known["loss"].mean() if len(known) else 0.0)
            past = asked.filter(name=a)["probability"]
            p[a] = past[-1] if len(past) else 1 / 3
            m[a] = m[a] if method == "dr" else 0.0
        ratio = policy.get(row["name"], 0.0) / row["probability"]
        gamma = sum(policy[a] * m[a] for a in policy)
        gammas.append(gamma + (ratio * (row["loss"] - m[row["name"]]) if ratio else 0.0))
        h = sum(policy[a] ** 2 / p[a] for a in policy) ** -0.5
        hs.append(h if weights == "stable" else 1.0)
    gamma, h = np.array(gammas), np.array(hs)
    value = (h * gamma).sum() / h.sum()
    return value, math.sqrt((h**2 * (gamma - value) ** 2).sum()) / h.sum()


@pytest.mark.parametrize("method", ["dr", "ips"])
@pytest.mark.parametrize("weights", ["even", "stable"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.filterwarnings("ignore::unbounded.durable.FewSamplesWarning")
def test_the_formula_with_delayed_losses(method, weights, policy):
    log, _ = simulated(3, rounds=80)
    late = log.with_columns(told_as=pl.col("told_as") + 20 * (pl.col("asked_as") % 3))
    found = estimate(late, policy, method=method, weights=weights)
    value, error = by_the_formula(late, policy, method, weights)
    assert found.loss == pytest.approx(value, rel=1e-12)
    half = (found.high - found.low) / 2
    assert 1.95 * error < half < 2.2 * error
    assert found.loss - found.low == pytest.approx(half)


def test_the_scale_of_the_losses_does_not_matter():
    log, _ = simulated(1)
    for exponent in (-900, -20, 20, 900):
        scaled = log.with_columns(pl.col("loss") * 2.0**exponent)
        for method in ("dr", "ips"):
            found, plain = (estimate(one, "2", method=method) for one in (scaled, log))
            assert found.low == plain.low * 2.0**exponent
            assert found.high == plain.high * 2.0**exponent
            assert found.effective == plain.effective


def test_few_samples_are_warned_of():
    log, _ = simulated(1, cls=CostSCB)
    with pytest.warns(FewSamplesWarning, match=r"amounts to \d+ rounds of '2'"):
        assert estimate(log.head(200), "2").effective < 50
    assert estimate(log, "0").effective > 300
    even, _ = simulated(1, cls=Uniform)
    assert estimate(even, "2").effective == even.filter(name="2").height


@pytest.mark.parametrize(
    ("policy", "match"),
    [
        ("3", "was never played"),
        ({"0": 0.5}, "must sum to 1"),
        ({"0": 1.5, "1": -0.5}, "must be in"),
    ],
)
def test_what_is_no_policy(policy, match):
    log, _ = simulated(0, rounds=100)
    with pytest.raises(ValueError, match=match):
        estimate(log, policy)
    with pytest.raises(ValueError, match="fewer than two losses"):
        estimate(log.head(1), "0" if log["name"][0] == "0" else log["name"][0])


@pytest.mark.filterwarnings("ignore::unbounded.durable.FewSamplesWarning")
def test_the_log_of_a_durable_learner(tmp_path):
    arms = Durable(tmp_path / "arms.db", SCB(n_arms=2, seed=0), arms=["old", "new"])
    for _ in range(20):
        arms.tell(arms.ask().id, loss=1e9)
    arms.add_arm("third")
    for t in range(300):
        choice = arms.ask()
        if t % 10:
            arms.tell(choice.id, loss=float(1 + choice.arm))
    found = estimate(arms.log(), {"old": 0.5, "third": 0.5})
    assert (found.rounds, found.missing) == (270, 30)  # of the last epoch
    assert found.low < 2.0 < found.high < 1e3


def test_a_log_of_any_kind_is_estimated_from():
    log, _ = simulated(3, rounds=400)
    arms, p, losses = (log[name].to_list() for name in ("name", "probability", "loss"))
    table = {"arm": [int(arm) for arm in arms], "probability": p, "loss": losses}
    rewards = {**table, "reward": [-loss for loss in losses]}
    del rewards["loss"]
    expected = estimate(log, "1")
    for frame in (table, pl.DataFrame(table), pd.DataFrame(table)):
        assert estimate(frame, 1) == estimate(frame, {1: 1.0}) == expected
    assert estimate(rewards, 1).reward == -expected.loss
    by_hand = np.mean(
        [(arm == "1") * loss / q for arm, q, loss in zip(arms, p, losses, strict=True)]
    )
    assert estimate(table, 1, method="ips").loss == pytest.approx(by_hand, rel=1e-12)
    wrong = {**table, "probability": [0.5] * len(p)}  # the control
    assert estimate(wrong, 1, method="ips").loss != pytest.approx(by_hand, rel=1e-2)


def test_rounds_whose_loss_is_missing_are_left_out_of_any_frame():
    table = {"arm": [0, 1] * 100, "probability": [0.5] * 200, "loss": [1.0, 2.0] * 99 + [None] * 2}
    for frame in (table, pl.DataFrame(table), pd.DataFrame(table),
                  pd.DataFrame(table).convert_dtypes()):  # fmt: skip
        found = estimate(frame, 1)
        assert (found.rounds, found.missing) == (198, 2)
        assert found.loss == pytest.approx(2.0, abs=0.02)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"probability": None}, "no column 'probability': it has 'arm', 'loss'"),
        ({"arm": None}, "no column 'arm'"),
        ({"loss": None}, "no column 'loss'"),
        ({"probability": [0.0, 1.0]}, "probability"),
        ({"probability": [1e-200, 1.0]}, "probability"),  # the square of a weight overflows
        ({"probability": ["a", "b"]}, "column 'probability' must be of numbers"),
        ({"loss": [math.inf, 1.0]}, "finite"),
        ({"loss": [1.0]}, "one length"),
    ],
)
def test_what_a_log_lacks_is_said(change, said):
    table = {"arm": [0, 1], "probability": [0.5, 0.5], "loss": [1.0, 2.0], **change}
    with pytest.raises(ValueError, match=said):
        estimate({name: column for name, column in table.items() if column is not None}, 0)


def test_what_is_no_table_is_rejected():
    with pytest.raises(TypeError, match="frame of polars or pandas, or a dict of arrays"):
        estimate([1, 2, 3], 0)
