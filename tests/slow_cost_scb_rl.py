"""CostSCBRL from its page, docs/theory/one-sided-mdp.md: sorting, numpy and cvxpy, no kernel."""

import numpy as np

from slow_scb_rl import SlowSCBRL


class SlowCostSCBRL(SlowSCBRL):
    """Counts, boxes, bounds and the program are those of `SlowSCBRL`; the rest is its own.

    ``factors``: of the learning rate, the implicit exploration, the width of the boxes and the
    center.
    """

    def __init__(self, layers, delta, factors, m, lower, skip, T=None, kappa=1e-3):
        super().__init__(layers, 1, delta, (1, 1, 0, 1), "", False, skip, kappa)
        rate, implicit, width, self.center = factors
        H, A = layers.horizon, layers.n_actions
        self.S = sum(layers.sizes)
        iota = np.log(10 * self.S * A * H / delta)
        pairs = np.array(layers.sizes) * A
        self.eta_1, self.gamma_1 = (
            rate * np.sqrt(iota / pairs),
            implicit * np.sqrt(iota / pairs) / 2,
        )
        self.c1, self.c2 = 2 * width, 14 / 3 * width
        self.delta, self.m, self.lower, self.T = delta, m, lower, T
        self.t = 1
        self.seen = [[] for _ in layers.sizes]
        self.clipped = [[] for _ in layers.sizes]

    def clock(self, t):
        """t^: T, or the least of 1, 2, 3 and (4, 5, 6, 7) 2^j that is at least ``t``."""
        if self.T is not None:
            return self.T
        steps = {1, 2, 3} | {k << j for k in (4, 5, 6, 7) for j in range(40)}
        return min(step for step in steps if step >= t)

    def threshold(self, h):
        told = sorted(self.seen[h], reverse=True)
        return told[self.m - 1] - self.lower[h] if len(told) >= self.m else 0.0

    def center_of(self, h):
        """The mean of the clipped losses so far, or half the threshold."""
        if not self.clipped[h]:
            return 0.0
        return self.center * min(np.mean(self.clipped[h]), self.threshold(h) / 2)

    def learn(self, pi, states, actions, losses, q):
        """``pi``, ``q``: tables of the policy that was played and of q~. Whether FTRL is to be
        solved again."""
        root, due = np.sqrt(self.clock(self.t)), False
        for h in range(1, self.layers.horizon + 1):
            s, a = states[h - 1], actions[h - 1]
            before, c = self.threshold(h - 1), self.center_of(h - 1)
            loss = max(losses[h - 1], self.lower[h - 1])
            self.seen[h - 1].append(loss)
            u = self.upper_bound(pi, h, s) * pi[h - 1][s, a]
            gamma = self.gamma_1[h - 1] / root
            self.clipped[h - 1].append(min(loss - self.lower[h - 1], before))
            l_hat = (self.clipped[h - 1][-1] - c) / (u + gamma)
            self.L[h - 1][s, a] += l_hat
            self.L[h - 1] -= c * gamma / (q[h - 1] + gamma)  # everywhere, visited or not
            self.since[h - 1][s, a] += abs(l_hat)
            C = self.w[h - 1] * self.eta_1[h - 1] / root
            pairs = self.L[h - 1].size
            due |= bool(l_hat != 0 and self.since[h - 1][s, a] > self.skip * pairs * C)
            due |= self.threshold(h - 1) != before
        self.log_term = np.log(10 * self.t * self.S * self.layers.n_actions / self.delta)
        self.count(states, actions)
        pairs = [(0, 0), *zip(states, actions, strict=True)]
        for h in range(self.layers.horizon):
            due |= self.doubled(h, pairs[h])
        due |= self.clock(self.t) != self.clock(self.t + 1)
        self.t += 1
        if due:
            self.since = [np.zeros_like(part) for part in self.since]
            C = np.array([self.threshold(h) for h in range(self.layers.horizon)])
            wanted = C * np.sqrt(self.clock(self.t)) / self.eta_1
            self.w = np.maximum(self.w, np.maximum(wanted, self.kappa * wanted.mean()))
        return due

    def doubled(self, h, pair):
        """A new box for a pair whose visits have doubled since its last one; whether it changed."""
        if self.N[h][pair] < max(1, 2 * self.N_before[h][pair]):
            return False
        self.N_before[h][pair] = self.N[h][pair]
        before = self.lo[h][pair].copy(), self.hi[h][pair].copy()
        self.lo[h][pair], self.hi[h][pair] = self.box(h, pair)
        changed = np.any(before != np.array([self.lo[h][pair], self.hi[h][pair]]))
        self.program = None if changed else self.program
        return bool(changed)
