"""Clipping: to a window that starts empty and grows with what was observed, or to a known range.

A window of width W (the paper's 2 C_t, or the observed range R_t) maps a loss to l+ in [0, W]: l+
is the paper's l^c + C_t, or l^c - a_t with range clipping. W is stored as a mantissa in [0.5, 1)
times 2^e, and l+ is returned in units of 2^e: then any finite float64 is a legal loss, nothing
overflows, and multiplying every loss by a power of two changes ``e`` and nothing else. W = 0 says
that the window is still empty. Each function clips by the window of round t and returns that of
round t + 1; a learner multiplies what it stores in units of 2^e by `unit_factor` of the two.

A learner that is given the range of the losses needs no window: `to_unit` maps it to [0, 1].
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unbounded.core.arrays import Exponent, Exponents, Mantissa, Mantissas, Scratch, Vector, require
from unbounded.core.scaled import capped, ldexp
from unbounded.jit.kernel import kernel, subroutine
from unbounded.validation import ArgumentValueError, checked_ablation, checked_option, checked_share

CLIPS = ("scale", "range", "none")
SCALE, RANGE, NONE = range(3)  # to [-C, C], the paper's; to the observed range; an ablation
THRESHOLDS = ("lazy", "largest")
LAZY, LARGEST = range(2)  # readings of the paper's threshold: pseudo-code, prose (erratum E1)
_MOST = 2.0**900  # an unclipped loss in units of 2^e; divided by a probability it stays finite


class Window(NamedTuple):
    """A clipping window; ``low`` and ``high`` are a_t and b_t, the extreme losses observed.

    Only range clipping uses these two: with the paper's clipping they stay as in `EMPTY`.
    """

    W: Mantissa
    e: Exponent
    low: float
    high: float

    def check(self) -> None:
        """Reject a window that no losses can have made."""
        check_windows(*(np.array([field]) for field in self))


def check_windows(W: Vector, e: Vector, low: Vector, high: Vector) -> None:
    """Reject windows that no losses can have made."""
    seen = low <= high
    require(np.all(seen | ((low == np.inf) & (high == -np.inf))), "a window has no such ends")
    for i in np.flatnonzero(seen):
        found, exponent = _width(low[i], high[i])
        require(W[i] == found and (e[i] == exponent or found == 0.0), "a window does not fit")


EMPTY = Window(0.0, 0, math.inf, -math.inf)


def checked_clipping(
    clip: str, threshold: str, mixing: float, ablation: bool
) -> tuple[int, int, float]:
    """Return the codes of ``clip`` and ``threshold``, and ``mixing``; or raise a clear error.

    What can fail for want of clipping or exploration needs ``ablation``.
    """
    share = checked_share("mixing", mixing)
    checked_ablation(clip, share, ablation)
    code = checked_option("clip", clip, CLIPS)
    rule = checked_option("threshold", threshold, THRESHOLDS)
    if code == RANGE and rule != LAZY:
        raise ArgumentValueError(
            "threshold", "is of the paper's clipping: choose clip='scale' with it, or leave it out"
        )
    return code, rule, share


@kernel
def clip_to_scale(window: Window, rule: int, loss: float) -> tuple[float, bool, Window]:
    """Clip to [-C_t, C_t] and add C_t; then set C_{t+1} (Alg. 1 and 2, lines 5 and 7).

    C_{t+1} is 2 |loss| if |loss| > C_t; with the rule LARGEST, if 2 |loss| > C_t (erratum E1).
    Returns l+ in units of 2^e, whether it was clipped, and the next window.
    """
    C = 0.5 * window.W
    value = ldexp(loss, -window.e)
    clipped = abs(value) > C
    l_plus = max(-C, min(C, value)) + C  # line 5, with the offset of line 6
    grows = clipped or (rule == LARGEST and 2.0 * abs(value) > C)
    if grows:
        mantissa, exponent = math.frexp(abs(loss))
        window = Window(mantissa, exponent + 2, window.low, window.high)  # line 7: W = 4 |loss|
    return l_plus, clipped, window


@kernel
def _width(low: float, high: float) -> tuple[float, int]:
    """Return ``high - low`` as mantissa and exponent: as a float it may overflow."""
    unit = math.frexp(max(abs(low), abs(high)))[1]
    W, exponent = math.frexp(math.ldexp(high, -unit) - math.ldexp(low, -unit))
    return W, exponent + unit if W > 0.0 else 0


@kernel
def clip_to_range(window: Window, loss: float) -> tuple[float, bool, Window]:
    """Clip to the observed range [a_t, b_t] and subtract a_t (docs/theory/range-clipping.md).

    The first loss of all has l+ = 0 and is not counted as clipped.
    """
    if loss < window.low or loss > window.high:  # both are true of the first loss
        l_plus = 0.0 if loss < window.low else window.W
        low = min(window.low, loss)
        high = max(window.high, loss)
        W, e = _width(low, high)
        return l_plus, window.low <= window.high, Window(W, e, low, high)
    l_plus = ldexp(loss, -window.e) - math.ldexp(window.low, -window.e)
    return min(l_plus, window.W), False, window


@kernel
def unclipped(window: Window, rule: int, loss: float) -> tuple[float, bool, Window]:
    """Add C_t without clipping: Alg. 1 without its line 5, an ablation; C grows as in line 7.

    l+ has any size and sign, and the flag is False. The first loss other than 0 has no unit yet: it
    is returned in that of the next window. A loss beyond 2^900 units counts as 2^900 units.
    """
    _, _, after = clip_to_scale(window, rule, loss)
    if window.W == 0.0:
        return math.ldexp(loss, -after.e), False, after
    value = ldexp(loss, -window.e)
    return max(-_MOST, min(_MOST, value)) + 0.5 * window.W, False, after


@kernel
def clip(window: Window, clip: int, rule: int, loss: float) -> tuple[float, bool, Window]:
    """Clip one loss by a window of any kind (lines 5 and 7).

    Returns l+ in units of 2^e, whether it was clipped, and the next window.
    """
    if clip == RANGE:
        return clip_to_range(window, loss)
    if clip == NONE:
        return unclipped(window, rule, loss)
    return clip_to_scale(window, rule, loss)


@kernel
def scale_of(window: Window, clip: int) -> float:
    """Return C, or with range clipping the observed range, at most the largest float."""
    W = window.W if clip == RANGE else 0.5 * window.W
    return capped(W, window.e)


def tenfold(low: float, high: float, scale: float, clip: int) -> tuple[float, float]:
    """Return the two losses beyond which ``scale`` would grow more than tenfold.

    ``low`` and ``high`` are the window's. The paper's threshold becomes twice such a loss.
    """
    if clip == RANGE:
        return high - 10.0 * scale, low + 10.0 * scale
    return -5.0 * scale, 5.0 * scale


@kernel
def unit_factor(before: Window, after: Window) -> float:
    """Return the factor that takes values from the unit of ``before`` to that of ``after``.

    It is 1 after an empty window: what that let through is 0, or in the next one's unit.
    """
    if before.W > 0.0 and before.e != after.e:
        return math.ldexp(1.0, before.e - after.e)
    return 1.0


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
    """A window per layer, and the l+ of the last losses; vectors over layers."""

    W: Mantissas
    e: Exponents
    low: Vector
    high: Vector
    l_plus: Scratch  # in units of 2^e_before
    e_before: Scratch

    def check(self) -> None:
        """Reject windows that no losses can have made."""
        check_windows(self.W, self.e, self.low, self.high)


def empty_windows(n: int) -> Windows:
    """Make ``n`` empty windows."""
    low, high = np.full(n, math.inf), np.full(n, -math.inf)
    return Windows(np.zeros(n), np.zeros(n), low, high, np.zeros(n), np.zeros(n))


_clip_one = clip


@subroutine
def clip_each(windows: Windows, clip: int, rule: int, losses: Vector) -> int:
    """Clip one loss by each window, in place; return how many were clipped."""
    count = 0
    for h in range(losses.size):
        before = Window(windows.W[h], int(windows.e[h]), windows.low[h], windows.high[h])
        l_plus, clipped, after = _clip_one(before, clip, rule, losses[h])
        windows.l_plus[h] = l_plus
        windows.e_before[h] = before.e
        windows.W[h] = after.W
        windows.e[h] = after.e
        windows.low[h] = after.low
        windows.high[h] = after.high
        count += clipped
    return count


@kernel
def narrow(windows: Windows, low: Vector, high: Vector) -> None:
    """Let the windows be [low, high], in place, for range clipping."""
    for h in range(low.size):
        W, e = _width(low[h], high[h])
        windows.W[h] = W
        windows.e[h] = e
        windows.low[h] = low[h]
        windows.high[h] = high[h]
