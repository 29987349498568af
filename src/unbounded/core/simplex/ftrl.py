"""Follow the regularized leader on the simplex: p = argmin <L, p> + Psi(p) / eta.

Each solver fills ``p`` with *unnormalized* weights and returns their sum, so that normalizing and
mixing take one pass; ``.._mixed`` makes that pass, and a `Law` that can be drawn from.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unbounded.core.arrays import ROUNDING, Vector, require
from unbounded.core.simplex.sampling import LANES, Law, blend, fold, least
from unbounded.jit.kernel import kernel

_EXPANDED = 1e-5  # a step relative to min L - x below which its fourth power is rounding error
_MOST_PASSES = 50
_MOST_STEPS = 100
_CLOSE = 1e-9  # relative: the step after it is rounding error
_CANCELED = 1e-6  # of the part that goes: what stays of S4 has four digits, then fewer
_GUIDES = 1e-3  # relative errors of the sums, which only guide the next step


class Anchor(NamedTuple):
    """Where the last Tsallis solve ended: the normalizer x and S_j = sum_i (L_i - x)^-j."""

    x: float
    S2: float
    S3: float
    S4: float

    def check_for(self, L: Vector) -> None:
        """Reject what cannot be an anchor for the losses ``L``."""
        if self.S2 == 0.0:
            require(L.size == 1 or not np.any(L), "nothing was learned yet")
            return
        with np.errstate(over="ignore"):
            d = L - self.x
            sums = [np.sum(d**-j) for j in (2.0, 3.0, 4.0)] if np.all(d > 0.0) else []
        require(sums and np.allclose(self[1:], sums, rtol=_GUIDES), "a solve would start nowhere")


NO_ANCHOR = Anchor(0.0, 0.0, 0.0, 0.0)  # its sums are not known: a solve starts afresh


def check_start(x: float, L: Vector, eta: float) -> None:
    """Reject an ``x`` from which `tsallis` might not find its own."""
    if L.size == 1:
        return  # there is nothing to solve, and x stays where it was
    room = np.min(L) - x
    require(0.0 <= room <= 2.0 * math.sqrt(L.size) / eta * (1.0 + ROUNDING), "no such normalizer")


@kernel
def tsallis_cold(L: Vector, eta: float) -> Anchor:
    """Return an anchor that needs no history: the left end of the bracket for x."""
    return Anchor(least(L) - 2.0 * math.sqrt(L.size) / eta, 0.0, 0.0, 0.0)


@kernel
def tsallis_moved(anchor: Anchor, L_before: float, L_after: float) -> Anchor:
    """Return the anchor after one arm's loss went up from ``L_before`` to ``L_after``."""
    old = 1.0 / (L_before - anchor.x)
    new = 1.0 / (L_after - anchor.x)
    S2 = anchor.S2 + (new * new - old * old)
    noise = _CANCELED * (old * old)
    if noise > S2:
        return Anchor(anchor.x, 0.0, 0.0, 0.0)  # the sums would be rounding errors
    return Anchor(
        anchor.x,
        S2,
        anchor.S3 + (new * new * new - old * old * old),
        anchor.S4 + (new * new * new * new - old * old * old * old),
    )


@kernel
def tsallis(L: Vector, eta: float, anchor: Anchor, p: Vector, lanes: Vector) -> Anchor:
    """1/2-Tsallis entropy, Psi = -4 sum sqrt(p_i): p_i = 4 / (eta (L_i - x))^2.

    Finds x with sum p = 1 by Halley's method on h(x) = S2(x)^(-1/2), which is decreasing and
    concave with h(x) = 2 / eta at the solution. A step to the right is at most half of
    S2^(-1/2) <= min L - x, so that x stays below min L; plain Newton steps on a concave function
    then converge from the right whatever the start. The last, tiny step is taken by expanding
    (L_i - x)^-2 in it rather than by another pass of divisions: with the anchor of the round
    before, one pass is the rule.

    ``anchor.x`` must be below min L; ``anchor.S2 = 0`` says that its sums are not known. Fills
    ``p`` with (L_i - x)^-2, whose sum is the returned ``S2``.
    """
    anchor, step = _solve(L, eta, anchor, p, lanes)
    for i in range(p.size):
        p[i] = _expanded(p[i], step)
    return anchor


@kernel
def tsallis_mixed(L: Vector, eta: float, anchor: Anchor, beta: float, law: Law) -> Anchor:
    """`tsallis`, normalized, and mixed with a share ``beta`` of the uniform distribution."""
    q, n = law.q, law.q.size
    anchor, step = _solve(L, eta, anchor, q, law.room)
    a, b = (1.0 - beta) / anchor.S2, beta / n
    if n < LANES:
        for i in range(n):
            q[i] = a * _expanded(q[i], step) + b
    else:
        for i in range(n):
            q[i] = _expanded(q[i], step)
        blend(law, a, b)
    return anchor


@kernel
def _solve(L: Vector, eta: float, anchor: Anchor, d: Vector, lanes: Vector) -> tuple[Anchor, float]:
    """The anchor of the solution; ``d`` is left at 1 / (L_i - x) for an x that is a step away."""
    x, S2, S3, S4 = anchor.x, anchor.S2, anchor.S3, anchor.S4
    if S2 > 0.0:
        x += halley_step(S2, S3, S4, eta)
    step = 0.0
    for _ in range(_MOST_PASSES):
        S2, S3, S4 = _power_sums(L, x, d, lanes)
        step = halley_step(S2, S3, S4, eta)
        if abs(step) * math.sqrt(S2) <= _EXPANDED:
            break
        x += step
    S2, S3 = S2 + step * (2.0 * S3 + step * (3.0 * S4)), S3 + 3.0 * step * S4
    return Anchor(x + step, S2, S3, S4), step


@kernel
def _expanded(d: float, step: float) -> float:
    """From d = 1 / (L_i - x) to (L_i - x - step)^-2, to third order in the step."""
    s = step * d
    return d * d * (1.0 + s * (2.0 + s * (3.0 + 4.0 * s)))


@kernel
def halley_step(S2: float, S3: float, S4: float, eta: float) -> float:
    """Return the step of x towards S2(x) = eta^2 / 4; see `tsallis`."""
    root = math.sqrt(S2)
    inverse = 1.0 / (S2 * S3)
    newton = S2 * S2 * (1.0 - root * (2.0 / eta)) * inverse
    bend = 1.5 * newton * (S2 * S4 - S3 * S3) * inverse
    if abs(bend) < 0.01:
        step = newton * (1.0 - bend * (1.0 - bend))  # 1 / (1 + bend), without waiting for it
    elif abs(bend) < 0.5:
        step = newton / (1.0 + bend)
    else:
        step = newton
    return step if step * root <= 0.5 else 0.5 / root


@kernel
def _power_sums(L: Vector, x: float, p: Vector, lanes: Vector) -> tuple[float, float, float]:
    n = L.size
    S2 = S3 = S4 = 0.0
    if n < LANES:
        for i in range(n):
            d = 1.0 / (L[i] - x)
            d2 = d * d
            p[i] = d
            S2 += d2
            S3 += d2 * d
            S4 += d2 * d2
        return S2, S3, S4
    lanes[: 3 * LANES] = 0.0
    lanes2, lanes3, lanes4 = lanes[:LANES], lanes[LANES : 2 * LANES], lanes[2 * LANES : 3 * LANES]
    whole = n - n % LANES
    for base in range(0, whole, LANES):
        L_row, p_row = L[base : base + LANES], p[base : base + LANES]
        for j in range(LANES):
            d = 1.0 / (L_row[j] - x)
            d2 = d * d
            p_row[j] = d
            lanes2[j] += d2
            lanes3[j] += d2 * d
            lanes4[j] += d2 * d2
    for i in range(whole, n):
        d = 1.0 / (L[i] - x)
        d2 = d * d
        p[i] = d
        S2 += d2
        S3 += d2 * d
        S4 += d2 * d2
    return S2 + fold(lanes2), S3 + fold(lanes3), S4 + fold(lanes4)


@kernel
def shannon(L: Vector, eta: float, p: Vector, lanes: Vector) -> float:
    """Shannon entropy, Psi = sum p_i ln p_i: p_i proportional to exp(-eta L_i).

    Fills ``p`` with exp(-eta (L_i - min L)) and returns their sum.
    """
    n = L.size
    smallest = least(L)
    for i in range(n):
        p[i] = math.exp(-eta * (L[i] - smallest))
    return total(p, lanes)


@kernel
def shannon_mixed(L: Vector, eta: float, beta: float, law: Law) -> None:
    """`shannon`, normalized, and mixed with a share ``beta`` of the uniform distribution."""
    sum_p = shannon(L, eta, law.q, law.room)
    blend(law, (1.0 - beta) / sum_p, beta / law.q.size)


def check_lambda(lam: float, n: int) -> None:
    """Reject a lambda from which a `log_barrier` over ``n`` arms might not find its own."""
    require(0.0 <= lam <= n * (1.0 + ROUNDING), "a solve would start nowhere")


@kernel
def log_barrier(L: Vector, eta: float, lam: float, p: Vector, lanes: Vector) -> tuple[float, float]:
    """Log barrier, Psi = -sum ln p_i: p_i = 1 / (eta (L_i - min L) + lambda).

    Finds lambda with sum p = 1 by Halley's method on h = 1 / S1, S_j = sum_i p_i^j. Like any
    harmonic mean, h is concave; it increases with lambda, and h = 1 at the solution, which is at
    least 1 because no p_i exceeds 1. Newton steps therefore converge from the left, and a step to
    the left is cut at 1. The last, tiny step is taken by expanding 1 / (.. + lambda) in it.

    Starts from ``lam``, whatever it is. Fills ``p`` and returns lambda and the sum of p, which is
    1 up to rounding.
    """
    smallest = least(L)
    lam = max(lam, 1.0)
    step = 0.0
    for _ in range(_MOST_PASSES):
        S1, S2, S3 = _inverse_sums(L, smallest, eta, lam, p, lanes)
        step = S1 * (S1 - 1.0) / S2
        bend = step * (S2 / S1 - S3 / S2)
        if abs(bend) < 0.5:
            step /= 1.0 + bend
        step = max(step, 1.0 - lam)
        if abs(step) * S1 <= _EXPANDED:
            break
        lam += step
    for i in range(p.size):
        d = p[i]
        s = step * d
        p[i] = d * (1.0 - s * (1.0 - s * (1.0 - s)))
    return lam + step, total(p, lanes)


@kernel
def log_barrier_mixed(L: Vector, eta: float, lam: float, law: Law) -> float:
    """`log_barrier`, normalized; returns lambda."""
    lam, sum_p = log_barrier(L, eta, lam, law.q, law.room)
    blend(law, 1.0 / sum_p, 0.0)
    return lam


@kernel
def _inverse_sums(
    L: Vector, smallest: float, eta: float, lam: float, p: Vector, lanes: Vector
) -> tuple[float, float, float]:
    n = L.size
    S1 = S2 = S3 = 0.0
    whole = n - n % LANES
    if whole > 0:
        lanes[: 3 * LANES] = 0.0
        lanes1, lanes2 = lanes[:LANES], lanes[LANES : 2 * LANES]
        lanes3 = lanes[2 * LANES : 3 * LANES]
        for base in range(0, whole, LANES):
            L_row, p_row = L[base : base + LANES], p[base : base + LANES]
            for j in range(LANES):
                d = 1.0 / (eta * (L_row[j] - smallest) + lam)
                p_row[j] = d
                lanes1[j] += d
                lanes2[j] += d * d
                lanes3[j] += d * d * d
        S1, S2, S3 = fold(lanes1), fold(lanes2), fold(lanes3)
    for i in range(whole, n):
        d = 1.0 / (eta * (L[i] - smallest) + lam)
        p[i] = d
        S1 += d
        S2 += d * d
        S3 += d * d * d
    return S1, S2, S3


@kernel
def total(values: Vector, lanes: Vector) -> float:
    """Return the sum of ``values``, in an order that does not depend on the machine."""
    n = values.size
    result = 0.0
    whole = n - n % LANES
    if whole > 0:
        sums = lanes[:LANES]
        sums[:] = 0.0
        for base in range(0, whole, LANES):
            row = values[base : base + LANES]
            for j in range(LANES):
                sums[j] += row[j]
        result = fold(sums)
    for i in range(whole, n):
        result += values[i]
    return result


@kernel
def power(x: float, exponent: float) -> float:
    """x^exponent for x > 0; NumPy's power and the compiler's differ in the last bit."""
    return math.exp(exponent * math.log(x))


@kernel
def power_entropy(L: Vector, eta: float, a: float, law: Law) -> None:
    """Tsallis entropy of any order, Psi = -a sum p_i^(1/a), a > 1; makes ``law`` the solution.

    p_i = (eta (L_i - x))^-b, b = a / (a - 1), where x makes the sum 1.
    h(x) = S_b(x)^(-1/b), S_j = sum_i (L_i - x)^-j, is decreasing and concave, with 1 / eta at the
    solution. No p_i exceeds 1, so that x is at most min L - 1 / eta: from there Newton's steps
    converge from the right.
    """
    q, room, b = law.q, law.room, a / (a - 1.0)
    smallest = least(L)
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
