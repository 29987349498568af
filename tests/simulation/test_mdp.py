"""The simulator of MDPs: exact regret, threads, the ends of float64, adversaries in Python.

That it equals ask and tell bit for bit is tested for every learner in test_every_mdp_learner.py.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from loss_helpers import filled
from mdp_play import paid, random_losses, walk_of
from occupancy_facades import regret
from unbounded import RFELP, SCBRL, UniformPolicy, simulate_mdp, worlds
from unbounded.adversaries.mdps import (
    Growth,
    GrowthSwitch,
    Hide,
    Lure,
    Negative,
    Punish,
    Stochastic,
    Switch,
)
from unbounded.core.occupancy.mdp import LayeredMDP, Markov, best_policy, occupancy
from unbounded.learners.seeds import replicate_key, root_of
from unbounded.mdps.steps.explorers import fill_component

MDP = worlds.dirichlet([2, 3], 2, np.random.default_rng(0))
LAYERS = MDP.layers
T = 250


def explored_by(learner, few):
    """The policies that explorers play, and how often: evenly over states, but where policies are
    few, shared, or missing."""
    if not few:
        found = list(learner.explorers().values())
        return found, [1.0 / len(found)] * len(found)
    library = learner._state().search.library
    found = []
    for k in range(int(library.size)):
        pi = np.empty(LAYERS.n_pairs)
        fill_component(LAYERS.table, LAYERS.even, library, k, pi)
        found.append(Markov(LAYERS, pi))
    assert library.weight[: len(found)].sum() == pytest.approx(1.0)
    return found, list(library.weight[: len(found)])


def by_hand(result, adversary, replicate, seed, few):
    """The same replicate through ask and tell; regret from the definitions."""
    learner = SCBRL([2, 3], 2, T, constants={"few": few}, seed=result.seed(replicate))
    key = replicate_key(root_of(seed), replicate)
    beta = min(0.5, np.sqrt(10 / T))
    expected, realized, total = 0.0, 0.0, np.zeros(LAYERS.n_pairs)
    for t in range(1, T + 1):
        plan = learner.ask()
        if learner.phase == "playing":
            found, shares = explored_by(learner, few)
            weights = [1 - beta, *(beta * share for share in shares)]
            parts = [occupancy(MDP, part) for part in (learner.policy(), *found)]
            q = sum(w * part for w, part in zip(weights, parts, strict=True))
        else:
            policy = type(learner.policy()).from_tables(LAYERS, plan.policy)
            q = occupancy(MDP, policy)
        losses = filled(adversary, MDP, T, t, q, key)
        states, actions = walk_of(MDP, plan, key, t)
        seen = paid(LAYERS, losses, states, actions)
        expected += q @ losses
        realized += seen.sum()
        total += losses
        learner.tell(plan, states, actions, seen)
    best, _ = best_policy(MDP, total)
    return realized - best, expected - best, learner


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


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("make", [Stochastic, Punish])
def test_regret_is_what_it_says(make, few):
    adversary = make()
    result = simulate_mdp(
        SCBRL([2, 3], 2, T, constants={"few": few}), MDP, adversary, replicates=2, seed=5
    )
    for r in range(2):
        realized, expected, learner = by_hand(result, adversary, r, seed=5, few=few)
        assert result.regret[r, -1] == pytest.approx(realized, abs=1e-9)
        assert result.pseudo_regret[r, -1] == pytest.approx(expected, abs=1e-9)
        assert result.explored[r] == learner.episodes_explored
        assert result.reach[r] == pytest.approx(smallest_reach(learner), abs=1e-12)
        assert result.solves[r] == learner.certificate.solves
        assert result.worst_gap[r] == learner.certificate.worst_gap


def test_regret_at_every_checkpoint():
    """Against losses that are replayed, by `regret` of the occupancy room."""
    losses = random_losses(LAYERS, 60, seed=3)
    losses[:, 0] = 0.0
    result = simulate_mdp(
        UniformPolicy([2, 3], 2), MDP, lambda t, last, q, rng: LAYERS.unpack_pairs(losses[t - 1]),
        60, seed=1, checkpoints=range(1, 61),
    )  # fmt: skip
    learner = UniformPolicy([2, 3], 2)
    exact = regret(MDP, [learner.policy()] * 60, losses)
    assert result.pseudo_regret[0] == pytest.approx(exact, abs=1e-12)


def test_relative_regrets():
    """Over the layers' largest absolute losses, added up; and over that times S sqrt(A t)."""
    for make in (Stochastic, Negative):
        result = simulate_mdp(
            UniformPolicy([2, 3], 2), MDP, make(scale=3.0), 50, replicates=2, seed=4
        )
        largest = np.maximum(-result.low, result.high).sum(axis=2)
        assert np.all(largest > 1.0)
        rate = 5 * np.sqrt(2 * result.checkpoints)
        for name, pseudo in (("regret", False), ("pseudo_regret", True)):
            values = getattr(result, name)
            found = result.relative_regret(pseudo=pseudo)
            assert found == pytest.approx(values / largest, rel=1e-13)
            found = result.minimax_regret(pseudo=pseudo)
            assert found == pytest.approx(values / (largest * rate), rel=1e-13)


def test_layers_of_any_sign():
    """l_inf of a layer is that of its absolute losses, whichever end is larger."""

    def signs(t, last, q, rng):
        return [np.full((2, 2), -5.0), np.array([[2.0, -1.0], [-0.5, 3.0], [0.0, 0.0]])]

    result = simulate_mdp(UniformPolicy([2, 3], 2), MDP, signs, 4, seed=0, checkpoints=[4])
    assert result.low[0, 0].tolist() == [-5.0, -1.0]
    assert result.high[0, 0].tolist() == [-5.0, 3.0]
    expected = result.regret[0, 0] / (5.0 + 3.0)
    assert result.relative_regret()[0, 0] == pytest.approx(expected, rel=1e-14)
    none = simulate_mdp(
        UniformPolicy([1], 2), LayeredMDP([1.0], [], n_actions=2),
        lambda t, last, q, rng: [[[0.0, 0.0]]], 4, seed=0,
    )  # fmt: skip
    assert not none.relative_regret().any()  # and no 0/0
    assert not none.minimax_regret().any()


@pytest.mark.parametrize("make", [Growth, Switch, Lure])
def test_a_run_may_be_looked_at_before_its_end(make):
    """What the adversary does depends on how long the run is, not on where it is recorded."""
    learner = SCBRL([2, 3], 2, T)
    some = simulate_mdp(learner, MDP, make(), seed=6, checkpoints=[60])
    all_ = simulate_mdp(learner, MDP, make(), seed=6, checkpoints=[60, T])
    assert some.regret[0, 0] == all_.regret[0, 0]
    assert some.pseudo_regret[0, 0] == all_.pseudo_regret[0, 0]


def test_rf_elp_is_played_until_all_states_are_done():
    result = simulate_mdp(RFELP([2, 3], 2, 20), MDP, Stochastic(), seed=6, checkpoints=1)
    assert result.checkpoints.tolist() == [100]
    assert result.explored[0] == 100
    assert result.reach[0] > 0
    early = simulate_mdp(RFELP([2, 3], 2, 20), MDP, Stochastic(), 99, seed=6)
    assert np.isnan(early.reach[0])  # a state is not done yet
    assert np.isnan(simulate_mdp(UniformPolicy([2, 3], 2), MDP, Stochastic(), 5).reach[0])


def test_replicates_differ_in_everything():
    """Each has its own losses, transitions and choices."""
    seen = []

    def watch(t, last, q, rng):
        seen.append((t, rng.random(), None if last is None else np.ravel(last).tolist()))
        return [np.zeros((2, 2)), np.zeros((3, 2))]

    simulate_mdp(UniformPolicy([2, 3], 2), MDP, watch, 12, replicates=3, seed=1)
    runs = [seen[12 * r : 12 * r + 12] for r in range(3)]
    assert len({run[0][1] for run in runs}) == 3
    assert len({str([last for *_, last in run]) for run in runs}) == 3
    result = simulate_mdp(
        UniformPolicy([2, 3], 2), MDP, Stochastic(), 1, replicates=4, seed=2, checkpoints=[1]
    )
    assert len({tuple(low) for low in result.low[:, 0]}) == 4  # compiled: losses by their keys
    one = LayeredMDP([0.5, 0.5], [], n_actions=1)
    result = simulate_mdp(
        UniformPolicy([2], 1), one, lambda t, last, q, rng: [[[0.0], [1.0]]], 40, replicates=6,
        seed=3, checkpoints=[40],
    )  # fmt: skip
    assert len(set(result.regret[:, 0])) > 2  # transitions by theirs


def test_results_do_not_depend_on_threads_or_checkpoints():
    learner, adversary = SCBRL([2, 3], 2, T), Switch()
    one, two = (
        simulate_mdp(learner, MDP, adversary, replicates=3, seed=6, workers=k) for k in (1, 3)
    )
    for name in ("regret", "pseudo_regret"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
        assert len({float(x) for x in getattr(one, name)[:, -1]}) == 3
    last = simulate_mdp(learner, MDP, adversary, replicates=3, seed=6, checkpoints=[T])
    assert np.array_equal(last.regret[:, -1], one.regret[:, -1])
    later = simulate_mdp(
        learner, MDP, adversary, replicates=2, seed=6, first_replicate=1, checkpoints=[T]
    )
    assert np.array_equal(later.regret[:, -1], one.regret[1:, -1])
    assert np.array_equal(later.pseudo_regret[:, -1], one.pseudo_regret[1:, -1])
    assert np.array_equal(later.clipped[:, -1], one.clipped[1:, -1])
    assert later.seed(0).spawn_key == one.seed(1).spawn_key
    with pytest.raises(ValueError, match="first_replicate must be at least 0"):
        simulate_mdp(learner, MDP, adversary, first_replicate=-1)


def test_a_learner_is_taken_as_settings():
    learner = SCBRL([2, 3], 2, 50, seed=0)
    learner.tell(learner.ask(), [0, 0], [0, 0], [5.0, 5.0])
    before = learner.save()
    result = simulate_mdp(learner, MDP, Stochastic(), seed=1)
    assert learner.save() == before
    fresh = simulate_mdp(SCBRL([2, 3], 2, 50), MDP, Stochastic(), seed=1)
    assert np.array_equal(result.regret, fresh.regret)


def test_progress_is_reported():
    seen = []
    simulate_mdp(
        UniformPolicy([2, 3], 2), MDP, Stochastic(), 5, replicates=3, workers=1,
        progress=lambda done, all: seen.append((done, all)),
    )  # fmt: skip
    assert seen == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("k", [-900, -301, 13, 300, 900])
@pytest.mark.parametrize("make", [Growth, Lure, Hide])
def test_a_common_factor_changes_nothing_but_the_unit(make, k):
    learner = SCBRL([2, 3], 2, T)
    a = simulate_mdp(learner, MDP, make(), seed=7)
    b = simulate_mdp(learner, MDP, make(scale=2.0**k), seed=7)
    for name in ("regret", "pseudo_regret"):
        assert np.array_equal(np.ldexp(getattr(a, name), k), getattr(b, name))
        assert np.all(getattr(a, name)[0, -5:] != 0.0)
    for name in ("relative_regret", "minimax_regret"):
        assert np.array_equal(getattr(a, name)(), getattr(b, name)())
        assert np.array_equal(getattr(a, name)(pseudo=True), getattr(b, name)(pseudo=True))


@pytest.mark.parametrize("make", [Stochastic, Negative, Punish])
def test_regret_beyond_float64(make):
    learner = SCBRL([2, 3], 2, T)
    a = simulate_mdp(learner, MDP, make(), seed=12)
    b = simulate_mdp(learner, MDP, make(scale=2.0**1023), seed=12)
    assert a.pseudo_regret[0, -1] > 2.0
    assert b.pseudo_regret[0, -1] == np.inf  # it truly is too large
    with np.errstate(over="ignore"):
        assert np.array_equal(np.ldexp(a.pseudo_regret, 1023), b.pseudo_regret)
    c = simulate_mdp(learner, MDP, make(scale=np.finfo(float).max), seed=12)
    for name in ("relative_regret", "minimax_regret"):
        for pseudo in (False, True):
            found = [getattr(result, name)(pseudo=pseudo) for result in (a, b, c)]
            assert np.array_equal(found[0], found[1])
            assert np.all(np.isfinite(found[2]))
    assert c.relative_regret(pseudo=True)[0, -1] > 0.0


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
    for step, found in zip(steps[2:], result.pseudo_regret[0, 2:], strict=True):
        total += Fraction(step)
        assert found == pytest.approx(float(total / 2), rel=1e-15, abs=1e-15 * abs(step))
    assert result.pseudo_regret[0, 0] == 0.0
    assert result.relative_regret(pseudo=True)[0, 1] == 0.5
    assert result.minimax_regret(pseudo=True)[0, 1] == 0.5 / np.sqrt(2 * 2)


def test_regret_of_uniform_play_in_closed_form():
    mdp = LayeredMDP([1.0], [], n_actions=2)
    result = simulate_mdp(UniformPolicy([1], 2), mdp, Punish(), 100, seed=8)
    # the first action is "likeliest": it costs 1 each time, so uniform play loses 1/2 an episode
    assert result.pseudo_regret[0, -1] == 50.0
    assert abs(result.regret[0, -1] - 50.0) < 5 * 5.0
    assert result.regret[0, -1] == round(result.regret[0, -1])  # 1 or 0 is paid


def test_errors():
    with pytest.raises(ValueError, match="the learner is for"):
        simulate_mdp(UniformPolicy([2], 2), MDP, Stochastic(), 10)
    with pytest.raises(ValueError, match="any number of episodes: say episodes="):
        simulate_mdp(UniformPolicy([2, 3], 2), MDP, Stochastic())
    with pytest.raises(TypeError, match="episodes must be an integer"):
        simulate_mdp(UniformPolicy([2, 3], 2), MDP, Stochastic(), 10.9)
    with pytest.raises(ValueError, match="checkpoints"):
        simulate_mdp(UniformPolicy([2, 3], 2), MDP, Stochastic(), 10, checkpoints=[11])
    with pytest.raises(ValueError, match="replicates must be at least 1"):
        simulate_mdp(UniformPolicy([2, 3], 2), MDP, Stochastic(), 10, replicates=0)


class InPython:
    """A compiled adversary through the contract of adversaries in Python."""

    def __init__(self, adversary, seed):
        self.adversary, self.root, self.replicate = adversary, root_of(seed), -1

    def __call__(self, t, last, q, rng):
        self.replicate += t == 1
        key = replicate_key(self.root, self.replicate)
        losses = filled(self.adversary, MDP, T, t, LAYERS.pack_pairs(q, first=1.0), key)
        return LAYERS.unpack_pairs(losses)


@pytest.mark.parametrize("make", [GrowthSwitch, Punish, Hide])
def test_an_adversary_in_python_equals_the_compiled_one(make):
    learner = SCBRL([2, 3], 2, T)
    ours = simulate_mdp(learner, MDP, make(), replicates=2, seed=10, workers=1)
    other = simulate_mdp(learner, MDP, InPython(make(), 10), replicates=2, seed=10)
    assert ours.solves[0] > 0
    for name in ("regret", "pseudo_regret", "low", "high", "explored", "solves", "worst_gap"):
        assert np.array_equal(getattr(ours, name), getattr(other, name)), name


def test_a_library_grows_against_an_adversary_in_python_too():
    mdp = worlds.dirichlet([3, 3], 4, np.random.default_rng(7))
    learner = RFELP([3, 3], 4, 400, share_counts=False, bonus=0.05)
    nothing = [np.zeros((3, 4))] * 2
    compiled = simulate_mdp(learner, mdp, Stochastic(scale=0.0), seed=1)
    python = simulate_mdp(learner, mdp, lambda t, last, q, rng: nothing, seed=1)
    assert np.array_equal(compiled.reach, python.reach)
    assert python.explored[0] == 2400


def test_what_an_adversary_in_python_sees():
    seen = []

    def watch(t, last, q, rng):
        seen.append((t, last, q, rng.random()))
        for table in q:
            table[:] = np.nan  # a copy: nobody minds
        return [np.zeros((2, 2)), np.ones((3, 2))]

    runs = [simulate_mdp(UniformPolicy([2, 3], 2), MDP, watch, 5, seed=s) for s in (11, 11, 12)]
    found = [float(run.pseudo_regret[0, -1]) for run in runs]
    assert found == pytest.approx([0.0] * 3, abs=1e-15)
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
    with pytest.raises(TypeError, match=r"adversary must take \(t, last, q, rng\), and <function"):
        simulate_mdp(UniformPolicy([2, 3], 2), MDP, lambda t, last: [], 3)
