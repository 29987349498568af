"""The simulator of MDPs: equal to ask and tell, exact regret, threads, adversaries."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from unbounded.mdps.baselines import ExploreThenCommit, IndependentSCB, UniformPolicy
from unbounded.mdps.seekers import RFELP

from unbounded import worlds
from unbounded.adversaries.mdps import (
    Growth,
    GrowthSwitch,
    Hide,
    Lure,
    Negative,
    Punish,
    QuietLure,
    Stochastic,
    Switch,
)
from unbounded.core.occupancy.layout import (
    ACTIONS,
    SIZE,
    TRIPLE,
    draw,
)
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.core.occupancy.policies import Markov, best_policy, occupancy
from unbounded.core.random import stream_of, word_at
from unbounded.mdps.scb_rl import SCBRL
from unbounded.play import episode_loop
from unbounded.play import simulate_mdp as simulate
from unbounded.play.simulate_mdp import simulate_mdp

MDP = worlds.dirichlet([2, 3], 2, np.random.default_rng(0))
LAYERS = MDP.layers
T = 250


def by_hand(result, adversary, replicate, seed):
    """The same replicate through ask and tell; regret from the definitions."""
    learner = SCBRL([2, 3], 2, T, seed=result.seed(replicate))
    root = np.random.SeedSequence(seed)
    key = int(simulate._seed(root, replicate, 1).generate_state(1, np.uint64)[0]) >> 11
    params = adversary.begin(MDP, T, key)
    lay, losses = LAYERS.table, np.empty(LAYERS.n_pairs)
    paid, realised, total = 0.0, 0.0, np.zeros(LAYERS.n_pairs)
    for t in range(1, T + 1):
        plan = learner.ask()
        q = occupancy(MDP, learner.policy())
        if learner.phase == "playing":
            beta = learner._params.beta
            found = list(learner.explorers().values())
            weights = [(1 - beta), *[beta / len(found)] * len(found)]
            parts = [occupancy(MDP, m) for m in (learner.policy(), *found)]
            q = sum(w * part for w, part in zip(weights, parts, strict=True))
        else:
            q = occupancy(MDP, Markov(LAYERS, plan._pi))
        type(adversary).fill(params, t, q, lay, losses)
        stream = np.uint64(stream_of(key + episode_loop._TRANSITIONS, t))
        i, states, actions = 0, [], []
        for h in range(2):
            word = np.uint64(word_at(stream, h))
            s = draw(
                MDP.P, lay[TRIPLE, h] + i, lay[SIZE, h] * lay[ACTIONS, h], lay[SIZE, h + 1], word
            )
            a = plan.act(h, s)
            states.append(s)
            actions.append(a)
            i = s * 2 + a
        seen = [losses[LAYERS.index(h + 1, states[h], actions[h])] for h in range(2)]
        paid += q @ losses
        realised += sum(seen)
        total += losses
        learner.tell(plan, states, actions, seen)
    best, _ = best_policy(MDP, total)
    return paid - best, realised - best, learner


def smallest_reach(learner):
    """By forward recursion and by trying every deterministic policy of the first layer."""
    initial, step = MDP.initial, MDP.transitions[0]
    most = [
        max(
            sum(initial[s] * step[s, a[s], x] for s in range(2))
            for a in itertools.product(range(2), repeat=2)
        )
        for x in range(3)
    ]
    ratios = []
    for (h, s), mixture in learner.explorers().items():
        if h == 0:
            continue  # reached with the same probability by every policy
        reached = sum(
            w * initial[i] * policy.tables[0][i, a] * step[i, a, s]
            for w, policy in zip(mixture.weights, mixture.policies, strict=True)
            for i in range(2)
            for a in range(2)
        )
        ratios.append(reached / most[s])
    return min(ratios)


@pytest.mark.parametrize("make", [Stochastic, Punish])
def test_equals_ask_and_tell(make):
    adversary = make()
    result = simulate_mdp(SCBRL([2, 3], 2, T), MDP, adversary, replicates=2, seed=5)
    for r in range(2):
        regret, realised, learner = by_hand(result, adversary, r, seed=5)
        assert result.regret[r, -1] == pytest.approx(regret, abs=1e-9)
        assert result.realised[r, -1] == pytest.approx(realised, abs=1e-9)
        assert result.explored[r] == learner.exploration["episodes"]
        assert result.reach[r] == pytest.approx(smallest_reach(learner), abs=1e-12)
        assert result.solves[r] == learner.certificate.solves
        assert result.worst_gap[r] == learner.certificate.worst_gap


@pytest.mark.parametrize("make", [Growth, Switch, Lure])
def test_a_run_may_be_looked_at_before_its_end(make):
    """What the adversary does depends on how long the run is, not on where it is recorded."""
    learner = SCBRL([2, 3], 2, T)
    some = simulate_mdp(learner, MDP, make(), seed=6, checkpoints=[60])
    all_ = simulate_mdp(learner, MDP, make(), seed=6, checkpoints=[60, T])
    assert some.regret[0, 0] == all_.regret[0, 0]


def test_rf_elp_is_played_until_all_states_are_done():
    result = simulate_mdp(RFELP([2, 3], 2, 20), MDP, Stochastic(), seed=6, checkpoints=1)
    assert result.checkpoints.tolist() == [100]
    assert result.explored[0] == 100
    assert result.reach[0] > 0


def test_results_do_not_depend_on_threads_or_checkpoints():
    learner, adversary = SCBRL([2, 3], 2, T), Switch()
    one, two = (
        simulate_mdp(learner, MDP, adversary, replicates=3, seed=6, workers=k) for k in (1, 3)
    )
    assert np.array_equal(one.regret, two.regret)
    last = simulate_mdp(learner, MDP, adversary, replicates=3, seed=6, checkpoints=[T])
    assert np.array_equal(last.regret[:, -1], one.regret[:, -1])
    assert len({float(x) for x in one.regret[:, -1]}) == 3
    later = simulate_mdp(
        learner, MDP, adversary, replicates=2, seed=6, first_replicate=1, checkpoints=[T]
    )
    assert np.array_equal(later.regret[:, -1], one.regret[1:, -1])
    assert np.array_equal(later.clipped[:, -1], one.clipped[1:, -1])
    assert later.seed(0).spawn_key == one.seed(1).spawn_key
    with pytest.raises(ValueError, match="first_replicate must be at least 0"):
        simulate_mdp(learner, MDP, adversary, first_replicate=-1)


@pytest.mark.parametrize("k", [-900, -301, 13, 300, 900])
@pytest.mark.parametrize("make", [Growth, Lure, Hide])
def test_a_common_factor_changes_nothing_but_the_unit(make, k):
    learner = SCBRL([2, 3], 2, T)
    a = simulate_mdp(learner, MDP, make(), seed=7)
    b = simulate_mdp(learner, MDP, make(scale=2.0**k), seed=7)
    assert np.array_equal(np.ldexp(a.regret, k), b.regret)
    assert np.array_equal(np.ldexp(a.realised, k), b.realised)
    assert np.array_equal(a.relative_regret(), b.relative_regret())
    assert np.all(a.regret[0, -5:] != 0.0)


@pytest.mark.parametrize("make", [Stochastic, Negative, Punish])
def test_regret_beyond_float64(make):
    learner = SCBRL([2, 3], 2, T)
    a = simulate_mdp(learner, MDP, make(), seed=12)
    b = simulate_mdp(learner, MDP, make(scale=2.0**1023), seed=12)
    assert a.regret[0, -1] > 2.0
    assert b.regret[0, -1] == np.inf  # it truly is too large
    assert np.array_equal(a.relative_regret(), b.relative_regret())
    with np.errstate(over="ignore"):
        assert np.array_equal(np.ldexp(a.regret, 1023), b.regret)
    largest = np.finfo(float).max
    c = simulate_mdp(learner, MDP, make(scale=largest), seed=12)
    assert np.all(np.isfinite(c.relative_regret()))
    assert c.relative_regret()[0, -1] > 0.0


def test_baselines_take_the_largest_losses():
    largest = np.finfo(float).max
    learners = (
        IndependentSCB([2, 3], 2),
        ExploreThenCommit([2, 3], 2, T),
        UniformPolicy([2, 3], 2),
    )
    for learner in learners:
        result = simulate_mdp(learner, MDP, Negative(scale=largest), T, seed=13)
        assert np.all(np.isfinite(result.relative_regret())), learner


def test_a_first_small_and_then_a_huge_loss():
    """The unit moves over the whole range of float64; small losses are lost to rounding only."""
    steps = [0.0, 5e-324, 1e-300, 1.0, 1e300, np.finfo(float).max, -np.finfo(float).max]

    def rising(t, last, q, rng):
        return [np.full((1, 2), [steps[t - 1], 0.0])]

    mdp = LayeredMDP([1.0], [], n_actions=2)
    result = simulate_mdp(
        UniformPolicy([1], 2), mdp, rising, len(steps), checkpoints=range(1, len(steps) + 1)
    )
    # uniform play pays half the sum; the best action is the other one
    total = Fraction(0)
    for step, regret in zip(steps[2:], result.regret[0, 2:], strict=True):
        total += Fraction(step)
        assert regret == pytest.approx(float(total / 2), rel=1e-15, abs=1e-15 * abs(step))
    assert result.regret[0, 0] == 0.0
    assert result.relative_regret()[0, 1] == 0.5 / np.sqrt(2 * 2)


def test_regret_of_uniform_play_in_closed_form():
    mdp = LayeredMDP([1.0], [], n_actions=2)
    result = simulate_mdp(UniformPolicy([1], 2), mdp, Punish(), 100, seed=8)
    # the first action is "likeliest": it costs 1 each time, so uniform play loses 1/2 an episode
    assert result.regret[0, -1] == 50.0


def test_exploration_policies_are_needed():
    """Range clipping: a lure at the layer's minimum has estimates 0 and locks the learner in; only
    the explorers see what happens elsewhere."""
    lock = worlds.combination_lock(3, 2, np.random.default_rng(1))
    without = SCBRL(lock.layers.sizes, 2, 20_000, beta_factor=0.0, allow_no_exploration=True)
    regret = {}
    for name, learner in (("without", without), ("with", SCBRL(lock.layers.sizes, 2, 20_000))):
        result = simulate_mdp(
            learner, lock, QuietLure(), replicates=12, seed=9, checkpoints=[20_000]
        )
        regret[name] = result.relative_regret()[:, -1]
    # Without, a run is saved only if it happens to be at the right place when the first pay comes.
    assert regret["with"].mean() < 0.5 * regret["without"].mean()
    assert np.mean(regret["without"] > 1.0) > 0.7


def test_errors():
    with pytest.raises(ValueError, match="the learner is for"):
        simulate_mdp(UniformPolicy([2], 2), MDP, Stochastic(), 10)
    with pytest.raises(ValueError, match="any number of episodes: say episodes="):
        simulate_mdp(UniformPolicy([2, 3], 2), MDP, Stochastic())
    with pytest.raises(TypeError, match="episodes must be a whole number"):
        simulate_mdp(UniformPolicy([2, 3], 2), MDP, Stochastic(), 10.9)
    with pytest.raises(ValueError, match="checkpoints"):
        simulate_mdp(UniformPolicy([2, 3], 2), MDP, Stochastic(), 10, checkpoints=[11])


class InPython:
    """A compiled adversary through the contract of adversaries in Python."""

    def __init__(self, adversary, seed):
        self.adversary, self.root, self.replicate = adversary, np.random.SeedSequence(seed), -1

    def __call__(self, t, last, q, rng):
        if t == 1:
            self.replicate += 1
            key = int(simulate._seed(self.root, self.replicate, 1).generate_state(1, np.uint64)[0])
            self.params = self.adversary.begin(MDP, T, key >> 11)
        losses = np.empty(LAYERS.n_pairs)
        flat = LAYERS.pack_pairs(q, first=1.0)
        type(self.adversary).fill(self.params, t, flat, LAYERS.table, losses)
        return LAYERS.unpack_pairs(losses)


@pytest.mark.parametrize("make", [GrowthSwitch, Punish, Hide])
def test_an_adversary_in_python_equals_the_compiled_one(make):
    learner = SCBRL([2, 3], 2, T)
    ours = simulate_mdp(learner, MDP, make(), replicates=2, seed=10, workers=1)
    other = simulate_mdp(learner, MDP, InPython(make(), 10), replicates=2, seed=10)
    assert ours.solves[0] > 0
    for name in ("regret", "realised", "low", "high", "explored", "solves", "worst_gap"):
        assert np.array_equal(getattr(ours, name), getattr(other, name)), name


def test_what_an_adversary_in_python_sees():
    seen = []

    def watch(t, last, q, rng):
        seen.append((t, last, q, rng.random()))
        for table in q:
            table[:] = np.nan  # a copy: nobody minds
        return [np.zeros((2, 2)), np.ones((3, 2))]

    runs = [simulate_mdp(UniformPolicy([2, 3], 2), MDP, watch, 5, seed=s) for s in (11, 11, 12)]
    assert [float(run.regret[0, -1]) for run in runs] == pytest.approx([0.0] * 3, abs=1e-15)
    assert [entry[0] for entry in seen] == [1, 2, 3, 4, 5] * 3
    assert seen[0][1] is None
    states, actions = seen[1][1]
    assert states.shape == actions.shape == (2,)
    assert np.all(states < [2, 3])
    draws = [entry[3] for entry in seen]
    assert draws[:5] == draws[5:10]
    assert draws[5:10] != draws[10:]
    trips = [[np.ravel(last).tolist() for _, last, _, _ in seen[a + 1 : a + 5]] for a in (0, 5, 10)]
    assert trips[0] == trips[1] != trips[2]


def test_what_an_adversary_in_python_returns_is_checked():
    def play(returned):
        simulate_mdp(UniformPolicy([2, 3], 2), MDP, lambda t, last, q, rng: returned, 3)

    for wrong in (None, 1.0, [np.zeros((2, 2))], [np.zeros((2, 2)), np.zeros((2, 3))], ["a", "b"]):
        with pytest.raises(ValueError, match=r"shapes \[\(2, 2\), \(3, 2\)\].* at t = 1"):
            play(wrong)
    for value in (np.nan, np.inf):
        losses = [np.zeros((2, 2)), np.zeros((3, 2))]
        losses[1][2, 0] = value
        with pytest.raises(ValueError, match=r"finite losses, got .* in layer 1 at t = 1"):
            play(losses)
    with pytest.raises(TypeError, match="must be an MDPAdversary or a function"):
        simulate_mdp(UniformPolicy([2, 3], 2), MDP, "punish", 3)
