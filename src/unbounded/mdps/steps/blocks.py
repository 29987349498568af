"""Blocks of episodes, whose number doubles, and what SCB-RL's rates are in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unbounded.core.arrays import Vector
from unbounded.core.occupancy.confidence import log_term
from unbounded.core.occupancy.layout import Layers
from unbounded.jit.kernel import kernel
from unbounded.mdps import uob_reps_ex
from unbounded.mdps.rf_elp import Goal
from unbounded.mdps.steps import profiles
from unbounded.mdps.steps.optimism import Bonus
from unbounded.mdps.steps.profiles import Span


def spans_of(episodes: int | None, delta: float, S: int, few: bool) -> list[Span]:
    """Blocks of all episodes; after each, states that were not met are sought again.

    Their number doubles from block to block. If it is not known how many there will be, so does
    what rates are for; if it is, and policies are not ``few``, there is one block.

    Examples
    --------
    >>> [(span.last, span.T, span.delta) for span in spans_of(None, 0.05, S=100, few=True)[:3]]
    [(128, 128, 0.025), (256, 256, 0.0125), (512, 512, 0.00625)]
    >>> [(span.last, span.T, span.delta) for span in spans_of(300, 0.05, S=100, few=True)]
    [(128, 300, 0.05), (256, 300, 0.05), (300, 300, 0.05)]
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
    layers: Layers, span: Span, rates: profiles.Rates, constants: Any, explorer: str, S: int
) -> BlockRates:
    """The rates of a block, for RF-ELP, with delta/S for each state (E33), and UOB-REPS-EX."""
    bonus = profiles.bonus(layers, explorer, constants, rates.N, span.delta / S)
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
    """The rates of all blocks, column by column."""
    rows = [(one.last, one.budget, one.goal.N, one.goal.bonus.log_term, *one.play) for one in every]
    return Blocks(*[np.array(column, dtype=np.float64) for column in zip(*rows, strict=True)])


@kernel
def rates_of(blocks: Blocks, k: int, bonus: Bonus) -> BlockRates:
    """The rates of block ``k``; ``bonus`` is that of any other."""
    log_bonus = blocks.log_bonus[k]
    return BlockRates(
        int(blocks.last[k]),
        int(blocks.budget[k]),
        Goal(int(blocks.N[k]), Bonus(bonus.c1, bonus.c2, bonus.c3, log_bonus, bonus.B)),
        uob_reps_ex.Rates(
            blocks.eta[k], blocks.gamma[k], blocks.beta[k], blocks.skip[k], blocks.log_term[k]
        ),
    )
