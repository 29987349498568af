"""MVP: its bonus, and its values against a slow implementation."""

import math

import numpy as np
import pytest

from mdp_play import params_of, play, random_losses, walk
from unbounded import MVP, worlds
from unbounded.core.occupancy.layout import STATE, Layers
from unbounded.core.occupancy.mdp import Markov, best_policy, occupancy
from unbounded.mdps import mvp
from unbounded.mdps.steps.explorers import fill_policy
from unbounded.mdps.steps.optimism import new_model


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


def act_on(mdp, pi, rng):
    """States and actions of one episode of a flat policy."""
    tables = mdp.layers.unpack_pairs(pi)

    class Acting:
        def act(self, h, s):
            return int(rng.choice(mdp.layers.n_actions, p=tables[h][s]))

    return walk(mdp, Acting(), rng.random(mdp.layers.horizon))


@pytest.mark.parametrize("constant", [0.05, 0.3])
def test_agrees_with_a_slow_implementation(constant):
    rng = np.random.default_rng(3)
    mdp = worlds.dirichlet([2, 3, 3], 2, rng)
    layers = mdp.layers
    bonus = mvp.practical_bonus(layers, 500, 0.1, constant)
    slow = SlowMVP(layers.sizes, 2, bonus, layer=3, target=1)
    model = new_model(layers)
    lay, zeros = layers.table, np.zeros(3)
    mvp.plan(lay, bonus, model, 3, 1)
    compared = 0
    for _ in range(300):
        pi = np.empty(layers.n_pairs)
        fill_policy(lay, layers.even, model.choice, 3, pi)
        states, actions = act_on(mdp, pi, rng)
        slow.observe(states, actions)
        if not mvp.observe(lay, model, states, actions, zeros):
            continue
        mvp.plan(lay, bonus, model, 3, 1)
        Q = slow.values()
        for h, s in {key[:2] for key in Q}:
            options = [Q[h, s, a] for a in range(2)]
            at = lay[STATE, h] + s
            assert model.V[at] == pytest.approx(max(options), abs=1e-12)
            if abs(options[0] - options[1]) > 1e-9:
                assert model.choice[at] == np.argmax(options)
                compared += 1
            elif options[0] == options[1]:  # ties: the action played less
                counts = [slow.visits.get((h, s, a), 0) for a in range(2)]
                assert model.choice[at] == np.argmin(counts)
    assert compared > 20


@pytest.mark.parametrize("kind", ["practical", "paper"])
def test_values_with_rewards_are_those_of_the_formula(kind):
    """Each batch is the visits since the last renewal; the three terms of the bonus, one by one."""
    rng = np.random.default_rng(7)
    mdp = worlds.dirichlet([2, 3], 2, rng)
    layers, lay = mdp.layers, mdp.layers.table
    B = 2.0
    bonus = mvp.practical_bonus(layers, 400, 0.1, 0.05, B)
    if kind == "paper":
        bonus = mvp.paper_bonus(layers, 400, 0.1, B)._replace(log_term=1e-2)  # below saturation
    model = new_model(layers)
    seen, used = {}, {}  # (reward, next state) of every visit, and of those in the model
    uniform = Markov.uniform(layers).pi
    for _ in range(200):
        states, actions = act_on(mdp, uniform, rng)
        rewards = rng.random(2)
        renewed = False
        for h in range(2):
            pair = (h + 1, int(states[h]), int(actions[h]))
            visits = seen.setdefault(pair, [])
            visits.append((rewards[h], int(states[1]) if h == 0 else None))
            n = len(visits)
            if n & (n - 1) == 0:
                used[pair] = visits[n // 2 :]
                renewed = True
        assert mvp.observe(lay, model, states, actions, rewards) == renewed
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
                    b = bonus.c1 * np.sqrt(v.var() * L) + bonus.c2 * np.sqrt(np.var(r) * L)
                    b += bonus.c3 * B * L
                    Q.append(min(B, np.mean(r) + v.mean() + b))
                V[h, s] = max(Q)
                assert model.V[lay[STATE, h] + s] == pytest.approx(V[h, s], abs=1e-12)
    assert min(V.values()) < B


def test_the_papers_constants():
    """c1 = 460/9, c2 = 2 sqrt(2), c3 = 544/9, ln(200 S A H^2 K^2/delta), S the widest layer's."""
    layers = Layers([2, 5, 3], 4)
    bonus = mvp.paper_bonus(layers, 1000, 0.05, B=3.0)
    assert bonus.c1 == pytest.approx(51.111111, abs=1e-6)
    assert bonus.c2 == pytest.approx(2.828427, abs=1e-6)
    assert bonus.c3 == pytest.approx(60.444444, abs=1e-6)
    assert bonus.log_term == pytest.approx(math.log(200 * 5 * 4 * 3**2 * 1024**2 / 0.05), rel=1e-14)
    assert bonus.B == 3.0
    for K, rounded in ((1, 1), (2, 2), (1024, 1024), (1025, 2048)):
        expected = math.log(200 * 5 * 4 * 9 * rounded**2 / 0.05)
        assert mvp.paper_bonus(layers, K, 0.05).log_term == pytest.approx(expected, rel=1e-14)


def test_the_practical_constants():
    layers = Layers([2, 5, 3], 4)
    bonus = mvp.practical_bonus(layers, 1000, 0.05, 0.4, B=3.0)
    assert bonus[:3] == (0.4, 0.4, 0.4)
    assert bonus.log_term == pytest.approx(math.log(2 * 10 * 4 * 1000 / 0.05), rel=1e-14)
    assert mvp.practical_bonus(layers, 1000, 0.05).c1 == 0.3


def test_a_learner_has_the_bonus_it_was_asked_for():
    layers = Layers([2, 3], 2)
    learner = MVP([2, 3], 2, 700, 0.2, total=1.5, constants="paper")
    assert params_of(learner) == mvp.paper_bonus(layers, 700, 0.2, 1.5)
    learner = MVP([2, 3], 2, 700, 0.2, total=1.5, bonus=0.7)
    assert params_of(learner) == mvp.practical_bonus(layers, 700, 0.2, 0.7, 1.5)


def test_e25_logarithmic_factors_are_parameters():
    """The paper has three values of C. With any of them no state is "well explored": the least
    reach that the guarantee is for, 9 C^2 S A H/N, exceeds 1 even after N = T = 10^9 episodes."""
    S, A, H, T, delta = 10, 2, 3, 1e9, 0.05
    log = math.log
    lemma = log(T) ** 3 * log(S * A) * log(S * A * H * T / delta)
    proof = log(T) ** 4 * log(S * A * H) ** 2 * log(1 / delta)
    appendix = log(T) ** 3 * log(S * A * H) ** 2 * log(1 / delta)
    assert len({lemma, proof, appendix}) == 3
    assert all(9 * C**2 * S * A * H / T > 1 for C in (lemma, proof, appendix))
    layers = Layers([5, 5], 2)
    for c in (0.01, 1.0):
        assert params_of(MVP([5, 5], 2, 100, bonus=c)) == mvp.practical_bonus(layers, 100, 0.05, c)


def test_finds_the_best_policy_for_stochastic_rewards():
    rng = np.random.default_rng(4)
    mdp = worlds.dirichlet([2, 3], 2, rng)
    rewards = rng.random(mdp.layers.n_pairs) / 2
    learner = MVP([2, 3], 2, 3000, bonus=0.05, seed=1)
    coins = rng.random((3000, mdp.layers.n_pairs)) < rewards
    play(learner, mdp, -0.5 * coins, seed=2)
    best, _ = best_policy(mdp, -0.5 * rewards)
    assert occupancy(mdp, learner.policy())[1:] @ (-0.5 * rewards)[1:] <= best + 0.05


def test_given_a_scaled_total_it_plays_the_same():
    mdp = worlds.dirichlet([2, 3], 2, np.random.default_rng(0))
    losses = -np.abs(random_losses(mdp.layers, 120, seed=1)) / 20
    runs = [
        play(MVP([2, 3], 2, 120, total=2.0**k, bonus=0.05, seed=7), mdp, np.ldexp(losses, k), 8)[0]
        for k in (0, -20, 300)
    ]
    assert np.array_equal(runs[0], runs[1])
    assert np.array_equal(runs[0], runs[2])


def test_wants_rewards_in_its_range():
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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"constants": "x"}, "constants must be one of 'practical', 'paper'"),
        ({"bonus": 0.0}, "bonus must be above 0"),
        ({"total": -1.0}, "total must be above 0"),
        ({"delta": 1.0}, "delta must be above 0 and below 1"),
        ({"episodes": 0}, "episodes must be at least 1"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        MVP(**{"layers": [1], "n_actions": 2, "episodes": 10} | settings)
