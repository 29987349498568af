"""The settings of SCB-RL: two profiles of constants, readings of the paper, what is known; rates,
and blocks of episodes, whose number doubles, with the rates of each.

With S states, A actions, T episodes: eta = gamma = sqrt(H ln(S A T/delta)/(S A T)) and
xi = beta = sqrt(S A/T), each times a factor; N = ceil(xi T) episodes of exploration per state, at
most a fraction of T/S (erratum E18); beta at most 1/2 (E17).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from unbounded.core.arrays import Vector
from unbounded.core.occupancy.confidence import log_term
from unbounded.core.occupancy.layout import Layers
from unbounded.jit.kernel import kernel
from unbounded.mdps import mvp, ucbvi, uob_reps_ex
from unbounded.mdps.rf_elp import Goal
from unbounded.mdps.steps.optimism import Bonus
from unbounded.validation import (
    check_fields,
    checked_constant,
    checked_count,
    checked_factor,
    checked_flag,
    checked_option,
    checked_share,
    one_of,
    setting,
)


def _bonus(name: str, value: float | str) -> float | str:
    if isinstance(value, str) and value != "paper":
        raise ValueError(f"{name} must be a number above 0 or 'paper', got {value!r}")
    return value if isinstance(value, str) else checked_constant(name, value)


def _fraction(name: str, value: float) -> float:
    return checked_constant(name, value, below=1.0)


class _Checked:
    """A group of settings, each of which is checked if it is given."""

    def __post_init__(self) -> None:
        check_fields(self)

    def otherwise(self, defaults: Self) -> Self:
        """Take what is not given from ``defaults``."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]  # the subclasses are dataclasses
        return replace(defaults, **{k: v for k, v in given.items() if v is not None})  # type: ignore[type-var]  # likewise


@dataclass(frozen=True, kw_only=True)
class Constants(_Checked):
    """The constants of `SCBRL`; those that are None are the profile's.

    Parameters
    ----------
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
        Use one transition model for all states to be explored.
    skip : float
        Solve FTRL again when the estimates of some pair since the last solve exceed
        ``skip * |S_h| * n_actions`` times the layer's range, or when a weight or the confidence
        set changed; by default four times the profile's with lazy renewal. A policy that is older
        than that by a constant lets an adversary that watches it gain linearly in T.
    exploration_cap : float
        At most this fraction of the episodes is exploration.
    few : bool
        Seek only states that were not met ``early_stop`` times yet, again after every doubling of
        the episodes, and keep few policies, chosen by what was counted; needs ``early_stop`` and
        ``share_counts``.
    center : float
        Estimate losses minus this times their mean so far, at most half the range, for less
        variance: 0 or 1.
    renewal : {"epoch", "lazy"}
        When boxes and bounds are renewed: all of them whenever some pair has doubled its visits,
        as in the paper; or each pair's box when its own visits have doubled, and the explorers'
        bounds four times while the episodes double. By default the second in large MDPs, for
        the practical profile. See docs/guide/scb-rl.md.
    kappa : float
        Floor of the weights (erratum E16).

    Examples
    --------
    >>> Constants(rate=2.0).otherwise(PAPER).early_stop
    0
    """

    rate: float | None = setting(None, checked_constant)
    mixing: float | None = setting(None, checked_factor)
    implicit: float | None = setting(None, checked_constant)
    exploration: float | None = setting(None, checked_constant)
    width: float | None = setting(None, checked_constant)
    bonus: float | str | None = setting(None, _bonus)
    early_stop: int | None = setting(None, checked_count, 0)
    share_counts: bool | None = setting(None, checked_flag)
    skip: float | None = setting(None, checked_factor)
    exploration_cap: float | None = setting(None, _fraction)
    few: bool | None = setting(None, checked_flag)
    center: float | None = setting(None, checked_share)
    renewal: Literal["epoch", "lazy"] | None = setting(None, one_of, ("epoch", "lazy"))
    kappa: float | None = setting(None, checked_constant)


@dataclass(frozen=True, kw_only=True)
class Reading(_Checked):
    """Readings of the paper where `SCBRL` has a choice: its errata.

    Parameters
    ----------
    literal : bool, default False
        Forget thresholds and counts of the exploration phase, as printed (erratum E28).
    clip : {"range", "scale"}
        Clip to the observed range, or to the paper's [-C, C]; by default the profile's.
    threshold : {"lazy", "largest"}
        Whether the paper's threshold moves only when it is exceeded (erratum E1).
    estimator : {"mixture", "ftrl_only"}
        Whether losses are divided by a bound on the occupancy of the whole mixture, or only
        episodes of the learner's own policy count (erratum E12).
    tight : bool, default False
        Explore for ``sqrt(max_h |S_h| A T)`` instead of ``sqrt(S A T)`` episodes per state
        (erratum E24).
    ablation : bool, default False
        Permit ``clip="range"`` with ``mixing=0``, which can fail.

    Examples
    --------
    >>> Reading(clip="scale").threshold
    'lazy'
    """

    literal: bool = setting(False, checked_flag)
    clip: Literal["range", "scale"] | None = setting(None, one_of, ("range", "scale"))
    threshold: Literal["lazy", "largest"] = setting("lazy", one_of, ("lazy", "largest"))
    estimator: Literal["mixture", "ftrl_only"] = setting(
        "mixture", one_of, ("mixture", "ftrl_only")
    )
    tight: bool = setting(False, checked_flag)
    ablation: bool = setting(False, checked_flag)


@dataclass(frozen=True, kw_only=True, eq=False)
class Known(_Checked):
    """What `SCBRL` knows of the MDP beside its shape.

    Parameters
    ----------
    transitions : array_like, shape (n_transitions,)
        Flat, as `LayeredMDP.P`; for ``explorer="oracle"`` only.
    support : array_like of bool, shape (n_transitions,), optional
        Which transitions are possible, flat as ``LayeredMDP.P > 0``: states that these cannot reach
        are not explored. By default all are possible.
    allowed : sequence of array_like of bool, shapes (n_h, n_actions), optional
        Which actions may be taken, as `LayeredMDP.allowed`; all by default.
    ends : bool, default False
        Whether episodes may end early: the last state of each layer but the first is then the end.

    Examples
    --------
    >>> Known(ends=True).support is None
    True
    """

    transitions: npt.ArrayLike | None = None
    support: npt.ArrayLike | None = None
    allowed: Sequence[npt.ArrayLike] | None = None
    ends: bool = setting(False, checked_flag)


G = TypeVar("G", Constants, Reading, Known)


def group(kind: type[G], name: str, value: G | Mapping[str, Any] | None) -> G:
    """A group of settings from the argument ``name``: as it is, or from a mapping, a TOML table."""
    if isinstance(value, kind):
        return value
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a {kind.__name__} or a mapping, not {value!r}")
    given, names = dict(value or {}), [one.name for one in fields(kind)]
    for key in given:
        if key not in names:
            raise TypeError(f"{name} has no {key!r}; it may have {', '.join(names)}")
    return kind(**given)


# The paper's constants, and MVP's.
PAPER = Constants(
    rate=1.0, mixing=1.0, implicit=1.0, exploration=1.0, width=1.0, bonus="paper", early_stop=0,
    share_counts=False, skip=0.0, exploration_cap=0.5, few=False, center=0.0, renewal="epoch",
    kappa=1e-3,
)  # fmt: skip
# Calibrated by benchmarks/scb_rl_calibrate.py.
PRACTICAL = Constants(
    rate=0.5, mixing=1.0, implicit=0.3, exploration=0.05, width=0.2, bonus=0.3, early_stop=2,
    share_counts=True, skip=0.75, exploration_cap=0.03, few=True, center=1.0, kappa=1e-3,
)  # fmt: skip
PROFILES = {"paper": PAPER, "practical": PRACTICAL}
CLIPS: Mapping[str, Literal["range", "scale"]] = {"paper": "scale", "practical": "range"}
LARGE = 10_000  # transitions (s, a, s'), from which on practical renews its boxes and bounds lazily


class Chosen(NamedTuple):
    """Constants and readings, all of them given."""

    constants: Any  # `Constants` without None
    reading: Any  # `Reading` without None

    @property
    def settings(self) -> dict[str, Any]:
        """As arguments of an equal learner."""
        return {"constants": asdict(self.constants), "reading": asdict(self.reading)}


def chosen(profile: str, constants: Constants, reading: Reading, layers: Layers) -> Chosen:
    """Return a profile's constants and readings with those that are given instead."""
    checked_option("profile", profile, tuple(PROFILES))
    all_: Any = constants.otherwise(PROFILES[profile])
    renewal = all_.renewal or ("lazy" if layers.n_transitions >= LARGE else "epoch")
    skip = all_.skip * (4.0 if renewal == "lazy" and constants.skip is None else 1.0)
    few = all_.few and all_.share_counts and bool(all_.early_stop) and not reading.literal
    reading = reading.otherwise(Reading(clip=CLIPS[profile]))
    return Chosen(replace(all_, renewal=renewal, skip=skip, few=bool(few)), reading)


class Span(NamedTuple):
    """A block of episodes, and what its constants are for."""

    last: int  # how many episodes there are in the end, those before included
    new: int  # how many there are in the block
    T: int  # how many rates are for
    delta: float


class Rates(NamedTuple):
    """Learning rate, implicit and explicit exploration, episodes of exploration per state."""

    eta: float
    gamma: float
    beta: float
    N: int
    capped: bool  # whether N was limited by the fraction of T/S
    budget: int  # episodes of exploration in all, if there are few policies


def rates(
    layers: Layers, span: Span, constants: Any, tight: bool, S: int, most: float = math.inf
) -> Rates:
    """Return the paper's rates times the profile's factors, for ``S`` states that may be reached.

    ``tight`` is the variant of erratum E24: xi = sqrt(max_h |S_h| A/T). With a half-life, eta and
    gamma are for the ``most`` episodes that are not forgotten; exploration is for all of them.
    """
    A, H = layers.n_actions, layers.horizon
    last, new, T, delta = span
    lasting = min(T, most)
    eta = math.sqrt(H * math.log(S * A * lasting / delta) / (S * A * lasting))
    beta = min(0.5, constants.mixing * math.sqrt(S * A / T))
    states = min(max(layers.sizes), S) if tight else S
    wanted = math.ceil(constants.exploration * math.sqrt(states * A / last) * last)
    budget = math.floor(constants.exploration_cap * last)
    each = math.floor(constants.exploration_cap * new) // S
    N = wanted if constants.few else max(1, min(wanted, each))
    capped = wanted * S > budget if constants.few else wanted > N
    return Rates(constants.rate * eta, constants.implicit * eta, beta, N, capped, max(1, budget))


def spans_of(episodes: int | None, delta: float, S: int, few: bool) -> list[Span]:
    """Blocks of all episodes; after each, states that were not met are sought again.

    Their number doubles from block to block. If it is not known how many there will be, so does
    what rates are for; if it is, and policies are not ``few``, there is one block.
    """
    most = 1 << 52 if episodes is None else episodes
    first = 1 << max(6, S.bit_length())  # more than the states
    lasts = [first << k for k in range(60) if first << k <= most]
    if episodes is not None:
        lasts = [last for last in lasts if few and last < episodes] + [episodes]
    out, before = [], 0
    for k, last in enumerate(lasts):
        T = last if episodes is None else episodes
        out.append(Span(last, last - before, T, delta if episodes else delta / 2.0 ** (k + 1)))
        before = last
    return out


class BlockRates(NamedTuple):
    """What depends on the number of episodes, in one block of them."""

    last: int  # T_k, the block's last episode
    budget: int  # episodes of exploration in all, if there are few policies
    goal: Goal
    play: uob_reps_ex.Rates


def block_rates(
    layers: Layers, span: Span, rates: Rates, constants: Any, explorer: str, S: int
) -> BlockRates:
    """The rates of a block, for RF-ELP, with delta/S for each state (E33), and UOB-REPS-EX."""
    paper, of = constants.bonus == "paper", ucbvi if explorer == "ucbvi" else mvp
    bonus = of.chosen_bonus(
        layers, "paper" if paper else "practical", constants.bonus, rates.N, span.delta / S
    )
    skip, ln_ = 2.0 * rates.eta * constants.skip, log_term(layers, span.T, span.delta)
    play = uob_reps_ex.Rates(rates.eta, rates.gamma, rates.beta, skip, ln_)
    return BlockRates(span.last, rates.budget, Goal(rates.N, bonus), play)


class Blocks(NamedTuple):
    """The same for each block."""

    last: Vector
    budget: Vector
    N: Vector
    log_bonus: Vector
    eta: Vector
    gamma: Vector
    beta: Vector
    skip: Vector
    log_term: Vector


def blocks_of(every: Sequence[BlockRates]) -> Blocks:
    """Return the rates of all blocks, column by column."""
    rows = [(one.last, one.budget, one.goal.N, one.goal.bonus.log_term, *one.play) for one in every]
    return Blocks(*[np.array(column, dtype=np.float64) for column in zip(*rows, strict=True)])


@kernel
def rates_of(blocks: Blocks, k: int, bonus: Bonus) -> BlockRates:
    """Return the rates of block ``k``; ``bonus`` is that of any other."""
    log_bonus = blocks.log_bonus[k]
    return BlockRates(
        int(blocks.last[k]),
        int(blocks.budget[k]),
        Goal(int(blocks.N[k]), Bonus(bonus.c1, bonus.c2, bonus.c3, log_bonus, bonus.B)),
        uob_reps_ex.Rates(
            blocks.eta[k], blocks.gamma[k], blocks.beta[k], blocks.skip[k], blocks.log_term[k]
        ),
    )
