"""Late feedback with a proof (docs/theory/one-sided.md, Theorem O6), and the controls that fail."""

from __future__ import annotations

import math

import numpy as np
import pytest

from slow.formulas import tsallis
from unbounded import CostSCB, Uniform, simulate
from unbounded.adversaries import StochasticGap
from unbounded.learners.seeds import replicate_key, root_of

PROVED = {"tune": "scale", "implicit": 0.0, "delayed": "adaptive"}


def delays(rounds: int, longest: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, longest + 1, rounds)


def play(learner, losses: np.ndarray, delay: np.ndarray, clip_at_ask: bool = False) -> dict:
    """Round t is told before ask t + delay_t + 1. What was played and paid, and the overshoot."""
    waiting: list = []
    paid = overshoot = 0.0
    told, arms, q = [], [], []
    for t in range(len(losses) + int(delay.max()) + 1):
        for item in [w for w in waiting if w[0] <= t]:
            _, choice, loss, at_ask = item
            overshoot += max(0.0, loss - (at_ask if clip_at_ask else learner.scale))
            learner.tell(choice, loss)
            told.append(loss)
            waiting.remove(item)
        if t < len(losses):
            q.append(learner.probabilities())
            at_ask = learner.scale
            choice = learner.ask()
            assert choice.probability == q[-1][choice.arm]
            arms.append(choice.arm)
            loss = float(losses[t, choice.arm])
            paid += loss
            waiting.append((t + delay[t] + 1, choice, loss, at_ask))
    return {
        "paid": paid,
        "overshoot": overshoot,
        "told": np.sort(told)[::-1],
        "arms": arms,
        "q": np.array(q),
    }


def slow_play(n: int, m: int, rate: float, arms, losses, delay) -> np.ndarray:
    """The distributions of Theorem O6's algorithm, for the arms that were played."""
    rounds, L, V, qs = len(losses), np.zeros(n), 0.0, []
    told: list[float] = []
    waiting: list = []
    for t in range(rounds):
        for item in [w for w in waiting if w[0] <= t]:
            C = sorted(told)[-m] if len(told) >= m else 0.0
            L[item[1]] += min(item[2], C) / item[3]
            told.append(item[2])
            waiting.remove(item)
        C = sorted(told)[-m] if len(told) >= m else 0.0
        V += C * C * (1.0 + 2.0 * len(waiting) / math.sqrt(n))
        p = tsallis(L, rate / math.sqrt(V)) if V > 0.0 else np.full(n, 1.0 / n)
        qs.append(p)
        waiting.append((t + delay[t] + 1, arms[t], losses[t, arms[t]], p[arms[t]]))
    return np.array(qs)


@pytest.mark.parametrize("longest", [0, 1, 7, 40])
@pytest.mark.parametrize("outliers", [0, 2])
def test_against_the_formulas(outliers, longest):
    n, rounds = 4, 300
    losses = np.random.default_rng(1).exponential(1.0, (rounds, n)) * [1.0, 0.5, 1.0, 1.0]
    losses[100:] *= 5.0
    learner = CostSCB(n, **PROVED, outliers=outliers, rate=1.0, seed=2)
    delay = delays(rounds, longest, 3)
    found = play(learner, losses, delay)
    expected = slow_play(n, outliers + 1, 1.0, found["arms"], losses, delay)
    np.testing.assert_allclose(found["q"], expected, rtol=0.0, atol=1e-9)
    m = outliers + 1
    assert found["overshoot"] == pytest.approx(found["told"][:m].sum(), rel=1e-12)


def test_clipping_at_the_threshold_of_the_ask_breaks_the_overshoot_identity():
    losses = np.random.default_rng(1).exponential(1.0, (300, 4))
    found = play(CostSCB(4, **PROVED, seed=2), losses, delays(300, 7, 3), clip_at_ask=True)
    assert found["overshoot"] > 1.1 * found["told"][0]


def test_what_is_outstanding_slows_it_down():
    """... and what is told in the end does not undo it."""
    losses = np.random.default_rng(4).uniform(size=(400, 4)) * [0.2, 1.0, 1.0, 1.0]
    prompt = play(CostSCB(4, **PROVED, seed=0), losses, delays(400, 0, 0))
    late = play(CostSCB(4, **PROVED, seed=0), losses, np.full(400, 60))
    usual = play(CostSCB(4, tune="scale", implicit=0.0, seed=0), losses, np.full(400, 60))
    assert late["q"][-1].max() < 0.9 * min(usual["q"][-1].max(), prompt["q"][-1].max())


def test_without_delay_it_is_the_simulators_play_bit_for_bit():
    n, rounds, adversary = 5, 300, StochasticGap(0.3)
    learner = CostSCB(n, **PROVED)
    points = range(1, rounds + 1)
    result = simulate(learner, adversary, rounds, 1, 7, checkpoints=points)
    again = CostSCB(n, **PROVED, seed=result.seed(0))
    params, state = adversary.begin(n, rounds, replicate_key(root_of(7), 0))
    row, total = np.empty(n), 0.0
    sums = np.zeros(n)
    for t in points:
        type(adversary).fill(params[2:], state, t, -1, row, row)
        choice = again.ask()
        total += row[choice.arm]
        sums += row
        again.tell(choice, float(row[choice.arm]))
        assert result.regret[0, t - 1] == total - sums.min()
        assert result.threshold[0, t - 1] == again.scale


def test_save_and_load_with_asks_outstanding():
    learner = CostSCB(4, **PROVED, seed=1)
    rng = np.random.default_rng(2)
    waiting = []
    for t in range(200):
        waiting.append(learner.ask())
        if t > 10:
            learner.tell(waiting.pop(0), float(rng.exponential()))
    restored = CostSCB.load(learner.save())
    assert restored.settings["delayed"] == "adaptive"
    for _ in range(50):
        a, b = learner.ask(), restored.ask()
        assert (a.arm, a.probability) == (b.arm, b.probability)
        assert np.array_equal(learner.probabilities(), restored.probabilities())
        x = float(rng.exponential())
        number = min(learner.outstanding)
        learner.tell(learner.outstanding[number], x)
        restored.tell(restored.outstanding[number], x)


def test_theorem_6():
    """Mean regret at delays of up to 10 is below the bound; the uniform learner's is not."""
    n, rounds, longest = 10, 40_000, 10
    regret, uniform, outstanding = [], [], 0
    for r in range(3):
        losses = (np.random.default_rng(r).uniform(size=(rounds, n)) < 0.8).astype(float)
        losses[:, 0] = 0.0
        delay = delays(rounds, longest, 100 + r)
        outstanding = int(np.minimum(delay, rounds - 1 - np.arange(rounds)).sum())
        regret.append(play(CostSCB(n, **PROVED, rate=1.0, seed=r), losses, delay)["paid"])
        uniform.append(play(Uniform(n, seed=r), losses, delay)["paid"])
    V = rounds + 2.0 * outstanding / math.sqrt(n)
    bound = 8.0 * math.sqrt(n * V) + 4.0 * (longest + 1) + 1.0
    assert np.mean(regret) < bound
    assert np.min(uniform) > bound


def test_stability_counts_the_outstanding_losses():
    """e_t <= eta p^1.5 l (l / 2 + outstanding losses of the arm), and not without these."""
    rng = np.random.default_rng(5)
    closest = without = 0.0
    for _ in range(300):
        n, eta = int(rng.integers(2, 6)), math.exp(rng.normal(0.0, 1.0))
        L, k = rng.exponential(2.0, n), int(rng.integers(n))
        awaited = rng.exponential(3.0, n) * (rng.uniform(size=n) < 0.5)
        loss = math.exp(rng.normal(-1.0, 2.0))
        p = tsallis(L, eta)[k]
        y = (np.arange(20) + 0.5) / 20
        moved = [tsallis(L + awaited + s * loss * np.eye(n)[k], eta)[k] for s in y]
        e = loss * (p - np.mean(moved))
        limit = eta * p**1.5 * loss * (0.5 * loss + awaited[k])
        assert e <= min(limit, loss * p) * (1.0 + 1e-3) + 1e-12  # the integral is a sum of 20
        closest = max(closest, e / limit)
        without = max(without, e / (0.5 * eta * p**1.5 * loss**2))
    assert closest > 0.9
    assert without > 10.0


@pytest.mark.parametrize(
    "settings",
    [
        {"delayed": "adaptive"},
        {"delayed": "adaptive", "tune": "scale"},
        {"delayed": "adaptive", "implicit": 0.0},
        PROVED | {"outliers": "sqrt"},
    ],
)
def test_settings_without_a_bound_are_rejected(settings):
    with pytest.raises(ValueError, match="delayed='adaptive' has a regret bound for tune='scale'"):
        CostSCB(3, **settings)


def test_every_loss_is_needed():
    learner = CostSCB(3, **PROVED)
    choice = learner.ask()
    with pytest.raises(RuntimeError, match="needs every loss"):
        learner.forget(choice)
    learner.tell(choice, 1.0)
    usual = CostSCB(3)
    usual.forget(usual.ask())
