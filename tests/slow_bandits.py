"""Slow implementations written from the formulas, for comparison. They share no code with the
package: losses in plain units, solvers by bisection, numpy only."""

from __future__ import annotations

import math

import numpy as np


def tsallis(L, eta):
    theta = eta * (L - L.min())
    low, high = -2.0 * math.sqrt(L.size), -2.0
    for _ in range(200):
        x = 0.5 * (low + high)
        if np.sum(4.0 / (theta - x) ** 2) > 1.0:
            high = x
        else:
            low = x
    p = 4.0 / (theta - 0.5 * (low + high)) ** 2
    return p / p.sum()


def softmax(v):
    w = np.exp(v - v.max())
    return w / w.sum()


class Window:
    """The clipping of the paper, or of the observed range; ``width`` is 2 C or b - a."""

    def __init__(self, clip, threshold):
        self.clip, self.threshold = clip, threshold
        self.C, self.a, self.b = 0.0, math.inf, -math.inf

    @property
    def width(self):
        if self.clip == "scale":
            return 2.0 * self.C
        return max(0.0, self.b - self.a) if self.a <= self.b else 0.0

    def observe(self, loss):
        if self.clip == "scale":
            l_plus = max(-self.C, min(self.C, loss)) + self.C
            if abs(loss) > self.C:
                self.C = 2.0 * abs(loss)
            elif self.threshold == "largest":
                self.C = max(self.C, 2.0 * abs(loss))
        else:
            l_plus = 0.0
            if self.a <= self.b:
                l_plus = max(self.a, min(self.b, loss)) - self.a
            self.a, self.b = min(self.a, loss), max(self.b, loss)
        return l_plus


class SCB:
    def __init__(self, n, clip="scale", threshold="lazy", rate=1.0):
        self.n, self.rate, self.t = n, rate, 1
        self.window, self.L = Window(clip, threshold), np.zeros(n)

    def q(self):
        n, t, W = self.n, self.t, self.window.width
        if W == 0.0:
            return np.full(n, 1.0 / n)
        p = tsallis(self.L, self.rate / (W * math.sqrt(t)))
        beta = n / (2 * n + math.sqrt(n * t))
        return (1 - beta) * p + beta / n

    def tell(self, arm, q, loss):
        self.L[arm] += self.window.observe(loss) / q[arm]
        self.t += 1


class SCBIX:
    def __init__(self, n, clip="scale", threshold="lazy", delta=None, beta_cap=None):
        self.n, self.t = n, 1
        self.iota = math.log(n) if delta is None else math.log(n / delta)
        self.cap = beta_cap or (0.5 if clip == "range" else 1.0)
        self.window, self.L = Window(clip, threshold), np.zeros(n)

    def q(self):
        n, t, W, iota = self.n, self.t, self.window.width, self.iota
        if W == 0.0:
            return np.full(n, 1.0 / n)
        p = softmax(-2.0 / W * math.sqrt(iota / (n * t)) * self.L)
        beta = min(self.cap, math.sqrt(n * iota / (n * iota + t)))
        return (1 - beta) * p + beta / n

    def tell(self, arm, q, loss):
        gamma = 0.5 * math.sqrt(self.iota / (self.n * self.t))
        self.L[arm] += self.window.observe(loss) / (q[arm] + gamma)
        self.t += 1


class TsallisINF:
    def __init__(self, n, loss_range=(0.0, 1.0)):
        self.n, self.t, self.range, self.L = n, 1, loss_range, np.zeros(n)

    def q(self):
        return tsallis(self.L, 2.0 / math.sqrt(self.t))

    def unit(self, loss):
        low, high = self.range
        return (min(high, max(low, loss)) - low) / (high - low)

    def tell(self, arm, q, loss):
        self.L[arm] += self.unit(loss) / q[arm]
        self.t += 1


class Exp3(TsallisINF):
    def eta(self):
        return math.sqrt(math.log(self.n) / (self.n * self.t))

    def q(self):
        return softmax(-self.eta() * self.L)


class Exp3IX(Exp3):
    def tell(self, arm, q, loss):
        self.L[arm] += self.unit(loss) / (q[arm] + 0.5 * self.eta())
        self.t += 1


class AHB:
    def __init__(self, n, gamma_const=2.5):
        self.n, self.t, self.const = n, 1, gamma_const
        self.S, self.Y, self.first = 0.0, np.zeros(n), []

    def hedge(self):
        if self.S == 0.0:
            return np.full(self.n, 1.0 / self.n)
        return softmax(math.log(self.n) / self.S * self.Y)

    def q(self):
        if self.t <= self.n:
            return np.eye(self.n)[self.t - 1]
        gamma = min(0.5, math.sqrt(self.const * self.n * math.log(self.n) / self.t))
        return (1 - gamma) * self.hedge() + gamma / self.n

    def tell(self, arm, p, loss):
        if self.t <= self.n:
            self.first.append(-loss)
        else:
            x = (-loss - np.mean(self.first)) / p[arm]
            q = self.hedge()[arm]
            if self.S == 0.0:
                gap = max(0.0, x) - q * x
            else:
                eta = math.log(self.n) / self.S
                v = np.array([0.0, eta * x])  # ln(1 - q + q e^{eta x}), by log-sum-exp
                top = v.max()
                gap = (top + math.log((1 - q) * math.exp(-top) + q * math.exp(v[1] - top))) / eta
                gap -= q * x
            self.S += max(0.0, gap)
            self.Y[arm] += x
        self.t += 1


class DoublingTsallisINF:
    def __init__(self, n):
        self.n, self.R, self.age, self.L = n, 0.0, 0, np.zeros(n)

    def q(self):
        if self.age == 0:
            return np.full(self.n, 1.0 / self.n)
        return tsallis(self.L, 2.0 / math.sqrt(self.age + 1))

    def tell(self, arm, q, loss):
        if abs(loss) > self.R:
            self.R, self.age, self.L = 2.0 * abs(loss), 0, np.zeros(self.n)
        elif self.R > 0.0:
            self.L[arm] += (loss + self.R) / (2.0 * self.R) / q[arm]
            self.age += 1


class EpsilonGreedy:
    def __init__(self, n, epsilon=None):
        self.n, self.epsilon, self.t = n, epsilon, 1
        self.seen = [[] for _ in range(n)]

    def q(self):
        fresh = np.array([float(not s) for s in self.seen])
        if fresh.any():
            return fresh / fresh.sum()
        epsilon = self.epsilon or min(1.0, (self.n / self.t) ** (1 / 3))
        best = int(np.argmin([np.mean(s) for s in self.seen]))
        return (1 - epsilon) * np.eye(self.n)[best] + epsilon / self.n

    def tell(self, arm, q, loss):
        self.seen[arm].append(loss)
        self.t += 1


class Uniform:
    def __init__(self, n):
        self.n = n

    def q(self):
        return np.full(self.n, 1.0 / self.n)

    def tell(self, arm, q, loss):
        pass
