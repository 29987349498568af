"""UCBVI: its bonus, and its values against the formula."""

import math

import numpy as np
import pytest

from mdp_play import params_of, play
from unbounded import UCBVI, worlds
from unbounded.core.occupancy.layout import STATE, Layers
from unbounded.core.occupancy.mdp import best_policy, occupancy
from unbounded.mdps import ucbvi
from unbounded.mdps.steps.optimism import new_model


def test_values_are_those_of_the_formula():
    """The model is made of all visits, renewed when they reach a power of two."""
    rng = np.random.default_rng(7)
    mdp = worlds.dirichlet([2, 3], 2, rng)
    layers, lay = mdp.layers, mdp.layers.table
    B = 2.0
    bonus = ucbvi.hoeffding_bonus(layers, 400, 0.1, 0.02, B)
    model = new_model(layers)
    seen, used = {}, {}  # (reward, next state) of every visit, and of those in the model
    for _ in range(200):
        states, actions = rng.integers([2, 3]), rng.integers(2, size=2)
        rewards = rng.random(2)
        renewed = False
        for h in range(2):
            pair = (h + 1, int(states[h]), int(actions[h]))
            visits = seen.setdefault(pair, [])
            visits.append((rewards[h], int(states[1]) if h == 0 else None))
            n = len(visits)
            if n & (n - 1) == 0:
                used[pair] = visits[:]
                renewed = True
        assert ucbvi.observe(lay, model, states, actions, rewards) == renewed
        if not renewed:
            continue
        ucbvi.plan(lay, bonus, model, 0, 0)
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
                    b = bonus.c1 * B * bonus.log_term / np.sqrt(len(r))
                    Q.append(min(B, np.mean(r) + v.mean() + b))
                V[h, s] = max(Q)
                assert model.V[lay[STATE, h] + s] == pytest.approx(V[h, s], abs=1e-12)
    assert min(V.values()) < B


def test_seeking_a_target():
    """The value of a state is the optimistic probability of reaching the target."""
    layers = Layers([1, 2], 2)
    model, bonus = new_model(layers), ucbvi.hoeffding_bonus(layers, 100, 0.1, 1e-3)
    ucbvi.plan(layers.table, bonus, model, 2, 1)
    assert model.V.tolist() == [0.0, 1.0, 0.0, 1.0]
    for action, after in ((0, 0), (1, 1), (0, 0), (1, 0)):
        states, actions = np.array([0, after]), np.array([action, 0])
        ucbvi.observe(layers.table, model, states, actions, np.zeros(2))
    ucbvi.plan(layers.table, bonus, model, 2, 1)
    assert model.choice[1] == 1.0
    assert model.V[1] == pytest.approx(0.5 + 1e-3 * bonus.log_term / math.sqrt(2), rel=1e-14)


def test_the_papers_constants():
    """c = 7 and L = ln(5 S A K/delta), S all states."""
    layers = Layers([2, 5, 3], 4)
    bonus = ucbvi.hoeffding_bonus(layers, 1000, 0.05, B=3.0)
    assert bonus[:3] == (7.0, 0.0, 0.0)
    assert bonus.log_term == pytest.approx(math.log(5 * 10 * 4 * 1000 / 0.05), rel=1e-14)
    assert bonus.B == 3.0


def test_a_learner_has_the_bonus_it_was_asked_for():
    layers = Layers([2, 3], 2)
    learner = UCBVI([2, 3], 2, 700, 0.2, total=1.5, constants="paper", bonus=0.4)
    assert params_of(learner) == ucbvi.hoeffding_bonus(layers, 700, 0.2, 7.0, 1.5)
    learner = UCBVI([2, 3], 2, 700, 0.2, total=1.5, bonus=0.7)
    assert params_of(learner) == ucbvi.hoeffding_bonus(layers, 700, 0.2, 0.7, 1.5)


def test_finds_the_best_policy_for_stochastic_rewards():
    rng = np.random.default_rng(4)
    mdp = worlds.dirichlet([2, 3], 2, rng)
    rewards = rng.random(mdp.layers.n_pairs) / 2
    learner = UCBVI([2, 3], 2, 3000, bonus=0.05, seed=1)
    coins = rng.random((3000, mdp.layers.n_pairs)) < rewards
    play(learner, mdp, -0.5 * coins, seed=2)
    best, _ = best_policy(mdp, -0.5 * rewards)
    assert occupancy(mdp, learner.policy())[1:] @ (-0.5 * rewards)[1:] <= best + 0.05


def test_wants_rewards_in_its_range():
    learner = UCBVI([1], 2, 10, seed=0)
    plan = learner.ask()
    with pytest.raises(ValueError, match=r"UCBVI needs rewards .* at most total = 1"):
        learner.tell(plan, [0], [0], rewards=[2.0])
    learner.tell(plan, [0], [0], rewards=[0.5])
    with pytest.raises(ValueError, match="constants must be one of"):
        UCBVI([1], 2, 10, constants="x")
