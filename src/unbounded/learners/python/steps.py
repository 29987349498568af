"""What learners written in plain Python share: settings, state, and whose error it was.

A user's object is the learner itself. The attributes that the base classes set are theirs, all
others are the user's: they are copied before each `update`, put back if it fails, and kept by
`save`.
"""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np

from unbounded.core.arrays import Vector
from unbounded.learners.arguments import note_arguments, reject_other_names, with_number
from unbounded.learners.persistence import from_json, to_json
from unbounded.validation import checked_function, shown

_NOTED = ("_given", "_arguments", "_named", "_identity")  # before the constructor began
ROUNDING = 1e-9  # what probabilities may lack of 1, or have below 0


class InPython:
    """Beside `Learner` or `MDPLearner`, a base of the learners whose steps are Python methods."""

    _takes: ClassVar[tuple[str, ...]]  # the first parameters of every constructor
    _defines: ClassVar[tuple[str, ...]]  # the methods that a class must have
    _may_define: ClassVar[tuple[str, ...]]  # ... and what else of the bases it may replace
    _may_set: ClassVar[tuple[str, ...]]  # ... and what it may have as attributes
    _declared: Callable[[], Any]  # of the class: the spec of a user's class
    _play_as_told: Callable[[Vector], None]  # write to a buffer what the user's code wants to play
    _base: ClassVar[type]  # `PythonLearner` or `PythonMDPLearner`
    _buffer: Vector
    _given: dict[str, Any]  # the settings
    _ours: frozenset[str]  # names of the attributes that are not the user's
    _made: dict[str, Any] | None  # those attributes, until the constructor has ended
    _before: tuple[Vector, dict[str, Any]] | None  # while `update` runs: what was before
    _careful: bool  # whether an `update` that fails is undone
    _looked: bool  # whether some `update` was looked at for names that it should not set

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if InPython in cls.__bases__:
            cls._base = cls
            cls._complete_docstring()  # type: ignore[attr-defined] # of the other base
            return
        allowed = {*cls._defines, *cls._may_define}
        for name in vars(cls):
            if not name.startswith("__") and name not in allowed and hasattr(cls._base, name):
                raise TypeError(
                    f"{cls.__name__}.{name} would replace what every learner has under this name: "
                    "call it something else"
                )
        for name in cls._defines:
            if inspect.isfunction(vars(cls).get(name)):
                takes = inspect.signature(getattr(cls._base, name)).parameters
                checked_function(f"{cls.__name__}.{name}", vars(cls)[name], *takes)
        if "__init__" in vars(cls):
            cls._check_constructor()
            cls.__init__ = begins(vars(cls)["__init__"])  # type: ignore[method-assign] # wrapped
        cls.spec = cls._declared()  # type: ignore[attr-defined] # of the other base

    @classmethod
    def _check_constructor(cls) -> None:
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
        names = tuple(parameter.name for parameter in parameters)
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        first = ", ".join(cls._takes)
        if names[: len(cls._takes)] != cls._takes or "seed" not in names:
            raise TypeError(
                f"{cls.__name__}.__init__ must take (self, {first}, *, ..., seed=None), and call "
                f"super().__init__({first}, seed=seed)"
            )
        if any(parameter.kind not in named for parameter in parameters):
            raise TypeError(
                f"{cls.__name__}.__init__ must name all its settings: *args, **kwargs and "
                "parameters without names cannot be kept"
            )

    # ------------------------------------------------------------------ for users

    def state(self) -> Any:
        """Return what `save` keeps: by default all attributes that the class has set.

        A class that keeps what JSON cannot hold, or what need not be kept, defines its own, which
        may return numbers, texts, lists, tuples, dicts and arrays, and `restore` to go with it.
        """
        return {name: value for name, value in vars(self).items() if name not in self._ours}

    def restore(self, state: Any) -> None:
        """Become what `state` was taken of; called on a fresh learner with equal settings."""
        if not isinstance(state, dict):
            raise ValueError("its state is not a dict of attributes")
        for name in state:
            if name in self._ours or (hasattr(self._base, name) and name not in self._may_set):
                raise ValueError(f"its state has {name!r}, which is not an attribute of its own")
        vars(self).update(state)

    # ------------------------------------------------------------------ making

    def _make(self, start: Callable[[], None], **passed: Any) -> None:
        """Let the base classes ``start``, and note which attributes are theirs."""
        for name, value in passed.items():
            if value != self._given[name]:
                raise TypeError(
                    f"{type(self).__name__} was made with {name}={shown(self._given[name])} and "
                    f"passes on {shown(value)}: pass on {name} as it came"
                )
        theirs = dict(vars(self))
        self._before = self._made = None
        self._careful, self._looked = True, False
        start()
        for name, value in theirs.items():
            if name not in _NOTED and vars(self)[name] is not value:
                raise self._taken(name)
        self._ours = frozenset(vars(self)) - theirs.keys() | {*_NOTED, "_ours", "_made"}
        self._made = {name: vars(self)[name] for name in self._ours - {"_made"}}

    def _begun(self) -> None:
        """After the constructor, however deep: look what it has made."""
        made = vars(self).get("_made")
        if made is None:
            raise TypeError(
                f"{type(self).__name__}.__init__ must call "
                f"super().__init__({', '.join(self._takes)}, seed=seed)"
            )
        self._check_names(made)
        self._made = None
        self._play_as_told(self._buffer)

    def _check_names(self, ours: Mapping[str, Any]) -> None:
        """Reject a user's code that has changed ``ours``, or hides a method of ours."""
        now = vars(self)
        for name, value in ours.items():
            if now.get(name) is not value:
                vars(self).update(ours)
                raise self._taken(name)
        for name in now.keys() - self._ours:
            if hasattr(self._base, name) and name not in self._may_set:
                raise self._taken(name)

    def _taken(self, name: str) -> TypeError:
        return TypeError(
            f"{type(self).__name__} sets self.{name}, a name that every learner uses otherwise: "
            "call it something else"
        )

    # ------------------------------------------------------------------ learning

    def _run(self, method: str, *arguments: Any) -> Any:
        """Call the user's code; an error says whose it is."""
        try:
            return getattr(self, method)(*arguments)
        except Exception as error:
            error.add_note(f"This came from {type(self).__name__}.{method}().")
            raise

    def _learn_all_or_nothing(
        self, arguments: tuple[Any, ...], write: Callable[[Vector], None]
    ) -> None:
        """``update(*arguments)``, then ``write`` to the buffer; whatever goes wrong on the way, an
        interrupt included, the learner is what it was before."""
        if not self._careful:  # a simulation, which ends with the error
            self._update(arguments)
            write(self._buffer)
            return
        old, kept = self._buffer, self._copied()
        self._before = old, kept
        try:
            self._update(arguments)
            after = old.copy()
            write(after)
            self._buffer = after
        except BaseException:
            if self._buffer is old:
                self._put_back(kept)
            raise
        finally:
            self._before = None

    def _update(self, arguments: tuple[Any, ...]) -> None:
        if not self._careful and self._looked:
            self._run("update", *arguments)
            return
        ours = {name: vars(self)[name] for name in self._ours}
        self._run("update", *arguments)
        self._check_names(ours)
        self._looked = True

    def _copied(self) -> dict[str, Any]:
        """Return a copy of the user's attributes."""
        own = {name: value for name, value in vars(self).items() if name not in self._ours}
        try:
            return deepcopy(own, {id(self): self})
        except (AttributeError, RuntimeError, TypeError, ValueError) as error:
            raise TypeError(
                f"{type(self).__name__} has an attribute that cannot be copied, so that an update "
                f"that fails could not be undone: {error}"
            ) from error

    def _put_back(self, kept: Mapping[str, Any]) -> None:
        for name in vars(self).keys() - self._ours:
            del vars(self)[name]
        vars(self).update(kept)

    # ------------------------------------------------------------------ keeping

    def _more(self) -> dict[str, Any]:
        """Return what `save` keeps beside the buffer."""
        whole: Any = self
        if self._before is not None and self._buffer is self._before[0]:
            whole = object.__new__(type(self))  # `update` was interrupted: as it was before
            vars(whole).update(vars(self))
            whole._put_back(self._before[1])
        name = type(self).__name__
        more: dict[str, Any] = super()._more()  # type: ignore[misc] # of the other base
        return {**more, "state": to_json(whole._run("state"), f"{name}.state()")}

    def _take_more(self, fields: Mapping[str, Any]) -> None:
        """From a document; the buffer is that of the document already."""
        super()._take_more(fields)  # type: ignore[misc] # of the other base
        played = self._buffer.copy()
        self._run("restore", from_json(fields["state"]))
        again = played.copy()
        self._play_as_told(again)
        if not np.allclose(played, again, rtol=0.0, atol=1e-6, equal_nan=True):
            raise ValueError(
                f"{type(self).__name__} would not play what it played when it was saved: its "
                "state() must hold all that changes, and restore() take all of it"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """pickle, copy and deepcopy: by what `save` keeps."""
        return type(self).load, (self.save(),)  # type: ignore[attr-defined] # of the other base


def begins(init: Any) -> Any:
    """A constructor that notes its arguments as settings, and ends with `InPython._begun`."""
    signature = inspect.signature(init)

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 # it is one
        if "_given" in vars(self):  # called by a subclass's
            init(self, *args, **kwargs)
            return
        name = type(self).__name__
        missing = [m for m in self._defines if getattr(self._base, m) is getattr(type(self), m)]
        if type(self) is self._base or missing:
            needed = " and ".join(f"{method}()" for method in missing)
            help_on = f"help(unbounded.{self._base.__name__})"
            raise TypeError(f"{name} must define {needed}: see {help_on}")
        reject_other_names(name, signature.parameters, kwargs)
        args, kwargs = with_number(self, signature, args, kwargs)
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
        note_arguments(self, signature, args, kwargs)
        seed = bound.arguments.get("seed")
        self._given = {key: _plain(name, key, value) for key, value in self._arguments.items()}
        try:
            init(self, **self._given, seed=seed)
        except AttributeError as error:  # perhaps a property of ours
            assigned = _assigned(error)
            ours = isinstance(getattr(self._base, assigned, None), property)
            raise self._taken(assigned) if ours else error from None
        self._begun()

    return __init__


def _assigned(error: BaseException) -> str:
    """Return the attribute whose assignment raised an error; empty if something else did."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    steps = dis.get_instructions(trace.tb_frame.f_code) if trace is not None else ()
    failed = (step for step in steps if trace is not None and step.offset == trace.tb_lasti)
    return next((str(step.argval) for step in failed if step.opname == "STORE_ATTR"), "")


def _plain(who: str, name: str, value: Any) -> Any:
    """A setting as it comes back from JSON, so that copies get what the first learner got."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(who, name, one) for one in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(who, name, one) for key, one in value.items()}
    hint = "; give it as a list: .tolist()" if isinstance(value, np.ndarray) else ""
    raise TypeError(
        f"{who}: the setting {name} must be a number, a text, or a list or dict of such, which "
        f"can be kept in a file, got {shown(value)}{hint}"
    )


def checked_table(who: str, value: Any, shape: Sequence[int]) -> Vector:
    """Return a new array of this shape with distributions in its last axis, or a clear error.

    They are played as they are. Only what must come from rounding is corrected: entries between
    -1e-9 and 0 count as 0, and entries above 1 as 1, if all add up to 1 within 1e-9.
    """
    try:
        q = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{who} must return probabilities, got {shown(value)}") from None
    if q.shape != tuple(shape):
        raise ValueError(f"{who} must have shape {tuple(shape)}, got {q.shape}")
    total = q.sum(axis=-1)
    if q.min() >= 0.0 and q.max() <= 1.0 and np.abs(total - 1.0).max() <= ROUNDING:
        return q  # the usual case, at the least cost; nan is neither more nor less
    rows = q.reshape(-1, q.shape[-1])
    off = np.abs(rows.sum(axis=1) - 1.0)
    legal = np.isfinite(rows).all(axis=1) & (rows >= -ROUNDING).all(axis=1) & (off <= ROUNDING)
    if not legal.all():
        row = rows[int(np.argmin(legal))]
        added = f", which add up to {row.sum():.12g}" if np.isfinite(row).all() else ""
        raise ValueError(
            f"{who} must be finite, at least 0 and add up to 1 within {ROUNDING:g}, got "
            f"{shown(row.tolist())}{added}"
        )
    return np.clip(q, 0.0, 1.0, out=q)
