"""Certainty equivalence: plan in the MDP that was seen so far, and explore now and then."""

from itertools import pairwise

import numpy as np

from unbounded import PythonMDPLearner


class GreedyModel(PythonMDPLearner):
    """Plays the best policy of its estimate of the MDP, and any action with a falling probability.

    Good where losses do not change; an adversary can fool it.

    Parameters
    ----------
    explore : float
        In episode t, every state explores with probability min(1, explore / t^(1/3)).
    """

    reference = "certainty equivalence; Mandl 1974"

    def __init__(self, layers, n_actions, *, explore=1.0, seed=None):
        super().__init__(layers, n_actions, seed=seed)
        self.explore, self.t = explore, 1
        self.costs = [np.zeros((n, n_actions)) for n in layers]
        self.counts = [np.zeros((n, n_actions)) for n in layers]
        self.moves = [np.zeros((n, n_actions, m)) for n, m in pairwise(layers)]

    def policy(self):
        share = min(1.0, self.explore / self.t ** (1 / 3))
        value, tables = None, []
        for h in reversed(range(len(self.costs))):
            N = np.maximum(self.counts[h], 1.0)
            Q = self.costs[h] / N
            if value is not None:
                Q = Q + self.moves[h] @ value / N  # what was never tried seems free
            value = Q.min(axis=1)
            greedy = np.eye(Q.shape[1])[Q.argmin(axis=1)]
            tables.append(share / Q.shape[1] + (1.0 - share) * greedy)
        return tables[::-1]

    def update(self, states, actions, losses):
        self.t += 1
        for h, (s, a, loss) in enumerate(zip(states, actions, losses, strict=True)):
            self.costs[h][s, a] += loss
            self.counts[h][s, a] += 1.0
            if h + 1 < len(states):
                self.moves[h][s, a, states[h + 1]] += 1.0
