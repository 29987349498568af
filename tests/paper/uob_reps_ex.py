"""Algorithm 5, UOB-REPS-EX, with Comp-UOB and the program of line 10."""

import warnings

import cvxpy as cp
import numpy as np


def uob_reps_ex(sizes, A, T, delta, explorers, rates, width=1.0):
    """Yield pi_t; receive (states, actions, l_plus, C)."""
    H, S = len(sizes), sum(sizes)
    eta, gamma, beta = rates
    iota = np.log(T * S * A / delta)
    pairs = [(1, 1), *[(n, A) for n in sizes]]  # layer 0: s_0 (E19)
    triples = [(*pairs[h], sizes[h]) for h in range(H)]
    N, N_before, L = ([np.zeros(x) for x in pairs] for _ in range(3))
    M, lo = ([np.zeros(x) for x in triples] for _ in range(2))
    hi = [np.ones(x) for x in triples]  # P_1: all transitions
    w = np.zeros(H + 1)
    pi = [np.full(x, 1 / x[1]) for x in pairs]  # that of q_1
    while True:  # line 1
        mixture = [(1 - beta, pi)]  # line 11; E12, E20
        mixture += [(beta * weight, part) for weight, part in explorers]
        states, actions, l_plus, C = yield mixture  # line 2
        visited = list(enumerate(zip(states, actions, strict=True)))
        for h, (s, a) in visited[1:]:
            bounds = [x * comp_uob(p, h, s, a, lo, hi) for x, p in mixture]
            u = sum(bounds)  # line 3; E12
            L[h][s, a] += l_plus[h] / (u + gamma)  # line 4
        for h, (s, a) in visited:
            N[h][s, a] += 1  # line 5; E19
            if h < H:
                M[h][s, a, states[h + 1]] += 1
        if any(N[h][i] >= max(1, 2 * N_before[h][i]) for h, i in visited):
            N_before = [x.copy() for x in N]  # lines 6 to 8
            confidence_set(N, M, lo, hi, width, iota)  # line 9
        w = np.maximum(w, np.maximum(C, 1e-3 * C[1:].mean()) / eta)  # E16
        pi = [policy(q) for q in ftrl(L, w, lo, hi)]  # line 10; E15


def confidence_set(N, M, lo, hi, width, iota):
    """Move the bounds of all pairs that were visited (E22)."""
    for h in range(len(M)):
        for i in zip(*np.nonzero(N[h]), strict=True):
            c = 4 * width, 28 / 3 * width
            lo[h][i], hi[h][i] = box(
                N[h][i], M[h][i], lo[h][i], hi[h][i], c, iota
            )


def box(n, m, lo, hi, c, iota):
    """Return P -+ eps, within [lo, hi] unless that is empty (E13)."""
    P, d = m / n, max(1, n - 1)
    eps = c[0] * np.sqrt(P * iota / d) + c[1] * iota / d
    a, b = np.maximum(0, P - eps), np.minimum(1, P + eps)
    low, high = np.maximum(a, lo), np.minimum(b, hi)
    empty = np.any(low > high) or low.sum() > 1 or high.sum() < 1
    return (a, b) if empty else (low, high)


def comp_uob(pi, h, s, a, lo, hi):
    """Return the largest q^{P, pi}(s, a) over P in the boxes."""
    f = np.eye(len(pi[h]))[s]
    for k in reversed(range(h)):
        best = np.empty_like(pi[k])
        for i in np.ndindex(best.shape):
            best[i] = largest(lo[k][i], hi[k][i], f)
        f = (pi[k] * best).sum(axis=1)
    return pi[h][s, a] * f[0]


def largest(lo, hi, f):
    """Return max <P, f> over distributions P in [lo, hi] (E22)."""
    P, rest = lo.copy(), max(1 - lo.sum(), 0.0)
    for j in np.argsort(-f):
        more = min(rest, hi[j] - lo[j])
        P[j] += more
        rest -= more
    return P @ f


def ftrl(L, w, lo, hi):
    """Minimize <q, L> + sum_h w_h <q_h, ln q_h> over q (E14, E17)."""
    unit = w.max() if w.max() > 0 else 1.0
    w = w / unit if w.max() > 0 else np.ones_like(w)  # E16
    q = [np.ones(1), *[cp.Variable(part.size) for part in L[1:]]]
    cost, constraints = 0, []
    for h in range(1, len(L)):
        cost += q[h] @ (L[h].ravel() / unit) - w[h] * cp.sum(cp.entr(q[h]))
        m, (n, A) = q[h - 1].size, L[h].shape
        y = cp.Variable((m, n))  # q(s, a, s') from layer h - 1 to h
        x = cp.reshape(q[h - 1], (m, 1), order="C") @ np.ones((1, n))
        constraints += [
            y >= cp.multiply(lo[h - 1].reshape(m, n), x),
            y <= cp.multiply(hi[h - 1].reshape(m, n), x),
            cp.sum(y, axis=1) == q[h - 1],
            cp.sum(y, axis=0) == np.kron(np.eye(n), np.ones(A)) @ q[h],
        ]
    problem = cp.Problem(cp.Minimize(cost), constraints)
    tolerances = {
        "tol_gap_abs": 1e-13,
        "tol_gap_rel": 1e-13,
        "tol_feas": 1e-12,
    }
    with warnings.catch_warnings():  # "may be inaccurate", so close
        warnings.simplefilter("ignore")
        problem.solve(solver="CLARABEL", **tolerances)
    return [
        np.ones((1, 1)),
        *[q[h].value.reshape(L[h].shape) for h in range(1, len(L))],
    ]


def policy(q):
    """Return pi^q of one layer; even where q(s) = 0."""
    q = np.maximum(q, 0.0)
    mass = q.sum(axis=1, keepdims=True)
    even = np.full_like(q, 1 / q.shape[1])
    return np.divide(q, mass, out=even, where=mass > 0)
