"""Four float64 at a time, for the few kernels whose loops the compiler does not vectorise well.

A `load` gives four neighbours of an array as one value that lives in a register; ``add`` and the
other functions work on each of the four as the same operation on a float64 would, so results do not
depend on how the machine carries it out. No bounds are checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic, models, register_model

WIDTH = 4
_DOUBLE = ir.DoubleType()
_FOUR = ir.VectorType(_DOUBLE, WIDTH)
_INDEX = ir.IntType(32)


class _Vec4(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Vec4")


_vec4 = _Vec4()


@register_model(_Vec4)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _FOUR)


def _address(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Of the first of four entries of the array ``arguments[0]``, from ``arguments[1]`` on."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    entry = builder.gep(array.data, [arguments[1]])
    return builder.bitcast(entry, _FOUR.as_pointer())


@intrinsic
def load(typing_context: Any, array: Any, i: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_address(context, builder, signature, arguments), align=8)

    return _vec4(array, types.intp), generate


@intrinsic
def store(typing_context: Any, array: Any, i: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _address(context, builder, signature, arguments), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, _vec4), generate


@intrinsic
def fill(typing_context: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        one = builder.insert_element(ir.Constant(_FOUR, ir.Undefined), arguments[0], _INDEX(0))
        zeros = ir.Constant(ir.VectorType(_INDEX, WIDTH), [0] * WIDTH)
        return builder.shuffle_vector(one, ir.Constant(_FOUR, ir.Undefined), zeros)

    return _vec4(types.float64), generate


def _elementwise(combine: Callable[[Any, Any, Any], Any]) -> Any:
    @intrinsic
    def operation(typing_context: Any, x: Any, y: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return combine(builder, *arguments)

        return _vec4(_vec4, _vec4), generate

    return operation


def _smaller(builder: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", x, y), x, y)


def _is_above(builder: Any, x: Any, y: Any) -> Any:
    ones, zeros = (ir.Constant(_FOUR, [value] * WIDTH) for value in (1.0, 0.0))
    return builder.select(builder.fcmp_ordered(">", x, y), ones, zeros)


@intrinsic
def total(typing_context: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, b, c, d = (builder.extract_element(arguments[0], _INDEX(k)) for k in range(WIDTH))
        return builder.fadd(builder.fadd(a, b), builder.fadd(c, d))

    return types.float64(_vec4), generate


add = _elementwise(lambda builder, x, y: builder.fadd(x, y))
subtract = _elementwise(lambda builder, x, y: builder.fsub(x, y))
multiply = _elementwise(lambda builder, x, y: builder.fmul(x, y))
smaller = _elementwise(_smaller)
above = _elementwise(_is_above)

if numba.config.DISABLE_JIT:  # the same in NumPy, for debugging
    add, subtract, multiply, smaller = np.add, np.subtract, np.multiply, np.minimum

    def load(array: Any, i: int) -> Any:
        return array[i : i + WIDTH].copy()

    def store(array: Any, i: int, x: Any) -> None:
        array[i : i + WIDTH] = x

    def fill(x: float) -> Any:
        return np.full(WIDTH, x)

    def above(x: Any, y: Any) -> Any:
        return (x > y).astype(np.float64)

    def total(x: Any) -> float:
        return float((x[0] + x[1]) + (x[2] + x[3]))
