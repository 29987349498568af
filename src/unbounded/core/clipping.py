"""Clipping windows that start empty and grow with what was observed.

A window of width W (the paper's 2 C_t, or the observed range) maps a loss to l+ in [0, W]. W is
kept as a mantissa in [0.5, 1) times 2^e, and l+ is returned in units of 2^e: then any finite
float64 is a legal loss, nothing overflows, and multiplying every loss by a power of two changes
``e`` and nothing else. W = 0 says that the window is still empty.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unbounded._jit import kernel, subroutine
from unbounded.core.arrays import (
    Vector,
)

SCALE, RANGE = 0, 1  # clip to [-C, C], the paper's; or to the observed range
NONE = 2  # keep the paper's C and do not clip: an ablation
_MOST = 2.0**900  # an unclipped loss in units of 2^e; divided by a probability it stays finite
LAZY, LARGEST = 0, 1  # readings of the paper's threshold: pseudo-code, prose (erratum E1)


class Window(NamedTuple):
    """A clipping window; ``low`` and ``high`` are the extreme losses seen (range clipping)."""

    W: float
    e: int
    low: float
    high: float


EMPTY = Window(0.0, 0, math.inf, -math.inf)


@kernel
def clip_to_scale(window: Window, rule: int, loss: float) -> tuple[float, bool, Window]:
    """Alg. 1: clip to [-C, C] and add C; then C becomes 2 |loss| where |loss| > C.

    Returns l+ in units of 2^e, whether it was clipped, and the next window.
    """
    C = 0.5 * window.W
    value = math.ldexp(loss, -window.e)
    clipped = abs(value) > C
    l_plus = max(-C, min(C, value)) + C
    grows = clipped or (rule == LARGEST and 2.0 * abs(value) > C)
    if grows:
        mantissa, exponent = math.frexp(abs(loss))
        window = Window(mantissa, exponent + 2, window.low, window.high)  # W = 2 C = 4 |loss|
    return l_plus, clipped, window


@kernel
def clip_to_range(window: Window, loss: float) -> tuple[float, bool, Window]:
    """Clip to the range [low, high] of the losses seen so far and subtract ``low``."""
    if loss < window.low or loss > window.high:
        l_plus = 0.0 if loss < window.low else window.W
        low = min(window.low, loss)
        high = max(window.high, loss)
        unit = math.frexp(max(abs(low), abs(high)))[1]  # high - low may overflow; in units it can't
        W, exponent = math.frexp(math.ldexp(high, -unit) - math.ldexp(low, -unit))
        e = exponent + unit if W > 0.0 else 0
        return l_plus, window.low <= window.high, Window(W, e, low, high)
    l_plus = math.ldexp(loss, -window.e) - math.ldexp(window.low, -window.e)
    return min(l_plus, window.W), False, window


@kernel
def unclipped(window: Window, rule: int, loss: float) -> tuple[float, bool, Window]:
    """Alg. 1 without its line 5: l+ is loss + C, of any size and sign; C grows as it does there.

    Never clipped, so the flag is False. What comes first has no unit yet: it is returned in that of
    the next window. (A loss beyond 2^900 times the threshold counts as 2^900 times it.)
    """
    _, _, after = clip_to_scale(window, rule, loss)
    if window.W == 0.0:
        return math.ldexp(loss, -after.e), False, after
    value = math.ldexp(loss, -window.e)
    return max(-_MOST, min(_MOST, value)) + 0.5 * window.W, False, after


@kernel
def clip(window: Window, mode: int, rule: int, loss: float) -> tuple[float, bool, Window]:
    """One observation through a window of any kind."""
    if mode == RANGE:
        return clip_to_range(window, loss)
    if mode == NONE:
        return unclipped(window, rule, loss)
    return clip_to_scale(window, rule, loss)


@kernel
def rescale(values: Vector, e_before: int, e_after: int) -> None:
    """Rescale ``values`` from 2^e_before to 2^e_after as the unit; exact, short of underflow."""
    factor = math.ldexp(1.0, e_before - e_after)
    for i in range(values.size):
        values[i] *= factor


@kernel
def to_unit(loss: float, low: float, high: float) -> tuple[float, bool]:
    """Map ``loss`` from [low, high] to [0, 1], clipping what lies outside; say if it did."""
    if loss <= low:
        return 0.0, loss < low
    if loss >= high:
        return 1.0, loss > high
    return (0.5 * loss - 0.5 * low) / (0.5 * high - 0.5 * low), False  # high - low may overflow


class Windows(NamedTuple):
    """A window per layer, and what they made of the last losses; vectors over layers."""

    W: Vector
    e: Vector
    low: Vector
    high: Vector
    l_plus: Vector  # in units of 2^e_before
    e_before: Vector


def empty_windows(n: int) -> Windows:
    """``n`` windows that have seen nothing."""
    low, high = np.full(n, math.inf), np.full(n, -math.inf)
    return Windows(np.zeros(n), np.zeros(n), low, high, np.zeros(n), np.zeros(n))


@subroutine
def clip_each(windows: Windows, clip_to: int, rule: int, losses: Vector) -> int:
    """One observation through each window, in place; how many were clipped."""
    count = 0
    for h in range(losses.size):
        before = Window(windows.W[h], int(windows.e[h]), windows.low[h], windows.high[h])
        l_plus, clipped, after = clip(before, clip_to, rule, losses[h])
        windows.l_plus[h] = l_plus
        windows.e_before[h] = before.e
        windows.W[h] = after.W
        windows.e[h] = after.e
        windows.low[h] = after.low
        windows.high[h] = after.high
        count += clipped
    return count
