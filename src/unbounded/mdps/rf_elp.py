"""RF-ELP and RF-ELP-ES: policies that reach each state (Chen & Zhang 2024, Algorithms 3 and 6).

For each state s in turn an explorer (MVP, or UCBVI) seeks the reward 1{. = s} for N episodes; what
is returned is the uniform mixture of the policies it played, drawn once per episode (erratum E12),
with uniform actions at s in every component (E33). RF-ELP-ES stops at the first episode that brings
the visits of s to m (E26). Guarantee: q(s) of the mixture is at least half of the best possible one
for every state that can be reached with probability above 9 C^2 S A H/N.

A policy is planned when a model is renewed and not before, so there are few: repeated ones get more
weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unbounded._arguments import checked_count, checked_flag, checked_option, checked_positive
from unbounded._jit import kernel, subroutine
from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import STATE, Layers, horizon, roll_forward
from unbounded.core.occupancy.policies import Markov, Mixture
from unbounded.core.simplex.sampling import uniform
from unbounded.mdps import explorers, mvp, optimism, ucbvi
from unbounded.mdps.explorers import Library
from unbounded.mdps.optimism import Bonus, Model
from unbounded.play.contract import Cache, MDPSpec
from unbounded.play.mdp_learner import MDPLearner, checked_layers
from unbounded.play.seeds import Seed

MVP, UCBVI = 0, 1  # explorers


class Params(NamedTuple):
    N: int  # episodes per state, at most
    m: int  # stop after so many visits (RF-ELP-ES); 0: never
    share: bool  # keep the model from one state to the next
    explorer: int  # MVP, or UCBVI
    bonus: Bonus


class State(NamedTuple):
    t: int
    clipped: int  # nothing is ever clipped
    version: int
    target: int  # which state is being sought, 0 .. S - 1; S: all are done
    spent: int  # episodes spent on it
    visits: int  # ... of which so many reached it
    began: int  # the first policy of the library that belongs to the target
    current: int  # the policy that is being played
    explored: int  # episodes of exploration in all
    model: Model
    library: Library
    zeros: Vector  # layers: no reward is to be estimated, as the reward is known


def init(layers: Layers, params: Params) -> State:
    """The first state is sought."""
    state = State(
        t=1, clipped=0, version=0, target=0, spent=0, visits=0, began=0, current=0, explored=0,
        model=optimism.new_model(layers), library=explorers.new_library(layers),
        zeros=np.zeros(layers.horizon),
    )  # fmt: skip
    return _planned(layers.table, params, state)


def grown(state: State) -> State:
    """The same with room for more policies."""
    return state._replace(library=explorers.grown(state.library))


# Kernels


@kernel
def done(lay: Integers, state: State) -> bool:
    """Whether every state has had its episodes."""
    return state.target >= lay[STATE, horizon(lay) + 1] - 1


@kernel
def room(state: State) -> bool:
    """Whether one more policy fits into the library."""
    return state.library.size < state.library.weight.size - 1


@kernel
def act(lay: Integers, params: Params, state: State, word: int, pi: Vector) -> int:
    """The policy that seeks the target; when all states are done, one of those found."""
    k = state.current
    if done(lay, state):
        k = explorers.draw(state.library, uniform(word))
    explorers.fill_component(lay, state.library, k, pi)
    return k


@kernel
def distribution(
    lay: Integers, params: Params, state: State, P: Vector, cache: Cache, q: Vector
) -> None:
    """Occupancy under ``P`` of what `act` plays."""
    library = state.library
    if done(lay, state):
        explorers.mean_occupancy(lay, library, P, cache.pi, cache.mass, cache.explorers, q)
    else:
        explorers.fill_component(lay, library, state.current, cache.pi)
        roll_forward(lay, P, cache.pi, cache.mass, q)


@subroutine
def update(
    lay: Integers, params: Params, state: State, solver: int, memo: int,
    states: Integers, actions: Integers, losses: Vector,
) -> State:  # fmt: skip
    """Learn from one episode of the current policy; losses are ignored."""
    if done(lay, state):
        return State(
            state.t + 1, 0, state.version, state.target, state.spent, state.visits, state.began,
            state.current, state.explored, state.model, state.library, state.zeros,
        )  # fmt: skip
    layer, s = explorers.place(lay, state.target)
    reached = 1 if states[layer - 1] == s else 0
    state.library.weight[state.current] += 1.0
    state = State(
        state.t + 1, 0, state.version, state.target, state.spent + 1, state.visits + reached,
        state.began, state.current, state.explored + 1, state.model, state.library, state.zeros,
    )  # fmt: skip
    renewed = _observe(lay, params, state, states, actions)
    if state.spent >= params.N or (params.m > 0 and state.visits >= params.m):
        return _next_target(lay, params, state)  # Alg. 3, line 4; Alg. 6, line 2
    if renewed:
        return _planned(lay, params, state)
    return state


@subroutine
def _observe(
    lay: Integers, params: Params, state: State, states: Integers, actions: Integers
) -> bool:
    if params.explorer == UCBVI:
        return ucbvi.observe(lay, state.model, states, actions, state.zeros)
    return mvp.observe(lay, state.model, states, actions, state.zeros)


@subroutine
def _next_target(lay: Integers, params: Params, state: State) -> State:
    """The target's policies become a uniform mixture; the next state is sought, if there is one."""
    library, S = state.library, lay[STATE, horizon(lay) + 1] - 1
    for k in range(state.began, library.size):
        library.weight[k] /= float(state.spent) * S
    following = State(
        state.t, 0, state.version + 1, state.target + 1, 0, 0, library.size, state.current,
        state.explored, state.model, library, state.zeros,
    )  # fmt: skip
    if done(lay, following):
        return following
    if not params.share:
        optimism.forget(state.model)
    return _planned(lay, params, following)


@subroutine
def _planned(lay: Integers, params: Params, state: State) -> State:
    """Plan for the target (Alg. 3, lines 1 and 2); the policy is stored if it is new."""
    S = lay[STATE, horizon(lay) + 1]
    model, library = state.model, state.library
    layer, s = explorers.place(lay, state.target)
    if params.explorer == UCBVI:
        ucbvi.plan(lay, params.bonus, model, layer, s)
    else:
        mvp.plan(lay, params.bonus, model, layer, s)
    current = state.began
    while current < library.size:
        same = True
        for k in range(1, lay[STATE, layer]):  # later layers do not matter: uniform actions
            if library.choice[current * S + k] != model.choice[k]:
                same = False
                break
        if same:
            break
        current += 1
    if current == library.size:
        library.choice[current * S : (current + 1) * S] = model.choice
        library.weight[current] = 0.0
        library.target[current] = state.target
        library = Library(current + 1, library.choice, library.weight, library.target)
    return State(
        state.t, 0, state.version + 1, state.target, state.spent, state.visits, state.began,
        current, state.explored, model, library, state.zeros,
    )  # fmt: skip


class RFELP(MDPLearner):
    """Reward-free exploration: policies that reach each state (RF-ELP, RF-ELP-ES).

    Losses are ignored. When all states are done, `ask` draws one of the policies found.

    Parameters
    ----------
    layers : sequence of int
    n_actions : int
    episodes : int
        Episodes for each state, at most (N).
    delta : float, default 0.05
        For all states together.
    early_stop : int, default 0
        Go on to the next state after so many visits (RF-ELP-ES); 0: never.
    share_counts : bool, default True
        One transition model for all states.
    constants : {"practical", "paper"}
        As for `MVP`.
    bonus : float, default 0.3
        As for `MVP`.
    explorer : {"mvp", "ucbvi"}
        Who seeks a state.
    seed : int or SeedSequence, optional

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
        name="RFELP",
        reference="Chen & Zhang 2024, Algorithms 3 and 6",
        room=room,
        grown=grown,
        per_state=True,
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
        constants: str = "practical",
        bonus: float = 0.3,
        explorer: str = "mvp",
        seed: Seed = None,
    ) -> None:
        shape = checked_layers(layers, n_actions)
        delta = checked_positive("delta", delta, below=1.0)
        who = checked_option("explorer", explorer, ("mvp", "ucbvi"))
        of = ucbvi if who == UCBVI else mvp
        params = Params(
            N=checked_count("episodes", episodes),
            m=checked_count("early_stop", early_stop, least=0),
            share=checked_flag("share_counts", share_counts),
            explorer=who,
            bonus=of.chosen_bonus(shape, constants, bonus, episodes, delta / sum(shape.sizes)),
        )  # erratum E33: delta for each state
        self._start(shape, params, locals(), seed)

    @property
    def done(self) -> bool:
        """Whether every state has had its episodes."""
        return self.exploring is None

    @property
    def exploring(self) -> tuple[int, int] | None:
        """The state ``(h, s)`` being sought, h = 0 .. H - 1."""
        target = int(self._scalar("target"))
        if target == sum(self.layers.sizes):
            return None
        h, s = explorers.place(self.layers.table, target)
        return h - 1, s

    @property
    def episodes_explored(self) -> int:
        """Episodes of exploration so far."""
        return int(self._scalar("explored"))

    def policy(self) -> Markov:
        """Uniform actions: this learner looks for policies and has none of its own."""
        return Markov.uniform(self.layers)

    def explorers(self) -> dict[tuple[int, int], Mixture]:
        """The mixture found for each state ``(h, s)`` that is done."""
        state = self._state()
        return explorers.mixtures(self.layers, state.library, state.target)
