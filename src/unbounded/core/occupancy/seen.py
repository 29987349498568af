"""Count the transitions that were seen, and store nothing of those that were not.

Cost and memory go by the number of different transitions seen, which is at most that of the
possible ones and at most H times that of the episodes: never by |S|^2, and without knowing what
is possible. The model is the mean of a posterior, with one visit spread over the next layer:

    P(s'|s, a) = (M(s, a, s') + 1/n)/(N(s, a) + 1),   n states in the next layer.

The spread part is the same for every s', so no pass over it is needed. The transitions of each pair
are a linked list, oldest first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbounded.core.arrays import Counts, Integers, Vector, require
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, Layers, horizon
from unbounded.jit.kernel import kernel, subroutine


class Seen(NamedTuple):
    """Hold transitions 0 .. size - 1, with space for more."""

    size: int
    N: Counts  # pairs: visits
    begin: Integers  # pairs: the first transition seen from there, or -1
    after: Integers  # (capacity,): the next one of the same pair, or -1
    to: Integers  # (capacity,): the state that it leads to, numbered over all layers
    M: Counts  # (capacity,): how often it was seen

    def check(self) -> None:
        """Reject lists that no visits can have made; with them, a kernel might never end."""
        require(0 <= self.size <= self.M.size, "no so many transitions were seen")
        links = np.concatenate([self.begin, self.after[: self.size]])
        links = np.sort(links[links >= 0])
        require(np.array_equal(links, np.arange(self.size)), "transitions are not in lists")
        require(np.all(self.after[self.size :] == -1), "transitions are not in lists")
        total, k = np.zeros(self.N.size), self.begin.copy()
        while np.any(k >= 0):
            total[k >= 0] += self.M[k[k >= 0]]
            k[k >= 0] = self.after[k[k >= 0]]
        left = self.begin >= 0  # pairs of the last layer lead nowhere
        require(np.array_equal(total[left], self.N[left]), "visits are not what was seen")

    def check_for(self, layers: Layers) -> None:
        """Reject transitions that do not lead to the next layer."""
        lay = layers.table
        for h in range(layers.horizon + 1):
            k = self.begin[lay[PAIR, h] : lay[PAIR, h + 1]]
            while (k := k[k >= 0]).size:
                within = h < layers.horizon and np.all(
                    (self.to[k] >= lay[STATE, h + 1]) & (self.to[k] < lay[STATE, h + 2])
                )
                require(within, "a transition leads to no state of the next layer")
                k = self.after[k]


def nothing_seen(layers: Layers) -> Seen:
    """Make an empty record, with space for at least one transition per pair."""
    X = layers.n_pairs
    room = X + layers.horizon
    return Seen(
        0, np.zeros(X), np.full(X, -1), np.full(room, -1), np.zeros(room, np.int64), np.zeros(room)
    )


def grown(seen: Seen) -> Seen:
    """Return the same transitions, with space for twice as many."""
    return seen._replace(
        after=np.concatenate([seen.after, np.full_like(seen.after, -1)]),
        to=np.concatenate([seen.to, np.zeros_like(seen.to)]),
        M=np.concatenate([seen.M, np.zeros_like(seen.M)]),
    )


# Kernels


@kernel
def fits(lay_horizon: int, seen: Seen) -> bool:
    """Test whether the transitions of one more episode fit, all of them new."""
    return seen.size + lay_horizon <= seen.M.size


@subroutine
def observe(lay: Integers, seen: Seen, states: Integers, actions: Integers) -> int:
    """Count an episode's transitions, that of s_0 first; return how many differ."""
    size = seen.size
    p = 0
    for h in range(1, horizon(lay) + 1):
        s = lay[STATE, h] + states[h - 1]
        seen.N[p] += 1.0
        last = -1
        k = seen.begin[p]
        while k >= 0 and seen.to[k] != s:
            last = k
            k = seen.after[k]
        if k < 0:
            k = size
            size += 1
            seen.to[k] = s
            if last < 0:
                seen.begin[p] = k
            else:
                seen.after[last] = k
        seen.M[k] += 1.0
        p = lay[PAIR, h] + states[h - 1] * lay[ACTIONS, h] + actions[h - 1]
    seen.N[p] += 1.0
    return size


@subroutine
def reach(lay: Integers, seen: Seen, pi: Vector, mass: Vector) -> None:
    """Compute the occupancy of every state under the model, of the Markov policy ``pi``."""
    mass[0] = 1.0
    for h in range(horizon(lay)):
        n = lay[SIZE, h + 1]
        for s in range(lay[STATE, h + 1], lay[STATE, h + 1] + n):
            mass[s] = 0.0
        spread = 0.0
        A = lay[ACTIONS, h]
        for s in range(lay[SIZE, h]):
            for a in range(A):
                p = lay[PAIR, h] + s * A + a
                share = mass[lay[STATE, h] + s] * pi[p] / (seen.N[p] + 1.0)
                spread += share
                k = seen.begin[p]
                while k >= 0:
                    mass[seen.to[k]] += share * seen.M[k]
                    k = seen.after[k]
        for s in range(lay[STATE, h + 1], lay[STATE, h + 1] + n):
            mass[s] += spread / n


@kernel
def expected(
    seen: Seen, p: int, V: Vector, B: Vector, V_mean: float, B_mean: float
) -> tuple[float, float]:
    """Return the means of ``V`` and ``B`` after pair ``p``, from those over the next layer."""
    v = V_mean
    b = B_mean
    k = seen.begin[p]
    while k >= 0:
        v += seen.M[k] * V[seen.to[k]]
        b += seen.M[k] * B[seen.to[k]]
        k = seen.after[k]
    return v / (seen.N[p] + 1.0), b / (seen.N[p] + 1.0)


@kernel
def mean(values: Vector, first: int, end: int) -> float:
    """Return the mean of ``values[first:end]``."""
    total = 0.0
    for i in range(first, end):
        total += values[i]
    return total / (end - first)
