"""docs/theory/ada-inf.md, line by line: its lemma, its proof, its theorem, each with a control."""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from slow.ada_inf import roots
from unbounded import AdaINF, ScaleWarning, Uniform, simulate
from unbounded.adversaries import (
    Chaser,
    Growth,
    LowerBound,
    SpikeLeastLikely,
    StochasticGap,
    Switch,
)
from unbounded.bandits import ada_inf
from unbounded.bounds import bound_of
from unbounded.core.center import Center, towards
from unbounded.core.simplex.signed_arms import near_gap

# ------------------------------------------------------------------------------------- Lemma 1


def instances(count: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n = int(rng.integers(2, 9))
        L = rng.exponential(10.0 ** rng.uniform(-1, 2), n) * rng.choice([-1.0, 1.0], n)
        x = rng.normal() * 10.0 ** rng.uniform(-1, 2)
        yield L, 10.0 ** rng.uniform(-1, 1), int(rng.integers(n)), float(x), rng


def gap_of(L: np.ndarray, S: float, k: int, x: float) -> float:
    """By its definition."""
    after = L.copy()
    after[k] += x

    def potential(L):
        r = roots(L, S)
        return (L * r**2).sum() - 4.0 * S * r.sum()

    return x * roots(L, S)[k] ** 2 + potential(L) - potential(after)


def lemma_1(r: np.ndarray, S: float, k: int, z: float, tau: float) -> float:
    s = z - tau * r[k]
    others = np.delete(r, k)
    return 2.0 * S * (r[k] * s**2 / (1.0 + s) + tau**2 * (others**3 / (1.0 - tau * others)).sum())


def test_lemma_1_for_any_tau():
    closest = math.inf
    for L, S, k, x, rng in instances(2000):
        gap, r = gap_of(L, S, k, x), roots(L, S)
        z = x * r[k] / (2.0 * S)
        low, high = (z + 1.0) / r[k], 1.0 / np.delete(r, k).max()
        tau = min(low, high) - rng.exponential(10.0 ** rng.uniform(-2, 1))
        bound = lemma_1(r, S, k, z, tau)
        assert gap <= bound + 1e-9 * (abs(x) + S)
        closest = min(closest, bound / gap if gap > 1e-6 else math.inf)
    assert closest < 1.01  # so that any smaller constant fails


def test_lemma_1_is_an_equality_at_the_change_of_the_normalizer():
    for L, S, k, x, _ in instances(500, 1):
        after = L.copy()
        after[k] += x
        r, s = roots(L, S), roots(after, S)
        i = (k + 1) % L.size
        tau = 1.0 / r[i] - 1.0 / s[i]
        bound = lemma_1(r, S, k, r[k] / s[k] - 1.0 + tau * r[k], tau)
        assert bound == pytest.approx(gap_of(L, S, k, x), rel=1e-6, abs=1e-9 * (abs(x) + S))


def test_the_crude_bounds():
    broken = 0
    for L, S, k, x, _ in instances(2000, 2):
        gap, r = gap_of(L, S, k, x), roots(L, S)
        p, z = r[k] ** 2, x * r[k] / (2.0 * S)
        rounding = 1e-9 * (abs(x) + S)
        assert gap <= (x * p if x > 0.0 else -x * (1.0 - p)) + rounding
        if z > -1.0:
            assert gap <= 2.0 * S * r[k] * z * z / (1.0 + z) + rounding
        broken += gap > abs(x) * min(p, 1.0 - p) + rounding  # the control
    assert broken > 100


def test_what_is_computed_is_between_the_gap_and_its_bound():
    ratios, short = [], 0
    for L, S, k, x, _ in instances(3000, 3):
        r = roots(L, S)
        z = x * r[k] / (2.0 * S)
        if abs(z) > 0.25:
            continue
        gap, cubes = gap_of(L, S, k, x), (np.delete(r, k) ** 3).sum()
        computed = 2.0 * S * near_gap(z, r[k], cubes, r.max())
        rounding = 1e-12 * (abs(L).max() + abs(x) + S)
        assert gap - rounding <= computed <= 2.0 * S * r[k] * z * z / (1.0 + z)
        if gap > 1e6 * rounding:
            ratios.append((computed / gap - 1.0) / abs(z))
        without = 2.0 * S * r[k] * (z * cubes / (r[k] ** 3 + cubes)) ** 2
        short += without < gap - rounding  # the control: the first term alone
    assert max(ratios) < 2.0
    assert len(ratios) > 500
    assert short > 500


# ----------------------------------------------------------------------------- a play, looked into


class Play(NamedTuple):
    """What the proof speaks of, in a play of the learner itself."""

    n: int
    T: int
    a: float
    D: float  # the range of the losses
    along: np.ndarray  # sum of <x e_k, p - e_j>, for each arm j
    Delta: float  # sum of the gaps
    V: float
    w: np.ndarray
    B: np.ndarray
    x_root: np.ndarray  # |x| sqrt(p_k)


def play(losses: np.ndarray, seed: int = 0, **settings) -> Play:
    T, n = losses.shape
    learner = AdaINF(n, robust=False, seed=seed, **settings)
    a = learner.settings["exploration"] or ada_inf.usual_exploration(n)
    slots = learner.spec.packing.slot
    along, V, w, B, x_root = np.zeros(n), 0.0, [], [], []
    for t, row in enumerate(losses, start=1):
        q = learner.probabilities()
        choice = learner.ask()
        center, k = learner._buffer[slots("B.at")], choice.arm
        if t > 1:
            S = learner._buffer[slots("arms.S")]
            beta = a * n / (2.0 * a * n + math.sqrt(n * t)) if S > 0.0 else 0.0
            p = np.maximum((q - beta / n) / (1.0 - beta), 0.0)
            x = (row[k] - center) / q[k]
            along += x * p[k]
            along[k] -= x
            w.append(p[k] ** 1.5 / q[k] ** 2)
            V += w[-1] * (row[k] - center) ** 2
            x_root.append(abs(x) * math.sqrt(p[k]))
            B.append(center)
        learner.tell(choice, float(row[k]))
    unit = 2.0 ** learner._buffer[slots("e")]
    Delta = learner._buffer[slots("arms.S")] * unit * 4.0 * (math.sqrt(n) - 1.0)
    return Play(
        n, T, a, float(np.ptp(losses)), along, Delta, V, np.array(w), np.array(B), np.array(x_root)
    )


@cache
def plays() -> list[Play]:
    rng, found = np.random.default_rng(5), []
    for seed in range(12):
        n, T = int(rng.choice([2, 3, 7])), 400
        losses = rng.normal(size=(T, n)) * 10.0 ** rng.integers(-2, 3)
        kind = seed % 4
        if kind == 1:  # one arm is better
            losses[:, 0] -= 2.0 * np.abs(losses).max()
        elif kind == 2:  # an arm that was bad turns good late
            losses[:, 0] += 3.0 * np.abs(losses).max()
            losses[T // 2 :, 0] = -20.0 * np.abs(losses).max()
        elif kind == 3:  # growth
            losses *= 1.02 ** np.arange(T)[:, None]
        settings = {"exploration": float(rng.choice([0.5, 1.0]))}
        found.append(play(losses, seed, **settings))
    return found


def reach(play: Play) -> tuple[float, float]:
    """1 / eps_T and beta_T."""
    inverse = math.sqrt(play.n * play.T) / play.a + 2.0 * play.n
    return inverse, play.n / inverse


def test_step_b_regret_on_the_estimates_is_at_most_twice_the_gaps():
    ratios = [play.along.max() / play.Delta for play in plays()]
    assert max(ratios) <= 2.0 + 1e-6
    assert max(ratios) > 1.0  # the control: the gaps once are not enough


def test_step_c_exploration_bounds_what_is_added():
    ratios = []
    for play in plays():
        inverse, beta = reach(play)
        S = 0.5 * play.D * math.sqrt(inverse / (1.0 - beta))
        ratios.append(play.x_root.max() / S)
    assert max(ratios) <= 1.0 + 1e-6
    assert max(ratios) > 0.25  # the control: a quarter is not enough


def test_step_d_the_gaps_in_sum():
    control = 0
    for play in plays():
        inverse, beta = reach(play)
        h, S = 4.0 * (math.sqrt(play.n) - 1.0), 0.5 * play.D * math.sqrt(inverse / (1.0 - beta))
        for kappa in (1.0, 2.0, 10.0):
            c = 1.0 / (1.0 - 0.5 / kappa)
            early = kappa * h * S + play.D * inverse
            assert play.Delta <= 2.0 * play.D + math.sqrt(early**2 + c * h * play.V)
        control += play.Delta > math.sqrt(0.25 * h * play.V)
    assert control > 0  # the squares alone, with a smaller constant, are not enough


# ----------------------------------------------------------------------- (e): the center, weights


def squares(w: np.ndarray, values: np.ndarray, learns: bool = True) -> tuple[float, float]:
    """V and its bound, for a center that starts anywhere in [0, 1]."""
    B, W, V, spread = 0.7, 0.0, 0.0, 0.0
    for weight, value in zip(w, values, strict=True):
        V += weight * (value - B) ** 2
        W += weight
        spread += weight**2 / W
        B = towards(Center(B, False), value, weight / W if learns else 0.0).at
    mean = (w * values).sum() / w.sum()
    best = (w * (values - mean) ** 2).sum()
    assert best <= 0.25 * w.sum()
    assert spread <= w.max() * (1.0 + math.log(w.sum() / w[0]))
    return V, best + spread


def test_step_e_the_center_is_as_good_as_the_best_in_hindsight():
    rng, failed = np.random.default_rng(6), 0
    for _ in range(300):
        w, values = rng.exponential(1.0, 200), rng.beta(0.5, 3.0, 200)
        V, bound = squares(w, values)
        assert bound * (1.0 + 1e-12) >= V
        V, bound = squares(w, values, learns=False)  # the control
        failed += bound < V
    assert failed > 250


@pytest.mark.parametrize("a", [0.05, 0.5, 1.0, 20.0])
@pytest.mark.parametrize("n", [2, 10, 1000])
def test_weights_and_sums_over_the_rounds(n, a):
    t = np.arange(1, 3001)
    beta = a * n / (2.0 * a * n + np.sqrt(n * t))
    assert (beta < 0.5).all()
    assert beta.sum() <= 2.0 * a * math.sqrt(n * 3000)
    assert (np.diff(beta * (1.0 - beta)) < 0.0).all()  # so that step (c) holds with T
    assert n / beta[-1] == pytest.approx(math.sqrt(n * 3000) / a + 2.0 * n)
    p = np.geomspace(1e-9, 1.0, 4000)[:, None]
    eps = beta[::100] / n
    w = p**1.5 / ((1.0 - beta[::100]) * p + eps) ** 2
    largest = (w * np.sqrt(eps)).max(axis=0)
    assert (largest <= 0.92).all()
    assert (largest > 0.32).all()  # at beta = 0 it is 3^1.5 / 16
    rng = np.random.default_rng(n)
    r = rng.dirichlet(np.full(n, 0.3), 20)
    for b in beta[::500]:
        mean = (r**1.5 / ((1.0 - b) * r + b / n)).sum(axis=1)
        assert (mean <= math.sqrt(n) * (1.0 + 2.0 * b)).all()


# ------------------------------------------------------------------------------------ additions


def test_robustness_costs_the_largest_losses_at_most():
    """Growing losses are clipped always, and what is lost is at most m_T ranges."""
    rng, T, n = np.random.default_rng(9), 3000, 3
    losses = np.arange(T) + rng.uniform(size=T)
    learner, lost = AdaINF(n, seed=1), 0.0
    for t, loss in enumerate(losses, start=1):
        if t > ada_inf.WARM:
            lost += max(0.0, loss - losses[t - 1 - ada_inf.rank(t)])  # losses are in order
        learner.tell(learner.ask(), float(loss))
    assert learner.clipped == T - ada_inf.WARM
    assert T < lost <= ada_inf.rank(T) * np.ptp(losses)  # one range would not be enough


def after_outlier(size: float, on_best: bool, **settings) -> float:
    """The probability of the best arm after 4000 rounds, one of them with a huge loss."""
    learner, rng, told = AdaINF(5, seed=3, **settings), np.random.default_rng(4), False
    means = [0.2, 0.6, 0.6, 0.6, 0.6]
    for t in range(4000):
        row = (rng.random(5) < means).astype(float)
        choice = learner.ask()
        loss = float(row[choice.arm])
        if t > 500 and not told and (choice.arm == 0) == on_best:
            loss, told = size, True
        learner.tell(choice, loss)
    return float(learner.probabilities()[0])


@pytest.mark.parametrize(("size", "on_best", "trim"), [(1e6, True, 0), (-1e6, False, 1)])
def test_outliers_do_no_harm_where_they_are_expected(size, on_best, trim):
    assert after_outlier(size, on_best, trim=trim) > 0.9
    assert after_outlier(0.5, on_best, robust=False) > 0.9
    assert after_outlier(size, on_best, robust=False) < 0.5  # the control


def test_an_outlier_that_does_harm_is_warned_of():
    learner = AdaINF(2, seed=0)
    for t in range(1200):
        learner.tell(learner.ask(), float(t % 2))
    learner.tell(learner.ask(), 1e6)  # does none
    with pytest.warns(ScaleWarning, match="trim=1"):
        learner.tell(learner.ask(), -1e6)


def test_the_first_rounds_are_uniform_and_the_center_is_their_lower_median():
    learner, told = AdaINF(4, seed=0), [5.0, -1.0, 3.0, 1e9, 2.0, 0.0, -1e9, 7.0]
    for loss in told:
        assert learner.probabilities().tolist() == [0.25] * 4
        learner.tell(learner.ask(), loss)
    assert learner._scalar("B.at") == 2.0
    assert learner.scale == 0.0
    learner.tell(learner.ask(), 2.5)
    assert learner.scale == 0.5


@pytest.mark.parametrize("a", [5e-324, 1e-200, 1e200, 1.7e308])
def test_any_exploration_leaves_a_distribution(a):
    learner = AdaINF(5, exploration=a, seed=0)
    for loss in np.random.default_rng(0).normal(size=200).tolist():
        learner.tell(learner.ask(), loss)
    q = learner.probabilities()
    assert abs(q.sum() - 1.0) < 1e-12
    assert q.min() >= (0.0 if a < 1.0 else 0.1 * (1.0 - 1e-12))


def test_delayed_losses_use_the_probability_of_their_ask():
    """The estimate has the q of the ask; gap and center have the p and B of the tell."""
    params = ada_inf.Params(3, 0.5, False, 0)
    added = {}
    for q_k in (0.2, 0.4):
        state = ada_inf.init(params)
        for arm, loss in enumerate((0.25, 1.0, 0.5)):
            state = ada_inf.update(params, state, arm, 1.0 / 3.0, loss)
        before, B, unit = state.arms.M.copy(), state.B.at, 2.0**state.e
        state = ada_inf.update(params, state, 1, q_k, 0.75)
        change = (state.arms.M * 2.0**state.e - before * unit)[[1, 2]]
        added[q_k] = change[0] - change[1]
        assert added[q_k] == pytest.approx((0.75 - B) / q_k)
        assert min(B, 0.75) < state.B.at < max(B, 0.75)
    assert added[0.2] == pytest.approx(2.0 * added[0.4])


# ---------------------------------------------------------------------------------- the theorem

WIDE = {
    "stochastic gap": StochasticGap(0.5),
    "a quarter, some arm": LowerBound(1e3),  # the gap is capped at 1/4
    "switch": Switch(1.0 / 6.0, at=0.25),
    "growth": Growth(doublings=2.0, gap=0.5),
    "spike on the least likely arm": SpikeLeastLikely(height=-1.0, gap=0.5),
    "both signs": StochasticGap(0.5, shift=-0.5),
    "chaser": Chaser(),
}
SIZES = [(2, 20_000), (3, 50_000), (10, 50_000), (20, 100_000)]


def relative(learner, adversary, rounds, replicates):
    result = simulate(learner, adversary, rounds, replicates, seed=7, checkpoints=[rounds])
    return result.relative_regret("range", pseudo=True)[:, -1]


def compare(n: int, T: int, name: str, replicates: int, settings: dict) -> None:
    ceiling = ada_inf.bound(n, T, **settings)
    ours = relative(AdaINF(n, **settings), WIDE[name], T, replicates)
    uniform = relative(Uniform(n), WIDE[name], T, replicates)
    noise = 3.0 / math.sqrt(replicates)
    assert ours.mean() + noise * ours.std(ddof=1) <= ceiling
    assert uniform.mean() - noise * uniform.std(ddof=1) > ceiling


@pytest.mark.parametrize(("n", "T"), SIZES)
def test_theorem_1_holds_and_the_uniform_learner_breaks_it(n, T):
    for settings in ({}, {"robust": False}):
        compare(n, T, "stochastic gap", 6, settings)
        compare(n, T, "both signs", 6, settings)


@pytest.mark.long
@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize(("n", "T"), [(2, 10**5), (3, 3 * 10**5), (10, 10**6), (20, 10**6)])
def test_theorem_1_in_long_plays(n, T, name):
    for settings in ({}, {"robust": False, "exploration": 1.0}, {"trim": 1}):
        compare(n, T, name, 20, settings)


@pytest.mark.parametrize(("n", "T"), [(2, 1000), (10, 10**5), (100, 10**7)])
@pytest.mark.parametrize("a", [0.5, 1.0])
def test_the_bound_is_the_formula_of_the_theorem(n, T, a):
    eps = 1.0 / (math.sqrt(n * T) / a + 2.0 * n)
    h = 4.0 * (math.sqrt(n) - 1.0)
    Q = 0.92 * h * eps**-0.5 * (1.0 + math.log(T + 4.0 * a * math.sqrt(n * T)))

    def at(kappa: float) -> float:
        H = h / (2.0 * math.sqrt(eps * (1.0 - n * eps)))
        main = (1.0 - n**-0.5) * (n * T + 4.0 * a * n * math.sqrt(n * T))
        root = math.sqrt((1.0 / eps + kappa * H) ** 2 + (main + Q) / (1.0 - 0.5 / kappa))
        return 5.0 + 2.0 * a * (1.0 - 1.0 / n) * math.sqrt(n * T) + 2.0 * root

    best = min(at(kappa) for kappa in np.geomspace(1.0, 1e4, 20_000))
    assert ada_inf.bound(n, T, a, robust=False) == pytest.approx(best, rel=1e-3)
    assert ada_inf.bound(n, T, a, robust=False) >= best * (1.0 - 1e-6)
    robust = ada_inf.bound(n, T, a) - ada_inf.bound(n, T, a, robust=False)
    assert 7.0 + ada_inf.rank(T) <= robust <= 7.0 + ada_inf.rank(T) + 8.0 * h
    trimmed = ada_inf.bound(n, T, a, trim=2) - ada_inf.bound(n, T, a)
    assert trimmed == pytest.approx(3.0 / eps)


@pytest.mark.parametrize("settings", [{}, {"robust": False}, {"exploration": 1.0, "trim": 2}])
def test_the_report_draws_the_bound_of_the_settings(settings):
    bound = bound_of("AdaINF", settings)
    assert bound.of(10, 10**5, 0.1) == ada_inf.bound(10, 10**5, **settings)
    leading = float(bound.text.split()[0])  # for many arms, with nothing of lower order
    assert ada_inf.bound(10**4, 10**18, **settings) / 1e11 == pytest.approx(leading, rel=0.05)


def test_the_leading_constant():
    for n, expected in ((2, 3.28), (10, 4.97), (100, 5.40)):
        T = 10**18
        assert ada_inf.bound(n, T) / math.sqrt(n * T) == pytest.approx(expected, abs=0.03)
