"""The solvers' arrays, filled from a random program, for tests of single kernels."""

from itertools import pairwise

import numpy as np

from occupancy_reference import random_instance
from unbounded.core.occupancy.confidence import interior
from unbounded.core.occupancy.solver.interior_point import start
from unbounded.core.occupancy.solver.work import carve, normalize, work_size


class Case:
    """A random program in the solvers' own units, with its work arrays and a dual point."""

    def __init__(self, seed, **sizes):
        rng = self.rng = np.random.default_rng(seed)
        limits = {"max_horizon": 4, "max_states": 5, "max_actions": 3} | sizes
        mdp, self.lo, self.hi, _, _ = random_instance(rng, **limits)
        self.mdp, self.layers, self.lay = mdp, mdp.layers, mdp.layers.table
        H, S, X = self.layers.horizon, self.layers.n_states, self.layers.n_pairs
        self.W = carve(self.lay, np.full(work_size(self.lay), np.nan))
        L, w = rng.exponential(size=X), rng.uniform(0.5, 0.99, size=H)
        self.units = normalize(self.lay, L, w, self.W)
        self.L, self.w = self.W.L.copy(), self.W.w[1:].copy()
        self.P0 = np.empty(self.layers.n_transitions)
        interior(self.lay, self.lo, self.hi, self.P0)
        self.v = rng.normal(size=S) * 0.5
        self.v[0] = 0.0
        self.theta = rng.normal(size=X)
        self.W.rho[:] = rng.uniform(0.5, 2.0, size=H + 1)

    def blocks(self):
        """Where the states of layers 1..H are, as slices of a vector over states."""
        ends = np.cumsum([1, *self.layers.sizes])
        return [slice(a, b) for a, b in pairwise(ends)]

    def newton_matrix(self):
        """W.D and W.E as one dense symmetric matrix over states (row 0 is empty)."""
        M, d, e = np.zeros((self.layers.n_states,) * 2), 0, 0
        blocks = self.blocks()
        for h, at in enumerate(blocks):
            n = at.stop - at.start
            lower = np.tril(self.W.D[d : d + n * n].reshape(n, n))
            M[at, at] = lower + np.tril(lower, -1).T
            d += n * n
            if h + 1 < len(blocks):
                after = blocks[h + 1]
                r = after.stop - after.start
                M[at, after] = self.W.E[e : e + n * r].reshape(n, r)
                M[after, at] = M[at, after].T
                e += n * r
        return M

    def rank_one_terms(self):
        """What the Newton matrix leaves out on purpose: -(q q^T + r r^T) over the weights."""
        M = np.zeros((self.layers.n_states,) * 2)
        for h, at in enumerate(self.blocks(), start=1):
            M[at, at] -= np.outer(self.W.q[at], self.W.q[at]) / self.W.w[h]
            if h > 1:
                M[at, at] -= np.outer(self.W.r[at], self.W.r[at]) / self.W.w[h - 1]
            else:
                M[at, at] -= np.outer(self.W.r[at], self.W.r[at]) / self.W.w[0]
        return M

    def minus_hessian(self, gradient, step=1e-6):
        """By differences of ``gradient(v)``, over states."""
        M = np.zeros((self.layers.n_states,) * 2)
        for k in range(1, self.layers.n_states):
            e = np.zeros(self.layers.n_states)
            e[k] = step
            M[k] = (gradient(self.v - e) - gradient(self.v + e)) / (2 * step)
        return M


def started(lay, lo, hi, W):
    """The interior point method's first iterate, and its number of products."""
    return start(lay, lo, hi, W)
