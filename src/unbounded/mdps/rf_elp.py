"""RF-ELP and RF-ELP-ES: policies that reach each state (Chen & Zhang 2024, Algorithms 3 and 6).

For each state s in turn an explorer (MVP, or UCBVI) seeks the reward 1{. = s} for N episodes; what
is returned is the uniform mixture of the policies it played, drawn once per episode (erratum E12).
Every component takes uniform actions at s (E33), and in all states from the layer of s on, which
changes nothing about how often s is reached. RF-ELP-ES stops at the first episode that brings
the visits of s to m (E26). Guarantee: q(s) of the mixture is at least half of the best possible one
for every state that can be reached with probability above 9 C^2 S A H/N, C logarithmic (E25).

Where the support of the transitions is known, states that it cannot reach are not sought. Counts
alone never prove that, so without it every state has its episodes.

A policy is planned when a model is renewed and not before, so there are few: repeated ones get more
weight. `explore` is the loop; `steps/few_explorers.py`, which SCB-RL plays in practice, shares its
parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from unbounded.core import arrays
from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.confidence import told_support
from unbounded.core.occupancy.layout import STATE, Layers, horizon, roll_forward
from unbounded.core.occupancy.mdp import Markov, Mixture
from unbounded.core.occupancy.reach import reachable
from unbounded.core.simplex.sampling import uniform
from unbounded.jit.interpreter import interpreted
from unbounded.jit.kernel import assign, kernel, subroutine
from unbounded.learners.mdp import Cache, MDPLearner, MDPSpec, Seed, checked_layers
from unbounded.mdps import mvp, ucbvi
from unbounded.mdps.steps import explorers, optimism
from unbounded.mdps.steps.explorers import Library
from unbounded.mdps.steps.optimism import Bonus, Model
from unbounded.validation import checked_constant, checked_count, checked_flag, checked_option

MVP, UCBVI = 0, 1  # explorers


class Goal(NamedTuple):
    """What depends on the number of episodes."""

    N: int  # episodes per state, at most
    bonus: Bonus  # of the explorer


class Params(NamedTuple):
    m: int  # stop after so many visits (RF-ELP-ES); 0: never
    n_sought: int  # how many states are sought
    share: bool  # keep the model from one state to the next
    explorer: int  # MVP, or UCBVI
    goal: Goal
    sought: Vector  # states 0 .. S - 1: 1 or 0, if some are not sought; else empty
    even: Vector  # pairs: the policy that takes all allowed actions evenly


class Progress(NamedTuple):
    """Return the progress of the search."""

    version: int
    target: int  # which state is being sought, 0 .. S - 1; S: all are done
    spent: int  # episodes spent on it
    visits: int  # ... of which so many reached it
    began: int  # the first policy of the library that belongs to the target
    current: int  # the policy that is being played
    size: int  # of the library
    explored: int  # episodes of exploration in all


class State(NamedTuple):
    t: int
    clipped: int  # nothing is ever clipped
    version: int
    progress: Progress
    model: Model
    library: Library
    zeros: Vector  # layers: no reward is to be estimated, as the reward is known

    def check(self, params: Params) -> None:
        self.model.check()
        progress, library = self.progress, self.library
        states, size = self.model.V.size, library.size
        arrays.require(0 <= progress.target < states, "there is no such state")
        done = progress.target == states - 1
        arrays.require(0 <= size <= library.weight.size, "there are no such policies")
        arrays.require(progress.size == size or done, "there are no such policies")
        arrays.require(0 <= progress.began <= progress.size, "there are no such policies")
        arrays.require(0 <= progress.current < max(progress.size, 1), "there is no such policy")
        arrays.require(0 <= progress.visits <= progress.spent, "there are no such visits")
        arrays.require_counts(library.weight)
        arrays.require_numbers(library.target, states - 1, "states")
        n_actions = (self.model.N.size - 1) // (states - 1)
        arrays.require_numbers(library.choice, n_actions, "actions")
        if done and size > 0:
            arrays.require_distribution(library.weight[:size], "the mixture of policies")


def init(layers: Layers, params: Params) -> State:
    """Seek the first state."""
    lay, library = layers.table, explorers.new_library(layers)
    model, zeros = optimism.new_model(layers), np.zeros(layers.horizon)
    nothing = Progress(0, next_target(lay, params, 0), 0, 0, 0, 0, 0, 0)
    progress = planned(lay, params, params.goal.bonus, nothing, model, library)
    library = library._replace(size=progress.size)
    return State(1, 0, 0, progress, model, library, zeros)


def sought_states(layers: Layers, possible: Vector) -> Vector:
    """`Params.sought`: the states that ``possible`` transitions (1 or 0; empty: all) can reach, but
    for the end, whose loss is known."""
    if possible.size == 0:
        return possible
    sought = reachable(layers, np.zeros_like(possible), possible)[1:].astype(np.float64)
    if layers.ends:
        sought[np.cumsum(layers.sizes)[1:] - 1] = 0.0
    return sought


def grown(state: State) -> State:
    """Return the same with room for more policies."""
    return state._replace(library=explorers.grown(state.library))


def finished(state: State, library: Library) -> State:
    """End the search, with this library."""
    progress = state.progress._replace(target=state.model.V.size - 1)
    return state._replace(progress=progress, library=library)


# Kernels


@kernel
def done(lay: Integers, state: State) -> bool:
    """Return whether every state has had its episodes."""
    return state.progress.target >= n_states(lay)


@kernel
def n_states(lay: Integers) -> int:
    """Return how many there are, without s_0."""
    return lay[STATE, horizon(lay) + 1] - 1


@subroutine
def next_target(lay: Integers, params: Params, number: int) -> int:
    """Return the first state to be sought from ``number`` on."""
    while number < n_states(lay) and not may_be_reached(params, number):
        number += 1
    return number


@subroutine
def may_be_reached(params: Params, number: int) -> bool:
    """As far as the support is known."""
    return params.sought.size == 0 or params.sought[number] > 0.0


@kernel
def room(state: State) -> bool:
    """Return whether one more policy fits into the library."""
    return state.library.size < state.library.weight.size - 1


@kernel
def act(lay: Integers, params: Params, state: State, word: int, pi: Vector) -> int:
    """Return the policy that seeks the target; when all states are done, one of those found."""
    k = state.progress.current
    if done(lay, state):
        k = explorers.draw(state.library, uniform(word))
    explorers.fill_component(lay, params.even, state.library, k, pi)
    return k


@kernel
def distribution(
    lay: Integers, params: Params, state: State, P: Vector, cache: Cache, q: Vector
) -> None:
    """Occupancy under ``P`` of what `act` plays."""
    library = state.library
    if done(lay, state):
        explorers.mean_occupancy(
            lay, params.even, library, P, cache.pi, cache.mass, cache.explorers, q
        )
    else:
        explorers.fill_component(lay, params.even, library, state.progress.current, cache.pi)
        roll_forward(lay, P, cache.pi, cache.mass, q)


@kernel
def update(
    lay: Integers, params: Params, state: State, solver: int, ask_info: int,
    states: Integers, actions: Integers, losses: Vector,
) -> State:  # fmt: skip
    """Learn from one episode of the current policy; losses are ignored."""
    return explore(lay, params, params.goal, state, states, actions)


@kernel
def explore(
    lay: Integers, params: Params, goal: Goal, state: State, states: Integers, actions: Integers
) -> State:
    """Algorithms 3 and 6, after one episode of the current policy: plan again, or go on to the next
    state."""
    model, library = state.model, state.library
    version, target, spent, visits, began, current, size, explored = state.progress
    if target >= n_states(lay):
        return with_progress(state, state.t + 1, state.progress)
    renewed = observe(lay, params, state, states, actions)  # Alg. 3, line 2: MVP(r^s, N)
    layer, s = explorers.place(lay, target)
    library.weight[current] += 1.0
    spent += 1
    explored += 1
    if states[layer - 1] == s:
        visits += 1
    progress = Progress(version, target, spent, visits, began, current, size, explored)
    if spent >= goal.N or (params.m > 0 and visits >= params.m):  # Alg. 6, line 2
        for k in range(began, size):  # uniform over episodes; over states: Alg. 5, line 11
            library.weight[k] /= float(spent) * params.n_sought
        target = next_target(lay, params, target + 1)
        progress = Progress(version + 1, target, 0, 0, size, current, size, explored)
        renewed = target < n_states(lay)
        if renewed and not params.share:
            optimism.forget(model)
    if renewed:
        progress = planned(lay, params, goal.bonus, progress, model, library)
    return with_progress(state, state.t + 1, progress)


@kernel
def reopened(lay: Integers, params: Params, goal: Goal, state: State) -> State:
    """Begin the search anew, with the model if that is shared."""
    if not params.share:
        optimism.forget(state.model)
    target = next_target(lay, params, 0)
    return seeking(lay, params, goal.bonus, state, state.t, target, state.progress.explored)


@subroutine
def seeking(
    lay: Integers, params: Params, bonus: Bonus, state: State, t: int, target: int, explored: int
) -> State:
    """On to ``target``, with nothing in the library."""
    progress = Progress(state.progress.version + 1, target, 0, 0, 0, 0, 0, explored)
    if target < n_states(lay):
        progress = planned(lay, params, bonus, progress, state.model, state.library)
    return with_progress(state, t, progress)


@subroutine
def with_progress(state: State, t: int, progress: Progress) -> State:
    """Return the same with other numbers."""
    old = state.library
    library = Library(progress.size, old.choice, old.weight, old.target)
    return State(t, 0, progress.version, progress, state.model, library, state.zeros)


@subroutine
def observe(
    lay: Integers, params: Params, state: State, states: Integers, actions: Integers
) -> bool:
    """Learn the transitions of an episode; whether the model was renewed."""
    if params.explorer == UCBVI:
        return ucbvi.observe(lay, state.model, states, actions, state.zeros)
    return mvp.observe(lay, state.model, states, actions, state.zeros)


@subroutine
def planned(
    lay: Integers, params: Params, bonus: Bonus, progress: Progress, model: Model, library: Library
) -> Progress:
    """Plan for the reward r^s of the target (Alg. 3, line 1); the policy is stored if it is new."""
    version, target, spent, visits, began, current, size, explored = progress
    layer, s = explorers.place(lay, target)
    if params.explorer == UCBVI:
        ucbvi.plan(lay, bonus, model, layer, s)
    else:
        mvp.plan(lay, bonus, model, layer, s)
    S = n_states(lay) + 1
    current = began
    while current < size and not explorers.same(lay, library, current, model.choice, layer):
        current += 1
    if current == size:
        assign(library.choice[current * S : (current + 1) * S], model.choice)
        library.weight[current] = 0.0
        library.target[current] = target
        size += 1
    return Progress(version + 1, target, spent, visits, began, current, size, explored)


class RFELP(MDPLearner):
    """Reward-free exploration: policies that reach each state (RF-ELP, RF-ELP-ES).

    Losses are ignored. When all states are done, `ask` draws one of the policies found. States that
    the ``support`` cannot reach are not sought.

    Parameters
    ----------
    episodes : int
        Episodes for each state, at most (N).
    delta : float, default 0.05
        For all states together.
    early_stop : int, default 0
        Go on to the next state after so many visits (RF-ELP-ES); 0: never.
    share_counts : bool, default True
        One transition model for all states.
    constants, bonus : see `MVP`
    explorer : {"mvp", "ucbvi"}
        Who seeks a state.

    Examples
    --------
    >>> learner = RFELP(layers=[1, 2], n_actions=2, episodes=20, seed=0)
    >>> while not learner.done:
    ...     plan = learner.ask()
    ...     actions = [plan.act(0, 0), 0]
    ...     learner.tell(plan, [0, actions[0]], actions, [0.0, 0.0])
    >>> mixture = learner.explorers()[1, 1]  # for state 1 of the second layer
    >>> mixture.policies[mixture.weights.argmax()].tables[0].tolist()
    [[0.0, 1.0]]
    """

    spec = MDPSpec.of(
        __name__,
        reference="Chen & Zhang 2024, Algorithms 3 and 6",
        room=room,
        grown=grown,
        per_state=True,
        infinite=("model.N_all",),
        examples=({"episodes": 20}, {"episodes": 20, "explorer": "ucbvi", "early_stop": 5}),
    )

    def __init__(
        self,
        layers: Sequence[int],
        n_actions: int,
        episodes: int,
        delta: float = 0.05,
        *,
        early_stop: int = 0,
        share_counts: bool = True,
        constants: Literal["practical", "paper"] = "practical",
        bonus: float = 0.3,
        explorer: Literal["mvp", "ucbvi"] = "mvp",
        support: npt.ArrayLike | None = None,
        allowed: Sequence[npt.ArrayLike] | None = None,
        ends: bool = False,
        seed: Seed = None,
    ) -> None:
        shape = checked_layers(layers, n_actions, allowed, ends)
        delta = checked_constant("delta", delta, below=1.0)
        episodes, bonus = checked_count("episodes", episodes), checked_constant("bonus", bonus)
        who = checked_option("explorer", explorer, ("mvp", "ucbvi"))
        of = ucbvi if who == UCBVI else mvp
        possible = told_support(shape, support)
        sought = sought_states(shape, possible)
        S = int(sought.sum()) if sought.size else sum(shape.sizes)
        params = Params(
            m=checked_count("early_stop", early_stop, least=0), n_sought=S,
            share=checked_flag("share_counts", share_counts), explorer=who,
            # erratum E33: delta for each state
            goal=Goal(episodes, of.chosen_bonus(shape, constants, bonus, episodes, delta / S)),
            sought=sought, even=shape.even,
        )  # fmt: skip
        self._begin(shape, params, seed)

    @property
    def made_for(self) -> int:
        """Episodes for all states that are sought, at most."""
        return int(self._params.goal.N * self._params.n_sought)

    @property
    def done(self) -> bool:
        """Whether every state has had its episodes."""
        return self.exploring is None

    @property
    def exploring(self) -> tuple[int, int] | None:
        """The state ``(h, s)`` being sought, h = 0 .. H - 1."""
        target = int(self._scalar("progress.target"))
        if target == sum(self.layers.sizes):
            return None
        h, s = interpreted(explorers.place)(self.layers.table, target)
        return h - 1, s

    @property
    def episodes_explored(self) -> int:
        """Episodes of exploration so far."""
        return int(self._scalar("progress.explored"))

    def policy(self) -> Markov:
        """Return uniform actions: this learner looks for policies and has none of its own."""
        return Markov.uniform(self.layers)

    def explorers(self) -> dict[tuple[int, int], Mixture]:
        """Return the mixture found for each state ``(h, s)`` that is done."""
        state = self._state()
        return interpreted(explorers.mixtures)(self.layers, state.library, state.progress.target)
