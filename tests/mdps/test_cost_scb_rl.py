"""CostSCBRL: against a slow implementation, and what docs/one-sided-mdp.md proves of it."""

import itertools

import numpy as np
import pytest

from mdp_play import params_of, play, state_of
from slow_cost_scb_rl import SlowCostSCBRL
from unbounded import SCBRL, CostSCBRL, worlds
from unbounded.core.clipping import LAZY, SCALE, clip_each, empty_windows
from unbounded.core.occupancy.policies import Markov, occupancy
from unbounded.core.occupancy.upper import upper_occupancy
from unbounded.mdps.cost_scb_rl import rounded_up

MDP = worlds.dirichlet([2, 3, 2], 2, np.random.default_rng(0))
LAYERS = MDP.layers


def make(seed=1, mdp=MDP, **settings):
    return CostSCBRL(mdp.layers.sizes, mdp.layers.n_actions, seed=seed, **settings)


def costs(layers, T, seed):
    """Heavy-tailed costs of every pair in every episode, zeros among them."""
    rng = np.random.default_rng(seed)
    means = rng.random(layers.n_pairs)
    return means * rng.pareto(1.5, size=(T, layers.n_pairs)) * (rng.random((T, 1)) < 0.9)


# ---------------------------------------------------------------------- the algorithm


@pytest.mark.parametrize(
    ("settings", "factors"),
    [
        ({}, (0.85, 0.3, 0.4)),
        ({"profile": "theory"}, (1, 1, 1)),
        ({"width": 0.05, "skip": 0.0, "outliers": 3}, (0.85, 0.3, 0.05)),
        ({"episodes": 150, "rate": 2.0, "implicit": 0.3, "width": 0.1}, (2, 0.3, 0.1)),
        ({"lower": [-3.0, 0.25]}, (0.85, 0.3, 0.4)),
    ],
    ids=["practical", "theory", "outliers", "told T", "lower"],
)
def test_agrees_with_a_slow_implementation(settings, factors):
    T = 150
    mdp = worlds.dirichlet([2, 2], 2, np.random.default_rng(4))
    learner = make(5, mdp, tolerance=1e-13, **settings)
    slow = SlowCostSCBRL(
        mdp.layers, 0.05, factors, settings.get("outliers", 0) + 1,
        settings.get("lower", [0.0, 0.0]), learner.settings["skip"], settings.get("episodes"),
    )  # fmt: skip
    losses = costs(mdp.layers, T, seed=6)
    losses[:3] = 0.0
    losses[90:] *= 5.0
    worst, compared, due, solves = 0.0, 0, False, 0

    def before(learner, plan, states, actions, seen):
        nonlocal worst, compared, due, solves
        t = learner.episodes_told
        assert learner.certificate.solves == solves
        if due and (t % 3 == 0 or t < 12):
            worst = max(worst, np.max(np.abs(slow.solve() - learner.occupancy()[1:])))
            compared += 1
        assert learner.thresholds.tolist() == [slow.threshold(h) for h in range(2)]
        due = slow.learn(learner.policy().tables, states, actions, seen)
        solves += due

    play(learner, mdp, losses, seed=7, before=before)
    state = state_of(learner)
    for h, L in enumerate(mdp.layers.unpack_pairs(state.L_hat)):
        assert np.allclose(np.ldexp(L, state.unit), slow.L[h], rtol=1e-9)
    assert np.allclose(np.ldexp(state.w, state.unit), slow.w, rtol=1e-12)
    assert compared > 8
    assert worst <= 1e-5  # of cvxpy, at its best
    assert (solves < 120) == (learner.settings["skip"] > 0.0)
    assert np.any(state.hi < 1.0) or factors[2] == 1


def test_t_is_rounded_up_to_three_binary_digits():
    grid = sorted({1, 2, 3} | {k << j for k in (4, 5, 6, 7) for j in range(16)})
    for t in range(1, 100_000, 7):
        assert rounded_up(t) == grid[np.searchsorted(grid, t)] <= 1.25 * t


# ---------------------------------------------------------------------- what is proved


def scale_clipping(losses):
    """The overshoot of clipping at twice the largest loss, as the paper does, by layers."""
    windows, overshoot = empty_windows(losses.shape[1]), np.zeros(losses.shape[1])
    for row in losses:
        C = 0.5 * np.ldexp(windows.W, windows.e.astype(int))
        overshoot += np.maximum(row - C, 0.0)
        clip_each(windows, SCALE, LAZY, row)
    return overshoot


@pytest.mark.parametrize("outliers", [0, 4])
def test_overshoot_is_the_sum_of_the_largest_losses_of_each_layer(outliers):
    learner, overshoot = make(outliers=outliers), np.zeros(3)

    def before(learner, plan, states, actions, seen):
        overshoot[:] += np.maximum(seen - learner.thresholds, 0.0)

    _, told = play(learner, MDP, costs(LAYERS, 300, seed=2), seed=3, before=before)
    losses = np.array([episode[3] for episode in told])
    largest = np.sort(losses, axis=0)[::-1][: outliers + 1].sum(axis=0)
    assert overshoot == pytest.approx(largest, rel=1e-12)
    assert np.all(np.abs(scale_clipping(losses) / largest - 1.0) > 0.05)  # the control


def components(learner):
    """Whether some episode was played by another policy than the learner's own."""
    _, told = play(learner, MDP, costs(LAYERS, 200, seed=4), seed=5)
    return any(component is not None for component, *_ in told) or learner.episodes_explored > 0


def test_no_explorer_is_ever_played():
    assert not components(make())
    assert make().explorers() == {}
    assert components(SCBRL(LAYERS.sizes, 2, 200, seed=1))  # the control


@pytest.mark.parametrize("name", ["mixing", "exploration", "explorer", "early_stop", "bonus"])
def test_there_are_no_settings_of_exploration(name):
    with pytest.raises(TypeError, match=name):
        make(**{name: 1.0})


class Watched:
    """What the proof speaks of, along a play: q~, u, the boxes, the estimates and the weights."""

    def __init__(self, mdp=MDP, episodes=400, **settings):
        self.mdp, self.inside, self.u_over_q, self.u_over_occupancy = mdp, True, [], []
        self.q, self.l_hat, self.losses = [], [], []
        learner = make(2, mdp, **settings)
        last = np.zeros(mdp.layers.n_pairs)

        def before(learner, plan, states, actions, seen):
            nonlocal last
            state = state_of(learner)
            L_hat = np.ldexp(state.L_hat, state.unit)
            self.l_hat.append(L_hat - last)
            last = L_hat
            u = upper_occupancy(learner.policy(), state.lo, state.hi)
            self.u_over_q.append(np.min(u - state.q))
            self.u_over_occupancy.append(np.min(u - occupancy(mdp, learner.policy())))
            self.inside &= bool(np.all((state.lo <= mdp.P + 1e-12) & (state.hi + 1e-12 >= mdp.P)))
            self.q.append(state.q.copy())

        play(learner, mdp, costs(mdp.layers, episodes, seed=8), seed=9, before=before)
        state = state_of(learner)
        self.l_hat.append(np.ldexp(state.L_hat, state.unit) - last)
        self.l_hat = np.array(self.l_hat[1:])
        self.q = np.array(self.q)
        self.w = np.ldexp(state.w, state.unit)
        self.params = params_of(learner)


@pytest.fixture(scope="module")
def theory():
    return Watched(profile="theory", width=0.15)  # narrow enough to say something


def test_upper_bounds_are_above_both_occupancies(theory):
    assert theory.inside
    assert min(theory.u_over_q) >= -1e-7
    assert min(theory.u_over_occupancy) >= -1e-12
    outside = Watched(profile="theory", width=1e-3, episodes=100)  # the control
    assert not outside.inside
    assert min(outside.u_over_occupancy) < -0.01


def ftrl_bound(watched, share=1.0):
    """Step (3) of the proof: the penalty, and half of the rates times the estimates."""
    sizes = np.array(watched.mdp.layers.sizes) * watched.mdp.layers.n_actions
    penalty = share * np.sum(watched.w * np.log(sizes))
    clock = np.array([rounded_up(t) for t in range(1, len(watched.q) + 1)])
    rates = np.repeat(watched.params.eta, sizes) / np.sqrt(clock)[:, None]
    return penalty + 0.5 * np.sum(rates * watched.l_hat[:, 1:])


def deterministic(layers):
    """The occupancy measures of all deterministic policies are the vertices of all."""
    states = sum(layers.sizes)
    for choice in itertools.product(range(layers.n_actions), repeat=states):
        yield Markov(
            layers, np.concatenate([[1.0], np.eye(layers.n_actions)[list(choice)].ravel()])
        )


def test_regret_of_ftrl_on_the_estimates(theory):
    """Against every policy, on every path; the control has a fifth of the penalty."""
    played = np.sum(theory.q * theory.l_hat)
    total = theory.l_hat.sum(axis=0)
    best = min(occupancy(MDP, policy) @ total for policy in deterministic(LAYERS))
    assert 0.0 < played - best <= ftrl_bound(theory)
    assert played - best > ftrl_bound(theory, share=0.2)


def test_anytime_boxes_hold_the_transitions_in_every_epoch():
    """ln(10 t S A/delta) instead of ln(10 T S A/delta); a hundredth of the width fails."""
    inside = [Watched(profile="theory", episodes=60).inside]
    narrow = [Watched(width=0.01, episodes=60).inside]
    assert all(inside)
    assert not any(narrow)


@pytest.mark.parametrize("alpha", [2.0, 6.0])
def test_one_step_of_implicit_exploration_with_upper_bounds(alpha):
    """E exp(sum alpha l_hat) <= exp(sum alpha l q/u) if q <= u; 6 gamma fails."""
    rng, worst = np.random.default_rng(3), -np.inf
    for _ in range(2000):
        q = rng.dirichlet(np.full(4, 0.3))
        u = np.minimum(1.0, q * np.exp(rng.exponential(0.2, 4)) + 1e-12)
        gamma, l = 10.0 ** rng.uniform(-3, 0.3), rng.random(4) ** rng.integers(0, 3)
        step = alpha * gamma
        mean = np.sum(q * np.exp(step * l / (u + gamma)))
        worst = max(worst, mean / np.exp(np.sum(step * l * q / u)))
    assert (worst <= 1.0 + 1e-12) == (alpha <= 2.0)
