"""Blocks of episodes, whose number doubles, and what SCB-RL's constants are in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from unbounded.core.arrays import Vector
from unbounded.jit.kernel import kernel
from unbounded.mdps import uob_reps_ex
from unbounded.mdps.steps import state_search
from unbounded.mdps.steps.optimism import Bonus

if TYPE_CHECKING:
    from unbounded.mdps.steps.profiles import Rates


class Span(NamedTuple):
    """A block of episodes, and what its constants are for."""

    last: int  # how many episodes there are in the end, those before included
    new: int  # how many there are in the block
    T: int  # how many rates are for
    delta: float


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


class Blocks(NamedTuple):
    """What depends on the number of episodes, for each block of them."""

    last: Vector  # T_k
    N: Vector
    budget: Vector
    log_bonus: Vector
    eta: Vector
    gamma: Vector
    beta: Vector
    skip: Vector
    log_term: Vector


def blocks_of(
    spans: Sequence[Span], rates: Sequence[Rates], bonuses: Sequence[Bonus], skip: float,
    logs: Sequence[float],
) -> Blocks:  # fmt: skip
    """The same, column by column."""
    rows = [
        (span.last, rate.N, rate.budget, bonus.log_term, rate.eta, rate.gamma, rate.beta,
         2.0 * rate.eta * skip, log)
        for span, rate, bonus, log in zip(spans, rates, bonuses, logs, strict=True)
    ]  # fmt: skip
    return Blocks(*[np.array(column, dtype=np.float64) for column in zip(*rows, strict=True)])


@kernel
def block_of(blocks: Blocks, t: int) -> int:
    """The block of episode ``t``; the last one goes on for ever."""
    k = 0
    while k < blocks.last.size - 1 and blocks.last[k] < t:
        k += 1
    return k


@kernel
def search_params(blocks: Blocks, search: state_search.Params, t: int) -> state_search.Params:
    """Of the exploration, at episode ``t``."""
    if blocks.last.size == 1:
        return search
    k = block_of(blocks, t)
    return state_search.with_episodes(search, int(blocks.N[k]), blocks.log_bonus[k])


@kernel
def play_params(blocks: Blocks, play: uob_reps_ex.Params, t: int) -> uob_reps_ex.Params:
    """Of FTRL, at episode ``t``."""
    if blocks.last.size == 1:
        return play
    k = block_of(blocks, t)
    return uob_reps_ex.at_rates(
        play, blocks.eta[k], blocks.gamma[k], blocks.beta[k], blocks.skip[k], blocks.log_term[k]
    )
