"""RF-ELP and RF-ELP-ES: how they go on from state to state, and what they reach."""

import math

import numpy as np
import pytest

from mdp_play import explore, params_of, reach, reached, state_of, walk
from unbounded import RFELP, simulate_mdp, worlds
from unbounded.adversaries.mdps import Stochastic
from unbounded.core.occupancy.layout import Layers
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.mdps import mvp, ucbvi

LOCK3 = worlds.combination_lock(3, 2, np.random.default_rng(1))
LOCK5 = worlds.combination_lock(5, 3, np.random.default_rng(2))


def explored(mdp, seed=0, **settings):
    learner = RFELP(mdp.layers.sizes, mdp.layers.n_actions, seed=seed, **settings)
    return explore(learner, mdp, seed)


@pytest.mark.parametrize("mdp", [LOCK3, LOCK5], ids=["lock3", "lock5"])
def test_reaches_every_state(mdp):
    learner = explored(mdp, episodes=300)
    ratio = reached(mdp, learner.explorers()) / reach(mdp)
    assert ratio.min() >= 0.5
    assert learner.episodes_explored == 300 * sum(mdp.layers.sizes)


def test_with_ucbvi_it_reaches_every_state():
    learner = explored(LOCK3, episodes=400, explorer="ucbvi", bonus=0.3)
    assert (reached(LOCK3, learner.explorers()) / reach(LOCK3)).min() >= 0.5


def test_without_sharing_it_reaches_every_state():
    learner = explored(LOCK3, episodes=1000, share_counts=False, bonus=0.3)
    assert (reached(LOCK3, learner.explorers()) / reach(LOCK3)).min() >= 0.5


@pytest.mark.parametrize("share", [True, False])
def test_counts_are_shared_or_forgotten(share):
    mdp = worlds.dirichlet([2, 3], 2, np.random.default_rng(3))
    learner = RFELP([2, 3], 2, 10, share_counts=share, seed=0)
    rng = np.random.default_rng(4)
    for t in range(1, 50):
        plan = learner.ask()
        states, actions = walk(mdp, plan, rng.random(2))
        learner.tell(plan, states, actions, [0.0, 0.0])
        visits = state_of(learner).model.N_all.sum()
        assert visits == 2 * (t if share else t % 10)


def test_each_state_takes_its_episodes_in_turn():
    learner = RFELP([1, 2], 2, 4, seed=0)
    sought = []
    while not learner.done:
        sought.append(learner.exploring)
        plan = learner.ask()
        learner.tell(plan, [0, 0], [plan.act(0, 0), 0], [0.0, 0.0])
    assert sought == [(0, 0)] * 4 + [(1, 0)] * 4 + [(1, 1)] * 4
    assert learner.exploring is None
    assert learner.episodes_explored == 12
    assert learner.made_for == 12


def test_e26_early_stopping_at_the_first_episode_with_enough_visits():
    """The first M with m visits; the printed argmin over M of the same thing is no number."""
    learner = RFELP([1, 2], 2, 100, early_stop=3, seed=0)
    rng = np.random.default_rng(5)
    visits, spent, order = 0, 0, []
    while not learner.done:
        target = learner.exploring
        plan = learner.ask()
        states = [0, int(rng.random() < 0.3)]  # whatever is played
        learner.tell(plan, states, [plan.act(0, 0), 0], [0.0, 0.0])
        visits += states[target[0]] == target[1]
        spent += 1
        assert (learner.exploring != target) == (visits == 3)
        if learner.exploring != target:
            order.append(spent)
            visits = spent = 0
    assert order[0] == 3
    assert order[2] > 3
    assert learner.episodes_explored == sum(order) < 300


def test_e26_the_confidence_is_for_the_cap_and_not_for_the_stopping_time():
    with_, without = (RFELP([1, 2], 2, 100, early_stop=m) for m in (3, 0))
    assert params_of(with_).goal.bonus == params_of(without).goal.bonus
    assert params_of(RFELP([1, 2], 2, 200, early_stop=3)).goal.bonus != params_of(with_).goal.bonus


def test_e26_the_mixture_is_uniform_over_the_episodes_played():
    """A policy that was played in k of M episodes has weight k/M; of all, k/(M S)."""
    mdp = worlds.dirichlet([2, 3], 2, np.random.default_rng(6))
    learner = RFELP([2, 3], 2, 30, early_stop=9, bonus=0.05, seed=0)
    rng = np.random.default_rng(7)
    played = {}
    while not learner.done:
        plan = learner.ask()
        played.setdefault(learner.exploring, []).append(plan.component)
        states, actions = walk(mdp, plan, rng.random(2))
        learner.tell(plan, states, actions, [0.0, 0.0])
    library = state_of(learner).library
    several = 0
    for target, mixture in learner.explorers().items():
        numbers, counts = np.unique(played[target], return_counts=True)
        M = len(played[target])
        several += len(numbers) > 1
        for k, count in zip(numbers, counts, strict=True):
            assert library.weight[k] == pytest.approx(count / (M * 5), rel=1e-15)
        weights = [w for w in mixture.weights if w > 0]
        assert sorted(weights) == pytest.approx(sorted(counts / M), rel=1e-14)
    assert several > 0
    assert library.weight[: library.size].sum() == pytest.approx(1.0, rel=1e-14)


def test_e33_each_state_has_its_share_of_delta():
    """The lemma is for one state, and Theorem 3 needs it for all at once."""
    layers = Layers([2, 3], 2)
    bonus = params_of(RFELP([2, 3], 2, 40, 0.1)).goal.bonus
    assert bonus == mvp.practical_bonus(layers, 40, 0.1 / 5)
    assert params_of(RFELP([2, 3], 2, 40, 0.1)).goal.bonus != mvp.practical_bonus(layers, 40, 0.1)
    paper = params_of(RFELP([2, 3], 2, 40, 0.1, constants="paper")).goal.bonus
    assert paper == mvp.paper_bonus(layers, 40, 0.1 / 5)
    other = params_of(RFELP([2, 3], 2, 40, 0.1, explorer="ucbvi", bonus=0.2)).goal.bonus
    assert other == ucbvi.hoeffding_bonus(layers, 40, 0.1 / 5, 0.2)


def test_e24_the_total_reward_of_a_search_is_at_most_one():
    """RF-ELP's reward is 1 at the target and 0 elsewhere, so B = 1 and not H."""
    for settings in ({}, {"constants": "paper"}, {"explorer": "ucbvi"}):
        assert params_of(RFELP([2, 3, 2], 2, 40, **settings)).goal.bonus.B == 1.0


def test_e33_policies_play_uniformly_at_their_target_in_every_component():
    for (h, s), mixture in explored(LOCK3, episodes=40).explorers().items():
        assert np.sum(mixture.weights) == pytest.approx(1.0)
        for policy in mixture.policies:
            assert policy.tables[h][s].tolist() == [0.5, 0.5]


def test_e27_how_often_a_state_is_visited():
    """Every 2 S/(beta q) episodes: the explorer of s has the share beta/S and reaches s with q/2
    at least. With q inside the root, as printed, the number would be too small."""
    S, A, T = 9, 3, 100_000
    learner = explored(LOCK5, episodes=200)
    q, got = reach(LOCK5), reached(LOCK5, learner.explorers())
    beta = math.sqrt(S * A / T)
    assert np.all(got >= q / 2)
    assert np.all(1 / (beta / S * got) <= 2 * math.sqrt(S * T / A) / q)
    rare = 0.01  # a state that is reached with this probability at most
    visited = beta / S * rare  # per episode, even by its best explorer
    assert 1 / visited > 2 * math.sqrt(S * T / (A * rare))
    assert 1 / visited <= 2 * math.sqrt(S * T / A) / rare


def test_the_papers_constants_saturate():
    """MVP's own constants: every value is 1 until counts reach thousands, so nothing is learned."""
    mdp = worlds.hard_to_reach([2, 3, 3], 2, np.random.default_rng(6), reach=0.1)
    for constants, saturated in (("paper", True), ("practical", False)):
        learner = RFELP([2, 3, 3], 2, 500, constants=constants, share_counts=False, seed=0)
        rng = np.random.default_rng(0)
        for _ in range(500 * 8 - 1):  # the last state's last episode is not told
            plan = learner.ask()
            states, actions = walk(mdp, plan, rng.random(3))
            learner.tell(plan, states, actions, np.zeros(3))
        optimistic = state_of(learner).model.V[1 : 1 + 2 + 3]  # of the layers before the target's
        assert np.all(optimistic == 1.0) == saturated


def test_a_state_that_is_hard_or_impossible_to_reach_does_no_harm():
    for r in (0.0, 1e-3):
        mdp = worlds.hard_to_reach([2, 3, 3], 2, np.random.default_rng(5), reach=r)
        learner = explored(mdp, episodes=150, early_stop=16)
        best = reach(mdp)
        got = reached(mdp, learner.explorers())
        easy = best > 0.05
        assert easy.sum() >= 7
        assert np.all(got[easy] >= 0.5 * best[easy])
        assert learner.episodes_explored <= 8 * 150


def test_early_stopping_does_not_depend_on_the_budget():
    used = [explored(LOCK3, episodes=N, early_stop=16).episodes_explored for N in (500, 5000)]
    assert used[0] <= used[1] <= used[0] + 40  # the bonus has ln N in it
    assert used[1] < 0.1 * 5000


def test_there_are_few_distinct_policies():
    learner = explored(LOCK5, episodes=200)
    S, A = 9, 3
    count = sum(len(m.policies) for m in learner.explorers().values())
    assert count <= S * (1 + S * A * (1 + math.log2(200 * S)))
    library = state_of(learner).library
    assert count == library.size
    assert library.weight.sum() == pytest.approx(1.0)
    before = [slice(1, 1 + sum(LOCK5.layers.sizes[:h])) for h in range(5)]
    for number in range(S):  # those of one state differ before its layer
        h = np.searchsorted(np.cumsum(LOCK5.layers.sizes), number, side="right")
        own = np.flatnonzero(library.target[: library.size] == number)
        rows = {tuple(library.choice[k * 10 : k * 10 + 10][before[h]]) for k in own}
        assert len(rows) == len(own)


def test_when_all_states_are_done_policies_are_drawn():
    learner = explored(LOCK3, episodes=10)
    library = state_of(learner).library
    drawn = []
    for _ in range(400):
        plan = learner.ask()
        drawn.append(plan.component)
        learner.forget(plan)
    share = np.bincount(drawn, minlength=library.size) / 400
    assert np.all(np.abs(share - library.weight[: library.size]) < 5 * 0.5 / 20)
    plan = learner.ask()
    learner.tell(plan, [0, 0, 0], [0, 0, 0], [0.0, 0.0, 0.0])
    assert learner.episodes_explored == 50
    assert learner.episodes_told == 51


def growing(seed=3):
    return RFELP([3, 3], 4, 400, share_counts=False, bonus=0.05, seed=seed)


def test_the_library_grows():
    """More policies than fit at first: nothing is lost, and a saved learner still resumes."""
    mdp = worlds.dirichlet([3, 3], 4, np.random.default_rng(7))
    learner, copy = growing(), None
    first = state_of(learner).library.weight.size
    rng = np.random.default_rng(8)
    seen = {}
    while not learner.done:
        plan = learner.ask()
        states, actions = walk(mdp, plan, rng.random(2))
        policy = seen.setdefault((learner.exploring, plan.component), plan.policy)
        assert all(map(np.array_equal, policy, plan.policy))
        learner.tell(plan, states, actions, [0.0, 0.0])
        if copy is not None:
            copy.tell(copy.ask(), states, actions, [0.0, 0.0])
        elif state_of(learner).library.weight.size > first:
            copy = RFELP.load(learner.save())
    a, b = state_of(learner), state_of(copy)
    assert a.library.size > first == 32
    assert a.library.weight.size >= 2 * first
    assert a.progress == b.progress
    for one, other in zip(a.library, b.library, strict=True):
        assert np.array_equal(one, other)
    assert a.library.weight.sum() == pytest.approx(1.0)
    found = learner.explorers()
    for (target, _), policy in seen.items():  # whatever was played is still there
        tables = [p.tables for p in found[target].policies]
        assert any(all(map(np.array_equal, policy, other)) for other in tables)


def test_the_library_grows_in_the_simulator_too():
    mdp = worlds.dirichlet([3, 3], 4, np.random.default_rng(7))
    result = simulate_mdp(growing(), mdp, Stochastic(), seed=2, checkpoints=[2400])
    by_hand = growing(seed=result.seed(0))
    assert by_hand.made_for == 2400
    assert result.explored[0] == 2400
    assert result.reach[0] > 0.5


def test_one_action_one_state():
    mdp = LayeredMDP([1.0], [[[[1.0]]]])
    learner = explored(mdp, episodes=3)
    assert reached(mdp, learner.explorers()).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"episodes": 0}, "episodes"),
        ({"early_stop": -1}, "early_stop"),
        ({"explorer": "x"}, "explorer must be one of 'mvp', 'ucbvi'"),
        ({"constants": "x"}, "constants must be one of"),
        ({"delta": 0.0}, "delta"),
        ({"bonus": -1.0}, "bonus"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        RFELP(**{"layers": [1], "n_actions": 2, "episodes": 5} | settings)
