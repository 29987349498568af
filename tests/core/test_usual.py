"""The usual loss and the cap in units of it."""

from __future__ import annotations

import numpy as np
import pytest

from unbounded import CostSCB
from unbounded.core.usual import RECENT, cut, new_usual


@pytest.mark.parametrize("lower", [0.0, -3.0])
def test_a_loss_is_cut_at_the_cap_times_the_median_of_the_last_losses(lower):
    rng = np.random.default_rng(2)
    losses = lower + np.where(rng.random(300) < 0.3, 0.0, np.abs(rng.standard_cauchy(300)))
    usual, number_cut = new_usual(True), 0
    for t, loss in enumerate(losses):
        recent = sorted(losses[max(0, t - RECENT) : t])
        usually = recent[len(recent) // 2] - lower if recent else 0.0
        expected = min(loss, lower + 4.0 * usually) if usually > 0.0 else loss
        assert cut(usual, lower, 4.0, t + 1, loss) == expected
        number_cut += expected < loss
    assert number_cut > 20  # control: it does something
    usual.check_for(lower, 301)
    usual.recent[3] += 1.0
    with pytest.raises(ValueError, match="recent"):
        usual.check_for(lower, 301)


def test_time_outs_that_hit_all_arms_do_not_set_the_scale():
    rng = np.random.default_rng(3)
    losses = np.exp(0.3 * rng.standard_normal((3000, 4))) * [1.0, 0.5, 1.0, 1.0]
    losses[rng.random(losses.shape) < 0.004] = 3000.0
    best = {}
    for cap in (None, 30.0):
        learner = CostSCB(4, half_life=1000, cap=cap, seed=0)
        learner._watching = True  # no warnings
        for row in losses:
            choice = learner.ask()
            learner.tell(choice, float(row[choice]))
        best[cap] = learner.probabilities()[1]
        assert (learner.scale < 60.0) == (cap is not None)
    assert best[30.0] > 0.6 > best[None]
    assert learner.clipped > 0


def test_a_cap_needs_a_half_life():
    with pytest.raises(ValueError, match=r"cap.*half_life"):
        CostSCB(3, cap=100.0)
    for wrong in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="cap"):
            CostSCB(3, half_life=100, cap=wrong)
