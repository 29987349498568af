"""Independent references for the occupancy programs: numpy, Clarabel, cvxpy, HiGHS.

Written against the definitions, on ordinary (n_h, A, n_{h+1}) arrays; nothing here calls a kernel
of the package. Weights are one a layer 1..H.
"""

import clarabel
import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from occupancy_facades import ConfidenceSet
from unbounded import worlds
from unbounded.core.occupancy.confidence import JIN, PAPER
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, TRIPLE


def boxes_as_arrays(layers, flat):
    """[(1, 1, n_1), (n_1, A, n_2), ...] from the flat layout."""
    initial, arrays = layers.unpack_transitions(flat)
    return [initial[None, None, :], *arrays]


def states_as_arrays(layers, flat):
    """[(1,), (n_1,), ...] from a flat vector over states."""
    return np.split(flat, np.cumsum([1, *layers.sizes])[:-1])


def greedy_value(lo, hi, v):
    """max <P, v> over the box with sum one, by sorting."""
    order = np.argsort(-v)
    P, rest = lo.copy(), max(1 - lo.sum(), 0.0)
    for j in order:
        give = min(rest, hi[j] - lo[j])
        P[j] += give
        rest -= give
    return P @ v


def objective(layers, L, w, q):
    """F(q) = sum L q + w_h q ln q over layers 1..H."""
    total = 0.0
    for loss, qh, wh in zip(layers.unpack_pairs(L), layers.unpack_pairs(q), w, strict=True):
        total += np.sum(loss * qh) + wh * np.sum(qh[qh > 0] * np.log(qh[qh > 0]))
    return total


def dual_value(layers, L, w, lo, hi, v):
    """g(v) with the exact inner maximum."""
    lows, highs = boxes_as_arrays(layers, lo), boxes_as_arrays(layers, hi)
    values = states_as_arrays(layers, v)
    total = -greedy_value(lows[0][0, 0], highs[0][0, 0], values[1])
    losses = layers.unpack_pairs(L)
    for h in range(1, layers.horizon + 1):
        c = losses[h - 1] + values[h][:, None]
        if h < layers.horizon:
            for s in range(c.shape[0]):
                for a in range(c.shape[1]):
                    c[s, a] -= greedy_value(lows[h][s, a], highs[h][s, a], values[h + 1])
        least = c.min()
        total += least - w[h - 1] * np.log(np.sum(np.exp(-(c - least) / w[h - 1])))
    return total


def violations(layers, lo, hi, q, P):
    """Largest violation of boxes, row sums, flow and layer mass."""
    lows, highs, Ps = (boxes_as_arrays(layers, f) for f in (lo, hi, P))
    mass = [np.ones((1, 1)), *layers.unpack_pairs(q)]
    box = flow = 0.0
    for h, Ph in enumerate(Ps):
        box = max(box, np.max(lows[h] - Ph), np.max(Ph - highs[h]), np.max(abs(Ph.sum(2) - 1)))
        inflow = np.einsum("sa,sat->t", mass[h], Ph)
        flow = max(flow, np.max(np.abs(inflow - mass[h + 1].sum(1))))
    flow = max(flow, max(abs(m.sum() - 1) for m in mass))
    return float(box), float(flow)


class Program:
    """The linear constraints of Delta(boxes) in (x pairs 1..H, y triples 0..H-1)."""

    def __init__(self, layers, lo, hi):
        self.layers = layers
        self.n_x = layers.n_pairs - 1
        self.n_y = layers.n_transitions
        lay, A, H = layers.table, layers.n_actions, layers.horizon
        equal, right, inequal = [], [], []

        def row(entries):
            indices, values = zip(*entries, strict=True)
            return np.array(indices), np.array(values, dtype=float)

        def x(h, i):
            return lay[PAIR, h] + i - 1

        def y(h, i, j):
            return self.n_x + lay[TRIPLE, h] + j * lay[SIZE, h] * lay[ACTIONS, h] + i

        for h in range(H):
            m, n = lay[SIZE, h] * lay[ACTIONS, h], lay[SIZE, h + 1]
            for i in range(m):
                entries = [(y(h, i, j), 1.0) for j in range(n)]
                if h > 0:
                    entries.append((x(h, i), -1.0))
                equal.append(row(entries))
                right.append(1.0 if h == 0 else 0.0)
                for j in range(n):
                    k = lay[TRIPLE, h] + j * m + i
                    if hi[k] - lo[k] < 1e-13:
                        if h > 0:
                            equal.append(row([(y(h, i, j), 1.0), (x(h, i), -lo[k])]))
                            right.append(0.0)
                        else:
                            equal.append(row([(y(h, i, j), 1.0)]))
                            right.append(lo[k])
                        continue
                    if h > 0:  # lo x - y <= 0, y - hi x <= 0
                        inequal.append((row([(y(h, i, j), -1.0), (x(h, i), lo[k])]), 0.0))
                        if hi[k] < 1:
                            inequal.append((row([(y(h, i, j), 1.0), (x(h, i), -hi[k])]), 0.0))
                    else:
                        inequal.append((row([(y(h, i, j), -1.0)]), -lo[k]))
                        if hi[k] < 1:
                            inequal.append((row([(y(h, i, j), 1.0)]), hi[k]))
            for j in range(n):
                entries = [(x(h + 1, j * A + a), 1.0) for a in range(A)]
                entries += [(y(h, i, j), -1.0) for i in range(m)]
                equal.append(row(entries))
                right.append(0.0)
        self.A_eq, self.b_eq = self._matrix(equal), np.array(right)
        self.A_ub = self._matrix([r for r, _ in inequal])
        self.b_ub = np.array([b for _, b in inequal])

    def _matrix(self, rows):
        data = np.concatenate([v for _, v in rows]) if rows else np.zeros(0)
        cols = np.concatenate([i for i, _ in rows]) if rows else np.zeros(0, int)
        which = np.repeat(np.arange(len(rows)), [len(i) for i, _ in rows]) if rows else cols
        return sp.csc_matrix((data, (which, cols)), shape=(len(rows), self.n_x + self.n_y))

    def pair_weights(self, w):
        sizes = np.array(self.layers.sizes) * self.layers.n_actions
        return np.repeat(np.asarray(w, dtype=float), sizes)


def clarabel_settings(tolerance):
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    return settings


def clarabel_problem(program, L, w, tolerance=1e-10, entropy_on_triples=None):
    """A Clarabel solver of the program, in units of the largest weight.

    ``entropy_on_triples = (q0, P0)`` gives the mirror-descent program instead.
    """
    scale = np.max(w)
    n_x, n_y = program.n_x, program.n_y
    if entropy_on_triples is None:
        terms = np.arange(n_x)  # entropy of these variables
        weights = program.pair_weights(w) / scale
        linear = np.concatenate([L[1:] / scale, np.zeros(n_y)])
    else:
        q0, P0 = entropy_on_triples
        layers, lay = program.layers, program.layers.table
        last = np.arange(lay[PAIR, layers.horizon] - 1, n_x)
        terms = np.concatenate([n_x + np.arange(n_y), last])
        weights = (
            np.concatenate(
                [
                    *[
                        np.full(lay[TRIPLE, h + 1] - lay[TRIPLE, h], w[max(h, 1) - 1])
                        for h in range(layers.horizon)
                    ],
                    np.full(len(last), w[-1]),
                ]
            )
            / scale
        )
        base = np.concatenate(
            [
                *[
                    np.tile(q0[lay[PAIR, h] : lay[PAIR, h + 1]], lay[SIZE, h + 1])
                    * P0[lay[TRIPLE, h] : lay[TRIPLE, h + 1]]
                    for h in range(layers.horizon)
                ],
                q0[1:][last],
            ]
        )
        linear = np.concatenate([L[1:] / scale, np.zeros(n_y)])
        linear[terms] -= weights * np.log(base)
    m = len(terms)
    n = n_x + n_y + m
    pad = sp.csc_matrix((program.A_eq.shape[0], m))
    pad_ub = sp.csc_matrix((program.A_ub.shape[0], m))
    # (-t, x, 1) in the exponential cone: t >= x ln x
    k = np.arange(m)
    cone = sp.csc_matrix(
        (
            np.concatenate([np.ones(m), -np.ones(m)]),
            (np.concatenate([3 * k, 3 * k + 1]), np.concatenate([n_x + n_y + k, terms])),
        ),
        shape=(3 * m, n),
    )
    A = sp.vstack(
        [sp.hstack([program.A_eq, pad]), sp.hstack([program.A_ub, pad_ub]), cone], format="csc"
    )
    b = np.concatenate([program.b_eq, program.b_ub, np.tile([0.0, 0.0, 1.0], m)])
    cones = [
        clarabel.ZeroConeT(program.A_eq.shape[0]),
        clarabel.NonnegativeConeT(program.A_ub.shape[0]),
        *[clarabel.ExponentialConeT()] * m,
    ]
    objective_vector = np.concatenate([linear, weights])
    return clarabel.DefaultSolver(
        sp.csc_matrix((n, n)), objective_vector, A, b, cones, clarabel_settings(tolerance)
    )


def clarabel_solve(program, L, w, tolerance=1e-10, entropy_on_triples=None):
    """(status, objective in units of the losses, x) by Clarabel called directly."""
    solution = clarabel_problem(program, L, w, tolerance, entropy_on_triples).solve()
    x = np.array(solution.x)
    return str(solution.status), solution.obj_val * np.max(w), x


def cvxpy_problem(program):
    """The same program in cvxpy, compiled once: losses and weights are parameters (DPP)."""
    import cvxpy as cp

    x, y = cp.Variable(program.n_x), cp.Variable(program.n_y)
    L, w = cp.Parameter(program.n_x), cp.Parameter(program.n_x, nonneg=True)
    both = cp.hstack([x, y])
    problem = cp.Problem(
        cp.Minimize(L @ x - cp.sum(cp.multiply(w, cp.entr(x)))),
        [program.A_eq @ both == program.b_eq, program.A_ub @ both <= program.b_ub],
    )
    return problem, L, w, x


def upper_bound_by_lp(layers, pi, lo, hi, h, s):
    """max_P q^{P,pi}(s) of layer h as a linear program over x, y with x(s,a) = pi(a|s) x(s)."""
    program = Program(layers, lo, hi)
    lay, A = layers.table, layers.n_actions
    rows, cols, data = [], [], []
    for k in range(1, layers.n_states):
        for a in range(A):
            r = (k - 1) * A + a
            for a2 in range(A):
                rows.append(r)
                cols.append((k - 1) * A + a2)
                data.append((a == a2) - pi[1 + r])
    tie = sp.csc_matrix((data, (rows, cols)), shape=(program.n_x, program.n_x + program.n_y))
    cost = np.zeros(program.n_x + program.n_y)
    first = lay[PAIR, h] - 1 + s * A
    cost[first : first + A] = -1
    result = linprog(
        cost,
        A_ub=program.A_ub if program.A_ub.shape[0] else None,
        b_ub=program.b_ub if program.A_ub.shape[0] else None,
        A_eq=sp.vstack([program.A_eq, tie]),
        b_eq=np.concatenate([program.b_eq, np.zeros(program.n_x)]),
        bounds=(0, 1),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert result.status == 0, result.message
    return -result.fun


def fill_counts(sets, mdp, rng, visits):
    """Counts as if pair number p of the flat layout had been visited ``visits(p)`` times."""
    lay = mdp.layers.table
    for h in range(mdp.layers.horizon):
        m, n = lay[SIZE, h] * lay[ACTIONS, h], lay[SIZE, h + 1]
        for i in range(m):
            N = int(visits(lay[PAIR, h] + i))
            where = lay[TRIPLE, h] + i + m * np.arange(n)
            sets.N[lay[PAIR, h] + i] = N
            sets.M[where] = rng.multinomial(N, mdp.P[where] / mdp.P[where].sum())
    sets.refresh()


def random_instance(rng, max_horizon=8, max_states=20, max_actions=8):
    """A random program: unequal layers, counts 0..1e6, weights over 12 decades, L/w up to 1e3."""
    H = int(rng.integers(1, max_horizon + 1))
    sizes = rng.integers(1, max_states + 1, size=H)
    A = int(rng.integers(1, max_actions + 1))
    mdp = worlds.dirichlet(sizes, A, rng, concentration=float(rng.choice([0.1, 1.0, 5.0])))
    sets = ConfidenceSet(mdp.layers, 10**6, 0.05, constants=PAPER if rng.random() < 0.5 else JIN)
    decades, mixed = rng.uniform(0, 6), rng.random() < 0.5

    def visits(p):
        if rng.random() < 0.15:
            return 0
        return 10 ** (rng.uniform(0, 6) if mixed else decades)

    fill_counts(sets, mdp, rng, visits)
    w = 10 ** rng.uniform(-6, 6) * 10 ** rng.uniform(0, 1, size=H)
    L = rng.gamma(0.5, size=mdp.layers.n_pairs) * 10 ** rng.uniform(-1, 2) * w.max()
    L[0] = 0.0
    return mdp, sets.lo, sets.hi, L, w
