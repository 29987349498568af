"""What the baselines for changing arms and for heavy tails are good for, and what not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unbounded import HTINF, AdaTINF, Exp3Auer, Exp3S, LogThompson, RobustUCB, Uniform, simulate
from unbounded.adversaries import Replay
from unbounded.bandits.baselines.exp3_s import bound
from unbounded.bandits.baselines.ht_inf import theta_of
from unbounded.bandits.baselines.log_thompson import student
from unbounded.bandits.baselines.robust_ucb import median_of_means


def costs_of(learner, losses: np.ndarray, seed: int = 0) -> float:
    """What it paid less the cost of arm 0."""
    result = simulate(learner, Replay(losses), len(losses), 1, seed, comparators=None)
    return float(result.regret[0, -1] + (losses.sum(axis=0).min() - losses[:, 0].sum()))


def test_exp3_s_follows_the_best_arm():
    """Regret against the best sequence of arms is below its theorem's bound; Exp3's is not."""
    n, rounds, phases = 4, 40_000, 8
    best = np.arange(rounds) * phases // rounds % n
    rng = np.random.default_rng(1)
    means = np.where(np.arange(n) == best[:, None], 0.05, 0.95)
    losses = (rng.uniform(size=(rounds, n)) < means).astype(float)
    paid = losses[np.arange(rounds), best].sum()

    def tracking(learner) -> float:
        result = simulate(learner, Replay(losses), rounds, 4, 2)
        return float(result.regret[:, -1].mean()) + losses.sum(axis=0).min() - paid

    limit = bound(n, rounds, phases - 1)
    assert tracking(Exp3S(n, rounds=rounds, switches=phases - 1)) < limit
    assert tracking(Uniform(n)) > limit
    assert tracking(Exp3Auer(n, rounds=rounds)) > limit


def heavy(rounds: int, n: int, seed: int) -> np.ndarray:
    """Pareto losses with a finite variance and none of higher order; arm 0 is better."""
    rng = np.random.default_rng(seed)
    losses = 1.0 + rng.pareto(2.1, (rounds, n))
    losses[:, 0] -= 0.8
    return losses


@pytest.mark.parametrize(
    "make",
    [
        lambda n, rounds: HTINF(n, sigma=4.0),
        lambda n, rounds: AdaTINF(n, rounds=rounds),
        lambda n, rounds: LogThompson(n),
        lambda n, rounds: RobustUCB(n, rounds=rounds, moment=0.2),
    ],
)
def test_heavy_tails_are_learned(make):
    n, rounds = 4, 20_000
    excess = [costs_of(make(n, rounds), heavy(rounds, n, r), r) for r in range(3)]
    uniform = [costs_of(Uniform(n), heavy(rounds, n, r), r) for r in range(3)]
    assert np.mean(excess) < 0.5 * np.mean(uniform)


def test_the_threshold_of_htinf_is_continuous():
    assert theta_of(2.0) == pytest.approx(1.0 - 2.0 ** (-1.0 / 3.0))
    assert theta_of(2.0 - 1e-9) == pytest.approx(theta_of(2.0), rel=1e-6)


@pytest.mark.parametrize("freedom", [2.0, 5.0, 40.0])
def test_students_t(freedom):
    from scipy.stats import kstest, t

    rng = np.random.default_rng(4)
    drawn = [student(u, v, freedom) for u, v in rng.random((20_000, 2))]
    assert kstest(drawn, t(freedom).cdf).pvalue > 1e-3
    assert (
        kstest(drawn, t(freedom + 1.0 if freedom < 3.0 else 1.5).cdf).pvalue < 1e-3
    )  # the control


@pytest.mark.parametrize("s", [1, 2, 3, 7, 8, 9, 30])
def test_the_median_of_means(s):
    losses, hands = np.random.default_rng(5).exponential(size=s), 8
    sums = np.zeros(hands)
    for i, loss in enumerate(losses):
        sums[i % hands] += loss
    blocks = [
        losses[[i for i in range(s) if i % hands // 2 == j]] for j in range(min(s, hands) // 2)
    ]
    expected = np.median([b.mean() for b in blocks]) if blocks else losses[0]
    assert median_of_means(sums, s, np.zeros(4)) == pytest.approx(expected, rel=1e-14)


def test_the_median_of_means_does_not_mind_one_huge_loss():
    losses = np.random.default_rng(6).exponential(size=400)
    sums = losses.reshape(-1, 40).sum(axis=0)
    sums[3] += 1e9
    assert median_of_means(sums, 400, np.zeros(20)) == pytest.approx(1.0, abs=0.3)
    assert sums.sum() / 400 > 1e6


def test_log_thompson_ranks_by_the_geometric_mean():
    """A rare huge loss says little to it, for good or ill."""
    n, rounds, rng = 3, 4000, np.random.default_rng(7)
    losses = np.exp(0.3 * rng.standard_normal((rounds, n)))
    losses[:, 0] *= 0.5
    losses[rng.uniform(size=rounds) < 0.003, 0] = 1e4
    learner, plays = LogThompson(n), np.zeros(n)
    for row in losses:
        choice = learner.ask()
        plays[choice.arm] += 1
        learner.tell(choice, float(row[choice.arm]))
    assert plays.argmax() == 0
    assert losses[:, 0].mean() > 10.0 * losses[:, 1:].mean()
    assert math.isfinite(plays.sum())
