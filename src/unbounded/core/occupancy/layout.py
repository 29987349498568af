"""Lay out layered MDPs flat; kernels for occupancy measures and backward induction.

Layer 0 holds one dummy state ``s_0`` with one dummy action, whose transition is the unknown
distribution of the first state. Layers ``1..H`` are played, with ``A`` actions in each state.
After layer ``H`` the episode ends. A Markov policy ``pi`` and transitions ``P`` induce

    q(s, a) = q(s) pi(a|s),      q(s') = sum_{s, a} q(s, a) P(s'|s, a),      q(s_0) = 1,

so that each layer has mass one and mass flows from layer to layer.

**Layout.** All kernels work on flat arrays and on one small table of offsets, so that one compiled
signature serves every shape. ``lay`` is an int64 array of shape ``(5, H + 2)``, a column for each
layer:

| row     | content                       | layer 0 | layer h in 1..H   | end (column H + 1)  |
|---------|-------------------------------|---------|-------------------|---------------------|
| SIZE    | number of states n_h          | 1       | n_h               | 1                   |
| ACTIONS | number of actions A_h         | 1       | A                 | 0                   |
| STATE   | offset into vectors of states | 0       | 1 + n_1 + ...     | number of states    |
| PAIR    | offset into vectors of pairs  | 0       | 1 + A(n_1 + ...)  | number of pairs     |
| TRIPLE  | offset into transitions       | 0       | ...               | number of triples   |

The pair ``(s, a)`` of layer ``h`` is number ``i = s A_h + a`` of its layer. Transitions are stored
*next state first*: ``P(j|i)`` of layer ``h`` is entry ``lay[TRIPLE, h] + j m_h + i`` with
``m_h = n_h A_h``. The inner loops then run over all pairs of a layer, elementwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from unbounded.core.arrays import Integers, Vector
from unbounded.jit.kernel import kernel, subroutine
from unbounded.validation import checked_arrays, checked_distributions, checked_vector

SIZE, ACTIONS, STATE, PAIR, TRIPLE = range(5)  # rows of ``lay``


@dataclass(frozen=True)
class Layers:
    """The shape of a layered MDP: states in layers ``1..H`` and the number of actions.

    Parameters
    ----------
    sizes : sequence of int, shape (H,)
        Number of states in each of the layers ``1..H``.
    n_actions : int
        Number of actions in each of their states.
    allowed : sequence of array_like of bool, shapes (n_h, A), optional
        Which of them may be taken; at least one in each state, and all by default.
    ends : bool, default False
        Whether episodes may end early. The last state of each layer but the first is then *the
        end*: it costs nothing and is never left, and action 0 is the only one.

    Attributes
    ----------
    forbidden : tuple of int
        The pairs that are not allowed, by their positions in flat vectors.

    Examples
    --------
    >>> layers = Layers([2, 3], n_actions=2)
    >>> layers.n_states, layers.n_pairs, layers.n_transitions  # s_0 and its pair are counted
    (6, 11, 14)
    >>> q = layers.pack_pairs([[[0.1, 0.2], [0.3, 0.4]], [[0.1, 0.1], [0.2, 0.2], [0.2, 0.2]]])
    >>> q.shape, layers.unpack_pairs(q)[0].tolist()
    ((11,), [[0.1, 0.2], [0.3, 0.4]])
    >>> Layers([1, 2], 2, allowed=[[[True, True]], [[True, False], [True, True]]])
    Layers(sizes=(1, 2), n_actions=2, 1 not allowed)
    """

    sizes: tuple[int, ...]
    n_actions: int
    forbidden: tuple[int, ...]
    ends: bool

    def __init__(
        self,
        sizes: Sequence[int],
        n_actions: int,
        allowed: Sequence[npt.ArrayLike] | None = None,
        ends: bool = False,
    ) -> None:
        sizes = tuple(int(n) for n in sizes)
        if not sizes or min(sizes) < 1:
            raise ValueError(
                f"sizes must hold at least one layer, each of at least one state; got {sizes}"
            )
        if n_actions < 1:
            raise ValueError(f"n_actions must be at least 1, got {n_actions}")
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "n_actions", int(n_actions))
        object.__setattr__(self, "ends", ends)
        object.__setattr__(self, "forbidden", ())
        if allowed is None and not ends:
            return
        shapes = [(n, self.n_actions) for n in sizes]
        given = [np.ones(shape) for shape in shapes] if allowed is None else allowed
        tables = [table.copy() for table in checked_arrays("allowed", given, shapes)]
        for h, table in enumerate(tables):
            if np.any((table != 0.0) & (table != 1.0)):
                raise ValueError(f"allowed[{h}] must be made of True and False")
            if ends and h > 0:
                table[-1] = np.arange(self.n_actions) == 0
            none = ~np.any(table, axis=1)
            if np.any(none):
                raise ValueError(
                    f"allowed[{h}] leaves state {int(np.argmax(none))} no action; allow at least "
                    "one in every state, reachable or not"
                )
        flat = self.pack_pairs(tables, first=1.0)
        object.__setattr__(self, "forbidden", tuple(np.flatnonzero(flat == 0.0).tolist()))

    def __repr__(self) -> str:
        mask = f", {self.n_forbidden} not allowed" if self.n_forbidden else ""
        ends = ", ends=True" if self.ends else ""
        return f"Layers(sizes={self.sizes}, n_actions={self.n_actions}{mask}{ends})"

    @property
    def n_forbidden(self) -> int:
        """Return the number of pairs that are not allowed, without those of the end."""
        return len(self.forbidden) - self.ends * (self.horizon - 1) * (self.n_actions - 1)

    @property
    def barred(self) -> Vector:
        """Losses that forbid, flat over pairs (infinite where an action is not allowed, else 0)."""
        losses = np.zeros(self.n_pairs)
        losses[list(self.forbidden)] = np.inf
        return losses

    @property
    def allowed(self) -> list[npt.NDArray[np.bool_]]:
        """Which actions may be taken, an array of shape (n_h, A) for each layer 1..H."""
        return [table == 0.0 for table in self.unpack_pairs(self.barred)]

    @property
    def even(self) -> Vector:
        """The policy that takes every allowed action with the same probability, flat."""
        tables = [table / table.sum(axis=1, keepdims=True) for table in self.allowed]
        return self.pack_pairs(tables, first=1.0)

    @cached_property
    def free(self) -> Integers:
        """Positions of the pairs that cost nothing, those of the end and what is not allowed."""
        tables = [~table for table in self.allowed]
        for table in tables[1:] if self.ends else ():
            table[-1] = True
        return np.flatnonzero(self.pack_pairs(tables))

    @property
    def horizon(self) -> int:
        """Number of decisions in an episode, H."""
        return len(self.sizes)

    @cached_property
    def table(self) -> Integers:
        """Offsets, shape (5, H + 2), the ``lay`` argument of every kernel."""
        H = self.horizon
        lay = np.zeros((5, H + 2), dtype=np.int64)
        lay[SIZE] = [1, *self.sizes, 1]
        lay[ACTIONS] = [1, *[self.n_actions] * H, 0]
        lay[STATE, 1:] = np.cumsum(lay[SIZE, :-1])
        lay[PAIR, 1:] = np.cumsum(lay[SIZE, :-1] * lay[ACTIONS, :-1])
        lay[TRIPLE, 1 : H + 1] = np.cumsum(lay[SIZE, :H] * lay[ACTIONS, :H] * lay[SIZE, 1 : H + 1])
        lay[TRIPLE, H + 1] = lay[TRIPLE, H]
        return lay

    @property
    def n_states(self) -> int:
        """Length of a vector over states, ``1 + n_1 + ... + n_H``."""
        return int(self.table[STATE, -1])

    @property
    def n_pairs(self) -> int:
        """Length of a vector over pairs, ``1 + A (n_1 + ... + n_H)``."""
        return int(self.table[PAIR, -1])

    @property
    def n_transitions(self) -> int:
        """Length of a vector over triples (s, a, s')."""
        return int(self.table[TRIPLE, -1])

    def checked_transitions(self, P: npt.ArrayLike) -> Vector:
        """Flat transitions, as `LayeredMDP.P`, or a clear error."""
        flat = checked_vector("transitions", P, self.n_transitions).copy()
        lay = self.table
        for h in range(self.horizon):
            m = int(lay[SIZE, h] * lay[ACTIONS, h])
            rows = flat[lay[TRIPLE, h] : lay[TRIPLE, h + 1]].reshape(-1, m).T.copy()
            checked_distributions(f"transitions of layer {h}", rows)
            flat[lay[TRIPLE, h] : lay[TRIPLE, h + 1]] = rows.T.ravel()
        return flat

    def pack_pairs(self, arrays: Sequence[npt.ArrayLike], first: float = 0.0) -> Vector:
        """Flatten one array of shape (n_h, A) per layer; ``first`` is the entry of ``s_0``."""
        arrays = checked_arrays("arrays", arrays, [(n, self.n_actions) for n in self.sizes])
        return np.concatenate([[first], *[a.ravel() for a in arrays]])

    def unpack_pairs(self, flat: npt.ArrayLike) -> list[Vector]:
        """Views of shape (n_h, A), one per layer ``1..H``, into a flat vector over pairs."""
        flat = checked_vector("flat", flat, self.n_pairs)
        lay = self.table
        return [
            flat[lay[PAIR, h] : lay[PAIR, h + 1]].reshape(self.sizes[h - 1], self.n_actions)
            for h in range(1, self.horizon + 1)
        ]

    def pack_transitions(self, initial: npt.ArrayLike, arrays: Sequence[npt.ArrayLike]) -> Vector:
        """Flatten ``initial`` (n_1,) and one array of shape (n_h, A, n_{h+1}) per layer 1..H-1."""
        (initial,) = checked_arrays("initial", [initial], [(self.sizes[0],)])
        shapes = [
            (n, self.n_actions, after)
            for n, after in zip(self.sizes[:-1], self.sizes[1:], strict=True)
        ]
        arrays = checked_arrays("arrays", arrays, shapes)
        return np.concatenate([initial, *[a.reshape(-1, a.shape[2]).T.ravel() for a in arrays]])

    def unpack_transitions(self, flat: npt.ArrayLike) -> tuple[Vector, list[Vector]]:
        """Inverse of `pack_transitions`: the initial distribution and the layers' arrays."""
        flat = checked_vector("flat", flat, self.n_transitions)
        lay = self.table
        arrays = [
            flat[lay[TRIPLE, h] : lay[TRIPLE, h + 1]]
            .reshape(self.sizes[h], -1)
            .T.reshape(self.sizes[h - 1], self.n_actions, self.sizes[h])
            for h in range(1, self.horizon)
        ]
        return flat[: self.sizes[0]], arrays

    def is_end(self, h: int, state: int) -> bool:
        """Return whether a state of layer ``h = 1 .. H`` is the end of episodes that end early."""
        return self.ends and h > 1 and state == self.sizes[h - 1] - 1

    def index(self, h: int, state: int, action: int = 0) -> int:
        """Position of the pair (state, action) of layer ``h`` in a flat vector over pairs."""
        if not (0 <= h <= self.horizon):
            raise IndexError(f"layer h must be in 0..{self.horizon}, got {h}")
        n, A, _, offset, _ = (int(x) for x in self.table[:, h])
        if not (0 <= state < n and 0 <= action < A):
            raise IndexError(
                f"layer {h} has {n} states and {A} actions; got state {state}, action {action}"
            )
        return offset + state * A + action


# Kernels. Elementwise over the pairs of a layer; no allocation, no exception.


@kernel
def horizon(lay: Integers) -> int:
    """Return H, the number of layers that are played."""
    return lay.shape[1] - 2


@subroutine
def draw(P: Vector, start: int, stride: int, n: int, word: int) -> int:
    """Draw j with probability P[start + j stride] by the top 53 bits of one random word."""
    u = (word >> np.uint64(11)) * 2.0**-53
    total = 0.0
    last = 0
    for j in range(n):
        p = P[start + j * stride]
        if p > 0.0:
            total += p
            last = j
            if u < total:
                return j
    return last  # u past the last sum by rounding


@subroutine
def dots(m: int, n: int, x: Vector, P: Vector, start: int, out: Vector) -> None:
    """Set out[j] = sum_i x[i] P[start + j m + i] for j < n, four rows at a time, in fixed order."""
    n4 = n - n % 4
    for j in range(0, n4, 4):
        k = start + j * m
        P0 = P[k : k + m]
        P1 = P[k + m : k + 2 * m]
        P2 = P[k + 2 * m : k + 3 * m]
        P3 = P[k + 3 * m : k + 4 * m]
        t0 = t1 = t2 = t3 = 0.0
        for i in range(m):
            t0 += x[i] * P0[i]
            t1 += x[i] * P1[i]
            t2 += x[i] * P2[i]
            t3 += x[i] * P3[i]
        out[j] = t0
        out[j + 1] = t1
        out[j + 2] = t2
        out[j + 3] = t3
    for j in range(n4, n):
        Pj = P[start + j * m : start + (j + 1) * m]
        t0 = 0.0
        for i in range(m):
            t0 += x[i] * Pj[i]
        out[j] = t0


@subroutine
def roll_forward(lay: Integers, P: Vector, pi: Vector, mass: Vector, q: Vector) -> None:
    """Compute the occupancy q(s, a) of the Markov policy ``pi``; ``mass`` gets q(s)."""
    H = horizon(lay)
    mass[0] = 1.0
    for h in range(H + 1):
        A = lay[ACTIONS, h]
        for s in range(lay[SIZE, h]):
            p = lay[PAIR, h] + s * A
            for a in range(A):
                q[p + a] = mass[lay[STATE, h] + s] * pi[p + a]
        if h < H:
            x = q[lay[PAIR, h] : lay[PAIR, h + 1]]
            out = mass[lay[STATE, h + 1] : lay[STATE, h + 2]]
            dots(lay[SIZE, h] * A, lay[SIZE, h + 1], x, P, lay[TRIPLE, h], out)


@subroutine
def condition(lay: Integers, q: Vector, pi: Vector) -> None:
    """Set pi(a|s) = q(s, a)/q(s), uniform where q(s) = 0."""
    for h in range(horizon(lay) + 1):
        A = lay[ACTIONS, h]
        for s in range(lay[SIZE, h]):
            p = lay[PAIR, h] + s * A
            total = 0.0
            for a in range(A):
                total += q[p + a]
            for a in range(A):
                pi[p + a] = q[p + a] / total if total > 0.0 else 1.0 / A


@subroutine
def backward_induction(
    lay: Integers, P: Vector, losses: Vector, value: Vector, pi: Vector
) -> float:
    """Find the least expected loss-to-go ``value`` (states) and a deterministic ``pi`` for it.

    Returns the value of s_0. ``losses[0]``, the dummy pair's, is not read.
    """
    H = horizon(lay)
    for h in range(H, -1, -1):
        A = lay[ACTIONS, h]
        m = lay[SIZE, h] * A
        for s in range(lay[SIZE, h]):
            best = np.inf
            choice = 0
            for a in range(A):
                i = s * A + a
                c = losses[lay[PAIR, h] + i] if h > 0 else 0.0
                if h < H:
                    for j in range(lay[SIZE, h + 1]):
                        c += P[lay[TRIPLE, h] + j * m + i] * value[lay[STATE, h + 1] + j]
                if c < best:
                    best = c
                    choice = a
            value[lay[STATE, h] + s] = best
            for a in range(A):
                pi[lay[PAIR, h] + s * A + a] = 1.0 if a == choice else 0.0
    return float(value[0])
