"""CostSCBRL from its page, docs/theory/one-sided-mdp.md: sorting, numpy and cvxpy, no kernel."""

import numpy as np

from slow.discounted import top
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

    def root(self):
        """sqrt(t^) of the next episode."""
        return np.sqrt(self.clock(self.t))

    def passes(self):
        """Go on to the next episode; whether FTRL is to be solved again for that."""
        before, self.t = self.clock(self.t), self.t + 1
        return before != self.clock(self.t)

    def threshold(self, h):
        told = sorted(self.seen[h], reverse=True)
        return told[self.m - 1] - self.lower[h] if len(told) >= self.m else 0.0

    def center_of(self, h):
        """The mean of the clipped losses so far, or half the threshold."""
        if not self.clipped[h]:
            return 0.0
        return self.center * min(self.mean(self.clipped[h]), self.threshold(h) / 2)

    def mean(self, values):
        """Of one value per episode."""
        return np.mean(values)

    def learn(self, pi, states, actions, losses, q):
        """``pi``, ``q``: tables of the policy that was played and of q~. Whether FTRL is to be
        solved again."""
        root, due = self.root(), False
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
        due |= self.passes()
        if due:
            self.since = [np.zeros_like(part) for part in self.since]
            C = np.array([self.threshold(h) for h in range(self.layers.horizon)])
            wanted = C * self.root() / self.eta_1
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


class SlowDiscountedCostSCBRL(SlowCostSCBRL):
    """With a half-life: all sums are relative to the weight of the next episode, no block halves
    them. Section 8 of the page."""

    def __init__(self, *arguments, half_life, **more):
        super().__init__(*arguments, **more)
        self.h, self.times, self.U = half_life, [0.0], 0.0
        if self.T is not None:
            self.T = min(self.T, np.ceil(half_life / np.log(2)))

    def weights(self):
        """Of all episodes, over that of the next one, which is the last."""
        return 2.0 ** ((np.array(self.times) - self.times[-1]) / self.h)

    def rounded(self):
        """g^2 N^, where g is the weight of the next episode in its block."""
        N = self.weights().sum() if self.T is None else self.T
        x = 2.0 ** (2 * (self.times[-1] % self.h) / self.h) * N
        grid = 2.0 ** np.floor(np.log2(x)) / 4
        return np.ceil(x / grid) * grid

    def root(self):
        return np.sqrt(self.rounded()) / 2.0 ** (self.times[-1] % self.h / self.h)

    def mean(self, values):
        return np.average(values, weights=self.weights()[: len(values)])

    def threshold(self, h):
        told = [x - self.lower[h] for x in self.seen[h]]
        block = len(told) // self.h * self.h
        return max(top(told[block:], self.m), top(told[:block][-self.h :], self.m))

    def passes(self):
        before = self.rounded()
        self.t += 1
        time = self.times[-1] + 1.0
        largest = max(self.threshold(h) for h in range(len(self.seen)))
        if 0 < largest < self.U / 16:
            time += self.h * np.ceil(np.log2(self.U / largest))
        if largest > self.U or 0 < largest < self.U / 16:
            self.U = largest
        faded = 2.0 ** ((self.times[-1] - time) / self.h)
        self.times.append(time)
        for sums in (self.L, self.since, [self.w]):
            for part in sums:
                part *= faded
        return before != self.rounded() or (self.t - 1) % self.h == 0
