"""Errata of the bandit part (docs/theory/errata.md) that no other test bears the number of.

Where an entry is about a proof, its claim is tested: what is used holds, what is printed does not.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from unbounded import AHB, SCB, SCBIX, SOLOFTRL, Banker, TsallisINFRV, simulate
from unbounded.adversaries import Replay, StochasticGap
from unbounded.bandits import scb_ix
from unbounded.core.clipping import EMPTY, LAZY, clip_to_scale

log, sqrt = math.log, math.sqrt
GRID = [(n, t) for n in (2, 3, 10, 1000) for t in (1, 2, 7, 100, 10**4, 10**7)]


def tell(learner, losses):
    """Tell each arm's loss, round by round."""
    for row in losses:
        choice = learner.ask()
        learner.tell(choice, float(row[choice.arm]))


def test_e2_the_largest_band_is_over_the_integers():
    """K = min{j: l_inf <= 2^j}; the last step needs 2^(K - 1) <= l_inf."""
    for scale in (1e-300, 0.1, 0.75, 1.0, 3.0, 1e300):
        K = math.ceil(math.log2(scale))
        assert 2.0 ** (K - 1) <= scale <= 2.0**K
    natural = max(0, math.ceil(math.log2(0.1)))  # over the natural numbers, as printed
    assert 2.0 ** (natural - 1) > 0.1


def test_e3_the_offset_is_added_once():
    """l^c = max(-C, min(C, l)), and l+ = l^c + C; losses are signed."""
    _, _, window = clip_to_scale(EMPTY, LAZY, -5.0)
    assert math.ldexp(window.W, window.e) == 20.0  # C = 10 = 2 |l|
    for loss, clipped in ((-5.0, -5.0), (3.0, 3.0), (50.0, 10.0), (-50.0, -10.0)):
        l_plus, _, _ = clip_to_scale(window, LAZY, loss)
        assert math.ldexp(l_plus, window.e) == clipped + 10.0  # + 20 with the stray term


def test_e5_the_comparator_may_not_depend_on_the_choice():
    """E <l_hat, p*> = E <l+, p*> for a fixed p*; not if p* is on the arm that is drawn."""
    q, l_plus = np.array([0.5, 0.5]), np.array([1.0, 1.0])
    for p in np.eye(2):
        mean = sum(q[k] * p[k] * l_plus[k] / q[k] for k in range(2))
        assert mean == p @ l_plus
    of_the_draw = sum(q[k] * l_plus[k] / q[k] for k in range(2))
    assert of_the_draw == 2.0
    assert of_the_draw != 1.0  # what <l+, p*> is


def test_e5_pseudo_regret_and_realized_regret_are_distinguished():
    """For an oblivious adversary their means agree; in a run they do not."""
    result = simulate(SCB(3), StochasticGap(0.2), 300, 400, seed=1, checkpoints=[300])
    difference = result.regret[:, 0] - result.pseudo_regret[:, 0]
    assert np.all(difference != 0.0)
    assert abs(difference.mean()) < 5 * difference.std() / sqrt(400)


def test_e6_the_threshold_is_known_before_the_draw_but_not_independent_of_it():
    """C_t does not change with k_t. But p_t has the same past: what it may be depends on C_t."""
    seen = {}
    for seed in range(60):
        learner = SCB(2, profile="paper", seed=seed)
        for _ in range(2):
            choice = learner.ask()
            learner.tell(choice, [1.0, 10.0][choice.arm])
        C = learner.scale
        assert {learner.ask().arm for _ in range(60)} == {0, 1}
        assert learner.scale == C
        seen.setdefault(C, set()).add(bool(learner.probabilities()[0] > 0.5))
    assert seen == {2.0: {False}, 20.0: {False, True}}


def test_e7_the_implicit_exploration_begins_with_its_rate():
    """gamma_t = sqrt(ln n/(n t))/2 from t = 1 on never increases; the printed 0, gamma_2 does."""
    n = 4
    params = scb_ix.Params(n, 0, LAZY, 1.0, log(n), 1.0)
    state, word = scb_ix.init(params), np.uint64(3 << 62)
    gammas = []
    for t in range(1, 6):
        _, q_k, ask_info = scb_ix.act(params, state._replace(t=t), word)
        gammas.append(ask_info - q_k)
    assert gammas == pytest.approx([0.5 * sqrt(log(n) / (n * t)) for t in range(1, 6)], rel=1e-12)
    assert gammas == sorted(gammas, reverse=True)
    assert [0.0, *gammas[1:]] != sorted([0.0, *gammas[1:]], reverse=True)


def test_e7_has_no_effect_on_what_is_played():
    """In a round with C_t = 0 the estimate is 0, whatever gamma_t is."""
    learner = SCBIX(3, profile="paper", seed=0)
    for loss in (0.0, 0.0, 7.0):
        learner.tell(learner.ask(), loss)
        assert learner.probabilities().tolist() == pytest.approx([1 / 3] * 3, abs=1e-15)


@pytest.mark.parametrize("settings", [{}, {"profile": "paper"}, {"delta": 0.1}])
def test_e8_one_arm(settings):
    """ln n = 0 would make rates zero and 1/ln n infinite."""
    learner = SCBIX(1, **settings, seed=0)
    for loss in (0.0, 5.0, -1e300, 3.0):
        choice = learner.ask()
        assert (choice.arm, choice.probability) == (0, 1.0)
        learner.tell(choice, loss)
        assert learner.probabilities().tolist() == [1.0]
    losses = np.array([[1.0], [-2.0], [0.5]])
    result = simulate(SCBIX(1, **settings), Replay(losses), 30, seed=0)
    assert not result.regret.any()
    assert not result.pseudo_regret.any()


def test_e9_the_cap_on_the_exploration_rate():
    """Different play in the first 3 n ln n rounds, and only there."""
    n = 3
    losses = np.random.default_rng(2).normal(size=(40, n))

    def play(zeros, **settings):
        learner = SCBIX(n, profile="paper", **settings, seed=1)
        tell(learner, np.zeros((zeros, n)))  # nothing is learned, but t advances
        tell(learner, losses)
        return learner.probabilities()

    assert math.ceil(3 * n * log(n)) == 10
    assert np.array_equal(play(10), play(10, beta_cap=0.5))
    assert not np.allclose(play(0), play(0, beta_cap=0.5), atol=1e-3)
    ranges = [play(0, clip="range", **cap) for cap in ({}, {"beta_cap": 0.5}, {"beta_cap": 1.0})]
    assert np.array_equal(ranges[0], ranges[1])  # which is the default there
    assert not np.allclose(ranges[0], ranges[2], atol=1e-3)


def test_e9_what_is_printed_exceeds_one_half_at_first():
    n = 10
    beta = [sqrt(n * log(n) / (n * log(n) + t)) for t in range(1, 200)]
    assert 1 / (1 - beta[0]) == pytest.approx(47.5, abs=0.1)  # p/q, where the proof has 2
    last = max(t for t, b in enumerate(beta, 1) if b > 0.5)
    assert last == math.floor(3 * n * log(n))
    for m, T in GRID:  # with the cap, the clipping term is as it is said
        capped = min(0.5, sqrt(m * log(m) / (m * log(m) + T)))
        assert m / capped == pytest.approx(max(2 * m, sqrt(m * m + m * T / log(m))), rel=1e-12)


def test_e10_larger_weights_do_not_make_a_larger_sum():
    """Terms may be negative; but both weights are at most 2 gamma_t, which is what is needed."""
    for n, t in GRID:
        gamma = 0.5 * sqrt(log(n) / (n * t))
        beta = sqrt(n * log(n) / (n * log(n) + t))
        assert min(beta, 0.5) / n <= beta / n <= 2 * gamma * (1 + 1e-12)
    terms = np.array([-1.0, 0.25])  # of l_hat - l+: l_hat is 0 where the arm was not drawn
    small, large = np.array([0.1, 0.1]), np.array([0.4, 0.2])
    assert np.all(small <= large)
    assert small @ terms > large @ terms


def test_e11_the_regularizer():
    """Psi = 4 sqrt(n) - 4 sum sqrt(p) is at most 4 sqrt(n) - 4, at a vertex; not sqrt(n)."""
    rng = np.random.default_rng(3)
    for n in (2, 5, 100):
        points = [*rng.dirichlet(np.ones(n), size=50), np.eye(n)[0], np.full(n, 1 / n)]
        psi = [4 * sqrt(n) - 4 * np.sqrt(p).sum() for p in points]
        assert max(psi) == psi[-2] == pytest.approx(4 * sqrt(n) - 4)
        assert min(psi) >= -1e-12
        assert max(psi) > sqrt(n)


def test_e11_how_long_an_outlier_is_missed():
    """At most ln(1/delta) n/beta rounds with probability 1 - delta; "at least" is printed."""
    n, beta, delta = 10, 0.3, 0.05
    rounds = log(1 / delta) * n / beta
    missed = (1 - beta / n) ** rounds  # the probability of more than that
    assert missed <= delta
    assert missed < 1 - delta


def test_e11_the_clipping_term():
    """n/beta_T is sqrt(n^2 + n T/ln n): of the printed order from T = n ln n on, not before."""
    for n, T in GRID:
        beta = sqrt(n * log(n) / (n * log(n) + T))
        read = sqrt(n * n + n * T / log(n))
        printed = sqrt((n * n + n * T) / log(n))
        assert n / beta == pytest.approx(read, rel=1e-12)
        if n * log(n) <= T:
            assert 0.7 <= printed / read <= 1.21
    n = 10**9
    assert sqrt((n * n + n) / log(n)) < 0.25 * sqrt(n * n + n / log(n))


def test_e32_the_clipped_loss_with_its_offset():
    """l+ is at most 3 l_inf, and may be more than 2 l_inf."""
    _, _, window = clip_to_scale(EMPTY, LAZY, 1.0)
    l_plus, clipped, _ = clip_to_scale(window, LAZY, 1.0)
    assert not clipped
    assert math.ldexp(l_plus, window.e) == 3.0
    rng = np.random.default_rng(4)
    window, largest, most = EMPTY, 0.0, 0.0
    for loss in rng.standard_cauchy(2000):
        before = window.e
        l_plus, _, window = clip_to_scale(window, LAZY, loss)
        largest = max(largest, abs(loss))
        assert math.ldexp(l_plus, before) <= 3 * largest
        most = max(most, math.ldexp(l_plus, before) / largest)
    assert 2.0 < most <= 3.0


def test_o1_banker_skips_and_keeps_its_savings():
    """A loss beyond B = 1 is skipped, and sets B; what was learned before stays."""
    learner = Banker(3, rounds=1000, seed=0)
    tell(learner, np.array([[1.0, 0.0, -1.0]] * 30))
    assert learner.clipped == 0
    assert learner.scale == 2.0  # max(B, 2 |l|)
    before = learner.probabilities()
    assert np.ptp(before) > 0.05
    learner.tell(learner.ask(), 2.5)
    assert (learner.clipped, learner.scale) == (1, 5.0)
    after = learner.probabilities()
    assert np.ptp(after) > 0.02  # no restart from the uniform distribution
    assert np.array_equal(np.argsort(before), np.argsort(after))
    learner = Banker(3, rounds=1000, seed=0)
    learner.tell(learner.ask(), 50.0)
    assert learner.probabilities().tolist() == pytest.approx([1 / 3] * 3, abs=1e-12)
    assert learner.scale == 100.0
    with pytest.raises(TypeError, match="rounds"):
        Banker(3)


def test_o2_solo_ftrl_has_the_best_constant():
    """c = sqrt(2.75/ln n) minimises (c ln n + 2.75/c); 1/sqrt(ln n) has 3.75 for 3.32."""
    for n in (2, 5, 1000):
        best = sqrt(2.75 / log(n))

        def leading(c, n=n):
            return c * log(n) + 2.75 / c

        assert leading(best) == pytest.approx(2 * sqrt(2.75) * sqrt(log(n)))
        assert all(leading(best) < leading(f * best) for f in (0.5, 0.9, 1.1, 2.0))
        assert leading(1 / sqrt(log(n))) == pytest.approx(3.75 * sqrt(log(n)))
    losses, n = np.array([3.0, -4.0, 1.0]), 3
    learner = SOLOFTRL(n, seed=0)
    learner.tell(learner.ask(), losses=losses)
    weights = np.exp(-losses / (sqrt(2.75 / log(n)) * 4.0))
    assert learner.probabilities() == pytest.approx(weights / weights.sum(), abs=1e-12)


def test_o3_the_bound_of_tsallis_inf_with_reduced_variance():
    for n, T in ((n, T) for n, T in GRID if T > 1):
        found = TsallisINFRV.spec.bound(n, T)
        assert found == pytest.approx(2 * sqrt(n * T) + 14 * n * log(T) + 16)
        assert found >= 2 * sqrt(n * T) + 10 * n * log(T) + 16  # what is printed


def test_o4_the_bound_of_ahb():
    """The three terms of the theorem; the 7 sqrt(n T ln n) + 10 n ln n does not follow."""
    for n in (3, 50):
        for T in (1000 * n, 10**8):
            unit = sqrt(n * T * log(n))
            gamma = min(0.5, sqrt(2.5 * n * log(n) / T))
            terms = 3 * unit, 5 * n * log(n) / gamma, 2 * sqrt(2.5 * n * T * log(n))
            found = AHB.spec.bound(n, T)
            assert found == pytest.approx(sum(terms) + n)
            assert terms[1] == pytest.approx(sqrt(10) * unit)
            assert found <= 9.33 * unit + n
    n, T = 3, 10**8
    assert AHB.spec.bound(n, T) > 7 * sqrt(n * T * log(n)) + 10 * n * log(n)
    sum_of_gammas = np.minimum(0.5, np.sqrt(2.5 * n * log(n) / np.arange(n + 1, 10**6))).sum()
    assert sum_of_gammas <= 2 * sqrt(2.5 * n * 10**6 * log(n))
