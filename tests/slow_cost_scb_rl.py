"""CostSCBRL from its page, docs/theory/one-sided-mdp.md: sorting, numpy and cvxpy, no kernel."""

import numpy as np

from slow.discounted import top
from slow_scb_rl import SlowSCBRL


def kl(P, p):
    """The divergence of coins, by its formula."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first = P * np.log(P / p) if P > 0 else 0.0
        return first + ((1 - P) * np.log((1 - P) / (1 - p)) if P < 1 else 0.0)


def kl_end(P, level, side):
    """The p between P and ``side``, 0 or 1, whose divergence is ``level``, or the end."""
    if kl(P, side) <= level:
        return side
    inside, outside = P, side
    for _ in range(100):
        p = 0.5 * (inside + outside)
        inside, outside = (p, outside) if kl(P, p) <= level else (inside, p)
    return inside


class SlowCostSCBRL(SlowSCBRL):
    """Counts, boxes, bounds and the program are those of `SlowSCBRL`; the rest is its own.

    ``factors``: of the learning rate, the implicit exploration, the divergence in the boxes and
    the center.
    """

    def __init__(self, layers, delta, factors, m, lower, skip, T=None, kappa=1e-3):
        super().__init__(layers, 1, delta, (1, 1, 0, 1), "", False, skip, kappa)
        rate, implicit, self.divergence, self.center = factors
        H, A = layers.horizon, layers.n_actions
        self.S = sum(layers.sizes)
        iota = np.log(10 * self.S * A * H / delta)
        pairs = np.array(layers.sizes) * A
        self.eta_1, self.gamma_1 = (
            rate * np.sqrt(iota / pairs),
            implicit * np.sqrt(iota / pairs) / 2,
        )
        self.centers = np.zeros(H)  # their sums since the last solve
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

    def learn(self, pi, states, actions, losses):
        """``pi``: tables of the policy that was played. Whether FTRL is to be solved again."""
        root, due, used = self.root(), False, []
        for h in range(1, self.layers.horizon + 1):
            s, a = states[h - 1], actions[h - 1]
            before, c = self.threshold(h - 1), self.center_of(h - 1)
            loss = max(losses[h - 1], self.lower[h - 1])
            self.seen[h - 1].append(loss)
            u = self.upper_bound(pi, h, s) * pi[h - 1][s, a]
            gamma = self.gamma_1[h - 1] / root
            self.clipped[h - 1].append(min(loss - self.lower[h - 1], before))
            l_hat = (self.clipped[h - 1][-1] - c * u / (u + gamma)) / (u + gamma)
            self.L[h - 1][s, a] += l_hat
            self.since[h - 1][s, a] += abs(l_hat)
            pairs = self.L[h - 1].size
            eta = self.eta_1[h - 1] / root
            limit = min(self.skip * pairs * eta, 0.25) * self.w[h - 1]
            due |= bool(l_hat != 0 and self.since[h - 1][s, a] > limit)
            used.append((c, before))
            self.centers[h - 1] += c
            due |= c > 0 and self.centers[h - 1] > limit
            due |= self.threshold(h - 1) != before
        self.give_all(pi, root, used)
        self.count(states, actions)
        pairs = [(0, 0), *zip(states, actions, strict=True)]
        for h in range(self.layers.horizon):
            due |= self.doubled(h, pairs[h])
        due |= self.passes()
        if due:
            self.since, self.centers = [0.0 * part for part in self.since], 0.0 * self.centers
            C = np.array([self.threshold(h) for h in range(self.layers.horizon)])
            wanted = C * self.root() / self.eta_1
            self.w = np.maximum(self.w, np.maximum(wanted, self.kappa * wanted.mean()))
        return due

    def give_all(self, pi, root, used):
        """What all pairs get, visited or not; ``used``: center and threshold of each layer."""
        low = np.ones((1, 1))
        for h, (c, C) in enumerate(used, start=1):
            low = np.einsum("sa,saj->j", low, self.lo[h - 1])[:, None] * pi[h - 1]
            gamma = self.gamma_1[h - 1] / root
            for s in range(len(low)) if c > 0 else ():
                u = self.upper_bound(pi, h, s) * pi[h - 1][s]
                share = u / (u + gamma)
                self.L[h - 1][s] += c * share * (low[s] - c / C * share * gamma) / (u + gamma)

    def box(self, h, pair):
        """All p with kl(M/N, p) <= level, by bisection, within the box that it has."""
        n = self.N[h][pair]
        k = 1 + round(np.log2(n))
        triples = sum(part.size for part in self.lo)
        level = self.divergence * np.log(20 * triples * k * (k + 1) / (3 * self.delta)) / n
        if level > 1:
            return self.lo[h][pair], self.hi[h][pair]
        ends = [[kl_end(P, level, side) for P in self.M[h][pair] / n] for side in (0.0, 1.0)]
        low, high = np.maximum(ends[0], self.lo[h][pair]), np.minimum(ends[1], self.hi[h][pair])
        empty = np.any(low > high) or low.sum() > 1 or high.sum() < 1
        return tuple(np.array(ends)) if empty else (low, high)

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
        for sums in (self.L, self.since, [self.w, self.centers]):
            for part in sums:
                part *= faded
        return before != self.rounded() or (self.t - 1) % self.h == 0
