"""Kernels, and what else is compiled."""

from __future__ import annotations

import gc
import weakref
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import types

from unbounded.jit.interpreter import interpreted
from unbounded.jit.kernel import assign, borrowed, pointer, section
from unbounded.jit.kernel import counting_kernel as kernel
from unbounded.jit.kernel import counting_subroutine as subroutine

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


def functions_in(made) -> list[str]:
    """The functions in the code of a kernel that Python has called, but for the entry."""
    (result,) = made.overloads.values()
    functions = result.library._get_module_for_linking().functions  # of code from a file, too
    names = [function.name for function in functions if not function.is_declaration]
    return [name for name in names if not name.startswith("_ZN7cpython")]


def test_what_is_taken_in_is_compiled_with_its_caller_only():
    @kernel
    def taken_in(x):
        return x + 1.0

    @kernel
    def caller(x):
        return 2.0 * taken_in(x)

    assert caller(1.0) == 4.0
    assert not taken_in.overloads  # nobody has called it from Python
    (name,) = functions_in(caller)
    assert "caller" in name
    assert taken_in(1.0) == 2.0


def test_what_is_called_is_compiled_once():
    @subroutine
    def called(x):
        return x + 1.0

    @kernel
    def caller(x):
        return 2.0 * called(x)

    @kernel
    def another(x):
        return 3.0 * caller(x) + called(x)

    assert (caller(1.0), another(1.0), called(1.0)) == (4.0, 14.0, 2.0)
    assert not functions_in(called)  # it has an entry from Python, which calls it by its name
    for made in (caller, another):
        (name,) = functions_in(made)
        assert "called" not in name.replace("what_is_called", "")


class Pair(NamedTuple):
    same: np.ndarray
    first: bool


@pytest.mark.parametrize("made", [kernel, subroutine])
def test_what_is_returned_to_python_is_counted(made):
    @made
    def half(array):
        return Pair(array[:2], True)

    for _ in range(2):
        array = np.zeros(4)
        found = half(array)
        assert found.first is True
        assert found.same.shape == (2,)
        found.same[1] = 1.0
        assert array.tolist() == [0.0, 1.0, 0.0, 0.0]
        kept = weakref.ref(array)
        del array
        gc.collect()
        assert kept() is not None  # the view needs it
        assert found.same.tolist() == [0.0, 1.0]
        del found
        gc.collect()
        assert kept() is None


def test_a_kernel_may_call_itself():
    @kernel
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    @subroutine
    def sum_to(n):
        return 0 if n < 1 else n + sum_to(n - 1)

    assert (factorial(5), sum_to(5)) == (120, 15)


@pytest.mark.parametrize("made", [kernel, subroutine])
def test_errors_of_callees_are_seen(made):
    @made
    def refuse(x):
        if x < 0.0:
            raise ValueError("negative", x)
        return x

    @kernel
    def caller(x):
        return refuse(x)

    assert caller(1.0) == 1.0
    with pytest.raises(ValueError, match="negative") as refused:
        caller(-2.0)
    assert refused.value.args[1] == -2.0


def test_arrays_are_assigned():
    @kernel
    def keep(out, values):
        assign(out, values)

    for step in (keep, interpreted(keep)):
        for kind in (np.float64, np.int64):
            out = np.zeros(3, kind)
            step(out, np.arange(3, dtype=kind))
            assert out.tolist() == [0, 1, 2]
    with pytest.raises(numba.TypingError, match="contiguous"):
        keep(np.zeros(6)[::2], np.zeros(3))
    with pytest.raises(numba.TypingError, match="of one type"):
        keep(np.zeros(3), np.zeros(3, np.int64))


def test_a_section_is_a_view():
    @kernel
    def change(array, begin, end):
        view = section(array, begin, end)
        view[0] = view.size
        return view

    for step in (change, interpreted(change)):
        array = np.zeros(5)
        view = step(array, 1, 4)
        assert array.tolist() == [0.0, 3.0, 0.0, 0.0, 0.0]
        view[2] = 7.0
        assert (array[3], view.shape) == (7.0, (3,))
    with pytest.raises(numba.TypingError, match="contiguous"):
        change(np.zeros(6)[::2], 0, 1)


@pytest.mark.parametrize("made", [kernel, subroutine])
def test_constants_are_not_compiled_one_by_one(made, tmp_path, monkeypatch):
    """Unless the kernel must know which: in the control it is an index of a tuple of two types."""
    monkeypatch.setenv("UNBOUNDED_CACHE_DIR", str(tmp_path))  # where nothing is kept yet

    def plus(x, k, on):
        return x + k if on else x

    def entry(x, k):
        return (x, 7)[k]

    add, entry_of = made(plus), made(entry)

    @kernel
    def both(x, k):
        return add(x, 1, True) + add(x, 2, False) + add(x, k, True), entry_of(x, 0), entry_of(x, 1)

    assert both(0.5, 3) == (5.5, 0.5, 7)
    assert len(add._compiler._seen.overloads) == 1
    assert len(entry_of._compiler._seen.overloads) == 2


@pytest.mark.parametrize("enabled", [True, False])
def test_no_garbage_is_collected_while_compiling_and_then_as_before(enabled):
    seen = []

    def noted(context):
        seen.append(gc.isenabled())
        return types.void(), lambda *_: None

    look = numba.extending.intrinsic(noted)

    def fine():
        look()

    def broken():
        return no_such_name  # noqa: F821

    before = gc.isenabled()
    try:
        gc.enable() if enabled else gc.disable()
        kernel(fine)()
        assert seen
        assert not any(seen)
        assert gc.isenabled() == enabled
        with pytest.raises(numba.TypingError):
            kernel(broken)()
        assert gc.isenabled() == enabled
    finally:
        gc.enable() if before else gc.disable()
