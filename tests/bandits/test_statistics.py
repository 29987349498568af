"""The theorems, by Monte Carlo with fixed seeds. The `long` tier has the sizes of the docs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tiers import first_only, only
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
# With these the uniform learner is above every bound of the theorems, at the sizes of the tests.
WIDE = {
    "stochastic gap": StochasticGap(0.5),
    "a quarter, some arm": LowerBound(1e3),  # the gap is capped at 1/4
    "switch": Switch(1.0 / 6.0, at=0.25),
    "growth": Growth(doublings=2.0, gap=0.5),
    "spike on the least likely arm": SpikeLeastLikely(height=-1.0, gap=0.5),
    "both signs": StochasticGap(0.5, shift=-0.5),
}
TWO, ROUNDS = 2, 150_000


def relative(learner, adversary, rounds, replicates, unit, pseudo=False):
    result = simulate(learner, adversary, rounds, replicates, seed=2024, checkpoints=[rounds])
    return result.relative_regret(unit, pseudo=pseudo)[:, -1]


@pytest.mark.long
def test_scb_at_a_million_rounds_and_uniform_not():
    """Mean regret <= 10 l_inf sqrt(n T) on every adversary; the uniform learner fails this."""
    rounds = 1_000_000
    ceiling = 10.0 * math.sqrt(N * rounds)
    failed, paper = 0, SCB(N, profile="paper")
    for name, adversary in ADVERSARIES.items():
        assert relative(paper, adversary, rounds, 16, "scale").mean() <= ceiling, name
        failed += relative(Uniform(N), adversary, rounds, 2, "scale").mean() > ceiling
    assert failed >= 3


def above(values, ceiling):
    """Whether the mean is above the ceiling by three standard errors."""
    return values.mean() - 3.0 * values.std(ddof=1) / math.sqrt(values.size) > ceiling


def below(values, ceiling):
    return values.mean() + 3.0 * values.std(ddof=1) / math.sqrt(values.size) <= ceiling


@pytest.mark.parametrize("name", first_only(WIDE))
def test_range_clipping_is_below_its_theorem_and_uniform_above(name):
    for rate, mixing in ((1.0, 1.0), (2.0, 0.5)):  # the paper's, and the default
        learner = SCB(TWO, rate=rate, mixing=mixing)
        bound = scb.range_bound(TWO, ROUNDS, rate, mixing)
        assert below(relative(learner, WIDE[name], ROUNDS, 12, "range", pseudo=True), bound)
        assert above(relative(Uniform(TWO), WIDE[name], ROUNDS, 12, "range", pseudo=True), bound)


@pytest.mark.parametrize("name", first_only(WIDE))
def test_scale_clipping_is_below_its_bound_and_uniform_above(name):
    paper, bound = SCB(TWO, profile="paper"), scb.scale_bound(TWO, ROUNDS)
    assert below(relative(paper, WIDE[name], ROUNDS, 12, "scale", pseudo=True), bound)
    assert above(relative(Uniform(TWO), WIDE[name], ROUNDS, 12, "scale", pseudo=True), bound)


def test_range_clipping_does_not_mind_an_offset():
    """With 1000 added, range clipping keeps its theorem; scale clipping would break it."""
    adversary, bound = StochasticGap(0.5, shift=1000.0), scb.range_bound(TWO, ROUNDS)
    assert below(relative(SCB(TWO), adversary, ROUNDS, 12, "range", pseudo=True), bound)
    paper = SCB(TWO, profile="paper")
    assert above(relative(paper, adversary, ROUNDS, 12, "range", pseudo=True), bound)


@pytest.mark.parametrize("name", only(ADVERSARIES, "spike on the least likely arm"))
def test_the_clipping_error_of_range_clipping(name):
    """E sum of e+ + e- <= (n / beta_T) (max - min) = (2 n + sqrt(n T)) / mixing (max - min)."""
    adversary, rounds, replicates = ADVERSARIES[name], 2000, 30
    errors = []
    for r in range(replicates):
        learner = SCB(N, seed=r)
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
    assert mean + noise <= 2 * (2 * N + math.sqrt(N * rounds))


@pytest.mark.parametrize("case", first_only([("switch", 0.5), *((name, 1.0) for name in WIDE)]))
def test_scb_ix_has_its_quantile_below_the_bound_and_uniform_its_minimum_above(case):
    """The 99% quantile of the realized regret of 100 runs."""
    name, mixing = case
    bound = scb_ix.range_bound(TWO, ROUNDS, 0.01, mixing)
    regret = relative(SCBIX(TWO, mixing=mixing), WIDE[name], ROUNDS, 100, "range")
    assert np.quantile(regret, 0.99) <= bound
    assert relative(Uniform(TWO), WIDE[name], ROUNDS, 20, "range").min() > bound


@pytest.mark.long
@pytest.mark.parametrize("name", ADVERSARIES)
def test_bounds_at_a_million_rounds(name):
    rounds = 1_000_000
    adversary = ADVERSARIES[name]
    for learner, unit, ceiling in (
        (SCB(N, profile="paper"), "scale", scb.scale_bound(N, rounds)),
        (SCB(N, profile="paper", clip="range"), "range", scb.range_bound(N, rounds, 1.0, 1.0)),
        (SCB(N), "range", scb.range_bound(N, rounds)),
    ):
        regret = relative(learner, adversary, rounds, 50, unit, pseudo=True)
        assert regret.mean() + 3.0 * regret.std(ddof=1) / math.sqrt(50) <= ceiling
    quantile = np.quantile(relative(SCBIX(N), adversary, rounds, 200, "range"), 0.99)
    assert quantile <= scb_ix.range_bound(N, rounds, delta=0.01)
