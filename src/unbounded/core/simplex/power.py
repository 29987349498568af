"""FTRL with a Tsallis entropy of any order: p = argmin <L, p> - (a / eta) sum p_i^(1/a), a > 1."""

from __future__ import annotations

import math

from unbounded.core.arrays import Vector
from unbounded.core.simplex.ftrl import total
from unbounded.core.simplex.sampling import Law, blend
from unbounded.jit.kernel import kernel

_MOST_STEPS = 100
_CLOSE = 1e-9  # relative: the step after it is rounding error


@kernel
def power(x: float, exponent: float) -> float:
    """x^exponent for x > 0; NumPy's power and the compiler's differ in the last bit."""
    return math.exp(exponent * math.log(x))


@kernel
def power_entropy(L: Vector, eta: float, a: float, law: Law) -> None:
    """Make ``law`` p_i = (eta (L_i - x))^-b, b = a / (a - 1), where x makes the sum 1.

    h(x) = S_b(x)^(-1/b), S_j = sum_i (L_i - x)^-j, is decreasing and concave, with 1 / eta at the
    solution. No p_i exceeds 1, so that x is at most min L - 1 / eta: from there Newton's steps
    converge from the right.
    """
    q, room, b = law.q, law.room, a / (a - 1.0)
    smallest = L[0]
    for i in range(L.size):
        smallest = min(smallest, L[i])
    gap = 1.0  # eta (min L - x)
    for _ in range(_MOST_STEPS):
        for i in range(L.size):
            q[i] = power(eta * (L[i] - smallest) + gap, -(b + 1.0))
        slope = total(q, room)
        for i in range(L.size):
            q[i] *= eta * (L[i] - smallest) + gap
        S = total(q, room)
        step = S / slope * (power(S, 1.0 / b) - 1.0)
        gap += step
        if step <= _CLOSE * gap:
            break
    for i in range(L.size):
        q[i] = power(eta * (L[i] - smallest) + gap, -b)
    blend(law, 1.0 / total(q, room), 0.0)
