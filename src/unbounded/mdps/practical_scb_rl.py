"""SCB-RL as it is played by default: Algorithm 4 in blocks, with few explorers and less variance.

What differs from `scb_rl`, each by a constant of its own:

* **Blocks.** Without a number of episodes, T doubles: block k ends with episode T_k = 2^k T_0, and
  its rates are those for T_k and delta/2^(k + 1). A block begins with more exploration; thresholds,
  counts, boxes and estimates are carried over. With few explorers there are such blocks for a given
  T, too, at its rates.
* **Few explorers** (`steps/few_explorers.py`) in RF-ELP's place; they are chosen anew whenever the
  episodes have doubled.
* **Centering.** Estimates are of l+ - c, with the mean c of the losses so far: `center`.
* **Lazy renewal.** Each pair's box is renewed when its own visits have doubled, and the explorers'
  bounds are computed again four times while the episodes double: `late`.
"""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from unbounded.core.arrays import Count, Counts, Integers, Scratch, Sizes, Vector, require
from unbounded.core.clipping import Windows, clip_each, empty_windows
from unbounded.core.occupancy.layout import Layers
from unbounded.core.occupancy.solver.ftrl import PROGRAM
from unbounded.jit.kernel import assign, kernel, subroutine
from unbounded.learners.spec import Cache, MDPSpec
from unbounded.mdps import rf_elp, uob_reps_ex
from unbounded.mdps.steps import explorers, few_explorers
from unbounded.mdps.steps.boxes import count_episode
from unbounded.mdps.steps.profiles import BlockRates, Blocks, rates_of


class Params(NamedTuple):
    clip: int  # SCALE: the paper's; RANGE: docs/theory/range-clipping.md
    rule: int  # LAZY: the pseudo-code's threshold; LARGEST: the prose's (erratum E1)
    literal: bool  # forget thresholds and counts of the exploration phase, as printed (E28)
    few: bool  # few exploration policies, in RF-ELP's place
    center: float  # multiplies what is subtracted from l+
    search: rf_elp.Params
    play: uob_reps_ex.Params
    P: Vector  # triples: transitions of an explorer that knows them, else empty
    blocks: Blocks


class Means(NamedTuple):
    """Of the losses that went through the present windows."""

    paid: Sizes  # layers: sum of l+/W_h since W_h last changed
    times: Counts  # layers: of so many losses
    C_before: Scratch  # layers: C_h before the episode

    def check(self) -> None:
        """Reject what no losses have."""
        require(np.all(self.paid <= 2.0 * self.times), "no losses have such a mean")


class State(NamedTuple):
    t: int
    clipped: int
    version: int  # changes with what is played
    exploring: bool
    block: Count
    rates: BlockRates  # of the block
    windows: Windows  # layers: C_{t,h}
    search: rf_elp.State
    few: few_explorers.State
    play: uob_reps_ex.State
    means: Means

    def check(self, params: Params) -> None:
        """Reject what cannot have been learned."""
        self.search.check(params.search)
        self.few.check_for(self.search.library.size)
        done = self.search.progress.target == self.search.model.V.size - 1
        require(self.exploring != done, "it explores what is explored")
        require(self.block < params.blocks.last.size, "there is no such block")
        rates = rates_of(params.blocks, self.block, params.search.goal.bonus)
        require(self.rates == rates, "the block has other rates")


def init(layers: Layers, params: Params) -> State:
    """Start with C_{1,h} = 0; the first state is sought, unless there is an oracle."""
    windows, H = empty_windows(layers.horizon), layers.horizon
    search, few = rf_elp.init(layers, params.search), few_explorers.init(layers)
    play = uob_reps_ex.init(layers, params.play)
    rates = rates_of(params.blocks, 0, params.search.goal.bonus)
    if params.P.size:
        search = rf_elp.finished(search, explorers.oracle(layers, params.P))
        play = uob_reps_ex.begin(
            layers.table, params.play, rates.play, play, PROGRAM(), windows,
            not params.literal,
        )  # fmt: skip
    means = Means(np.zeros(H), np.zeros(H), np.zeros(H))
    exploring = params.P.size == 0
    return State(1, 0, 0, exploring, 0, rates, windows, search, few, play, means)


def grown(state: Any) -> Any:
    """Return the same with room for more exploration policies."""
    return state._replace(search=rf_elp.grown(state.search))


# Kernels


@kernel
def room(state: Any) -> bool:
    """Return whether one more exploration policy fits."""
    return rf_elp.room(state.search)


@kernel
def act(lay: Integers, params: Params, state: State, word: int, pi: Vector) -> int:
    """Return the policy of the next episode: the search's, then UOB-REPS-EX's."""
    if state.exploring:
        return rf_elp.act(lay, params.search, state.search, word, pi)
    beta, library = state.rates.play.beta, state.search.library
    return uob_reps_ex.act(lay, params.play, beta, state.play, library, word, pi)


@kernel
def distribution(
    lay: Integers, params: Params, state: State, P: Vector, cache: Cache, q: Vector
) -> None:
    """Occupancy under ``P`` of what `act` plays."""
    search, beta = state.search, state.rates.play.beta
    if state.exploring:
        rf_elp.distribution(lay, params.search, search, P, cache, q)
    else:
        edition = search.progress.version
        uob_reps_ex.distribution(
            lay, params.play, beta, state.play, search.library, edition, P, cache, q
        )


@kernel
def update(
    lay: Integers, params: Params, state: State, program: Any, component: int,
    states: Integers, actions: Integers, losses: Vector,
) -> State:  # fmt: skip
    """Learn from one episode of what `act` returned: an explorer's number, or OWN."""
    exploring, clipped, block, rates = state.exploring, state.clipped, state.block, state.rates
    windows, search, few, play = state.windows, state.search, state.few, state.play
    assign(state.means.C_before, play.C)
    begins = False  # whether the exploration of this block ends with this episode
    if not exploring or not params.literal:
        clipped += clip_each(windows, params.clip, params.rule, losses)
    if exploring:  # Alg. 4, lines 1 and 2
        if not params.literal:
            count_episode(lay, play.boxes, states, actions)
        if params.few:
            search = few_explorers.update(
                lay, params.search, rates.goal, rates.budget, few, search, states, actions
            )
        else:
            search = rf_elp.explore(lay, params.search, rates.goal, search, states, actions)
        begins = rf_elp.done(lay, search)
    else:  # Alg. 4, lines 4 to 9, and what differs from them
        center(params.center, state.means, play.C, play.estimates.unit, windows, play.c)
        play = uob_reps_ex.update(
            lay, params.play, rates.play, play, program, search.library, component, states,
            actions, windows,
        )  # fmt: skip
        if params.play.growth > 1.0 and late(int(play.boxes.N[0])):
            play.u_explorers[:] = -1.0
        if params.few and params.blocks.last.size > 1:
            rf_elp.observe(lay, params.search, search, states, actions)
    if state.t >= rates.last and block < params.blocks.last.size - 1:  # the next block
        block += 1
        rates = rates_of(params.blocks, block, rates.goal.bonus)
        if params.few:
            search = few_explorers.reopened(lay, params.search, rates.goal, few, search)
        elif params.P.size == 0:
            search = rf_elp.reopened(lay, params.search, rates.goal, search)
        begins = rf_elp.done(lay, search)
        exploring = not begins
    doubled = not exploring and state.t & (state.t - 1) == 0
    if params.few and (begins or doubled):
        search = few_explorers.chosen(lay, params.search, few, search, play.boxes.N, play.boxes.M)
        play.u_explorers[:] = -1.0
    if begins:  # Alg. 4, line 3
        exploring = False
        play = uob_reps_ex.begin(
            lay, params.play, rates.play, play, program, windows, not params.literal
        )
    forget_means(state.means, state.play.estimates.unit - play.estimates.unit, play.C)
    return State(
        state.t + 1, clipped, search.version + play.solver.solves.solves, exploring, block, rates,
        windows, search, few, play, state.means,
    )  # fmt: skip


@subroutine
def center(factor: float, means: Means, C: Vector, unit: int, windows: Windows, c: Vector) -> None:
    """Fill c, what the losses of an episode are taken from: the mean of those before it, or W/2.

    The lesser of the two. Where most losses are near the low end, as with many actions of which
    one is charged, a center far above them would add variance; one above W/2 would take away that
    estimates are optimistic where u > q~. The mean begins anew when the window has changed, with
    one loss in the middle.
    """
    for h in range(c.size):
        W = 2.0 * C[h]
        c[h] = 0.0
        if factor > 0.0 and W > 0.0:
            share = (0.5 + means.paid[h]) / (1.0 + means.times[h])
            l_plus = math.ldexp(windows.l_plus[h], int(windows.e_before[h]) - unit)
            means.paid[h] += l_plus / W
            means.times[h] += 1.0
            c[h] = factor * min(share, 0.5) * W


@subroutine
def forget_means(means: Means, shift: int, C: Vector) -> None:
    """Begin anew where the window has changed since before the episode, ``shift`` units ago."""
    for h in range(C.size):
        if C[h] != math.ldexp(means.C_before[h], shift):
            means.paid[h] = 0.0
            means.times[h] = 0.0


@kernel
def late(t: int) -> bool:
    """Whether the explorers' bounds are computed again after ``t`` episodes: four times while t
    doubles. Boxes are nested, so that older bounds are bounds, if larger than need be."""
    step = 1
    while 8 * step <= t:
        step *= 2
    return t % step == 0


CLAIMS: dict[str, Any] = {  # of `scb_rl`, too
    "reference": "Chen & Zhang 2024, Algorithms 3-6",
    "policy": attrgetter("play.solver.pi"),
    "solves": "play.solver.solves",
    "solver": PROGRAM,
    "room": room,
    "grown": grown,
    "infinite": ("play.estimates.L_hat", "search.model.N_all"),
    "scale_free": True,
}
SPEC = MDPSpec.of(
    __name__,
    **CLAIMS,
    examples=(
        {},
        {"profile": "paper"},
        {"reading": {"clip": "scale", "estimator": "ftrl_only"}},
        {"explorer": "ucbvi", "reading": {"threshold": "largest", "clip": "scale"}},
        {"reading": {"literal": True, "tight": True}},
        {"explorer": "oracle"},
        {"constants": {"renewal": "lazy", "few": False, "center": 0.0}},
        {"episodes": None},
        {"half_life": 20},
    ),
)
