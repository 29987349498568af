"""The two named sets of constants of SCB-RL, and the rates that follow from them.

With S states, A actions, T episodes: eta = gamma = sqrt(H ln(S A T/delta)/(S A T)) and
xi = beta = sqrt(S A/T), each times a factor; N = ceil(xi T) episodes of exploration per state, at
most a fraction of T/S (erratum E18); beta at most 1/2 (E17).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from unbounded.core.occupancy.layout import Layers
from unbounded.mdps import mvp, ucbvi
from unbounded.mdps.steps.blocks import Span
from unbounded.mdps.steps.optimism import Bonus
from unbounded.validation import (
    checked_constant,
    checked_count,
    checked_factor,
    checked_flag,
    checked_option,
    checked_share,
)


class Constants(NamedTuple):
    """What a profile sets; every field is also an argument of `SCBRL`."""

    clip: str
    rate: float  # of eta
    implicit: float  # of gamma
    mixing: float  # of beta
    exploration: float  # of xi
    width: float  # of the paper's boxes, constants 4 and 28/3
    bonus: float | str  # c1 = c2 = c3 of the explorer's bonus; "paper": its own paper's
    early_stop: int  # visits after which a state counts as found; 0: RF-ELP without stopping
    share_counts: bool  # one model for all states to be explored
    skip: float  # how old the policy may get, in losses at uniform occupancy
    exploration_cap: float  # at most this fraction of the episodes is exploration
    few: bool  # few exploration policies, chosen by counts (`few_explorers`)
    centre: float  # of estimates, in means of the losses so far


# The paper's constants, and MVP's.
THEORY = Constants("scale", 1.0, 1.0, 1.0, 1.0, 1.0, "paper", 0, False, 0.0, 0.5, False, 0.0)
# Calibrated by benchmarks/scb_rl_calibrate.py.
PRACTICAL = Constants("range", 0.5, 0.3, 1.0, 0.05, 0.2, 0.3, 2, True, 0.75, 0.03, True, 1.0)
PROFILES = {"theory": THEORY, "practical": PRACTICAL}
LARGE = 10_000  # transitions (s, a, s'), from which on practical renews its boxes and bounds lazily


def chosen(profile: str, arguments: Mapping[str, Any]) -> Constants:
    """A profile's constants with those ``arguments`` that are not None instead, checked."""
    checked_option("profile", profile, tuple(PROFILES))
    given = {name: arguments[name] for name in Constants._fields if arguments[name] is not None}
    constants = PROFILES[profile]._replace(**given)
    if isinstance(constants.bonus, str) and constants.bonus != "paper":
        raise ValueError(f"bonus must be a number above 0 or 'paper', got {constants.bonus!r}")
    bonus = constants.bonus
    return constants._replace(
        rate=checked_constant("rate", constants.rate),
        implicit=checked_constant("implicit", constants.implicit),
        exploration=checked_constant("exploration", constants.exploration),
        width=checked_constant("width", constants.width),
        bonus=bonus if isinstance(bonus, str) else checked_constant("bonus", bonus),
        mixing=checked_factor("mixing", constants.mixing),
        skip=checked_factor("skip", constants.skip),
        early_stop=checked_count("early_stop", constants.early_stop, least=0),
        share_counts=checked_flag("share_counts", constants.share_counts),
        exploration_cap=checked_constant("exploration_cap", constants.exploration_cap, below=1.0),
        few=checked_flag("few", constants.few),
        centre=checked_share("centre", constants.centre),
    )


def renewal(profile: str, layers: Layers) -> str:
    """When boxes and bounds are renewed, if that was not said.

    Examples
    --------
    >>> renewal("practical", Layers([10] * 5, 4)), renewal("practical", Layers([50, 50, 50], 10))
    ('epoch', 'lazy')
    """
    return "lazy" if profile == "practical" and layers.n_transitions >= LARGE else "epoch"


class Rates(NamedTuple):
    """Learning rate, implicit and explicit exploration, episodes of exploration per state."""

    eta: float
    gamma: float
    beta: float
    N: int
    capped: bool  # whether N was limited by the fraction of T/S
    budget: int  # episodes of exploration in all, if there are few policies


def rates(layers: Layers, span: Span, constants: Constants, tight: bool, S: int) -> Rates:
    """The paper's rates times the profile's factors, for ``S`` states that may be reached.

    ``tight`` is the variant of erratum E24: xi = sqrt(max_h |S_h| A/T).

    Examples
    --------
    >>> span = Span(10_000, 10_000, 10_000, 0.1)
    >>> rates(Layers([3, 3], 2), span, THEORY, tight=False, S=6).N
    347
    """
    A, H = layers.n_actions, layers.horizon
    last, new, T, delta = span
    eta = math.sqrt(H * math.log(S * A * T / delta) / (S * A * T))
    beta = min(0.5, constants.mixing * math.sqrt(S * A / T))
    states = min(max(layers.sizes), S) if tight else S
    wanted = math.ceil(constants.exploration * math.sqrt(states * A / last) * last)
    budget = math.floor(constants.exploration_cap * last)
    each = math.floor(constants.exploration_cap * new) // S
    N = wanted if constants.few else max(1, min(wanted, each))
    capped = wanted * S > budget if constants.few else wanted > N
    return Rates(constants.rate * eta, constants.implicit * eta, beta, N, capped, max(1, budget))


def bonus(layers: Layers, explorer: str, constants: Constants, N: int, delta: float) -> Bonus:
    """The bonus of the explorer, for ``N`` episodes per state."""
    c = constants.bonus
    if explorer == "ucbvi":
        if isinstance(c, str):
            return ucbvi.hoeffding_bonus(layers, N, delta)
        return ucbvi.hoeffding_bonus(layers, N, delta, c)
    if isinstance(c, str):
        return mvp.paper_bonus(layers, N, delta)
    return mvp.practical_bonus(layers, N, delta, c)
