"""Many arms: the lazy sampler against independent solves, and the law of what it draws."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from unbounded import SCB, SCBIX, Exp3IX, TsallisINF, simulate
from unbounded.adversaries import Growth, LowerBound, StochasticGap, Switch
from unbounded.core.simplex import lazy_shannon, lazy_tsallis, proposal, shannon_arms, tsallis_arms
from unbounded.core.simplex.lanes import LANES
from unbounded.core.simplex.moments import ROOM, TERMS, exchange, gather, series
from unbounded.play.simulate import _key

LEARNERS = {
    "SCB": (SCB, {}),
    "SCB-range": (SCB, {"clip": "range", "rate": 2.0}),
    "SCB-largest": (SCB, {"threshold": "largest"}),
    "SCBIX": (SCBIX, {}),
    "SCBIX-range": (SCBIX, {"clip": "range"}),
    "TsallisINF": (TsallisINF, {}),
    "Exp3IX": (Exp3IX, {}),
}


@pytest.fixture(autouse=True)
def lazy(monkeypatch):
    """Lazy from the first arm on."""
    monkeypatch.setattr(tsallis_arms, "MANY_ARMS", 1)
    monkeypatch.setattr(shannon_arms, "MANY_ARMS", 1)


@pytest.fixture(params=LEARNERS)
def make(request):
    cls, options = LEARNERS[request.param]
    return lambda n, seed=0: cls(n, **options, seed=seed)


def state_of(learner: Any, buffer: Any = None) -> Any:
    return learner.spec.entries.state(learner._buffer if buffer is None else buffer)


def anchors(learner: Any) -> int:
    module = lazy_tsallis if hasattr(state_of(learner).arms, "x") else lazy_shannon
    return int(state_of(learner).arms.head[module.ANCHORS])


def rates(learner: Any) -> tuple[float, float]:
    """eta and beta of the next round, from the formulas of the papers."""
    n, state = learner.n_arms, state_of(learner)
    t = state.t
    if isinstance(learner, SCB):
        return learner._params.rate / (state.W * math.sqrt(t)), n / (2 * n + math.sqrt(n * t))
    if isinstance(learner, SCBIX):
        iota = math.log(n)
        beta = min(learner._params.beta_cap, math.sqrt(n * iota / (n * iota + t)))
        return 2 / state.W * math.sqrt(iota / (n * t)), beta
    if isinstance(learner, TsallisINF):
        return 2 / math.sqrt(t), 0.0
    return math.sqrt(math.log(n) / (n * t)), 0.0


def solved(learner: Any) -> np.ndarray:
    """q_t from the cumulative losses alone, in extended precision: bisection, or a softmax."""
    arms = state_of(learner).arms
    L = arms.table[proposal.LOSS :: proposal.RECORD].astype(np.longdouble)
    eta, beta = rates(learner)
    L -= L.min()
    if hasattr(arms, "x"):
        low, high = -2.0 * np.sqrt(np.longdouble(L.size)) / eta, np.longdouble(0.0)
        for _ in range(90):
            x = 0.5 * (low + high)
            if (4.0 / (eta * (L - x)) ** 2).sum() > 1.0:
                high = x
            else:
                low = x
        p = 4.0 / (eta * (L - low)) ** 2
    else:
        p = np.exp(-eta * L)
    return ((1.0 - beta) * p / p.sum() + beta / L.size).astype(np.float64)


def losses_with_jumps(rounds: int, n: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    losses = rng.random((rounds, n))
    losses[:, 3 % n] *= 0.4
    losses[: rounds // 2, 5 % n] *= 0.1
    losses[rounds // 2 :, 5 % n] += 1.0
    losses[rounds // 4 :] *= 1.3
    losses[rounds // 3 :] *= -7.0
    return losses


def play(learner: Any, losses: np.ndarray) -> list[int]:
    arms = []
    for row in losses:
        choice = learner.ask()
        arms.append(choice.arm)
        learner.tell(choice, float(row[choice.arm]))
    return arms


@pytest.mark.parametrize("n", [2, 7, 64, 130, 1000])
def test_probabilities_equal_an_independent_solve(make, n):
    learner = make(n)
    rng = np.random.default_rng(n)
    losses = losses_with_jumps(4000, n)
    looked = set(rng.choice(4000, 60, replace=False)) | set(range(5, 30))
    for t, row in enumerate(losses):
        choice = learner.ask()
        learner.tell(choice, float(row[choice.arm]))
        if t in looked and state_of(learner).t > 2:
            np.testing.assert_allclose(learner.probabilities(), solved(learner), rtol=1e-11)
    assert 5 < anchors(learner) < 2000


def test_the_probability_of_a_choice_is_that_of_its_arm(make):
    learner = make(90)
    for row in losses_with_jumps(300, 90):
        q = learner.probabilities()
        choice = learner.ask()
        assert choice.probability == q[choice.arm] > 0.0
        learner.tell(choice, float(row[choice.arm]))


def counts(learner: Any, buffer: np.ndarray, draws: int, seed: int) -> np.ndarray:
    """How often each arm is drawn from one state, by the compiled act of the algorithm."""
    spec = learner.spec
    act, params, state = spec.act, learner._params, state_of(learner, buffer)

    @numba.njit
    def draw(params, state, words, found):
        for word in words:
            found[act(params, state, word)[0]] += 1

    found = np.zeros(learner.n_arms, dtype=np.int64)
    draw(params, state, np.random.PCG64(seed).random_raw(draws), found)
    return found


def p_value(found: np.ndarray, q: np.ndarray) -> float:
    """Chi-square, with arms of small expectation put together."""
    expected = q * found.sum()
    small = expected < 10.0
    groups = np.append(found[~small], found[small].sum())
    wanted = np.append(expected[~small], expected[small].sum())
    if wanted[-1] < 10.0:
        groups[-2], wanted[-2] = groups[-2:].sum(), wanted[-2:].sum()
        groups, wanted = groups[:-1], wanted[:-1]
    return float(stats.chisquare(groups, wanted * (groups.sum() / wanted.sum())).pvalue)


def test_arms_are_drawn_from_q(make):
    """A million draws from each of several states: around anchors, around a jump, in between."""
    n, learner = 150, make(150, seed=4)
    states, before, known = {}, learner._buffer.copy(), 0
    losses = losses_with_jumps(3000, n)
    for t, row in enumerate(losses):
        choice = learner.ask()
        learner.tell(choice, float(row[choice.arm]))
        if anchors(learner) != known and t > 1200 and "before an anchor" not in states:
            states["before an anchor"], states["after it"] = before, learner._buffer.copy()
        known = anchors(learner)
        if t == 2500:
            states["between"] = learner._buffer.copy()
        before = learner._buffer.copy()
    states["before a jump"] = before
    learner.tell(learner.ask(), 31.0)
    states["after it, the threshold"] = learner._buffer.copy()
    assert len(states) == 5
    for seed, buffer in enumerate(states.values()):
        learner._buffer[:] = buffer
        q = solved(learner)
        assert p_value(counts(learner, buffer, 1_000_000, seed), q) > 1e-3


def test_a_wrong_law_would_be_noticed(make):
    learner = make(150, seed=4)
    play(learner, losses_with_jumps(1000, 150))
    q = learner.probabilities()
    found = counts(learner, learner._buffer, 1_000_000, 0)
    wrong = q * np.where(np.arange(150) % 2, 1.03, 1.0)
    assert p_value(found, wrong / wrong.sum()) < 1e-4 < p_value(found, q)


@pytest.mark.parametrize("name", ["SCB", "SCB-range", "SCB-largest", "SCBIX", "SCBIX-range"])
@pytest.mark.parametrize("k", [-900, -7, 1, 900])
def test_powers_of_two_change_nothing(name, k):
    cls, options = LEARNERS[name]
    losses = losses_with_jumps(700, 80)
    plain, scaled = cls(80, **options, seed=1), cls(80, **options, seed=1)
    assert play(plain, losses) == play(scaled, np.ldexp(losses, k))
    assert np.array_equal(plain.probabilities(), scaled.probabilities())
    assert scaled.scale == math.ldexp(plain.scale, k)


@pytest.mark.parametrize("at", [1, 333, 1030])
def test_save_and_load_between_anchors_equals_uninterrupted(make, at):
    losses = losses_with_jumps(1200, 80)
    whole, part = make(80), make(80)
    arms = play(whole, losses)
    first = play(part, losses[:at])
    restored = type(part).load(part.save())
    assert first + play(restored, losses[at:]) == arms
    assert np.array_equal(restored.probabilities(), whole.probabilities())


@pytest.mark.parametrize("adversary", [StochasticGap(0.3), Switch(scale=3.0, shift=-1.0), Growth()])
def test_following_a_few_arms_is_the_same_play_and_that_of_ask_and_tell(make, adversary):
    n, rounds, followed = 70, 400, [0, 1, 5]
    points = range(1, rounds + 1)
    every = simulate(make(n), adversary, rounds, 2, seed=3, checkpoints=points)
    few = simulate(
        make(n), adversary, rounds, 2, seed=3, checkpoints=points, comparators=followed, workers=1
    )
    assert np.array_equal(every._played, few._played)
    assert np.array_equal(every.clipped, few.clipped)
    assert np.array_equal(every.threshold, few.threshold)
    assert np.isnan(few.pseudo_regret).all()
    learner = make(n, seed=few.seed(1))
    params, state = adversary.begin(n, rounds, _key(few._root, 1))
    sums, seen = np.zeros(3), []
    for t in points:
        choice = learner.ask()
        row = np.empty(n)
        type(adversary).fill(params[2:], state, t, -1, row, row)
        row = params[0] * row + params[1]
        sums += row[followed]
        seen += [*row[followed], row[choice.arm]]
        learner.tell(choice, float(row[choice.arm]))
        assert few._best[1, t - 1] == sums.min()
        assert (few.low[1, t - 1], few.high[1, t - 1]) == (min(seen), max(seen))
        assert few.threshold[1, t - 1] == learner.scale


@pytest.mark.parametrize("adversary", [StochasticGap(0.1, 2), Switch(), Growth(), LowerBound()])
def test_entries_are_what_fill_writes(adversary):
    n, rounds = 9, 50
    params, state = adversary.begin(n, rounds, 77)
    row = np.empty(n)
    for t in range(1, rounds + 1):
        type(adversary).fill(params[2:], state, t, -1, row, row)
        entries = [type(adversary).entry(params[2:], state, t, k) for k in range(n)]
        assert row.tolist() == entries


def test_comparators_are_checked():
    learner = SCB(5)
    with pytest.raises(ValueError, match=r"0 \.\. 4"):
        simulate(learner, StochasticGap(), 10, comparators=[5])
    with pytest.raises(ValueError, match="comparators"):
        simulate(learner, StochasticGap(), 10, comparators=[])
    with pytest.raises(TypeError, match="entry"):
        simulate(learner, lambda t, last_arm, q, rng: np.zeros(5), 10, comparators=[0])


def test_any_finite_loss_is_legal(make):
    learner = make(6)
    for size in [0.0, 5e-324, 1e-310, 2.3e-308, 1e-200, 1.0, 1e100, 1.797e308, 1.0, 0.0, 5e-324]:
        for sign in (1.0, -1.0) * 3:
            choice = learner.ask()
            learner.tell(choice, sign * size * [1.0, 0.5, -1.0, 0.0, 0.1, -0.2][choice.arm])
            q = learner.probabilities()
            assert np.isfinite(q).all()
            assert (q > 0.0).all() or not isinstance(learner, SCB | SCBIX)
            assert abs(q.sum() - 1.0) < 1e-12


def test_six_floats_an_arm(make):
    n = 100_000
    sizes = [make(n)._buffer.size, make(2 * n)._buffer.size]
    assert sizes[1] - sizes[0] == 6 * n


def test_losses_that_grow_all_the_time_do_not_cost_an_anchor_each():
    """The range grows by 0.1% an observation: a change of eta like any other."""
    learner = SCB(50, clip="range", seed=0)
    for t in range(5000):
        choice = learner.ask()
        learner.tell(choice, (-1.0) ** t * 1.001**t)
    assert learner.clipped > 4900
    assert anchors(learner) < 100


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 1e-30, 1e-9, 1.0])),
        min_size=1,
        max_size=80,
    )
)
def test_the_alias_table_draws_by_weight(weights):
    n = len(weights)
    table = np.zeros(proposal.RECORD * n)
    unit = proposal.quantum(n)
    w = np.array([proposal.round_up(value, unit) for value in weights])
    assert (w >= np.minimum(weights, 1.0)).all()
    assert (w - weights <= unit).all()
    table[proposal.WEIGHT :: proposal.RECORD] = w
    total = proposal.tabulate(table)
    cut, alias = table[proposal.CUT :: proposal.RECORD], table[proposal.ALIAS :: proposal.RECORD]
    assert (cut >= 0.0).all()
    assert (cut <= 1.0).all()
    law = cut.copy()
    np.add.at(law, alias.astype(int), 1.0 - cut)
    np.testing.assert_allclose(law / n, w / w.sum(), rtol=1e-12, atol=1e-15)
    assert total == pytest.approx(w.sum(), rel=1e-14)


@pytest.mark.parametrize("n", [1, 7, 1000, 999_983, 2**31])
def test_below_is_uniform(n):
    words = np.random.PCG64(0).random_raw(3000)
    for word in words:
        assert proposal.below(word, n) == (int(word) * n) >> 64
    assert proposal.below(np.uint64(0), n) == 0
    assert proposal.below(np.uint64(2**64 - 1), n) == n - 1


@pytest.mark.parametrize("n", [3, 64, 100, 2500])
def test_moments_follow_a_change(n):
    rng = np.random.default_rng(n)
    a, u = rng.random(n), rng.random(n)
    M, lanes = np.zeros(ROOM), np.zeros(4 * LANES)
    gather(M, a.copy(), u, lanes)
    np.testing.assert_allclose(M[:TERMS], [(a * u**j).sum() for j in range(TERMS)], rtol=1e-13)
    exchange(M, a[0], u[0], 0.25, 0.5)
    a[0], u[0] = 0.25, 0.5
    wanted = np.array([(a * u**j).sum() for j in range(TERMS)])
    np.testing.assert_allclose(M[:TERMS], wanted, rtol=1e-12)
    assert (M[TERMS:] == 0.0).all()
    c = rng.random(TERMS)
    assert series(M, c, -0.3) == pytest.approx(np.polyval((c * wanted)[::-1], -0.3), rel=1e-13)


def long_run(learner: Any, adversary: Any, rounds: int, looks: list[int]) -> float:
    """The largest relative difference from an independent solve, at these rounds."""
    entries, worst, t = learner.spec.entries, 0.0, 1
    params, state = adversary.begin(learner.n_arms, rounds, 99)
    bits = np.random.PCG64(5)
    for stop in sorted(looks):
        entries.run_on_demand(
            learner._buffer, bits.random_raw(stop - t), t, adversary.loss_of(), params, state,
            np.zeros(0, dtype=np.int64), np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0]),
            np.zeros(1), np.zeros(1),
        )  # fmt: skip
        t = stop
        worst = max(worst, float(np.abs(learner.probabilities() / solved(learner) - 1.0).max()))
    return worst


@pytest.mark.parametrize("adversary", [StochasticGap(0.2), Switch(), Growth(40.0)])
def test_exact_at_random_times_of_a_long_run(make, adversary):
    looks = np.random.default_rng(0).integers(10, 200_000, 12).tolist()
    assert long_run(make(2000), adversary, 200_000, looks) < 1e-11


@pytest.mark.long
@pytest.mark.parametrize("n", [100, 10_000, 1_000_000])
@pytest.mark.parametrize("adversary", [StochasticGap(0.2), Switch(), Growth(40.0)])
def test_exact_at_random_times_of_a_very_long_run(make, adversary, n):
    rounds = 3_000_000
    looks = np.random.default_rng(n).integers(10, rounds, 8).tolist()
    assert long_run(make(n), adversary, rounds, looks) < 1e-11
