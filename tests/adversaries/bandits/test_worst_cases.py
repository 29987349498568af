"""Cases that separate the ways of clipping."""

from unbounded import SCB, simulate
from unbounded.adversaries import worst_cases


def test_worst_cases_stay_in_the_range_they_declare():
    for name, (case, (low, high)) in worst_cases().items():
        result = simulate(SCB(10, clip="range"), case, 5000, 4, seed=1)
        assert low <= result.low.min(), name
        assert result.high.max() <= high, name
