"""Upper occupancy bounds of all exploration policies at once, for the visited states.

A policy of the library that seeks a state of layer j takes one action in each state before layer j
and all allowed ones evenly from there on. So in the recursion backwards from a visited state (see
`core.occupancy.upper`) all policies share the even part, which is done once, and with it the values
of all pairs of layer j - 1. Before, only one pair per state counts: the boxes of those pairs are
gathered once per policy, where they lead to a visited state, and serve all of these. The numbers
are those of `u_state`, bit for bit. Where there are lists of possible successors, and nothing else
was seen, only their boxes are gathered, and the numbers are the same to rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbounded.core.arrays import Integers, IntScratch, Scratch, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, TRIPLE, Layers, horizon
from unbounded.core.occupancy.solver.sparse import Lists, best_listed
from unbounded.core.occupancy.upper import best_values
from unbounded.jit.kernel import borrowed, subroutine
from unbounded.mdps.steps.explorers import Library, place


class Workspace(NamedTuple):
    """Work arrays; n is the size of the largest layer."""

    wanted: Scratch  # (H): 1 where a bound is to be computed
    even: Scratch  # (H, n_pairs): values for the target of each layer, actions even afterwards
    f: Scratch  # (H, n): values for the target of each layer, one policy
    value: Scratch  # (n * A)
    rest: Scratch  # (n * A)
    lo: Scratch  # (n, n): boxes of the chosen pairs
    hi: Scratch
    room: Scratch  # (n)
    order: IntScratch  # (n)
    chosen: IntScratch  # (n): pair of each state


def new_scratch(layers: Layers) -> Workspace:
    """Work arrays for `library_bounds`."""
    H, n, A = layers.horizon, max(layers.sizes), layers.n_actions
    return Workspace(
        wanted=np.zeros(H), even=np.zeros(H * layers.n_pairs),
        f=np.zeros(H * n), value=np.zeros(n * A),
        rest=np.zeros(n * A), lo=np.zeros(n * n), hi=np.zeros(n * n),
        room=np.zeros(n), order=np.zeros(n, np.int64), chosen=np.zeros(n, np.int64),
    )  # fmt: skip


@subroutine
def library_bounds(
    lay: Integers, even: Vector, lo: Vector, hi: Vector, room: Vector, library: Library,
    states: Integers, lists: Lists, listed: bool, u: Vector, work: Workspace,
) -> None:  # fmt: skip
    """Where ``u`` (pairs) of a visited state is negative, replace it by the mixture's bound."""
    lay, even, lo, hi, room, library = borrowed((lay, even, lo, hi, room, library))
    states, lists, u, work = borrowed((states, lists, u, work))
    H = horizon(lay)
    S = lay[STATE, H + 1]
    width = work.order.size
    last = 0
    for h in range(1, H + 1):
        A = lay[ACTIONS, h]
        first = lay[PAIR, h] + states[h - 1] * A
        work.wanted[h - 1] = 1.0 if u[first] < 0.0 else 0.0
        if work.wanted[h - 1] == 1.0:
            last = h
            u[first : first + A] = 0.0
            _even_values(lay, even, lo, hi, room, h, states[h - 1], work)
    for k in range(library.size if last > 0 else 0):
        weight = library.weight[k]
        if weight == 0.0:
            continue
        j, _ = place(lay, int(library.target[k]))
        choice = library.choice[k * S : (k + 1) * S]
        for g in range(min(j, last) - 1, -1, -1):
            _step(lay, lo, hi, room, choice, g, j, last, states, lists, listed, work)
        for h in range(1, last + 1):
            if work.wanted[h - 1] == 0.0:
                continue
            A = lay[ACTIONS, h]
            bound = weight * min(work.f[(h - 1) * width], 1.0)
            first = lay[PAIR, h] + states[h - 1] * A
            if h < j:
                u[first + int(choice[lay[STATE, h] + states[h - 1]])] += bound
            else:
                for p in range(first, first + A):
                    u[p] += bound * even[p]


@subroutine
def _even_values(
    lay: Integers, even: Vector, lo: Vector, hi: Vector, room: Vector, k: int, t: int,
    work: Workspace,
) -> None:  # fmt: skip
    """Values of the pairs of layers 0 .. k - 1 for reaching ``t`` of layer ``k``, then even."""
    lay, even, lo, hi, room, work = borrowed((lay, even, lo, hi, room, work))
    X = lay[PAIR, horizon(lay) + 1]
    width = work.order.size
    f = work.f[(k - 1) * width : k * width]
    value = work.value
    for h in range(k - 1, -1, -1):
        n = lay[SIZE, h]
        A = lay[ACTIONS, h]
        m = n * A
        start = lay[TRIPLE, h]
        if h == k - 1:
            for i in range(m):
                a = lo[start + t * m + i]
                value[i] = a + min(hi[start + t * m + i] - a, room[lay[PAIR, h] + i])
        else:
            best_values(
                m, lay[SIZE, h + 1], lo, hi, start, room, lay[PAIR, h], f, work.order, value,
                work.rest,
            )  # fmt: skip
        for s in range(n):
            total = 0.0
            for a in range(A):
                total += even[lay[PAIR, h] + s * A + a] * value[s * A + a]
            f[s] = total
        for i in range(m):
            work.even[(k - 1) * X + lay[PAIR, h] + i] = value[i]


@subroutine
def _step(
    lay: Integers, lo: Vector, hi: Vector, room: Vector, choice: Vector, h: int, j: int, last: int,
    states: Integers, lists: Lists, listed: bool, work: Workspace,
) -> None:  # fmt: skip
    """From the values of layer h + 1 to those of layer h, for all targets of later layers.

    The policy takes the actions ``choice`` before layer ``j > h``.
    """
    lay, lo, hi, room, choice = borrowed((lay, lo, hi, room, choice))
    states, lists, work = borrowed((states, lists, work))
    X = lay[PAIR, horizon(lay) + 1]
    width = work.order.size
    n = lay[SIZE, h]
    m = n * lay[ACTIONS, h]
    after = lay[SIZE, h + 1]
    start = lay[TRIPLE, h]
    for s in range(n):
        work.chosen[s] = s * lay[ACTIONS, h] + int(choice[lay[STATE, h] + s])
    if h == j - 1:
        for k in range(h + 1, last + 1):
            if work.wanted[k - 1] == 1.0:
                first = (k - 1) * X + lay[PAIR, h]
                for s in range(n):
                    work.f[(k - 1) * width + s] = work.even[first + work.chosen[s]]
        return
    if work.wanted[h] == 1.0:
        row = start + states[h] * m
        for s in range(n):
            a = lo[row + work.chosen[s]]
            free = room[lay[PAIR, h] + work.chosen[s]]
            work.f[h * width + s] = a + min(hi[row + work.chosen[s]] - a, free)
    if last <= h + 1:
        return
    if listed:
        _step_listed(lay, lo, hi, room, h, last, lists, work)
        return
    for s in range(n):
        work.room[s] = room[lay[PAIR, h] + work.chosen[s]]
    for y in range(after):
        leads = False  # to a target: else nothing reads these boxes
        for k in range(h + 2, last + 1):
            leads = leads or (work.wanted[k - 1] == 1.0 and work.f[(k - 1) * width + y] > 0.0)
        if leads:
            for s in range(n):
                work.lo[y * n + s] = lo[start + y * m + work.chosen[s]]
                work.hi[y * n + s] = hi[start + y * m + work.chosen[s]]
    for k in range(h + 2, last + 1):
        if work.wanted[k - 1] == 0.0:
            continue
        f = work.f[(k - 1) * width : k * width]
        best_values(
            n, after, work.lo, work.hi, 0, work.room, 0, f, work.order, work.value, work.rest
        )
        for s in range(n):
            f[s] = work.value[s]


@subroutine
def _step_listed(
    lay: Integers, lo: Vector, hi: Vector, room: Vector, h: int, last: int, lists: Lists,
    work: Workspace,
) -> None:  # fmt: skip
    """The end of `_step`, over lists."""
    lay, lo, hi, room, lists, work = borrowed((lay, lo, hi, room, lists, work))
    width = work.order.size
    n = lay[SIZE, h]
    m = n * lay[ACTIONS, h]
    base = lay[STATE, h + 1]
    at = 0
    for s in range(n):
        p = lay[PAIR, h] + work.chosen[s]
        first = lay[TRIPLE, h] + work.chosen[s] - base * m
        for k in range(lists.begin[p], lists.begin[p + 1]):
            work.lo[at] = lo[first + lists.to[k] * m]
            work.hi[at] = hi[first + lists.to[k] * m]
            at += 1
    for k in range(h + 2, last + 1):
        if work.wanted[k - 1] == 0.0:
            continue
        f = work.f[(k - 1) * width : k * width]
        at = 0
        for s in range(n):
            p = lay[PAIR, h] + work.chosen[s]
            a = lists.begin[p]
            b = lists.begin[p + 1]
            work.value[s] = best_listed(a, b, lists.to, base, work.lo, work.hi, at, room[p], f)
            at += b - a
        for s in range(n):
            f[s] = work.value[s]
