"""PolicyOptimization: against a slow implementation, and what is special about it."""

import numpy as np
import pytest

from mdp_play import paid, play, random_losses, state_of, walk
from saved_helpers import buffer_of, with_buffer
from slow_policy_optimization import SlowPolicyOptimization
from unbounded import PolicyOptimization, UniformPolicy, simulate_mdp, worlds
from unbounded.adversaries.mdps import Hide, QuietLure, Stochastic

MDP = worlds.dirichlet([2, 3, 2], 2, np.random.default_rng(0))
CONSTANTS = ("rate", "implicit", "bonus", "mixing")


def slow_of(learner):
    given = learner.settings
    return SlowPolicyOptimization(
        learner.layers.sizes, learner.layers.n_actions, given["clip"], given["rate"],
        given["implicit"], given["bonus"], given["mixing"],
    )  # fmt: skip


def largest_difference(learner, slow):
    tables = learner.policy().tables
    return max(np.max(np.abs(tables[h] - np.array(pi))) for h, pi in enumerate(slow.pi))


@pytest.mark.parametrize(
    "settings",
    [{}, {"clip": "scale"}, {"rate": 2.0, "implicit": 0.1, "bonus": 0.5, "mixing": 0.1}],
    ids=["default", "scale", "other constants"],
)
def test_agrees_with_a_slow_implementation(settings):
    learner = PolicyOptimization(MDP.layers.sizes, 2, seed=1, **settings)
    slow = slow_of(learner)
    losses = random_losses(MDP.layers, 120, seed=2)
    losses[:3] = 0.0
    losses[60:] *= 50.0

    def before(learner, plan, states, actions, seen):
        assert largest_difference(learner, slow) <= 1e-9
        slow.learn(states.tolist(), actions.tolist(), seen.tolist())

    play(learner, MDP, losses, seed=3, before=before)
    assert np.ptp(learner.policy().pi[1:]) > 0.2  # something was learned


def test_the_slow_implementation_notices_another_constant():
    learner = PolicyOptimization(MDP.layers.sizes, 2, seed=1)
    slow = slow_of(learner)
    slow.bonus *= 1.01

    def before(learner, plan, states, actions, seen):
        slow.learn(states.tolist(), actions.tolist(), seen.tolist())

    play(learner, MDP, random_losses(MDP.layers, 60, seed=2), seed=3, before=before)
    assert largest_difference(learner, slow) > 1e-5


def test_layers_of_very_different_scales_learn_alike():
    """Each layer has its own unit: the last one learns at 2^-700 as at 1."""
    losses = random_losses(MDP.layers, 150, seed=4)
    tables = []
    for k in (0, -700):
        scaled = losses.copy()
        scaled[:, MDP.layers.index(3, 0) :] *= 2.0**k
        learner = PolicyOptimization(MDP.layers.sizes, 2, seed=5)
        rng = np.random.default_rng(6)
        for row in scaled:  # whatever the learner likes, all actions are tried
            plan = learner.ask()
            states = [int(rng.integers(n)) for n in MDP.layers.sizes]
            actions = [int(rng.integers(2)) for _ in states]
            learner.tell(plan, states, actions, paid(MDP.layers, row, np.array(states), actions))
        tables.append(learner.policy().tables)
    assert np.max(np.abs(tables[0][0] - tables[1][0])) > 1e-3  # it no longer sees the last layer
    assert np.ptp(tables[1][2]) > 0.05
    # the last layer sees how often it is reached, and that hardly differs
    assert np.allclose(tables[0][2], tables[1][2], atol=0.05)


def test_it_grows_when_more_transitions_are_seen_than_fit():
    mdp = worlds.dirichlet([6, 6, 6], 2, np.random.default_rng(7))
    learner = PolicyOptimization(mdp.layers.sizes, 2, seed=8)
    room = state_of(learner).seen.M.size
    play(learner, mdp, random_losses(mdp.layers, 300, seed=9), seed=10)
    seen = state_of(learner).seen
    assert learner.transitions_seen == seen.size > room
    assert seen.M.sum() == 900
    restored = PolicyOptimization.load(learner.save())
    assert restored.transitions_seen == learner.transitions_seen
    assert np.array_equal(restored.policy().pi, learner.policy().pi)


def test_memory_goes_by_what_was_seen():
    learner = PolicyOptimization([400] * 4, 5, seed=0)  # 2.4 million transitions are possible
    assert learner._buffer.size < 20 * learner.layers.n_pairs
    rng = np.random.default_rng(0)
    for _ in range(3):
        plan = learner.ask()
        states = rng.integers(400, size=4)
        actions = [plan.act(h, int(s)) for h, s in enumerate(states)]
        learner.tell(plan, states, actions, rng.random(4))
    assert learner.transitions_seen == 12
    assert np.all(np.isfinite(learner.policy().pi))


def test_the_bonus_finds_what_clipping_to_the_range_hides():
    """The way to the deep state costs; then it pays, when all else costs the layer's least loss."""
    lock = worlds.combination_lock(3, 2, np.random.default_rng(72))
    T, regret = 4000, {}
    for bonus in (2.0, 1e-9):
        learner = PolicyOptimization(lock.layers.sizes, 2, bonus=bonus)
        result = simulate_mdp(learner, lock, QuietLure(), T, 4, seed=11, checkpoints=[T])
        regret[bonus] = result.minimax_regret(pseudo=True)[:, -1].mean()
    assert regret[2.0] < 0.5 * regret[1e-9]


def test_explicit_exploration_finds_pay_beyond_the_range_of_its_layer():
    """An action leads away from where the last layer pays; it may pay even so, and who would know?

    Without mixing some runs of the lock never see it, and their regret is linear.
    """
    lock = worlds.combination_lock(8, 3, np.random.default_rng(75))
    T, regret = 6000, {}
    for mixing in (0.5, 1e-9):
        learner = PolicyOptimization(lock.layers.sizes, 3, mixing=mixing)
        result = simulate_mdp(learner, lock, Hide(), T, 4, seed=5, checkpoints=[T])
        regret[mixing] = result.minimax_regret(pseudo=True)[:, -1].mean()
    assert regret[0.5] < 0.5 * regret[1e-9]


def test_learns_in_an_mdp_of_many_states():
    mdp = worlds.dirichlet([1, 30, 30], 3, np.random.default_rng(12), concentration=0.1)
    T, sizes = 3000, mdp.layers.sizes
    ours, uniform = (
        simulate_mdp(learner, mdp, Stochastic(), T, 2, seed=13, checkpoints=[T]).pseudo_regret
        for learner in (PolicyOptimization(sizes, 3), UniformPolicy(sizes, 3))
    )
    assert ours.mean() < 0.6 * uniform.mean()


@pytest.mark.parametrize("name", CONSTANTS)
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), "much"])
def test_constants_must_be_positive(name, value):
    with pytest.raises((ValueError, TypeError), match=name):
        PolicyOptimization([2], 2, **{name: value})


@pytest.mark.parametrize("constant", [1e-9, 1e6])
@pytest.mark.parametrize("name", CONSTANTS)
def test_extreme_constants_give_policies(name, constant):
    learner = PolicyOptimization(MDP.layers.sizes, 2, seed=1, **{name: constant})
    policies, _ = play(learner, MDP, random_losses(MDP.layers, 60, seed=2, scale=1e300), seed=3)
    assert np.all(np.isfinite(policies))


def test_one_action_and_one_state():
    learner = PolicyOptimization([1, 1], 1, seed=0)
    for loss in (1.0, -1e300, 5e-324):
        learner.tell(learner.ask(), [0, 0], [0, 0], [loss, -loss])
    assert learner.policy().pi.tolist() == [1.0, 1.0, 1.0]


def test_unreachable_states_do_no_harm():
    lock = worlds.combination_lock(4, 2, np.random.default_rng(1))
    learner = PolicyOptimization(lock.layers.sizes, 2, seed=2)
    rng = np.random.default_rng(3)
    for _ in range(200):
        plan = learner.ask()
        states, actions = walk(lock, plan, rng.random(4))
        learner.tell(plan, states, actions, np.arange(4.0) * actions)
    assert learner.policy().tables[3][1, 0] > 0.8


@pytest.mark.parametrize("field", ["state.R", "state.e"])
@pytest.mark.parametrize("episodes", [0, 20])
def test_a_save_whose_unit_fits_no_window_is_rejected(field, episodes):
    """Its next policies would be NaN."""
    learner = PolicyOptimization(MDP.layers.sizes, 2, seed=1)
    play(learner, MDP, random_losses(MDP.layers, episodes, seed=2), seed=3)
    text = learner.save()
    PolicyOptimization.load(text)
    buffer = buffer_of(text)
    entries = PolicyOptimization.spec.packing._entries(buffer, field)
    entries[-1] = 1000.0 if field == "state.e" else 0.75
    with pytest.raises(ValueError, match="no such unit"):
        PolicyOptimization.load(with_buffer(text, buffer))
