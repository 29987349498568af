"""An independent SCB in every state, on the losses from there to the end of the episode.

Each state plays Algorithm 1 of Chen & Zhang 2024 by itself. No guarantee: the loss-to-go of a state
depends on what the others do.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from unbounded.core.arrays import (
    CountsBelowT,
    Exponents,
    Integers,
    Mantissas,
    Scratch,
    Sizes,
    Vector,
    require_growth,
)
from unbounded.core.clipping import LAZY, SCALE, Window, check_windows, clip, rescale
from unbounded.core.occupancy.layout import ACTIONS, PAIR, STATE, Layers, horizon
from unbounded.core.occupancy.mdp import Markov
from unbounded.core.scaled import widths
from unbounded.core.simplex.ftrl import tsallis, tsallis_cold
from unbounded.core.simplex.sampling import LANES, mix
from unbounded.jit.kernel import kernel, subroutine
from unbounded.learners.mdp import MDPLearner, MDPSpec, Seed, checked_layers
from unbounded.validation import checked_option

_LARGEST = sys.float_info.max


class Params(NamedTuple):
    clip: int  # SCALE: the paper's; RANGE: docs/theory/range-clipping.md


class State(NamedTuple):
    t: int
    clipped: int
    version: int
    pi: Vector  # pairs: q_t of each state
    L_hat: Sizes  # pairs, in units of 2^e of their state; infinite where not allowed
    visits: CountsBelowT  # states
    W: Mantissas  # states: width of the clipping window, in units of 2^e
    e: Exponents
    low: Vector
    high: Vector
    q: Scratch  # actions: those that are allowed, in a row
    L: Scratch
    lanes: Scratch
    lane_sums: Scratch

    def check(self, params: Params) -> None:
        n_actions = (self.L_hat.size - 1) // (self.W.size - 1)
        for L in self.L_hat[1:].reshape(-1, n_actions):
            require_growth(L, self.t)
        check_windows(self.W, self.e, self.low, self.high)


def init(layers: Layers, params: Params) -> State:
    """C_1 = 0 and q_1 uniform in every state."""
    S = layers.n_states
    return State(
        t=1, clipped=0, version=0, pi=Markov.uniform(layers).pi, L_hat=layers.barred,
        visits=np.zeros(S), W=np.zeros(S), e=np.zeros(S), low=np.full(S, math.inf),
        high=np.full(S, -math.inf), q=np.zeros(layers.n_actions), L=np.zeros(layers.n_actions),
        lanes=np.zeros(3 * LANES), lane_sums=np.zeros(LANES),
    )  # fmt: skip


@kernel
def update(
    lay: Integers, params: Params, state: State, solver: int, ask_info: int,
    states: Integers, actions: Integers, losses: Vector,
) -> State:  # fmt: skip
    """Let every visited state learn from what came after it, its own loss included."""
    to_go = 0.0
    for h in range(horizon(lay), 0, -1):
        to_go = min(max(to_go + losses[h - 1], -_LARGEST), _LARGEST)  # any finite loss is legal
        _learn(lay, params, state, h, states[h - 1], actions[h - 1], to_go)
    return State(
        state.t + 1, 0, state.version + 1, state.pi, state.L_hat, state.visits, state.W, state.e,
        state.low, state.high, state.q, state.L, state.lanes, state.lane_sums,
    )  # fmt: skip


@subroutine
def _learn(
    lay: Integers, params: Params, state: State, h: int, s: int, a: int, loss: float
) -> None:
    """Algorithm 1, one round, in state ``s`` of layer ``h``."""
    k = lay[STATE, h] + s
    first = lay[PAIR, h] + s * lay[ACTIONS, h]
    A = 0  # those that are allowed
    arm = 0
    for p in range(first, first + lay[ACTIONS, h]):
        if p == first + a:
            arm = A
        if state.L_hat[p] < math.inf:
            state.q[A] = state.pi[p]
            state.L[A] = state.L_hat[p]
            A += 1
    q = state.q[:A]
    L = state.L[:A]
    before = Window(state.W[k], int(state.e[k]), state.low[k], state.high[k])
    l_plus, _, after = clip(before, params.clip, LAZY, loss)  # lines 5 and 7
    L[arm] += l_plus / q[arm]  # line 6
    state.visits[k] += 1.0
    state.W[k] = after.W
    state.e[k] = after.e
    state.low[k] = after.low
    state.high[k] = after.high
    if A > 1 and after.W > 0.0:
        if after.e != before.e and before.W > 0.0:
            rescale(L, before.e, after.e)
        t = state.visits[k] + 1.0
        eta = 1.0 / (after.W * math.sqrt(t))  # line 8
        anchor = tsallis(L, eta, tsallis_cold(L, eta), q, state.lanes)
        beta = A / (2.0 * A + math.sqrt(A * t))
        mix(q, (1.0 - beta) / anchor.S2, beta / A, state.lane_sums)  # lines 2 and 3
    arm = 0
    for p in range(first, first + lay[ACTIONS, h]):
        if state.L_hat[p] < math.inf:
            state.pi[p] = q[arm]
            state.L_hat[p] = L[arm]
            arm += 1


class IndependentSCB(MDPLearner):
    """An SCB in every state, on the losses from there to the end of the episode.

    No guarantee: the loss-to-go of a state depends on what the others do.

    Parameters
    ----------
    clip : {"scale", "range"}

    Examples
    --------
    >>> learner = IndependentSCB([1, 2], n_actions=2, seed=0)
    >>> for _ in range(50):
    ...     plan = learner.ask()
    ...     action = plan.act(0, 0)
    ...     learner.tell(plan, [0, 0], [action, plan.act(1, 0)], [float(action), 0.0])
    >>> bool(learner.policy().tables[0][0, 0] > 0.5)
    True
    """

    _keeps_transitions = False

    spec = MDPSpec.of(
        __name__,
        reference="Chen & Zhang 2024, Algorithm 1",
        infinite=("L_hat",),
        scale_free=True,
        examples=({}, {"clip": "range"}),
    )

    def __init__(
        self,
        layers: Sequence[int],
        n_actions: int,
        *,
        clip: Literal["scale", "range"] = "scale",
        allowed: Sequence[npt.ArrayLike] | None = None,
        ends: bool = False,
        seed: Seed = None,
    ) -> None:
        shape = checked_layers(layers, n_actions, allowed, ends)
        params = Params(checked_option("clip", clip, ("scale", "range")))
        self._begin(shape, params, seed)

    @property
    def thresholds(self) -> Vector:
        """Clipping threshold (or range) of each state, flat over states 1..S."""
        state = self._state()
        factor = 0.5 if self._params.clip == SCALE else 1.0
        return widths(factor * state.W[1:], state.e[1:])
