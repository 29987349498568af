"""MVP, UCBVI, RF-ELP and RF-ELP-ES: against a slow implementation, and what they reach."""

import math

import numpy as np
import pytest

from mdp_play import play, reach, reached
from unbounded import worlds
from unbounded.core.occupancy.layout import STATE
from unbounded.core.occupancy.mdp import LayeredMDP, simulate_episode
from unbounded.mdps import mvp, rf_elp
from unbounded.mdps.scb_rl import SCBRL
from unbounded.mdps.seekers import MVP, RFELP

LOCK3 = worlds.combination_lock(3, 2, np.random.default_rng(1))
LOCK5 = worlds.combination_lock(5, 3, np.random.default_rng(2))


def explore(mdp, seed=0, **settings):
    learner = RFELP(mdp.layers.sizes, mdp.layers.n_actions, seed=seed, **settings)
    rng = np.random.default_rng(seed)
    H = mdp.layers.horizon
    while not learner.done:
        plan = learner.ask()
        words = rng.bit_generator.random_raw(2 * H)
        states, actions = simulate_episode(mdp, plan._pi, words)
        learner.tell(plan, states, actions, np.zeros(H))
    return learner


class SlowMVP:
    """MVP for one target, from its description, on dictionaries."""

    def __init__(self, sizes, A, bonus, layer, target):
        self.sizes, self.A, self.bonus = sizes, A, bonus
        self.layer, self.target = layer, target
        self.visits = {}
        self.batch = {}
        self.model = {}

    def observe(self, states, actions):
        for h in range(len(self.sizes)):
            pair = (h + 1, int(states[h]), int(actions[h]))
            self.visits[pair] = self.visits.get(pair, 0) + 1
            after = int(states[h + 1]) if h + 1 < len(self.sizes) else None
            self.batch.setdefault(pair, []).append(after)
            if math.log2(self.visits[pair]) % 1 == 0:
                self.model[pair] = self.batch.pop(pair)

    def values(self):
        b = self.bonus
        V = [1.0 if s == self.target else 0.0 for s in range(self.sizes[self.layer - 1])]
        Q = {}
        for h in range(self.layer - 1, 0, -1):
            V_here = []
            for s in range(self.sizes[h - 1]):
                for a in range(self.A):
                    seen = self.model.get((h, s, a))
                    if not seen:
                        Q[h, s, a] = b.B
                        continue
                    v = np.array([V[j] for j in seen])
                    n = len(seen)
                    width = b.c1 * np.sqrt(v.var() * b.log_term / n) + b.c3 * b.log_term / n
                    Q[h, s, a] = min(b.B, v.mean() + width)
                V_here.append(max(Q[h, s, a] for a in range(self.A)))
            V = V_here
        return Q


@pytest.mark.parametrize("constant", [0.05, 0.3])
def test_mvp_agrees_with_a_slow_implementation(constant):
    rng = np.random.default_rng(3)
    mdp = worlds.dirichlet([2, 3, 3], 2, rng)
    layers = mdp.layers
    bonus = mvp.practical_bonus(layers, 500, 0.1, constant)
    slow = SlowMVP(layers.sizes, 2, bonus, layer=3, target=1)
    model = mvp.Model(*(np.zeros(n) for n in mvp.sizes(layers).values()))
    lay, zeros = layers.table, np.zeros(3)
    mvp.plan(lay, bonus, model, 3, 1)
    compared = 0
    for _ in range(300):
        pi = np.empty(layers.n_pairs)
        mvp.fill_policy(lay, model.choice, 3, pi)
        words = rng.bit_generator.random_raw(6)
        states, actions = simulate_episode(mdp, pi, words)
        slow.observe(states, actions)
        if mvp.observe(lay, bonus.kind, model, states, actions, zeros):
            mvp.plan(lay, bonus, model, 3, 1)
            Q = slow.values()
            for (h, s), value in {k[:2]: 0.0 for k in Q}.items():
                options = [Q[h, s, a] for a in range(2)]
                at = lay[STATE, h] + s
                assert model.V[at] == pytest.approx(max(options), abs=1e-12)
                if abs(options[0] - options[1]) > 1e-9:
                    assert model.choice[at] == np.argmax(options)
                    compared += 1
                elif options[0] == options[1]:  # ties: the action played less
                    counts = [slow.visits.get((h, s, a), 0) for a in range(2)]
                    assert model.choice[at] == np.argmin(counts)
                del value
    assert compared > 20


@pytest.mark.parametrize("kind", ["mvp", "paper", "ucbvi"])
def test_values_with_rewards_are_those_of_the_formulas(kind):
    rng = np.random.default_rng(7)
    mdp = worlds.dirichlet([2, 3], 2, rng)
    layers, lay = mdp.layers, mdp.layers.table
    B = 2.0
    bonus = {
        "mvp": mvp.practical_bonus(layers, 400, 0.1, 0.05, B),
        "paper": mvp.paper_bonus(layers, 400, 0.1, B)._replace(log_term=1e-2),  # below saturation
        "ucbvi": mvp.ucbvi_bonus(layers, 400, 0.1, 0.02, B),
    }[kind]
    model = mvp.Model(*(np.zeros(n) for n in mvp.sizes(layers).values()))
    seen, used = {}, {}  # (reward, next state) of every visit, and of those in the model
    uniform = np.concatenate([[1.0], np.full(layers.n_pairs - 1, 0.5)])
    for _ in range(200):
        states, actions = simulate_episode(mdp, uniform, rng.bit_generator.random_raw(4))
        rewards = rng.random(2)
        renewed = False
        for h in range(2):
            pair = (h + 1, int(states[h]), int(actions[h]))
            visits = seen.setdefault(pair, [])
            visits.append((rewards[h], int(states[1]) if h == 0 else None))
            n = len(visits)
            if n & (n - 1) == 0:
                used[pair] = visits[:] if kind == "ucbvi" else visits[n // 2 :]
                renewed = True
        assert mvp.observe(lay, bonus.kind, model, states, actions, rewards) == renewed
        if not renewed:
            continue
        mvp.plan(lay, bonus, model, 0, 0)
        V = {}
        for h, n_states in ((2, 3), (1, 2)):
            for s in range(n_states):
                Q = []
                for a in range(2):
                    if (h, s, a) not in used:
                        Q.append(B)
                        continue
                    r, after = zip(*used[h, s, a], strict=True)
                    v = np.array([V[2, j] if h == 1 else 0.0 for j in after])
                    L = bonus.log_term / len(r)
                    if kind == "ucbvi":
                        b = bonus.c1 * B * bonus.log_term / np.sqrt(len(r))
                    else:
                        b = bonus.c1 * np.sqrt(v.var() * L) + bonus.c2 * np.sqrt(np.var(r) * L)
                        b += bonus.c3 * B * L
                    Q.append(min(B, np.mean(r) + v.mean() + b))
                V[h, s] = max(Q)
                assert model.V[lay[STATE, h] + s] == pytest.approx(V[h, s], abs=1e-12)
    assert min(V.values()) < B


@pytest.mark.parametrize("explorer", ["mvp", "ucbvi"])
def test_mvp_finds_the_best_policy_for_stochastic_rewards(explorer):
    rng = np.random.default_rng(4)
    mdp = worlds.dirichlet([2, 3], 2, rng)
    rewards = rng.random(mdp.layers.n_pairs) / 2
    learner = MVP([2, 3], 2, 3000, bonus=0.05, explorer=explorer, seed=1)
    coins = rng.random((3000, mdp.layers.n_pairs)) < rewards
    play(learner, mdp, -0.5 * coins, seed=2)
    from unbounded.core.occupancy.policies import best_policy, occupancy

    best, _ = best_policy(mdp, -0.5 * rewards)
    assert occupancy(mdp, learner.policy())[1:] @ (-0.5 * rewards)[1:] <= best + 0.05


def test_mvp_wants_rewards_in_its_range():
    learner = MVP([1], 2, 10, seed=0)
    plan = learner.ask()
    with pytest.raises(ValueError, match="at most total = 1 in an episode"):
        learner.tell(plan, [0], [0], rewards=[2.0])
    with pytest.raises(ValueError, match="losses are minus rewards"):
        learner.tell(plan, [0], [0], losses=[0.5])
    learner.tell(plan, [0], [0], losses=[-0.5])
    learner = MVP([1, 1], 2, 10, total=2.0, seed=0)
    plan = learner.ask()
    with pytest.raises(ValueError, match="at most total = 2 in an episode"):
        learner.tell(plan, [0, 0], [0, 0], rewards=[1.5, 1.5])


@pytest.mark.parametrize("mdp", [LOCK3, LOCK5], ids=["lock3", "lock5"])
def test_rf_elp_reaches_every_state(mdp):
    learner = explore(mdp, episodes=300)
    ratio = reached(mdp, learner.policies()) / reach(mdp)
    assert ratio.min() >= 0.5
    assert learner.episodes_used == 300 * sum(mdp.layers.sizes)


def test_ucbvi_reaches_every_state():
    learner = explore(LOCK3, episodes=400, explorer="ucbvi", bonus=0.3)
    assert (reached(LOCK3, learner.policies()) / reach(LOCK3)).min() >= 0.5


def test_rf_elp_without_sharing_reaches_every_state():
    learner = explore(LOCK3, episodes=1000, share_counts=False, bonus=0.3)
    assert (reached(LOCK3, learner.policies()) / reach(LOCK3)).min() >= 0.5


def test_paper_constants_saturate():
    """MVP's own constants: every value is 1 until counts reach thousands, so nothing is learned."""
    mdp = worlds.hard_to_reach([2, 3, 3], 2, np.random.default_rng(6), reach=0.1)
    for constants, saturated in (("paper", True), ("practical", False)):
        learner = RFELP([2, 3, 3], 2, 500, constants=constants, share_counts=False, seed=0)
        rng = np.random.default_rng(0)
        for _ in range(500 * 8 - 1):  # the last state's last episode is not told
            plan = learner.ask()
            states, actions = simulate_episode(mdp, plan._pi, rng.bit_generator.random_raw(6))
            learner.tell(plan, states, actions, np.zeros(3))
        optimistic = learner._state.model.V[1 : 1 + 2 + 3]  # of the layers before the target's
        assert np.all(optimistic == 1.0) == saturated


def test_a_state_that_is_hard_or_impossible_to_reach_does_no_harm():
    for r in (0.0, 1e-3):
        mdp = worlds.hard_to_reach([2, 3, 3], 2, np.random.default_rng(5), reach=r)
        learner = explore(mdp, episodes=150, early_stop=16)
        best = reach(mdp)
        got = reached(mdp, learner.policies())
        easy = best > 0.05
        assert easy.sum() >= 7
        assert np.all(got[easy] >= 0.5 * best[easy])
        assert learner.episodes_used <= 8 * 150


def test_early_stopping_does_not_depend_on_the_budget():
    used = [explore(LOCK3, episodes=N, early_stop=16).episodes_used for N in (500, 5000)]
    assert used[0] <= used[1] <= used[0] + 40  # the bonus has ln N in it
    assert used[1] < 0.1 * 5000


def test_policies_play_uniformly_at_their_target():
    for (h, s), mixture in explore(LOCK3, episodes=40).policies().items():
        assert np.sum(mixture.weights) == pytest.approx(1.0)
        for policy in mixture.policies:
            assert policy.tables[h][s].tolist() == [0.5, 0.5]


def test_there_are_few_distinct_policies():
    learner = explore(LOCK5, episodes=200)
    S, A = 9, 3
    count = sum(len(m.policies) for m in learner.policies().values())
    assert count <= S * (1 + S * A * (1 + math.log2(200 * S)))
    weights = learner._state.library.weight
    assert weights.sum() == pytest.approx(1.0)


def test_the_oracle_reaches_every_state_as_often_as_possible():
    mdp = worlds.dirichlet([2, 3, 2], 3, np.random.default_rng(6))
    learner = SCBRL([2, 3, 2], 3, 50, explorer="oracle", transitions=mdp.P, seed=0)
    assert learner.phase == "playing"
    assert reached(mdp, learner.explorers()) == pytest.approx(reach(mdp), abs=1e-12)


def test_the_library_grows():
    """More policies than fit at first: nothing is lost, and a saved learner still resumes."""
    mdp = worlds.dirichlet([3, 3], 4, np.random.default_rng(7))
    learner = RFELP([3, 3], 4, 400, share_counts=False, bonus=0.05, seed=3)
    rng = np.random.default_rng(8)
    copy = None
    while not learner.done:
        plan = learner.ask()
        states, actions = simulate_episode(mdp, plan._pi, rng.bit_generator.random_raw(4))
        learner.tell(plan, states, actions, [0.0, 0.0])
        if copy is not None:
            plan = copy.ask()
            copy.tell(plan, states, actions, [0.0, 0.0])
        elif learner.episodes_told == 1500:
            copy = RFELP.load(learner.save())
    assert learner._capacity > 32
    assert copy is not None
    a, b = learner._state, copy._state
    assert np.array_equal(a.head, b.head)
    n = int(a.head[rf_elp.LIBRARY])
    assert np.array_equal(a.library.weight[:n], b.library.weight[:n])
    assert a.library.weight[:n].sum() == pytest.approx(1.0)


def test_one_action_one_state():
    mdp = LayeredMDP([1.0], [[[[1.0]]]])
    learner = explore(mdp, episodes=3)
    assert reached(mdp, learner.policies()).tolist() == [1.0, 1.0]
