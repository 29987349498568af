"""Products with powers of two: compiled and interpreted give the same, at any size."""

import math
import sys

import numpy as np
import pytest

from unbounded.core.scaled import LARGEST, added, capped, frexp, ldexp, shift_each, widths
from unbounded.jit.interpreter import interpreted
from unbounded.jit.kernel import counting_kernel as kernel

TOP = sys.float_info.max


@kernel
def compiled(x, e):
    return ldexp(x, e)


@pytest.mark.parametrize("x", [0.0, -0.0, 0.5, -0.75, 5e-324, TOP, -TOP, math.inf])
@pytest.mark.parametrize("e", [-3000, -1074, -1, 0, 1, 500, 1024, 1025, 3000])
def test_as_c_has_it(x, e):
    with np.errstate(over="ignore"):
        expected = float(np.ldexp(x, e))
    for function in (ldexp, compiled):
        found = function(x, e)
        assert found == expected
        assert math.copysign(1.0, found) == math.copysign(1.0, x)


@kernel
def compiled_frexp(x):
    return frexp(x)


@pytest.mark.parametrize("x", [0.0, 0.5, 1.0, 0.3, 2.3e-308, 2.0**-1022, 2.0**-1030, 5e-324, TOP])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_mantissas_as_c_has_them(x, sign):
    expected = math.frexp(sign * x)
    for function in (frexp, compiled_frexp):
        assert function(sign * x) == expected
        assert math.copysign(1.0, function(sign * x)[0]) == sign


@pytest.mark.parametrize("e", [-1030, -1022, -1000])
def test_products_that_lose_digits_are_rounded_once(e):
    for x in np.random.default_rng(0).random(100) * 2.0**-40:
        assert compiled(x, e) == float(np.ldexp(x, e))


def test_capped_at_the_largest_float():
    for x, e, expected in (
        (0.5, 3, 4.0), (0.5, 1024, 2.0**1023), (0.5, 1025, TOP), (0.99, 5000, TOP), (0.0, 9999, 0.0)
    ):  # fmt: skip
        assert capped(x, e) == expected
        assert widths(np.array([x]), np.array([float(e)])).tolist() == [expected]
    assert LARGEST == TOP


@pytest.mark.parametrize("function", [added, interpreted(added)])
def test_sums_keep_their_exponent(function):
    for x, e, y, f, expected in (
        (0.5, 3, 0.75, 1, (0.6875, 3)), (0.75, 1024, 0.5, 1024, (0.625, 1025)),
        (0.5, -2000, 0.5, -2000, (0.5, -1999)), (0.5, 4000, 0.5, -4000, (0.5, 4000)),
        (0.0, 5000, 0.5, 7, (0.5, 7)), (0.5, 7, 0.0, 5000, (0.5, 7)), (0.0, 3, 0.0, 9, (0.0, 3)),
    ):  # fmt: skip
        assert function(x, e, y, f) == expected


@pytest.mark.parametrize("function", [shift_each, interpreted(shift_each)])
@pytest.mark.parametrize("shift", [-3000, -7, 1, 1500])
def test_a_shift_is_exact_where_a_factor_would_overflow(function, shift):
    values = np.array([0.0, -0.0, 0.75, -3.0, 2.0**-1000, math.inf])
    with np.errstate(over="ignore"):
        expected = np.ldexp(values, shift)
    function(values, shift)
    assert values.tobytes() == expected.tobytes()
