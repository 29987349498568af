"""SCB-RL with a half-life: for losses whose best policy changes, where transitions stay.

`practical_scb_rl`, whose losses count half after tau episodes: **measured only**, no regret bound
is known. After every episode,

    L_hat *= 2^(-1/tau),   w_h = max(2^(-1/tau) w_h, W_h/(2 eta)),

which is FTRL on losses weighted by 2^(t/tau), with weights that do not fall. Windows are the range
of the losses of this block of tau episodes and of the one before. Where the largest of them has
fallen more than 16-fold, all sums fall with it. eta and gamma are for tau/ln 2 episodes, or all, if
that is less; the share of the explorers is for all. Centers begin anew with every block. Counts,
boxes and explorers forget nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unbounded.core.arrays import Count, Integers, Vector, require
from unbounded.core.clipping import Windows, narrow
from unbounded.core.discounting import FIRST, HalfLife
from unbounded.core.occupancy.layout import Layers
from unbounded.jit.kernel import kernel, subroutine
from unbounded.learners.spec import Cache, MDPSpec
from unbounded.mdps import practical_scb_rl, rf_elp, uob_reps_ex
from unbounded.mdps.practical_scb_rl import CLAIMS, Means
from unbounded.mdps.steps import few_explorers
from unbounded.mdps.steps.forgetting import NEW, Fading, check_fading, faded
from unbounded.mdps.steps.ftrl import Estimates
from unbounded.mdps.steps.profiles import BlockRates


class Params(NamedTuple):
    plain: practical_scb_rl.Params
    half_life: HalfLife


class State(NamedTuple):
    t: int
    clipped: int
    version: int  # changes with what is played
    exploring: bool
    block: Count
    rates: BlockRates
    windows: Windows  # layers
    search: rf_elp.State
    few: few_explorers.State
    play: uob_reps_ex.State
    means: Means
    fading: Fading  # of which only the largest window is used
    low: Vector  # layers: the smallest loss of this block of tau episodes
    high: Vector  # layers: the largest one

    def check(self, params: Params) -> None:
        """Reject what cannot have been learned."""
        practical_scb_rl.State(*self[:11]).check(params.plain)
        seen, windows = self.low <= self.high, self.windows
        require(np.all(seen | ((self.low == np.inf) & (self.high == -np.inf))), "no such losses")
        inside = (windows.low <= self.low) & (self.high <= windows.high)
        require(np.all(inside | ~seen), "a window does not hold its losses")
        check_fading(self.fading, np.zeros(1), np.zeros(1))


def init(layers: Layers, params: Params) -> State:
    """Start as `practical_scb_rl` does."""
    H = layers.horizon
    first = practical_scb_rl.init(layers, params.plain)
    return State(*first, NEW, np.full(H, np.inf), np.full(H, -np.inf))


# Kernels


@kernel
def act(lay: Integers, params: Params, state: Any, word: int, pi: Vector) -> int:
    """Return the policy of the next episode."""
    return practical_scb_rl.act(lay, params.plain, state, word, pi)


@kernel
def distribution(
    lay: Integers, params: Params, state: Any, P: Vector, cache: Cache, q: Vector
) -> None:
    """Occupancy under ``P`` of what `act` plays."""
    practical_scb_rl.distribution(lay, params.plain, state, P, cache, q)


@kernel
def update(
    lay: Integers, params: Params, state: State, program: Any, component: int,
    states: Integers, actions: Integers, losses: Vector,
) -> State:  # fmt: skip
    """Learn from one episode, and forget."""
    low, high = state.low, state.high
    for h in range(losses.size):
        low[h] = min(low[h], losses[h])
        high[h] = max(high[h], losses[h])
    plain = practical_scb_rl.State(
        state.t, state.clipped, state.version, state.exploring, state.block, state.rates,
        state.windows, state.search, state.few, state.play, state.means,
    )  # fmt: skip
    after = practical_scb_rl.update(
        lay, params.plain, plain, program, component, states, actions, losses
    )
    if state.t % params.half_life.h == 0:  # a block ends
        narrow(after.windows, low, high)
        low[:] = np.inf
        high[:] = -np.inf
        after.means.paid[:] = 0.0
        after.means.times[:] = 0.0
    play, fading = forget(params, after, state.fading)
    return State(
        after.t, after.clipped, after.version, after.exploring, after.block, after.rates,
        after.windows, after.search, after.few, play, after.means, fading, low, high,
    )  # fmt: skip


@subroutine
def forget(
    params: Params, state: practical_scb_rl.State, fading: Fading
) -> tuple[uob_reps_ex.State, Fading]:
    """Let all sums fade, unless no window has a width: no policy depends on them then."""
    play, widest = state.play, 0.0
    for h in range(state.windows.W.size):
        widest = max(widest, state.windows.W[h])
    if state.exploring or widest == 0.0:
        return play, fading
    decay, estimates = params.half_life.decay, play.estimates
    for p in range(estimates.L_hat.size):
        estimates.L_hat[p] *= decay
    for h in range(estimates.w.size):
        estimates.w[h] *= decay
    fading, d = faded(fading, FIRST, False, state.windows.W, state.windows.e)
    fallen = Estimates(
        estimates.unit - d, estimates.L_hat, estimates.since, estimates.w, estimates.w_before
    )
    play = uob_reps_ex.with_(play, play.epoch, fallen, play.solver)
    estimates, _ = uob_reps_ex.weigh(params.plain.play, state.rates.play, play, state.windows)
    return uob_reps_ex.with_(play, play.epoch, estimates, play.solver), fading


SPEC = MDPSpec.of(__name__, name="SCBRL", **CLAIMS)
