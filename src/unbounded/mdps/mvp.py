"""MVP: optimism with doubling batches and Bernstein bonuses (Zhang, Chen, Lee & Du 2023).

A pair (s, a) renews its model when its visits reach 1, 2, 4, ...: the new model is made of the
visits since the last renewal. After an episode with a renewal, backwards over layers,

    Q = min(B, r + P V + c1 sqrt(Var_P(V) ln_/N) + c2 sqrt(Var(r) ln_/N) + c3 B ln_/N),   V = max Q,

where B bounds the total reward of an episode; pairs never visited keep Q = B. The paper's constants
are c1 = 460/9, c2 = 2 sqrt(2), c3 = 544/9 and ln_ = ln(200 S A H^2 K^2/delta) with S the states of
a layer. Ties go to the action with the *least count*: with the paper's constants all Q equal B for
thousands of visits, and ties by number would play action 0 for ever.

The bonus is reconstructed from the paper's prose.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from unbounded._jit import subroutine
from unbounded.core.arrays import (
    Integers,
    Vector,
)
from unbounded.core.occupancy.layout import (
    ACTIONS,
    PAIR,
    SIZE,
    STATE,
    TRIPLE,
    Layers,
)

BERNSTEIN, HOEFFDING = 0, 1


class Model(NamedTuple):
    """What is known about transitions and rewards; views into a learner's buffer."""

    N_all: Vector  # pairs: visits
    N: Vector  # pairs: visits that the model is made of
    theta: Vector  # pairs: rewards since the last renewal
    square: Vector  # pairs: their squares
    reward: Vector  # pairs: mean reward of the model
    spread: Vector  # pairs: its variance
    M: Vector  # triples: visits since the last renewal (all visits, for UCBVI)
    P: Vector  # triples: transitions of the model
    V: Vector  # states
    choice: Vector  # states: greedy action, ties frozen when it was planned


class Bonus(NamedTuple):
    """Kind of bonus and its constants; ``B`` bounds the total reward."""

    kind: int
    c1: float
    c2: float
    c3: float
    log_term: float
    B: float


def sizes(layers: Layers) -> dict[str, int]:
    """Lengths of the vectors of a `Model`."""
    pairs = dict.fromkeys(("N_all", "N", "theta", "square", "reward", "spread"), layers.n_pairs)
    triples = dict.fromkeys(("M", "P"), layers.n_transitions)
    return {**pairs, **triples, "V": layers.n_states, "choice": layers.n_states}


def paper_bonus(layers: Layers, episodes: int, delta: float, B: float = 1.0) -> Bonus:
    """Bonus with MVP's constants; ``episodes`` is rounded up to a power of two."""
    K = 1 << max(0, math.ceil(math.log2(episodes)))
    log_term = math.log(200 * max(layers.sizes) * layers.n_actions * layers.horizon**2 / delta)
    return Bonus(BERNSTEIN, 460 / 9, 2 * math.sqrt(2), 544 / 9, log_term + 2 * math.log(K), B)


def practical_bonus(
    layers: Layers, episodes: int, delta: float, constant: float = 0.3, B: float = 1.0
) -> Bonus:
    """The same schedule with small constants and ln(2 S A K/delta)."""
    log_term = math.log(2 * sum(layers.sizes) * layers.n_actions * episodes / delta)
    return Bonus(BERNSTEIN, constant, constant, constant, log_term, B)


def ucbvi_bonus(
    layers: Layers, episodes: int, delta: float, constant: float = 7.0, B: float = 1.0
) -> Bonus:
    """UCBVI-CH (Azar, Osband & Munos 2017): c B L/sqrt(N), L = ln(5 S A K/delta), all the visits.

    It is planned again when some pair's visits reach a power of two, not after every episode, so
    that there are few distinct policies.
    """
    log_term = math.log(5 * sum(layers.sizes) * layers.n_actions * episodes / delta)
    return Bonus(HOEFFDING, constant, 0.0, 0.0, log_term, B)


# Kernels


@subroutine
def forget(model: Model) -> None:
    """Back to no visits."""
    for vector in (model.N_all, model.N, model.theta, model.square, model.reward):
        vector[:] = 0.0
    model.spread[:] = 0.0
    model.M[:] = 0.0
    model.P[:] = 0.0


@subroutine
def observe(
    lay: Integers, kind: int, model: Model, states: Integers, actions: Integers, rewards: Vector
) -> bool:
    """Count one episode; True if some pair renewed its model."""
    H = lay.shape[1] - 2
    renewed = False
    for h in range(1, H + 1):
        i = states[h - 1] * lay[ACTIONS, h] + actions[h - 1]
        m = lay[SIZE, h] * lay[ACTIONS, h]
        p = lay[PAIR, h] + i
        model.N_all[p] += 1.0
        model.theta[p] += rewards[h - 1]
        model.square[p] += rewards[h - 1] * rewards[h - 1]
        if h < H:
            model.M[lay[TRIPLE, h] + states[h] * m + i] += 1.0
        visits = int(model.N_all[p])
        if visits & (visits - 1):
            continue
        renewed = True
        n = float(visits) if kind == HOEFFDING else float(max(1, visits // 2))
        model.N[p] = n
        model.reward[p] = model.theta[p] / n
        model.spread[p] = max(0.0, model.square[p] / n - model.reward[p] * model.reward[p])
        if h < H:
            for j in range(lay[SIZE, h + 1]):
                k = lay[TRIPLE, h] + j * m + i
                model.P[k] = model.M[k] / n
                if kind != HOEFFDING:
                    model.M[k] = 0.0
        if kind != HOEFFDING:
            model.theta[p] = 0.0
            model.square[p] = 0.0
    return renewed


@subroutine
def plan(lay: Integers, bonus: Bonus, model: Model, layer: int, target: int) -> float:
    """Optimistic values and greedy actions; returns the largest value of a first state.

    With ``layer`` in 1..H the reward is 1 in state ``target`` of that layer and known, so that
    nothing is estimated from there on (V = 1{. = target}, ties everywhere). With ``layer = 0`` the
    model's rewards are sought.
    """
    H = lay.shape[1] - 2
    for h in range(H, 0, -1):
        A = lay[ACTIONS, h]
        m = lay[SIZE, h] * A
        known = layer > 0 and h >= layer
        for s in range(lay[SIZE, h]):
            best = -math.inf
            choice = 0
            for a in range(A):
                i = s * A + a
                Q = 0.0 if known else _optimistic(lay, bonus, model, h, i, m)
                count = model.N_all[lay[PAIR, h] + i]
                if best < Q or (best == Q and count < model.N_all[lay[PAIR, h] + s * A + choice]):
                    best = Q
                    choice = a
            if known:
                best = 1.0 if h == layer and s == target else 0.0
            model.V[lay[STATE, h] + s] = best
            model.choice[lay[STATE, h] + s] = choice
    first = 0.0
    for s in range(lay[SIZE, 1]):
        first = max(first, model.V[lay[STATE, 1] + s])
    return first


@subroutine
def _optimistic(lay: Integers, bonus: Bonus, model: Model, h: int, i: int, m: int) -> float:
    p = lay[PAIR, h] + i
    N = model.N[p]
    if N <= 0.0:
        return bonus.B
    mean = 0.0
    square = 0.0
    if h < lay.shape[1] - 2:
        for j in range(lay[SIZE, h + 1]):
            P = model.P[lay[TRIPLE, h] + j * m + i]
            v = model.V[lay[STATE, h + 1] + j]
            mean += P * v
            square += P * v * v
    if bonus.kind == HOEFFDING:
        b = bonus.c1 * bonus.B * bonus.log_term / math.sqrt(N)
    else:
        L = bonus.log_term / N
        variance = max(0.0, square - mean * mean)
        b = bonus.c1 * math.sqrt(variance * L) + bonus.c2 * math.sqrt(model.spread[p] * L)
        b += bonus.c3 * bonus.B * L
    return min(bonus.B, model.reward[p] + mean + b)


@subroutine
def fill_policy(lay: Integers, choice: Vector, layer: int, pi: Vector) -> None:
    """One-hot ``pi`` of the actions ``choice``; uniform from layer ``layer`` on (0: nowhere)."""
    H = lay.shape[1] - 2
    pi[0] = 1.0
    for h in range(1, H + 1):
        A = lay[ACTIONS, h]
        for s in range(lay[SIZE, h]):
            p = lay[PAIR, h] + s * A
            for a in range(A):
                pi[p + a] = 1.0 if a == int(choice[lay[STATE, h] + s]) else 0.0
            if 0 < layer <= h:
                for a in range(A):
                    pi[p + a] = 1.0 / A
