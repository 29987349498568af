"""A center that losses are measured from, of whatever size: AdaINF's B.

Differences of losses beyond 2^1022 may overflow: halves are subtracted instead. Means of losses
below 2^-600 would have fewer digits than other means: as long as center and losses are that small,
the center is stored 2^1000 times as large (``lifted``). A loss *in the center's unit* is multiplied
likewise (`seen_by`); every argument ``v`` below is such a loss. Exponents ``e`` refer to the unit
of the losses, lifted or not (docs/theory/ada-inf.md, section 6).
"""

from __future__ import annotations

from typing import NamedTuple

from unbounded.core.arrays import require
from unbounded.core.scaled import LARGEST, frexp, ldexp
from unbounded.jit.kernel import kernel

_HALF = 2.0**1022
_TINY_EXPONENT = -600
_TINY = 2.0**_TINY_EXPONENT
LIFT = 1000
_UNIT = 2.0**LIFT


class Center(NamedTuple):
    """B in the unit of the losses; or 2^1000 B, if it is ``lifted``."""

    at: float
    lifted: bool

    def check(self) -> None:
        """Reject a center that is lifted and not tiny."""
        require(not self.lifted or abs(self.at) <= _TINY * _UNIT, "the center is not that small")


ORIGIN = Center(0.0, False)


@kernel
def seen_by(center: Center, loss: float) -> float:
    """Return a loss in the center's unit; infinite if it is too large to be lifted."""
    return loss * (_UNIT if center.lifted else 1.0)


@kernel
def as_told(center: Center) -> float:
    """Return B in the unit of the losses."""
    return ldexp(center.at, -LIFT) if center.lifted else center.at


@kernel
def misfits(center: Center, v: float) -> bool:
    """Tell whether the center should be lifted, given ``v``, and is not, or the reverse."""
    tiny = max(abs(v), abs(center.at)) < (_TINY * _UNIT if center.lifted else _TINY)
    return center.lifted != tiny


@kernel
def refitted(center: Center) -> Center:
    """Return the same B, lifted if it was not, and not lifted if it was."""
    if center.lifted:
        return Center(as_told(center), False)
    return Center(center.at * _UNIT, True)


@kernel
def distance(center: Center, v: float, e: int) -> float:
    """Return v - B in units of 2^e; it may be infinite, and then has the right sign."""
    B, e = center.at, e + (LIFT if center.lifted else 0)  # 2^e in the center's unit
    if max(abs(v), abs(B)) < _HALF:
        return ldexp(v - B, -e)
    return ldexp(0.5 * v - 0.5 * B, 1 - e)


@kernel
def furthest(center: Center, v: float) -> tuple[float, int]:
    """Return |v - B| as a mantissa and an exponent in the unit of the losses."""
    B, up = center.at, LIFT if center.lifted else 0
    if max(abs(v), abs(B)) < _HALF:
        A, unit = frexp(abs(v - B))
        return A, unit - up
    A, unit = frexp(abs(0.5 * v - 0.5 * B))
    return A, unit + 1 - up


@kernel
def towards(center: Center, v: float, share: float) -> Center:
    """Return B + share (v - B), never beyond v."""
    B = center.at
    if max(abs(v), abs(B)) < _HALF:
        moved = B + share * (v - B)
    else:
        moved = 2.0 * (0.5 * B + share * (0.5 * v - 0.5 * B))
    return Center(min(max(moved, min(B, v)), max(B, v)), center.lifted)


@kernel
def apart(center: Center, loss: float) -> tuple[float, int]:
    """Return loss - B as a mantissa with its sign and an exponent, for any loss as it was told."""
    if center.lifted and abs(loss) >= _TINY:
        center = Center(as_told(center), False)
    v = seen_by(center, loss)
    A, e = furthest(center, v)
    return (A if v > center.at else -A), (e if A > 0.0 else 0)


@kernel
def moved(center: Center, size: float, e: int, share: float) -> Center:
    """Return B + share size 2^e, in the unit that fits."""
    near = size == 0.0 or e <= _TINY_EXPONENT
    if center.lifted != (near and abs(center.at) < (_TINY * _UNIT if center.lifted else _TINY)):
        center = refitted(center)
    B, e = center.at, e + (LIFT if center.lifted else 0)
    far = ldexp(size, e)
    if max(abs(B), abs(far)) < _HALF:
        return Center(B + share * far, center.lifted)
    half = 0.5 * B + share * ldexp(size, e - 1)
    return Center(2.0 * min(max(half, -0.5 * LARGEST), 0.5 * LARGEST), center.lifted)
