"""Programs over worlds in which few transitions are possible, with work arrays of both kinds."""

from itertools import pairwise

import numpy as np

from occupancy_facades import ConfidenceSet
from occupancy_work import Case
from unbounded.core.occupancy.confidence import Bernstein, interior
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.core.occupancy.reach import mark
from unbounded.core.occupancy.solver import dual
from unbounded.core.occupancy.solver import sparse as successors
from unbounded.core.occupancy.solver.work import carve, normalize, work_size

NARROW = Bernstein(0.1, 0.1)  # so that lower bounds are not all 0


def sparse_world(seed, sizes=(2, 24, 30, 25), n_actions=3, successors=3):
    """Each pair leads to a few states of the next layer."""
    rng = np.random.default_rng(seed)
    steps = []
    for n, after in pairwise(sizes):
        P = np.zeros((n, n_actions, after))
        for s, a in np.ndindex(n, n_actions):
            to = rng.choice(after, min(after, successors), replace=False)
            P[s, a, to] = rng.dirichlet(np.ones(to.size))
        steps.append(P)
    return LayeredMDP(rng.dirichlet(np.ones(sizes[0])), steps)


def boxes_after(mdp, visits, seed):
    """Boxes of a learner that was told the support, after so many episodes of even play."""
    rng = np.random.default_rng(seed)
    sets = ConfidenceSet(mdp.layers, 1000, 0.1, NARROW, support=mdp.P > 0)
    for _ in range(visits):
        states = [rng.choice(mdp.layers.sizes[0], p=mdp.initial)]
        actions = []
        for P in mdp.transitions:
            actions.append(rng.integers(mdp.layers.n_actions))
            states.append(rng.choice(P.shape[2], p=P[states[-1], actions[-1]]))
        sets.observe(states, [*actions, rng.integers(mdp.layers.n_actions)])
    return sets.lo, sets.hi


class Both(Case):
    """A program over a world of few transitions, with work arrays of both kinds."""

    def __init__(self, seed):
        rng = self.rng = np.random.default_rng(seed)
        self.mdp = sparse_world(seed)
        self.layers = self.mdp.layers
        self.lay = self.layers.table
        self.lo, self.hi = boxes_after(self.mdp, 300, seed)
        self.W = carve(self.lay, np.full(work_size(self.lay), np.nan))
        L, w = rng.exponential(size=self.layers.n_pairs), rng.uniform(0.5, 0.99, 4)
        mark(self.lay, self.lo, self.hi, L, self.W.pair, self.W.L)
        normalize(self.lay, L, w, self.W)
        self.P0 = np.empty(self.layers.n_transitions)
        interior(self.lay, self.lo, self.hi, self.P0)
        self.v = rng.normal(size=self.layers.n_states) * 0.5
        self.v[0] = 0.0
        self.theta = rng.normal(size=self.layers.n_pairs)
        self.W.rho[:] = rng.uniform(0.1, 1.0, 5)
        self.few = successors.listed(
            self.lay, self.hi, carve(self.lay, np.full(work_size(self.lay), np.nan))
        )
        for ours, theirs in ((self.few.L, self.W.L), (self.few.w, self.W.w)):
            ours[:] = theirs
        self.few.rho[:] = self.W.rho
        self.listed = [self.gather(x) for x in (self.lo, self.hi, self.P0)]

    def gather(self, values):
        out = np.full(self.few.to.size, np.nan)
        successors.gather(self.lay, values, self.few, out)
        return out

    def evaluate(self):
        """Both, at the same point; their values."""
        lo, hi, P0 = self.listed
        return (
            dual.evaluate(self.lay, self.lo, self.hi, self.v, self.P0, self.theta.copy(), self.W),
            dual.evaluate(self.lay, lo, hi, self.v, P0, self.theta.copy(), self.few),
        )
