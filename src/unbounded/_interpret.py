"""Kernels as Python runs them: the same functions, which then call one another interpreted.

A kernel's name stands for compiled code wherever it is called from Python. Its mirror is a copy of
the function in which the names of kernels, among its globals, in its closure and in modules of the
package, stand for their mirrors. It gives the same results to the last bit, a hundred times more
slowly, and at once.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

from unbounded._jit import borrowed

_mirrors: dict[Any, Any] = {}  # by the function itself


def interpreted(kernel: Any) -> Callable[..., Any]:
    """The mirror of a kernel, or of a function that calls kernels."""
    function = getattr(kernel, "py_func", kernel)
    if function not in _mirrors:
        names = set(_names(function.__code__))
        namespace: dict[str, Any] = {"__builtins__": builtins, "__name__": function.__module__}
        closure = tuple(CellType() for _ in function.__closure__ or ())
        mirror = FunctionType(
            function.__code__, namespace, function.__name__, function.__defaults__, closure or None
        )
        _mirrors[function] = mirror  # before its names: kernels may call themselves
        for name in names & function.__globals__.keys():
            namespace[name] = _mirror_of(function.__globals__[name], names)
        for cell, original in zip(closure, function.__closure__ or (), strict=True):
            cell.cell_contents = _mirror_of(original.cell_contents, names)
    return _mirrors[function]


def _mirror_of(value: Any, names: set[str]) -> Any:
    if hasattr(value, "py_func"):
        return interpreted(value)
    if isinstance(value, ModuleType) and value.__name__.partition(".")[0] == "unbounded":
        used = {name: getattr(value, name) for name in names if hasattr(value, name)}
        return SimpleNamespace(**{name: _mirror_of(part, names) for name, part in used.items()})
    return _PLAIN.get(id(value), value)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _unchanged(value: Any) -> Any:
    return value


_PLAIN: dict[int, Any] = {id(borrowed): _unchanged}  # names that mean something to the compiler
