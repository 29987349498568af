"""Dynamic regret: comparison with the best arm of each round, and with sequences of few switches.

What is followed stands in a record before the state of the adversary, and is entered by the kernel
that fills the losses. So the loops over rounds know nothing of it.

The best sequence with at most S switches is found by dynamic programming: D_s(i), the loss of the
best sequence so far that ends with arm i after at most s switches, becomes
l_t(i) + min(D_s(i), min_j D_{s-1}(j)). That takes n (S + 1) steps a round.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from unbounded.core.arrays import Vector
from unbounded.jit.kernel import Pointer, counted, kernel
from unbounded.simulation.adversary import FILL_ROWS, Adversary, as_kernel
from unbounded.validation import ArgumentValueError, checked_count

MOST_STEPS = 10**10
"""The largest rounds x arms x (switches + 1) of one replicate."""

_HUGE, _SMALL_UNIT = 2.0**900, 2.0**-200  # as in the ledger
# Slots of the record: the number of switches (-1: sequences are not followed), the unit of sums as
# in the ledger, the sum of the smallest losses, of <q_t, m_t> minus the smallest of the expected
# losses m_t in units of the scale of the round, and of the probabilities of the best arms; how
# often the best arm has changed, and which it is.
SWITCHES, _UNIT, _SMALLEST, _GAPS, _PROBABILITY, _CHANGES, _BEST = range(7)
_SLOTS = 7
# After them the expected losses, then D: a row for each number of switches.

ROWS = 5  # what `record` gives


def checked_switches(switches: int | None, rounds: int, n: int) -> int:
    """Return the number of switches, -1 for None, or a clear error."""
    if switches is None:
        return -1
    count = checked_count("switches", switches, least=0)
    steps = rounds * n * (count + 1)
    if steps > MOST_STEPS:
        raise ArgumentValueError(
            "switches", f"={count} takes rounds x arms x (switches + 1) = {steps:.2g} steps a "
            f"replicate, above {MOST_STEPS:.0e}: allow fewer switches, or play fewer rounds"
        )  # fmt: skip
    return count


def new_record(n: int, switches: int) -> Vector:
    """Return an empty record."""
    record = np.zeros(_SLOTS + n * (switches + 2))
    record[SWITCHES] = switches
    record[_UNIT] = 1.0
    record[_BEST] = -1
    return record


def begin(
    adversary: Adversary, n: int, rounds: int, key: int, switches: int
) -> tuple[Vector, Vector]:
    """Return params and state of an adversary that is watched."""
    params, state = adversary.begin(n, rounds, key)
    return params, np.concatenate([new_record(n, switches), state])


def recorded(record: Vector, n: int) -> tuple[float, ...]:
    """Return the sums: smallest losses, the best sequence, gaps, probability of the best, changes.

    The first two are in the unit of the ledger.
    """
    switches = int(record[SWITCHES])
    best = math.nan
    if switches >= 0:
        best = record[_SLOTS + n * (switches + 1) :][:n].min()
    return record[_SMALLEST], best, record[_GAPS], record[_PROBABILITY], record[_CHANGES]


@kernel
def watch(record: Vector, q: Vector, losses: Vector, scale: float) -> None:
    """Enter a round; the expected losses are in the record if the ``scale`` is above 0."""
    n = losses.size
    table = record[_SLOTS + n :]
    smallest = losses[0]
    largest = 0.0
    for k in range(n):
        smallest = min(smallest, losses[k])
        largest = max(largest, abs(losses[k]))
    if largest > _HUGE and record[_UNIT] == 1.0:
        record[_UNIT] = _SMALL_UNIT
        record[_SMALLEST] *= _SMALL_UNIT
        for i in range(n * (int(record[SWITCHES]) + 1)):
            table[i] *= _SMALL_UNIT
    unit = record[_UNIT]
    record[_SMALLEST] += smallest * unit
    means = record[_SLOTS : _SLOTS + n] if scale > 0.0 else losses
    best = 0
    for k in range(n):
        best = k if means[k] < means[best] else best
    gaps = 0.0
    probability = 0.0
    for k in range(n):
        if means[k] == means[best]:
            probability += q[k]
        elif scale > 0.0:
            gaps += q[k] * ((means[k] - means[best]) / scale)
    record[_GAPS] += gaps
    record[_PROBABILITY] += probability
    last = int(record[_BEST])
    if last < 0 or means[last] != means[best]:
        record[_CHANGES] += 0.0 if last < 0 else 1.0
        record[_BEST] = best
    for s in range(int(record[SWITCHES]), -1, -1):
        row = table[s * n : (s + 1) * n]
        before = math.inf  # D of the best sequence with a switch less
        if s > 0:
            for k in range((s - 1) * n, s * n):
                before = min(before, table[k])
        for k in range(n):
            row[k] = min(row[k], before) + losses[k] * unit


@kernel
def _unknown(params: Any, state: Any, t: int, out: Any) -> float:
    return 0.0


def pointer_of(adversary: type[Adversary]) -> Pointer:
    """Return a pointer to what fills one row of losses, and enters it."""
    return _watched(adversary.rows(), adversary.expected)


@cache
def _watched(rows: Pointer, given: Any) -> Pointer:
    counts = counted(rows.kernel) or (given is not None and counted(given))
    fill, expected = kernel(rows.kernel, counts=counts), as_kernel(given or _unknown)

    def watched(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
        n = out.shape[1]
        record = state[: _SLOTS + n * (int(state[SWITCHES]) + 2)]
        own = state[record.size :]
        fill(params, own, t, last_arm, q, out)
        means = record[_SLOTS : _SLOTS + n]
        size = 1.0 * expected(params[2:], own, t, means)
        if params[0] != 1.0 or params[1] != 0.0:
            size *= abs(params[0])
            for k in range(n):
                means[k] = params[0] * means[k] + params[1]
        watch(record, q, out[0], size)

    watched.__module__, watched.counts = rows.kernel.__module__, counts  # type: ignore[attr-defined]
    watched.__qualname__ = f"{rows.kernel.__qualname__}.watched"
    return Pointer(watched, FILL_ROWS)
