"""MVP (Zhang, Chen, Lee & Du 2023) for a known reward in one layer."""

from collections import defaultdict
from math import ceil, inf, log, log2, sqrt

import numpy as np


def mvp(sizes, A, layer, r, N, bonus, enough=inf):
    """Yield a policy; receive (states, actions, losses).

    Stop after N episodes, or when the reward r(s) of ``layer`` was
    obtained ``enough`` times. Return the policies that were played.
    """
    visits = defaultdict(int)  # of (h, s, a)
    batch = defaultdict(list)  # next states since the last renewal
    model = {}  # next states that the model is made of
    pi = plan(sizes, A, layer, r, model, visits, bonus)
    policies, reward = [], 0.0
    while len(policies) < N and reward < enough:
        policies.append(pi)
        states, actions, _ = yield pi
        reward += r[states[layer]]
        renewed = False
        for h in range(1, len(sizes) + 1):
            pair = h, states[h], actions[h]
            visits[pair] += 1
            batch[pair].append(states[h + 1] if h < len(sizes) else None)
            if log2(visits[pair]).is_integer():  # 1, 2, 4, ... visits
                model[pair] = batch.pop(pair)
                renewed = True
        if renewed:
            pi = plan(sizes, A, layer, r, model, visits, bonus)
    return policies


def plan(sizes, A, layer, r, model, visits, bonus):
    """Return the greedy policy of the optimistic values Q."""
    c1, c3, iota = bonus
    pi = [np.ones((1, 1)), *[np.full((n, A), 1 / A) for n in sizes]]
    V = r
    for h in range(layer - 1, 0, -1):  # from the layer on: even (E33)
        Q = np.ones((sizes[h - 1], A))  # the total reward is <= 1 (E24)
        for s, a in np.ndindex(Q.shape):
            if (h, s, a) in model:
                n = len(model[h, s, a])
                P = np.bincount(model[h, s, a], minlength=V.size) / n
                variance = max(0.0, P @ V**2 - (P @ V) ** 2)
                b = c1 * sqrt(variance * iota / n) + c3 * iota / n
                Q[s, a] = min(1.0, P @ V + b)
        for s in range(len(Q)):  # ties: the least visited action (E33)
            order = [(-Q[s, a], visits[h, s, a], a) for a in range(A)]
            pi[h][s] = np.eye(A)[min(order)[2]]
        V = Q.max(axis=1)
    return pi


def paper_bonus(sizes, A, N, delta):
    """Return c1, c3 and the logarithm of MVP's bonus."""
    K = 2 ** ceil(log2(N))
    iota = log(200 * max(sizes) * A * len(sizes) ** 2 * K**2 / delta)
    return 460 / 9, 544 / 9, iota
