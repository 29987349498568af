"""What optimistic learners share: a model of transitions and rewards, renewed at doubling visits.

MVP and UCBVI differ in which visits a model is made of and in their bonuses. Both then act greedily
for optimistic values Q, backwards over layers. Ties go to the action with the *least count*: with
the papers' constants all Q equal their bound for thousands of visits, and ties by number would
play action 0 for ever. An action that is not allowed has infinitely many visits, and is not
considered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from unbounded.core.arrays import Counts, Integers, Scratch, Sizes, Vector, require_numbers
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, TRIPLE, Layers, horizon
from unbounded.jit.kernel import kernel, subroutine
from unbounded.learners.mdp import MDPLearner, Seed, checked_layers
from unbounded.mdps.steps.explorers import fill_policy, place
from unbounded.validation import checked_constant, checked_count, checked_positive


class Model(NamedTuple):
    """Estimates of transitions and rewards."""

    N_all: Counts  # pairs: visits; infinite where an action is not allowed
    N: Counts  # pairs: visits that the model is made of
    theta: Vector  # pairs: rewards that the next model will be made of
    square: Sizes  # pairs: their squares
    reward: Vector  # pairs: mean reward of the model
    spread: Sizes  # pairs: its variance
    M: Counts  # triples: visits that the next model will be made of
    P: Sizes  # triples: transitions of the model
    Q: Vector  # pairs: optimistic values
    V: Vector  # states
    choice: Vector  # states: greedy action, ties frozen when it was planned

    def check(self) -> None:
        """Reject what cannot have been learned."""
        n_actions = (self.N.size - 1) // (self.V.size - 1)
        require_numbers(self.choice, n_actions, "actions")


class Bonus(NamedTuple):
    """Constants of a bonus; ``B`` bounds the total reward of an episode."""

    c1: float
    c2: float
    c3: float
    log_term: float
    B: float


class State(NamedTuple):
    """Of the learners that seek a reward."""

    t: int
    clipped: int  # nothing is ever clipped
    version: int
    pi: Vector
    model: Model
    rewards: Scratch  # layers


def init(layers: Layers, bonus: Bonus) -> State:
    """No visits; the first action everywhere."""
    model, pi = new_model(layers), np.empty(layers.n_pairs)
    fill_policy(layers.table, layers.even, model.choice, 0, pi)
    return State(1, 0, 0, pi, model, np.zeros(layers.horizon))


def checked_rewards(learner: str, name: str, numbers: Vector, total: float) -> None:
    """Reject what is not at least 0 each and at most ``total`` together."""
    losses = -numbers if name == "rewards" else numbers
    if not legal_rewards(losses.tolist(), total):
        raise ValueError(
            f"{learner} needs rewards of at least 0 and of at most total = {total:g} in an "
            f"episode (losses are minus rewards), got {name} {numbers.tolist()}"
        )


def new_model(layers: Layers) -> Model:
    """No visits."""
    X, T, S = layers.n_pairs, layers.n_transitions, layers.n_states
    choice = np.concatenate([[0], *[table.argmax(axis=1) for table in layers.allowed]])
    return Model(
        N_all=layers.barred, N=np.zeros(X), theta=np.zeros(X), square=np.zeros(X),
        reward=np.zeros(X), spread=np.zeros(X), M=np.zeros(T), P=np.zeros(T), Q=np.zeros(X),
        V=np.zeros(S), choice=choice.astype(np.float64),
    )  # fmt: skip


def legal_rewards(losses: Any, total: float) -> bool:
    """Whether rewards, minus ``losses``, are at least 0 each and at most ``total`` together."""
    together = 0.0
    for loss in losses:
        if loss > 0.0:
            return False
        together -= loss
    return together <= total * (1.0 + 1e-12)


# Kernels

_legal_rewards = kernel(legal_rewards)


@kernel
def takes(bonus: Bonus, losses: Vector) -> bool:
    """Return whether the learner can make something of these losses."""
    return _legal_rewards(losses, bonus.B)


@subroutine
def forget(model: Model) -> None:
    """Back to no visits."""
    for p in range(model.N_all.size):
        if model.N_all[p] < math.inf:
            model.N_all[p] = 0.0
    for vector in (model.N, model.theta, model.square, model.reward):
        vector[:] = 0.0
    model.spread[:] = 0.0
    model.M[:] = 0.0
    model.P[:] = 0.0


@kernel
def count_visit(
    lay: Integers, model: Model, h: int, states: Integers, actions: Integers, reward: float
) -> int:
    """Count the visit of layer h, and how the pair's model is to be renewed: its visits, if these
    are 1, 2, 4, ..., else 0."""
    i = states[h - 1] * lay[ACTIONS, h] + actions[h - 1]
    p = lay[PAIR, h] + i
    model.N_all[p] += 1.0
    model.theta[p] += reward
    model.square[p] += reward * reward
    if h < horizon(lay):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        model.M[lay[TRIPLE, h] + states[h] * m + i] += 1.0
    visits = int(model.N_all[p])
    return 0 if visits & (visits - 1) else visits


@subroutine
def met(lay: Integers, model: Model, number: int) -> float:
    """Return how often state ``number`` in 0 .. S - 1 was visited."""
    h, s = place(lay, number)
    visits = 0.0
    for a in range(lay[ACTIONS, h]):
        n = model.N_all[lay[PAIR, h] + s * lay[ACTIONS, h] + a]
        visits += n if n < math.inf else 0.0
    return visits


@kernel
def renew(lay: Integers, model: Model, h: int, i: int, n: float) -> None:
    """Make the model of pair ``i`` of layer h of the ``n`` visits in theta, square and M."""
    p = lay[PAIR, h] + i
    model.N[p] = n
    model.reward[p] = model.theta[p] / n
    model.spread[p] = max(0.0, model.square[p] / n - model.reward[p] * model.reward[p])
    if h < horizon(lay):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        for j in range(lay[SIZE, h + 1]):
            k = lay[TRIPLE, h] + j * m + i
            model.P[k] = model.M[k] / n


@kernel
def next_value(lay: Integers, model: Model, h: int, i: int) -> tuple[float, float]:
    """Return mean and mean square of V after pair ``i`` of layer h, under the model."""
    mean = square = 0.0
    if h < horizon(lay):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        for j in range(lay[SIZE, h + 1]):
            P = model.P[lay[TRIPLE, h] + j * m + i]
            v = model.V[lay[STATE, h + 1] + j]
            mean += P * v
            square += P * v * v
    return mean, square


@kernel
def act_greedily(lay: Integers, model: Model, h: int) -> None:
    """V = max Q and its action in the states of layer h; ties go to the least count."""
    A = lay[ACTIONS, h]
    for s in range(lay[SIZE, h]):
        best = -math.inf
        choice = 0
        for a in range(A):
            p = lay[PAIR, h] + s * A
            Q = model.Q[p + a]
            if model.N_all[p + a] == math.inf:
                continue
            if best < Q or (best == Q and model.N_all[p + a] < model.N_all[p + choice]):
                best = Q
                choice = a
        model.V[lay[STATE, h] + s] = best
        model.choice[lay[STATE, h] + s] = choice


@kernel
def know_target(lay: Integers, model: Model, h: int, layer: int, target: int) -> None:
    """The reward r^s is 1 in state ``target`` of ``layer <= h`` and known (Alg. 3, line 1): nothing
    is estimated, and all actions tie."""
    for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
        model.Q[p] = 0.0
    act_greedily(lay, model, h)
    for s in range(lay[SIZE, h]):
        model.V[lay[STATE, h] + s] = 1.0 if h == layer and s == target else 0.0


def update_by(observe: Any, plan: Any) -> Any:
    """Make ``update`` of how a learner counts an episode, and of how it plans."""

    @kernel
    def update(
        lay: Integers, bonus: Bonus, state: State, solver: int, ask_info: int,
        states: Integers, actions: Integers, losses: Vector,
    ) -> State:  # fmt: skip
        """Learn from the rewards of one episode, minus its losses."""
        version, model = state.version, state.model
        for h in range(losses.size):
            state.rewards[h] = -losses[h]
        if observe(lay, model, states, actions, state.rewards):
            plan(lay, bonus, model, 0, 0)
            fill_policy(lay, state.pi, model.choice, 0, state.pi)  # nowhere even
            version += 1
        return State(state.t + 1, 0, version, state.pi, model, state.rewards)

    return update


CLAIMS: dict[str, Any] = {
    "init": init,
    "takes": takes,
    "infinite": ("model.N_all",),
    "examples": ({}, {"constants": "paper"}),
}


class Optimistic(MDPLearner):
    """Base of the learners that seek rewards by optimism."""

    _chosen_bonus: ClassVar[Callable[..., Bonus]]

    def __init__(
        self,
        layers: Sequence[int],
        n_actions: int,
        episodes: int,
        delta: float = 0.05,
        *,
        total: float = 1.0,
        constants: Literal["practical", "paper"] = "practical",
        bonus: float = 0.3,
        allowed: Sequence[npt.ArrayLike] | None = None,
        ends: bool = False,
        seed: Seed = None,
    ) -> None:
        shape = checked_layers(layers, n_actions, allowed, ends)
        delta = checked_constant("delta", delta, below=1.0)
        total = self._total = checked_positive("total", total)
        episodes, bonus = checked_count("episodes", episodes), checked_constant("bonus", bonus)
        params = self._chosen_bonus(shape, constants, bonus, episodes, delta, total)
        self._begin(shape, params, seed)

    def _checked(self, name: str, values: Any) -> Vector:
        numbers = super()._checked(name, values)
        checked_rewards(self.spec.name, name, numbers, self._total)
        return numbers
