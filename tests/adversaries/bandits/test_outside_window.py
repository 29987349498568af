"""Losses just outside of what was observed."""

import numpy as np
import pytest

from loss_helpers import losses_of
from unbounded.adversaries import OutsideWindow


@pytest.mark.parametrize(("margin", "limit"), [(0.5, 10.0), (0.05, 1.0)])
def test_follows_what_was_observed(margin, limit):
    rounds = 60
    arms = [int(k) for k in np.random.default_rng(0).integers(0, 3, rounds)]
    adversary = OutsideWindow() if margin == 0.05 else OutsideWindow(margin, limit)
    losses = losses_of(adversary, n=3, rounds=rounds, q=[0.2, 0.5, 0.3], arms=arms)
    low = high = losses[0, arms[0]]
    for t in range(1, rounds):
        step = margin * max(high - low, 1e-3 * limit)
        assert losses[t, 0] == pytest.approx(max(-limit, low - step))  # the least likely
        assert losses[t, 1] == pytest.approx(min(limit, high + step))  # the likeliest
        assert losses[t, 2] == pytest.approx(0.5 * (low + high))
        low, high = min(low, losses[t, arms[t]]), max(high, losses[t, arms[t]])


def test_errors():
    with pytest.raises(ValueError, match=r"margin must be above 0, got 0.0"):
        OutsideWindow(margin=0.0)
    with pytest.raises(ValueError, match=r"limit must be above 0, got inf"):
        OutsideWindow(limit=float("inf"))
