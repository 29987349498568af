"""What a kernel is, as a hash: its bytecode, and every value that its code takes in.

Compiled code is kept under this hash. It is taken from the objects in memory that are compiled, not
from their names or files: from code with its constants, defaults, what it closes over, and what its
global names mean now; through the kernels that it calls, in whatever module they are. So it makes
no difference who wrote a kernel, and an edit of a file under a running process changes nothing.

Where a hash cannot say for certain what a value is, there is none, and the code is not kept:
`Uncertain` says why. Python, NumPy and Numba are taken by name; their versions belong to the key.
"""

from __future__ import annotations

import builtins
import dis
import hashlib
import struct
import sys
from collections.abc import Callable, Iterator
from types import CodeType, EllipsisType, FunctionType, ModuleType, NoneType
from typing import Any

import numpy as np
from numba import types

_BY_NAME = {"builtins", "math", "cmath", "operator", "_operator", "numpy", "numba", "llvmlite"}
_PLAIN = (NoneType, EllipsisType, bool, int, str, bytes)
_NUMBERS = "biufc"  # kinds of arrays


class Uncertain(Exception):
    """There is something of which no hash can say for certain what it is."""


class Kernel:
    """A function that is compiled, and how."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.function = function
        self.options = options
        self.compiled_as: bytes | None = None
        """Its hash when it was first compiled: what its callers take in, whatever has happened
        to its global names since then."""


class Fingerprint:
    """Hashes of values as they are now.

    Parameters
    ----------
    opened : callable
        From one of Numba's objects to the `Kernel` or function that it stands for, from any other
        value to itself; raises `Uncertain`.
    """

    def __init__(self, opened: Callable[[Any], Any]) -> None:
        self._opened = opened
        self._known: dict[int, bytes | Uncertain] = {}
        self._within: list[int] = []
        self._alive: list[Any] = []  # so that an id means the same object throughout
        self.modules: set[str] = set()
        """Where the functions are from that were met."""

    def of(self, value: Any) -> bytes:
        """The hash of a value; raises `Uncertain`."""
        plain = _of_plain(value)
        if plain is not None:
            return plain
        if isinstance(value, tuple | frozenset | slice | range):
            return self._of_parts(value)
        if _by_name(value):
            return _mix("by name", f"{value.__module__}:{value.__qualname__}".encode())
        value = self._opened(value)
        key = id(value)
        if key in self._within:  # it calls itself, perhaps by way of others
            return _mix("again", str(len(self._within) - self._within.index(key)).encode())
        if key not in self._known:
            self._alive.append(value)
            self._within.append(key)
            try:
                self._known[key] = self._of_object(value)
            except Uncertain as reason:
                self._known[key] = reason
            finally:
                self._within.pop()
        known = self._known[key]
        if isinstance(known, Uncertain):
            raise known
        return known

    def _of_parts(self, value: Any) -> bytes:
        name = type(value).__name__
        if type(value) is slice:
            return _mix(name, *map(self.of, (value.start, value.stop, value.step)))
        if type(value) is range:
            return _mix(name, repr(value).encode())
        parts = [self.of(part) for part in value]
        if type(value) is frozenset:
            return _mix(name, *sorted(parts))
        if type(value) is tuple:
            return _mix(name, *parts)
        return _mix("instance", self.of(type(value)), *parts)

    def _of_object(self, value: Any) -> bytes:
        if isinstance(value, np.ufunc) and getattr(np, value.__name__, None) is value:
            return _mix("ufunc", value.__name__.encode())
        if isinstance(value, Kernel):
            options = tuple(sorted(value.options.items()))
            found = _mix("kernel", self.of(value.function), self.of(options))
            if value.compiled_as not in (None, found):
                raise Uncertain(f"{value.function.__qualname__} was compiled as something else")
            return found
        if isinstance(value, FunctionType):
            return self._of_function(value)
        if isinstance(value, type) and tuple in value.__bases__ and hasattr(value, "_fields"):
            defaults = tuple(value._field_defaults.items())
            names = (value.__module__, value.__qualname__, *value._fields)
            return _mix("NamedTuple", self.of(names), self.of(defaults))
        raise Uncertain(f"{value!r} of type {type(value).__name__}")

    def _of_function(self, function: FunctionType) -> bytes:
        self.modules.add(function.__module__)
        code = function.__code__
        parts = [self._of_code(code), self.of(function.__defaults__)]
        parts.append(self.of(tuple(sorted((function.__kwdefaults__ or {}).items()))))
        for cell in function.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:
                raise Uncertain(f"{function.__qualname__} closes over nothing yet") from None
            parts.append(self.of(content))
        # Some of these names are attributes only. They do no harm, but must not stand in the way.
        names = {name for part in _codes(code) for name in part.co_names}
        if "getattr" in names:
            raise Uncertain(f"{function.__qualname__} takes attributes by getattr")
        for name in sorted(names):
            for space in (function.__globals__, vars(builtins)):
                if name in space:
                    parts.append(name.encode())
                    try:
                        parts.append(self._of_global(space[name], names))
                    except Uncertain:
                        if name in _globals_of(code):
                            raise
                    break
        return _mix("function", *parts)

    def _of_global(self, value: Any, names: set[str]) -> bytes:
        if not isinstance(value, ModuleType):
            return self.of(value)
        if value.__name__.partition(".")[0] in _BY_NAME:
            return _mix("module", value.__name__.encode())
        if id(value) in self._within:
            return _mix("again")
        # Any of the names may be an attribute of this module.
        if "__getattr__" in vars(value):
            raise Uncertain(f"{value.__name__} makes its attributes as they are asked for")
        parts = []
        self._within.append(id(value))
        try:
            for name in sorted(names & vars(value).keys()):
                parts += [name.encode(), self._of_global(vars(value)[name], names)]
        finally:
            self._within.pop()
        return _mix("attributes", value.__name__.encode(), *parts)

    def _of_code(self, code: CodeType) -> bytes:
        names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
        counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
        consts = [
            self._of_code(const) if isinstance(const, CodeType) else self.of(const)
            for const in code.co_consts
        ]
        return _mix(
            "code", code.co_code, code.co_exceptiontable, repr((names, counts)).encode(), *consts
        )


def _mix(kind: str, *parts: bytes) -> bytes:
    """A hash that tells apart kinds, and where one part ends and the next begins."""
    digest = hashlib.sha256(kind.encode())
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.digest()


def _of_plain(value: Any) -> bytes | None:
    kind = type(value)
    if kind in _PLAIN:
        return _mix(kind.__name__, repr(value).encode())
    if kind is float or kind is complex:
        whole = complex(value)
        return _mix(kind.__name__, struct.pack("<dd", whole.real, whole.imag))
    if isinstance(value, types.Number | types.Boolean):
        return _mix("Numba type", repr(value).encode())
    if kind is np.ndarray and value.dtype.kind in _NUMBERS:
        # Its layout is part of its type.
        flags = value.flags
        layout = (value.dtype.str, value.shape, flags.c_contiguous, flags.f_contiguous,
                  flags.aligned, flags.writeable)  # fmt: skip
        return _mix("array", repr(layout).encode(), value.tobytes())
    if isinstance(value, np.generic) and value.dtype.kind in _NUMBERS:
        return _mix("scalar", value.dtype.str.encode(), value.tobytes())
    if isinstance(value, np.dtype) and value.kind in _NUMBERS:
        return _mix("dtype", value.str.encode())
    return None


def _by_name(value: Any) -> bool:
    """Whether it is what its name means in a library whose version belongs to the key."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return False
    if module.partition(".")[0] not in _BY_NAME:
        return False
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is value


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _codes(const)


def _globals_of(code: CodeType) -> set[str]:
    """The names that code really takes from its globals; slow."""
    return {
        step.argval
        for part in _codes(code)
        for step in dis.get_instructions(part)
        if step.opname.startswith("LOAD_") and ("GLOBAL" in step.opname or "NAME" in step.opname)
    }
