"""EXP3++ (Seldin & Slivkins 2014), with the gap estimates of Seldin & Lugosi 2017."""

import math

import numpy as np

from unbounded import PythonLearner


class EXP3pp(PythonLearner):
    """Exponential weights that explore an arm less, the clearer it is that it is worse.

    Parameters
    ----------
    alpha, beta : float
        Of the confidence bounds, and of the exploration.
    loss_range : (float, float)
        Losses outside of it are clipped to it.
    """

    reference = "Seldin & Slivkins 2014; gap estimates of Seldin & Lugosi 2017"

    def __init__(self, n_arms, *, alpha=3.0, beta=256.0, loss_range=(0.0, 1.0), seed=None):
        super().__init__(n_arms, seed=seed)
        self.alpha, self.beta, (self.low, self.high) = alpha, beta, loss_range
        self.t = 1
        self.counts, self.sums, self.L = np.zeros((3, n_arms))

    def distribution(self):
        K, t, N = self.n_arms, self.t, np.maximum(self.counts, 1e-300)
        eta = 0.5 * math.sqrt(math.log(K) / (K * t))
        width = np.sqrt((self.alpha * math.log(t) + math.log(K)) / (2.0 * N))
        best = np.minimum(self.sums / N + width, 1.0).min()  # the least upper bound
        gap = np.maximum(self.sums / N - width, 0.0) - best
        eps = np.full(K, min(0.5 / K, eta))
        far = gap > 0.0
        eps[far] = np.minimum(eps[far], self.beta * math.log(t) / (t * gap[far] ** 2))
        weights = np.exp(-eta * (self.L - self.L.min()))
        return (1.0 - eps.sum()) * weights / weights.sum() + eps

    def update(self, arm, probability, loss):
        x = (loss - self.low) / (self.high - self.low)
        x, self.clipped = min(max(x, 0.0), 1.0), self.clipped + (not 0.0 <= x <= 1.0)
        self.t += 1
        self.counts[arm] += 1.0
        self.sums[arm] += x
        self.L[arm] += x / probability
