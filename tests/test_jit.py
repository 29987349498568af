"""Kernels, and what else is compiled."""

from __future__ import annotations

import gc
import weakref

import numba
import numpy as np
import pytest
from numba import types

from unbounded._jit import borrowed, kernel, pointer, subroutine

if numba.config.DISABLE_JIT:
    pytest.skip("nothing is compiled", allow_module_level=True)


@kernel
def call(function, x):
    return function(x)


@pytest.mark.parametrize("made", [lambda f: f, kernel, subroutine])
def test_a_pointer_is_a_value_that_kernels_call(made):
    def double(x):
        return 2.0 * x

    def triple(x):
        return 3.0 * x

    signature = types.float64(types.float64)
    before = len(call.overloads)
    assert call(pointer(made(double), signature), 4.0) == 8.0
    assert call(pointer(made(triple), signature), 4.0) == 12.0
    assert len(call.overloads) <= before + 1  # compiled once


def test_a_pointer_keeps_its_code_alive():
    def double(x):
        return 2.0 * x

    value = pointer(kernel(double), types.float64(types.float64))
    library = weakref.ref(value._library)
    del double
    gc.collect()
    assert library() is not None
    assert call(value, 4.0) == 8.0
    del value


def test_functions_keep_their_names():
    """A kernel has a name of its own in machine code, not in Python."""

    def double(x):
        "Twice."
        return 2.0 * x

    name = double.__qualname__
    made = kernel(double)
    assert made(2.0) == 4.0
    assert double.__qualname__ == made.__qualname__ == name
    assert made.__doc__ == "Twice."
    assert made.__module__ == __name__


def test_borrowed_arrays_are_the_same_arrays():
    @kernel
    def fill(arrays):
        one, other = borrowed(arrays)
        one[:] = 1.0
        other[0] += 1.0

    arrays = np.zeros(2), np.zeros(2)
    fill(arrays)
    assert [array.tolist() for array in arrays] == [[1.0, 1.0], [1.0, 0.0]]
