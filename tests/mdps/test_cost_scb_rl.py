"""CostSCBRL: against a slow implementation, and what docs/theory/one-sided-mdp.md proves of it."""

import itertools
import math
import warnings

import numpy as np
import pytest

from mdp_play import paid, params_of, play, state_of, tell_firsts, walk
from occupancy_facades import upper_occupancy
from occupancy_worlds import reached, sparse_world
from slow_cost_scb_rl import SlowCostSCBRL, SlowDiscountedCostSCBRL
from unbounded import SCBRL, CostSCBRL, SolverWarning, UniformPolicy, simulate_mdp, worlds
from unbounded.adversaries.mdps import Punish, Stochastic
from unbounded.core.clipping import LAZY, SCALE, clip_each, empty_windows
from unbounded.core.occupancy.confidence import largest_mean
from unbounded.core.occupancy.layout import PAIR, TRIPLE
from unbounded.core.occupancy.mdp import LayeredMDP, best_policy, occupancy
from unbounded.learners import persistence as documents
from unbounded.mdps import cost_scb_rl
from unbounded.mdps.steps import costs as costs_of_mdps
from unbounded.mdps.steps.costs import rounded_up

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
        ({}, (1, 0.1, 1, 1)),
        ({"profile": "paper"}, (1, 1, 1, 0)),
        ({"width": 0.05, "skip": 0.0, "outliers": 3}, (1, 0.1, 0.05, 1)),
        ({"episodes": 150, "rate": 2.0, "implicit": 0.3, "width": 0.1}, (2, 0.3, 0.1, 1)),
        ({"lower": [-3.0, 0.25]}, (1, 0.1, 1, 1)),
        ({"center": 0.0}, (1, 0.1, 1, 0)),
        ({"center": 0.5, "implicit": 2.0}, (1, 2.0, 1, 0.5)),
        ({"half_life": 20}, (1, 0.1, 1, 1)),
        ({"half_life": 7, "profile": "paper", "outliers": 1}, (1, 1, 1, 0)),
        ({"half_life": 30, "lower": [-3.0, 0.25], "episodes": 150}, (1, 0.1, 1, 1)),
    ],
    ids=[
        "proved", "paper", "outliers", "told T", "lower", "not centered", "half centered",
        "half-life", "half-life, paper", "half-life, lower, T",
    ],
)  # fmt: skip
def test_agrees_with_a_slow_implementation(settings, factors):
    T = 150
    mdp = worlds.dirichlet([2, 2], 2, np.random.default_rng(4))
    learner = make(5, mdp, tolerance=1e-13, **settings)
    h = settings.get("half_life")
    kind, more = (SlowDiscountedCostSCBRL, {"half_life": h}) if h else (SlowCostSCBRL, {})
    slow = kind(
        mdp.layers, 0.05, factors, settings.get("outliers", 0) + 1,
        settings.get("lower", [0.0, 0.0]), learner.settings["skip"], settings.get("episodes"),
        **more,
    )  # fmt: skip
    losses = costs(mdp.layers, T, seed=6)
    losses[:3] = 0.0
    losses[90:] *= 1e-3 if h else 5.0
    worst, compared, due, solves, halves = 0.0, 0, False, 0, []

    def before(learner, plan, states, actions, seen):
        nonlocal worst, compared, due, solves
        t = learner.episodes_told
        assert learner.certificate.solves == solves
        if due and (t % 3 == 0 or t < 12):
            worst = max(worst, np.max(np.abs(slow.solve() - learner.occupancy()[1:])))
            compared += 1
        assert learner.thresholds.tolist() == [slow.threshold(h) for h in range(2)]
        halves.extend(
            slow.center_of(h) == slow.center * slow.threshold(h) / 2 > 0 for h in range(2)
        )
        due = slow.learn(learner.policy().tables, states, actions, seen)
        solves += due

    play(learner, mdp, losses, seed=7, before=before)
    state = state_of(learner)
    g = state.fading.memory.g if h else 1.0
    if not h and not due:  # what is owed for the last episodes
        root = np.sqrt(cost_scb_rl.clock(params_of(learner), T))
        costs_of_mdps.settle(mdp.layers.table, params_of(learner), state, root)
    for layer, L in enumerate(mdp.layers.unpack_pairs(state.estimates.L_hat)):
        most = np.abs(slow.L[layer]).max()
        assert np.allclose(
            np.ldexp(L, state.estimates.unit) / g, slow.L[layer], rtol=1e-9, atol=1e-11 * most
        )
    w = np.ldexp(state.estimates.w, state.estimates.unit) / g
    assert np.allclose(w, slow.w, rtol=1e-12)
    assert compared > 8
    assert worst <= 1e-5  # of cvxpy, at its best
    assert (solves < 120 + (h is not None) * 20) == (learner.settings["skip"] > 0.0)
    assert np.any(state.boxes.hi < 1.0) or factors[2] == 1
    if h and "lower" not in settings:
        assert slow.times[-1] > T + h  # a fall was followed
    if "lower" in settings:  # far below: half the threshold is less than the mean, at first
        assert 0 < sum(halves) < len(halves)


def test_t_is_rounded_up_to_three_binary_digits():
    grid = sorted({1, 2, 3} | {k << j for k in (4, 5, 6, 7) for j in range(16)})
    for t in range(1, 100_000, 7):
        assert rounded_up(t) == grid[np.searchsorted(grid, t)] <= 1.25 * t


def test_the_center_follows_what_most_costs_are():
    """And not the largest one: a single huge cost moves the threshold, and the mean no more than
    its share."""
    losses = np.random.default_rng(3).random((400, LAYERS.n_pairs))
    losses[200] = 1e6
    learner = make()
    play(learner, MDP, losses, seed=4)
    state = state_of(learner)
    means = np.ldexp(state.paid, state.estimates.unit) / learner.episodes_told
    assert np.all((means > 0.3) & (means < 0.7))
    assert learner.thresholds.tolist() == [1e6] * 3  # half of which would be another center


def test_a_saved_learner_has_its_center():
    """Without it, it would play otherwise than it did."""
    for center in (0.0, 0.5):
        learner = make(center=center)
        play(learner, MDP, costs(LAYERS, 20, seed=3), seed=4)
        assert CostSCBRL.load(learner.save()).settings["center"] == center
        with pytest.raises(ValueError, match="its state does not fit its settings"):
            CostSCBRL.load(without(learner.save(), "center"))


def without(text, setting):
    """The same file with one setting less."""
    fields = documents.read(text, "CostSCBRL")
    kept = {k: v for k, v in documents.lengthened(fields["settings"]).items() if k != setting}
    return documents.written("CostSCBRL", fields | {"settings": kept})


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
    """What the proof speaks of, along a play against who charges the likeliest actions: q~, u, the
    boxes, the estimates and the weights."""

    def __init__(self, episodes=300, **settings):
        self.inside, self.u_over_q, self.u_over_occupancy = True, [], []
        self.q, self.w, self.l_hat = [], [], []
        learner, rng, before = make(2, **settings), np.random.default_rng(1), 0.0
        h = settings.get("half_life", episodes + 1)
        for _ in range(episodes):
            state, policy = state_of(learner), learner.policy()
            u = upper_occupancy(policy, state.boxes.lo, state.boxes.hi)
            self.u_over_q.append(np.min(u - state.solver.q))
            self.u_over_occupancy.append(np.min(u - occupancy(MDP, policy)))
            self.inside &= bool(
                np.all((state.boxes.lo <= MDP.P + 1e-12) & (state.boxes.hi + 1e-12 >= MDP.P))
            )
            self.q.append(state.solver.q[1:].copy())
            halved = learner.episodes_told // h
            self.w.append(np.ldexp(state.estimates.w, state.estimates.unit + halved))
            losses = [table == table.max(axis=1, keepdims=True) for table in policy.tables]
            plan = learner.ask()
            states, actions = walk(MDP, plan, rng.random(3))
            row = LAYERS.pack_pairs(losses)
            learner.tell(plan, states, actions, paid(LAYERS, row, states, actions))
            state = state_of(learner)
            halved = learner.episodes_told // h
            after = np.ldexp(state.estimates.L_hat[1:], state.estimates.unit + halved)
            self.l_hat.append(after - before)
            before = after

    def regret(self):
        """Of FTRL on the estimates, against the best of all policies."""
        total = np.concatenate([[0.0], np.sum(self.l_hat, axis=0)])
        best, _ = best_policy(MDP, total)
        return np.sum(np.multiply(self.q, self.l_hat)) - best

    def bound(self, stability=1.0):
        """Step (5) of the proof: the penalty, and the stability of every episode."""
        pairs = np.array(LAYERS.sizes) * LAYERS.n_actions
        q, w, l_hat = np.array(self.q), np.repeat(self.w, pairs, axis=1), np.array(self.l_hat)
        steps = q * l_hat**2 / np.where(l_hat > 0.0, 2.0 * w, 1.0)
        return np.sum(self.w[-1] * np.log(pairs)) + stability * steps.sum()


def test_upper_bounds_are_above_both_occupancies():
    watched = Watched(profile="paper", width=0.5)  # narrow enough to say something
    assert watched.inside
    assert min(watched.u_over_q) >= -1e-7
    assert min(watched.u_over_occupancy) >= -1e-12
    outside = Watched(profile="paper", width=1e-3, episodes=100)  # the control
    assert not outside.inside
    assert min(outside.u_over_occupancy) < -0.01


@pytest.mark.parametrize("half_life", [None, 60])
@pytest.mark.parametrize("rate", [0.2, 1.0, 5.0])
def test_regret_of_ftrl_on_the_estimates(rate, half_life):
    """Nested sets and weights that do not fall, against every policy; and a control.

    With a half-life, of weighted losses.
    """
    forgetting = {} if half_life is None else {"half_life": half_life}
    watched = Watched(profile="paper", width=0.5, rate=rate, **forgetting)
    assert np.all(np.diff(watched.w, axis=0) >= -1e-9 * np.array(watched.w[1:]))
    assert watched.inside
    assert watched.regret() <= watched.bound()
    if rate == 5.0:
        assert watched.regret() > watched.bound(stability=0.2)


def missed(width, episodes=200, runs=6):
    """In how many of some plays the transitions were outside of some box; boxes are nested."""
    out = 0
    for seed in range(runs):
        learner = make(seed, width=width)
        play(learner, MDP, costs(LAYERS, episodes, seed), seed=seed)
        state = state_of(learner)
        out += not np.all((state.boxes.lo <= MDP.P + 1e-12) & (state.boxes.hi + 1e-12 >= MDP.P))
    return out


def test_the_boxes_hold_the_transitions_whatever_the_number_of_episodes():
    assert missed(1.0) == 0
    assert missed(0.01) == 6  # the control


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


def test_the_proof_adds_up_to_its_constants():
    """Penalty, bias, stability and union over pairs, in units of M_h sqrt(|S_h| A T iota)."""
    for T in (10, 1000, 10**6):
        clock = np.array([rounded_up(t) for t in range(1, T + 1)])
        for gammas, most in ((0.5 / np.sqrt(np.full(T, T)), 3.0), (0.5 / np.sqrt(clock), 4.24)):
            constant = (1.0 / gammas[-1] + 2.0 * gammas.sum()) / np.sqrt(T)
            assert 0.8 * most < constant <= most + 1e-9


# ---------------------------------------------------------------------- what people have


def exact(T, seed):
    """Multiples of 2^-20, so that adding 1024 is exact."""
    return np.random.default_rng(seed).integers(0, 2**20, (T, LAYERS.n_pairs)) / 2.0**20


def test_a_floor_that_is_told_changes_nothing_and_one_that_is_not_everything():
    plain, _ = play(make(), MDP, exact(150, 1), seed=2)
    told, _ = play(make(lower=1024.0), MDP, exact(150, 1) + 1024.0, seed=2)
    assert np.array_equal(plain, told)
    blind, _ = play(make(), MDP, exact(150, 1) + 1024.0, seed=2)
    assert np.abs(plain - blind).max() > 0.05


@pytest.mark.parametrize("k", [-1030, -3, 900])
def test_a_power_of_two_of_losses_and_of_the_lower_bound_changes_nothing(k):
    lower, losses = np.array([-3.0, 0.0, 0.25]), exact(80, 4) * 4.0 + 0.25
    plain, _ = play(make(lower=lower, outliers=1), MDP, losses, seed=2)
    scaled = make(lower=np.ldexp(lower, k), outliers=1)
    policies, _ = play(scaled, MDP, np.ldexp(losses, k), seed=2)
    assert np.array_equal(plain, policies)
    assert np.all(scaled.thresholds > 0.0)


def test_the_whole_range_of_floats_above_the_lower_bound():
    largest = np.finfo(float).max
    learner = make(lower=-largest)
    sizes = np.array([-largest, -1.0, 0.0, 5e-324, 1e300, largest])
    losses = np.random.default_rng(6).choice(sizes, (80, LAYERS.n_pairs))
    policies, _ = play(learner, MDP, losses, seed=7)
    assert np.all(np.isfinite(policies))
    assert learner.thresholds.tolist() == [largest] * 3  # what is above is given as that
    assert learner.certificate.unsolved == 0


def test_rewards_of_a_known_largest_one():
    plain, told = make(lower=[-3.0, -2.0, -2.0]), make(best_reward=[3.0, 2.0, 2.0])
    losses = exact(60, 3) * [[-2.0]]
    expected, _ = play(plain, MDP, losses, seed=4)
    rng = np.random.default_rng(4)
    for row, pi in zip(losses, expected, strict=True):
        plan = told.ask()
        assert np.array_equal(LAYERS.pack_pairs(plan.policy, first=1.0), pi)
        states, actions = walk(MDP, plan, rng.random(3))
        told.tell(plan, states, actions, rewards=-paid(LAYERS, row, states, actions))
    assert told.below == 0
    assert np.array_equal(plain.thresholds, told.thresholds)


def test_outliers_do_not_touch_the_weights():
    losses = costs(LAYERS, 200, seed=5).clip(0.0, 1.0)
    spiked = losses.copy()
    spiked[[40, 90]] = 1e6
    top = {}
    for outliers, rows in itertools.product((0, 2), (losses, spiked)):
        learner = make(outliers=outliers)
        play(learner, MDP, rows, seed=6)
        top[outliers, rows is spiked] = learner.thresholds.max()
    assert top[0, False] <= 1.0
    assert top[2, True] <= 1.0
    assert top[0, True] == 1e6  # the control


def test_it_learns_without_any_parameter():
    mdp = worlds.combination_lock(3, 2, np.random.default_rng(5))
    shape = mdp.layers.sizes, mdp.layers.n_actions
    for adversary in (Stochastic(scale=1e-30), Punish(scale=1e12)):
        ours, even = (
            simulate_mdp(learner, mdp, adversary, 2000, 2, seed=6)
            for learner in (CostSCBRL(*shape), UniformPolicy(*shape))
        )
        assert np.all(ours.pseudo_regret[:, -1] < 0.4 * even.pseudo_regret[:, -1])
        assert ours.worst_gap.max() <= 1e-8
        assert not ours.explored.any()


def test_losses_below_the_lower_bound_are_taken_as_that_and_said_once():
    learner, twin = make(lower=1.0), make(lower=1.0)
    tell_firsts(learner, [2.0, 3.0, 4.0])
    tell_firsts(twin, [2.0, 3.0, 4.0])
    with pytest.warns(UserWarning, match="a loss of -5 is below the lower bound, 1, and"):
        tell_firsts(learner, [1.5, -5.0, 0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tell_firsts(learner, [1.5, 0.5, 2.0])
        tell_firsts(twin, [1.5, 1.0, 1.0])
        tell_firsts(twin, [1.5, 1.0, 2.0])
    assert learner.below == 3
    assert twin.below == 0
    assert np.array_equal(learner.policy().pi, twin.policy().pi)


def test_solves_that_fail_are_said():
    learner = make(rate=1e20, width=0.02)
    with pytest.warns(SolverWarning, match="CostSCBRL could not solve"):
        play(learner, MDP, costs(LAYERS, 60, seed=7), seed=8)
    assert learner.certificate.unsolved > 0


def test_states_out_of_reach():
    """With a support, rates are for the states that it leaves; nothing else has any mass."""
    for seed in range(3):
        mdp = sparse_world(np.random.default_rng([31, seed]), max_horizon=4, max_states=4)
        layers, alive = mdp.layers, reached(mdp.layers, mdp.P, mdp.P)[1:]
        learner = make(seed, mdp, support=mdp.P > 0, width=0.02)
        play(learner, mdp, costs(layers, 40, seed), seed=seed)
        assert learner.certificate.unsolved == 0
        dead = np.concatenate([np.repeat(~a, layers.n_actions) for a in alive])
        assert dead.any()
        assert not np.any(learner.occupancy()[1:][dead])
        sizes = np.array([a.sum() for a in alive])
        eta = params_of(learner).eta
        S, A, H = sizes.sum(), layers.n_actions, layers.horizon
        assert params_of(learner).pairs.tolist() == (sizes * A).tolist()
        assert eta == pytest.approx(np.sqrt(np.log(10 * S * A * H / 0.05) / (sizes * A)))
        again = CostSCBRL.load(learner.save())
        assert again.save() == learner.save()


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_policy_gets_as_old_as_the_states_within_reach_allow(share):
    """With a support, too: `skip` is for |S_h| A as the theorem counts it; not for half of it."""
    first, second = (table.copy() for table in MDP.transitions)
    first[:, :, 0] = 0.0  # one of three states
    mdp = LayeredMDP(MDP.initial, [first / first.sum(axis=2, keepdims=True), second])
    pairs, most = np.array([2.0, 2.0, 2.0]) * LAYERS.n_actions, 0.0
    learner, rng = make(3, mdp, support=mdp.P > 0, skip=0.3), np.random.default_rng(4)
    for t in range(1, 600):
        play(learner, mdp, rng.random((1, LAYERS.n_pairs)), seed=t)
        state = state_of(learner)
        eta = params_of(learner).eta / np.sqrt(rounded_up(t + 1))
        limit = np.minimum(0.3 * share * pairs * eta, 0.25) * state.estimates.w
        since = LAYERS.unpack_pairs(state.estimates.since)
        most = max(most, since[1].max() / max(limit[1], 1e-300))
    assert (most <= 1.0) == (share == 1.0)


def test_any_number_of_episodes_or_the_one_that_was_told():
    assert make().made_for is None
    learner = make(episodes=2)
    for _ in range(2):
        tell_firsts(learner, [1.0, 1.0, 1.0])
    with pytest.warns(UserWarning, match="was made for 2 episodes"):
        learner.ask()


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"episodes": 0}, ValueError, "episodes must be"),
        ({"lower": [0.0, 1.0]}, ValueError, "lower must be a number, or one for each of the 3"),
        ({"lower": np.inf}, ValueError, "lower must be finite"),
        ({"lower": 0.0, "best_reward": 0.0}, TypeError, "lower or best_reward"),
        ({"outliers": -1}, ValueError, "outliers must be"),
        ({"outliers": "sqrt"}, TypeError, "outliers must be"),
        ({"profile": "best"}, ValueError, "profile"),
        ({"rate": 0.0}, ValueError, "rate must be"),
        ({"skip": -1.0}, ValueError, "skip must be"),
        ({"center": -1.0}, ValueError, "center must be"),
        ({"delta": 1.0}, ValueError, "delta must be"),
    ],
)
def test_wrong_settings(settings, error, message):
    with pytest.raises(error, match=message):
        make(**settings)


# ---------------------------------------------------------------------- Theorem O7


def phi(z):
    """(e^z - 1 - z)/z^2."""
    return (np.exp(z) - 1.0 - z) / z**2


def test_what_the_profiles_are():
    names = ("rate", "implicit", "width", "skip", "center")
    assert [make(profile="paper").settings[k] for k in names] == [1.0, 1.0, 1.0, 0.0, 0.0]
    assert [make().settings[k] for k in names] == [1.0, 0.1, 1.0, 0.6, 1.0]


@pytest.mark.parametrize("share", [1.0, 0.2])
def test_an_end_of_a_box_fails_with_its_probability(share):
    """Step (0): exactly, by binomial probabilities; not with a fifth of the divergence."""
    worst = 0.0
    for n, level, P in itertools.product((1, 2, 8, 64), (2.0, 5.0), np.linspace(0.01, 0.99, 25)):
        k = np.arange(n + 1)
        chances = np.exp(
            [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in k]
        ) * np.power(P, k) * np.power(1.0 - P, n - k)  # fmt: skip
        ends = np.array([largest_mean(i / n, share * level / n) for i in k])
        worst = max(worst, chances[ends < P].sum() / np.exp(-level))
    assert (worst <= 1.0 + 1e-9) == (share == 1.0)


@pytest.mark.parametrize("share", [1.0, 8.0])
def test_these_boxes_are_within_those_of_the_cited_lemma(share):
    """Step (0): of ln(T S A/delta') with delta' = delta/10; boxes of 8 times the divergence are
    not."""
    S, A, delta, inside = 5, 3, 0.05, True
    for k, few in itertools.product(range(1, 22), range(12)):
        n = 2 ** (k - 1)
        P = min(few, n) / n if few < 9 else few / 20.0
        level = share * np.log(20 * S * S * A * k * (k + 1) / (3 * delta)) / n
        L = np.log(10 * n * S * A / delta)
        width = 2 * np.sqrt(P * L / max(1, n - 1)) + 14 / 3 * L / max(1, n - 1)
        inside &= largest_mean(P, level) - P <= width + 1e-12
        inside &= P - (1.0 - largest_mean(1.0 - P, level)) <= width + 1e-12
    assert inside == (share == 1.0)


@pytest.mark.parametrize("what", ["proved", "alpha", "no optimism", "upper for lower"])
def test_one_step_of_centered_estimates(what):
    """Step (6): E exp(alpha l_hat) <= exp(alpha l) for alpha <= 2 gamma and q_low <= q <= u; not
    for 6 gamma, nor without c^2/C gamma, nor with u in q_low's place."""
    rng, worst = np.random.default_rng(3), -np.inf
    for _ in range(4000):
        gamma, q = 10.0 ** rng.uniform(-3, -0.3), 10.0 ** rng.uniform(-4, 0)
        u = min(1.0, q * rng.choice([1.0, 1.1, 2.0]))
        low = u if what == "upper for lower" else q * rng.choice([1.0, 0.9, 0.0])
        C, share = rng.uniform(0.5, 1.0), u / (u + gamma)
        c, l = C * rng.uniform(0.1, 0.5), C * rng.choice([0.0, 0.1, 1.0])
        even = share * c * (low - (what != "no optimism") * share * gamma * c / C) / (u + gamma)
        alpha = (6.0 if what == "alpha" else 2.0) * gamma
        visited = np.exp(alpha * (l - share * c) / (u + gamma))
        mean = (1.0 - q + q * visited) * np.exp(alpha * even)
        worst = max(worst, np.log(mean) - alpha * l)
    assert (worst <= 1e-12) == (what == "proved")


def test_the_constants_of_stability():
    """Step (5): suprema over x = u/gamma, on a grid, for r/g = 10."""
    x, ratio = np.geomspace(1e-6, 1e6, 400_001), 10.0
    share, b = x / (1.0 + x), ratio * x / (1.0 + x) ** 2
    X = 1.0 + 0.5 * share**2 / (1.0 + x)
    assert 1.07 < X.max() <= 1.075
    s = 0.25 + 1.075 * (0.25 + 0.125)
    assert s <= 0.654
    assert 0.62 < phi(0.654) <= 0.63
    assert 0.58 < np.max(share**2 * phi(b)) <= 0.59
    assert b.max() <= 2.5
    assert 4.2 < 0.5 * np.exp(0.654) * np.expm1(2.5) / 2.5 <= 4.31


def bracket(v, X, q, w):
    """The largest that one pair can add: q w f(-L/w) with L = sum of v - X."""
    z = (X - np.sum(v)) / w
    return q * w * (np.exp(z) - 1.0 - z)


@pytest.mark.parametrize("factor", [1.0, 0.3])
def test_stability_of_one_pair_over_a_batch(factor):
    """Step (5), on random batches; with 0.3 of its constants it fails."""
    rng, worst = np.random.default_rng(8), -np.inf
    for _ in range(20_000):
        gamma, x = 10.0 ** rng.uniform(-4, -1), 10.0 ** rng.uniform(-2, 3)
        u = min(1.0, x * gamma)
        share, q = u / (u + gamma), u * rng.choice([1.0, 0.5])
        eta = min(20.0 * gamma, 0.25)
        gamma = eta / 20.0
        share = u / (u + gamma)
        C = rng.uniform(0.2, 1.0)
        w, rho = C / eta, rng.uniform(0.0, 0.25)
        v, kind = [], rng.choice(3)
        while sum(map(abs, v)) <= rho * w and len(v) < 400:
            c = 0.5 * C * rng.choice([1.0, rng.random()])
            l = C * (rng.choice([0.0, 1.0, rng.random()]) if kind == 2 else float(kind))
            v.append((l - share * c) / (u + gamma))
        v = np.array(v)
        X = 1.075 * (rho * w + 0.5 * C) * rng.choice([0.0, 1.0, rng.random()])
        sizes = np.abs(v)
        s = rho + 1.075 * (rho + 0.5 * eta)
        last = 1.26 * q * sizes[-1] if v[-1] >= 0.0 else 8.62 * q * sizes[-1]
        most = s * (0.63 * q * (sizes[:-1].sum() + X) + last) + 0.63 * eta * sizes.sum()
        worst = max(worst, bracket(v, X, q, w) / most)
    assert (worst <= factor) == (factor == 1.0)


def test_regret_of_ftrl_in_batches():
    """Step (5): nested sets, old policies, signed estimates, against every policy."""
    watched = Watched(width=0.5, episodes=600)
    pairs = np.array(LAYERS.sizes) * LAYERS.n_actions
    q, w, l_hat = np.array(watched.q), np.array(watched.w), np.array(watched.l_hat)
    ends = np.flatnonzero(np.any(q[1:] != q[:-1], axis=1)) + 1
    parts, total, worst = np.split(np.arange(len(q)), ends), 0.0, -np.inf
    for part, after in itertools.pairwise(parts):
        L, old, new = l_hat[part].sum(axis=0), q[part[0]], q[after[0]]
        weights = np.repeat(w[part[0]], pairs)
        if np.all(weights > 0.0):
            most = np.sum(old * weights * (np.exp(-L / weights) - 1.0 + L / weights))
            change = np.sum(weights * (new * np.log(new / old) - new + old))
            total += most
            worst = max(worst, (np.sum(L * (old - new)) - change) / most)
    assert 20 < len(ends) < 500
    assert np.any(l_hat < 0.0)
    assert watched.inside
    assert 0.3 < worst <= 1.0  # as the control, 0.3 of it fails
    assert watched.regret() <= np.sum(w[-1] * np.log(pairs)) + total + np.sum(l_hat[parts[-1]])


@pytest.mark.parametrize("lower", [True, False])
def test_lower_bounds_are_off_by_what_the_boxes_leave_open(lower):
    """Step (4), Lemma 12: sums of q - q_low over layers; not if boxes are a tenth as wide."""
    learner = make()
    play(learner, MDP, costs(LAYERS, 400, seed=1), seed=2)
    state, lay = state_of(learner), LAYERS.table
    q, pi = occupancy(MDP, learner.policy()), state.solver.pi
    low, gap, most = np.ones(1), [], 0.0
    mass = np.ones(1)
    for h in range(LAYERS.horizon):
        pairs, k = slice(lay[PAIR, h], lay[PAIR, h + 1]), slice(lay[TRIPLE, h], lay[TRIPLE, h + 1])
        m = lay[PAIR, h + 1] - lay[PAIR, h]
        lo, P = state.boxes.lo[k].reshape(-1, m), MDP.P[k].reshape(-1, m)
        most += np.sum(q[pairs] * (P - lo).sum(axis=0)) * (1.0 if lower else 0.1)
        low = lo @ (np.repeat(low, m // len(low)) * pi[pairs])
        mass = P @ (np.repeat(mass, m // len(mass)) * pi[pairs])
        assert np.all(low <= mass + 1e-12)
        gap.append(np.sum(mass - low) <= most + 1e-12)
    assert all(gap) == lower


def test_lower_ends_of_a_box_leave_what_lemma_12_says():
    """1 - sum lo <= 2 sqrt(n beta/N); half of it is not enough."""
    learner = make()
    play(learner, MDP, costs(LAYERS, 3000, seed=1), seed=2)
    boxes, lay, used = state_of(learner).boxes, LAYERS.table, []
    for h in range(LAYERS.horizon):
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            k = 1 + math.log2(boxes.N_before[p])
            beta = params_of(learner).log_term + math.log(k * (k + 1))
            bound = 2 * math.sqrt(LAYERS.sizes[h] * beta / boxes.N[p])
            used.append(boxes.spare[p] / bound)
    assert 0.5 < max(used) <= 1.0


def test_the_proof_of_o7_adds_up_to_its_constant():
    """In units of M_h sqrt(|S_h| A T iota), for r = 1, g = 0.1 and skip 0.6, without kappa."""
    r, g, skip = 1.0, 0.1, 0.6
    for T in (100, 10**4, 10**6):
        clock = np.array([rounded_up(t) for t in range(1, T + 1)])
        for t_hat, most in ((np.full(T, T), 18.3), (clock, 26.9)):
            root = np.sum(t_hat**-0.5) / np.sqrt(T)
            last = np.sqrt(t_hat[-1] / T)
            stability = 0.63 * r + 4.31 * (2.075 * skip + 0.27) * r + 0.26 * g
            constant = last * (1.0 / r + 1.0 / g) + (1.25 * g / 2.0 + stability) * root
            assert 0.8 * most < constant <= most
