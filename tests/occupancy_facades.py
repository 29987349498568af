"""Classes around the kernels of `unbounded.core.occupancy`, for tests and benchmarks.

No learner needs them: they hold the arrays that a learner's state holds, check their arguments, and
return certificates by name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.confidence import (
    PAPER,
    Bernstein,
    count,
    interior,
    log_term,
    rebuild,
    told_support,
)
from unbounded.core.occupancy.layout import (
    ACTIONS,
    PAIR,
    SIZE,
    STATE,
    TRIPLE,
    Layers,
    backward_induction,
    condition,
    draw,
    horizon,
)
from unbounded.core.occupancy.mdp import LayeredMDP, Markov, Mixture, occupancy
from unbounded.core.occupancy.reach import mark
from unbounded.core.occupancy.solver import SOLVED, Outcome
from unbounded.core.occupancy.solver.ftrl import EXPONENT, even_play, new_memory, solve
from unbounded.core.occupancy.solver.kl import kl_step, uniform_base
from unbounded.core.occupancy.solver.work import work_size
from unbounded.core.occupancy.upper import descending, scratch, spare_mass, u_state
from unbounded.jit.kernel import subroutine
from unbounded.validation import checked_numbers, checked_vector


def check_boxes(layers: Layers, lo: npt.ArrayLike, hi: npt.ArrayLike) -> tuple[Vector, Vector]:
    """Return flat boxes as contiguous arrays; raise if some pair's box holds no distribution."""
    lo = checked_vector("lo", lo, layers.n_transitions)
    hi = checked_vector("hi", hi, layers.n_transitions)
    fine = (lo >= 0) & (lo <= hi) & (hi <= 1)
    if not np.all(fine):
        k = int(np.argmin(fine))
        raise ValueError(f"boxes need 0 <= lo <= hi <= 1; entry {k} has lo = {lo[k]}, hi = {hi[k]}")
    lay = layers.table
    for h in range(layers.horizon):
        n = lay[SIZE, h + 1]
        sums = [b[lay[TRIPLE, h] : lay[TRIPLE, h + 1]].reshape(n, -1).sum(axis=0) for b in (lo, hi)]
        bad = (sums[0] > 1 + 1e-12) | (sums[1] < 1 - 1e-12)
        if np.any(bad):
            i = int(np.argmax(bad))
            raise ValueError(
                f"the box of layer {h}, pair {i} holds no distribution: "
                f"sum(lo) = {sums[0][i]:g}, sum(hi) = {sums[1][i]:g}"
            )
    return lo, hi


class Certificate(NamedTuple):
    """What is proved about a solve: F(q) - min F <= gap, in the units of the losses.

    ``solved`` says that the gap is at most tolerance times the *smallest* weight, or at most 1e-13
    times the largest where that is more (rounding); ``relative_gap`` is the gap over the largest.
    ``status`` is "solved"; "rough": the gap is at most tolerance times the largest weight; or
    "unsolved". Then q is the best that was certified, or the last one if the gap is infinite.
    """

    gap: float
    relative_gap: float
    solved: bool
    method: str
    newton_steps: int
    interior_iterations: int
    status: str


class Solution(NamedTuple):
    """Occupancy measure, policy, certificate, and the dual point that proves it.

    ``q`` and ``pi`` are flat over pairs; ``transitions`` (a P in the boxes that carries q), ``v``
    (over states) and ``theta`` (over pairs) reproduce the certificate, see
    `unbounded.core.occupancy.solver.certificate`.
    """

    q: Vector
    pi: Vector
    certificate: Certificate
    transitions: Vector
    v: Vector
    theta: Vector


def certificate(outcome: Outcome) -> Certificate:
    """The part of an outcome that concerns who asked for the solution."""
    return Certificate(
        gap=float(outcome.gap),
        relative_gap=float(outcome.gap_over_largest),
        solved=outcome.status == SOLVED,
        method=("closed form", "warm", "cold", "fallback")[outcome.method],
        newton_steps=outcome.steps,
        interior_iterations=outcome.iterations,
        status=("unsolved", "rough", "solved")[outcome.status],
    )


class OccupancyFTRL:
    """Solver with a warm start; one object follows one sequence of losses.

    Parameters
    ----------
    layers : Layers
    lo, hi : array_like, shape (n_transitions,)
        Boxes of the confidence set (`ConfidenceSet.lo`, ``hi``; `known` for known transitions).
    tolerance : float, default 1e-8
        Stop when the certified gap is at most this times the smallest weight.

    Examples
    --------
    >>> layers = Layers([2, 2], n_actions=2)
    >>> solver = OccupancyFTRL(layers, np.zeros(10), np.ones(10))
    >>> losses = layers.pack_pairs([[[1, 0], [0, 0]], [[0, 0], [0, 3]]])
    >>> solution = solver.solve(losses, weights=[1.0, 1.0])
    >>> solution.q[1:5].round(4).tolist()
    [0.1092, 0.2969, 0.2969, 0.2969]
    >>> solution.certificate.solved, solution.certificate.method
    (True, 'closed form')
    """

    def __init__(
        self, layers: Layers, lo: npt.ArrayLike, hi: npt.ArrayLike, tolerance: float = 1e-8
    ) -> None:
        if not tolerance > 0:
            raise ValueError(f"tolerance must be positive, got {tolerance}")
        self.layers = layers
        self.tolerance = float(tolerance)
        self.memory = new_memory(layers)
        self._work = np.empty(work_size(layers.table))
        self._boxes = 0
        self.set_boxes(lo, hi)
        self._q, self._pi = even_play(layers, self.lo, self.hi)

    def set_boxes(self, lo: npt.ArrayLike, hi: npt.ArrayLike) -> None:
        """Use these boxes from now on (a new epoch); the warm start is projected on them."""
        lo, hi = check_boxes(self.layers, lo, hi)
        self.lo, self.hi = lo.copy(), hi.copy()
        self._boxes += 1

    def solve(self, losses: npt.ArrayLike, weights: npt.ArrayLike) -> Solution:
        """Minimise for cumulative ``losses`` (n_pairs,) and ``weights`` (H,) of layers 1..H.

        Weights must be positive, or all zero while no scale is known: then the losses must be
        zero too and q has the largest entropy (erratum E16). A loss of +inf forbids an action.
        """
        L = checked_losses(self.layers, losses)
        w = checked_vector("weights", weights, self.layers.horizon)
        if not (np.all(np.isfinite(w)) and (np.all(w > 0) or not np.any(w))):
            raise ValueError(
                f"weights must be finite and positive, or all zero; got {w.tolist()}: "
                "floor_weights keeps a layer without losses positive"
            )
        if not np.any(w) and np.any(L[1:][np.isfinite(L[1:])]):
            raise ValueError("losses must be zero while all weights are zero")
        outcome = solve(
            self.layers.table, self.lo, self.hi, self._boxes, L, w, self.tolerance, self.memory,
            self._work, self._q, self._pi,
        )  # fmt: skip
        q, pi = self._q.copy(), self._pi.copy()
        last, e = self.memory, int(self.memory.head[EXPONENT])
        v, theta = np.ldexp(last.v, e), np.ldexp(last.theta, e)
        return Solution(q, pi, certificate(outcome), last.P.copy(), v, theta)

    def policy(self, solution: Solution) -> Markov:
        """The solution's policy as an object."""
        return Markov(self.layers, solution.pi)


class OccupancyKL:
    """Mirror descent over occupancy measures, starting from the uniform one.

    Parameters
    ----------
    layers : Layers
    lo, hi : array_like, shape (n_transitions,)
    tolerance : float, default 1e-8
        Stop when the certified gap is at most this times the smallest weight.

    Attributes
    ----------
    ln_q, ln_P : ndarray, shapes (n_pairs,) and (n_transitions,)
        Logarithms of the current iterate q(s,a) P(s'|s,a).

    Examples
    --------
    >>> layers = Layers([2], n_actions=2)
    >>> learner = OccupancyKL(layers, [0.5, 0.5], [0.5, 0.5])
    >>> solution = learner.step([0.0, 1.0, 0.0, 0.0, 0.0], weights=[1.0])
    >>> solution.q.round(4).tolist(), solution.certificate.solved
    ([1.0, 0.1345, 0.3655, 0.25, 0.25], True)
    """

    def __init__(
        self, layers: Layers, lo: npt.ArrayLike, hi: npt.ArrayLike, tolerance: float = 1e-8
    ) -> None:
        if not tolerance > 0:
            raise ValueError(f"tolerance must be positive, got {tolerance}")
        self.layers = layers
        self.tolerance = float(tolerance)
        self.ln_q, self.ln_P = uniform_base(layers)
        self._pi = layers.even
        self._work = np.empty(work_size(layers.table))
        self.set_boxes(lo, hi)

    def set_boxes(self, lo: npt.ArrayLike, hi: npt.ArrayLike) -> None:
        """Use these boxes from now on; they need not be nested."""
        lo, hi = check_boxes(self.layers, lo, hi)
        self.lo, self.hi = lo.copy(), hi.copy()

    def step(self, losses: npt.ArrayLike, weights: npt.ArrayLike) -> Solution:
        """Move q to the minimiser for this episode's ``losses`` (n_pairs,), ``weights`` (H,).

        A loss of +inf forbids an action.
        """
        L = checked_losses(self.layers, losses)
        w = checked_vector("weights", weights, self.layers.horizon)
        if not (np.all(np.isfinite(w)) and np.all(w > 0)):
            raise ValueError(f"weights must be finite and positive, got {w.tolist()}")
        lay = self.layers.table
        pi = self._pi
        v, theta = np.zeros(self.layers.n_states), np.zeros(self.layers.n_pairs)
        outcome = kl_step(
            lay, self.lo, self.hi, L, w, self.tolerance, self.ln_q, self.ln_P, v, theta,
            self._work, pi,
        )  # fmt: skip
        _, e = math.frexp(float(w.max()))
        q, P = self._iterate(L)
        return Solution(q, pi.copy(), certificate(outcome), P, np.ldexp(v, e), np.ldexp(theta, e))

    def _iterate(self, L: Vector) -> tuple[Vector, Vector]:
        """q and P: not the base of pairs that are not in the program, which they keep."""
        lay, q, P = self.layers.table, np.exp(self.ln_q), np.exp(self.ln_P)
        marks = np.empty(self.layers.n_pairs)
        if mark(lay, self.lo, self.hi, L, self._work, marks):
            dead, middle = np.isinf(marks), np.empty_like(P)
            q[dead] = 0.0
            interior(lay, self.lo, self.hi, middle)
            for h in range(self.layers.horizon):
                first, end = lay[TRIPLE, h], lay[TRIPLE, h + 1]
                rows = np.tile(dead[lay[PAIR, h] : lay[PAIR, h + 1]], int(lay[SIZE, h + 1]))
                P[first:end][rows] = middle[first:end][rows]
        return q, P


class ConfidenceSet:
    """Counts and boxes of the transitions of a layered MDP.

    Parameters
    ----------
    layers : Layers
    episodes : int
        Total number of episodes T, exploration included.
    delta : float
        Confidence parameter in (0, 1).
    constants : Bernstein, default PAPER
        ``PAPER``, ``JIN`` or any pair of positive numbers.
    nested : bool, default True
        Intersect each epoch's boxes with the previous ones (E13).
    support : array_like of bool, shape (n_transitions,), optional
        Which transitions are possible, if that is known.

    Attributes
    ----------
    lo, hi : ndarray, shape (n_transitions,)
        Boxes of the current epoch, flat (`Layers.unpack_transitions` gives them layer by layer).
    N, M : ndarray, shapes (n_pairs,) and (n_transitions,)
        Visits so far, integers kept as float64.
    epoch : int
        1 while nothing was seen.

    Examples
    --------
    >>> layers = Layers([1, 2], n_actions=2)
    >>> sets = ConfidenceSet(layers, episodes=1000, delta=0.1)
    >>> sets.observe([0, 1], [1, 0])  # a first visit starts an epoch
    True
    >>> sets.epoch, float(sets.N[layers.index(1, 0, 1)])
    (2, 1.0)
    >>> sets.contains(LayeredMDP([1.0], [np.full((1, 2, 2), 0.5)]).P)
    True
    """

    def __init__(
        self,
        layers: Layers,
        episodes: int,
        delta: float,
        constants: Bernstein = PAPER,
        nested: bool = True,
        support: npt.ArrayLike | None = None,
    ) -> None:
        if episodes < 1:
            raise ValueError(f"episodes must be at least 1, got {episodes}")
        if not 0 < delta < 1:
            raise ValueError(f"delta must be in (0, 1), got {delta}")
        if not min(constants) > 0:
            raise ValueError(f"constants must be positive, got {tuple(constants)}")
        self.layers = layers
        self.constants = Bernstein(*constants)
        self.nested = nested
        self.log_term = log_term(layers, episodes, delta)
        self.epoch = 1
        self.N = np.zeros(layers.n_pairs)
        self.N_before = np.zeros(layers.n_pairs)
        self.M = np.zeros(layers.n_transitions)
        self.lo = np.zeros(layers.n_transitions)
        possible = told_support(layers, support)
        self.hi = possible if possible.size else np.ones(layers.n_transitions)

    def observe(self, states: npt.ArrayLike, actions: npt.ArrayLike) -> bool:
        """Count one episode; True if it starts a new epoch.

        Parameters
        ----------
        states, actions : array_like of int, shape (H,)
            Numbers within the layers 1..H.
        """
        s = checked_numbers("states", states, self.layers.sizes)
        a = checked_numbers("actions", actions, (self.layers.n_actions,) * self.layers.horizon)
        lay = self.layers.table
        if not count(lay, s, a, self.N, self.M, self.N_before):
            return False
        self.refresh()
        return True

    def refresh(self) -> None:
        """Start an epoch now: rebuild the boxes from the counts so far."""
        self.epoch += 1
        self.N_before[:] = self.N
        c1, c2 = self.constants
        rebuild(
            self.layers.table, self.N, self.M, self.log_term, c1, c2, self.nested, self.lo, self.hi
        )

    def contains(self, P: npt.ArrayLike) -> bool:
        """Whether the flat transitions ``P`` lie in the current boxes, up to rounding."""
        P = checked_vector("P", P, self.layers.n_transitions)
        return bool(np.all(self.lo - 1e-12 <= P) and np.all(self.hi + 1e-12 >= P))


def upper_occupancy(
    policy: Markov | Mixture,
    lo: npt.ArrayLike,
    hi: npt.ArrayLike,
    states: npt.ArrayLike | None = None,
) -> Vector:
    """Largest occupancy of each pair over all transitions in the boxes.

    Parameters
    ----------
    policy : Markov or Mixture
        For a mixture, the mixture of the components' bounds (E12).
    lo, hi : array_like, shape (n_transitions,)
    states : array_like of int, shape (H,), optional
        Compute only for these visited states, one per layer (about 1/n_h of the work); the
        entries of all other states are zero.

    Returns
    -------
    ndarray, shape (n_pairs,)

    Examples
    --------
    >>> layers = Layers([1, 2], n_actions=2)
    >>> lo, hi = layers.pack_transitions([1], [[[[0.125, 0.25]] * 2]]), np.ones(5)
    >>> layers.unpack_pairs(upper_occupancy(Markov.uniform(layers), lo, hi))[1].tolist()
    [[0.375, 0.375], [0.4375, 0.4375]]
    """
    layers = policy.layers
    lo, hi = check_boxes(layers, lo, hi)
    visited = None if states is None else checked_numbers("states", states, layers.sizes)
    if isinstance(policy, Mixture):
        parts = [
            w * upper_occupancy(p, lo, hi, visited)
            for w, p in zip(policy.weights, policy.policies, strict=True)
        ]
        return np.sum(parts, axis=0)
    lay = layers.table
    room = np.empty(layers.n_pairs)
    spare_mass(lay, lo, room)
    work, order = scratch(layers)
    u = np.zeros(layers.n_states)
    if visited is None:
        u_all(lay, lo, hi, room, policy.pi, u, work, order)
    else:
        u_seen = np.empty(layers.horizon)
        u_visited(lay, lo, hi, room, policy.pi, visited, u_seen, work, order)
        u[0] = 1.0
        u[lay[STATE, 1:-1] + visited] = u_seen
    return np.concatenate([[1.0], np.repeat(u[1:], layers.n_actions) * policy.pi[1:]])


def greedy_transitions(
    layers: Layers, lo: npt.ArrayLike, hi: npt.ArrayLike, values: npt.ArrayLike
) -> Vector:
    """Optimistic transitions: for every pair the P in its box that maximises <P, values>.

    Parameters
    ----------
    layers : Layers
    lo, hi : array_like, shape (n_transitions,)
    values : array_like, shape (n_states,)
        Ties go to the state of smaller number.

    Returns
    -------
    ndarray, shape (n_transitions,)

    Examples
    --------
    >>> layers = Layers([3], n_actions=1)
    >>> lo, hi = [0.125, 0.0, 0.25], [1.0, 0.5, 0.375]
    >>> greedy_transitions(layers, lo, hi, values=[0.0, 1.0, 3.0, 2.0]).tolist()
    [0.125, 0.5, 0.375]
    """
    lo, hi = check_boxes(layers, lo, hi)
    v = np.ascontiguousarray(values, dtype=np.float64)
    if v.shape != (layers.n_states,) or not np.all(np.isfinite(v)):
        raise ValueError(f"values must be {layers.n_states} finite numbers, got shape {v.shape}")
    room = np.empty(layers.n_pairs)
    spare_mass(layers.table, lo, room)
    work, order = scratch(layers)
    P = np.empty(layers.n_transitions)
    greedy(layers.table, lo, hi, room, v, P, work, order)
    return P


def known(mdp: LayeredMDP) -> tuple[Vector, Vector]:
    """Boxes that hold only the MDP's own transitions: ``lo = hi = P``.

    Examples
    --------
    >>> lo, hi = known(LayeredMDP([0.5, 0.5], [], n_actions=2))
    >>> lo.tolist(), hi.tolist()
    ([0.5, 0.5], [0.5, 0.5])
    """
    return mdp.P.copy(), mdp.P.copy()


def checked_losses(layers: Layers, losses: npt.ArrayLike) -> Vector:
    """Flat losses, +infinity where an action is not allowed, or a clear error.

    Examples
    --------
    >>> checked_losses(Layers([1], n_actions=2), [0.0, np.inf, np.inf])
    Traceback (most recent call last):
    ...
    ValueError: all actions of state 0 of layer 1 have the loss inf; allow at least one
    """
    L = checked_vector("losses", losses, layers.n_pairs)
    if np.any(np.isnan(L)) or np.any(np.isneginf(L)):
        raise ValueError("losses must be finite, or +inf to forbid an action")
    for h, table in enumerate(layers.unpack_pairs(L), start=1):
        none = np.all(np.isinf(table), axis=1)
        if np.any(none):
            raise ValueError(
                f"all actions of state {int(np.argmax(none))} of layer {h} have the loss inf; "
                "allow at least one"
            )
    return L


def policy_from_occupancy(layers: Layers, q: npt.ArrayLike) -> Markov:
    """The Markov policy q(s, a)/q(s), uniform over the allowed actions in states without mass.

    Examples
    --------
    >>> layers = Layers([2], n_actions=2)
    >>> policy_from_occupancy(layers, [1.0, 0.25, 0.75, 0.0, 0.0]).tables[0].tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """
    q = checked_vector("q", q, layers.n_pairs)
    if not np.all(q >= 0):
        raise ValueError(f"q must be >= 0, its smallest entry is {np.min(q)}")
    pi = np.empty(layers.n_pairs)
    condition(layers.table, q, pi)
    for table, mass, even in zip(*map(layers.unpack_pairs, (pi, q, layers.even)), strict=True):
        none = mass.sum(axis=1) == 0.0
        table[none] = even[none]
    return Markov(layers, pi)


def regret(mdp: LayeredMDP, policies: Sequence[Markov | Mixture], losses: npt.ArrayLike) -> Vector:
    """Exact regret after each episode against the best fixed policy up to then.

    Parameters
    ----------
    mdp : LayeredMDP
    policies : sequence of length T
        What was played; the *same* object again is not evaluated twice.
    losses : array_like, shape (T, n_pairs)
        The end of an episode costs nothing, whatever they say.

    Returns
    -------
    ndarray, shape (T,)
        ``sum_{tau <= t} <q_tau, l_tau> - min_pi <q^pi, sum_{tau <= t} l_tau>``.

    Examples
    --------
    >>> mdp = LayeredMDP([1.0], [], n_actions=2)
    >>> play = [Markov.uniform(mdp.layers)] * 2
    >>> regret(mdp, play, [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]).tolist()
    [0.5, 1.0]
    """
    table = np.ascontiguousarray(losses, dtype=np.float64)
    if table.shape != (len(policies), mdp.layers.n_pairs):
        raise ValueError(
            f"losses must have shape (T, n_pairs) = {(len(policies), mdp.layers.n_pairs)}, "
            f"got {table.shape}"
        )
    table = table.copy()
    table[:, [0, *mdp.layers.free]] = 0.0
    known: dict[int, Vector] = {}
    paid = np.empty(len(policies))
    best = np.empty(len(policies))
    for t, policy in enumerate(policies):
        if id(policy) not in known:
            known[id(policy)] = occupancy(mdp, policy)
        paid[t] = known[id(policy)] @ table[t]
    total = np.cumsum(table, axis=0) + mdp.layers.barred
    value, pi = np.empty(mdp.layers.n_states), np.empty(mdp.layers.n_pairs)
    for t in range(len(policies)):
        best[t] = backward_induction(mdp.layers.table, mdp.P, total[t], value, pi)
    return np.cumsum(paid) - best


def simulate_episode(
    mdp: LayeredMDP, policy: npt.ArrayLike, words: npt.NDArray[np.uint64]
) -> tuple[Integers, Integers]:
    """Play one episode of a Markov policy with the randomness given as data.

    Parameters
    ----------
    mdp : LayeredMDP
    policy : array_like, shape (n_pairs,)
        A flat Markov policy, see `unbounded.core.occupancy.mdp`.
    words : ndarray of uint64, shape (2 H,)
        Words ``2(h-1)`` and ``2(h-1)+1`` draw the state and the action of layer ``h``.

    Returns
    -------
    states, actions : ndarray of int64, shape (H,)
        Numbers within the layers.

    Examples
    --------
    >>> mdp = LayeredMDP([0.5, 0.5], [np.full((2, 2, 3), 1 / 3)])
    >>> words = np.random.PCG64(0).random_raw(4)
    >>> states, actions = simulate_episode(mdp, np.full(mdp.layers.n_pairs, 0.5), words)
    >>> states.tolist(), actions.tolist()
    ([1, 0], [0, 0])
    """
    H = mdp.layers.horizon
    words = np.ascontiguousarray(words, dtype=np.uint64)
    if words.shape != (2 * H,):
        raise ValueError(f"words must have shape (2 H,) = ({2 * H},), got {words.shape}")
    states, actions = np.empty(H, np.int64), np.empty(H, np.int64)
    pi = checked_vector("policy", policy, mdp.layers.n_pairs)
    episode(mdp.layers.table, mdp.P, pi, words, states, actions)
    return states, actions


# Kernels


@subroutine
def episode(
    lay: Integers,
    P: Vector,
    pi: Vector,
    words: npt.NDArray[np.uint64],
    states: Integers,
    actions: Integers,
) -> None:
    """Fill ``states`` and ``actions`` of layers 1..H, numbers within the layer."""
    H = horizon(lay)
    i = 0
    for h in range(H):
        s = draw(
            P, lay[TRIPLE, h] + i, lay[SIZE, h] * lay[ACTIONS, h], lay[SIZE, h + 1], words[2 * h]
        )
        A = lay[ACTIONS, h + 1]
        a = draw(pi, lay[PAIR, h + 1] + s * A, 1, A, words[2 * h + 1])
        states[h] = s
        actions[h] = a
        i = s * A + a


@subroutine
def greedy(
    lay: Integers, lo: Vector, hi: Vector, room: Vector, v: Vector, P: Vector, work: Vector,
    order: Integers,
) -> None:  # fmt: skip
    """P(.|s, a) = argmax over the box of <P, v>, every pair."""
    rest = work
    for h in range(horizon(lay)):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        n = lay[SIZE, h + 1]
        for i in range(m):
            rest[i] = room[lay[PAIR, h] + i]
        descending(n, v[lay[STATE, h + 1] : lay[STATE, h + 1] + n], order)
        for j in order[:n]:
            k = lay[TRIPLE, h] + j * m
            a = lo[k : k + m]
            b = hi[k : k + m]
            p = P[k : k + m]
            for i in range(m):
                give = min(rest[i], b[i] - a[i])
                p[i] = a[i] + give
                rest[i] -= give


@subroutine
def u_visited(
    lay: Integers,
    lo: Vector,
    hi: Vector,
    room: Vector,
    pi: Vector,
    states: Integers,
    u: Vector,
    work: Vector,
    order: Integers,
) -> None:
    """u[h - 1] for the visited state of each layer h = 1..H (of the state, not of the pair)."""
    for k in range(1, horizon(lay) + 1):
        u[k - 1] = u_state(lay, lo, hi, room, pi, k, states[k - 1], work, order)


@subroutine
def u_all(
    lay: Integers,
    lo: Vector,
    hi: Vector,
    room: Vector,
    pi: Vector,
    u: Vector,
    work: Vector,
    order: Integers,
) -> None:
    """u of every state, shape (n_states,)."""
    u[0] = 1.0
    for k in range(1, horizon(lay) + 1):
        for t in range(lay[SIZE, k]):
            u[lay[STATE, k] + t] = u_state(lay, lo, hi, room, pi, k, t, work, order)
