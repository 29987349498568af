"""Four numbers at a time are four numbers."""

import numpy as np
import pytest

from unbounded._jit import kernel
from unbounded.core.occupancy import vec4


@kernel
def every_operation(x, y, i, out):
    a, b = vec4.load(x, i), vec4.load(y, i)
    vec4.store(out, 0, vec4.add(a, b))
    vec4.store(out, 4, vec4.subtract(a, b))
    vec4.store(out, 8, vec4.multiply(a, b))
    vec4.store(out, 12, vec4.smaller(a, b))
    vec4.store(out, 16, vec4.above(a, b))
    vec4.store(out, 20, vec4.fill(x[i]))
    return vec4.total(a)


@pytest.mark.parametrize("i", range(5))  # any alignment
def test_operations_are_those_of_float64(i):
    rng = np.random.default_rng(i)
    x, y = rng.normal(size=(2, 9)) * 10.0 ** rng.integers(-300, 300, size=(2, 9))
    y[::3] = x[::3]
    out = np.full(25, 7.0)
    with np.errstate(over="ignore", under="ignore"):
        total = every_operation(x, y, i, out)
        a, b = x[i : i + 4], y[i : i + 4]
        parts = [a + b, a - b, a * b, np.minimum(a, b), a > b, np.full(4, x[i])]
        assert total == (a[0] + a[1]) + (a[2] + a[3])
    assert np.array_equal(out[:24], np.concatenate(parts))
    assert out[24] == 7.0  # nothing else is written
