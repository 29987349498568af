"""`CostPolicyOptimization` from docs/theory/policy-optimization.md, with arrays over whole layers.

Losses are kept as they come, without units; transitions that were not seen are entries with 0.
"""

import math

import numpy as np


class SlowCostPolicyOptimization:
    """``pi[h]`` has shape (n_h, A); layers are numbered from 0."""

    def __init__(self, sizes, A, delta, lower, m, rate, implicit, bonus):
        H, S = len(sizes), sum(sizes)
        self.sizes, self.A, self.H = list(sizes), A, H
        self.lower, self.m = lower, m
        self.rate, self.implicit, self.bonus = rate, implicit, bonus
        triples = sizes[0] + A * sum(sizes[h] * sizes[h + 1] for h in range(H - 1))
        self.iota = math.log(6 * S * A * H / delta)
        self.log_term = math.log(6 * triples / delta)
        self.level = 1.0  # for controls: a factor of the level of the confidence bounds
        self.t, self.told = 1, [[] for _ in sizes]
        self.first = np.zeros(sizes[0])
        self.moves = [np.zeros((sizes[h], A, sizes[h + 1])) for h in range(H - 1)]
        self.G = [np.zeros((n, A)) for n in sizes]
        self.pi = [np.full((n, A), 1 / A) for n in sizes]

    def threshold(self, h):
        return sorted([*self.told[h], *[0.0] * self.m])[-self.m]

    def ranges(self):
        C = [self.threshold(h) for h in range(self.H)]
        return [sum(C[h:]) for h in range(self.H)]

    def gamma(self, h):
        return self.implicit * math.sqrt(self.iota / (self.sizes[h] * self.A * self.t))

    def low(self, counts):
        """Lower confidence bounds, over the last axis."""
        N = counts.sum(axis=-1, keepdims=True)
        width = self.level * (self.log_term + np.log(N + 1)) / np.maximum(N, 1)
        a = counts / np.maximum(N, 1)
        x = 1 - a
        ends = a - np.sqrt(2 * a * width), 1 - (x + width + np.sqrt((x + width) ** 2 - x**2))
        return np.maximum(0, np.maximum(*ends)) * (counts > 0)

    def occupancies(self):
        """q_low and the slack of every layer."""
        q = [self.low(self.first)]
        for h in range(self.H - 1):
            q.append(np.einsum("s,sa,saj->j", q[h], self.pi[h], self.low(self.moves[h])))
        return q, [1 - x.sum() for x in q]

    def bonuses(self, R):
        """D(s, a) and B(s) of every layer."""
        q, slack = self.occupancies()
        D, B = [None] * self.H, [None] * self.H
        for h in reversed(range(self.H)):
            pi, gamma = self.pi[h], self.gamma(h)
            D[h] = np.zeros_like(pi)
            if h + 1 < self.H:
                low = self.low(self.moves[h])
                mean = low @ B[h + 1] + (1 - low.sum(axis=-1)) * B[h + 1].max()
                D[h] = (1 + 1 / self.H) * mean
            u = (q[h] + slack[h])[:, None]
            b = R[h] * np.sum(pi * (self.bonus * gamma + slack[h] * pi) / (u * pi + gamma), axis=1)
            B[h] = b + np.sum(pi * D[h], axis=1)
        return D, B

    def rates(self):
        """The learning rate of every layer; 0 where no loss is known."""
        R, E, eta = self.ranges(), 0.0, [0.0] * self.H
        for h in reversed(range(self.H)):
            if R[h] > 0:
                eta[h] = 2 * self.rate * self.gamma(h) / R[h]
                if E > 0:
                    eta[h] = min(eta[h], 1.25 / ((self.H + 1) * self.bonus * E))
            E = R[h] + (1 + 1 / self.H) * E
        return eta

    def count(self, states, actions):
        self.first[states[0]] += 1
        for h in range(self.H - 1):
            self.moves[h][states[h], actions[h], states[h + 1]] += 1

    def learn(self, states, actions, losses):
        H, R = self.H, self.ranges()
        q, slack = self.occupancies()
        D, _ = self.bonuses(R)
        losses = [max(x - low, 0.0) for x, low in zip(losses, self.lower, strict=True)]
        clipped = [min(x, self.threshold(h)) for h, x in enumerate(losses)]
        for h in range(H):
            s, a = states[h], actions[h]
            x = -D[h]
            u = (q[h][s] + slack[h]) * self.pi[h][s, a]
            x[s, a] += sum(clipped[h:]) / (u + self.gamma(h))
            self.G[h] += x
            self.told[h].append(losses[h])
        self.count(states, actions)
        self.t += 1
        for h, eta in enumerate(self.rates()):
            w = np.exp(-eta * (self.G[h] - self.G[h].min(axis=1, keepdims=True)))
            self.pi[h] = w / w.sum(axis=1, keepdims=True)
