"""Half-lives that are times, each test with a control."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

import slow.cost_scb
from saved_helpers import changed, fields_of
from slow import twin_of
from slow.discounted import Clock, TimedClock
from unbounded import AdaINF, CostSCB, CostSCBIX, simulate
from unbounded.adversaries import StochasticGap

pytestmark = pytest.mark.filterwarnings("ignore::unbounded.ScaleWarning")  # rises are meant

H = 1024  # seconds, so that a tick is one
START = 1_750_000 * H * 10**6  # microseconds, the beginning of a block
TWINS = [(CostSCB, {}), (CostSCB, {"tune": "scale"}), (CostSCB, {"outliers": 2}),
         (CostSCB, {"cap": 10.0})]  # fmt: skip
LEARNERS = [*TWINS, (CostSCBIX, {}), (AdaINF, {}), (AdaINF, {"robust": False, "trim": 1})]


def made(cls, n: int = 3, **settings):
    return cls(n, half_life=timedelta(seconds=H), seed=5, **settings)


def asked(learner, tick) -> int:
    learner.set_time(START + 10**6 * int(tick))
    return learner.ask()


def play(learner, ticks, losses) -> np.ndarray:
    """The probabilities of every round, with an ask in each of these seconds."""
    qs = []
    for tick, row in zip(ticks, losses, strict=True):
        choice = asked(learner, tick)
        qs.append(learner.probabilities())
        learner.tell(choice, float(row[choice.arm]))
    return np.array(qs)


def uneven(rounds: int, seed: int) -> np.ndarray:
    """Ticks that repeat, and jumps of some half-lives."""
    rng = np.random.default_rng(seed)
    gaps = np.where(rng.random(rounds) < 0.1, rng.integers(0, 3 * H, rounds),
                    rng.integers(0, 60, rounds))  # fmt: skip
    return np.cumsum(gaps)


def hostile(rounds: int, n: int, seed: int) -> np.ndarray:
    """Scales that jump by up to 2^40, and zeros."""
    rng = np.random.default_rng(seed)
    jumps = np.where(rng.random(rounds) < 0.03, rng.choice([-30, 40, -5, 5], rounds), 0)
    exponents = np.clip(np.cumsum(jumps), -60, 60)
    losses = rng.random((rounds, n)) * (rng.random((rounds, 1)) > 0.1)
    return np.ldexp(losses, exponents[:, None])


@pytest.mark.parametrize(("cls", "settings"), TWINS)
@pytest.mark.parametrize("seed", [1, 2])
def test_it_agrees_with_the_slow_twin(monkeypatch, cls, settings, seed):
    ticks, losses = uneven(200, seed), hostile(200, 3, seed)
    for clock, agrees in ((TimedClock, True), (Clock, False)):  # the control: rounds are ticks
        scheduled = type("Scheduled", (clock,), {"ticks": [*ticks.tolist(), int(ticks[-1])]})
        monkeypatch.setattr(slow.cost_scb, "Clock", scheduled)
        twin, learner, off = twin_of(cls)(3, half_life=H, **settings), made(cls, **settings), []
        expected = next(twin)
        for tick, row in zip(ticks, losses, strict=True):
            choice = asked(learner, tick)
            off.append(np.abs(learner.probabilities() - expected).max())
            learner.tell(choice, float(row[choice.arm]))
            expected = twin.send((choice.arm, row))
        assert (max(off) < 1e-8) == agrees, max(off)


@pytest.mark.parametrize(("cls", "settings"), LEARNERS)
def test_rounds_at_an_even_pace_are_those_of_a_half_life_in_rounds(cls, settings):
    h, losses = 32, np.random.default_rng(3).random((200, 3)) + 10.0 * (cls is AdaINF)
    in_rounds, expected = cls(3, half_life=h, seed=5, **settings), []
    for row in losses:
        expected.append(in_rounds.probabilities())
        choice = in_rounds.ask()
        in_rounds.tell(choice, float(row[choice.arm]))
    for pace, agrees in ((1, True), (2, False)):  # the control forgets faster
        ticks = pace * H // h * np.arange(200)
        off = np.abs(play(made(cls, **settings), ticks, losses) - expected).max()
        assert (off < 1e-6) == agrees, off


@pytest.mark.parametrize(("cls", "settings"), LEARNERS)
def test_a_clock_that_goes_backwards_and_jumps(cls, settings):
    learner = made(cls, **settings)
    losses, ticks = np.random.default_rng(3).random((300, 3)), uneven(300, 1)
    losses[:, [0, 2]] += 1.0
    play(learner, ticks, losses)
    state, scale, now = learner._buffer.tobytes(), learner.scale, int(ticks[-1])
    for back in (0, 1, 10**6, now):  # no time
        learner.set_time(START + 10**6 * (now - back))
        assert learner._buffer.tobytes() == state
    for jump in (H, 365 * 86400, 10**5 * H, 10**5 * H):  # a year, and nothing is told
        before, now = learner._buffer.tobytes(), now + jump
        learner.set_time(START + 10**6 * now)
        assert learner._buffer.tobytes() != before  # the control: the past fades
        assert learner.scale > 0.3 * scale  # an empty block keeps the threshold
        restored = cls.load(learner.save())
        assert np.array_equal(restored.probabilities(), learner.probabilities())
    if cls is not AdaINF:  # whose rate fades with its estimates
        assert np.ptp(learner.probabilities()) < 1e-6
    play(learner, now + np.arange(900), np.tile(1e3 * losses + [5e3, 5e3, 0.0], (3, 1)))
    assert learner.scale > 1e3
    assert learner.probabilities().argmax() == 2


@pytest.mark.parametrize("n", [3, 80])  # few arms, and many
@pytest.mark.parametrize(("cls", "settings"), [LEARNERS[0], LEARNERS[-3], LEARNERS[-2]])
def test_units_saving_and_delays(cls, settings, n):
    """What is saved in the middle goes on, in another unit, with losses that come later."""
    ticks, losses = uneven(120, 4), hostile(120, n, 4)
    one, two, waiting = made(cls, n, **settings), made(cls, n, **settings), []
    for t, (tick, row) in enumerate(zip(ticks, losses, strict=True)):
        choices = asked(one, tick), asked(two, tick)
        assert choices[0].arm == choices[1].arm
        waiting.append((*choices, float(row[choices[0].arm])))
        if t % 20 == 19:
            two = cls.load(two.save())
        while len(waiting) > t % 7:
            first, second, loss = waiting.pop(0)
            one.tell(first, loss)
            two.tell(two.outstanding[second.id], 2.0**-800 * loss)
    assert np.array_equal(one.probabilities(), two.probabilities())
    asked(two, ticks[-1] + 1)
    assert not np.array_equal(one.probabilities(), two.probabilities())  # the control


def test_a_delayed_loss_has_the_weight_of_its_ask():
    def after(delay: int) -> float:
        learner = made(CostSCB, implicit=0.0)
        play(learner, range(50), np.ones((50, 3)))
        choice = asked(learner, 50)
        learner.set_time(START + 10**6 * (50 + delay))
        before = learner.probabilities()[choice.arm]
        learner.tell(choice, 1.0)
        return float(before - learner.probabilities()[choice.arm])

    shares = np.array([after(H * k) for k in (0, 2, 4, 2000)])
    assert np.all(np.diff(shares) < 0.0)
    assert shares[0] > 0.001
    assert shares[-1] == 0.0


def test_a_forged_record_or_clock_is_rejected():
    learner = made(CostSCB)
    play(learner, range(0, 9000, 100), np.ones((90, 3)))
    asked(learner, 9001)
    saved, now = learner.save(), START // 10**6 + 9001
    (record,) = next(iter(fields_of(saved)["outstanding"].values()))
    assert record[-1] == now
    for clock in (now + 1, -1, 0.5):
        with pytest.raises(ValueError, match="not a saved CostSCB"):
            CostSCB.load(changed(saved, outstanding={"issuer": [[*record[:-1], clock]]}))
    state = learner._state()
    for forged in ({"clock": now + 1}, {"memory": state.memory._replace(pos=now + 1)},
                   {"memory": state.memory._replace(g=1.9)}, {"N": 1e3}):  # fmt: skip
        other = CostSCB.load(saved)
        other.spec.packing.python.pack(other._buffer, state._replace(**forged))
        with pytest.raises(ValueError, match="not a saved CostSCB"):
            CostSCB.load(other.save())
    CostSCB.load(saved)


@pytest.mark.parametrize("cls", [CostSCB, CostSCBIX, AdaINF])
def test_arguments(cls):
    hour = cls(3, half_life=timedelta(hours=1), seed=0)
    assert hour.settings["half_life"] == "3600 s"
    for same in ("3600 s", "3600.000 s", timedelta(minutes=60)):
        assert cls(3, half_life=same).settings == hour.settings
    assert cls(3, half_life="1.5 s").clone().settings["half_life"] == "1.5 s"
    assert repr(hour) == f"{cls.__name__}(n_arms=3, half_life='3600 s')"
    for wrong in (
        "1 hour",
        "3600",
        "0.9 s",
        timedelta(0),
        timedelta(-1),
        "1e9 s",
        "\u0661 s",
    ):
        with pytest.raises(ValueError, match=r"half_life must be .* timedelta\(hours=1\)"):
            cls(3, half_life=wrong)
    for at in (-1, 0.5, "now"):
        with pytest.raises((ValueError, TypeError), match="at"):
            hour.set_time(at)
    with pytest.raises(TypeError, match="half-lives that are times"):
        cls(3, half_life=100).set_time(0)
    with pytest.raises(TypeError, match="half_life in rounds"):
        simulate(hour, StochasticGap(), 10)
    cls(3, half_life=timedelta.max, seed=0).set_time(2**80)


@pytest.mark.parametrize("cls", [CostSCB, CostSCBIX])
def test_auto_is_for_ada_inf(cls):
    with pytest.raises(ValueError, match="half_life='auto' is for AdaINF"):
        cls(3, half_life="auto")
    AdaINF(3, half_life="auto")


def test_growing_ranks_are_for_rounds():
    with pytest.raises(ValueError, match="outliers='sqrt' needs a half_life in rounds"):
        CostSCB(3, outliers="sqrt", half_life=timedelta(hours=1))


@pytest.mark.parametrize("cls", [CostSCB, CostSCBIX, AdaINF])
def test_a_best_arm_that_changes_with_the_hour(cls):
    """Ten arms, 50 to 1,000 requests an hour; the best arm changes every six hours."""
    rng, rates = np.random.default_rng(0), 50.0 * 20.0 ** (np.arange(8) * 5 % 8 / 7)
    gaps = np.concatenate([rng.exponential(3600.0 / rate, int(6 * rate)) for rate in rates])
    seconds, means = np.cumsum(gaps), np.full((gaps.size, 10), 0.6)
    means[np.arange(gaps.size), (seconds // 21600).astype(int) * 7 % 10] = 0.2
    losses = (rng.random(means.shape) < means).astype(float)

    def regret(learner) -> float:
        paid = (play(learner, seconds, losses) * means).sum()
        return float((paid - 0.2 * gaps.size) / (0.36 * gaps.size))

    found, never = (regret(cls(10, half_life=h, seed=0)) for h in ("3600 s", "100000000 s"))
    assert found < 0.5
    assert never > 1.3 * found  # the control: 1.37 to 2.3
