"""Products with powers of two, and sums of such, where they may leave the range of floats.

C's ``ldexp``, which kernels compile to, gives inf there; Python's raises an error. Kernels also run
interpreted, and must then give the same.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from numba.extending import overload

from unbounded.core.arrays import Vector
from unbounded.jit.interpreter import interpreted
from unbounded.jit.kernel import kernel

LARGEST = sys.float_info.max


def ldexp(x: float, e: int) -> float:
    """Return x 2^e, infinite where that is beyond the largest float."""
    try:
        return math.ldexp(x, e)
    except OverflowError:
        return math.copysign(math.inf, x)


@overload(ldexp, jit_options={"forceinline": True})
def _compiled(x: Any, e: Any) -> Any:
    def its_c(x: Any, e: Any) -> Any:
        if -1022 <= e <= 1023:  # one product, rounded once as in C, instead of a call
            return x * np.int64((e + 1023) << 52).view(np.float64)
        return math.ldexp(x, e)

    return its_c


def frexp(x: float) -> tuple[float, int]:
    """Return x as a mantissa, in [0.5, 1) or 0, and an exponent."""
    return math.frexp(x)


@overload(frexp, jit_options={"forceinline": True})
def _compiled_frexp(x: Any) -> Any:
    def of_bits(x: Any) -> Any:
        bits = np.float64(x).view(np.int64)
        e = (bits >> 52) & 0x7FF
        if 0 < e < 0x7FF:  # instead of a call
            return np.int64((bits & ~(0x7FF << 52)) | (1022 << 52)).view(np.float64), e - 1022
        mantissa, exponent = math.frexp(x)
        return mantissa, np.int64(exponent)

    return of_bits


def widths(W: Vector, e: Vector) -> Vector:
    """`capped` of each."""
    with np.errstate(over="ignore"):
        return np.minimum(np.ldexp(W, e.astype(np.int64)), LARGEST)


def sums_from(W: Vector, e: Vector) -> list[tuple[float, int]]:
    """Return W_h 2^e_h + ... + W_H 2^e_H for each h, as mantissas and exponents."""
    sums, total = [], (0.0, 0)
    for mantissa, exponent in zip(W[::-1], e[::-1], strict=True):
        total = interpreted(added)(*total, float(mantissa), int(exponent))
        sums.append(total)
    return sums[::-1]


@kernel
def capped(x: float, e: int) -> float:
    """Return x 2^e for x >= 0, at most the largest float: what no finite loss exceeds."""
    return min(ldexp(x, e), LARGEST)


@kernel
def shift_each(values: Vector, shift: int) -> None:
    """Multiply ``values`` by 2^shift, in place: exact, short of underflow; infinity stays."""
    for i in range(values.size):
        values[i] = ldexp(values[i], shift)


@kernel
def added(x: float, e: int, y: float, f: int) -> tuple[float, int]:
    """x 2^e + y 2^f for x, y >= 0, as mantissa and exponent; the exponent of 0 means nothing."""
    if not y > 0.0:
        return x, e
    if not x > 0.0:
        return y, f
    top = max(e, f)
    total, more = math.frexp(math.ldexp(x, e - top) + math.ldexp(y, f - top))
    return total, top + more
