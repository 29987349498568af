"""CostSCBRL: scale-free learner for MDPs with costs, losses with a known lower bound.

FTRL over the occupancy measures of a confidence set, on losses that are clipped at the m-th largest
one seen so far in their layer (docs/theory/one-sided-mdp.md). With a known lower bound, that
clipping errs on one side only, so that there is no exploration phase and nothing is mixed in:

    L_hat += min(l, C_h)/(u + gamma_h) on visited pairs,   u: upper occupancy bounds,
    q~ = argmin over Delta(boxes) of <q, L_hat> + sum_h w_h sum q ln q,   w_h = C_h/eta_h,
    eta_h = 2 gamma_h = sqrt(iota/(|S_h| A t^)),   iota = ln(10 S A H/delta),

where t^ is t, rounded up to three binary digits so that weights change rarely; or the number of
episodes, if that is given. Weights never decrease and have a floor (erratum E16); boxes are nested
(E13) and hold for any number of episodes.

In the profile that is played by default, estimates are centered by a control variate that keeps
them optimistic: with the mean c_h of what the layer's losses were clipped to so far, at most C_h/2,

    L_hat += (min(l, C_h) - share c_h)/(u + gamma_h) on visited pairs,   share = u/(u + gamma_h),
    L_hat += share c_h (q_low - share gamma_h c_h/C_h)/(u + gamma_h) on all pairs,

where q_low bounds occupancies from below; and q~ is computed again only when it has become too old.

Everything is in units of 2^unit, the largest exponent of a threshold: any finite float64 is a legal
loss, and a common factor 2^k changes that one number and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Literal, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from unbounded.core.arrays import Count, Integers, Scratch, Sizes, Vector, require
from unbounded.core.ceiling import Ceilings, clip_each_above, new_ceilings
from unbounded.core.discounting import checked_half_life
from unbounded.core.occupancy.confidence import told_support
from unbounded.core.occupancy.layout import Layers
from unbounded.core.occupancy.reach import within_reach
from unbounded.core.occupancy.solver.ftrl import PROGRAM
from unbounded.core.scaled import widths
from unbounded.jit.kernel import kernel
from unbounded.learners.costs import Costs
from unbounded.learners.mdp import MDPLearner, MDPSpec, Seed, checked_layers
from unbounded.mdps import discounted_cost_scb_rl
from unbounded.mdps.steps import boxes as confidence_set
from unbounded.mdps.steps import ftrl
from unbounded.mdps.steps.boxes import Boxes, new_boxes
from unbounded.mdps.steps.costs import Owed, Params, estimate, new_owed, rounded_up, settle, weigh
from unbounded.mdps.steps.ftrl import Estimates, Solver, new_estimates, new_solver
from unbounded.mdps.steps.loss_ranges import as_given, checked_least
from unbounded.validation import (
    ArgumentValueError,
    checked_constant,
    checked_count,
    checked_factor,
    checked_option,
    checked_share,
)  # fmt: skip


class State(NamedTuple):
    t: int
    clipped: int  # losses above the threshold of their layer
    below: Count  # losses below ``lower``
    version: int
    epoch: int  # changes with the boxes
    ceilings: Ceilings  # layers: C_h
    boxes: Boxes
    estimates: Estimates
    solver: Solver
    paid: Sizes  # layers: sum of the clipped losses, in units of 2^unit
    owed: Owed
    rates: Scratch  # layers: C_h/eta_h, of `weigh`

    def check(self, params: Params) -> None:
        self.ceilings.check_for(params.lower)
        losses = (self.t - 1) * params.lower.size
        require(self.clipped + self.below <= losses, "no so many losses")
        signed = params.center > 0.0
        require(signed or np.all(self.estimates.L_hat >= 0.0), "there are no such estimates")


def init(layers: Layers, params: Params) -> State:
    """Start with C_{1,h} = 0, no visits, whole simplices but for what is impossible."""
    H, boxes = layers.horizon, new_boxes(layers, params.possible)
    return State(
        1, 0, 0, 0, 1, new_ceilings(params.lower, params.m), boxes, new_estimates(layers),
        new_solver(layers, boxes), np.zeros(H), new_owed(layers), np.zeros(H),
    )  # fmt: skip


# Kernels


@kernel
def clock(params: Params, t: int) -> float:
    """t^: what the rates of episode ``t`` are for."""
    return float(params.T) if params.T > 0 else rounded_up(t)


@kernel
def update(
    lay: Integers, params: Params, state: State, program: Any, ask_info: int,
    states: Integers, actions: Integers, losses: Vector,
) -> State:  # fmt: skip
    """Learn from one episode of the policy of q~."""
    t, below, epoch, boxes = state.t, state.below, state.epoch, state.boxes
    estimates, solver = state.estimates, state.solver
    for h in range(losses.size):
        below += losses[h] < params.lower[h]
    clipped, rose = clip_each_above(state.ceilings, params.lower, losses)
    confidence_set.bound_visited(lay, boxes, solver.pi, states, solver.u)  # Comp-UOB
    root = math.sqrt(clock(params, t))
    due = estimate(lay, params, state, 1.0, float(t - 1), root, states, actions)
    if rose or clock(params, t + 1) != clock(params, t):
        due = True
    doubled = confidence_set.count_episode(lay, boxes, states, actions)
    if due or doubled:
        settle(lay, params, state, root)  # before the boxes move
    if doubled and confidence_set.renew_visited(
        lay, boxes, params.log_term, params.width, states, actions
    ):
        epoch += 1
        due = True
    if due:
        estimates = weigh(params, state, clock(params, t + 1), 0)
        solver = ftrl.solve(lay, boxes, epoch, estimates, solver, program, params.tolerance)
    return State(
        t + 1, state.clipped + clipped, below, solver.solves.solves, epoch, state.ceilings, boxes,
        estimates, solver, state.paid, state.owed, state.rates,
    )  # fmt: skip


class Constants(NamedTuple):
    """What a profile sets; every field is also an argument of `CostSCBRL`."""

    rate: float  # of eta
    implicit: float  # of gamma
    width: float  # of the divergence in the boxes
    skip: float  # how old the policy may get, in losses at uniform occupancy
    center: float  # of estimates, in means of the losses so far


PAPER = Constants(1.0, 1.0, 1.0, 0.0, 0.0)  # Theorem O4: the smallest constant that is proved
PROVED = Constants(1.0, 0.1, 1.0, 0.6, 1.0)  # Theorem O7: less regret
PROFILES = {"proved": PROVED, "paper": PAPER}


def _chosen(profile: str, **constants: float | None) -> Constants:
    """Return a profile's constants with those that are given instead, checked."""
    checked_option("profile", profile, tuple(PROFILES))
    given: Any = {name: value for name, value in constants.items() if value is not None}
    rate, implicit, width, skip, center = PROFILES[profile]._replace(**given)
    return Constants(
        checked_constant("rate", rate), checked_constant("implicit", implicit),
        checked_constant("width", width), checked_factor("skip", skip),
        checked_share("center", center),
    )  # fmt: skip


class CostSCBRL(MDPLearner, Costs):
    """Learner for layered MDPs with costs: losses with a known lower bound, of any size above it.

    Where a lower bound on the losses is known, and losses near it occur, this learns from the first
    episode on: it needs no exploration, as `SCBRL` does, and no number of episodes.

    Parameters
    ----------
    episodes : int, optional
        Tune the rates for this number of episodes; by default for any number.
    lower : float or sequence of H floats, optional
        The lower bound on the losses, of all layers or of each; 0 by default. It should not be far
        below the losses that occur.
    best_reward : float or sequence of H floats, optional
        Instead of ``lower``, for rewards: the largest ones possible.
    outliers : int, default 0
        How many huge losses of each layer say nothing about their actions: the learner works at the
        scale of the largest loss but these.
    profile : {"proved", "paper"}
        Defaults of the next five arguments. Both have a theorem: ``"proved"`` has less regret,
        ``"paper"`` solves FTRL in every episode and has the smaller constant. See
        docs/theory/one-sided-mdp.md.
    rate, implicit : float
        Multiply the learning rate and the implicit exploration. The theorem of ``"proved"`` needs
        ``rate <= 10 * implicit``.
    width : float
        Multiplies the divergence from the counts that the confidence set admits. Below 1, it may
        exclude the transitions too often for the theorems.
    skip : float
        FTRL is solved again when the estimates of some pair since the last solve exceed
        ``skip * |S_h| * n_actions`` times the layer's threshold, or when a threshold, a rate or the
        confidence set changed.
    center : float
        Estimates use this times the mean loss in the layer so far (or half the threshold, if that
        is less) as a control variate, for less variance; 0: none.
    half_life : int, optional
        For costs whose best policy changes: the number of episodes after which a loss counts half.
        What was learned of the transitions is not forgotten; they must not change. Shorter than the
        time between changes, and long enough to learn in (docs/guide/scb-rl.md). Without it,
        nothing is forgotten. With it, a regret bound is known for ``"paper"`` only.
    kappa, tolerance : float
        Floor of the weights (erratum E16); certified accuracy of each solve.

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
        reference="docs/theory/one-sided-mdp.md",
        policy=attrgetter("solver.pi"),
        solves="solver.solves",
        solver=PROGRAM,
        infinite=("estimates.L_hat",),
        told_episodes=False,  # they are for rates, which are for any number without them
        scale_free=True,
        examples=(
            {},
            {"profile": "paper"},
            {"outliers": 2},
            {"episodes": 1000, "rate": 2.0, "implicit": 0.5},
            {"center": 0.0, "implicit": 0.3},
            {"half_life": 20},
            {"half_life": 9, "profile": "paper", "outliers": 1},
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
        profile: Literal["proved", "paper"] = "proved",
        rate: float | None = None,
        implicit: float | None = None,
        width: float | None = None,
        skip: float | None = None,
        center: float | None = None,
        half_life: SupportsIndex | None = None,
        kappa: float = 1e-3,
        tolerance: float = 1e-8,
        support: npt.ArrayLike | None = None,
        allowed: Sequence[npt.ArrayLike] | None = None,
        ends: bool = False,
        seed: Seed = None,
    ) -> None:
        shape = checked_layers(layers, n_actions, allowed, ends)
        H, A = shape.horizon, shape.n_actions
        T = 0 if episodes is None else checked_count("episodes", episodes)
        delta = checked_constant("delta", delta, below=1.0)
        least = checked_least(lower, best_reward, shape)
        outliers = checked_count("outliers", outliers, least=0)
        constants = _chosen(
            profile, rate=rate, implicit=implicit, width=width, skip=skip, center=center
        )
        possible = told_support(shape, support)
        sizes = np.array(within_reach(shape, possible))
        S = int(sizes.sum())
        triples = float(possible.sum()) if possible.size else float(shape.n_transitions)
        iota = math.log(10.0 * S * A * H / delta)
        eta = np.sqrt(iota / (sizes * A))
        params: Any = Params(
            T=T, m=outliers + 1, kappa=checked_constant("kappa", kappa), skip=constants.skip,
            center=constants.center, tolerance=checked_constant("tolerance", tolerance),
            width=constants.width, log_term=math.log(20.0 * triples / (3.0 * delta)),
            lower=least, eta=constants.rate * eta,
            gamma=0.5 * constants.implicit * eta, pairs=1.0 * sizes * A, possible=possible,
        )  # fmt: skip
        kept = {
            "episodes": T or None, "delta": delta, "outliers": outliers, "kappa": params.kappa,
            "lower": as_given(lower, least), "best_reward": as_given(best_reward, 0.0 - least),
            "tolerance": params.tolerance, **constants._asdict(),
        }  # fmt: skip
        if half_life is not None:
            weights = checked_half_life("half_life", half_life)
            if weights.h <= outliers:
                raise ArgumentValueError(
                    "half_life", f"must exceed the number of outliers, {outliers}, got {weights.h}"
                )
            self.spec = discounted_cost_scb_rl.SPEC
            rates_for = min(T, math.ceil(weights.h / math.log(2.0)))
            params = discounted_cost_scb_rl.Params(params._replace(T=rates_for), weights)
        self._begin(shape, params, seed, kept)
        self._least = least

    def _differing(self) -> dict[str, Any]:
        usual = PROFILES[self._settings["profile"]]._asdict()
        return {k: v for k, v in super()._differing().items() if k not in usual or v != usual[k]}

    @property
    def thresholds(self) -> Vector:
        """What the losses of each layer are clipped at, above ``lower``."""
        ceilings = self._state().ceilings
        return widths(ceilings.C, ceilings.e)

    def occupancy(self) -> Vector:
        """Return the FTRL solution q~ over pairs, flat."""
        return self._state().solver.q.copy()
