"""SCB-RL: the scale-free learner for adversarial MDPs (Chen & Zhang 2024, Algorithm 4; Theorem 3).

First RF-ELP finds, for each state, policies that reach it (`rf_elp`); then UOB-REPS-EX plays FTRL
over the occupancy measures of a confidence set, mixed with those policies (`uob_reps_ex`), on
losses clipped to what has been seen so far. Nothing about the scale of the losses is needed.

Without a number of episodes, T doubles: block k ends with episode T_k = 2^k T_0, and its rates are
those for T_k and delta/2^(k + 1). A block begins with more exploration; thresholds, counts, boxes
and estimates are carried over. With few exploration policies there are such blocks for a given T,
too, at its rates, and the policies are chosen anew whenever the episodes have doubled.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Literal, NamedTuple, SupportsIndex

import numpy.typing as npt

from unbounded.core.arrays import Integers, Vector
from unbounded.core.clipping import RANGE, Windows, clip_each, empty_windows
from unbounded.core.occupancy.confidence import PAPER, count, log_term, told_support
from unbounded.core.occupancy.layout import Layers
from unbounded.core.occupancy.policies import Mixture
from unbounded.core.occupancy.solver import programs
from unbounded.core.occupancy.solver.sparse import told_lists
from unbounded.core.scaled import widths
from unbounded.core.state_validation import require
from unbounded.jit.interpreter import interpreted
from unbounded.jit.kernel import kernel
from unbounded.learners.mdp import MDPLearner, checked_layers
from unbounded.learners.seeds import Seed
from unbounded.learners.spec import Cache, MDPSpec
from unbounded.mdps import rf_elp, uob_reps_ex
from unbounded.mdps.steps import explorers, few_explorers, profiles, state_search
from unbounded.mdps.steps.blocks import (
    Blocks,
    block_of,
    blocks_of,
    play_params,
    search_params,
    spans_of,
)
from unbounded.validation import (
    checked_ablation,
    checked_constant,
    checked_count,
    checked_flag,
    checked_option,
)


class Params(NamedTuple):
    clip: int  # SCALE: the paper's; RANGE: docs/theory/range-clipping.md
    rule: int  # LAZY: the pseudo-code's threshold; LARGEST: the prose's (erratum E1)
    literal: bool  # forget thresholds and counts of the exploration phase, as printed (E28)
    few: bool  # few exploration policies, in RF-ELP's place
    search: state_search.Params
    play: uob_reps_ex.Params
    P: Vector  # triples: transitions of an explorer that knows them, else empty
    blocks: Blocks


class State(NamedTuple):
    t: int
    clipped: int
    version: int  # changes with what is played
    exploring: bool
    windows: Windows  # layers: C_{t,h}
    search: state_search.State
    few: few_explorers.State
    play: uob_reps_ex.State

    def check(self, params: Params) -> None:
        """Refuse what cannot have been learned."""
        self.search.check(params.search)
        self.few.check_for(self.search.library.size)
        done = self.search.progress.target == self.search.model.V.size - 1
        require(self.exploring != done, "it explores what is explored")


def init(layers: Layers, params: Params) -> State:
    """C_{1,h} = 0; the first state is sought, unless there is an oracle."""
    lay, windows = layers.table, empty_windows(layers.horizon)
    search, few = state_search.init(layers, params.search), few_explorers.init(layers)
    play = uob_reps_ex.init(layers, params.play)
    if params.P.size == 0:
        return State(1, 0, 0, True, windows, search, few, play)
    done = search.progress._replace(target=sum(layers.sizes))
    search = search._replace(progress=done, library=explorers.oracle(layers, params.P))
    keep = not params.literal
    play = uob_reps_ex.begin(lay, params.play, play, programs.ftrl(), windows, keep)
    return State(1, 0, 0, False, windows, search, few, play)


def grown(state: State) -> State:
    """The same with room for more exploration policies."""
    return state._replace(search=state_search.grown(state.search))


@kernel
def room(state: State) -> bool:
    """Whether one more exploration policy fits."""
    return state_search.room(state.search)


@kernel
def act(lay: Integers, params: Params, state: State, word: int, pi: Vector) -> int:
    """The policy of the next episode: RF-ELP's, then UOB-REPS-EX's (line 5)."""
    if state.exploring:
        return state_search.act(lay, params.search, state.search, word, pi)
    play = play_params(params.blocks, params.play, state.t)
    return uob_reps_ex.act(lay, play, state.play, state.search.library, word, pi)


@kernel
def distribution(
    lay: Integers, params: Params, state: State, P: Vector, cache: Cache, q: Vector
) -> None:
    """Occupancy under ``P`` of what `act` plays."""
    if state.exploring:
        state_search.distribution(lay, params.search, state.search, P, cache, q)
    else:
        play, search = play_params(params.blocks, params.play, state.t), state.search
        edition = search.progress.version
        uob_reps_ex.distribution(lay, play, state.play, search.library, edition, P, cache, q)


@kernel
def update(
    lay: Integers, params: Params, state: State, solver: Any, component: int,
    states: Integers, actions: Integers, losses: Vector,
) -> State:  # fmt: skip
    """Learn from one episode (line 6) of what `act` returned: an explorer's number, or OWN."""
    exploring, clipped = state.exploring, state.clipped
    windows, search, few, play = state.windows, state.search, state.few, state.play
    blocks = params.blocks
    of_search = search_params(blocks, params.search, state.t)
    of_play = play_params(blocks, params.play, state.t)
    begins = False
    if exploring:
        if not params.literal:
            clipped += clip_each(windows, params.clip, params.rule, losses)
            count(lay, states, actions, play.N, play.M, play.N_before)
        if params.few:
            budget = int(blocks.budget[block_of(blocks, state.t)])
            search = few_explorers.update(lay, of_search, budget, few, search, states, actions)
        else:
            search = rf_elp.update(
                lay, of_search, search, 0, component, states, actions, losses
            )  # lines 1 and 2
        begins = state_search.done(lay, search)  # line 3
    else:
        uob_reps_ex.before_losses(play, windows)
        clipped += clip_each(windows, params.clip, params.rule, losses)  # lines 7 and 9
        play = uob_reps_ex.update(
            lay, of_play, play, solver, search.library, component, states, actions, windows
        )  # line 8
        if blocks.last.size > 1 and params.few:
            state_search.observe(lay, of_search, search, states, actions)
    if block_of(blocks, state.t + 1) > block_of(blocks, state.t):
        of_search = search_params(blocks, params.search, state.t + 1)
        of_play = play_params(blocks, params.play, state.t + 1)
        if params.few:
            search = few_explorers.reopened(lay, of_search, few, search)
        elif params.P.size == 0:
            search = rf_elp.reopened(lay, of_search, search)
        begins = state_search.done(lay, search)
        exploring = not begins
    doubled = not exploring and state.t & (state.t - 1) == 0
    if params.few and (begins or doubled):
        search = few_explorers.chosen(lay, of_search, few, search, play.N, play.M)
        play.u_explorers[:] = -1.0
    if begins:
        exploring = False
        play = uob_reps_ex.begin(lay, of_play, play, solver, windows, not params.literal)
    version = search.version + play.version
    return State(state.t + 1, clipped, version, exploring, windows, search, few, play)


class Exploration(NamedTuple):
    """How the exploration phase went, or goes."""

    episodes: int  # so far
    per_state: int  # at most
    capped: bool  # whether ``exploration_cap`` limits it


class SCBRL(MDPLearner):
    """Scale-free learner for layered MDPs with unknown transitions and adversarial losses.

    Parameters
    ----------
    layers : sequence of int
        Number of states in each layer 1..H. The distribution of the first state is unknown too.
    n_actions : int
    episodes : int, optional
        Total number of episodes T, exploration included; more than the number of states. By default
        any number: T doubles as the episodes go on.
    delta : float, default 0.05
    profile : {"practical", "theory"}
        Defaults of the arguments below: what works, or the paper's. See docs/guide/scb-rl.md.
    literal : bool, default False
        Forget thresholds and counts of the exploration phase, as printed (erratum E28).
    clip : {"range", "scale"}
        Clip to the observed range, or to the paper's [-C, C].
    rate, mixing, implicit, exploration : float
        Multiply the paper's learning rate, share of the exploration policies, implicit
        exploration, and length of the exploration phase.
    width : float
        Multiplies the width of the confidence set.
    bonus : float or "paper"
        Constant of the explorer's bonuses, or those of the explorer's own paper.
    early_stop : int
        Visits after which exploration goes on to the next state (RF-ELP-ES); 0: never.
    share_counts : bool
        One transition model for all states to be explored.
    skip : float
        FTRL is solved again when the estimates of some pair since the last solve exceed
        ``skip * |S_h| * n_actions`` times the layer's range, or when a weight or the confidence
        set changed; by default four times the profile's with lazy renewal. A policy that is older
        than that by a constant lets an adversary that watches it gain linearly in T.
    estimator : {"mixture", "ftrl_only"}
        Whether losses are divided by a bound on the occupancy of the whole mixture, or only
        episodes of the learner's own policy count (erratum E12).
    renewal : {"epoch", "lazy"}
        When boxes and bounds are renewed: all of them whenever some pair has doubled its visits,
        as in the paper; or each pair's box when its own visits have doubled, and the explorers'
        bounds four times while the episodes double. By default the second in large worlds, for
        the practical profile. See docs/guide/scb-rl.md.
    explorer : {"mvp", "ucbvi", "oracle"}
        The last knows the ``transitions`` and needs no exploration phase: for tests.
    exploration_cap : float
        At most this fraction of the episodes is exploration.
    few : bool
        Seek only states that were not met ``early_stop`` times yet, again after every doubling of
        the episodes, and keep few policies, chosen by what was counted; needs ``early_stop`` and
        ``share_counts``.
    centre : float
        Estimates are of losses minus this times their mean so far, at most half the range, for less
        variance: 0 or 1.
    tight : bool, default False
        Explore for ``sqrt(max_h |S_h| A T)`` instead of ``sqrt(S A T)`` episodes per state
        (erratum E24).
    threshold : {"lazy", "largest"}
        Whether the paper's threshold moves only when it is exceeded (erratum E1).
    kappa, tolerance : float
        Floor of the weights (E16); certified accuracy of each solve.
    ablation : bool
        Permit ``clip="range"`` with ``mixing=0``, which can fail.
    transitions : array_like, shape (n_transitions,)
        Flat, as `LayeredMDP.P`; for ``explorer="oracle"`` only.
    support : array_like of bool, shape (n_transitions,), optional
        Which transitions are possible, flat as ``LayeredMDP.P > 0``, if that is known: states that
        these cannot reach are not explored. By default all are possible.
    allowed : sequence of array_like of bool, shapes (n_h, n_actions), optional
        Which actions may be taken, as `LayeredMDP.allowed`; all by default.
    ends : bool, default False
        Whether episodes may end early: the last state of each layer but the first is then the end.
    seed : int or SeedSequence, optional

    Examples
    --------
    >>> learner = SCBRL(layers=[1, 2], n_actions=2, seed=0)
    >>> learner.phase
    'exploring'
    >>> plan = learner.ask()
    >>> plan.policy[1].shape
    (2, 2)
    >>> action = plan.act(0, 0)
    >>> learner.tell(plan, states=[0, 1], actions=[action, 0], losses=[1e9, -3.0])
    >>> learner.thresholds.tolist()  # one loss has no range yet
    [0.0, 0.0]
    """

    spec = MDPSpec.of(
        __name__,
        name="SCBRL",
        reference="Chen & Zhang 2024, Algorithms 3-6",
        policy=attrgetter("play.pi"),
        solves="play.solves",
        solver=programs.ftrl,
        room=room,
        grown=grown,
        infinite=("play.L_hat", "search.model.N_all"),
        told_episodes=True,
        scale_free=True,
        examples=(
            {},
            {"profile": "theory"},
            {"clip": "scale", "estimator": "ftrl_only"},
            {"explorer": "ucbvi", "threshold": "largest", "clip": "scale"},
            {"literal": True, "tight": True},
            {"explorer": "oracle"},
            {"renewal": "lazy", "few": False, "centre": 0.0},
            {"episodes": None},
        ),
    )

    def __init__(
        self,
        layers: Sequence[int],
        n_actions: int,
        episodes: SupportsIndex | None = None,
        delta: float = 0.05,
        *,
        profile: Literal["practical", "theory"] = "practical",
        literal: bool = False,
        clip: Literal["range", "scale"] | None = None,
        rate: float | None = None,
        mixing: float | None = None,
        implicit: float | None = None,
        exploration: float | None = None,
        width: float | None = None,
        bonus: float | str | None = None,
        early_stop: int | None = None,
        share_counts: bool | None = None,
        skip: float | None = None,
        estimator: Literal["mixture", "ftrl_only"] = "mixture",
        renewal: Literal["epoch", "lazy"] | None = None,
        explorer: Literal["mvp", "ucbvi", "oracle"] = "mvp",
        exploration_cap: float | None = None,
        few: bool | None = None,
        centre: float | None = None,
        tight: bool = False,
        threshold: Literal["lazy", "largest"] = "lazy",
        kappa: float = 1e-3,
        tolerance: float = 1e-8,
        ablation: bool = False,
        transitions: npt.ArrayLike | None = None,
        support: npt.ArrayLike | None = None,
        allowed: Sequence[npt.ArrayLike] | None = None,
        ends: bool = False,
        seed: Seed = None,
    ) -> None:
        arguments = locals()
        shape = checked_layers(layers, n_actions, allowed, ends)
        told = None if episodes is None else checked_count("episodes", episodes)
        possible = told_support(shape, support)
        sought = state_search.sought_states(shape, possible)
        S = int(sought.sum()) if sought.size else sum(shape.sizes)
        delta = checked_constant("delta", delta, below=1.0)
        # What a profile sets may be calibrated again; a saved learner keeps its own.
        constants = profiles.chosen(profile, arguments)
        checked_option("explorer", explorer, ("mvp", "ucbvi", "oracle"))
        P = explorers.oracle_transitions(shape, explorer, transitions)
        few = constants.few and constants.share_counts and constants.early_stop > 0
        constants = constants._replace(few=few and not checked_flag("literal", literal))
        if P.size == 0 and told is not None and told <= S:
            raise ValueError(
                f"episodes must exceed the {S} states, each of which takes at least one episode "
                f"of exploration; got {told}"
            )
        clip_to = checked_option("clip", constants.clip, ("scale", "range"))
        checked_ablation(constants.clip, constants.mixing, ablation)
        renewed = profiles.renewal(profile, shape) if renewal is None else renewal
        lazy = checked_option("renewal", renewed, ("epoch", "lazy")) == 1
        if lazy and skip is None:
            constants = constants._replace(skip=4.0 * constants.skip)
        spans = spans_of(told, delta, S, constants.few and P.size == 0)
        tight = checked_flag("tight", tight)
        self._rates = [profiles.rates(shape, span, constants, tight, S) for span in spans]
        bonuses = [
            profiles.bonus(shape, explorer, constants, rates.N, span.delta / S)
            for span, rates in zip(spans, self._rates, strict=True)
        ]
        logs = [log_term(shape, span.T, span.delta) for span in spans]
        last = self._rates[-1 if told else 0]
        params = Params(
            clip=clip_to,
            rule=checked_option("threshold", threshold, ("lazy", "largest")),
            literal=checked_flag("literal", literal),
            few=constants.few and P.size == 0,
            search=state_search.Params(
                N=last.N,
                m=constants.early_stop,
                n_sought=S,
                share=constants.share_counts,
                explorer=state_search.UCBVI if explorer == "ucbvi" else state_search.MVP,
                bonus=bonuses[-1 if told else 0],
                sought=sought,
                even=shape.even,
            ),
            play=uob_reps_ex.Params(
                eta=last.eta,
                gamma=last.gamma,
                beta=last.beta,
                kappa=checked_constant("kappa", kappa),
                skip=2.0 * last.eta * constants.skip,
                tolerance=checked_constant("tolerance", tolerance),
                c1=constants.width * PAPER.c1,
                c2=constants.width * PAPER.c2,
                log_term=logs[-1 if told else 0],
                mixture=checked_option("estimator", estimator, ("ftrl_only", "mixture")) == 1,
                lazy=lazy,
                centre=constants.centre,
                possible=possible,
                lists=told_lists(shape, possible),
                even=shape.even,
            ),
            P=P,
            blocks=blocks_of(spans, self._rates, bonuses, constants.skip, logs),
        )
        kept = {
            "episodes": told, "delta": delta, "kappa": params.play.kappa,
            "tolerance": params.play.tolerance, "transitions": P.tolist() if P.size else None,
            "renewal": renewed,
            **constants._asdict(),
        }  # fmt: skip
        self._begin(shape, params, arguments | kept, seed)

    @property
    def phase(self) -> str:
        """``"exploring"`` (RF-ELP), then ``"playing"``."""
        return "exploring" if self._scalar("exploring") else "playing"

    @property
    def explored(self) -> Exploration:
        """Episodes explored so far, the most a state may take, and whether the cap limits it."""
        block = interpreted(block_of)(self._params.blocks, self.episodes_told + 1)
        rates = self._rates[block]
        return Exploration(self.episodes_explored, rates.N, rates.capped)

    @property
    def episodes_explored(self) -> int:
        """Episodes of exploration so far."""
        return int(self._scalar("search.progress.explored"))

    @property
    def thresholds(self) -> Vector:
        """Clipping threshold C_h of each layer, or the observed range."""
        windows = self._state().windows
        W = windows.W if self._params.clip == RANGE else 0.5 * windows.W
        return widths(W, windows.e)

    def occupancy(self) -> Vector:
        """The FTRL solution q~ over pairs, flat."""
        return self._state().play.q.copy()

    def explorers(self) -> dict[tuple[int, int], Mixture]:
        """The policies found for each state ``(h, s)``, h = 0 .. H - 1, that is done."""
        state = self._state()
        search, serves = state.search, state.few.serves if self._params.few else None
        return interpreted(explorers.mixtures)(
            self.layers, search.library, search.progress.target, serves
        )
