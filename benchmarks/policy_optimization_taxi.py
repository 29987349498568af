"""Gymnasium's Taxi with tolls, played through the adapter; regret is exact."""

import time

import gymnasium as gym
import numpy as np

from unbounded import PolicyOptimization
from unbounded.adapters.gymnasium import Layered, play

HORIZON, EPISODES, TOLL = 10, 12_000, 5.0
POINTS = [100, 300, 1000, 2000, 3000, 4500, 6000, 7500, 9000, 10_500, 12_000]


def toll(t):
    """The cost of each action in episode ``t`` = 1, 2, ...: a direction that changes four times."""
    costs = np.zeros(6)
    costs[4 * (t - 1) // EPISODES] = TOLL
    return costs


class Tolls(gym.Wrapper):
    """Every move in one direction costs more, another one in each quarter of the episodes."""

    t = 0

    def reset(self, **given):
        self.t += 1
        return self.env.reset(**given)

    def step(self, action):
        observation, reward, *rest = self.env.step(action)
        return observation, reward - toll(self.t)[action], *rest


class Book:
    """Expected losses of the policies that were played, and the best fixed policy's."""

    def __init__(self, taxi):
        self.first = np.append(taxi.initial_state_distrib, 0.0)
        self.next, self.base = np.full((501, 6), 500), np.zeros((501, 6))
        for s, actions in taxi.P.items():
            for a, [(_, after, reward, over)] in actions.items():  # nothing is left to chance
                self.next[s, a], self.base[s, a] = 500 if over else after, -reward
        self.total, self.sum = 0.0, np.zeros((501, 6))

    def losses(self, t):
        out = self.base + toll(t)
        out[500] = 0.0
        return out

    def expected(self, tables, losses):
        mass, out = self.first, 0.0
        for table in tables:
            q = mass[: len(table), None] * table
            out += np.sum(q * losses[: len(table)])
            mass = np.bincount(self.next[: len(table)].ravel(), q.ravel(), minlength=501)
        return out

    def enter(self, t, tables):
        losses = self.losses(t)
        self.total += self.expected(tables, losses)
        self.sum += losses

    def regret(self):
        value = np.zeros(501)
        for _ in range(HORIZON):
            value = np.min(self.sum + value[self.next], axis=1)
        return float(self.total - self.first @ value)


def play_taxi():
    env = Layered(Tolls(gym.make("Taxi-v4")), HORIZON, most=10**8)
    learner = PolicyOptimization(env.layers, 6, seed=1)
    ours, uniform = Book(env.unwrapped), Book(env.unwrapped)
    even = [np.full((n, 6), 1 / 6) for n in env.layers]
    ours.enter(1, even)
    out = {"points": POINTS, "ours": [], "uniform": []}
    watched = 0.0

    def progress(t, of):
        nonlocal watched
        began = time.process_time()
        uniform.enter(t, even)
        if t in POINTS:
            out["ours"].append(ours.regret())
            out["uniform"].append(uniform.regret())
        if t < of:
            ours.enter(t + 1, learner.policy().tables)
        watched += time.process_time() - began

    began = time.process_time()
    returns = play(learner, env, EPISODES, seed=2, progress=progress)
    spent = time.process_time() - began - watched
    tenth = EPISODES // 10
    out |= {
        "horizon": HORIZON, "episodes": EPISODES, "toll": TOLL, "layers": env.layers,
        "per_second": EPISODES / spent, "seen": learner.transitions_seen,
        "first": float(returns[:tenth].mean()), "last": float(returns[-tenth:].mean()),
    }  # fmt: skip
    return out
