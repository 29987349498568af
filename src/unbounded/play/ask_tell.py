"""What every learner does between ask and tell: tickets, settings, and how it is kept."""

from __future__ import annotations

import base64
import json
import os
import secrets
import tempfile
import threading
from collections.abc import Mapping
from functools import cache
from inspect import signature
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from unbounded.core.arrays import Vector
from unbounded.play.seeds import Seed, bit_generator

_FORMAT = "unbounded.learner"
_VERSION = 2


class Ticket:
    """What `ask` hands out, and `tell` takes back once."""

    __slots__ = ("_learner", "id")

    id: int
    _learner: str


T = TypeVar("T", bound=Ticket)


class AskTell(Generic[T]):
    """Base of the learners: tickets, settings, seed, save and load.

    A subclass of this adds what is asked and told, and an algorithm's class adds its settings.
    """

    spec: ClassVar[Any]
    _noun: ClassVar[str]  # what a ticket is called
    _example: ClassVar[str]  # of a learner, for the error message

    _outstanding: dict[int, T]

    def __init__(self, *, seed: Seed = None, **settings: Any) -> None:
        raise TypeError(
            f"{type(self).__name__} is the base of the learners: make an {self._example}, "
            "for example"
        )

    def _start(self, params: Any, arguments: Mapping[str, Any], seed: Seed) -> None:
        """Begin with ``params``, made from the constructor's ``arguments``: its ``locals()``, with
        the checked values, which become the settings."""
        self._params = params
        self._settings = _settings(type(self), arguments)
        self._buffer = self._fresh()
        self._bits = bit_generator(seed)
        self._outstanding = {}
        self._identity = secrets.token_hex(8)  # which learner a ticket is of
        self._lock = threading.Lock()
        self._forgotten = 0  # asks = tells + forgotten + outstanding

    # What subclasses fill in.

    def _fresh(self) -> Vector:
        """The buffer of a learner that knows nothing yet."""
        raise NotImplementedError

    def _fit(self, size: int) -> None:
        """Make the buffer one of ``size`` entries, if it can grow to that."""

    def _record(self, ticket: T) -> list[Any]:
        """A ticket as JSON, for `_reissued`."""
        raise NotImplementedError

    def _reissued(self, record: list[Any]) -> T:
        """The ticket that a record was made of, or a ValueError."""
        raise NotImplementedError

    def _snapshot(self) -> tuple[Vector, Any, list[T]]:
        """Buffer, state of the generator and outstanding tickets, all of one moment."""
        with self._lock:
            return self._buffer.copy(), self._bits.state, list(self._outstanding.values())

    def _checked_state(self) -> None:
        """Refuse a loaded state that no learner can have."""

    # ------------------------------------------------------------------ tickets

    def _take(self, ticket: T) -> None:
        """Remove a ticket from the outstanding ones, or say why it is not among them."""
        try:
            ours = ticket._learner == self._identity
        except AttributeError:
            raise TypeError(
                f"{self._noun} must be what ask() returned, not {ticket!r}; for a ticket's number "
                "use learner.outstanding[number]"
            ) from None
        if not ours:
            raise ValueError(
                f"{ticket!r} was issued by another learner; tell it to the learner that was asked"
            )
        if self._outstanding.pop(ticket.id, None) is None:
            raise ValueError(
                f"{ticket!r} is not outstanding: it was told or forgotten before; "
                f"ask() again for a new {self._noun}"
            )

    def _refuse_second(self) -> None:
        """For learners that can wait for one ticket only."""
        if self._outstanding:
            raise RuntimeError(
                f"{self.spec.name} needs to know of {next(iter(self._outstanding.values()))!r} "
                "before it can choose again: tell() or forget() it first"
            )

    @property
    def outstanding(self) -> Mapping[int, T]:
        """The tickets that have not been told, by ``ticket.id``."""
        return MappingProxyType(self._outstanding)

    # ------------------------------------------------------------------ looking

    @property
    def settings(self) -> Mapping[str, Any]:
        """The arguments that make an equal fresh learner, the seed apart."""
        return MappingProxyType(self._settings)

    @property
    def clipped(self) -> int:
        """How many losses were clipped, because they exceeded what had been seen before them
        (or, for a learner with a fixed range, because they were outside it)."""
        return int(self._scalar("clipped"))

    def _scalar(self, field: str) -> float:
        """A scalar of the state."""
        return float(self._buffer[self.spec.packing.slot(field)])

    def _state(self) -> Any:
        """The state; its vectors are views into the buffer."""
        return self.spec.packing.python.state(self._buffer)

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._settings.items())
        return f"{self.spec.name}({settings})"

    # ------------------------------------------------------------------ keeping

    def save(self, path: str | os.PathLike[str] | None = None) -> str:
        """Everything that the learner knows, its generator and outstanding tickets included.

        Parameters
        ----------
        path : path, optional
            A file to write it to as well, all or nothing.

        Returns
        -------
        str
            JSON, for `load`: the algorithm and its settings, the buffer (base64 of little-endian
            float64), the generator, the outstanding tickets and the identity that they bear.
        """
        buffer, generator, outstanding = self._snapshot()
        document = {
            "format": _FORMAT,
            "version": _VERSION,
            "algorithm": self.spec.name,
            "settings": self._settings,
            "buffer": base64.b64encode(buffer.astype("<f8").tobytes()).decode(),
            "generator": {key: str(value) for key, value in generator["state"].items()},
            "forgotten": self._forgotten,
            "identity": self._identity,
            "outstanding": [self._record(ticket) for ticket in outstanding],
        }
        text = json.dumps(document)
        if path is not None:
            _write_whole(Path(path), text)
        return text

    @classmethod
    def load(cls, saved: str | os.PathLike[str]) -> Self:
        """Restore a learner from what `save` returned, or from the file that it wrote.

        The restored learner continues exactly where the saved one stood, and takes the tickets
        that were outstanding then: ``learner.outstanding``.
        """
        is_text = isinstance(saved, str) and saved.lstrip().startswith("{")
        text = str(saved) if is_text else Path(saved).read_text()
        try:
            return cls._restored(json.loads(text))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ValueError(f"this is not a saved {cls.spec.name}: {error}") from error

    @classmethod
    def _restored(cls, document: Any) -> Self:
        if document["format"] != _FORMAT:
            raise ValueError(f"its format is {document['format']!r}")
        if document["version"] != _VERSION:
            raise ValueError(f"its version is {document['version']!r}, not {_VERSION}")
        if document["algorithm"] != cls.spec.name:
            name = document["algorithm"]
            raise ValueError(f"it holds a {name}: use {name}.load")
        learner = cls(**document["settings"], seed=0)
        buffer = np.frombuffer(base64.b64decode(document["buffer"], validate=True), "<f8")
        learner._fit(buffer.size)
        if not cls.spec.packing.same_params(buffer, learner._buffer):
            raise ValueError("its state does not fit its settings")
        learner._buffer[:] = buffer
        learner._params = cls.spec.packing.python.params(learner._buffer)
        learner._checked_state()
        learner._bits.state = {
            "bit_generator": "PCG64",
            "state": {
                "state": int(document["generator"]["state"]),
                "inc": int(document["generator"]["inc"]),
            },
            "has_uint32": 0,
            "uinteger": 0,
        }
        learner._forgotten = int(document["forgotten"])
        learner._identity = str(document["identity"])
        for record in document["outstanding"]:
            ticket = learner._reissued(record)
            learner._outstanding[ticket.id] = ticket
        return learner


@cache
def _setting_names(cls: type) -> tuple[str, ...]:
    """Arguments of the constructor of the class that declares the algorithm, the seed apart."""
    owner: Any = next(base for base in cls.__mro__ if "spec" in vars(base))
    return tuple(name for name in signature(owner).parameters if name != "seed")


def _settings(cls: type, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What `save` keeps: JSON knows neither tuples nor NumPy's numbers."""
    return {name: _plain(arguments[name]) for name in _setting_names(cls)}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def _write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old text or the new one, never a part."""
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, prefix=path.name, delete=False, encoding="utf-8"
    ) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(file.name, path)
