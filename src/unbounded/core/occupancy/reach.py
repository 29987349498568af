"""Find the pairs that a program over occupancy measures is about: those that can have mass.

A state that no transition of the confidence set reaches has q(s) = 0 whatever is played, and an
action that is not allowed has q(s, a) = 0. The dual of the program would need v(s) = infinity
there. So such pairs are taken out: they are not *alive*. A pair is alive if its action is allowed
and its state can be reached from s_0 through pairs that are alive.

That is the whole mechanism, and it has one sign: **a loss of +infinity**. Who calls a solver gives
that loss to actions that are not allowed; `mark` finds the states that cannot be reached and does
the same with their pairs in the solver's own copy of the losses. Softmax then gives them no mass, a
Newton step does not move their multipliers, and the certificate has no term of theirs: it is the
limit of those with v(s) -> infinity, and as valid.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, TRIPLE, Layers, horizon
from unbounded.jit.kernel import kernel, subroutine

_ROUNDING = 2.0**-51  # per entry: what sum(lo) = 1 may be off by


def reachable(layers: Layers, lo: Vector, hi: Vector) -> npt.NDArray[np.bool_]:
    """Tell which states (n_states,) some policy of allowed actions reaches under the boxes.

    For known transitions ``lo`` and ``hi`` are both `LayeredMDP.P`.
    """
    pairs, room = np.zeros(layers.n_pairs), np.empty(max(layers.sizes) * layers.n_actions)
    mark(layers.table, lo, hi, layers.barred, room, pairs)
    tables = layers.unpack_pairs(np.isfinite(pairs))
    return np.concatenate([[True], *[table.any(axis=1) for table in tables]]) > 0


def within_reach(layers: Layers, possible: Vector) -> list[int]:
    """Count the states of each layer that ``possible`` transitions (1, 0; empty: all) can reach."""
    if possible.size == 0:
        return list(layers.sizes)
    found = reachable(layers, np.zeros_like(possible), possible)
    return [int(found[a:b].sum()) for a, b in pairwise(layers.table[STATE, 1:])]


# Kernels


@subroutine
def mark(lay: Integers, lo: Vector, hi: Vector, L: Vector, room: Vector, marks: Vector) -> bool:
    """Set marks to 0 on pairs that are alive, else to infinity; return whether any is not.

    ``L`` is infinite where an action is not allowed. ``room`` is scratch, as long as the pairs of
    the largest layer. Where everything can be reached this looks at a few entries per state.
    """
    some = False
    marks[0] = 0.0
    for h in range(1, horizon(lay) + 1):
        A = lay[ACTIONS, h]
        room[: lay[SIZE, h - 1] * lay[ACTIONS, h - 1]] = -1.0  # not known yet
        for s in range(lay[SIZE, h]):
            found = _reached(lay, lo, hi, h - 1, s, room, marks)
            p = lay[PAIR, h] + s * A
            for a in range(A):
                alive = found and L[p + a] < math.inf
                marks[p + a] = 0.0 if alive else math.inf
                some = some or not alive
    return some


@kernel
def _reached(
    lay: Integers, lo: Vector, hi: Vector, h: int, j: int, room: Vector, marks: Vector
) -> bool:
    """Test whether a living pair of layer h can lead to state j of the next."""
    m = lay[SIZE, h] * lay[ACTIONS, h]
    n = lay[SIZE, h + 1]
    for i in range(m):
        k = lay[TRIPLE, h] + i
        if marks[lay[PAIR, h] + i] > 0.0 or hi[k + j * m] <= 0.0:
            continue
        if lo[k + j * m] > 0.0:
            return True
        if room[i] < 0.0:  # what the lower bounds leave to be given away
            total = 0.0
            for g in range(n):
                total += lo[k + g * m]
            room[i] = max(1.0 - total, 0.0)
        if room[i] > _ROUNDING * n:
            return True
    return False


@subroutine
def spread(lay: Integers, L: Vector, marks: Vector, pi: Vector) -> None:
    """Make ``pi`` even over the allowed actions in every state that cannot be reached."""
    for h in range(1, horizon(lay) + 1):
        A = lay[ACTIONS, h]
        for s in range(lay[SIZE, h]):
            p = lay[PAIR, h] + s * A
            dead = True
            allowed = 0
            for a in range(A):
                dead = dead and marks[p + a] == math.inf
                allowed += 1 if L[p + a] < math.inf else 0
            if dead:
                for a in range(A):
                    pi[p + a] = 1.0 / allowed if L[p + a] < math.inf else 0.0
