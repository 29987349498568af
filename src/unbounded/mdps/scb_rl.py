"""SCB-RL: the scale-free learner for adversarial MDPs (Chen & Zhang 2024, Algorithm 4; Theorem 3).

First RF-ELP finds, for each state, policies that reach it (`rf_elp`); then UOB-REPS-EX plays FTRL
over the occupancy measures of a confidence set, mixed with those policies (`uob_reps_ex`), on
losses clipped to what has been seen so far. Nothing about the scale of the losses is needed.

This is the algorithm as published, for a given number of episodes; `SCBRL` plays
`practical_scb_rl` by default.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, SupportsIndex

import numpy as np

from unbounded.core.arrays import Integers, Vector, require
from unbounded.core.clipping import RANGE, Windows, clip_each, empty_windows
from unbounded.core.discounting import checked_half_life
from unbounded.core.occupancy.confidence import PAPER, Bernstein, told_support
from unbounded.core.occupancy.layout import Layers
from unbounded.core.occupancy.mdp import Mixture
from unbounded.core.occupancy.solver.ftrl import PROGRAM
from unbounded.core.occupancy.solver.sparse import told_lists
from unbounded.core.scaled import widths
from unbounded.jit.interpreter import interpreted
from unbounded.jit.kernel import kernel
from unbounded.learners.mdp import Cache, MDPLearner, MDPSpec, Seed, checked_layers
from unbounded.mdps import discounted_scb_rl, practical_scb_rl, rf_elp, uob_reps_ex
from unbounded.mdps.steps import explorers, profiles
from unbounded.mdps.steps.boxes import count_episode
from unbounded.mdps.steps.profiles import Constants, Known, Reading
from unbounded.validation import (
    ArgumentValueError,
    checked_ablation,
    checked_constant,
    checked_count,
    checked_option,
)

__all__ = ["SCBRL", "Constants", "Known", "Reading"]


class Params(NamedTuple):
    clip: int  # SCALE: the paper's; RANGE: docs/theory/range-clipping.md
    rule: int  # LAZY: the pseudo-code's threshold; LARGEST: the prose's (erratum E1)
    literal: bool  # forget thresholds and counts of the exploration phase, as printed (E28)
    search: rf_elp.Params
    play: uob_reps_ex.Params
    rates: uob_reps_ex.Rates
    P: Vector  # triples: transitions of an explorer that knows them, else empty


class State(NamedTuple):
    t: int
    clipped: int
    version: int  # changes with what is played
    exploring: bool
    windows: Windows  # layers: C_{t,h}
    search: rf_elp.State
    play: uob_reps_ex.State

    def check(self, params: Params) -> None:
        self.search.check(params.search)
        done = self.search.progress.target == self.search.model.V.size - 1
        require(self.exploring != done, "it explores what is explored")


def init(layers: Layers, params: Params) -> State:
    """Start with C_{1,h} = 0; the first state is sought, unless there is an oracle."""
    windows = empty_windows(layers.horizon)
    search, play = rf_elp.init(layers, params.search), uob_reps_ex.init(layers, params.play)
    if params.P.size:
        search = rf_elp.finished(search, explorers.oracle(layers, params.P))
        play = uob_reps_ex.begin(
            layers.table, params.play, params.rates, play, PROGRAM(), windows,
            not params.literal,
        )  # fmt: skip
    return State(1, 0, 0, params.P.size == 0, windows, search, play)


# Kernels


@kernel
def act(lay: Integers, params: Params, state: State, word: int, pi: Vector) -> int:
    """Return the policy of the next episode: RF-ELP's (line 2), then UOB-REPS-EX's (line 5)."""
    if state.exploring:
        return rf_elp.act(lay, params.search, state.search, word, pi)
    beta, library = params.rates.beta, state.search.library
    return uob_reps_ex.act(lay, params.play, beta, state.play, library, word, pi)


@kernel
def distribution(
    lay: Integers, params: Params, state: State, P: Vector, cache: Cache, q: Vector
) -> None:
    """Occupancy under ``P`` of what `act` plays."""
    search, beta = state.search, params.rates.beta
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
    """Learn from one episode (line 6) of what `act` returned: an explorer's number, or OWN."""
    exploring, clipped, windows = state.exploring, state.clipped, state.windows
    search, play = state.search, state.play
    if not exploring or not params.literal:  # E28
        clipped += clip_each(windows, params.clip, params.rule, losses)  # lines 7, 9: E15
    if exploring:
        search = rf_elp.explore(
            lay, params.search, params.search.goal, search, states, actions
        )  # lines 1 and 2
        exploring = not rf_elp.done(lay, search)
        if not params.literal:
            count_episode(lay, play.boxes, states, actions)
        if not exploring:  # line 3
            play = uob_reps_ex.begin(
                lay, params.play, params.rates, play, program, windows, not params.literal
            )
    else:  # line 4
        play = uob_reps_ex.update(
            lay, params.play, params.rates, play, program, search.library, component, states,
            actions, windows,
        )  # fmt: skip  # line 8
    version = search.version + play.solver.solves.solves
    return State(state.t + 1, clipped, version, exploring, windows, search, play)


class Exploration(NamedTuple):
    """Progress of the exploration phase."""

    episodes: int  # so far
    per_state: int  # at most
    capped: bool  # whether ``exploration_cap`` limits it


class SCBRL(MDPLearner):
    """Scale-free learner for layered MDPs with unknown transitions and adversarial losses.

    Parameters
    ----------
    episodes : int, optional
        Total number of episodes T, exploration included; more than the number of states. By default
        any number: T doubles as the episodes go on.
    profile : {"practical", "paper"}
        The variant tuned in experiments (no regret bound is known), or Algorithm 4 as published.
        See docs/guide/scb-rl.md.
    constants : Constants or mapping, optional
        Constants that are not the profile's: rate, mixing, implicit, exploration, width, bonus,
        early_stop, share_counts, skip, exploration_cap, few, center, renewal, kappa.
    reading : Reading or mapping, optional
        How the paper is read, by its errata: literal, clip, threshold, estimator, tight, ablation.
    explorer : {"mvp", "ucbvi", "oracle"}
        Algorithm of the exploration phase; "oracle" is given the transitions and skips it, for
        tests.
    known : Known or mapping, optional
        What is known of the MDP: transitions, support, allowed, ends.
    half_life : int, optional
        For losses whose best policy changes: the number of episodes after which a loss counts half.
        What was learned of the transitions is not forgotten; they must not change. Measured only
        (docs/guide/scb-rl.md): no regret bound is known. For the practical profile with
        ``clip="range"``. Without it, nothing is forgotten.

    Notes
    -----
    Algorithm 4 needs ``episodes``, and has no few explorers, centering or lazy renewal. With any of
    these, or without ``episodes``, ``profile="paper"`` only sets constants, and `practical_scb_rl`
    is played.

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
    >>> SCBRL([1, 2], 2, 100, profile="paper", constants={"rate": 2.0})
    SCBRL(layers=[1, 2], n_actions=2, episodes=100, profile='paper', constants={'rate': 2.0})
    """

    spec = practical_scb_rl.SPEC
    _published = MDPSpec.of(__name__, **practical_scb_rl.CLAIMS)

    def __init__(
        self,
        layers: Sequence[int],
        n_actions: int,
        episodes: SupportsIndex | None = None,
        delta: float = 0.05,
        *,
        profile: Literal["practical", "paper"] = "practical",
        constants: Constants | Mapping[str, Any] | None = None,
        reading: Reading | Mapping[str, Any] | None = None,
        explorer: Literal["mvp", "ucbvi", "oracle"] = "mvp",
        known: Known | Mapping[str, Any] | None = None,
        half_life: SupportsIndex | None = None,
        tolerance: float = 1e-8,
        seed: Seed = None,
    ) -> None:
        given = profiles.group(Known, "known", known)
        shape = checked_layers(layers, n_actions, given.allowed, given.ends)
        T = None if episodes is None else checked_count("episodes", episodes)
        delta = checked_constant("delta", delta, below=1.0)
        tolerance = checked_constant("tolerance", tolerance)
        checked_option("explorer", explorer, ("mvp", "ucbvi", "oracle"))
        P = explorers.oracle_transitions(shape, explorer, given.transitions)
        chosen = profiles.chosen(
            profile,
            profiles.group(Constants, "constants", constants),
            profiles.group(Reading, "reading", reading),
            shape,
        )
        c, how = chosen
        checked_ablation(how.clip, c.mixing, how.ablation)
        possible = told_support(shape, given.support)
        sought = rf_elp.sought_states(shape, possible)
        S = int(sought.sum()) if sought.size else sum(shape.sizes)
        if P.size == 0 and T is not None and T <= S:
            raise ValueError(
                f"episodes must exceed the {S} states, each of which takes at least one episode "
                f"of exploration; got {T}"
            )
        few, lazy = c.few and P.size == 0, c.renewal == "lazy"
        spans = profiles.spans_of(T, delta, S, few)
        weights = None if half_life is None else checked_half_life("half_life", half_life)
        most = math.inf if weights is None else math.ceil(weights.h / math.log(2.0))
        self._rates = [profiles.rates(shape, span, c, how.tight, S, most) for span in spans]
        every = [
            profiles.block_rates(shape, span, rates, c, explorer, S)
            for span, rates in zip(spans, self._rates, strict=True)
        ]
        search = rf_elp.Params(
            m=c.early_stop, n_sought=S, share=c.share_counts,
            explorer=rf_elp.UCBVI if explorer == "ucbvi" else rf_elp.MVP,
            goal=every[0].goal, sought=sought, even=shape.even,
        )  # fmt: skip
        play = uob_reps_ex.Params(
            kappa=c.kappa, tolerance=tolerance,
            width=Bernstein(c.width * PAPER.c1, c.width * PAPER.c2),
            growth=2.0 if lazy else 1.0, mixture=how.estimator == "mixture",
            possible=possible, lists=told_lists(shape, possible), even=shape.even,
        )  # fmt: skip
        clip = checked_option("clip", how.clip, ("scale", "range"))
        rule = checked_option("threshold", how.threshold, ("lazy", "largest"))
        params: Any
        published = profile == "paper" and T is not None and not (few or lazy or c.center)
        if weights is not None and (published or how.clip != "range" or how.literal):
            raise ArgumentValueError(
                "half_life", "is for the practical profile with clip='range': leave it out"
            )
        if published:
            self.spec = self._published
            params = Params(clip, rule, how.literal, search, play, every[0].play, P)
        else:
            blocks = profiles.blocks_of(every)
            params = practical_scb_rl.Params(
                clip, rule, how.literal, few, c.center, search, play, P, blocks
            )
        if weights is not None:
            self.spec = discounted_scb_rl.SPEC
            params = discounted_scb_rl.Params(params, weights)
        self._clip, self._few = clip, few
        settings = {
            "episodes": T, "delta": delta, "profile": profile, "explorer": explorer,
            "tolerance": tolerance, **chosen.settings,
            "known": {
                "transitions": P.tolist() if P.size else None,
                "support": None if given.support is None else np.asarray(given.support).tolist(),
                "ends": shape.ends,
                "allowed": [t.tolist() for t in shape.allowed] if shape.n_forbidden else None,
            },
        }  # fmt: skip
        self._begin(shape, params, seed, settings)

    def _differing(self) -> dict[str, Any]:
        differing, profile = super()._differing(), self._settings["profile"]
        defaults = profiles.chosen(profile, Constants(), Reading(), self.layers)
        for name, usual in defaults.settings.items():
            group = {k: v for k, v in differing.pop(name, {}).items() if v != usual[k]}
            differing |= {name: group} if group else {}
        return differing

    @property
    def phase(self) -> str:
        """``"exploring"`` (RF-ELP), then ``"playing"``."""
        return "exploring" if self._scalar("exploring") else "playing"

    @property
    def explored(self) -> Exploration:
        """Episodes explored so far, the most a state may take, and whether the cap limits it."""
        block = 0 if self.spec is self._published else int(self._scalar("block"))
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
        W = windows.W if self._clip == RANGE else 0.5 * windows.W
        return widths(W, windows.e)

    def occupancy(self) -> Vector:
        """Return the FTRL solution q~ over pairs, flat."""
        return self._state().play.solver.q.copy()

    def explorers(self) -> dict[tuple[int, int], Mixture]:
        """Return the policies found for each state ``(h, s)``, h = 0 .. H - 1, that is done."""
        state = self._state()
        search, serves = state.search, state.few.serves if self._few else None
        return interpreted(explorers.mixtures)(
            self.layers, search.library, search.progress.target, serves
        )
