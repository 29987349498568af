"""SCB-RL: the scale-free learner for adversarial MDPs (Chen & Zhang 2024, Algorithm 4; Theorem 3).

First RF-ELP finds, for each state, policies that reach it (`rf_elp`); then UOB-REPS-EX plays FTRL
over the occupancy measures of a confidence set, mixed with those policies, on losses clipped to
what has been seen so far (`uob_reps_ex`). Nothing about the scale of the losses is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from unbounded._arguments import checked_count, checked_flag, checked_option, checked_positive
from unbounded.core.arrays import (
    Vector,
)
from unbounded.core.clipping import RANGE
from unbounded.core.occupancy import programs
from unbounded.core.occupancy.confidence import PAPER, log_term
from unbounded.core.occupancy.layout import (
    Layers,
)
from unbounded.core.occupancy.policies import Mixture
from unbounded.mdps import mvp, profiles, rf_elp, uob_reps_ex
from unbounded.play.learner import Seed
from unbounded.play.mdp_learner import MDPLearner, MDPSpec, checked_layers
from unbounded.play.sections import EXPLORED, EXPLORING, PHASE

SPEC = MDPSpec(
    name="SCBRL",
    reference="Chen & Zhang 2024, Algorithms 3-6",
    State=uob_reps_ex.State,
    sizes=uob_reps_ex.sizes,
    init=uob_reps_ex.init,
    choose=uob_reps_ex.choose,
    learn=uob_reps_ex.learn,
    expected=uob_reps_ex.expected,
    program=programs.ftrl,
    scale_free=True,
)


class SCBRL(MDPLearner):
    """Scale-free learner for layered MDPs with unknown transitions and adversarial losses.

    Parameters
    ----------
    layers : sequence of int
        Number of states in each layer 1..H. The distribution of the first state is unknown too.
    n_actions : int
    episodes : int
        Total number of episodes T, exploration included; more than the number of states.
    delta : float, default 0.05
    profile : {"practical", "theory"}
        Defaults of the arguments below: what works, or the paper's. See docs/scb-rl.md.
    literal : bool, default False
        Forget thresholds and counts of the exploration phase, as printed (erratum E28).
    clip : {"range", "scale"}
        Clip to the observed range, or to the paper's [-C, C].
    eta_factor, gamma_factor, beta_factor, xi_factor : float
        Multiply the paper's rates of learning, implicit exploration, explicit exploration and the
        length of the exploration phase.
    width_factor : float
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
        set changed. A policy that is older than that by a constant lets an adversary that watches
        it gain linearly in T.
    estimator : {"mixture", "ftrl_only"}
        Erratum E12.
    explorer : {"mvp", "ucbvi", "oracle"}
        The last knows the ``transitions`` and needs no exploration phase: for tests.
    exploration_cap : float, default 0.5
        At most this fraction of the episodes is exploration.
    tight : bool, default False
        The shorter exploration of erratum E24.
    threshold : {"lazy", "largest"}
        Rule of the paper's threshold (erratum E1).
    kappa, tolerance : float
        Floor of the weights (E16); certified accuracy of each solve.
    allow_no_exploration : bool
        Permit ``clip="range"`` with ``beta_factor=0``, which can fail: for ablations.
    transitions : array_like, shape (n_transitions,)
        Flat, as `LayeredMDP.P`; for ``explorer="oracle"`` only.
    seed : int or SeedSequence, optional

    Examples
    --------
    >>> learner = SCBRL(layers=[1, 2], n_actions=2, episodes=200, seed=0)
    >>> plan = learner.ask()
    >>> plan.policy[1].shape
    (2, 2)
    >>> action = plan.act(0, 0)
    >>> learner.tell(plan, states=[0, 1], actions=[action, 0], losses=[1e9, -3.0])
    >>> learner.phase, learner.thresholds.tolist()
    ('exploring', [0.0, 0.0])
    """

    spec = SPEC

    def __init__(
        self,
        layers: Sequence[int],
        n_actions: int,
        episodes: int,
        delta: float = 0.05,
        *,
        profile: str = "practical",
        literal: bool = False,
        clip: str | None = None,
        eta_factor: float | None = None,
        gamma_factor: float | None = None,
        beta_factor: float | None = None,
        xi_factor: float | None = None,
        width_factor: float | None = None,
        bonus: float | str | None = None,
        early_stop: int | None = None,
        share_counts: bool | None = None,
        skip: float | None = None,
        estimator: str = "mixture",
        explorer: str = "mvp",
        exploration_cap: float = 0.5,
        tight: bool = False,
        threshold: str = "lazy",
        kappa: float = 1e-3,
        tolerance: float = 1e-8,
        allow_no_exploration: bool = False,
        transitions: npt.ArrayLike | None = None,
        seed: Seed = None,
    ) -> None:
        settings = {k: v for k, v in locals().items() if k not in ("self", "seed", "__class__")}
        shape = checked_layers(layers, n_actions)
        S = sum(shape.sizes)
        T = checked_count("episodes", episodes)
        checked_positive("delta", delta, below=1.0)
        checked_option("profile", profile, tuple(profiles.PROFILES))
        given: dict[str, Any] = {
            "clip": clip, "eta_factor": eta_factor, "gamma_factor": gamma_factor,
            "beta_factor": beta_factor, "xi_factor": xi_factor, "width_factor": width_factor,
            "bonus": bonus, "early_stop": early_stop, "share_counts": share_counts, "skip": skip,
        }  # fmt: skip
        constants = profiles.PROFILES[profile]._replace(
            **{name: value for name, value in given.items() if value is not None}
        )
        for name in ("eta_factor", "gamma_factor", "xi_factor", "width_factor"):
            checked_positive(name, getattr(constants, name))
        for name in ("beta_factor", "skip"):
            if getattr(constants, name) != 0.0:
                checked_positive(name, getattr(constants, name))
        if constants.bonus != "paper":
            checked_positive("bonus", cast(float, constants.bonus))
        for name, flag in (
            ("literal", literal), ("tight", tight), ("share_counts", constants.share_counts),
            ("allow_no_exploration", allow_no_exploration),
        ):  # fmt: skip
            checked_flag(name, flag)
        checked_count("early_stop", constants.early_stop, least=0)
        checked_positive("kappa", kappa)
        checked_positive("tolerance", tolerance)
        checked_positive("exploration_cap", exploration_cap, below=1.0)
        way = checked_option("clip", constants.clip, ("scale", "range"))
        rule = checked_option("threshold", threshold, ("lazy", "largest"))
        mixture = checked_option("estimator", estimator, ("ftrl_only", "mixture")) == 1
        checked_option("explorer", explorer, ("mvp", "ucbvi", "oracle"))
        if way == RANGE and constants.beta_factor == 0.0 and not allow_no_exploration:
            raise ValueError(
                "clip='range' needs exploration: choose beta_factor above 0, or "
                "allow_no_exploration=True for an ablation"
            )
        self._true_P = None
        if explorer == "oracle":
            if transitions is None:
                raise ValueError("explorer='oracle' needs transitions, as LayeredMDP.P")
            self._true_P = shape.checked_transitions(transitions)
            settings["transitions"] = self._true_P.tolist()
        elif transitions is not None:
            raise ValueError(f"transitions are for explorer='oracle', not {explorer!r}")
        elif T <= S:
            raise ValueError(
                f"episodes must exceed the {S} states, each of which takes at least one episode "
                f"of exploration; got {T}"
            )
        # What a profile sets may be calibrated again; a saved learner keeps its own.
        settings |= constants._asdict() | {"layers": list(shape.sizes)}
        self._rates = profiles.rates(shape, T, delta, constants, exploration_cap, tight)
        params = uob_reps_ex.Params(
            eta=self._rates.eta,
            gamma=self._rates.gamma,
            beta=self._rates.beta,
            kappa=float(kappa),
            skip=2.0 * self._rates.eta * constants.skip,
            tolerance=float(tolerance),
            c1=constants.width_factor * PAPER.c1,
            c2=constants.width_factor * PAPER.c2,
            log_term=log_term(shape, T, delta),
            clip=way,
            rule=rule,
            mixture=mixture,
            keep_counts=not literal,
            learn_thresholds=not literal,
            known=False,
            fixed=False,
            search=rf_elp.Search(self._rates.N, int(constants.early_stop), constants.share_counts),
            bonus=_bonus(shape, explorer, constants, self._rates.N, delta / S),
        )
        self._start(shape, params, settings, seed)

    def _prepare(self, state: uob_reps_ex.State) -> None:
        lay, params = self.layers.table, self._params
        if self._true_P is not None:
            rf_elp.know(self.layers, self._true_P, state.head, state.library)
            uob_reps_ex.begin(lay, params, state, self.spec.program())
        else:
            rf_elp.begin_target(
                lay, params.bonus, params.search, state.head, state.model, state.library
            )

    @property
    def phase(self) -> str:
        """``"exploring"`` (RF-ELP), then ``"playing"``."""
        return "exploring" if self._state.head[PHASE] == EXPLORING else "playing"

    @property
    def exploration(self) -> dict[str, Any]:
        """Episodes explored so far, the most a state may take, and whether the cap limits it."""
        return {
            "episodes": int(self._state.head[EXPLORED]),
            "per_state": self._rates.N,
            "capped": self._rates.capped,
        }

    @property
    def thresholds(self) -> Vector:
        """Clipping threshold C_h of each layer, or the observed range."""
        W = self._state.W if self._params.clip == RANGE else 0.5 * self._state.W
        return np.ldexp(W, self._state.e.astype(np.int64))

    def occupancy(self) -> Vector:
        """The FTRL solution q~ over pairs, flat."""
        return self._state.q.copy()

    def explorers(self) -> dict[tuple[int, int], Mixture]:
        """The policies found for each state ``(h, s)``, h = 0 .. H - 1, that is done."""
        return rf_elp.found(self.layers, self._state.head, self._state.library)


def _bonus(
    layers: Layers, explorer: str, constants: profiles.Constants, N: int, delta: float
) -> mvp.Bonus:
    c = constants.bonus
    if isinstance(c, str):  # "paper"
        ucbvi = explorer == "ucbvi"
        return (mvp.ucbvi_bonus if ucbvi else mvp.paper_bonus)(layers, N, delta)
    if explorer == "ucbvi":
        return mvp.ucbvi_bonus(layers, N, delta, c)
    return mvp.practical_bonus(layers, N, delta, c)
