"""AdaINF(half_life="auto") (docs/theory/forgetting.md, section 8)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from slow.ada_inf import auto
from unbounded import AdaINF, Uniform, simulate
from unbounded.adversaries import changing
from unbounded.bandits import auto_ada_inf
from unbounded.validation import ArgumentValueError


def play(learner: AdaINF, losses: np.ndarray) -> np.ndarray:
    """The probabilities before each round."""
    qs = []
    for row in losses:
        qs.append(learner.probabilities())
        choice = learner.ask()
        learner.tell(choice, float(row[choice.arm]))
    return np.array(qs)


def gaussian(rounds: int, n: int = 4, seed: int = 0) -> np.ndarray:
    """Losses that a shift by 1000 does not round."""
    values = np.random.default_rng(seed).normal(size=(rounds, n))
    values[:, 1] -= 1.0
    return np.round(values * 2**20) / 2**20


@pytest.mark.long
@pytest.mark.parametrize(("name", "control"), [("stationary", 100), ("5 changes", 10_000)])
def test_it_is_near_the_best_of_its_copies(name, control):
    """Regret in percent of that of uniform play; the control is one of the copies alone."""
    T, found = 100_000, []
    for learner in (AdaINF(10, half_life="auto"), AdaINF(10, half_life=control), Uniform(10)):
        shown = simulate(learner, changing()[name], T, 3, seed=1, dynamic=True, checkpoints=[T])
        found.append(float(shown.dynamic_pseudo_regret[:, -1].mean()))
    limit = {"stationary": 10.0, "5 changes": 35.0}[name]
    assert 100.0 * found[0] / found[2] < limit < 100.0 * found[1] / found[2]


@pytest.mark.parametrize("settings", [(True, 0), (False, 0), (True, 2)])
def test_the_twin_agrees_beyond_blocks_and_falls(settings, monkeypatch):
    losses = gaussian(300, 3)
    losses[:90] *= 2.0**12
    monkeypatch.setattr(auto_ada_inf, "HALF_LIVES", (10, 40, 100, 2**30))
    monkeypatch.setattr(auto_ada_inf, "OF_WEIGHTS", 40)

    def apart(lives: tuple[int, ...]) -> float:
        learner = AdaINF(3, half_life="auto", seed=2, robust=settings[0], trim=settings[1])
        slow, most = auto(3, 0.75, *settings, lives, 40), 0.0
        expected = next(slow)
        for row in losses:
            most = max(most, float(np.abs(learner.probabilities() - expected).max()))
            choice = learner.ask()
            learner.tell(choice, float(row[choice.arm]))
            expected = slow.send((choice.arm, row))
        return most

    assert apart((10, 40, 100, 2**30)) < 1e-7
    assert apart((10, 40, 90, 2**30)) > 1e-3  # the control: another copy


def test_powers_of_two_change_nothing_though_the_scale_falls_and_rises():
    losses = gaussian(700)
    losses[200:400] *= 2.0**40
    usual = play(AdaINF(4, half_life="auto", seed=2), losses)
    for power in (-900, 900):
        scaled = play(AdaINF(4, half_life="auto", seed=2), np.ldexp(losses, power))
        assert np.array_equal(scaled, usual)
    assert not np.array_equal(play(AdaINF(4, half_life="auto", seed=2), 3.0 * losses), usual)


def test_a_shift_changes_nothing_but_rounding():
    losses = gaussian(400)
    qs = [play(AdaINF(4, half_life="auto", seed=1), losses + by) for by in (0.0, 1000.0)]
    np.testing.assert_allclose(qs[0], qs[1], rtol=0.0, atol=1e-9)
    assert np.abs(qs[0] - play(AdaINF(4, half_life="auto", seed=1), -losses)).max() > 0.1


@pytest.mark.parametrize("n", [3, 130])
def test_losses_of_all_sizes_in_one_play(n):
    rng, learner = np.random.default_rng(4), AdaINF(n, half_life="auto", seed=0)
    for size, rounds in [(2.0**1000, 60), (2.0**-1000, 120), (0.0, 60), (2.0**1023, 30), (1.0, 99)]:
        for _ in range(rounds):
            choice = learner.ask()
            learner.tell(choice, 1.9 * size * float(rng.uniform(-1.0, 1.0)))
            q = learner.probabilities()
            assert q.min() >= 0.0
            assert abs(q.sum() - 1.0) < 1e-9
            assert math.isfinite(learner.scale)
    other = AdaINF.load(learner.save())
    assert np.array_equal(other.probabilities(), learner.probabilities())


@pytest.mark.parametrize("lost", ["mixture.L", "middle.memory.pos", "slow.arms.M"])
def test_a_save_is_whole(lost):
    """The control: with another number in one of its parts, it is rejected."""
    losses = gaussian(500)
    learner = AdaINF(4, half_life="auto", seed=7)
    play(learner, losses[:250])
    text, usual = learner.save(), play(learner, losses[250:])
    assert np.array_equal(play(AdaINF.load(text), losses[250:]), usual)
    forged = AdaINF.load(text)
    packing, buffer = forged.spec.packing, forged._buffer
    if lost in ("mixture.L", "slow.arms.M"):
        buffer[packing.place(lost, buffer)] *= 0.5
    else:
        buffer[packing.slot(lost)] += 1.0
    with pytest.raises(ValueError, match="not a saved AdaINF"):
        AdaINF.load(forged.save())


def test_delayed_losses():
    learner, rng, waiting = AdaINF(3, half_life="auto", seed=0), np.random.default_rng(0), []
    for _ in range(900):
        waiting.append(learner.ask())
        if len(waiting) > 20:
            choice = waiting.pop(int(rng.integers(len(waiting))))
            learner.tell(choice, float(rng.normal()) - (choice.arm == 2))
    assert learner.probabilities()[2] > 0.6


def test_illegal_settings():
    with pytest.raises(ArgumentValueError, match="half_life"):
        AdaINF(3, half_life="often")
    with pytest.raises(ArgumentValueError, match="trim"):
        AdaINF(3, half_life="auto", trim=1000)


def test_one_arm():
    learner = AdaINF(1, half_life="auto", seed=0)
    for loss in gaussian(50)[:, 0].tolist():
        learner.tell(learner.ask(), loss)
        assert AdaINF.load(learner.save()).probabilities().tolist() == [1.0]
