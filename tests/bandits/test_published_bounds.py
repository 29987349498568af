"""Learners with a published bound for a known range keep it, on losses in [0, 1].

All adversaries but "lower bound" are such that the uniform learner exceeds every one of the bounds.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tiers import first_only
from unbounded import (
    INF,
    SOLOFTRL,
    UCB1,
    AdaFTRL,
    AdaHedge,
    Exp3,
    Exp3Auer,
    Exp3IX,
    Exp3P,
    Exp3S,
    TsallisINF,
    TsallisINFRV,
    Uniform,
    simulate,
)
from unbounded.adversaries import Chaser, Drift, LowerBound, StochasticGap, Switch

N, T, REPLICATES, DELTA = 4, 40_000, 24, 0.05
ADVERSARIES = {
    "switch": Switch(1.0 / 6.0, at=0.1),
    "gap": StochasticGap(0.5),
    "lower bound": LowerBound(),  # the hardest gap: within these bounds whatever one does
    "drift": Drift(0.5, cycles=0.3),
    "chaser, adaptive": Chaser(),
}
log, sqrt = math.log, math.sqrt

EXPECTED = {
    "Exp3": (Exp3(N), 2.0 * sqrt(N * T * log(N))),
    "Exp3, T": (Exp3(N, rounds=T), sqrt(2.0 * N * T * log(N))),
    "Exp3Auer": (Exp3Auer(N, rounds=T), 2.0 * sqrt(math.e - 1.0) * sqrt(N * T * log(N))),
    "Exp3S": (Exp3S(N, rounds=T), 2.0 * sqrt((math.e - 1.0) * N * T * (log(N * T) + math.e))),
    "INF": (INF(N, rounds=T), 8.0 * sqrt(N * T)),
    "TsallisINF": (TsallisINF(N), 4.0 * sqrt(N * T) + 1.0),
    "TsallisINFRV": (TsallisINFRV(N), 2.0 * sqrt(N * T) + 14.0 * N * log(T) + 16.0),
    "AdaHedge": (AdaHedge(N), sqrt(T * log(N)) + 4.0 / 3.0 * log(N) + 2.0),
    "AdaFTRL": (AdaFTRL(N), (1.0 + log(N)) * sqrt(1.25 * T)),
    "SOLOFTRL": (SOLOFTRL(N), 2.0 * sqrt(2.75 * T * log(N)) + 7.0),
}
IOTA = log(3 * N)
WITH_PROBABILITY = {
    "Exp3P, auer": (
        Exp3P(N, rounds=T, delta=DELTA, form="auer"),
        4.0 * sqrt(N * T * log(N * T / DELTA))
        + 4.0 * sqrt(5.0 / 3.0 * N * T * log(N))
        + 8.0 * log(N * T / DELTA),
    ),
    "Exp3P, bubeck": (
        Exp3P(N, rounds=T, delta=DELTA, form="bubeck"),
        5.15 * sqrt(N * T * log(N / DELTA)),
    ),
    "Exp3P, audibert": (
        Exp3P(N, rounds=T, form="audibert"),
        3.0 * sqrt(N * T * IOTA) + sqrt(2.0 * N * T / IOTA) * log(N / DELTA),
    ),
    "Exp3IX": (
        Exp3IX(N),
        4.0 * sqrt(N * T * log(N)) + (2.0 * sqrt(N * T / log(N)) + 1.0) * log(2.0 / DELTA),
    ),
    "Exp3IX, T": (
        Exp3IX(N, rounds=T),
        2.0 * sqrt(2.0 * N * T * log(N)) + (sqrt(2.0 * N * T / log(N)) + 1.0) * log(2.0 / DELTA),
    ),
    "Exp3IX, T and delta": (
        Exp3IX(N, rounds=T, delta=DELTA),
        2.0 * sqrt((2.0 * log(N + 1) + log(1.0 / DELTA)) * N * T) + log((N + 1) / DELTA),
    ),
}


def play(learner, name):
    return simulate(learner, ADVERSARIES[name], T, REPLICATES, 31, checkpoints=[T])


@pytest.mark.parametrize("name", first_only(ADVERSARIES))
@pytest.mark.parametrize("which", EXPECTED)
def test_expected_regret(which, name):
    learner, bound = EXPECTED[which]
    regret = play(learner, name).pseudo_regret[:, -1]
    assert regret.mean() + 3.0 * regret.std(ddof=1) / sqrt(REPLICATES) <= bound


@pytest.mark.parametrize("name", first_only(ADVERSARIES))
@pytest.mark.parametrize("which", WITH_PROBABILITY)
def test_regret_with_high_probability(which, name):
    learner, bound = WITH_PROBABILITY[which]
    regret = play(learner, name).regret[:, -1]
    exceeding = (regret > bound).sum()
    # more than this many of 24 would refute P(exceed) <= 0.05 at the level 0.001
    assert exceeding <= 5


@pytest.mark.parametrize("name", [name for name in ADVERSARIES if name != "lower bound"])
def test_the_uniform_learner_exceeds_every_bound(name):
    """The control: what the tests above ask for is not had without learning."""
    largest = max(bound for _, bound in [*EXPECTED.values(), *WITH_PROBABILITY.values()])
    result = play(Uniform(N), name)
    pseudo = result.pseudo_regret[:, -1]
    assert pseudo.mean() - 3.0 * pseudo.std(ddof=1) / sqrt(REPLICATES) > largest
    assert result.regret[:, -1].min() > largest


def test_ucb1_keeps_its_bound_where_losses_are_independent():
    gap = 0.5
    regret = play(UCB1(N), "gap").pseudo_regret[:, -1]
    others = N - 1
    bound = 8.0 * others * log(T) / gap + (1.0 + math.pi**2 / 3.0) * others * gap
    assert regret.mean() + 3.0 * regret.std(ddof=1) / sqrt(REPLICATES) <= bound


def test_ucb1_has_linear_regret_against_an_adversary():
    regret = play(UCB1(N), "chaser, adaptive").pseudo_regret[:, -1]
    np.testing.assert_allclose(regret, T * (1.0 - 1.0 / N), rtol=1e-2)
