"""UOB-REPS-EX with SCB-RL's clipping, from the paper: numpy for bounds and counts, cvxpy for FTRL.

It is given what was played (component, states, actions, losses) and the explorers' policies, and
says which q~ it would have computed. Nothing here calls a kernel of the package.
"""

import warnings

import numpy as np

from occupancy_reference import Program, cvxpy_problem, greedy_value


class SlowSCBRL:
    """``factors``: of the paper's eta, gamma, beta and of the width of its confidence set."""

    def __init__(
        self,
        layers,
        T,
        delta,
        factors,
        clip,
        mixture,
        skip=0.0,
        kappa=1e-3,
        explorers=(),
        center=0.0,
    ):
        self.layers, self.factors = layers, factors
        H, A, sizes = layers.horizon, layers.n_actions, layers.sizes
        self.rates_for(T, delta)
        self.c1, self.c2 = 4 * factors[3], 28 / 3 * factors[3]
        self.clip, self.mixture, self.skip, self.kappa = clip, mixture, skip, kappa
        self.center = center
        self.explorers = explorers  # [(weight, tables)], weights sum to one
        shapes = [(1, 1, sizes[0])] + [(sizes[h], A, sizes[h + 1]) for h in range(H - 1)]
        self.M = [np.zeros(shape) for shape in shapes]
        self.N = [np.zeros((1, 1)), *[np.zeros((n, A)) for n in sizes]]
        self.N_before = [n.copy() for n in self.N]
        self.lo = [np.zeros(shape) for shape in shapes]
        self.hi = [np.ones(shape) for shape in shapes]
        self.C = np.zeros(H)
        self.seen = [[] for _ in range(H)]
        self.since_moved = [[] for _ in range(H)]  # l+ since the window is what it is
        self.w = np.zeros(H)
        self.L = [np.zeros((n, A)) for n in sizes]
        self.since = [np.zeros((n, A)) for n in sizes]  # estimates since the last solve
        self.program = None

    def rates_for(self, T, delta):
        SA = sum(self.layers.sizes) * self.layers.n_actions
        rate = np.sqrt(self.layers.horizon * np.log(SA * T / delta) / (SA * T))
        self.eta, self.gamma = self.factors[0] * rate, self.factors[1] * rate
        self.beta = min(0.5, self.factors[2] * np.sqrt(SA / T))
        self.log_term = np.log(T * SA / delta)

    # thresholds

    def width(self, h):
        """The range of l+ in layer h."""
        if self.clip == "scale":
            return 2 * self.C[h]
        return max(self.seen[h]) - min(self.seen[h]) if self.seen[h] else 0.0

    def observe_loss(self, h, loss):
        """l+ with the window as it was; then the window moves."""
        if self.clip == "scale":
            C = self.C[h]
            l_plus = np.clip(loss, -C, C) + C
            if abs(loss) > C:
                self.C[h] = 2 * abs(loss)
            return l_plus
        if not self.seen[h]:
            self.seen[h] = [loss]
            return 0.0
        low, high = min(self.seen[h]), max(self.seen[h])
        self.seen[h] = [min(low, loss), max(high, loss)]
        return np.clip(loss, low, high) - low

    def weigh(self):
        C = np.array([self.width(h) / 2 for h in range(len(self.w))])
        self.w = np.maximum(self.w, np.maximum(C, self.kappa * C.mean()) / self.eta)

    # confidence set

    def count(self, states, actions):
        previous, due = (0, 0), False
        for h in range(self.layers.horizon + 1):
            self.N[h][previous] += 1
            due |= self.N[h][previous] >= max(1, 2 * self.N_before[h][previous])
            if h < self.layers.horizon:
                self.M[h][(*previous, states[h])] += 1
                previous = (states[h], actions[h])
        return due

    def new_epoch(self):
        self.N_before = [n.copy() for n in self.N]
        for h, M in enumerate(self.M):
            for i in np.ndindex(M.shape[:2]):
                if self.N[h][i] > 0:
                    self.lo[h][i], self.hi[h][i] = self.box(h, i)
        self.program = None

    def box(self, h, i):
        """The box of pair i of layer h by the counts now, within the one that it has."""
        n = self.N[h][i]
        P, d = self.M[h][i] / n, max(1, n - 1)
        eps = self.c1 * np.sqrt(P * self.log_term / d) + self.c2 * self.log_term / d
        a, b = np.maximum(0, P - eps), np.minimum(1, P + eps)
        low, high = np.maximum(a, self.lo[h][i]), np.minimum(b, self.hi[h][i])
        empty = np.any(low > high) or low.sum() > 1 or high.sum() < 1
        return (a, b) if empty else (low, high)

    def upper_bound(self, tables, h, s):
        """Largest probability of state s of layer h (1..H) over the confidence set."""
        f = np.zeros(self.layers.sizes[h - 1])
        f[s] = 1.0
        for k in range(h - 1, -1, -1):
            best = np.array(
                [
                    [greedy_value(lo, hi, f) for lo, hi in zip(los, his, strict=True)]
                    for los, his in zip(self.lo[k], self.hi[k], strict=True)
                ]
            )
            f = (best * tables[k - 1]).sum(axis=1) if k > 0 else best[:, 0]
        return f[0]

    # one episode

    def learn(self, pi, component, states, actions, losses, q=None):
        """``pi``: tables of the FTRL policy that was in use, ``q`` those of its occupancy measure,
        if estimates are centerd. Whether FTRL is to be solved again."""
        due = False
        for h in range(1, self.layers.horizon + 1):
            s, a = states[h - 1], actions[h - 1]
            center, width = 0.0, self.width(h - 1)
            if self.center and width > 0:  # the mean, with one loss in the middle
                losses_before = [width / 2, *self.since_moved[h - 1]]
                center = self.center * min(np.mean(losses_before), width / 2)
            l_plus = self.observe_loss(h - 1, losses[h - 1])
            moved = self.width(h - 1) != width
            self.since_moved[h - 1] = [] if moved else [*self.since_moved[h - 1], l_plus]
            l_plus -= center
            if center > 0:  # everywhere, visited or not
                share = (1 - self.beta) * q[h - 1]
                self.L[h - 1] -= center * self.gamma / (share + self.gamma)
            u = (1 - self.beta) * self.upper_bound(pi, h, s) * pi[h - 1][s, a]
            if self.mixture:
                for weight, tables in self.explorers:
                    u += self.beta * weight * self.upper_bound(tables, h, s) * tables[h - 1][s, a]
            elif component is not None:
                continue
            self.L[h - 1][s, a] += l_plus / (u + self.gamma)
            self.since[h - 1][s, a] += abs(l_plus) / (u + self.gamma)
            uniform = self.since[h - 1].size
            range_ = 2 * self.eta * self.w[h - 1]
            due |= bool(self.since[h - 1][s, a] > self.skip * uniform * range_)
        before = self.w
        self.weigh()
        due |= bool(np.any(self.w != before))
        if self.count(states, actions):
            self.new_epoch()
            due = True
        if due:
            self.since = [np.zeros_like(part) for part in self.since]
        return due

    def solve(self):
        """q~ over pairs, flat without s_0."""
        w = self.w if self.w.max() > 0 else np.ones_like(self.w)
        if self.program is None:
            flat = [self.layers.pack_transitions(b[0][0, 0], b[1:]) for b in (self.lo, self.hi)]
            self.program = Program(self.layers, *flat)
            self.problem = cvxpy_problem(self.program)
        problem, L, weights, x = self.problem
        L.value = np.concatenate([part.ravel() for part in self.L]) / w.max()
        weights.value = self.program.pair_weights(w) / w.max()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "may be inaccurate" at this tolerance
            problem.solve(solver="CLARABEL", tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-12)
        return np.array(x.value)
