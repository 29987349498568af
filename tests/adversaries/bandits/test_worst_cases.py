"""Cases that were found by searches."""

from unbounded import SCB, AdaINF, simulate
from unbounded.adversaries import worst_cases


def test_worst_cases_stay_in_the_range_they_declare():
    for name, (case, (low, high)) in worst_cases().items():
        result = simulate(SCB(10, clip="range"), case, 5000, 4, seed=1)
        assert low <= result.low.min(), name
        assert result.high.max() <= high, name


def test_what_was_found_against_a_learner_costs_it_more_than_a_gap_does():
    cases = worst_cases()
    regret = {
        name: simulate(AdaINF(10), cases[name][0], 10_000, 8, seed=1).regret[:, -1].mean()
        for name in ("reward the unlikely", "turns good late")
    }
    assert regret["turns good late"] > 316.0  # sqrt(nT)
    assert regret["reward the unlikely"] > 100.0
