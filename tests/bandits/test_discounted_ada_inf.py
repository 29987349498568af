"""AdaINF with a half-life (docs/theory/forgetting.md), each property with a control that fails."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unbounded import AdaINF, Uniform, simulate
from unbounded.adversaries import changing
from unbounded.bandits import discounted_ada_inf
from unbounded.core.simplex import signed_arms
from unbounded.validation import ArgumentValueError

T = 100_000


def play(learner: AdaINF, losses: np.ndarray) -> np.ndarray:
    """The probabilities before each round."""
    qs = []
    for row in losses:
        qs.append(learner.probabilities())
        choice = learner.ask()
        learner.tell(choice, float(row[choice.arm]))
    return np.array(qs)


def gaussian(rounds: int, n: int = 4, seed: int = 0) -> np.ndarray:
    """Losses that a shift by 1000 does not round; the best arm changes twice."""
    values = np.random.default_rng(seed).normal(size=(rounds, n))
    for j in range(3):
        values[j * rounds // 3 : (j + 1) * rounds // 3, j] -= 1.0
    return np.round(values * 2**20) / 2**20


# ---------------------------------------------------------------------------- what it is good for


def percent(name: str, gap: float, half_life: int | None) -> float:
    """Regret against the best arm of the moment, in percent of that of uniform play."""
    adversary = changing()[name]
    paid = [
        simulate(learner, adversary, T, 3, seed=1, checkpoints=[T]).regret[:, -1]
        for learner in (AdaINF(10, half_life=half_life), Uniform(10))
    ]
    return float(np.mean(100.0 * (1.0 + (paid[0] - paid[1]) / (0.9 * gap * T))))


def test_a_changing_best_arm_is_followed():
    assert percent("5 changes", 0.2, 1000) < 25.0
    assert percent("5 changes", 0.2, None) > 40.0  # the control
    assert percent("5 changes", 0.2, T // 5) > 30.0  # all of the time between changes is too long


def test_a_drifting_offset_needs_a_fast_center(monkeypatch):
    assert percent("offset drifts", 0.5, 1000) < 25.0
    monkeypatch.setattr(discounted_ada_inf, "_FASTER", 1)  # the control: h_B = h
    assert percent("offset drifts", 0.5, 1000) > 40.0


@pytest.mark.long
@pytest.mark.parametrize(("of_ask", "low", "high"), [(True, 0.0, 55.0), (False, 60.0, 100.0)])
def test_delayed_losses_have_the_weight_of_their_ask(of_ask, low, high):
    """A third of the losses come 10 half-lives late; the weight of the tell is the control."""
    n, h, found = 10, 1000, []
    for seed in range(3):
        rng, learner = np.random.default_rng(seed), AdaINF(n, half_life=h, seed=seed)
        late, paid, best, clock = {}, 0, 0, learner.spec.packing.slot("clock")
        for t in range(T):
            if t % (T // 21) == 0:
                best = (best + 1 + int(rng.integers(n - 1))) % n
            choice = learner.ask()
            paid += choice.arm != best
            loss = float(rng.random() < (0.4 if choice.arm == best else 0.6))
            due = [(choice, loss)]
            if rng.random() < 1.0 / 3.0:
                late[t + 10 * h], due = due, []
            for ticket, told in due + late.pop(t, []):
                if not of_ask:
                    arm, p, ask, number = learner._records[ticket.id]
                    now = complex(ask.real, learner._buffer[clock])
                    learner._records[ticket.id] = arm, p, now, number
                learner.tell(ticket, told)
        found.append(100.0 * paid / (0.9 * T))
    assert low <= np.mean(found) <= high


def test_a_fall_of_the_scale_is_followed():
    losses = gaussian(3000, 3)
    losses[:1000] *= 2.0**30
    learner = AdaINF(3, half_life=100, seed=0)
    learned = play(learner, losses)[1900, 1]
    assert learned > 0.5
    assert 25 * 100 < learner._scalar("clock") - 3000 < 40 * 100  # halvings at once
    assert play(AdaINF(3, seed=0), losses)[1900, 1] < 0.5  # the control


# --------------------------------------------------------------------------------- shift and scale


@pytest.mark.parametrize("settings", [{}, {"robust": False}, {"trim": 2}])
def test_a_shift_changes_nothing_but_rounding(settings):
    losses = gaussian(600)
    learners = [AdaINF(4, half_life=50, seed=1, **settings) for _ in range(2)]
    qs = [play(learner, losses + by) for learner, by in zip(learners, (0.0, 1000.0), strict=True)]
    np.testing.assert_allclose(qs[0], qs[1], rtol=0.0, atol=1e-9)
    weights = 2.0 ** (np.arange(600) / 50.0)[:, None]  # the control: weights before the center
    plain = [play(AdaINF(4, seed=1, **settings), weights * (losses + by)) for by in (0.0, 1000.0)]
    assert np.abs(plain[0] - plain[1]).max() > 0.1


@pytest.mark.parametrize("settings", [{}, {"robust": False}, {"trim": 1}])
def test_powers_of_two_change_nothing_though_the_scale_falls_and_rises(settings):
    losses = gaussian(900)
    losses[300:500] *= 2.0**40
    losses[500:700] *= 2.0**10
    usual = play(AdaINF(4, half_life=20, seed=2, **settings), losses)
    for power in (-900, -100, 900):
        scaled = play(AdaINF(4, half_life=20, seed=2, **settings), np.ldexp(losses, power))
        assert np.array_equal(scaled, usual)
    assert not np.array_equal(play(AdaINF(4, half_life=20, seed=2), 3.0 * losses), usual)


@pytest.mark.parametrize("settings", [{}, {"robust": False}])
def test_the_least_floats_are_played_as_others_are(settings):
    losses = np.round(100.0 * gaussian(500))
    usual = play(AdaINF(4, half_life=30, seed=3, **settings), losses)
    tiny = play(AdaINF(4, half_life=30, seed=3, **settings), np.ldexp(losses, -1074))
    assert np.array_equal(tiny, usual)
    assert usual.max() > 0.6


@pytest.mark.parametrize("settings", [{}, {"robust": False}, {"trim": 3}])
@pytest.mark.parametrize("n", [3, 130])
def test_losses_of_all_sizes_in_one_play(n, settings):
    rng = np.random.default_rng(4)
    stages = [(2.0**1000, 60), (2.0**-1000, 60), (0.0, 60), (2.0**1023, 30), (2.0**-1060, 60)]
    learner = AdaINF(n, half_life=8, seed=0, **settings)
    for size, rounds in [*stages, (1.0, 60)]:
        for _ in range(rounds):
            choice = learner.ask()
            learner.tell(choice, 1.9 * size * float(rng.uniform(-1.0, 1.0)))
            q = learner.probabilities()
            assert q.min() >= 0.0
            assert abs(q.sum() - 1.0) < 1e-9
            assert math.isfinite(learner.scale)
    other = AdaINF.load(learner.save())
    assert np.array_equal(other.probabilities(), learner.probabilities())


def test_after_losses_of_all_sizes_it_learns():
    def at_the_end(learner: AdaINF) -> float:
        losses = gaussian(1500, 3)
        losses[:300] *= 2.0**1000
        losses[300:600] *= 2.0**-1000
        losses[600:700] = 0.0
        return float(play(learner, losses)[-1, 2])

    assert at_the_end(AdaINF(3, half_life=100, seed=0)) > 0.5
    assert at_the_end(AdaINF(3, seed=0)) < 0.5  # the control


# ------------------------------------------------------------------------------------ for very long


def test_nothing_drifts_in_many_half_lives():
    rounds, h = 200_000, 2
    learner, losses = AdaINF(2, half_life=h, seed=0), np.random.default_rng(5).random(rounds)
    for loss in losses[:200].tolist():
        learner.tell(learner.ask(), loss)
    early = learner._scalar("memory.N"), learner._scalar("memory.g")
    for loss in losses[200:].tolist():
        learner.tell(learner.ask(), loss)
    assert (learner._scalar("memory.N"), learner._scalar("memory.g")) == early
    assert abs(learner._scalar("reach.e")) < 10
    assert AdaINF.load(learner.save()).rounds == rounds
    with pytest.raises(OverflowError):  # the control: a weight that is not halved
        _ = 2.0 ** (rounds / h)


@pytest.mark.parametrize(("rounds", "lost"), [(390, "memory.pos"), (400, "up.sizes")])
def test_a_save_within_a_block_and_at_its_end(rounds, lost):
    """Blocks have 40 rounds. The controls: without their place, or the last block's distances."""
    losses = gaussian(800)
    learner = AdaINF(4, half_life=40, seed=7)
    play(learner, losses[:rounds])
    text = learner.save()
    usual = play(learner, losses[rounds:])
    assert np.array_equal(play(AdaINF.load(text), losses[rounds:]), usual)
    forged = AdaINF.load(text)
    packing, buffer = forged.spec.packing, forged._buffer
    if lost == "up.sizes":
        buffer[packing.place(lost, buffer)] = 0.0
    else:
        buffer[packing.slot(lost)] = 0.0
    assert not np.array_equal(play(forged, losses[rounds:]), usual)


def test_many_arms_play_as_few_do(monkeypatch):
    """They draw by other rules: the same arms are told to both."""
    lazy = AdaINF(150, half_life=100, seed=0)
    monkeypatch.setattr(signed_arms, "MANY_ARMS", 10**9)
    dense, last = AdaINF(150, half_life=100, seed=0), np.zeros(150)
    for row in gaussian(600, 150):
        q = lazy.probabilities()
        np.testing.assert_allclose(dense.probabilities(), q, rtol=0.0, atol=1e-9)
        choice, other = lazy.ask(), dense.ask()
        _, p, ask, number = dense._records[other.id]
        dense._records[other.id] = choice.arm, p, complex(q[choice.arm], ask.imag), number
        for learner, ticket in ((lazy, choice), (dense, other)):
            learner.tell(ticket, float(row[choice.arm]))
        last = q
    assert last.max() - last.min() > 1e-3  # the control: it is not the uniform distribution


# ---------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize("settings", [{"half_life": 0}, {"half_life": 2, "trim": 2}])
def test_illegal_half_lives(settings):
    with pytest.raises(ArgumentValueError, match="half_life"):
        AdaINF(3, **settings)


def test_one_arm():
    learner = AdaINF(1, half_life=10, seed=0)
    for loss in gaussian(100)[:, 0].tolist():
        learner.tell(learner.ask(), loss)
        assert AdaINF.load(learner.save()).probabilities().tolist() == [1.0]


@pytest.mark.parametrize("h", [1, 2, 5, 8, 9])
def test_half_lives_shorter_than_the_first_rounds(h):
    learner = AdaINF(3, half_life=h, trim=min(1, h - 1), seed=0)
    qs = play(learner, gaussian(100, 3))
    assert np.abs(qs.sum(axis=1) - 1.0).max() < 1e-12
    assert (qs[:8] == 1.0 / 3.0).all()
    assert learner.clipped > 0
    assert AdaINF.load(learner.save()).rounds == 100
