"""What holds for every learner with a half-life, in simulations; each test has a control."""

from __future__ import annotations

import resource
from dataclasses import replace

import numpy as np
import pytest

from unbounded import AdaINF, CostSCB, CostSCBIX, Uniform, simulate
from unbounded.adversaries import Changing, changing

pytestmark = pytest.mark.filterwarnings("ignore::unbounded.ScaleWarning")  # rises are meant

LEARNERS = [
    (CostSCB, {"tune": "scale"}),
    (CostSCB, {"cap": 10.0}),
    (CostSCB, {"outliers": "sqrt"}),
    (CostSCBIX, {}),
    (AdaINF, {}),
    (AdaINF, {"robust": False}),
]


def followed(learner, adversary, rounds: int) -> bytes:
    """The probability of the best arm over time, in bits."""
    points = range(50, rounds + 1, 50)
    play = simulate(learner, adversary, rounds, 2, seed=3, checkpoints=points, dynamic=True)
    return play.best_probability.tobytes()


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(changing()))
@pytest.mark.parametrize(("cls", "settings"), LEARNERS)
def test_losses_that_change_in_any_unit(cls, settings, name):
    adversary = changing()[name]
    if name == "offset drifts" and cls is not AdaINF:
        adversary = replace(adversary, offset=1000.0)  # costs are nonnegative
    learner = cls(6, half_life=40, **settings)
    usual = followed(learner, adversary, 2000)
    for exponent in (-900, -17, 900):
        scaled = replace(adversary, scale=2.0**exponent)
        assert followed(learner, scaled, 2000) == usual
    if name != "likeliest costs 1":  # where ranks clip everything to 0
        assert usual != followed(Uniform(6), adversary, 2000)
    if name in ("scale falls", "scale rises"):  # the control: it does learn from sizes
        assert followed(learner, replace(adversary, factor=1.0), 2000) != usual


@pytest.mark.parametrize(("cls", "settings"), LEARNERS)
def test_the_last_of_a_hundred_thousand_half_lives_is_like_the_first(cls, settings):
    losses = Changing(changes=0, mean=0.8, gap=0.7, noise="uniform")

    def spread(h: int) -> float:
        """How far the regret of tenths of the play is apart, over its mean."""
        points = np.arange(1, 11) * 10**5
        play = simulate(cls(3, half_life=h, **settings), losses, 10**6, 1, 1, checkpoints=points)
        regret = np.diff(play.pseudo_regret[0], prepend=0.0)
        return float(np.ptp(regret) / regret.mean())

    assert spread(10) < 0.05  # 0.006 to 0.020
    assert spread(10**9) > 2.0  # the control, which does not forget: 2.6 to 9.1


@pytest.mark.long
def test_ten_million_rounds_in_constant_memory():
    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # kilobytes

    coins = Changing(changes=5)
    learners = [CostSCB(10, half_life=1000), CostSCB(10, half_life=1000, outliers="sqrt"),
                AdaINF(10, half_life=1000)]  # fmt: skip
    for learner in learners:
        simulate(learner, coins, 10_000, seed=0)
    before, sizes = peak(), [learner._buffer.size for learner in learners]
    for learner in learners:
        result = simulate(learner, coins, 10**7, seed=0, checkpoints=[10**7])
        assert result.pseudo_regret[0, -1] < 0.4 * 0.18 * 10**7
    assert peak() - before < 20_000
    assert [learner._buffer.size for learner in learners] == sizes
    held = np.ones(10**7)  # the control: one number per round would be seen
    assert peak() - before > 60_000
    assert held.size == 10**7
