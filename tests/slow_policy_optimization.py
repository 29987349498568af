"""`PolicyOptimization` from the formulas of its docstring, with dictionaries and floats.

Losses are kept as they come, without units, and every expectation is over the whole next layer.
"""

import math
from collections import defaultdict


class SlowPolicyOptimization:
    """``pi[h][s]`` is a list over actions; layers are numbered from 0."""

    def __init__(self, sizes, A, clip, rate, implicit, bonus, mixing):
        self.sizes, self.A, self.clip = list(sizes), A, clip
        self.rate, self.implicit, self.bonus, self.mixing = rate, implicit, bonus, mixing
        self.t = 1
        self.told = [[] for _ in sizes]
        self.visits, self.moves = defaultdict(int), defaultdict(int)
        self.G, self.v = defaultdict(float), defaultdict(float)
        self.pi = [[[1 / A] * A for _ in range(n)] for n in sizes]

    def window(self, h):
        """The ends of what losses of layer ``h`` are clipped to, or None."""
        told = self.told[h]
        if self.clip == "range":
            return (min(told), max(told)) if told else None
        C = 0.0
        for loss in told:
            C = 2 * abs(loss) if abs(loss) > C else C
        return (-C, C)

    def width(self, h):
        ends = self.window(h)
        return ends[1] - ends[0] if ends else 0.0

    def chance(self, h, s, a, s_next):
        """The model, from ``(h, s, a)`` to a state of the next layer; h = -1 is s_0."""
        pair = (h, s, a)
        seen = self.moves[pair, s_next] + 1 / self.sizes[h + 1]
        return seen / (self.visits[pair] + 1)

    def occupancy(self):
        """u(s) of every layer."""
        u = [[self.chance(-1, 0, 0, s) for s in range(self.sizes[0])]]
        for h, n in enumerate(self.sizes[1:]):
            u.append(
                [
                    sum(
                        u[h][s] * self.pi[h][s][a] * self.chance(h, s, a, s_next)
                        for s in range(self.sizes[h])
                        for a in range(self.A)
                    )
                    for s_next in range(n)
                ]
            )
        return u

    def learn(self, states, actions, losses):
        H, A = len(self.sizes), self.A
        halves, centered = [], []
        for h, loss in enumerate(losses):
            ends = self.window(h)
            low, high = ends if ends else (loss, loss)
            halves.append((high - low) / 2)
            centered.append(min(max(loss, low), high) - (high + low) / 2)
            self.told[h].append(loss)
        R = [sum(self.width(i) for i in range(h, H)) for h in range(H)]
        u = self.occupancy()
        path = [(-1, 0, 0), *((h, states[h], actions[h]) for h in range(H))]
        for h, pair in enumerate(path):
            self.visits[pair] += 1
            if h < H:
                self.moves[pair, states[h]] += 1
        V, B = [[]] * H + [[0.0]], [[]] * H + [[0.0]]
        for h in reversed(range(H)):
            gamma = self.implicit / math.sqrt(self.sizes[h] * A * self.t)
            V[h], B[h], after = [], [], []
            for s in range(self.sizes[h]):
                p = self.pi[h][s]
                Q, D = [], []
                b = sum(p[a] * gamma / (u[h][s] * p[a] + gamma) for a in range(A))
                for a in range(A):
                    here = (s, a) == (states[h], actions[h])
                    mean_V = mean_B = 0.0
                    if h + 1 < H:
                        P = [self.chance(h, s, a, j) for j in range(self.sizes[h + 1])]
                        mean_V = sum(x * y for x, y in zip(P, V[h + 1], strict=True))
                        mean_B = sum(x * y for x, y in zip(P, B[h + 1], strict=True))
                    l_hat = (here * centered[h] - halves[h] * gamma) / (u[h][s] * p[a] + gamma)
                    Q.append(l_hat + mean_V)
                    D.append(self.bonus * R[h] * b + (1 + 1 / H) * mean_B)
                V[h].append(sum(p[a] * Q[a] for a in range(A)))
                B[h].append(sum(p[a] * D[a] for a in range(A)))
                x = [Q[a] - D[a] - V[h][s] + B[h][s] for a in range(A)]
                self.v[h, s] += sum(p[a] * x[a] ** 2 for a in range(A))
                for a in range(A):
                    self.G[h, s, a] += x[a]
                after.append(self.weights(h, s, R[h]))
            self.pi[h] = after
        self.t += 1

    def weights(self, h, s, R):
        if R == 0.0:
            return self.pi[h][s]
        eta = self.rate * math.sqrt(math.log(self.A) / ((R * self.A) ** 2 + self.v[h, s]))
        G = [self.G[h, s, a] for a in range(self.A)]
        w = [math.exp(-eta * (g - min(G))) for g in G]
        beta = min(0.5, self.mixing / math.sqrt(self.t + 1))
        return [(1 - beta) * x / sum(w) + beta / self.A for x in w]
