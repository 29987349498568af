"""Heavy tails of both signs."""

import numpy as np
import pytest
from scipy import stats

from loss_helpers import losses_of
from unbounded.adversaries import StudentT


@pytest.mark.parametrize("degrees", [1.0, 2.0, 3.5])
def test_has_its_distribution(degrees):
    losses = losses_of(StudentT(degrees), n=2, rounds=4000)
    assert stats.kstest(losses[:, 1], stats.t(degrees).cdf).pvalue > 1e-3
    assert stats.kstest(losses[:, 0] + 0.5, stats.t(degrees).cdf).pvalue > 1e-3


def test_the_better_arm():
    plain = losses_of(StudentT(gap=0.0), rounds=50)
    better = losses_of(StudentT(gap=0.7, best=6), rounds=50)
    np.testing.assert_allclose(better, plain - [0.0, 0.0, 0.7, 0.0], atol=0)


def test_errors():
    with pytest.raises(ValueError, match=r"degrees must be at least 0.2 and finite, got 0.0"):
        StudentT(0.0)
