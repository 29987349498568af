"""`APOMVP` from the formulas of its docstring, with dictionaries and the slow twin of AdaHedge.

Losses are kept as they come, without units; everything is computed again from the whole history.
"""

import math
from collections import defaultdict

import numpy as np

from slow import ada_hedge


class SlowAPOMVP:
    """``pi[h]`` is a table (states, actions); layers are numbered from 0.

    ``sign = -1`` turns the bonus into its opposite: a control that avoids what it does not know.
    """

    def __init__(
        self, sizes, A, delta=0.05, bonus=1.0, restart=True, allowed=None, ends=False, sign=1
    ):
        self.sizes, self.A, self.H = list(sizes), A, len(sizes)
        self.delta, self.bonus, self.restart, self.ends = delta, bonus, restart, ends
        self.allowed = [np.ones((n, A), bool) for n in sizes] if allowed is None else allowed
        self.sign, self.t, self.epochs = sign, 1, 0
        self.tables = []
        self.path = []  # (h, s, a, next s) of all episodes
        self.known, self.since = [], 1  # the part of the path that the epoch knows, and its start
        self.begin()

    def begin(self):
        """AdaHedge in every state, uniform."""
        self.players, self.pi = {}, [np.zeros((n, self.A)) for n in self.sizes]
        for h, n in enumerate(self.sizes):
            for s in range(n):
                taken = np.flatnonzero(self.allowed[h][s])
                self.pi[h][s, taken] = 1.0 / taken.size
                if taken.size > 1:
                    self.players[h, s] = ada_hedge.play(taken.size)
                    next(self.players[h, s])

    def certain(self, h, s):
        """Whether it is certain where a state's actions lead."""
        at_end = self.ends and h > 0 and s == self.sizes[h] - 1
        return h == self.H - 1 or self.sizes[h + 1] == 1 or at_end

    def chances(self, h, s, a):
        """P of the epoch, and its visits."""
        n = self.sizes[h + 1]
        if self.ends and h > 0 and s == self.sizes[h] - 1:
            return np.eye(n)[-1], 0
        seen = [j for (*pair, j) in self.known if pair == [h, s, a]]
        if not seen or n == 1:
            return np.full(n, 1.0 / n), len(seen)
        return np.bincount(seen, minlength=n) / len(seen), len(seen)

    def width(self, h):
        """The largest range of an episode."""
        return max(float(np.ptp(tables[h][self.allowed[h]])) for tables in self.tables)

    def bonuses(self, h, s, a):
        """b(s, a)."""
        if self.certain(h, s):
            return 0.0
        G = sum(self.width(later) for later in range(h + 1, self.H))
        _, N = self.chances(h, s, a)
        if N == 0:
            return G
        ln_ = math.log(sum(self.sizes) * self.A * self.since**2 / self.delta)
        return min(1.0, self.bonus * math.sqrt(2 * ln_ / N)) * G

    def learn(self, states, actions, tables):
        """Learn from an episode and the losses of all pairs."""
        self.tables.append([np.array(table, dtype=float) for table in tables])
        played = [table.copy() for table in self.pi]
        V = np.zeros(1)
        self.Q = [np.zeros((n, self.A)) for n in self.sizes]
        for h in reversed(range(self.H)):
            value = np.zeros(self.sizes[h])
            for s, a in zip(*np.nonzero(self.allowed[h]), strict=True):
                ahead = self.chances(h, s, a)[0] @ V if h < self.H - 1 else 0.0
                b = self.sign * self.bonuses(h, s, a)
                self.Q[h][s, a] = self.tables[-1][h][s, a] - b + ahead
                value[s] += played[h][s, a] * self.Q[h][s, a]
            for s in range(self.sizes[h]):
                if (h, s) in self.players:
                    taken = self.allowed[h][s]
                    self.pi[h][s, taken] = self.players[h, s].send((None, self.Q[h][s, taken]))
            V = value
        steps = zip(range(self.H - 1), states, actions, states[1:], strict=False)
        self.path += [tuple(map(int, step)) for step in steps]
        self.t += 1
        counts = defaultdict(int)
        for *pair, _ in self.path:
            counts[tuple(pair)] += 1
        reached = [
            counts[h, int(states[h]), int(actions[h])]
            for h in range(self.H - 1)
            if not self.certain(h, states[h])
        ]
        if any(N & (N - 1) == 0 for N in reached):
            self.known, self.since, self.epochs = list(self.path), self.t, self.epochs + 1
            if self.restart:
                self.begin()
