"""What a kernel is, as a hash: its bytecode, and every value that its code takes in.

Compiled code is cached under this hash. It is taken from the objects in memory that are compiled,
not from their names or files: from code with its constants, defaults, what it closes over, and what
its global names mean now; through the kernels that it calls, in whatever module they are. So it
makes no difference who wrote a kernel, and an edit of a file under a running process changes
nothing. Comments, docstrings and line numbers are no part of it.

Where a hash cannot say for certain what a value is, there is none, and the code is not cached:
`UncertainError` says why. Python, NumPy and Numba are taken by name; their versions are in the key.
"""

from __future__ import annotations

import builtins
import dis
import hashlib
import struct
import sys
from collections.abc import Callable, Iterator
from functools import cache
from types import CodeType, EllipsisType, FunctionType, ModuleType, NoneType
from typing import Any, NamedTuple

import llvmlite
import numba
import numpy as np
from numba import types

VERSIONS = sys.version, numba.__version__, llvmlite.__version__, np.__version__
"""What all hashes of code are of, beside the code: of kernels, and of what results come from."""

_LIBRARIES = {"builtins", "math", "cmath", "_operator", "numpy", "numba", "llvmlite"}
_PLAIN = (NoneType, EllipsisType, bool, int, str, bytes)
_NUMBERS = "biufc"  # kinds of arrays
_TAKE_CONSTANTS = frozenset(dis.hasconst)


class UncertainError(Exception):
    """There is something of which no hash can say for certain what it is."""


class Kernel:
    """A function that is compiled, and how."""

    def __init__(
        self, function: Callable[..., Any], options: dict[str, Any], *, counts: bool
    ) -> None:
        self.function = function
        self.options = options
        self.counts = counts
        self.text: _Text | None = None  # of its code, which never changes
        self.compiled_as: bytes | None = None
        """Its hash when it was first compiled: what its callers take in, whatever has happened
        to its global names since then."""


class Fingerprint:
    """Hashes of values as they are now.

    Parameters
    ----------
    opened : callable
        From one of Numba's objects to the `Kernel` or function that it stands for, from any other
        value to itself; raises `UncertainError`.
    """

    def __init__(self, opened: Callable[[Any], Any]) -> None:
        self._opened = opened
        self._known: dict[int, bytes | UncertainError] = {}
        self._within: list[int] = []
        self._alive: list[Any] = []  # so that an id means the same object throughout
        self.modules: set[str] = set()
        """Where the functions are from that were met."""
        self.classes: set[type] = set()
        """The NamedTuples that were met."""
        self.kernels: dict[bytes, Any] = {}
        """The kernels that were met, by their hashes."""

    def of(self, value: Any) -> bytes:
        """Return the hash of a value; raises `UncertainError`."""
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
            except UncertainError as reason:
                self._known[key] = reason
            finally:
                self._within.pop()
        known = self._known[key]
        if isinstance(known, UncertainError):
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
        if isinstance(value, np.ufunc):
            name = str(value.__name__)
            if vars(np).get(name) is value:
                return _mix("ufunc", name.encode())
        if isinstance(value, Kernel):
            text = value.text = value.text or _text(value.function.__code__)
            options = (*sorted(value.options.items()), value.counts)
            found = _mix("kernel", self._of_function(value.function, text), self.of(options))
            if value.compiled_as not in (None, found):
                raise UncertainError(
                    f"{value.function.__qualname__} was compiled as something else"
                )
            self.kernels[found] = value
            return found
        if isinstance(value, FunctionType):
            return self._of_function(value, _text(value.__code__))
        if isinstance(value, type) and tuple in value.__bases__ and hasattr(value, "_fields"):
            kind: Any = value
            self.classes.add(kind)
            defaults = tuple(kind._field_defaults.items())
            names = (kind.__module__, kind.__qualname__, *kind._fields)
            return _mix("NamedTuple", self.of(names), self.of(defaults))
        raise UncertainError(f"{value!r} of type {type(value).__name__}")

    def _of_function(self, function: Any, text: _Text) -> bytes:
        self.modules.add(str(function.__module__))
        parts = [text.hash, self.of(function.__defaults__)]
        parts.append(self.of(tuple(sorted((function.__kwdefaults__ or {}).items()))))
        for cell in function.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:
                raise UncertainError(f"{function.__qualname__} closes over nothing yet") from None
            parts.append(self.of(content))
        for name in text.names:
            for space in (function.__globals__, vars(builtins)):
                if name in space:
                    parts.append(self._of_name(space, name, text, "GLOBAL", "NAME"))
                    break
        return _mix("function", *parts)

    def _of_name(self, space: dict[str, Any], name: str, text: _Text, *loads: str) -> bytes:
        """Return what a name of the text means, if it is taken from here.

        Which names are globals and which are attributes is seen only by reading the bytecode, which
        is slow. To take in too much does no harm, unless it is something uncertain, or a kernel
        that calls this one: a circle, whose hash would depend on where the walk began.
        """
        try:
            kernel = isinstance(self._opened(space[name]), Kernel)
            if not kernel or name in _loaded(text.code, loads):
                return _mix("name", name.encode(), self._of_global(space[name], text))
        except UncertainError:
            if name in _loaded(text.code, loads):
                raise
        return _mix("other name", name.encode())

    def _of_global(self, value: Any, text: _Text) -> bytes:
        if not isinstance(value, ModuleType):
            return self.of(value)
        if _is_library(value):
            return _mix("module", value.__name__.encode())
        if id(value) in self._within:
            return _mix("again")
        # Any of the names may be an attribute of this module.
        if "__getattr__" in vars(value) or type(value) is not ModuleType:
            raise UncertainError(f"{value.__name__} makes its attributes as they are asked for")
        self._within.append(id(value))
        try:
            parts = [
                self._of_name(vars(value), name, text, "ATTR", "METHOD")
                for name in text.names
                if name in vars(value)
            ]
        finally:
            self._within.pop()
        return _mix("attributes", value.__name__.encode(), *parts)


class _Text(NamedTuple):
    """Code without what its names mean."""

    code: CodeType
    hash: bytes
    names: list[str]  # of globals and of attributes


def _text(code: CodeType) -> _Text:
    names = {name for part in nested_code(code) for name in part.co_names}
    if "getattr" in names:
        raise UncertainError(f"{code.co_qualname} takes attributes by getattr")
    return _Text(code, _of_code(code), sorted(names))


def _of_code(code: CodeType) -> bytes:
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    constants = Fingerprint(_itself)
    consts = [
        _of_code(const) if isinstance(const, CodeType) else constants.of(const)
        for const in code.co_consts[_has_unused_text(code) :]
    ]
    return _mix(
        "code", code.co_code, code.co_exceptiontable, repr((names, counts)).encode(), *consts
    )


def _has_unused_text(code: CodeType) -> bool:
    """Return whether the first constant is a docstring: text that no instruction loads."""
    if not code.co_consts or not isinstance(code.co_consts[0], str):
        return False
    steps = zip(code.co_code[::2], code.co_code[1::2], strict=True)
    # Any instruction that takes constants, whatever a version of Python calls it. An index of more
    # than a byte has other bytes before it: then the text is taken for used, which does no harm.
    return not any(step in _TAKE_CONSTANTS and argument == 0 for step, argument in steps)


def _itself(value: Any) -> Any:
    return value


def _mix(kind: str, *parts: bytes) -> bytes:
    """Return a hash that tells apart kinds, and where one part ends and the next begins."""
    digest = hashlib.sha256(kind.encode() + b"\0")
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
    if isinstance(value, types.Number | types.Boolean) and kind.__module__.startswith("numba."):
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
    """Return whether it is what its name means in a library whose version belongs to the key."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return False
    found: Any = sys.modules.get(module)
    if found is None or not _is_library(found):
        return False
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is value


def _is_library(module: ModuleType) -> bool:
    """Return whether its version is in the key."""
    root = module.__name__.partition(".")[0]
    mine = root in ("math", "cmath") and str(getattr(module, "__file__", "")).endswith(".py")
    return root in _LIBRARIES and not mine  # a user's file may be called math.py


def nested_code(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object, and those of the functions and classes inside it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from nested_code(const)


@cache
def _loaded(code: CodeType, loads: tuple[str, ...]) -> set[str]:
    """Return the names that code takes by such instructions: LOAD_GLOBAL, LOAD_ATTR, ..."""
    return {
        step.argval
        for part in nested_code(code)
        for step in dis.get_instructions(part)
        if step.opname.startswith("LOAD_") and any(load in step.opname for load in loads)
    }
