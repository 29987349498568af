"""CostSCBRL: scale-free learner for MDPs with costs, losses of a known least value.

FTRL over the occupancy measures of a confidence set, on losses that are clipped at the m-th largest
one seen so far in their layer (docs/theory/one-sided-mdp.md). With a least value known, that
clipping errs on one side only, so that there is no exploration phase and nothing is mixed in:

    L_hat += min(l, C_h)/(u + gamma_h) on visited pairs,   u: upper occupancy bounds,
    q~ = argmin over Delta(boxes) of <q, L_hat> + sum_h w_h sum q ln q,   w_h = C_h/eta_h,
    eta_h = 2 gamma_h = sqrt(iota/(|S_h| A t^)),   iota = ln(10 S A H/delta),

where t^ is t, rounded up to three binary digits so that weights change rarely; or the number of
episodes, if that was told. Weights never decrease and have a floor (erratum E16); boxes are nested
(E13) and hold for any number of episodes.

In the practical profile, estimates are centred: of min(l, C_h) - c_h, with the mean c_h of what the
layer's losses were clipped to so far, at most C_h/2; and c_h gamma_h/(q~ + gamma_h) is subtracted
on all pairs, visited or not.

Everything is in units of 2^unit, the largest exponent of a threshold: any finite float64 is a legal
loss, and a common factor 2^k changes that one number and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from unbounded.core.arrays import (
    Count,
    Counts,
    Exponent,
    Integers,
    IntScratch,
    Scratch,
    Sizes,
    Vector,
)
from unbounded.core.ceiling import Ceilings, clip_each_above, new_ceilings
from unbounded.core.occupancy.confidence import JIN, count, narrow, told_support
from unbounded.core.occupancy.layout import ACTIONS, PAIR, STATE, Layers, horizon
from unbounded.core.occupancy.reach import within_reach
from unbounded.core.occupancy.solver import programs
from unbounded.core.occupancy.solver.ftrl import (
    EXPONENT,
    WarmStart,
    even_play,
    floor_weights,
    new_memory,
)
from unbounded.core.occupancy.solver.work import work_size
from unbounded.core.occupancy.upper import scratch, spare_mass, u_unknown
from unbounded.core.scaled import shift_each, widths
from unbounded.core.state_validation import (
    ROUNDING,
    require,
    require_boxes,
    require_estimates,
)
from unbounded.jit.kernel import kernel, subroutine
from unbounded.learners.mdp import MDPLearner, checked_layers
from unbounded.learners.seeds import Seed
from unbounded.learners.spec import MDPSpec
from unbounded.mdps.steps import cost_profiles, markov_play
from unbounded.mdps.steps.loss_ranges import as_given, checked_least
from unbounded.mdps.steps.solves import NO_SOLVES, Solves, entered
from unbounded.validation import checked_constant, checked_count

_MOST = 2.0**200  # of estimates in units of 2^unit


class Params(NamedTuple):
    T: int  # the episodes that rates are for; 0: any number
    m: int  # thresholds are the m-th largest losses
    kappa: float  # floor of the weights (E16)
    skip: float  # solve when some pair's l_hat since the last solve exceeds this x C_h |S_h| A
    centre: float  # multiplies what is subtracted from losses before they are divided
    tolerance: float
    c1: float  # width of the boxes: c1 sqrt(P ln_/N) + c2 ln_/N with ln_ = log_term + ln t
    c2: float
    log_term: float
    lower: Vector  # layers: the least possible losses
    eta: Vector  # layers: times sqrt(t^)
    gamma: Vector  # layers: times sqrt(t^)
    possible: Vector  # triples: 1 or 0, if the support was told; else empty


class State(NamedTuple):
    t: int
    clipped: int  # losses above the threshold of their layer
    below: Count  # losses below ``lower``
    version: int
    epoch: int  # changes with the boxes
    unit: Exponent
    solves: Solves
    ceilings: Ceilings  # layers: C_h
    N: Counts  # pairs: visits
    N_before: Counts  # pairs: visits that the box was made from
    M: Counts  # triples: transitions seen
    lo: Vector  # triples: the boxes
    hi: Vector
    room: Vector  # pairs: 1 - sum lo
    L_hat: Vector  # pairs, in units of 2^unit; infinite where not allowed
    since: Sizes  # pairs: sizes of the estimates since the last solve
    w: Sizes  # layers, in units of 2^unit
    paid: Sizes  # layers: sum of the clipped losses, in units of 2^unit
    q: Sizes  # pairs: q~
    pi: Vector  # pairs: policy of q~
    u: Vector  # states: upper bounds for pi, -1 if not known yet
    memory: WarmStart  # of the solver
    rates: Scratch  # layers
    work: Scratch  # of the solver
    values: Scratch  # of the upper bounds
    order: IntScratch  # likewise

    def check(self, params: Params) -> None:
        """Refuse what cannot have been learned."""
        self.ceilings.check_for(params.lower)
        told = (self.t - 1) * params.lower.size
        require(self.clipped + self.below <= told, "no so many losses")
        require_estimates(self.L_hat, _MOST)
        least = -_MOST if params.centre > 0.0 else 0.0
        require(np.all(self.L_hat >= least), "there are no such estimates")
        require_boxes(self.lo, self.hi)
        known = (self.u == -1.0) | (abs(self.u - 0.5) <= 0.5 + ROUNDING)
        require(np.all(known), "there are no such bounds")


def init(layers: Layers, params: Params) -> State:
    """C_{1,h} = 0, no visits, whole simplices but for what is impossible."""
    H, S, X, T = layers.horizon, layers.n_states, layers.n_pairs, layers.n_transitions
    values, order = scratch(layers)
    lo, hi = np.zeros(T), params.possible.copy() if params.possible.size else np.ones(T)
    q, pi = even_play(layers, lo, hi)
    state = State(
        t=1, clipped=0, below=0, version=0, epoch=1, unit=0, solves=NO_SOLVES,
        ceilings=new_ceilings(params.lower, params.m), N=np.zeros(X), N_before=np.zeros(X),
        M=np.zeros(T), lo=lo, hi=hi, room=np.zeros(X), L_hat=layers.barred, since=np.zeros(X),
        w=np.zeros(H), paid=np.zeros(H), q=q, pi=pi, u=np.full(S, -1.0),
        memory=new_memory(layers), rates=np.zeros(H), work=np.zeros(work_size(layers.table)),
        values=np.zeros(values.size), order=np.zeros(order.size, np.int64),
    )  # fmt: skip
    spare_mass(layers.table, state.lo, state.room)
    return state


# Kernels


@kernel
def rounded_up(t: int) -> float:
    """``t``, rounded up to three binary digits: at most 5/4 of it."""
    mantissa, exponent = math.frexp(float(t))
    return math.ldexp(float(math.ceil(8.0 * mantissa)), exponent - 3)


@kernel
def clock(params: Params, t: int) -> float:
    """t^: what the rates of episode ``t`` are for."""
    return float(params.T) if params.T > 0 else rounded_up(t)


@kernel
def update(
    lay: Integers, params: Params, state: State, solver: Any, memo: int,
    states: Integers, actions: Integers, losses: Vector,
) -> State:  # fmt: skip
    """Learn from one episode of the policy of q~."""
    t, below = state.t, state.below
    for h in range(losses.size):
        below += losses[h] < params.lower[h]
    clipped, rose = clip_each_above(state.ceilings, params.lower, losses)
    u_unknown(  # Comp-UOB
        lay, state.lo, state.hi, state.room, state.pi, states, state.u, state.values, state.order
    )
    due = estimate(lay, params, state, states, actions)
    if rose or clock(params, t + 1) != clock(params, t):
        due = True
    epoch = state.epoch
    doubled = count(lay, states, actions, state.N, state.M, state.N_before)
    if doubled and new_boxes(lay, params, state, states, actions):
        epoch += 1
        due = True
    clipped += state.clipped
    if due:
        unit = weigh(params, state, clock(params, t + 1))
        return solved(lay, params, state, solver, t + 1, clipped, below, epoch, unit)
    return with_numbers(
        state, t + 1, clipped, below, state.version, epoch, state.unit, state.solves
    )


@kernel
def with_numbers(
    state: State, t: int, clipped: int, below: int, version: int, epoch: int, unit: int,
    solves: Solves,
) -> State:  # fmt: skip
    """The same arrays with other numbers."""
    return State(
        t, clipped, below, version, epoch, unit, solves, state.ceilings, state.N, state.N_before,
        state.M, state.lo, state.hi, state.room, state.L_hat, state.since, state.w,
        state.paid, state.q, state.pi, state.u, state.memory, state.rates, state.work, state.values,
        state.order,
    )  # fmt: skip


@subroutine
def estimate(
    lay: Integers, params: Params, state: State, states: Integers, actions: Integers
) -> bool:
    """L_hat += (l - c)/(u + gamma) on the visited pairs, L_hat -= c gamma/(q~ + gamma) on all.

    Returns whether q~ has become too old (`skip`).
    """
    due = False
    root = math.sqrt(clock(params, state.t))
    for h in range(1, horizon(lay) + 1):
        s = states[h - 1]
        p = lay[PAIR, h] + s * lay[ACTIONS, h] + actions[h - 1]
        e = int(state.ceilings.e_before[h - 1])
        l = math.ldexp(state.ceilings.l[h - 1], e - state.unit)
        gamma = params.gamma[h - 1] / root
        c = centre_of(params, state, h, math.ldexp(state.ceilings.C_before[h - 1], e - state.unit))
        state.paid[h - 1] += l
        if l != c:
            u = state.u[lay[STATE, h] + s] * state.pi[p]
            l_hat = (l - c) / (u + gamma)
            state.L_hat[p] += l_hat
            state.since[p] += abs(l_hat)
            pairs = lay[PAIR, h + 1] - lay[PAIR, h]
            C = params.eta[h - 1] / root * state.w[h - 1]
            if state.since[p] > params.skip * pairs * C:
                due = True
        if c > 0.0:
            for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
                state.L_hat[p] -= c * gamma / (state.q[p] + gamma)
    return due


@kernel
def centre_of(params: Params, state: State, h: int, C: float) -> float:
    """What losses of layer ``h`` with the threshold ``C`` are taken from: their mean so far, C/2.

    The lesser of the two. Most costs may be far below C, and a centre far above them would add
    variance; one above C/2 would take away that estimates are optimistic where u > q~.
    """
    if params.centre == 0.0 or C == 0.0:  # C > 0 takes a loss, hence t > 1
        return 0.0
    return params.centre * min(state.paid[h - 1] / float(state.t - 1), 0.5 * C)


@subroutine
def weigh(params: Params, state: State, t_hat: float) -> int:
    """Move the unit to the largest threshold, and raise the weights to C_h/eta_h; the unit."""
    largest = state.unit
    seen = False
    for h in range(state.w.size):
        if state.ceilings.C[h] > 0.0:
            e = int(state.ceilings.e[h])
            largest = max(largest, e) if seen else e
            seen = True
    shift = state.unit - largest
    if shift != 0:
        shift_each(state.L_hat, shift)
        shift_each(state.since, shift)
        shift_each(state.w, shift)
        shift_each(state.paid, shift)
        state.memory.head[EXPONENT] += shift
    root = math.sqrt(t_hat)
    for h in range(state.w.size):
        C = math.ldexp(state.ceilings.C[h], int(state.ceilings.e[h]) - largest)
        state.rates[h] = C / (params.eta[h] / root)
    floor_weights(state.rates, 1.0, params.kappa, state.w)
    return largest


@subroutine
def new_boxes(
    lay: Integers, params: Params, state: State, states: Integers, actions: Integers
) -> bool:
    """Boxes of the visited pairs that have doubled; whether any of them changed."""
    ln_ = params.log_term + math.log(float(state.t))
    changed = narrow(
        lay, states, actions, state.N, state.N_before, state.M, ln_, params.c1, params.c2,
        state.lo, state.hi,
    )  # fmt: skip
    if changed:
        spare_mass(lay, state.lo, state.room)
    return changed


@kernel
def solved(
    lay: Integers, params: Params, state: State, solver: Any, t: int, clipped: int, below: int,
    epoch: int, unit: int,
) -> State:  # fmt: skip
    """Compute q~ and its policy, for episode ``t``."""
    outcome = solver(
        lay, state.lo, state.hi, epoch, state.L_hat, state.w, params.tolerance, state.memory,
        state.work, state.q, state.pi,
    )  # fmt: skip
    state.since[:] = 0.0
    state.u[:] = -1.0
    solves = entered(state.solves, outcome)
    return with_numbers(state, t, clipped, below, state.version + 1, epoch, unit, solves)


class CostSCBRL(MDPLearner):
    """Learner for layered MDPs with costs: losses with a known least value, of any size above it.

    Where the least possible loss is known, and losses near it occur, this learns from the first
    episode on: it needs no exploration, as `SCBRL` does, and no number of episodes.

    Parameters
    ----------
    layers : sequence of int
        Number of states in each layer 1..H. The distribution of the first state is unknown too.
    n_actions : int
    episodes : int, optional
        Tune the rates for this number of episodes; by default for any number.
    delta : float, default 0.05
    lower : float or sequence of H floats, optional
        The least possible loss, of every layer or of each; 0 by default. It should not be far below
        the losses that occur.
    best_reward : float or sequence of H floats, optional
        Instead of ``lower``, for rewards: the largest ones possible.
    outliers : int, default 0
        How many huge losses of each layer say nothing about their actions: the learner works at the
        scale of the largest loss but these.
    profile : {"practical", "theory"}
        Defaults of the next five arguments: what works, or what the theorem is proved for. See
        docs/theory/one-sided-mdp.md.
    rate, implicit, width : float
        Multiply the learning rate, the implicit exploration and the width of the confidence set.
    skip : float
        FTRL is solved again when the estimates of some pair since the last solve exceed
        ``skip * |S_h| * n_actions`` times the layer's threshold, or when a threshold, a rate or the
        confidence set changed.
    centre : float
        Estimates are of losses less this times their mean in the layer so far (or half the
        threshold, if that is less), for less variance; 0: as they are.
    kappa, tolerance : float
        Floor of the weights (erratum E16); certified accuracy of each solve.
    support : array_like of bool, shape (n_transitions,), optional
        Which transitions are possible, flat as ``LayeredMDP.P > 0``; by default all are.
    allowed : sequence of array_like of bool, shapes (n_h, n_actions), optional
        Which actions may be taken, as `LayeredMDP.allowed`; all by default.
    ends : bool, default False
        Whether episodes may end early: the last state of each layer but the first is then the end.
    seed : int or SeedSequence, optional

    Notes
    -----
    A loss below ``lower`` is taken as ``lower``, counted in `below`, and warned of once.

    Examples
    --------
    >>> learner = CostSCBRL(layers=[1, 2], n_actions=2, seed=0)
    >>> for _ in range(300):
    ...     plan = learner.ask()
    ...     action = plan.act(0, 0)
    ...     actions, costs = [action, plan.act(1, action)], [0.0, 0.0 if action == 1 else 5e9]
    ...     learner.tell(plan, states=[0, action], actions=actions, losses=costs)
    >>> bool(learner.policy().tables[0][0, 1] > 0.9)  # the other one leads to where it costs
    True
    >>> learner.thresholds.tolist()
    [0.0, 5000000000.0]
    """

    spec = MDPSpec.of(
        __name__,
        name="CostSCBRL",
        reference="docs/theory/one-sided-mdp.md",
        act=markov_play.act,
        distribution=markov_play.distribution,
        solves="solves",
        solver=programs.ftrl,
        infinite=("L_hat",),
        scale_free=True,
        examples=(
            {},
            {"profile": "theory"},
            {"outliers": 2},
            {"episodes": 1000, "rate": 2.0, "implicit": 0.5},
            {"centre": 0.0, "implicit": 0.3},
        ),
    )

    def __init__(
        self,
        layers: Sequence[int],
        n_actions: int,
        episodes: SupportsIndex | None = None,
        delta: float = 0.05,
        *,
        lower: float | Sequence[float] | None = None,
        best_reward: float | Sequence[float] | None = None,
        outliers: SupportsIndex = 0,
        profile: Literal["practical", "theory"] = "practical",
        rate: float | None = None,
        implicit: float | None = None,
        width: float | None = None,
        skip: float | None = None,
        centre: float | None = None,
        kappa: float = 1e-3,
        tolerance: float = 1e-8,
        support: npt.ArrayLike | None = None,
        allowed: Sequence[npt.ArrayLike] | None = None,
        ends: bool = False,
        seed: Seed = None,
    ) -> None:
        arguments = locals()
        shape = checked_layers(layers, n_actions, allowed, ends)
        H, A = shape.horizon, shape.n_actions
        T = 0 if episodes is None else checked_count("episodes", episodes)
        delta = checked_constant("delta", delta, below=1.0)
        least = checked_least(lower, best_reward, shape)
        outliers = checked_count("outliers", outliers, least=0)
        constants = cost_profiles.chosen(profile, arguments)
        possible = told_support(shape, support)
        sizes = np.array(within_reach(shape, possible))
        S = int(sizes.sum())
        iota = math.log(10.0 * S * A * H / delta)
        eta = np.sqrt(iota / (sizes * A))
        params = Params(
            T=T, m=outliers + 1, kappa=checked_constant("kappa", kappa), skip=constants.skip,
            centre=constants.centre, tolerance=checked_constant("tolerance", tolerance),
            c1=constants.width * JIN.c1, c2=constants.width * JIN.c2,
            log_term=math.log(10.0 * S * A / delta),
            lower=least, eta=constants.rate * eta,
            gamma=0.5 * constants.implicit * eta, possible=possible,
        )  # fmt: skip
        kept = {
            "episodes": T or None, "delta": delta, "outliers": outliers, "kappa": params.kappa,
            "lower": as_given(lower, least), "best_reward": as_given(best_reward, 0.0 - least),
            "tolerance": params.tolerance, **constants._asdict(),
        }  # fmt: skip
        self._begin(shape, params, arguments | kept, seed)
        self._least = params.lower

    @property
    def thresholds(self) -> Vector:
        """What the losses of each layer are clipped at, above ``lower``."""
        ceilings = self._state().ceilings
        return widths(ceilings.C, ceilings.e)

    @property
    def below(self) -> int:
        """How many losses were below ``lower``, and taken as ``lower``."""
        return int(self._scalar("below"))

    def occupancy(self) -> Vector:
        """The FTRL solution q~ over pairs, flat."""
        return self._state().q.copy()
