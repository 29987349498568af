"""Bound occupancies from above over a confidence set (Comp-UOB), by greedy transitions.

The largest probability of reaching state ``t`` of layer ``k`` with policy ``pi`` over all
transitions in the boxes is ``f(s_0)``, where ``f = 1{. = t}`` on layer ``k`` and backwards

    f(s) = sum_a pi(a|s) max { <P, f> : lo <= P <= hi, sum P = 1 }.

The inner maximum is greedy: start from ``lo`` and hand ``rest = 1 - sum lo`` to the largest ``f``
first, at most ``hi - lo`` each. In descending order of ``f``, for every pair,

    P = min(rest + lo, hi),   value += P f,   rest += lo - P.

(Jin et al.'s Greedy starts from P_bar and returns 0 when N = 0; this one does not.) One order of
``f`` serves all pairs of a layer. ``u(s, a) = pi(a|s) u(s)``.

For an episode-level mixture the bound is the mixture of its components' bounds (erratum E12): each
term bounds its component, so ``u >= q`` holds.
"""

from __future__ import annotations

import numpy as np

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, TRIPLE, Layers, horizon
from unbounded.jit.kernel import borrowed, integers, kernel, section, subroutine


def scratch(layers: Layers) -> tuple[Vector, Integers]:
    """Make the work arrays of the kernels below."""
    n = max(layers.sizes)
    return np.empty(n + 2 * n * layers.n_actions), np.empty(n, dtype=np.int64)


# Kernels. ``room`` = 1 - sum(lo) of each pair, once per epoch.


@subroutine
def spare_mass(lay: Integers, lo: Vector, room: Vector) -> None:
    """Set room(s, a) = 1 - sum_j lo(j|s, a); zero in layer H."""
    H = horizon(lay)
    for h in range(H):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        r = room[lay[PAIR, h] : lay[PAIR, h] + m]
        for i in range(m):
            r[i] = 1.0
        for j in range(lay[SIZE, h + 1]):
            k = lay[TRIPLE, h] + j * m
            a = lo[k : k + m]
            for i in range(m):
                r[i] -= a[i]
        for i in range(m):
            r[i] = max(r[i], 0.0)
    for p in range(lay[PAIR, H], lay[PAIR, H + 1]):
        room[p] = 0.0


@kernel
def descending(n: int, f: Vector, order: Integers) -> None:
    """Sort 0..n-1 by decreasing f into ``order``, ties by number."""
    for j in range(n):
        k = j
        while k > 0 and f[order[k - 1]] < f[j]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = j


@kernel
def best_values(
    m: int, n: int, lo: Vector, hi: Vector, start: int, room: Vector, first: int, f: Vector,
    order: Integers, value: Vector, rest: Vector,
) -> None:  # fmt: skip
    """Set value[i] = max over the box of pair i of <P, f>, for f >= 0, for a layer at once.

    ``room[first]`` is that of the layer's first pair; ``rest`` is scratch. States are taken two by
    two, which halves the passes over the pairs.
    """
    descending(n, f, order)
    used = n
    while used > 0 and f[order[used - 1]] <= 0.0:
        used -= 1
    rest = rest[:m]
    value = value[:m]
    for i in range(m):
        rest[i] = room[first + i]
        value[i] = 0.0
    for g in range(0, used - 1, 2):
        f0 = f[order[g]]
        f1 = f[order[g + 1]]
        j = start + order[g] * m
        k = start + order[g + 1] * m
        lo0 = lo[j : j + m]
        hi0 = hi[j : j + m]
        lo1 = lo[k : k + m]
        hi1 = hi[k : k + m]
        for i in range(m):
            r = rest[i] + lo0[i]
            P0 = min(r, hi0[i])
            r += lo1[i] - P0
            P1 = min(r, hi1[i])
            value[i] += P0 * f0 + P1 * f1
            rest[i] = r - P1
    if used % 2 == 1:
        f0 = f[order[used - 1]]
        j = start + order[used - 1] * m
        lo0 = lo[j : j + m]
        hi0 = hi[j : j + m]
        for i in range(m):
            value[i] += min(rest[i] + lo0[i], hi0[i]) * f0


@kernel
def average(n: int, A: int, pi: Vector, value: Vector, f: Vector) -> None:
    """Set f(s) = sum_a pi(a|s) value(s, a)."""
    for s in range(n):
        total = 0.0
        for a in range(A):
            total += pi[s * A + a] * value[s * A + a]
        f[s] = total


@subroutine
def u_state(
    lay: Integers, lo: Vector, hi: Vector, room: Vector, pi: Vector, k: int, t: int, work: Vector,
    order: Integers,
) -> float:  # fmt: skip
    """Return the largest probability of reaching state ``t`` of layer ``k >= 1``."""
    lay, lo, hi, room = borrowed(lay), borrowed(lo), borrowed(hi), borrowed(room)
    pi, work, order = borrowed(pi), borrowed(work), borrowed(order)
    n = order.size
    pairs = (work.size - n) // 2
    f = work[:n]
    value = work[n : n + pairs]
    rest = work[n + pairs :]
    for h in range(k - 1, -1, -1):
        A = lay[ACTIONS, h]
        m = lay[SIZE, h] * A
        r = room[lay[PAIR, h] : lay[PAIR, h] + m]
        if h == k - 1:
            a = lo[lay[TRIPLE, h] + t * m : lay[TRIPLE, h] + (t + 1) * m]
            b = hi[lay[TRIPLE, h] + t * m : lay[TRIPLE, h] + (t + 1) * m]
            for i in range(m):
                value[i] = a[i] + min(b[i] - a[i], r[i])
        else:
            best_values(
                m, lay[SIZE, h + 1], lo, hi, lay[TRIPLE, h], room, lay[PAIR, h], f, order, value,
                rest,
            )  # fmt: skip
        average(lay[SIZE, h], A, pi[lay[PAIR, h] : lay[PAIR, h] + m], value, f)
    return float(min(f[0], 1.0))


@subroutine
def u_everywhere(
    lay: Integers, lo: Vector, hi: Vector, room: Vector, pi: Vector, wanted: Vector, u: Vector,
    work: Vector, order: Integers, buffer: Vector,
) -> None:  # fmt: skip
    """Compute u, where it is below 0, of all states of the layers h with wanted[h - 1] > 0.

    The numbers are those of `u_state`, bit for bit. Boxes are gathered once for all states; a pair
    that has none, but the whole simplex, goes to the largest f. ``buffer`` is scratch for two
    vectors over triples and four over pairs.
    """
    lay, lo, hi, room, pi = borrowed((lay, lo, hi, room, pi))
    wanted, u, work, order, buffer = borrowed((wanted, u, work, order, buffer))
    H = horizon(lay)
    X = lay[PAIR, H + 1]
    T = lay[TRIPLE, H + 1]
    low = section(buffer, 0, T)
    high = section(buffer, T, 2 * T)
    spare = section(buffer, 2 * T, 2 * T + X)
    value = section(buffer, 2 * T + X, 2 * T + 2 * X)
    boxed = integers(section(buffer, 2 * T + 2 * X, 2 * T + 3 * X))
    counts = integers(section(buffer, 2 * T + 3 * X, 2 * T + 4 * X))
    last = 0
    for h in range(1, H + 1):
        if wanted[h - 1] > 0.0:
            last = h
    for h in range(last - 1):
        counts[h] = _gather(lay, h, lo, hi, room, boxed, low, high, spare, value)
    n = order.size
    pairs = (work.size - n) // 2
    f = work[:n]
    values = work[n : n + pairs]
    rest = work[n + pairs :]
    for k in range(1, last + 1):
        for t in range(lay[SIZE, k] if wanted[k - 1] > 0.0 else 0):
            if u[lay[STATE, k] + t] >= 0.0:
                continue
            for h in range(k - 1, -1, -1):
                A = lay[ACTIONS, h]
                m = lay[SIZE, h] * A
                first = lay[PAIR, h]
                start = lay[TRIPLE, h]
                if h == k - 1:
                    r = room[first : first + m]
                    a = lo[start + t * m : start + (t + 1) * m]
                    b = hi[start + t * m : start + (t + 1) * m]
                    for i in range(m):
                        values[i] = a[i] + min(b[i] - a[i], r[i])
                else:
                    c = counts[h]
                    after = lay[SIZE, h + 1]
                    if c < m:
                        top = 0.0
                        for j in range(after):
                            top = max(top, f[j])
                        for i in range(m):
                            values[i] = top
                    if c > 0:
                        best_values(c, after, low, high, start, spare, first, f, order, value, rest)
                    for i in range(c):
                        values[boxed[first + i]] = value[i]
                average(lay[SIZE, h], A, pi[first : first + m], values, f)
            u[lay[STATE, k] + t] = min(f[0], 1.0)


@kernel
def _gather(
    lay: Integers, h: int, lo: Vector, hi: Vector, room: Vector, boxed: Integers, low: Vector,
    high: Vector, spare: Vector, marks: Vector,
) -> int:  # fmt: skip
    """Gather the boxes of layer h that are not the whole simplex; return how many there are.

    ``boxed`` gets their pairs, from the layer's first entry on.
    """
    m = lay[SIZE, h] * lay[ACTIONS, h]
    first = lay[PAIR, h]
    start = lay[TRIPLE, h]
    for i in range(m):
        marks[i] = 0.0
    for j in range(lay[SIZE, h + 1]):
        a = lo[start + j * m : start + (j + 1) * m]
        b = hi[start + j * m : start + (j + 1) * m]
        for i in range(m):
            marks[i] += 1.0 if a[i] > 0.0 or b[i] < 1.0 else 0.0
    count = 0
    for i in range(m):
        if marks[i] > 0.0:
            boxed[first + count] = i
            spare[first + count] = room[first + i]
            count += 1
    for j in range(lay[SIZE, h + 1]):
        for i in range(count):
            low[start + j * count + i] = lo[start + j * m + boxed[first + i]]
            high[start + j * count + i] = hi[start + j * m + boxed[first + i]]
    return count


@subroutine
def u_unknown(
    lay: Integers, lo: Vector, hi: Vector, room: Vector, pi: Vector, states: Integers, u: Vector,
    work: Vector, order: Integers,
) -> None:  # fmt: skip
    """Compute u (n_states) of the visited states where it is below 0: not known yet."""
    for h in range(1, horizon(lay) + 1):
        s = states[h - 1]
        k = lay[STATE, h] + s
        if u[k] < 0.0:
            u[k] = u_state(lay, lo, hi, room, pi, h, s, work, order)
