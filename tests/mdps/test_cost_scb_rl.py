"""CostSCBRL: against a slow implementation, and what docs/theory/one-sided-mdp.md proves of it."""

import itertools
import warnings

import numpy as np
import pytest

from mdp_play import paid, params_of, play, state_of, tell_firsts, walk
from occupancy_facades import upper_occupancy
from occupancy_worlds import reached, sparse_world
from slow_cost_scb_rl import SlowCostSCBRL, SlowDiscountedCostSCBRL
from unbounded import SCBRL, CostSCBRL, SolverWarning, UniformPolicy, simulate_mdp, worlds
from unbounded.adversaries.mdps import Punish, Stochastic
from unbounded.core.ceiling import clip_each_above
from unbounded.core.clipping import LAZY, SCALE, clip_each, empty_windows
from unbounded.core.occupancy.layout import PAIR
from unbounded.core.occupancy.mdp import best_policy, occupancy
from unbounded.core.occupancy.upper import spare_mass
from unbounded.learners import persistence as documents
from unbounded.mdps.steps import costs as costs_of_mdps
from unbounded.mdps.steps.boxes import bound_visited
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
        ({}, (0.8, 0.2, 0.4, 1)),
        ({"profile": "paper"}, (1, 1, 1, 0)),
        ({"width": 0.05, "skip": 0.0, "outliers": 3}, (0.8, 0.2, 0.05, 1)),
        ({"episodes": 150, "rate": 2.0, "implicit": 0.3, "width": 0.1}, (2, 0.3, 0.1, 1)),
        ({"lower": [-3.0, 0.25]}, (0.8, 0.2, 0.4, 1)),
        ({"center": 0.0}, (0.8, 0.2, 0.4, 0)),
        ({"center": 0.5, "implicit": 2.0}, (0.8, 2.0, 0.4, 0.5)),
        ({"half_life": 20}, (0.8, 0.2, 0.4, 1)),
        ({"half_life": 7, "profile": "paper", "outliers": 1}, (1, 1, 1, 0)),
        ({"half_life": 30, "lower": [-3.0, 0.25], "episodes": 150}, (0.8, 0.2, 0.4, 1)),
    ],
    ids=[
        "practical", "paper", "outliers", "told T", "lower", "not centerd", "half centerd",
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
        q = mdp.layers.unpack_pairs(learner.occupancy())
        due = slow.learn(learner.policy().tables, states, actions, seen, q)
        solves += due

    play(learner, mdp, losses, seed=7, before=before)
    state = state_of(learner)
    g = state.fading.memory.g if h else 1.0
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


def mean_estimates(center, told, correct=True):
    """Expected estimates of one episode with losses ``told``, by pairs, where P and so q are known.

    Thresholds are 1/2, 2 and 1, and the means so far 3/32, 3/8 and 1.
    """
    learner = make(center=center)
    params, state = params_of(learner), state_of(learner)
    clip_each_above(state.ceilings, params.lower, np.array([0.5, 2.0, 1.0]))
    state = state._replace(t=5, estimates=costs_of_mdps.weigh(params, state, 5.0, 0))
    so_far = np.ldexp(np.array([0.375, 1.5, 4.0]), -state.estimates.unit)
    state.boxes.lo[:], state.boxes.hi[:] = MDP.P, MDP.P
    spare_mass(LAYERS.table, state.boxes.lo, state.boxes.spare)
    q = occupancy(MDP, learner.policy())
    state.solver.q[:] = q if correct else 1e300
    before, mean = state.ceilings, np.zeros(LAYERS.n_pairs)
    for h, n in enumerate(LAYERS.sizes, start=1):
        layer = slice(LAYERS.table[PAIR, h], LAYERS.table[PAIR, h + 1])
        for s, a in itertools.product(range(n), range(2)):
            states, actions = np.zeros(3, int), np.zeros(3, int)
            states[h - 1], actions[h - 1] = s, a
            state.estimates.L_hat[:], state.solver.u[:], state.paid[:] = 0.0, -1.0, so_far
            again = before._replace(**{f: v.copy() for f, v in before._asdict().items()})
            clip_each_above(again, params.lower, told)
            state = state._replace(ceilings=again)
            bound_visited(LAYERS.table, state.boxes, state.solver.pi, states, state.solver.u)
            costs_of_mdps.estimate(
                LAYERS.table, params, state, 1.0, 4.0, np.sqrt(5.0), states, actions
            )
            mean[layer] += q[LAYERS.index(h, s, a)] * np.ldexp(
                state.estimates.L_hat[layer], state.estimates.unit
            )
    return mean


def test_centerd_estimates_have_the_mean_of_the_others():
    """But for one constant per layer, where the bounds are exact; not without the part that every
    pair gets."""
    told = np.array([0.125, 5.0, 0.375])  # the second is clipped
    plain, centerd = mean_estimates(0.0, told), mean_estimates(1.0, told)
    control = mean_estimates(1.0, told, correct=False)
    for h, c in enumerate((0.09375, 0.375, 0.5), start=1):  # half the threshold in the last
        layer = slice(LAYERS.table[PAIR, h], LAYERS.table[PAIR, h + 1])
        assert (centerd - plain)[layer] == pytest.approx(-c, rel=1e-12)
        assert np.ptp(plain[layer]) > 1e-3
        assert np.ptp((control - plain)[layer]) > 0.02 * c


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
    watched = Watched(profile="paper", width=0.15)  # narrow enough to say something
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
    watched = Watched(profile="paper", width=0.1, rate=rate, **forgetting)
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
    assert missed(1.0) == missed(0.4) == 0
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
        eta = learner.spec.packing.python.params(learner._buffer).eta
        S, A, H = sizes.sum(), layers.n_actions, layers.horizon
        assert eta == pytest.approx(0.8 * np.sqrt(np.log(10 * S * A * H / 0.05) / (sizes * A)))
        again = CostSCBRL.load(learner.save())
        assert again.save() == learner.save()


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


def test_a_theorem_is_proved_for_the_profile_theory_only():
    theory, practical = make(profile="paper").settings, make().settings
    names = ("rate", "implicit", "width", "skip", "center")
    assert [theory[k] for k in names] == [1.0, 1.0, 1.0, 0.0, 0.0]
    assert practical["width"] < 1.0 < 1.0 + practical["skip"]
    assert practical["center"] == 1.0
