"""CostSCB and CostSCBIX with a half-life (docs/theory/forgetting.md), each test with a control."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import slow.cost_scb
from saved_helpers import changed, fields_of
from slow import twin_of
from slow.discounted import Clock, top
from unbounded import AdaINF, CostSCB, CostSCBIX, Uniform, simulate
from unbounded.adversaries import Changing, RandomChanges
from unbounded.durable import Durable
from unbounded.jit import schedule

pytestmark = pytest.mark.filterwarnings("ignore::unbounded.ScaleWarning")  # rises are meant


def play(learner, losses: np.ndarray) -> tuple[list[int], np.ndarray]:
    """The arms played and the probabilities before every round."""
    arms, qs = [], []
    for row in losses:
        qs.append(learner.probabilities())
        choice = learner.ask()
        arms.append(choice.arm)
        learner.tell(choice, float(row[choice.arm]))
    return arms, np.array(qs)


def arms_of(learner, losses: np.ndarray) -> list[int]:
    arms = []
    for row in losses.tolist():
        choice = learner.ask()
        arms.append(choice.arm)
        learner.tell(choice, row[choice.arm])
    return arms


def switching(rounds: int, n: int, changes: int, seed: int, gap: float = 0.2) -> np.ndarray:
    """Means of coins, shape (rounds, n): 0.6, and less for an arm that changes now and then."""
    rng, means = np.random.default_rng(seed), np.full((rounds, n), 0.6)
    best = int(rng.integers(n))
    for part in np.array_split(np.arange(rounds), changes + 1):
        means[part, best] -= gap
        best = (best + int(rng.integers(1, n))) % n
    return means


def tossed(means: np.ndarray, seed: int) -> np.ndarray:
    return (np.random.default_rng([seed, 1]).uniform(size=means.shape) < means).astype(float)


def percent(arms: list[int], means: np.ndarray) -> float:
    """Pseudo-regret against the best arm of each round, in percent of that of uniform play."""
    best = means.min(axis=1)
    paid = means[np.arange(len(arms)), arms]
    return float(100.0 * (paid - best).sum() / (means.mean(axis=1) - best).sum())


def state_with(learner, **changed) -> None:
    """Write other numbers into the state."""
    state = learner._state()._replace(**changed)
    learner.spec.packing.python.pack(learner._buffer, state)


# ------------------------------------------------------------------------------- without one


def test_without_a_half_life_nothing_is_weighted_or_followed():
    """tests/test_unchanged.py has the bits; the controls are half-lives that never end."""
    rng = np.random.default_rng(0)
    usual = rng.uniform(0.5, 1.0, (200, 4))
    for options in ({}, {"outliers": "sqrt"}):
        plain, ever = CostSCB(4, **options, seed=1), CostSCB(4, **options, half_life=10**9, seed=1)
        ours, theirs = play(plain, usual)[1], play(ever, usual)[1]
        assert ours.tobytes() != theirs.tobytes()
        np.testing.assert_allclose(theirs[:60], ours[:60], rtol=0.0, atol=1e-6)
    falling = usual * np.where(np.arange(200) < 12, 100.0, 1.0)[:, None]  # C_t falls by its rank
    plain, ever = CostSCB(4, outliers="sqrt", seed=1), CostSCB(
        4, outliers="sqrt", half_life=10**9, seed=1
    )  # fmt: skip
    again = CostSCB(4, outliers="sqrt", half_life=None, seed=1)
    ours, theirs = play(plain, falling)[1], play(ever, falling)[1]
    assert play(again, falling)[1].tobytes() == ours.tobytes()
    assert ever._state().clock > 200  # the fall was followed
    assert np.abs(ours - theirs).max() > 0.01


def test_ranks_stop_at_the_length_of_a_block():
    learner, clock, uncapped = CostSCB(20, outliers="sqrt", half_life=10, seed=0), Clock(10), 0.0
    for t in range(200):
        learner.tell(learner.ask(), 1.0 + t % 3)
        clock.tell(1.0 + t % 3)
        uncapped = max(uncapped, clock.threshold(math.ceil(math.sqrt(20.0 * clock.rounds()))))
    assert learner.scale > 0.0
    assert uncapped == 0.0  # the control: for ever


# ------------------------------------------------------------------- weights are all there is


class WeightedList(Clock):
    """Thresholds of plain CostSCB on weighted losses: the m-th largest of all that were told."""

    def threshold(self, m: int, follow: bool = True) -> float:
        return top([w * x for w, x in zip(self.weights(), self.told, strict=False)], m)


@pytest.mark.parametrize("tune", ["paid", "scale"])
def test_it_is_cost_scb_on_weighted_losses(monkeypatch, tune):
    """Rounding errors double every 35 rounds or so, when arms are forced."""
    n, h, settings = 3, 40, {"tune": tune, "implicit": 0.0}
    losses = np.random.default_rng(2).uniform(size=(300, n)) * [1.0, 0.5, 1.0]
    off = {}
    for double in (WeightedList, Clock):
        monkeypatch.setattr(slow.cost_scb, "Clock", double)
        twin, plain = twin_of(CostSCB)(n, half_life=h, **settings), CostSCB(n, **settings, seed=3)
        expected, worst = next(twin), 0.0
        for t, row in enumerate(losses):
            worst = max(worst, np.abs(plain.probabilities() - expected).max())
            if worst > 1e-3:
                break
            choice = plain.ask()
            plain.tell(choice, float(2.0 ** (t / h) * row[choice.arm]))
            expected = twin.send((choice.arm, row))
        off[double] = worst
    assert off[WeightedList] < 1e-6
    assert off[Clock] > 1e-3  # the control: two blocks of raw losses


def hostile(rounds: int, n: int, seed: int) -> np.ndarray:
    """Scales that jump by up to 2^40, zeros, and falls of exactly 16-fold."""
    rng, exponent, rows = np.random.default_rng(seed), 0, []
    for _ in range(rounds):
        if rng.uniform() < 0.03:
            exponent = int(np.clip(exponent + rng.choice([-30, 40, -5, -4, 4, 5]), -60, 60))
        zero = rng.uniform() < 0.1
        rows.append(np.ldexp(rng.choice([0.5, 1.0, rng.uniform()], n) * (not zero), exponent))
    return np.array(rows)


@pytest.mark.parametrize("h", [1, 7, 30])
@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        (CostSCB, {}),
        (CostSCB, {"outliers": "sqrt", "tune": "scale"}),
        (CostSCBIX, {"delta": 0.1}),
    ],
)
def test_hostile_plays_agree_with_the_slow_twin(cls, settings, h):
    n, lower = 3, -2.0
    learner = cls(n, **settings, half_life=h, lower=lower, seed=5)
    twin = twin_of(cls)(n, **settings, half_life=h, lower=lower)
    expected = next(twin)
    for row in hostile(200, n, h):
        np.testing.assert_allclose(learner.probabilities(), expected, rtol=0.0, atol=1e-8)
        choice = learner.ask()
        row = np.round(row + lower, 9)  # the twin subtracts without units
        learner.tell(choice, float(row[choice.arm]))
        expected = twin.send((choice.arm, row))


def test_implicit_exploration_and_the_clock_follow_a_fall():
    """gamma = nu / (n + N), N with the falls; ranks have N without them (the control)."""
    n, h, clock = 4, 10, Clock(10)
    learner, told = CostSCB(n, half_life=h, outliers="sqrt", seed=0), 0
    for t in range(120):
        choice = learner.ask()
        _, p, ask, _ = learner._records[choice.id]
        clock.threshold(learner._state().m)
        N = sum(clock.weights())
        assert ask.real - p == pytest.approx(1.0 / (n + N), rel=1e-9)
        assert ask.imag == round(clock.times[-1])
        x = 1.0 if t < 60 else 2.0**-20
        learner.tell(choice, x)
        clock.tell(x)
        told += 0.5 * clock.rounds() > N
    assert learner._state().clock == 120 + 20 * h  # one fall, of 2^20
    assert told > 0  # after it, the two differ
    assert learner._state().m == math.ceil(math.sqrt(n * clock.rounds())) == 8


# ------------------------------------------------------------------------------------ Lemma 8


@pytest.mark.parametrize("outliers", [0, 2, "sqrt"])
def test_lemma_8_overshoot_of_every_block(outliers):
    rng, h = np.random.default_rng(4), 25
    losses = rng.pareto(0.7, (1000, 3)) * 10.0 ** rng.integers(-2, 3, 40).repeat(25)[:, None]
    learner = CostSCB(3, half_life=h, outliers=outliers, seed=1)
    told, over, ranks = [], [], []
    for row in losses:
        C, choice = learner.scale, learner.ask()
        x = float(row[choice.arm])
        over.append(max(0.0, x - C))
        told.append(x)
        learner.tell(choice, x)
        ranks.append(learner._state().m)
    last = [0.0] * h  # the control: thresholds of the last block only
    ratios, controls = [], []
    for begin in range(0, 1000, h):
        block, m = np.sort(told[begin : begin + h])[::-1], ranks[begin + h - 1]
        ratios.append(sum(over[begin : begin + h]) / block[:m].sum())
        beyond = sum(max(0.0, x - top(last, m)) for x in block)
        controls.append(beyond / block[:m].sum())
        last = list(block)
    assert 0.5 < max(ratios) <= 1.0 + 1e-12
    assert max(controls[1:]) > 1.1


# -------------------------------------------------------------------------------- Theorem F1


def discounted_regret(make, losses: np.ndarray, h: int, plays: int) -> float:
    """The largest mean of sum_t 2^(-(T - t) / h) (l_{t,k} - l_{t,i}) over all T and i."""
    total = np.zeros_like(losses)
    for seed in range(plays):
        paid = losses[np.arange(len(losses)), arms_of(make(seed), losses)]
        total += paid[:, None] - losses
    sums, largest = np.zeros(losses.shape[1]), 0.0
    for row in total / plays:
        sums = 2.0 ** (-1.0 / h) * sums + row
        largest = max(largest, sums.max())
    return largest


def test_f1_bounds_discounted_regret_at_every_time():
    n, h = 10, 100
    losses = np.ones((1500, n))
    for j, part in enumerate(np.array_split(np.arange(1500), 4)):
        losses[part, 3 * j % n] = 0.0
    bound = 3.4 * math.sqrt(n * (h + 1)) + 3.0  # 111
    scb = {"tune": "scale", "implicit": 0.0, "half_life": h}
    assert discounted_regret(lambda seed: CostSCB(n, **scb, seed=seed), losses, h, 25) < 0.5 * bound
    ix = discounted_regret(lambda seed: CostSCBIX(n, half_life=h, seed=seed), losses, h, 25)
    assert ix < bound
    assert discounted_regret(lambda seed: Uniform(n, seed=seed), losses, h, 25) > bound


def per_half_life(learner, h: int) -> float:
    """Regret in one half-life on stationary coins, after six of them."""
    coins = Changing(changes=0, mean=0.75, gap=0.5)
    found = simulate(learner, coins, 18 * h, 12, 7, checkpoints=[6 * h, 18 * h]).pseudo_regret
    return float((found[:, 1] - found[:, 0]).mean() / 12)


@pytest.mark.long
@pytest.mark.parametrize("tune", ["paid", "scale"])
def test_f3_regret_per_half_life_levels_off(tune):
    short, long = (per_half_life(CostSCB(10, tune=tune, half_life=h), h) for h in (300, 10_000))
    assert long < 1.3 * short
    short, long = (per_half_life(CostSCBIX(10, half_life=h), h) for h in (300, 10_000))
    assert long > 1.7 * short  # the control, which explores for ever


# ------------------------------------------------------------------------------ what changes


def test_a_changed_best_arm_is_found():
    means = switching(20_000, 5, 4, seed=1)
    losses = tossed(means, 1)
    found = {
        h: np.mean(
            [percent(arms_of(CostSCB(5, half_life=h, seed=r), losses), means) for r in (1, 2)]
        )
        for h in (1000, None)
    }
    assert found[1000] < 45.0 < 55.0 < found[None]


def random_programs(learner) -> float:
    """Mean over forty programs of regret against the best arm of the moment, in percent."""
    paid, uniform = (
        simulate(
            player, RandomChanges(), 100_000, 40, 3, checkpoints=[100_000], dynamic=True
        ).dynamic_pseudo_regret[:, -1]
        for player in (learner, Uniform(10))
    )
    return float(100.0 * (paid / uniform).mean())


@pytest.mark.long
def test_random_programs():
    assert random_programs(CostSCB(10, half_life=1000)) < 18.0
    assert random_programs(CostSCB(10)) > 35.0  # the control


def test_a_fallen_scale_is_followed():
    """Losses fall 1000-fold as the best arm changes: regret of the third quarter.

    The control does not follow them: plain CostSCB on weighted losses, for ten half-lives.
    """
    n, h, quarter, found = 10, 500, 5000, {True: [], False: []}
    for seed in (1, 2):
        means = switching(3 * quarter, n, 2, seed)
        sizes = np.where(np.arange(3 * quarter) < 2 * quarter, 1.0, 1e-3)[:, None]
        losses, weights = tossed(means, seed) * sizes, 2.0 ** (np.arange(3 * quarter) / h)[:, None]
        for follows, learner, told in [
            (True, CostSCB(n, half_life=h, seed=seed), losses),
            (False, CostSCB(n, seed=seed), weights * losses),
        ]:
            arms = arms_of(learner, told)
            found[follows].append(percent(arms[2 * quarter :], means[2 * quarter :]))
    assert np.mean(found[True]) < 60.0 < 80.0 < np.mean(found[False])


def test_timeouts_do_not_set_the_scale_for_long():
    """2% of 30 s among 100 ms. Controls: the m-th largest weighted loss, and no outliers."""
    n, h, rounds, rng, found = 8, 3000, 30_000, np.random.default_rng(2), []
    m = math.ceil(math.sqrt(n * 1.4427 * h))
    medians = np.tile(np.linspace(40.0, 120.0, n), (rounds, 1))
    medians[10_000:20_000, 0] *= 4.0
    losses = medians * np.exp(0.5 * rng.standard_normal((rounds, n)))
    losses[rng.uniform(size=(rounds, n)) < 0.02] = 30_000.0
    weights = 2.0 ** (np.arange(rounds) / h)[:, None]
    for learner, told in [
        (CostSCB(n, outliers="sqrt", half_life=h, seed=2), losses),
        (CostSCB(n, outliers=m - 1, seed=2), weights * losses),
        (CostSCB(n, half_life=h, seed=2), losses),
    ]:
        found.append(percent(arms_of(learner, told), medians))
    blocks, weighted, none = found
    assert blocks < 15.0 < 22.0 < weighted < 60.0 < none


def delayed_percent(seed: int, *, by_the_ask: bool) -> float:
    """A third of the losses come 10 half-lives late; the control has the tell's weight."""
    rounds, n, h = 20_000, 5, 400
    means = switching(rounds, n, 9, seed, gap=0.3)
    losses, late = tossed(means, seed), np.random.default_rng(seed).uniform(size=rounds) < 1 / 3
    learner, arms, waiting = CostSCB(n, half_life=h, seed=seed), [], []
    for t, row in enumerate(losses.tolist()):
        choice = learner.ask()
        arms.append(choice.arm)
        due = [(choice, row[choice.arm])]
        if late[t]:
            waiting.append((t + 10 * h, *due.pop()))
        while waiting and waiting[0][0] <= t:
            due.append(waiting.pop(0)[1:])
        for ticket, loss in due:
            if not by_the_ask:
                arm, p, ask, number = learner._records[ticket.id]
                ask = complex(ask.real, learner._state().clock)
                learner._records[ticket.id] = arm, p, ask, number
            learner.tell(ticket, loss)
    return percent(arms, means)


def test_a_delayed_loss_has_the_weight_of_its_ask():
    asked, told = (delayed_percent(2, by_the_ask=by_the_ask) for by_the_ask in (True, False))
    assert asked < 40.0 < 46.0 < told


# -------------------------------------------------------------------------------- the float64s

SETTINGS = [
    (CostSCB, {"half_life": 20}),
    (CostSCB, {"half_life": 30, "tune": "scale", "outliers": "sqrt"}),
    (CostSCB, {"half_life": 20, "cap": 10.0}),
    (CostSCBIX, {"half_life": 20, "outliers": 1}),
]


@pytest.mark.parametrize(("cls", "settings"), SETTINGS)
def test_powers_of_two_change_nothing_through_falls_and_rises(cls, settings):
    rng = np.random.default_rng(6)
    sizes = np.repeat(np.ldexp(1.0, [0, -30, 10, 40, 35, 5, -30, 0]), 60)[:, None]
    losses = np.round(rng.pareto(1.5, (480, 3)) * 2**8) / 2**8 * sizes
    plain = play(cls(3, **settings, seed=1), losses)
    for k in (-900, -1, 7, 900):
        scaled = play(cls(3, **settings, seed=1), np.ldexp(losses, k))
        assert plain[0] == scaled[0]
        assert plain[1].tobytes() == scaled[1].tobytes()
    assert play(cls(3, **settings, seed=1), 3.0 * losses)[1].tobytes() != plain[1].tobytes()


@pytest.mark.parametrize("lower", [0.0, -1.7e308])
@pytest.mark.parametrize(("cls", "settings"), SETTINGS)
def test_all_sizes_in_one_play(cls, settings, lower):
    rng = np.random.default_rng(7)
    learner = cls(3, **settings, lower=lower, seed=3)
    for e in (-1070, 1020, *rng.integers(-1070, 1020, 60)):
        for _ in range(5):
            choice = learner.ask()
            learner.tell(choice, math.ldexp([1.0, 0.5, 0.0][choice.arm], int(e)))
            assert abs(learner.probabilities().sum() - 1.0) < 1e-12
        cls.load(learner.save())


def test_from_one_end_of_float64_to_the_other_it_goes_on_learning():
    """2^1000, then 2^-1000, then 0, then 1; another arm is best each time."""

    def favorites(learner) -> list[float]:
        found = []
        for size, best in ((2.0**1000, 0), (2.0**-1000, 1), (0.0, 1), (1.0, 2)):
            for _ in range(600):
                choice = learner.ask()
                learner.tell(choice, size * (choice.arm != best))
            found.append(learner.probabilities()[best])
        return found

    assert min(favorites(CostSCB(3, half_life=40, seed=0))) > 0.7
    assert min(favorites(CostSCB(3, seed=0))) < 0.01  # the control


def test_no_drift_in_a_hundred_thousand_half_lives():
    h, coins = 10, Changing(changes=0, mean=0.8, gap=0.7)
    learner = CostSCB(3, half_life=h, seed=0)
    rows = tossed(np.full((1000, 3), [0.1, 0.8, 0.8]), 0)
    arms_of(learner, rows)
    early = learner._state()
    points = [100_000, 200_000, 900_000, 1_000_000]
    regret = simulate(CostSCB(3, half_life=h), coins, 10**6, 2, 1, checkpoints=points)
    first, last = (regret.pseudo_regret[:, i + 1] - regret.pseudo_regret[:, i] for i in (0, 2))
    assert last.mean() == pytest.approx(first.mean(), rel=0.05)
    for _ in range(3):
        arms_of(learner, rows)
    late = learner._state()
    assert (late.memory.pos, late.memory.g) == (early.memory.pos, early.memory.g) == (0, 1.0)
    assert pytest.approx(1.0 / (1.0 - 2.0 ** (-1.0 / h)), rel=1e-13) == late.memory.N
    assert abs(late.blocks.e - early.blocks.e) <= 2
    with pytest.raises(OverflowError):
        2.0 ** ((10**6) / h)  # the control: a weight that grows


@pytest.mark.parametrize("h", [1, 20])
def test_thousands_of_blocks_without_a_loss(h):
    """... and a unit that has fallen further than an exponent of C's has bits."""
    learner = CostSCB(3, half_life=h, seed=0)
    for loss in (1.0, 1.0, 0.0):
        learner.tell(learner.ask(), loss)
    for _ in range(5000 * h if h == 1 else 3000):
        learner.tell(learner.ask(), 0.0)
    state = learner._state()
    if h == 1:
        assert state.blocks.e < -4900
    state_with(learner, blocks=state.blocks._replace(e=-(2**31) - 100))
    learner = CostSCB.load(learner.save())
    for _ in range(60):
        choice = learner.ask()
        learner.tell(choice, float(choice.arm != 1))
        assert abs(learner.probabilities().sum() - 1.0) < 1e-12
    assert learner._state().blocks.e in (-1, 0, 1)


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("h", [1, 2**30])
def test_the_shortest_and_the_longest(n, h):
    learner = CostSCB(n, half_life=h, outliers="sqrt", seed=0)
    for t in range(300):  # ranks grow past the huge losses again and again
        learner.tell(learner.ask(), 1e300 if t % 20 == 19 else 1e-300)
    restored = CostSCB.load(learner.save())
    assert restored._state().clock == learner._state().clock < 2**53
    assert restored.ask().arm == learner.ask().arm


# ------------------------------------------------------------------------------------- saving


@pytest.mark.parametrize(("cls", "settings"), SETTINGS)
@pytest.mark.parametrize("at", [47, 60])  # in the middle of a block, and at an end
def test_save_and_load_in_and_between_blocks(cls, settings, at):
    losses = hostile(200, 3, 1)
    whole, part = cls(3, **settings, seed=2), cls(3, **settings, seed=2)
    arms = arms_of(whole, losses)
    first = arms_of(part, losses[:at])
    restored = cls.load(part.save())
    assert first + arms_of(restored, losses[at:]) == arms
    assert np.array_equal(restored.probabilities(), whole.probabilities())


def some_learner(rounds: int = 47) -> CostSCB:
    learner = CostSCB(3, half_life=20, tune="scale", seed=2)
    arms_of(learner, np.random.default_rng(0).uniform(size=(rounds, 3)))
    return learner


def test_a_play_needs_its_position_and_the_block_before():
    """The controls of the test above: what is left out is missed."""
    losses = np.random.default_rng(1).uniform(size=(60, 3)) * 0.1
    _, whole = play(some_learner(), losses)
    for lacking in ("pos", "before"):
        learner = some_learner()
        state = learner._state()
        if lacking == "pos":
            state_with(learner, memory=state.memory._replace(pos=0))
        else:
            state.blocks.before[:] = 0.0
        with pytest.raises(ValueError, match="not a saved CostSCB"):
            CostSCB.load(learner.save())
        assert not np.array_equal(play(learner, losses)[1], whole)


def forgeries(state) -> dict[str, dict]:
    memory, blocks = state.memory, state.blocks
    return {
        "clock": {"clock": state.clock + 1},
        "clock behind": {"clock": state.clock - 20},
        "rank": {"m": 2},
        "weights": {"N": 2.0 * memory.N},
        "no weights": {"N": 0.5},
        "g": {"memory": memory._replace(g=1.9)},
        "weights of all": {"memory": memory._replace(N=100.0)},
        "at": {"blocks": blocks._replace(at=0.5 * blocks.at)},
        "C": {"blocks": blocks._replace(C=0.5 * blocks.C)},
        "peak": {"blocks": blocks._replace(peak=0.25)},
        "top": {"blocks": blocks._replace(top=0.5 * blocks.at)},
        "unit": {"blocks": blocks._replace(e=blocks.e + 1)},
        "squares": {"V": 1e-3},
        "clipped": {"clipped": 60},
    }


@pytest.mark.parametrize("which", forgeries(some_learner()._state()))
def test_forged_states_are_rejected(which):
    learner = some_learner()
    CostSCB.load(learner.save())
    state_with(learner, **forgeries(learner._state())[which])
    with pytest.raises(ValueError, match="not a saved CostSCB"):
        CostSCB.load(learner.save())


def test_a_forged_unit_is_rejected_while_all_losses_are_zero():
    learner = CostSCB(3, half_life=2, seed=0)
    for loss in (1.0, 0.0, 0.0, 0.0, 0.0, 0.0):
        learner.tell(learner.ask(), loss)
    CostSCB.load(learner.save())
    blocks = learner._state().blocks
    assert blocks.C == 0.0 < blocks.peak
    state_with(learner, blocks=blocks._replace(e=1000))  # nothing would count beside such a past
    with pytest.raises(ValueError, match="there is no such unit"):
        CostSCB.load(learner.save())


def test_a_forged_record_of_an_ask_is_rejected():
    learner = some_learner()
    number = learner.ask().id
    saved = learner.save()
    (held,) = fields_of(saved)["outstanding"].values()
    (record,) = held
    assert (record[0], record[-1]) == (number, 47)
    for clock in ([48], [-1], [1.5], [], [3, 3]):
        forged = changed(saved, outstanding={"issuer": [[*record[:4], *clock]]})
        with pytest.raises(ValueError, match="not a saved CostSCB"):
            CostSCB.load(forged)
    CostSCB.load(changed(saved, outstanding={"issuer": [record]}))


# ------------------------------------------------------------------------------------- around


def test_arguments():
    for settings, match in [
        ({"half_life": 0}, "half_life must be at least 1"),
        ({"half_life": 2**30 + 1}, r"half_life must be at most 2\*\*30, got 1073741825"),
        ({"half_life": 3, "outliers": 3}, "half_life must exceed the number of outliers, 3, got 3"),
        (
            {"half_life": 9, "delayed": "adaptive", "tune": "scale", "implicit": 0.0},
            "half_life has no bound with delayed='adaptive'",
        ),
    ]:
        with pytest.raises(ValueError, match=match):
            CostSCB(3, **settings)
    with pytest.raises(ValueError, match="half_life must exceed the number of outliers, 3, got 3"):
        CostSCBIX(3, half_life=3, outliers=3)
    with pytest.raises(TypeError, match="half_life"):
        CostSCB(3, half_life=1.5)
    assert CostSCB(3, half_life=4, outliers=3).settings["half_life"] == 4


def test_durable_with_delayed_losses_and_another_half_life(tmp_path):
    """A file that is opened again, with asks outstanding, goes on as if it had not been closed."""
    losses = tossed(switching(80, 3, 1, 2), 2).tolist()

    def played(path, again: bool) -> list[int]:
        arms, durable, waiting = [], Durable(path, CostSCB(3, half_life=10, seed=4)), []
        for t, row in enumerate(losses):
            if again and t % 9 == 0:
                del durable  # without a farewell
                durable = Durable(path)
            waiting.append(durable.ask())
            arms.append(waiting[-1].arm)
            if t % 4 == 3:  # the last first
                while waiting:
                    choice = waiting.pop()
                    durable.tell(choice.id, row[choice.arm])
        return arms

    assert played(tmp_path / "one", again=False) == played(tmp_path / "two", again=True)
    with pytest.raises(ValueError, match="half_life=10, and not 20"):
        Durable(tmp_path / "one", CostSCB(3, half_life=20))
    with pytest.raises(ValueError, match="half_life=10, and not None"):
        Durable(tmp_path / "one", CostSCB(3))
    assert Durable(tmp_path / "one", CostSCB(3, half_life=10)).status().rounds == 80


@pytest.mark.parametrize("cls", [CostSCB, CostSCBIX, AdaINF])
def test_a_half_life_below_the_number_of_arms_is_warned_of_once(cls, monkeypatch):
    monkeypatch.setattr(schedule, "_steps", {})
    with pytest.warns(UserWarning, match="half_life=9 .* 10: .* 300") as seen:
        learner = cls(10, half_life=9, seed=0)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    with warnings.catch_warnings(action="error"):
        cls(10, half_life=10, seed=0)  # the control
        learner._steps._warm_up()  # plays another learner of the same settings
