"""``@kernel``: every Numba option of the package, in one place.

``fastmath`` stays off: with it, results depended on memory addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from unbounded.jit.cache import callback, dispatcher, refer

try:
    from numba.core.cgutils import raw_memmove
    from numba.core.imputils import impl_ret_borrowed
except ImportError as error:  # then intrinsics are kernels
    _HAS_INTRINSICS = False
    refer(f"Numba {numba.__version__} lacks what intrinsics need: {error}")
else:
    _HAS_INTRINSICS = True

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": False,
    "forceinline": True,
}


def kernel(function: F, *, nogil: bool = True, counts: bool = False) -> F:
    """Compile ``function`` on first call and cache the machine code for later processes.

    Kernels that call it inline it: at ten arms a call would cost more than what it does.

    Parameters
    ----------
    function : callable
    nogil : bool
        Whether other threads run while it does.
    counts : bool
        Whether references to arrays are counted. A kernel may do without if neither it nor what
        it calls makes arrays, closures or expressions of whole arrays.
    """
    return _compiled(function, _OPTIONS | {"nogil": nogil}, counts)


def subroutine(function: F, *, counts: bool = False) -> F:
    """As `kernel`, but callers call it: for long code beside the hottest loops."""
    return _compiled(function, _OPTIONS | {"forceinline": False}, counts)


def counting_kernel(function: F, *, nogil: bool = True) -> F:
    """Compile ``function`` on first call and cache the machine code for later processes.

    Kernels that call it inline it. It may make arrays and call any kernel.
    """
    return kernel(function, nogil=nogil, counts=True)


def counting_subroutine(function: F) -> F:
    """As `kernel`, but callers call it: for long code beside the hottest loops."""
    return subroutine(function, counts=True)


def counted(function: Any) -> bool:
    """Return whether references to arrays are counted in a kernel, or in one to be made."""
    return bool(getattr(getattr(function, "py_func", function), "counts", True))


def _compiled(function: F, options: dict[str, Any], counts: bool) -> F:
    if numba.config.DISABLE_JIT:  # for debugging: kernels are Python functions
        return function
    compiled: F = dispatcher(function, options, counts=counts)
    return compiled


def direct(entry: Any) -> Any:
    """Return what calls an entry without asking for the types of its arguments, if there is such.

    An entry that was compiled for one signature is only ever called with arguments of these types.
    """
    found = list(getattr(entry, "overloads", {}).values())
    return found[0].entry_point if len(found) == 1 else entry


def pointer(function: Callable[..., Any], signature: Any) -> Any:
    """Compile ``function`` for this ``signature`` into a value that kernels take as an argument.

    A kernel that takes such a pointer is compiled once, whatever function it points to. The
    function may be a kernel itself: its machine code is then called and not copied, so that a
    caller of a long one compiles quickly.
    """
    if numba.config.DISABLE_JIT:
        return function
    python = getattr(function, "py_func", function)
    return callback(python, signature, _OPTIONS, counts=counted(function))


class Pointer:
    """A kernel that others take as an argument, compiled when it is asked for by a call."""

    def __init__(self, kernel: Callable[..., Any], signature: Any) -> None:
        self.kernel = kernel
        self._signature = signature
        self._compiled: Any = None

    def __call__(self) -> Any:
        if self._compiled is None:
            self._compiled = pointer(self.kernel, self._signature)
        return self._compiled


@intrinsic
def borrowed(typing_context: Any, arrays: Any) -> Any:
    """In a kernel: the same array, or tuple of arrays, without reference counts.

    Passing arrays about costs an atomic increment and decrement each time, which at ten arms is
    most of a round. The caller must keep the arrays alive for as long as the kernel runs.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _without_counts(context, builder, signature.args[0], arguments[0])

    return arrays(arrays), generate


def _without_counts(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Array):
        view = context.make_array(kind)(context, builder, value)
        view.meminfo = view.meminfo.type(None)
        view.parent = view.parent.type(None)
        return view._getvalue()
    if isinstance(kind, types.BaseTuple):
        for i, part in enumerate(kind):
            one = _without_counts(context, builder, part, builder.extract_value(value, i))
            value = builder.insert_value(value, one, i)
    return value


@intrinsic
def assign(typing_context: Any, out: Any, values: Any) -> Any:
    """In a kernel: ``out[:] = values``, for two vectors of one size.

    To be able to say what is wrong with their sizes, Numba compiles its own string functions into
    every process in which an array is assigned to a slice.
    """
    for array in (out, values):
        if not isinstance(array, types.Array) or (array.ndim, array.layout) != (1, "C"):
            raise TypingError("assign needs two contiguous vectors")
    if out.dtype != values.dtype:
        raise TypingError("assign needs two vectors of one type")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, of = (
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args, arguments, strict=True)
        )
        raw_memmove(builder, to.data, of.data, of.nitems, of.itemsize)
        return context.get_dummy_value()

    return types.void(out, values), generate


@intrinsic
def section(typing_context: Any, array: Any, begin: Any, end: Any) -> Any:
    """In a kernel: ``array[begin:end]`` of a vector, for 0 <= begin <= end <= array.size.

    Numba's own takes ten times as much code, because it must be prepared for any numbers.
    """
    if not isinstance(array, types.Array) or (array.ndim, array.layout) != (1, "C"):
        raise TypingError("section needs a contiguous vector")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value, first, last = arguments
        view = context.make_array(array)(context, builder, value)
        size = builder.sub(last, first)
        view.data = builder.gep(view.data, [first])
        view.nitems = size
        view.shape = builder.insert_value(view.shape, size, 0)
        return impl_ret_borrowed(context, builder, array, view._getvalue())

    return array(array, types.int64, types.int64), generate


@intrinsic
def integers(typing_context: Any, vector: Any) -> Any:
    """In a kernel: ``vector.view(np.int64)`` of float64, without Numba's code for other types."""
    return _seen_as(types.int64, vector)


@intrinsic
def words(typing_context: Any, vector: Any) -> Any:
    """In a kernel: ``vector.view(np.uint64)`` of float64."""
    return _seen_as(types.uint64, vector)


def _seen_as(dtype: Any, vector: Any) -> Any:
    if vector != types.Array(types.float64, 1, "C"):
        raise TypingError("needs a contiguous vector of float64")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = context.make_array(vector)(context, builder, arguments[0])
        view = context.make_array(signature.return_type)(context, builder)
        # One by one: what is taken by `getattr` has no certain hash, and would not be cached.
        view.meminfo, view.parent = given.meminfo, given.parent
        view.nitems, view.itemsize = given.nitems, given.itemsize
        view.shape, view.strides = given.shape, given.strides
        view.data = builder.bitcast(given.data, view.data.type)
        return impl_ret_borrowed(context, builder, signature.return_type, view._getvalue())

    return types.Array(dtype, 1, "C")(vector), generate


def _unchanged(arrays: Any) -> Any:
    return arrays


def _assigned(out: Any, values: Any) -> None:
    out[:] = values


def _section(array: Any, begin: int, end: int) -> Any:
    return array[begin:end]


def _integers(vector: Any) -> Any:
    return vector.view(np.int64)


def _words(vector: Any) -> Any:
    return vector.view(np.uint64)


IN_PYTHON: dict[Any, Callable[..., Any]] = {
    borrowed: _unchanged,
    assign: _assigned,
    section: _section,
    integers: _integers,
    words: _words,
}
"""What Python runs instead of what only a compiler can."""

if numba.config.DISABLE_JIT:  # for debugging: kernels are Python functions
    borrowed, assign, section, integers, words = IN_PYTHON.values()
elif not _HAS_INTRINSICS:
    borrowed, assign, section, integers, words = map(counting_kernel, IN_PYTHON.values())
