"""Random programs with states that nothing reaches, and a bound that knows nothing of them.

The bound is the dual of the *whole* program, by `occupancy_reference.dual_value`: a state that
cannot be reached gets a finite multiplier so large that its softmax vanishes. Nothing of the
package says which states these are.
"""

from itertools import pairwise

import numpy as np

from occupancy_reference import boxes_as_arrays, dual_value, states_as_arrays
from unbounded.core.occupancy.mdp import LayeredMDP

KINDS = ("deterministic", "sparse", "few states")


def sparse_world(rng, max_horizon=5, max_states=6, max_actions=3):
    """Supports with many zeros; some state of some layer is not reached (if there are any)."""
    H = int(rng.integers(1, max_horizon + 1))
    sizes = rng.integers(1, max_states + 1, size=H)
    sizes[rng.integers(H)] += 1  # a layer of at least two
    A = int(rng.integers(1, max_actions + 1))
    kind = KINDS[rng.integers(3)]

    def row(n):
        if kind == "deterministic":
            return np.eye(n)[rng.integers(n)]
        share = 0.3 if kind == "sparse" else 0.6
        open_ = rng.random(n) < share
        open_[rng.integers(n)] = True
        return rng.dirichlet(np.ones(n)) * open_

    while True:
        rows = [np.array([[row(sizes[0])]])]
        rows += [
            np.array([[row(m) for _ in range(A)] for _ in range(n)]) for n, m in pairwise(sizes)
        ]
        if kind == "few states":  # nothing leads to these
            for P in rows:
                closed = rng.random(P.shape[2]) < 0.4
                closed[rng.integers(P.shape[2])] = False
                P[:, :, closed] = 0.0
                P[P.sum(axis=2) == 0.0] = np.eye(P.shape[2])[np.argmin(closed)]
        for P in rows:
            P /= P.sum(axis=2, keepdims=True)
        mdp = LayeredMDP(rows[0][0, 0], rows[1:], A)
        if not all(np.all(alive) for alive in reached(mdp.layers, mdp.P, mdp.P)):
            return mdp


def random_boxes(rng, mdp):
    """Boxes that hold the world: of width zero, narrow or wide, never beyond its support."""
    possible = mdp.P > 0
    kind = rng.integers(4)
    if kind == 0:
        return mdp.P.copy(), mdp.P.copy()
    if kind == 1:
        return np.zeros_like(mdp.P), possible.astype(float)
    width = 10.0 ** rng.uniform(-4, 0, size=mdp.P.size)
    if kind == 2:
        width *= rng.random(mdp.P.size) < 0.5
    lo = np.maximum(mdp.P - width, 0.0) * possible
    return lo, np.minimum(mdp.P + width, 1.0) * possible


def reached(layers, lo, hi, allowed=None):
    """One bool array per layer 0..H: can the state have any mass? By the definition."""
    if allowed is None:
        allowed = [np.ones((n, layers.n_actions), bool) for n in layers.sizes]
    out = [np.array([True])]
    for h, (a, b) in enumerate(
        zip(boxes_as_arrays(layers, lo), boxes_as_arrays(layers, hi), strict=True)
    ):
        others = a.sum(axis=2, keepdims=True) - a
        most = np.minimum(b, 1.0 - others)  # the largest P(j|i)
        most[most < 1e-14] = 0.0
        living = out[-1][:, None] if h == 0 else out[-1][:, None] & allowed[h - 1]
        out.append(np.any((most > 0) & living[:, :, None], axis=(0, 1)))
    return out


def lifted(layers, lo, hi, L, w, v, allowed=None):
    """``v`` with huge values in the states that have no mass, larger in earlier layers."""
    finite = L[np.isfinite(L)]
    huge = 1e3 * (np.max(w) + np.ptp(finite) + np.ptp(v))
    v = v.copy()
    alive = reached(layers, lo, hi, allowed)
    for h, values in enumerate(states_as_arrays(layers, v)):
        values[~alive[h]] = huge * (layers.horizon + 2 - h)
    return v


def lower_bound(layers, lo, hi, L, w, v):
    """What no feasible q can be below: the dual value at the lifted point."""
    return dual_value(layers, L, w, lo, hi, lifted(layers, lo, hi, L, w, v))
