"""MVP and RF-ELP as learners: seek a reward, or seek every state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unbounded._arguments import checked_count, checked_flag, checked_option, checked_positive
from unbounded._jit import subroutine
from unbounded.core.arrays import (
    Integers,
    Vector,
)
from unbounded.core.occupancy.layout import (
    Layers,
    roll_forward,
)
from unbounded.core.occupancy.policies import Mixture
from unbounded.core.simplex.sampling import uniform
from unbounded.mdps import markov_play, mvp, rf_elp
from unbounded.mdps.mvp import Bonus, Model
from unbounded.mdps.rf_elp import Library, Search
from unbounded.play.learner import Seed
from unbounded.play.mdp_learner import MDPLearner, MDPSpec, checked_layers
from unbounded.play.sections import (
    CURRENT,
    EXPLORED,
    EXPLORING,
    HEAD,
    PHASE,
    PLAYING,
    TARGET,
    TOLD,
    VERSION,
    Sizes,
)

# ---------------------------------------------------------------------- MVP


class MVPState(NamedTuple):
    head: Vector
    pi: Vector
    model: Model
    rewards: Vector  # scratch, layers


def _mvp_sizes(layers: Layers, capacity: int) -> Sizes:
    sizes = {"head": HEAD, "pi": layers.n_pairs, "rewards": layers.horizon}
    return {**sizes, "model": mvp.sizes(layers)}


@subroutine
def _mvp_learn(
    lay: Integers, bonus: Bonus, state: MVPState, program: int, component: int,
    states: Integers, actions: Integers, losses: Vector,
) -> None:  # fmt: skip
    state.head[TOLD] += 1.0
    for h in range(losses.size):
        state.rewards[h] = -losses[h]
    if mvp.observe(lay, bonus.kind, state.model, states, actions, state.rewards):
        mvp.plan(lay, bonus, state.model, 0, 0)
        mvp.fill_policy(lay, state.model.choice, 0, state.pi)
        state.head[VERSION] += 1.0


def _mvp_init(layers: Layers, state: MVPState) -> None:
    mvp.fill_policy(layers.table, state.model.choice, 0, state.pi)


class MVP(MDPLearner):
    """Monotonic value propagation: stochastic rewards, unknown transitions (Zhang et al. 2023).

    Parameters
    ----------
    layers : sequence of int
    n_actions : int
    episodes : int
    delta : float, default 0.05
    total : float, default 1
        Bound on the total reward of an episode; rewards (= minus losses) are at least 0.
    constants : {"practical", "paper"}
    bonus : float, default 0.3
        Constant of the practical bonuses.
    explorer : {"mvp", "ucbvi"}
        Bernstein bonuses on batches, or UCBVI's on all the visits.
    seed : int or SeedSequence, optional

    Examples
    --------
    >>> learner = MVP(layers=[1, 2], n_actions=2, episodes=100, seed=0)
    >>> for _ in range(50):  # action 1 earns the reward
    ...     plan = learner.ask()
    ...     actions = [plan.act(0, 0), plan.act(1, 0)]
    ...     learner.tell(plan, [0, 0], actions, rewards=[0.0, actions[1]])
    >>> learner.policy().tables[1][0].tolist()
    [0.0, 1.0]
    """

    spec = MDPSpec(
        name="MVP",
        reference="Zhang, Chen, Lee & Du 2023, arXiv 2307.13586",
        State=MVPState,
        sizes=_mvp_sizes,
        init=_mvp_init,
        choose=markov_play.choose,
        learn=_mvp_learn,
        expected=markov_play.expected,
    )

    def __init__(
        self,
        layers: Sequence[int],
        n_actions: int,
        episodes: int,
        delta: float = 0.05,
        *,
        total: float = 1.0,
        constants: str = "practical",
        bonus: float = 0.3,
        explorer: str = "mvp",
        seed: Seed = None,
    ) -> None:
        settings = {k: v for k, v in locals().items() if k not in ("self", "seed", "__class__")}
        shape = checked_layers(layers, n_actions)
        settings["layers"] = list(shape.sizes)
        checked_positive("delta", delta, below=1.0)
        checked_positive("total", total)
        self._total = float(total)
        params = chosen_bonus(shape, explorer, constants, bonus, episodes, delta, total)
        self._start(shape, params, settings, seed)

    def _checked(self, name: str, values: Any) -> Vector:
        numbers = super()._checked(name, values)
        rewards = numbers if name == "rewards" else -numbers
        if np.any(rewards < 0) or rewards.sum() > self._total * (1.0 + 1e-12):
            raise ValueError(
                f"MVP needs rewards of at least 0 and of at most total = {self._total:g} in an "
                f"episode (losses are minus rewards), got {name} {numbers.tolist()}"
            )
        return numbers


def chosen_bonus(
    layers: Layers,
    explorer: str,
    constants: str,
    bonus: float,
    episodes: int,
    delta: float,
    total: float = 1.0,
) -> Bonus:
    """The bonus that the arguments of a seeker ask for."""
    K = checked_count("episodes", episodes)
    checked_positive("bonus", bonus)
    paper = checked_option("constants", constants, ("practical", "paper")) == 1
    if checked_option("explorer", explorer, ("mvp", "ucbvi")) == 1:
        return mvp.ucbvi_bonus(layers, K, delta, 7.0 if paper else bonus, total)
    if paper:
        return mvp.paper_bonus(layers, K, delta, total)
    return mvp.practical_bonus(layers, K, delta, bonus, total)


# ---------------------------------------------------------------------- RF-ELP


class RFELPState(NamedTuple):
    head: Vector
    pi: Vector
    model: Model
    library: Library
    zeros: Vector  # layers


class RFELPParams(NamedTuple):
    search: Search
    bonus: Bonus


def _rf_elp_sizes(layers: Layers, capacity: int) -> Sizes:
    sizes = {"head": HEAD, "pi": layers.n_pairs, "zeros": layers.horizon}
    library = rf_elp.sizes(layers, capacity)
    return {**sizes, "model": mvp.sizes(layers), "library": library}


def _rf_elp_init(layers: Layers, state: RFELPState) -> None:
    state.pi[0] = 1.0
    state.pi[1:] = 1.0 / layers.n_actions


@subroutine
def _rf_elp_choose(
    lay: Integers, params: RFELPParams, state: RFELPState, word: int, pi: Vector
) -> int:
    k = int(state.head[CURRENT])
    if state.head[PHASE] == PLAYING:
        k = rf_elp.draw_component(state.head, state.library, uniform(word))
    rf_elp.component(lay, state.library, k, pi)
    return k


@subroutine
def _rf_elp_learn(
    lay: Integers, params: RFELPParams, state: RFELPState, program: int, component: int,
    states: Integers, actions: Integers, losses: Vector,
) -> None:  # fmt: skip
    head = state.head
    head[TOLD] += 1.0
    if head[PHASE] == EXPLORING and rf_elp.seek(
        lay, params.bonus, params.search, head, state.model, state.library, states, actions,
        state.zeros,
    ):  # fmt: skip
        head[PHASE] = PLAYING
        head[VERSION] += 1.0


@subroutine
def _rf_elp_expected(
    lay: Integers, params: RFELPParams, state: RFELPState, P: Vector, cache: Vector, q: Vector
) -> None:
    X = q.size
    pi = cache[1 + X : 1 + 2 * X]
    mass = cache[1 + 2 * X :]
    if state.head[PHASE] == EXPLORING:
        rf_elp.component(lay, state.library, int(state.head[CURRENT]), pi)
        roll_forward(lay, P, pi, mass, q)
    else:
        rf_elp.mean_occupancy(lay, state.head, state.library, P, pi, mass, cache[1 : 1 + X], q)


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
        As for `MVP`.
    seed : int or SeedSequence, optional

    Examples
    --------
    >>> learner = RFELP(layers=[1, 2], n_actions=2, episodes=20, seed=0)
    >>> while not learner.done:
    ...     plan = learner.ask()
    ...     actions = [plan.act(0, 0), 0]
    ...     learner.tell(plan, [0, actions[0]], actions, [0.0, 0.0])
    >>> mixture = learner.policies()[1, 1]  # for state 1 of the second layer
    >>> mixture.policies[mixture.weights.argmax()].tables[0].tolist()
    [[0.0, 1.0]]
    """

    spec = MDPSpec(
        name="RFELP",
        reference="Chen & Zhang 2024, Algorithms 3 and 6",
        State=RFELPState,
        sizes=_rf_elp_sizes,
        init=_rf_elp_init,
        choose=_rf_elp_choose,
        learn=_rf_elp_learn,
        expected=_rf_elp_expected,
        per_state=True,
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
        settings = {k: v for k, v in locals().items() if k not in ("self", "seed", "__class__")}
        shape = checked_layers(layers, n_actions)
        settings["layers"] = list(shape.sizes)
        checked_positive("delta", delta, below=1.0)
        per_state = delta / sum(shape.sizes)  # erratum E33
        chosen = chosen_bonus(shape, explorer, constants, bonus, episodes, per_state)
        stop = checked_count("early_stop", early_stop, least=0)
        params = RFELPParams(
            Search(int(episodes), stop, checked_flag("share_counts", share_counts)), chosen
        )
        self._start(shape, params, settings, seed)

    def _prepare(self, state: RFELPState) -> None:
        search, bonus = self._params
        rf_elp.begin_target(
            self.layers.table, bonus, search, state.head, state.model, state.library
        )

    @property
    def done(self) -> bool:
        """Whether every state has had its episodes."""
        return bool(self._state.head[PHASE] == PLAYING)

    @property
    def exploring(self) -> tuple[int, int] | None:
        """The state ``(h, s)`` being sought, h = 0 .. H - 1."""
        if self.done:
            return None
        h, s = rf_elp.place(self.layers.table, int(self._state.head[TARGET]))
        return h - 1, s

    @property
    def episodes_used(self) -> int:
        """Episodes of exploration so far."""
        return int(self._state.head[EXPLORED])

    def policies(self) -> dict[tuple[int, int], Mixture]:
        """The mixture found for each state ``(h, s)`` that is done."""
        return rf_elp.found(self.layers, self._state.head, self._state.library)
