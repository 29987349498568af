"""Kernels as Python runs them: the same functions, which then call one another interpreted.

A kernel's name stands for compiled code wherever it is called from Python. Its mirror is a copy of
the function in which the names of kernels, and of functions that may call kernels, stand for their
mirrors: among its globals, in its closure and in modules. It gives the same results to the last
bit, some fifty times more slowly, and at once.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from unbounded.jit.kernel import IN_PYTHON, Pointer

_mirrors: dict[FunctionType, Callable[..., Any]] = {}


def interpreted(kernel: Any) -> Callable[..., Any]:
    """Return the mirror of a kernel, or of a function that calls kernels.

    Examples
    --------
    >>> from unbounded.jit.interpreter import interpreted
    >>> from unbounded.jit.kernel import kernel
    >>> @kernel
    ... def twice(x):
    ...     return x + x
    >>> @kernel
    ... def four_times(x):
    ...     return twice(twice(x))
    >>> interpreted(four_times)("ab")  # nothing is compiled
    'abababab'
    """
    function = getattr(kernel, "py_func", kernel)
    if function not in _mirrors:
        names = set(_names(function.__code__))
        namespace: dict[str, Any] = {"__builtins__": builtins, "__name__": function.__module__}
        closure = tuple(CellType() for _ in function.__closure__ or ())
        mirror = FunctionType(
            function.__code__, namespace, function.__name__, function.__defaults__, closure or None
        )
        mirror.__kwdefaults__ = function.__kwdefaults__
        mirror.__qualname__ = function.__qualname__
        _mirrors[function] = mirror  # before its names: functions may call themselves
        roots = {"unbounded", function.__module__.partition(".")[0]}
        for name in names & function.__globals__.keys():
            namespace[name] = _mirror(function.__globals__[name], names, roots)
        for cell, original in zip(closure, function.__closure__ or (), strict=True):
            cell.cell_contents = _mirror(original.cell_contents, names, roots)
    return _mirrors[function]


def quietly(kernel: Any) -> Callable[..., Any]:
    """The mirror of a kernel that is called from outside: like compiled code, it does not warn of
    what it is meant to do."""
    silent: Callable[..., Any] = np.errstate(all="ignore")(interpreted(kernel))
    return silent


def interpreted_pointer(pointed: Callable[[], Any]) -> Any:
    """Return what a `Pointer`, or a function that stands in for one, points to."""
    return interpreted(pointed.kernel) if isinstance(pointed, Pointer) else pointed()


def _mirror(value: Any, names: set[str], roots: set[str]) -> Any:
    """What a name means in a mirror; ``roots`` are the packages whose functions are mirrored."""
    if hasattr(value, "py_func"):
        return interpreted(value)
    if isinstance(value, Pointer):
        return lambda: interpreted(value.kernel)
    if isinstance(value, FunctionType) and value.__module__.partition(".")[0] in roots:
        return interpreted(value)
    if isinstance(value, ModuleType) and value.__name__.partition(".")[0] in roots:
        used = {name: vars(value)[name] for name in names & vars(value).keys()}
        return SimpleNamespace(**{name: _mirror(part, names, roots) for name, part in used.items()})
    return next((python for compiled, python in IN_PYTHON.items() if compiled is value), value)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
