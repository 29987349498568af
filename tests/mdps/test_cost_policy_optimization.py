"""CostPolicyOptimization: a slow twin, and what docs/theory/policy-optimization.md proves."""

import math

import numpy as np
import pytest

from mdp_play import params_of, play, random_losses, state_of
from slow_cost_policy_optimization import SlowCostPolicyOptimization
from unbounded import CostPolicyOptimization, UniformPolicy, simulate_mdp, worlds
from unbounded.adversaries.mdps import Stochastic
from unbounded.core.occupancy.layout import STATE
from unbounded.core.occupancy.mdp import occupancy
from unbounded.mdps.cost_policy_optimization import lower_end

MDP = worlds.dirichlet([2, 3, 2], 2, np.random.default_rng(0))
LAYERS = MDP.layers


def slow_of(learner):
    given, lower = learner.settings, params_of(learner).lower.tolist()
    return SlowCostPolicyOptimization(
        learner.layers.sizes, learner.layers.n_actions, given["delta"], lower,
        given["outliers"] + 1, given["rate"], given["implicit"], given["bonus"],
    )  # fmt: skip


def costs(T, seed, layers=LAYERS):
    return np.abs(random_losses(layers, T, seed))


def follow(learner, slow, losses, seed):
    """Play both; return how far their policies ever were apart."""
    worst = 0.0

    def before(learner, plan, states, actions, told):
        nonlocal worst
        tables = learner.policy().tables
        worst = max(worst, *(np.max(np.abs(tables[h] - pi)) for h, pi in enumerate(slow.pi)))
        slow.learn(states.tolist(), actions.tolist(), told.tolist())

    play(learner, MDP, losses, seed=seed, before=before)
    return worst


# ---------------------------------------------------------------------- the algorithm


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"rate": 3.0, "implicit": 0.05, "bonus": 0.7, "delta": 0.3},
        {"lower": [0.1, -2.0, 0.0]},
        {"outliers": 3},
    ],
    ids=["default", "other constants", "lower", "outliers"],
)
def test_agrees_with_a_slow_implementation(settings):
    learner = CostPolicyOptimization(LAYERS.sizes, 2, seed=1, **settings)
    losses = costs(300, seed=2)
    losses[:3] = 0.0
    losses[150:] *= 50.0
    assert follow(learner, slow_of(learner), losses, seed=3) <= 1e-9
    assert np.ptp(learner.policy().pi[1:]) > 0.1  # something was learned
    assert (learner.below > 0) == ("lower" in settings)


def test_the_slow_implementation_notices_another_constant():
    learner = CostPolicyOptimization(LAYERS.sizes, 2, seed=1)
    slow = slow_of(learner)
    slow.bonus *= 1.01
    assert follow(learner, slow, costs(100, seed=2), seed=3) > 1e-6


def test_learns_in_an_mdp_of_many_states():
    mdp = worlds.dirichlet([1, 10, 10], 3, np.random.default_rng(12), concentration=0.1)
    T, sizes = 20_000, mdp.layers.sizes
    ours, uniform = (
        simulate_mdp(learner, mdp, Stochastic(), T, 1, seed=13, checkpoints=[T]).pseudo_regret
        for learner in (CostPolicyOptimization(sizes, 3), UniformPolicy(sizes, 3))
    )
    assert ours.mean() < 0.8 * uniform.mean()


@pytest.mark.parametrize("name", ["rate", "implicit", "bonus", "delta"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_constants_must_be_positive(name, value):
    with pytest.raises(ValueError, match=name):
        CostPolicyOptimization([2], 2, **{name: value})


@pytest.mark.parametrize("constant", [1e-9, 1e6])
@pytest.mark.parametrize("name", ["rate", "implicit", "bonus"])
def test_extreme_constants_give_policies(name, constant):
    learner = CostPolicyOptimization(LAYERS.sizes, 2, seed=1, **{name: constant})
    policies, _ = play(learner, MDP, 1e300 * costs(60, seed=2), seed=3)
    assert np.all(np.isfinite(policies))


def test_layers_of_very_different_scales():
    """The first layer has losses 1e300 times those of the last one, which has its own unit."""
    losses = costs(60, seed=2)
    losses[:, : LAYERS.index(2, 0)] *= 1e300
    losses[:, LAYERS.index(2, 0) :] *= 1e-20
    losses[:, LAYERS.index(3, 0) :] *= 1e-290
    learner = CostPolicyOptimization(LAYERS.sizes, 2, seed=1)
    policies, _ = play(learner, MDP, losses, seed=3)
    assert np.all(np.isfinite(policies))
    assert np.all(np.ptp(LAYERS.unpack_pairs(learner.policy().pi)[2], axis=1) > 1e-3)


# ---------------------------------------------------------------------- the proof of Theorem O8


def kl(a, b):
    with np.errstate(divide="ignore", invalid="ignore"):
        one = np.where(a > 0, a * np.log(a / b), 0.0)
        return one + np.where(a < 1, (1 - a) * np.log((1 - a) / (1 - b)), 0.0)


def test_step_0_one_level_serves_all_numbers_of_visits():
    """N kl(P_bar, P) <= ln((N + 1)/eps) for all N; with a tenth of the level, it does not hold."""
    rng, eps, runs, T = np.random.default_rng(1), 0.1, 2000, 400
    N = np.arange(1, T + 1)
    for P in (0.5, 0.05, 0.9):
        divergence = N * kl(np.cumsum(rng.random((runs, T)) < P, axis=1) / N, P)
        level = np.log((N + 1) / eps)
        assert np.mean(np.any(divergence > level, axis=1)) <= eps
        assert np.mean(np.any(divergence > 0.1 * level, axis=1)) > 2 * eps


def test_step_0_the_closed_form_is_below_the_end_that_kl_has():
    closest = math.inf
    for N in (1.0, 7.0, 300.0, 1e6):
        for M in np.unique(np.ceil(np.linspace(1.0, N, 40))):
            for level in (0.5, 8.0, 20.0):
                low = lower_end(M, N, level)
                if low > 0.0:
                    ratio = N * kl(np.float64(M / N), np.float64(low)) / level
                    assert ratio >= 1.0 - 1e-6
                    closest = min(closest, ratio)
    assert closest < 1.05  # 0.9 of the width would not do


@pytest.mark.parametrize(("factor", "holds"), [(1.0, True), (0.01, False)])
def test_step_0_occupancies_are_between_the_bounds(factor, holds):
    """Those of the true transitions; bounds of a hundredth of the level exclude them."""
    learner = CostPolicyOptimization(LAYERS.sizes, 2, seed=1)
    bounds, fine = slow_of(learner), []
    bounds.level *= factor

    def before(learner, plan, states, actions, told):
        bounds.pi = plan.policy
        low, slack = bounds.occupancies()
        for h, q in enumerate(LAYERS.unpack_pairs(occupancy(MDP, learner.policy()))):
            over = q.sum(axis=1) - low[h]
            fine.append(np.all((over >= -1e-12) & (over <= slack[h] + 1e-12)))
        bounds.count(states, actions)

    play(learner, MDP, costs(400, seed=5), seed=6, before=before)
    assert np.all(fine) == holds


def values(losses, policy):
    """Q(s, a) and the occupancies of states, of every layer, under the transitions of ``MDP``."""
    H, Q, q = len(losses), list(losses), [MDP.initial]
    for h in reversed(range(H - 1)):
        Q[h] = losses[h] + MDP.transitions[h] @ np.sum(policy[h + 1] * Q[h + 1], axis=1)
    for h in range(H - 1):
        q.append(np.einsum("s,sa,saj->j", q[h], policy[h], MDP.transitions[h]))
    return Q, q


@pytest.mark.parametrize("ours", [True, False])
def test_step_2_one_state_at_a_time(ours):
    """<l, q - q*> = sum q*(s) <pi - pi*, Q>(s) with Q of pi; not with that of pi*."""
    rng, gaps = np.random.default_rng(4), []
    for _ in range(50):
        losses = [rng.random((n, 2)) for n in LAYERS.sizes]
        pi, best = ([rng.dirichlet(np.ones(2), n) for n in LAYERS.sizes] for _ in range(2))
        (Q, q), (Q_best, q_best) = values(losses, pi), values(losses, best)
        regret = sum(
            np.sum(x * (a[:, None] * p - b[:, None] * p_best))
            for x, a, b, p, p_best in zip(losses, q, q_best, pi, best, strict=True)
        )
        each = zip(q_best, pi, best, Q if ours else Q_best, strict=True)
        gaps.append(abs(regret - sum(np.sum(b[:, None] * (p - x) * y) for b, p, x, y in each)))
    assert (max(gaps) < 1e-12) == ours


def one_state(rng, A):
    """Draw a state: u, q in [u - slack, u], pi, gamma, R and Q in [0, R]."""
    u = rng.random()
    slack = u * rng.random() ** 2
    R = 10.0 ** rng.uniform(-2, 2)
    pi, gamma = rng.dirichlet(np.full(A, 0.5)), 10.0 ** rng.uniform(-4, 0)
    return u, slack, u - slack * rng.choice([1.0, rng.random()]), pi, gamma, R, R * rng.random(A)


@pytest.mark.parametrize("with_slack", [1.0, 0.0])
def test_step_3_bias(with_slack):
    """<pi, Q - E Q_hat> <= R sum pi (slack pi + gamma)/(u + gamma); not without the slack."""
    rng, fine = np.random.default_rng(5), []
    for _ in range(2000):
        u, slack, q, pi, gamma, R, Q = one_state(rng, 3)
        bias = np.sum(pi * (Q - Q * q * pi / (u * pi + gamma)))
        bound = R * np.sum(pi * (with_slack * slack * pi + gamma) / (u * pi + gamma))
        fine.append(bias <= bound * (1 + 1e-12))
    assert np.all(fine) == bool(with_slack)


@pytest.mark.parametrize(("share", "implicit", "holds"), [(1.0, 2.0, True), (0.5, 6.0, False)])
def test_step_3_deviations(share, implicit, holds):
    """Exact moments of both martingales, with losses of 0 or R; not with other constants."""
    rng, below, above = np.random.default_rng(6), [], []
    for _ in range(4000):
        u, _, q, pi, gamma, R, Q = one_state(rng, 3)
        visited, most = q * pi * Q / R, R / (u * pi + gamma)  # chance of the loss R, estimate then
        alpha = 10.0 ** rng.uniform(-3, 1) / R
        mean = np.sum(visited * pi * most)
        moment = np.log1p(np.sum(visited * np.expm1(-alpha * pi * most)))
        square = share * R**2 * np.sum(pi**2 * q * pi / (u * pi + gamma) ** 2)
        below.append(moment <= -alpha * mean + 0.5 * alpha**2 * square + 1e-12)
        assert square <= R**2 * np.sum(pi / (u * pi + gamma)) * (1 + 1e-12)
        weights = implicit * gamma * rng.random(3) ** 0.2 / R  # alpha/R_bar, of each pair
        moment = np.log1p(np.sum(visited * np.expm1(weights * most)))
        above.append(moment <= np.sum(weights * Q) + 1e-12)
    assert np.all(below) == holds
    assert np.all(above) == holds


def stability(eta, pi, Q, D):
    x = -eta * (Q - D)
    return np.sum(pi * (np.exp(x) - 1 - x)) / eta


def test_step_4_stability():
    """(1/eta) sum pi f(-eta(Q - D)) <= (eta/2) sum pi Q^2 + sum pi D/H while eta D <= 1.25/H."""
    rng = np.random.default_rng(2)
    for most, holds in ((1.25, True), (2.5, False)):
        fine = []
        for _ in range(4000):
            H, A = rng.integers(1, 8), rng.integers(1, 5)
            eta, pi = 10.0 ** rng.uniform(-3, 1), rng.dirichlet(np.full(A, 0.5))
            D = most / H / eta * rng.random(A) ** 0.2
            Q = 10.0 ** rng.uniform(-3, 3) * (np.arange(A) == 0)
            bound = eta / 2 * np.sum(pi * Q**2) + np.sum(pi * D) / H
            fine.append(stability(eta, pi, Q, D) <= bound * (1 + 1e-9))
        assert np.all(fine) == holds


def test_step_4_on_plays():
    """Where an arm's loss comes late, exponential weights pay half of this bound, not a tenth."""
    layers = worlds.dirichlet([1], 2, np.random.default_rng(0)).layers
    learner = CostPolicyOptimization([1], 2, seed=1)
    slow = SlowCostPolicyOptimization([1], 2, 0.05, [0.0], 1, 2.0, 0.3, 4.0)
    T, total, played, used = 3000, np.zeros(2), 0.0, 0.0
    for t in range(T):
        plan = learner.ask()
        action = plan.act(0, 0)
        pi, gamma, C = slow.pi[0][0].copy(), slow.gamma(0), slow.threshold(0)
        loss = float(action == (t < T // 2))
        Q = np.zeros(2)
        Q[action] = min(loss, C) / (pi[action] + gamma)
        total += Q
        played += pi @ Q
        used += slow.rate * np.sum(pi * gamma / (pi + gamma) * Q)
        slow.learn([0], [action], [loss])
        learner.tell(plan, [0], [action], [loss])
    bound = math.log(2) / slow.rates()[0] + used
    assert layers.horizon == 1
    assert 0.1 * bound < played - total.min() <= bound


def test_step_4_on_plays_with_bonuses():
    """The same of every state of an MDP, where eta has its second limit as well."""
    learner = CostPolicyOptimization(LAYERS.sizes, 2, seed=1)
    slow = slow_of(learner)
    total, used = ([np.zeros((n, 2)) for n in LAYERS.sizes] for _ in range(2))
    played, capped = [np.zeros(n) for n in LAYERS.sizes], 0

    def before(learner, plan, states, actions, told):
        nonlocal capped
        R, (q, slack) = slow.ranges(), slow.occupancies()
        D, eta = slow.bonuses(R)[0], slow.rates()
        clipped = [min(x, slow.threshold(h)) for h, x in enumerate(told)]
        for h, pi in enumerate(slow.pi):
            gamma, Q = slow.gamma(h), np.zeros_like(pi)
            share = 1.0 / ((q[h] + slack[h])[:, None] * pi + gamma)
            visited = states[h], actions[h]
            Q[visited] = sum(clipped[h:]) * share[visited]
            total[h] += Q - D[h]
            played[h] += np.sum(pi * (Q - D[h]), axis=1)
            used[h] += pi * (slow.rate * gamma * share * Q + D[h] / slow.H)
            capped += 0.0 < eta[h] < 1.9 * slow.rate * gamma / max(R[h], 1e-300)
        slow.learn(states.tolist(), actions.tolist(), told.tolist())

    play(learner, MDP, costs(400, seed=5), seed=6, before=before)
    assert capped > 100
    ratios = [
        np.max((played[h] - total[h].min(axis=1)) / (math.log(2) / eta + used[h].sum(axis=1)))
        for h, eta in enumerate(slow.rates())
    ]
    assert 0.1 < max(ratios) <= 1.0


def dilated(slow, top, H):
    """Both sides of step (5), against the best-of-many comparators, with ``top`` for max B."""
    rng, sizes, A = np.random.default_rng(3), slow.sizes, slow.A
    R = [float(H - h) for h in range(H)]
    q, slack = slow.occupancies()
    b, B, D = [None] * H, [None] * H, [None] * H
    for h in reversed(range(H)):
        pi, gamma = slow.pi[h], slow.gamma(h)
        D[h] = np.zeros_like(pi)
        if h + 1 < H:
            low = slow.low(slow.moves[h])
            D[h] = (1 + 1 / H) * (low @ B[h + 1] + (1 - low.sum(axis=-1)) * top(B[h + 1]))
        u = (q[h] + slack[h])[:, None]
        b[h] = R[h] * np.sum(pi * (slow.bonus * gamma + slack[h] * pi) / (u * pi + gamma), axis=1)
        B[h] = b[h] + np.sum(pi * D[h], axis=1)
    worst = -math.inf
    bound = math.e * sum(
        R[h] * (slow.bonus * slow.gamma(h) * sizes[h] * A + slack[h] * sizes[h]) for h in range(H)
    )
    through = (1 + 1 / H) * (MDP.initial @ B[0])
    for _ in range(200):
        mass, left = MDP.initial, 0.0
        for h in range(H):
            best = rng.integers(A, size=sizes[h])
            chosen = D[h][np.arange(sizes[h]), best]
            mean = np.sum(slow.pi[h] * D[h], axis=1)
            left += mass @ (b[h] + mean - chosen + B[h] / H)
            if h + 1 < H:
                P = MDP.transitions[h][np.arange(sizes[h]), best]
                mass = mass @ P
        worst = max(worst, left)
    return worst, through, bound


def test_step_5_dilated_bonuses():
    """The bonus pays for itself; one that takes the least B where nothing is known does not."""
    learner = CostPolicyOptimization(LAYERS.sizes, 2, seed=1)
    slow = slow_of(learner)
    follow(learner, slow, costs(300, seed=7), seed=8)
    left, through, bound = dilated(slow, np.max, 3)
    assert left <= through * (1 + 1e-12) <= bound
    left, through, _ = dilated(slow, np.min, 3)
    assert left > through


def test_step_6_the_slack_adds_up_to_what_lemma_13_says():
    learner = CostPolicyOptimization(LAYERS.sizes, 2, seed=1)
    T, total = 3000, np.zeros(3)

    def before(learner, plan, states, actions, told):
        nonlocal total
        total = total + state_of(learner).slack[1:]  # of the last episode

    play(learner, MDP, costs(T, seed=9), seed=10, before=before)
    beta = params_of(learner).log_term + math.log(T + 1)
    sizes, bound = [0.5, *LAYERS.sizes], 0.0
    for h in range(3):
        pairs = 2 * sizes[h]
        bound += 1.59 * (
            pairs + math.sqrt(8 * pairs * sizes[h + 1] * T * beta) + math.log(6 * 3 / 0.05)
        )
        assert 0.1 * bound < total[h] <= bound


@pytest.mark.parametrize(("r", "g", "kappa", "c"), [(2.0, 0.3, 4.0, 14.1), (0.5, 0.5, 2.0, 11.0)])
def test_step_7_the_terms_add_up_to_the_constants(r, g, kappa, c):
    """What each step leaves, with its own logarithms, against the theorem."""
    zeta = kappa - 1.0 - r
    for sizes, A in (([3, 3, 3], 2), ([1], 5), ([2, 9, 1, 4], 3), ([1, 200], 10)):
        H, S, delta = len(sizes), sum(sizes), 0.05
        iota = math.log(6 * S * A * H / delta)
        for T in (1, 100, 10**6):
            root = np.sum(1.0 / np.sqrt(np.arange(1, T + 1)))
            M = np.random.default_rng(7).random(H)
            R_bar = np.cumsum(M[::-1])[::-1]
            E, left, right = 0.0, 0.0, 0.0
            for h in reversed(range(H)):
                gamma = g * math.sqrt(iota / (sizes[h] * A * T))
                state, pair = math.log(6 * S / delta), math.log(6 * S * A / delta)
                rate = R_bar[h] / (2 * r * gamma) + (H + 1) * kappa * E / 1.25
                ends = (state / zeta + pair + r * state) / (2 * gamma)
                paid = math.e * kappa * sizes[h] * A * gamma * math.sqrt(T) * root
                left += math.log(A) * rate + R_bar[h] * (ends + paid)
                right += R_bar[h] * c * math.sqrt(sizes[h] * A * T * iota)
                E = R_bar[h] + (1 + 1 / H) * E
            right += 2.2 * kappa * (H**2 - 1) * math.log(A) * R_bar.sum()
            assert left <= right
    full = (1 / r + 1 + 1 / zeta + r) / (2 * g) + 2 * math.e * kappa * g  # all logarithms iota
    assert 0.9 * c < full <= c


def test_a_save_whose_unit_fits_no_threshold_is_rejected():
    learner = CostPolicyOptimization(LAYERS.sizes, 2, seed=1)
    play(learner, MDP, costs(20, seed=2), seed=3)
    restored = CostPolicyOptimization.load(learner.save())
    assert np.array_equal(restored.policy().pi, learner.policy().pi)
    state_of(learner).R[0] = 0.75 if state_of(learner).R[0] != 0.75 else 0.625
    with pytest.raises(ValueError, match="no such unit"):
        CostPolicyOptimization.load(learner.save())
    assert state_of(learner).q_low.size == LAYERS.table[STATE, -1]
