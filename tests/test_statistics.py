"""The theorems, by Monte Carlo with fixed seeds. The `long` tier has the sizes of the docs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unbounded import SCB, SCBIX, Uniform, simulate
from unbounded.adversaries import (
    Growth,
    LowerBound,
    SpikeLeastLikely,
    StochasticGap,
    Switch,
)
from unbounded.bandits import scb, scb_ix

ADVERSARIES = {
    "stochastic gap": StochasticGap(),
    "lower bound": LowerBound(),
    "switch": Switch(),
    "growth": Growth(),
    "spike on the least likely arm": SpikeLeastLikely(),
    "shifted by 1000": StochasticGap(shift=1000.0),
}
N = 10


def relative(learner, adversary, rounds, replicates, unit, pseudo=False):
    result = simulate(learner, adversary, rounds, replicates, seed=2024, checkpoints=[rounds])
    return result.relative_regret(unit, pseudo=pseudo)[:, -1]


def test_scb_at_a_million_rounds_and_uniform_not():
    """Mean regret <= 10 l_inf sqrt(n T) on every adversary; the uniform learner fails this."""
    rounds = 1_000_000
    ceiling = 10.0 * math.sqrt(N * rounds)
    failed = 0
    for name, adversary in ADVERSARIES.items():
        assert relative(SCB(N), adversary, rounds, 16, "scale").mean() <= ceiling, name
        failed += relative(Uniform(N), adversary, rounds, 2, "scale").mean() > ceiling
    assert failed >= 3


@pytest.mark.parametrize("rate", [1.0, 2.0])
@pytest.mark.parametrize("name", ADVERSARIES)
def test_range_clipping_is_below_its_theorem(name, rate):
    learner, rounds = SCB(N, clip="range", rate=rate), 20_000
    regret = relative(learner, ADVERSARIES[name], rounds, 40, "range", pseudo=True)
    error = 3.0 * regret.std(ddof=1) / math.sqrt(regret.size)
    assert regret.mean() + error <= scb.range_bound(N, rounds, rate)


@pytest.mark.parametrize("name", ADVERSARIES)
def test_scale_clipping_is_below_its_bound(name):
    regret = relative(SCB(N), ADVERSARIES[name], 20_000, 40, "scale", pseudo=True)
    error = 3.0 * regret.std(ddof=1) / math.sqrt(regret.size)
    assert regret.mean() + error <= scb.scale_bound(N, 20_000)


@pytest.mark.parametrize("name", ADVERSARIES)
def test_the_clipping_error_of_range_clipping(name):
    """E sum of e+ + e- <= (n / beta_T) (max - min) = (2 n + sqrt(n T)) (max - min)."""
    adversary, rounds, replicates = ADVERSARIES[name], 2000, 30
    errors = []
    for r in range(replicates):
        learner = SCB(N, clip="range", seed=r)
        params, state = adversary.begin(N, rounds, 1000 + r)
        low, high, error = math.inf, -math.inf, 0.0
        smallest, largest = math.inf, -math.inf
        row, arm = np.empty(N), -1
        for t in range(1, rounds + 1):
            type(adversary).fill(params[2:], state, t, arm, learner.probabilities(), row)
            losses = params[0] * row + params[1]
            smallest, largest = min(smallest, losses.min()), max(largest, losses.max())
            if low <= high:
                error += max(0.0, losses.max() - high) + max(0.0, low - losses.min())
            choice = learner.ask()
            arm = choice.arm
            low, high = min(low, losses[arm]), max(high, losses[arm])
            learner.tell(choice, losses[arm])
        errors.append(error / (largest - smallest))
    mean, noise = np.mean(errors), 3.0 * np.std(errors, ddof=1) / math.sqrt(replicates)
    assert mean + noise <= 2 * N + math.sqrt(N * rounds)


@pytest.mark.parametrize("name", ADVERSARIES)
def test_scb_ix_with_range_clipping_has_its_quantile_below_the_bound(name):
    """The 99% quantile of the realised regret of 400 runs."""
    learner, rounds = SCBIX(N, clip="range"), 10_000
    regret = relative(learner, ADVERSARIES[name], rounds, 400, "range")
    assert np.quantile(regret, 0.99) <= scb_ix.range_bound(N, rounds, delta=0.01)


@pytest.mark.long
@pytest.mark.parametrize("name", ADVERSARIES)
def test_bounds_at_a_million_rounds(name):
    rounds = 1_000_000
    adversary = ADVERSARIES[name]
    for learner, unit, ceiling in (
        (SCB(N), "scale", scb.scale_bound(N, rounds)),
        (SCB(N, clip="range"), "range", scb.range_bound(N, rounds, 1.0)),
        (SCB(N, clip="range", rate=2.0), "range", scb.range_bound(N, rounds, 2.0)),
    ):
        regret = relative(learner, adversary, rounds, 50, unit, pseudo=True)
        assert regret.mean() + 3.0 * regret.std(ddof=1) / math.sqrt(50) <= ceiling
    quantile = np.quantile(relative(SCBIX(N, clip="range"), adversary, rounds, 200, "range"), 0.99)
    assert quantile <= scb_ix.range_bound(N, rounds, delta=0.01)
