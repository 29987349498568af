"""Simulations with arms that sleep: sums, availability, Theorem S1 and what fails without it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from paces import assert_same, each_way
from unbounded import SCB, AdaINF, CostSCB, CostSCBIX, Simulation, compare, simulate
from unbounded.adversaries import (
    Adversary,
    AtRandom,
    FavoriteSleeps,
    Outage,
    Replay,
    SpikeLeastLikely,
    StochasticGap,
)
from unbounded.bandits import cost_scb
from unbounded.jit.kernel import kernel


@kernel
def left_alone(params, state, arm, ask, loss):
    return cost_scb.learned(params, state, arm, ask.info, None, loss)


class LeftAlone(CostSCB):
    """The natural rule, which is wrong: sleepers are not charged."""

    spec = replace(CostSCB.spec, name="LeftAlone", update_with=left_alone)

    def __init__(self, n_arms, *, tune="paid", implicit=1.0, seed=None):
        super().__init__(n_arms, tune=tune, implicit=implicit, seed=seed)


def masks_and_losses(rounds, n, seed=0):
    rng = np.random.default_rng(seed)
    masks = rng.uniform(size=(rounds, n)) < 0.6
    masks[np.arange(rounds), rng.integers(n, size=rounds)] = True
    return masks, rng.uniform(size=(rounds, n)) * np.linspace(0.4, 1.0, n)


@pytest.mark.parametrize("learner", [CostSCB(4), CostSCBIX(4, half_life=50), AdaINF(4)])
@pytest.mark.parametrize("scale", [1.0, 2.0**1000])
def test_sums_are_those_of_ask_and_tell(learner, scale):
    masks, losses = masks_and_losses(300, 4)
    losses[:100] *= 2.0**-1000  # sums change their unit
    losses *= scale
    result = simulate(
        learner, Replay(losses), 300, 2, seed=9, checkpoints=[1, 7, 300],
        available=Replay(masks.astype(float)),
    )  # fmt: skip
    for r in range(2):
        player, arms = type(learner)(**learner.settings, seed=result.seed(r)), []
        for mask, row in zip(masks, losses, strict=True):
            choice = player.ask(available=mask)
            arms.append(choice.arm)
            player.tell(choice, float(row[choice.arm]))
        paid = losses[np.arange(300), arms]
        for j, t in enumerate([1, 7, 300]):
            each = ((paid[:, None] - losses) * masks)[:t].sum(axis=0)
            assert result.action_regret[r, j] == pytest.approx(each.max(), rel=1e-9)
            best = np.where(masks, losses, np.inf).min(axis=1)
            assert result.available_regret[r, j] == pytest.approx((paid - best)[:t].sum(), rel=1e-9)
    columns = result.columns()
    assert columns["action_regret"].shape == columns["available_regret"].shape == (2, 3)


def test_functions_play_as_kernels_do():
    masks, losses = masks_and_losses(200, 4)
    kernels = (Replay(losses), Replay(masks.astype(float)))
    functions = (lambda t, a, q, rng: losses[t - 1], lambda t, a, p, rng: masks[t - 1])
    plays = [
        simulate(CostSCB(4), one, 200, 2, seed=1, available=other)
        for one in (kernels[0], functions[0])
        for other in (kernels[1], functions[1])
    ]
    for play in plays[1:]:
        assert np.array_equal(play.regret, plays[0].regret)
        assert np.array_equal(play.action_regret, plays[0].action_regret)
        assert np.array_equal(play.pseudo_regret, plays[0].pseudo_regret)


def test_losses_see_the_distribution_over_the_available_arms_and_availability_over_all():
    seen = []

    def losses(t, last_arm, q, rng):
        seen.append(q)
        return [1.0, 2.0, 3.0]

    def available(t, last_arm, p, rng):
        seen.append(p)
        return [0, 2]

    simulate(CostSCB(3), losses, 5, seed=0, available=available)
    for p, q in zip(seen[::2], seen[1::2], strict=True):
        assert p[1] > 0.0 == q[1]
        np.testing.assert_allclose(q[[0, 2]], p[[0, 2]] / p[[0, 2]].sum(), rtol=1e-12)


@pytest.mark.parametrize("learner", [CostSCB(4), AdaINF(4, half_life=40), CostSCBIX(4)])
def test_compiled_and_interpreted_plays_are_equal(monkeypatch, learner):
    def play():
        return simulate(learner, SpikeLeastLikely(), 300, 2, seed=3, available=FavoriteSleeps())

    assert_same(each_way(monkeypatch, play))


def test_where_all_arms_are_available_the_play_is_the_same():
    ones = Replay(np.ones((1, 4)))
    for learner in (CostSCB(4), AdaINF(4), CostSCBIX(4, half_life=30)):
        plain = simulate(learner, StochasticGap(), 300, 2, seed=1)
        masked = simulate(learner, StochasticGap(), 300, 2, seed=1, available=ones)
        assert np.array_equal(plain.regret, masked.regret)
        assert np.array_equal(plain.threshold, masked.threshold)
        assert not np.array_equal(
            plain.regret,
            simulate(learner, StochasticGap(), 300, 2, seed=1, available=AtRandom()).regret,
        )


def filled(adversary, rounds, n, last_arms=None):
    params, state = adversary.begin(n, rounds, 12345)
    out = np.empty((rounds, n))
    for t in range(rounds):
        last = -1 if t == 0 or last_arms is None else last_arms[t - 1]
        type(adversary).fill(params[2:], state, t + 1, last, np.full(n, 1 / n), out[t])
    return out


def test_an_outage_lasts_as_long_as_it_says():
    masks = filled(Outage(arm=2, begin_at=0.5, length=0.1), 1000, 4)
    assert (masks[500:600, 2] == 0.0).all()
    assert masks.sum() == 4 * 1000 - 100


def test_arms_are_there_as_often_as_it_says():
    masks = filled(AtRandom(share=0.3), 4000, 5)
    assert masks.any(axis=1).all()
    assert masks.mean() == pytest.approx(0.3 + 0.7**5 / 5, abs=0.01)
    assert filled(AtRandom(share=0.0), 50, 5).sum() == 50


def test_the_favorite_sleeps():
    rng = np.random.default_rng(0)
    arms = rng.choice(4, p=[0.1, 0.2, 0.6, 0.1], size=2000)
    masks = filled(FavoriteSleeps(), 2000, 4, arms)
    for t in range(150, 2000, 50):
        counts = np.bincount(arms[t - 100 : t], minlength=4)
        assert masks[t].all() or masks[t].argmin() == counts.argmax()
    assert 0.08 < masks.all(axis=1).mean() < 0.12


def test_what_makes_no_sense_is_rejected():
    losses = StochasticGap()
    with pytest.raises(TypeError, match="available"):
        simulate(SCB(3), losses, 10, available=AtRandom())
    with pytest.raises(TypeError, match="available"):
        simulate(CostSCB(3), losses, 10, available=[0, 1])
    with pytest.raises(ValueError, match="dynamic"):
        simulate(CostSCB(3), losses, 10, available=AtRandom(), dynamic=True)
    empty = np.ones((10, 3))
    empty[6] = 0.0
    for given in (Replay(empty), lambda t, a, p, rng: empty[t - 1] > 0.0):
        with pytest.raises(ValueError, match=r"t = 7|at least one arm"):
            simulate(CostSCB(3), losses, 10, available=given)
    with pytest.raises(ValueError, match="available="):
        _ = simulate(CostSCB(3), losses, 10).action_regret
    both = compare({"A": CostSCB(3)}, losses, 50, 2, available=AtRandom())
    assert isinstance(both["A"], Simulation)


class Constant(Adversary):
    """One's own adversary, with plain functions: losses are noise, expected ones 0, 1, 2."""

    def fill(params, state, t, last_arm, q, out):  # noqa: N805
        for k in range(out.size):
            out[k] = k + (t % 2) - 0.5

    def expected(params, state, t, out):  # noqa: N805
        for k in range(out.size):
            out[k] = k
        return 1.0


def test_regret_against_the_best_available_arm_is_in_expected_losses():
    masks = np.array([[1, 1, 1], [0, 1, 1]])
    result = simulate(CostSCB(3, lower=-1), Constant(), 40, seed=0, available=Replay(masks))
    player, total = CostSCB(3, lower=-1, seed=result.seed(0)), 0.0
    for t in range(1, 41):
        mask = masks[(t - 1) % 2] > 0
        choice = player.ask(available=mask)
        player.tell(choice, choice.arm + (t % 2) - 0.5)
        total += choice.arm - mask.argmax()
    assert result.available_regret[0, -1] == total


def test_one_arm_has_no_regret():
    result = simulate(CostSCB(1), StochasticGap(), 50, available=AtRandom())
    assert not result.action_regret.any()


# ------------------------------------------------------------------ Theorem S1

PROVED = {"tune": "scale", "implicit": 0.0}
HALF = {"adversary": Replay([[0.5] * 7 + [1.0]]), "rounds": 30_000, "replicates": 4, "seed": 1}
FIRST_HALF = Outage(arm=7, begin_at=0.0, length=0.5)


def test_charging_the_sleepers_is_what_keeps_the_bound():
    bound = 4.0 * np.sqrt(8 * 30_000) + 1.0
    alone = simulate(LeftAlone(8, **PROVED), **HALF, available=FIRST_HALF, checkpoints=1)
    charged = simulate(CostSCB(8, **PROVED), **HALF, available=FIRST_HALF, checkpoints=1)
    assert charged.action_regret.mean() < 0.05 * bound
    assert alone.action_regret.mean() > 2.0 * bound  # the control


@pytest.mark.parametrize(("n", "T"), [(2, 200), (5, 1000), (12, 3000), (40, 6000)])
@pytest.mark.parametrize("available", [AtRandom(), AtRandom(share=0.2), FavoriteSleeps(), Outage()])
def test_regret_over_the_rounds_in_which_an_arm_was_there_is_below_the_bound(n, T, available):
    for settings, bound in ((PROVED, 4.0 * np.sqrt(n * T) + 1.0), ({}, cost_scb.paid_bound(n, T))):
        result = simulate(
            CostSCB(n, **settings), StochasticGap(gap=0.3), T, 20, seed=2, available=available,
            checkpoints=1,
        )  # fmt: skip
        mean = result.action_regret[:, -1]
        assert mean.mean() + 3.0 * mean.std() / np.sqrt(20) < bound
