"""Programs of phases."""

import math

import numpy as np
import pytest

from loss_helpers import losses_of
from unbounded.adversaries import Phase, Program
from unbounded.adversaries.bandits.program import (
    ABOVE,
    AT_MINIMUM,
    BELOW,
    PUNISH_LAST,
    PUNISH_LIKELIEST,
    REWARD_UNLIKELIEST,
)


def test_programs_switch_grow_and_react():
    switch = Program([Phase(end=0.5, best=0.0, gap=0.5), Phase(best=0.99, gap=0.5)])
    losses = losses_of(switch, rounds=10)
    assert losses[:5].argmin(axis=1).tolist() == [0] * 5
    assert losses[5:].argmin(axis=1).tolist() == [3] * 5
    growth = losses_of(Program([Phase(level=1.0, gap=0.0, growth=16.0)]), rounds=4)
    np.testing.assert_allclose(growth[:, 0], [1.0, 2.0, 4.0, 8.0])
    q = [0.1, 0.2, 0.6, 0.1]
    for reaction, arm, loss in (
        (PUNISH_LIKELIEST, 2, 1.0),
        (REWARD_UNLIKELIEST, 0, 0.0),
        (PUNISH_LAST, 0, 1.0),
    ):
        phase = Phase(level=0.5, gap=0.0, reaction=reaction, trigger=0.5)
        reacted = losses_of(Program([phase]), q=q, rounds=3)[-1]
        assert reacted.tolist() == [loss if k == arm else 0.5 for k in range(4)]
        calm = losses_of(Program([phase._replace(trigger=0.7)]), q=q, rounds=3)
        assert (calm == 0.5).all()


def test_spikes_of_programs_are_placed_by_what_was_observed():
    q = [0.1, 0.7, 0.1, 0.1]
    for spike, expected in ((AT_MINIMUM, 0.4), (BELOW, 0.4 - 2.0 * 0.1), (ABOVE, 0.5 + 2.0 * 0.1)):
        phase = Phase(best=0.0, spike_rate=1.0, spike=spike, margin=2.0)
        params, state = Program([phase]).begin(4, 10, 3)
        row = np.empty(4)
        state[1], state[2] = 0.4, 0.5  # what the learner has observed
        Program.fill(params[2:], state, 5, -1, np.array(q), row)
        usual = np.array([0.4, 0.5, 0.5, 0.5])
        changed = np.flatnonzero(row != usual)
        assert changed.size == 1 or (spike == AT_MINIMUM and changed.tolist() == [1])
        assert row[changed[0]] == pytest.approx(expected)


def test_phases_may_be_mappings():
    same = [Program([{"gap": 0.3, "noise": 0.5}]), Program([Phase(gap=0.3, noise=0.5)])]
    one, other = (losses_of(program, rounds=20) for program in same)
    assert np.array_equal(one, other)


def test_noise_has_the_mean_of_the_losses():
    losses = losses_of(Program([Phase(level=0.8, gap=0.6, noise=1.0)]), rounds=20_000)
    assert set(losses.ravel()) == {0.0, 1.0}
    np.testing.assert_allclose(losses.mean(axis=0), [0.2, 0.8, 0.8, 0.8], atol=0.02)


@pytest.mark.parametrize(
    ("phases", "message"),
    [
        ([], "order of their ends"),
        ([Phase(end=1.0), Phase(end=0.5)], "order of their ends"),
        ([Phase(best=1.0)], r"best in \[0, 1\)"),
        ([Phase(size=math.nan)], "finite numbers"),
    ],
)
def test_errors(phases, message):
    with pytest.raises(ValueError, match=message):
        Program(phases)
