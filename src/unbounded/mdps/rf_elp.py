"""RF-ELP and RF-ELP-ES: policies that reach each state (Chen & Zhang 2024, Algorithms 3 and 6).

For each state s in turn an explorer (MVP, or UCBVI) seeks the reward 1{. = s} for N episodes; what
is returned is the uniform mixture of the policies it played, drawn once per episode (erratum E12),
with uniform actions at s in every component (E33). RF-ELP-ES stops at the first episode that brings
the visits of s to m (E26). Guarantee: q(s) of the mixture is at least half of the best possible one
for every state that can be reached with probability above 9 C^2 S A H/N, C logarithmic (E25).

Where the support of the transitions was told, states that it cannot reach are not sought. Counts
alone never prove that, so without being told every state has its episodes.

A policy is planned when a model is renewed and not before, so there are few: repeated ones get more
weight. How a state is sought is in `state_search`, which SCB-RL's `few_explorers` shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy.typing as npt

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.confidence import told_support
from unbounded.core.occupancy.policies import Markov, Mixture
from unbounded.jit.interpreter import interpreted
from unbounded.jit.kernel import kernel, subroutine
from unbounded.learners.mdp import MDPLearner, checked_layers
from unbounded.learners.seeds import Seed
from unbounded.learners.spec import MDPSpec
from unbounded.mdps import mvp, ucbvi
from unbounded.mdps.steps import explorers, optimism, state_search
from unbounded.mdps.steps.state_search import UCBVI, Params, Progress, State
from unbounded.validation import checked_constant, checked_count, checked_flag, checked_option


@kernel
def update(
    lay: Integers, params: Params, state: State, solver: int, memo: int,
    states: Integers, actions: Integers, losses: Vector,
) -> State:  # fmt: skip
    """Learn from one episode of the current policy; losses are ignored."""
    progress = state.progress
    if not state_search.done(lay, state):
        renewed = state_search.observe(lay, params, state, states, actions)
        progress = _after_episode(lay, params, progress, state, states, renewed)
    return state_search.with_progress(state, state.t + 1, progress)


@kernel
def reopened(lay: Integers, params: Params, state: State) -> State:
    """The search begins anew, with the model if that is shared."""
    if not params.share:
        optimism.forget(state.model)
    target = state_search.next_target(lay, params, 0)
    return state_search.seeking(lay, params, state, state.t, target, state.progress.explored)


@subroutine
def _after_episode(
    lay: Integers, params: Params, progress: Progress, state: State, states: Integers,
    renewed: bool,
) -> Progress:  # fmt: skip
    """One episode of the current policy was played: plan again, or go on to the next state."""
    model, library = state.model, state.library
    version, target, spent, visits, began, current, size, explored = progress
    layer, s = explorers.place(lay, target)
    library.weight[current] += 1.0
    spent += 1
    explored += 1
    if states[layer - 1] == s:
        visits += 1
    if spent >= params.N or (params.m > 0 and visits >= params.m):  # Alg. 6, line 2
        for k in range(began, size):  # Alg. 3, line 2: uniform, over all states' mixtures
            library.weight[k] /= float(spent) * params.n_sought
        target = state_search.next_target(lay, params, target + 1)
        following = Progress(version + 1, target, 0, 0, size, current, size, explored)
        if target == state_search.n_states(lay):
            return following
        if not params.share:
            optimism.forget(model)
        return state_search.planned(lay, params, following, model, library)
    so_far = Progress(version, target, spent, visits, began, current, size, explored)
    return state_search.planned(lay, params, so_far, model, library) if renewed else so_far


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
    support : array_like of bool, shape (n_transitions,), optional
        Which transitions are possible, flat as ``LayeredMDP.P > 0``, if that is known: states that
        these cannot reach are not sought. By default all are possible.
    allowed : sequence of array_like of bool, shapes (n_h, n_actions), optional
        Which actions may be taken, as `LayeredMDP.allowed`; all by default.
    ends : bool, default False
        Whether episodes may end early: the last state of each layer but the first is then the end.
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
        init=state_search.init,
        act=state_search.act,
        distribution=state_search.distribution,
        room=state_search.room,
        grown=state_search.grown,
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
        sought = state_search.sought_states(shape, possible)
        S = int(sought.sum()) if sought.size else sum(shape.sizes)
        params = Params(
            N=episodes,
            m=checked_count("early_stop", early_stop, least=0),
            n_sought=S,
            share=checked_flag("share_counts", share_counts),
            explorer=who,
            # erratum E33: delta for each state
            bonus=of.chosen_bonus(shape, constants, bonus, episodes, delta / S),
            sought=sought,
            even=shape.even,
        )
        self._begin(shape, params, locals(), seed)

    @property
    def made_for(self) -> int:
        """Episodes for all states that are sought, at most."""
        return int(self._params.N * self._params.n_sought)

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
        """Uniform actions: this learner looks for policies and has none of its own."""
        return Markov.uniform(self.layers)

    def explorers(self) -> dict[tuple[int, int], Mixture]:
        """The mixture found for each state ``(h, s)`` that is done."""
        state = self._state()
        return interpreted(explorers.mixtures)(self.layers, state.library, state.progress.target)
