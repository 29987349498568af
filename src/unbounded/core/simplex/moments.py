"""Power sums M_j = sum_k a_k u_k^j, j < TERMS, that follow a change of one term in O(TERMS)."""

from __future__ import annotations

import numpy as np

from unbounded.core.arrays import Vector
from unbounded.core.simplex.partial_sums import LANES, fold
from unbounded.jit.kernel import kernel, subroutine

TERMS = 24
ROOM = TERMS + 4  # with zeros behind, so that series may start at M_1 or M_2
_CHUNK = 16 * LANES  # arms whose powers stay in the first cache


@subroutine
def gather(M: Vector, a: Vector, u: Vector, lanes: Vector) -> None:
    """Fill ``M`` from all the terms; destroys ``a``. ``lanes`` has room for 4 LANES."""
    M[:] = 0.0
    n = a.size
    whole = n - n % LANES
    sums0, sums1 = lanes[:LANES], lanes[LANES : 2 * LANES]
    sums2, sums3 = lanes[2 * LANES : 3 * LANES], lanes[3 * LANES : 4 * LANES]
    for start in range(0, whole, _CHUNK):
        stop = min(start + _CHUNK, whole)
        for j in range(0, TERMS, 4):
            lanes[: 4 * LANES] = 0.0
            for base in range(start, stop, LANES):
                power, value = a[base : base + LANES], u[base : base + LANES]
                for i in range(LANES):
                    p, v = power[i], value[i]
                    sums0[i] += p
                    p *= v
                    sums1[i] += p
                    p *= v
                    sums2[i] += p
                    p *= v
                    sums3[i] += p
                    power[i] = p * v
            M[j] += fold(sums0)
            M[j + 1] += fold(sums1)
            M[j + 2] += fold(sums2)
            M[j + 3] += fold(sums3)
    for i in range(whole, n):
        exchange(M, 0.0, 0.0, a[i], u[i])


@kernel
def exchange(M: Vector, a: float, u: float, b: float, v: float) -> None:
    """Take the term a u^j out of ``M`` and put b v^j into it."""
    uu, vv = u * u, v * v
    u4, v4 = uu * uu, vv * vv
    a0, a1, a2, a3 = a, a * u, a * uu, a * u * uu  # four chains: a product waits for the last
    b0, b1, b2, b3 = b, b * v, b * vv, b * v * vv
    for j in range(0, TERMS, 4):
        M[j] += b0 - a0
        M[j + 1] += b1 - a1
        M[j + 2] += b2 - a2
        M[j + 3] += b3 - a3
        a0 *= u4
        a1 *= u4
        a2 *= u4
        a3 *= u4
        b0 *= v4
        b1 *= v4
        b2 *= v4
        b3 *= v4


@kernel
def series(M: Vector, coefficients: Vector, z: float) -> float:
    """sum_j coefficients_j M_j z^j over the coefficients, whose number is a multiple of four.

    Every fourth term makes a chain of its own (Estrin), so that no product waits for long.
    """
    zz = z * z
    z4 = zz * zz
    s0 = s1 = s2 = s3 = 0.0
    for j in range(coefficients.size - 4, -1, -4):
        s0 = s0 * z4 + coefficients[j] * M[j]
        s1 = s1 * z4 + coefficients[j + 1] * M[j + 1]
        s2 = s2 * z4 + coefficients[j + 2] * M[j + 2]
        s3 = s3 * z4 + coefficients[j + 3] * M[j + 3]
    return (s0 + s1 * z) + (s2 + s3 * z) * zz


def constant(values: object) -> Vector:
    """Coefficients for `series`, which kernels take in as constants."""
    return np.array(values, dtype=np.float64)
