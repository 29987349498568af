"""One flat float64 buffer for everything that a learner knows.

Python passes this one array across the Numba boundary, and kernels build the NamedTuples that they
work with inside: several times faster than passing them. What was learned is saved as this array.

    reserved | scalars of Params | scalars of State | where vectors begin | vectors

`Packing` finds the fields of two nested NamedTuples and writes the three functions that read and
write them; nothing else in the package is generated.
"""

from __future__ import annotations

import hashlib
import linecache
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from unbounded.core.arrays import ROUNDING, Integers, NotKept, Values, Vector, require
from unbounded.jit.interpreter import interpreted
from unbounded.jit.kernel import integers, kernel, section

_SCALARS = (int, float, bool)
_USUAL = {int: Values(whole=True), bool: Values(0.0, 1.0, whole=True)}


class Access(NamedTuple):
    """The functions that read a buffer and write to it."""

    params: Callable[[Vector], Any]
    """The ``Params`` that a buffer holds."""
    state: Callable[[Vector], Any]
    """The ``State`` that a buffer holds; its vectors are views."""
    pack: Callable[[Vector, Any], None]
    """Write the scalars of a ``State``; its vectors were changed in place."""


@dataclass(frozen=True, eq=False)
class Packing:
    """Where the fields of ``Params`` and ``State`` stand in a buffer.

    Fields of ``Params`` and ``State`` are ``int``, ``float``, ``bool``, ``Vector``, ``Integers``
    (the same bytes seen as int64), one of these with its kind (`unbounded.core.arrays`), or
    NamedTuples of such fields. A ``Vector | None`` is None where it is empty, so that kernels can
    do without what it is for. A NamedTuple may have a method ``check()`` (``State``:
    ``check(params)``), which raises a ValueError where its fields do not fit together, so that no
    learner can have them. What needs other arguments is ``check_for``, for whoever has them.

    Examples
    --------
    >>> class Params(NamedTuple):
    ...     n: int
    >>> class State(NamedTuple):
    ...     t: int
    ...     L: Vector
    >>> packing = Packing("Example", __name__, Params, State)
    >>> buffer = packing.new(Params(2), State(1, np.array([0.5, 0.25])))
    >>> state = packing.python.state(buffer)
    >>> state.t, state.L.tolist()
    (1, [0.5, 0.25])
    >>> packing.python.pack(buffer, state._replace(t=2))
    >>> int(buffer[packing.slot("t")])
    2
    """

    name: str  # of the algorithm
    module: str  # where it is defined
    Params: Any
    State: Any
    reserved: int = 0  # how many slots at the front are left to the caller
    absent: tuple[str, ...] = ()  # vectors that are None where it is ``compiled``: see `lacks`

    @cached_property
    def _fields(self) -> list[tuple[str, Any]]:
        """Name, with dots, and type of every field that is not a NamedTuple itself."""
        return _leaves(self.Params, "params.") + _leaves(self.State, "state.")

    @cached_property
    def _scalars(self) -> dict[str, int]:
        """Slot of every scalar."""
        names = [name for name, kind in self._fields if kind in _SCALARS]
        return {name: self.reserved + i for i, name in enumerate(names)}

    @cached_property
    def _vectors(self) -> dict[str, int]:
        """Slot that says where a vector begins; the next slot says where it ends."""
        names = [name for name, kind in self._fields if kind not in _SCALARS]
        first = self.reserved + len(self._scalars)
        return {name: first + i for i, name in enumerate(names)}

    @cached_property
    def _scratch(self) -> list[str]:
        """The vectors that hold nothing from one step to the next."""
        return [name for name, notes in self._notes.items() if NotKept() in notes]

    @cached_property
    def _notes(self) -> dict[str, tuple[Any, ...]]:
        """What the annotations of every field say about it."""
        both = _leaves(self.Params, "params.", True) + _leaves(self.State, "state.", True)
        return {name: getattr(kind, "__metadata__", ()) for name, kind in both}

    @property
    def _body(self) -> int:
        """Where the first vector begins."""
        return self.reserved + len(self._scalars) + len(self._vectors) + 1

    def slot(self, field: str) -> int:
        """Return where a scalar field of the state stands in the buffer."""
        return self._scalars[f"state.{field}"]

    def place(self, field: str, buffer: Vector) -> slice:
        """Return where a vector of the state stands in a buffer."""
        slot = self._vectors[f"state.{field}"]
        return slice(int(buffer[slot]), int(buffer[slot + 1]))

    def new(self, params: Any, state: Any) -> Vector:
        """Return the buffer that holds ``params`` and ``state``."""
        whole = _Whole(params, state)
        found = [attrgetter(name)(whole) for name in self._vectors]
        vectors = [np.zeros(0) if vector is None else vector for vector in found]
        ends = np.cumsum([self._body, *(vector.size for vector in vectors)])
        buffer = np.zeros(int(ends[-1]))
        for name, slot in self._scalars.items():
            buffer[slot] = attrgetter(name)(whole)
        buffer[self._body - ends.size : self._body] = ends
        places = zip(self._vectors, vectors, ends[:-1], ends[1:], strict=True)
        for name, vector, begin, end in places:
            if name not in self._scratch:  # which may not have been written
                buffer[begin:end].view(vector.dtype)[:] = vector
        return buffer

    def lacks(self, buffer: Vector) -> tuple[str, ...]:
        """Return the vectors that are None in a buffer."""
        optional = [name for name, kind in self._fields if kind == Vector | None]
        return tuple(name for name in optional if self._vector(buffer, name).size == 0)

    def check(self, buffer: Vector, like: Vector) -> None:
        """Reject a buffer that no learner with the settings of the fresh one ``like`` can have.

        After it, nothing in the buffer can make a kernel read or write elsewhere.
        """
        if not self._same_params(buffer, like):
            raise ValueError("its state does not fit its settings")
        for name, kind in self._fields:
            if name not in self._scratch and kind != Integers:
                self._check_field(name, kind, buffer, like)
        params, state = self.python.params(buffer), self.python.state(buffer)
        _check_parts(state)
        if hasattr(state, "check"):
            state.check(params)

    def _check_field(self, name: str, kind: Any, buffer: Vector, like: Vector) -> None:
        """Reject entries that are not of their kind, unless a fresh learner has the same."""
        entries, fresh = self._entries(buffer, name), self._entries(like, name)
        same = (entries == fresh) | (np.isnan(entries) & np.isnan(fresh))
        notes = [note for note in self._notes[name] if isinstance(note, Values)]
        for values in (_USUAL.get(kind, Values()), *notes):
            wrong = ~(values.legal(entries, self._limit(values, buffer)) | same)
            for entry in entries[wrong]:
                raise ValueError(f"{name} cannot be {float(entry)!r}")
            if values.total is not None:
                fits = abs(entries.sum() - values.total) <= ROUNDING
                require(fits, f"{name} does not add up to {values.total:g}")

    def _limit(self, values: Values, buffer: Vector) -> float:
        """What entries are below: infinity, or a scalar of the state or of the parameters."""
        if not values.below:
            return np.inf
        slot = self._scalars.get(f"state.{values.below}")
        return float(buffer[self._scalars[f"params.{values.below}"] if slot is None else slot])

    def clear_scratch(self, buffer: Vector) -> None:
        """Let the vectors that hold nothing hold zeros."""
        for name in self._scratch:
            self._vector(buffer, name)[:] = 0.0

    def _entries(self, buffer: Vector, name: str) -> Vector:
        slot = self._scalars.get(name)
        return self._vector(buffer, name) if slot is None else buffer[slot : slot + 1]

    def _vector(self, buffer: Vector, name: str) -> Vector:
        slot = self._vectors[name]
        return buffer[int(buffer[slot]) : int(buffer[slot + 1])]

    def _same_params(self, buffer: Vector, like: Vector) -> bool:
        """Return whether two buffers have equal layouts and equal parameters.

        Vectors of ``Params`` may differ by rounding: a distribution that is normalized again
        changes its last bits.
        """
        if buffer.shape != like.shape:
            return False
        kept = [slot for name, slot in self._scalars.items() if name.startswith("params.")]
        kept += [*self._vectors.values(), self._body - 1]
        if not np.array_equal(buffer[kept], like[kept]):
            return False
        return all(
            np.allclose(self._vector(buffer, name), self._vector(like, name), rtol=1e-12, atol=0.0)
            for name in self._vectors
            if name.startswith("params.")
        )

    def _written(self, optional: str) -> Access:
        """The functions, as they are written here; ``optional`` is what is made of a vector that
        may be None."""
        kinds: dict[str, Any] = {}
        params = self._expression(self.Params, "params.", kinds, optional)
        state = self._expression(self.State, "state.", kinds, optional)
        stores = [
            f"    buffer[{slot}] = {name}"
            for name, slot in self._scalars.items()
            if name.startswith("state.")
        ]
        source = "\n".join(
            [
                "def params(buffer):",
                f"    return {params}",
                "def state(buffer):",
                f"    return {state}",
                "def pack(buffer, state):",
                *stores,
                "",
            ]
        )
        # Numba and tracebacks find the lines in linecache. The hash tells apart two algorithms of
        # one name, as there are when a cell of a notebook is run again.
        digest = hashlib.sha256(source.encode()).hexdigest()[:8]
        file = str(Path(__file__).with_name(f"{self.module}.{self.name}.{digest}.packing"))
        linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
        used = {"section": section, "integers": integers, "given": _given}
        namespace = {"__name__": self.module, **used, **kinds}
        exec(compile(source, file, "exec"), namespace)
        steps = [namespace[step] for step in Access._fields]
        for step in steps:
            step.__qualname__ = f"{self.name}.{step.__name__}"
        return Access(*steps)

    @cached_property
    def python(self) -> Access:
        """The functions as Python runs them."""
        params, state, pack = self._written("given({})")
        return Access(interpreted(params), interpreted(state), interpreted(pack))

    @cached_property
    def compiled(self) -> Access:
        """The same as kernels, for buffers that lack what is ``absent``."""
        params, state, pack = self._written("{}")
        return Access(kernel(params), kernel(state), kernel(pack))

    def _expression(self, kind: Any, prefix: str, kinds: dict[str, Any], optional: str) -> str:
        """Source that builds a ``kind`` from the buffer; ``kinds`` gets the types that it names."""
        parts = []
        for name, part in get_type_hints(kind).items():
            field = prefix + name
            if hasattr(part, "_fields"):
                parts.append(self._expression(part, f"{field}.", kinds, optional))
            elif part in _SCALARS:
                parts.append(_read(part, self._scalars[field]))
            elif field in self.absent:
                parts.append("None")
            else:
                slot = self._vectors[field]
                whole = "integers(buffer)" if part == Integers else "buffer"
                vector = f"section({whole}, int(buffer[{slot}]), int(buffer[{slot + 1}]))"
                parts.append(optional.format(vector) if part == Vector | None else vector)
        alias = f"{kind.__name__}_{len(kinds)}"  # two algorithms' types may have one name
        kinds[alias] = kind
        return f"{alias}({', '.join(parts)})"


def _given(vector: Vector) -> Vector | None:
    return vector if vector.size > 0 else None


class _Whole(NamedTuple):
    params: Any
    state: Any


def _leaves(kind: Any, prefix: str, extras: bool = False) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, part in get_type_hints(kind, include_extras=extras).items():
        nested = hasattr(part, "_fields")
        found += _leaves(part, f"{prefix}{name}.", extras) if nested else [(prefix + name, part)]
    return found


def _check_parts(whole: Any) -> None:
    """Let the NamedTuples in ``whole`` check themselves; one that does checks those in it, too."""
    for part in whole:
        check = getattr(part, "check", None)
        if check is not None and not signature(check).parameters:
            check()
        elif hasattr(part, "_fields") and check is None and not hasattr(part, "check_for"):
            _check_parts(part)


def _read(kind: type, slot: int) -> str:
    if kind is bool:
        return f"buffer[{slot}] != 0.0"
    return f"int(buffer[{slot}])" if kind is int else f"buffer[{slot}]"
