"""CostSCB and CostSCBIX on what people have: outliers, time-outs, floors, all sizes, late news."""

from __future__ import annotations

import math

import numpy as np
import pytest

from slow import twin_of
from unbounded import CostSCB, CostSCBIX, simulate
from unbounded.adversaries import Replay

pytestmark = pytest.mark.filterwarnings("ignore::unbounded.ScaleWarning")  # outliers are meant


def play(learner, losses: np.ndarray) -> tuple[list[int], np.ndarray]:
    """The arms played and the probabilities before every round."""
    arms, qs = [], []
    for row in losses:
        qs.append(learner.probabilities())
        choice = learner.ask()
        arms.append(choice.arm)
        learner.tell(choice, float(row[choice.arm]))
    return arms, np.array(qs)


def coins(rounds: int, n: int, seed: int, gap: float = 0.2) -> np.ndarray:
    """Losses 0 and 1 with mean 1/2, the first arm's lower by ``gap``."""
    means = np.full(n, 0.5)
    means[0] -= gap
    return (np.random.default_rng(seed).uniform(size=(rounds, n)) < means).astype(float)


# ------------------------------------------------------------------------------------- outliers


def regret_with(outliers: int, *, spike: float) -> float:
    """Mean regret over four plays of 20,000 rounds, of which one costs every arm ``spike``."""
    n, rounds, total = 10, 20_000, 0.0
    for r in range(4):
        losses = coins(rounds, n, r)
        losses[100] = spike if spike else losses[100]
        result = simulate(CostSCB(n, outliers=outliers), Replay(losses), rounds, 1, r)
        total += result.pseudo_regret[0, -1] / 4
    return total


def test_one_huge_loss_is_forgotten_where_one_is_expected():
    assert regret_with(3, spike=1e4) < 1.1 * regret_with(3, spike=0.0)
    assert regret_with(0, spike=1e4) > 8.0 * regret_with(0, spike=0.0)  # the control


def replicas(timeouts, seed: int, rounds: int = 20_000) -> np.ndarray:
    """Milliseconds of eight replicas, and of time-outs of 30 s; the first has the least median."""
    rng = np.random.default_rng(seed)
    medians = np.linspace(40.0, 120.0, 8)
    latencies = medians * np.exp(0.5 * rng.standard_normal((rounds, 8)))
    return np.where(rng.uniform(size=(rounds, 8)) < timeouts, 30_000.0, latencies)


def share_of(arm: int, outliers, timeouts) -> float:
    """How often it was played, over four runs."""
    return float(
        np.mean(
            [
                play(CostSCB(8, outliers=outliers, seed=r), replicas(timeouts, r))[0].count(arm)
                for r in range(4)
            ]
        )
        / 20_000
    )


@pytest.mark.parametrize("timeouts", [0.0, 0.001, 0.01])
def test_replicas_with_timeouts(timeouts):
    assert share_of(0, "sqrt", timeouts) > 0.9
    if timeouts:
        assert share_of(0, 0, timeouts) < 0.7  # the control


def test_where_the_tails_differ_outliers_are_what_matters():
    """docs/theory/one-sided.md: there "sqrt" prefers an arm with a bad mean: not to be used."""
    tails = np.array([0.01] + [0.001] * 7)  # the second is best in the mean
    assert share_of(1, "sqrt", tails) < 0.1
    assert share_of(1, 0, tails) > 0.2


# ------------------------------------------------------------------------------------- the floor


@pytest.mark.parametrize("cls", [CostSCB, CostSCBIX])
def test_a_floor_that_is_told_changes_nothing(cls):
    losses = np.round(np.random.default_rng(3).uniform(size=(1500, 4)) * 2**20) / 2**20
    losses[:, 1] *= 0.5
    plain, told = play(cls(4, seed=1), losses), play(cls(4, lower=1000, seed=1), losses + 1000.0)
    assert plain[0] == told[0]
    np.testing.assert_allclose(plain[1], told[1], rtol=0.0, atol=1e-9)
    rewards = cls(4, best_reward=-1000, seed=1)
    for row, arm in zip(losses + 1000.0, plain[0], strict=True):
        choice = rewards.ask()
        assert choice.arm == arm
        rewards.tell(choice, reward=-float(row[arm]))
    _, unaware = play(cls(4, seed=1), losses + 1000.0)
    assert unaware[:, 1].mean() < 0.4  # the control
    assert plain[1][:, 1].mean() > 0.6


@pytest.mark.parametrize("settings", [{"lower": 0.25}, {"best_reward": -0.25, "outliers": 2}])
@pytest.mark.parametrize("cls", [CostSCB, CostSCBIX])
def test_a_floor_agrees_with_the_slow_twin(cls, settings):
    losses = np.random.default_rng(5).exponential(1.0, (300, 4))
    learner, slow = cls(4, **settings, seed=2), twin_of(cls)(4, **settings)
    expected = next(slow)
    for row in losses:
        np.testing.assert_allclose(learner.probabilities(), expected, rtol=0.0, atol=1e-9)
        choice = learner.ask()
        learner.tell(choice, float(row[choice.arm]))
        expected = slow.send((choice.arm, row))


@pytest.mark.parametrize("cls", [CostSCB, CostSCBIX])
def test_losses_below_the_floor_are_taken_as_the_floor_and_counted(cls):
    losses = np.random.default_rng(4).normal(size=(400, 3))
    below, floored = cls(3, seed=0), cls(3, seed=0)
    arms, qs = play(below, losses)
    assert np.array_equal(play(floored, np.maximum(losses, 0.0))[1], qs)
    assert below.below == sum(losses[t, arm] < 0.0 for t, arm in enumerate(arms)) > 0
    assert floored.below == 0
    assert below.clipped == floored.clipped


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("cls", [CostSCB, CostSCBIX])
def test_the_first_loss_below_the_floor_is_warned_of(cls):
    learner = cls(3, lower=2.0, seed=0)
    learner.tell(learner.ask(), 2.0)
    choice = learner.ask()
    with pytest.raises(UserWarning, match=r"a loss of 1\.5 is below the lower bound, 2"):
        learner.tell(choice, 1.5)
    assert learner.rounds == 1  # as an error, it comes before anything changes
    with pytest.warns(UserWarning, match="is below the lower bound"):
        learner.tell(choice, 1.5)
    restored = cls.load(learner.save())
    for again in (learner, restored):
        again.tell(again.ask(), 1.5)
        assert again.below == 2
    rewarded = cls(3, best_reward=1.0, seed=0)
    rewarded.tell(rewarded.ask(), reward=1)
    with pytest.warns(UserWarning, match=r"a reward of 2 is above the largest possible, 1"):
        rewarded.tell(rewarded.ask(), reward=2)


# ---------------------------------------------------------------------------------- the float64s

SETTINGS = [
    (CostSCB, {}),
    (CostSCB, {"tune": "scale", "implicit": 0.0}),
    (CostSCB, {"outliers": 3}),
    (CostSCB, {"outliers": "sqrt"}),
    (CostSCBIX, {"outliers": 1}),
]


@pytest.mark.parametrize("k", [-1040, -600, 300, 1015])
@pytest.mark.parametrize(("cls", "settings"), SETTINGS)
def test_powers_of_two_change_nothing_to_the_ends_of_float64(cls, settings, k):
    """With ``lower``, which is of the same unit. The losses have 20 bits: 2^-1040 keeps them."""
    losses = np.round(np.random.default_rng(6).pareto(1.5, (500, 4)) * 2**8) / 2**8
    plain = play(cls(4, **settings, lower=0.25, seed=1), losses)
    lower = math.ldexp(0.25, k)
    scaled = play(cls(4, **settings, lower=lower, seed=1), np.ldexp(losses, k))
    assert plain[0] == scaled[0]
    assert np.array_equal(plain[1], scaled[1])


def test_a_plain_sum_of_squares_is_not_free_of_scale():
    """The control: the slow twin adds squares as they are, and 2^-600 squared is 0."""
    losses = coins(50, 3, 1)
    plain, scaled = twin_of(CostSCB)(3, tune="scale"), twin_of(CostSCB)(3, tune="scale")
    next(plain), next(scaled)
    for row in losses[:, :1].repeat(3, axis=1):
        plain.send((0, row))
        if row[0] > 0.0:
            break
        scaled.send((0, row))
    with pytest.raises(ZeroDivisionError):
        scaled.send((0, np.ldexp(row, -600)))


@pytest.mark.parametrize("lower", [0.0, -1.7e308])
@pytest.mark.parametrize(("cls", "settings"), SETTINGS)
def test_all_sizes_in_one_play(cls, settings, lower):
    sizes = [5e-324, 1e-310, 1e-200, 1.0, 1e150, 1.7e308, 1.0, 5e-324, 0.0]
    learner = cls(4, **settings, lower=lower, seed=3)
    rng = np.random.default_rng(7)
    for size in (*sizes, *rng.choice(sizes, 100)):
        for _ in range(4):
            choice = learner.ask()
            learner.tell(choice, float(size) * [1.0, 0.5, 0.0, 0.9][choice.arm])
            q = learner.probabilities()
            assert np.isfinite(q).all()
            assert abs(q.sum() - 1.0) < 1e-12


# --------------------------------------------------------------------------------- late feedback


@pytest.mark.parametrize(("cls", "settings"), SETTINGS)
def test_delayed_losses_are_clipped_at_the_threshold_of_the_tell(cls, settings):
    """... and divided by the probability of the ask; the overshoot is that of the tells."""
    learner, rng = cls(3, **settings, seed=4), np.random.default_rng(8)
    rank = settings.get("outliers", 0)
    waiting, told, total = [], [], 0.0
    for _ in range(400):
        waiting += [learner.ask() for _ in range(rng.integers(0, 3))]
        if waiting:
            choice = waiting.pop(rng.integers(len(waiting)))
            x = float(rng.pareto(1.0) * (1 + choice.arm))
            total += max(0.0, x - learner.scale)
            learner.tell(choice, x)
            told.append(x)
    if rank != "sqrt":
        assert total == pytest.approx(np.sort(told)[-rank - 1 :].sum(), rel=1e-12)


# ------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"outliers": "root"}, ValueError, "outliers must be a number or 'sqrt'"),
        ({"outliers": -1}, ValueError, "outliers must be at least 0"),
        ({"outliers": 1.5}, TypeError, "outliers must be an integer"),
        ({"tune": "B"}, ValueError, "tune must be one of 'paid', 'scale'"),
        ({"implicit": -1.0}, ValueError, "implicit must be at least 0"),
        ({"lower": 0.0, "best_reward": 1.0}, TypeError, "best_reward is -lower"),
        ({"lower": math.nan}, ValueError, "lower must be finite"),
    ],
)
def test_what_is_rejected(settings, error, match):
    with pytest.raises(error, match=match):
        CostSCB(3, **settings)


def test_the_growing_rank_stops():
    learner = CostSCB(100, outliers="sqrt", seed=0)
    for t in range(1, 500):
        choice = learner.ask()
        learner.tell(choice, float(t))
    rank = math.ceil(math.sqrt(100 * 500))
    assert learner.scale == 500 - rank
    many = CostSCB(10**6, outliers="sqrt", seed=0)
    for t in range(1, 2050):
        many.tell(many.ask(), float(t))
    assert many.scale == 2050 - 2048
