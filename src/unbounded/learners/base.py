"""What every learner does between ask and tell: tickets, settings, copies, and how it is kept."""

from __future__ import annotations

import os
import re
import secrets
import threading
import time
import weakref
from abc import abstractmethod
from collections.abc import Callable, Mapping
from copy import deepcopy
from importlib import import_module
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, SupportsIndex

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from unbounded.core.arrays import Vector
from unbounded.io import write_atomic
from unbounded.jit.schedule import Code
from unbounded.learners import persistence as documents
from unbounded.learners.arguments import (
    Elsewhere,
    Repeatable,
    noting,
    plain,
    real_arguments,
    with_sections,
)
from unbounded.learners.seeds import Seed, bit_generator, root_of
from unbounded.learners.tickets import Issuer, Outstanding, T, names_of
from unbounded.validation import check_settings, checked_count, shown, warn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOOKS = "unbounded.results.looks"
_MOST = 2**53  # counts are kept in floats
EMPTY: Mapping[str, Any] = MappingProxyType({})


class AskTell(Repeatable, Generic[T]):
    """Base of the learners: tickets, settings, seed, copies, save and load.

    What `tell` learns from is the record that `ask` kept, not the ticket in the user's hands. A
    ticket bears the identity of the learner that issued it. A copy has a new identity and inherits
    the outstanding records with theirs, so that it takes the tickets of before, and none that the
    original issues later.
    """

    spec: Any  # the class's, or the one that its settings choose
    _noun: ClassVar[str]  # what a ticket is called
    _unit: ClassVar[str] = "round"  # what one tell is about
    _example: ClassVar[str]  # of a learner, for the error message
    _shared: ClassVar[Mapping[str, str]]  # parameters that many have: type, and what it means

    _steps: Any  # compiled and interpreted, of `unbounded.jit.schedule`
    _records: dict[int, tuple[Any, ...]]  # of the outstanding tickets, by number
    _arguments: Mapping[str, Any]  # of the constructor, the seed apart
    _named: tuple[str, ...]  # those of them that differ from their defaults

    def __init__(self, *, seed: Seed = None, **settings: Any) -> None:
        base, example = type(self).__name__, self._example
        raise TypeError(f"{base} is the base of the learners: make an {example}, for example")

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "__init__" in vars(cls):
            parameters = signature(cls).parameters
            for base in cls.__mro__[1:]:
                check_settings(cls, base, (n for n in parameters if callable(vars(base).get(n))))
            cls.__init__ = noting(vars(cls)["__init__"])  # type: ignore[method-assign] # wrapped
        if "spec" in vars(cls):
            cls._complete_docstring()

    @classmethod
    def _complete_docstring(cls) -> None:
        """Document the parameters that many learners have, and add an example if there is none."""
        doc = cls.__doc__ or ""
        own = " ".join(re.findall(r"^ *(\w[\w, ]*) : ", doc, re.MULTILINE))
        missing = [n for n in signature(cls).parameters if n not in re.split(r"\W+", own)]
        known = dict(cls._shared)
        state = getattr(vars(cls).get("spec"), "State", None)
        if "best" in getattr(state, "_fields", ()):  # the arm that it will play
            known["seed"] = "int, SeedSequence or Generator, optional\n    Of no effect."
        shared = "\n".join(f"{n} : {known[n]}" for n in missing if n in known)
        cls.__doc__ = with_sections(doc, shared, "" if ">>>" in doc else cls._played_example())

    @classmethod
    def _played_example(cls) -> str:
        """Return an example for the docstring, in Python."""
        return ""

    def _start(self, params: Any, seed: Seed, checked: Mapping[str, Any] = EMPTY) -> None:
        """Begin with ``params``; the last line of a constructor.

        The constructor's arguments become the settings, with the ``checked`` values of those that
        were left open.
        """
        self._params = params
        real = real_arguments(type(self).__init__)
        self._settings = {
            name: plain(checked.get(name, value), real=name in real)
            for name, value in self._arguments.items()
        }
        self._buffer = self._fresh()
        self._seed = root_of(seed) if isinstance(seed, Generator) else seed
        self._bits = bit_generator(self._seed)
        self._spawned = 0
        self._records = {}
        self._inherited: dict[int, str] = {}  # who issued the tickets that are not ours
        names = names_of(getattr(self, "_identity", None))  # vars() makes all attributes slower
        self._identity = Issuer.of(secrets.token_hex(8), names)
        self._lock = threading.RLock()  # an interrupt may leave it locked, by the same thread
        self._forked = False
        self._heard: list[tuple[str, type[Warning]]] | None = None  # where warnings go instead
        _note_alive(self)

    def _on_a_copy(self, step: Callable[..., Any], *arguments: Any, of: Code | None = None) -> Any:
        """Run a step on a copy of the buffer, which then takes its place at once: whenever it is
        interrupted, the step was taken or it was not. It is ``of`` what is being compiled."""
        began = time.perf_counter()
        after = self._buffer.copy()
        found = step(after, *arguments)
        self._buffer = after
        (of or self._steps).spend(time.perf_counter() - began)
        return found

    # What subclasses fill in.

    tell: Callable[..., None]
    _noted: Callable[..., tuple[Any, ...]]  # a row of the history, of what was told
    _noted_as: ClassVar[Mapping[str, type]]  # of the history
    _ours: frozenset[str]  # of learners in Python: the names of attributes that are not the user's
    _fresh: Callable[[], Vector]  # the buffer of a learner that knows nothing yet
    _fewest_entries: Callable[[Mapping[str, Any]], int]  # of a buffer with these settings
    _ticket: Callable[[int, tuple[Any, ...], str], T]  # of an outstanding record, by its issuer
    _snapshot: Callable[[], tuple[Vector, dict[int, tuple[Any, ...]]]]  # of both at once
    _kept: Callable[[tuple[Any, ...]], list[Any]]  # a record as JSON, for `_record_of`
    _record_of: Callable[[int, list[Any]], tuple[Any, ...]]  # what was kept, or a ValueError
    _check_counts: Callable[[], None]  # asks, tells and outstanding tickets must fit together

    def _fit(self, size: int) -> None:
        """Make the buffer one of ``size`` entries, if it can grow to that."""

    def _more(self) -> dict[str, Any]:
        """Return what `save` keeps of a learner that is more than its buffer."""
        return {}

    def _take_more(self, fields: Mapping[str, Any]) -> None:
        """Become what `_more` was taken of, or a ValueError."""

    def _check_state(self) -> None:
        """Reject a loaded state that no learner can have."""

    def _renew_stream(self, bits: PCG64) -> None:
        """Draw from ``bits`` from now on, and give up all that is outstanding."""
        self._bits = bits
        self._records.clear()
        self._inherited.clear()

    # ------------------------------------------------------------------ tickets

    def _held(self, ticket: T) -> tuple[int, tuple[Any, ...]]:
        """The number and the record of an outstanding ticket, or an error that says why not."""
        try:
            number, issuer = ticket.id, ticket._learner
        except AttributeError:
            raise TypeError(
                f"{self._noun} must be what ask() returned, not {ticket!r}; for a ticket's number "
                "use learner.outstanding[number]"
            ) from None
        if issuer != self._identity and self._inherited.get(number) != issuer:
            raise ValueError(
                f"{ticket!r} was issued by another learner; tell it to the learner that was asked"
            )
        record = self._records.get(number)
        if record is None:
            raise self._not_outstanding(ticket)
        return number, record

    def _not_outstanding(self, ticket: T) -> ValueError:
        return ValueError(
            f"{ticket!r} is not outstanding: it was told or forgotten before; "
            f"ask() again for a new {self._noun}"
        )

    def _reject_second(self) -> None:
        """For learners that can wait for one ticket only."""
        for ticket in self.outstanding.values():
            raise RuntimeError(
                f"{self.spec.name} needs to know of {ticket!r} before it can choose again: tell() "
                "or forget() it first"
            )

    def _warn(self, text: str, category: type[Warning]) -> None:
        if self._heard is None:
            warn(text, category)
        else:
            self._heard.append((text, category))

    def _warn_below(self, loss: float, least: float, *, reward: bool) -> None:
        """Warn of a loss below the lower bound, in the words in which it was told."""
        if reward:
            said = f"a reward of {-loss:g} is above the largest possible, {0.0 - least:g}, "
            remedy = "larger best_reward="
        else:
            said = f"a loss of {loss:g} is below the lower bound, {least:g}, "
            remedy = "smaller lower="
        more = f"and is taken as that: make the learner with a {remedy} (said once; "
        self._warn(f"{said}{more}learner.below counts)", UserWarning)

    @property
    def outstanding(self) -> Mapping[int, T]:
        """The tickets that have not been told, by ``ticket.id``."""
        return Outstanding(self)

    def forget(self, ticket: T) -> None:
        """Drop a ticket whose feedback will never come; nothing is learned from it."""
        with self._lock:
            number, _ = self._held(ticket)
            self._drop(number)

    def expire(self, older_than: SupportsIndex) -> int:
        """Forget the outstanding tickets but for those of the last ``older_than`` asks; how many.

        Call it now and then where feedback sometimes never comes.

        Examples
        --------
        >>> from unbounded import SCB
        >>> learner = SCB(n_arms=2, seed=0)
        >>> choices = [learner.ask() for _ in range(10)]
        >>> learner.expire(older_than=3), sorted(learner.outstanding)
        (7, [7, 8, 9])
        """
        limit = self._asked - checked_count("older_than", older_than, least=0)
        with self._lock:
            old = [number for number in list(self._records) if number < limit]
            for number in old:
                self._drop(number)
        return len(old)

    def _drop(self, number: int) -> None:
        self._records.pop(number, None)

    @property
    @abstractmethod
    def _asked(self) -> int:
        """Return the number of tickets issued, which is the number of the next."""

    # ------------------------------------------------------------------ looking

    @property
    def settings(self) -> Mapping[str, Any]:
        """The arguments that make an equal fresh learner, the seed apart."""
        return MappingProxyType(deepcopy(self._settings))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """`settings` and the seed, which a learner from a file or from `spawn` has not (None)."""
        return {**deepcopy(self._settings), "seed": self._seed}

    def clone(self) -> Self:
        """Make a fresh learner with the same arguments; with a seed, it makes the same choices.

        Examples
        --------
        >>> from unbounded import SCB
        >>> learner = SCB(n_arms=3, rate=0.5, seed=7)
        >>> learner.tell(learner.ask(), loss=1.0)
        >>> learner.clone().rounds, learner.clone().get_params()["seed"]
        (0, 7)
        """
        fresh = super().clone()
        fresh._named = self._named
        return fresh

    @property
    def clipped(self) -> int:
        """Count the losses that were clipped, beyond what had been seen or a fixed range."""
        return int(self._scalar("clipped"))

    def _scalar(self, field: str) -> float:
        """Return a scalar of the state."""
        return float(self._buffer[self.spec.packing.slot(field)])

    def _state(self) -> Any:
        """Return the state; its vectors are views into the buffer."""
        return self.spec.packing.python.state(self._buffer)

    def __repr__(self) -> str:
        """Return the settings that differ from the defaults, and how much was told."""
        told = int(self._scalar("t")) - 1
        after = f" after {told} {self._unit}{'' if told == 1 else 's'}" if told else ""
        return f"{self.spec.name}({', '.join(self._shown_settings())}){after}"

    def _shown_settings(self) -> list[str]:
        return [f"{name}={shown(self._settings[name])}" for name in self._named]

    def _repr_html_(self) -> str:
        """For notebooks: settings, scale, what was clipped, and the probabilities of arms."""
        return str(import_module(_LOOKS).html(self))  # by its name: no result depends on it

    def follow(self) -> None:
        """Note every `tell` from now on in `history`; nothing is noted, or slower, without it.

        Examples
        --------
        >>> from unbounded import SCB
        >>> learner = SCB(n_arms=2, seed=0)
        >>> learner.follow()
        >>> learner.tell(learner.ask(), 3.5)
        >>> list(learner.history), learner.history["loss"]
        (['arm', 'probability', 'loss', 'scale', 'clipped'], array([3.5]))
        """
        if "_followed" not in vars(self):
            rows: list[tuple[Any, ...]] = []
            tell = type(self).tell

            def noting(ticket: T, *told: Any, **named: Any) -> None:
                tell(self, ticket, *told, **named)
                rows.append(self._noted(ticket, *told, **named))

            vars(self).update(_followed=rows, tell=noting)
            if "_ours" in vars(self):  # of a learner in Python, which keeps the user's attributes
                self._ours |= {"_followed", "tell"}

    @property
    def history(self) -> dict[str, NDArray[Any]]:
        """Return what was told since `follow`, a column for each quantity, as frames take them.

        Bandits: ``arm``, ``probability`` (at the ask), ``loss``, and the learner's ``scale`` and
        ``clipped`` after it; and ``name`` if arms have names. MDPs: ``loss``, that of the episode,
        and ``clipped``. It is not saved.
        """
        rows = vars(self).get("_followed")
        if rows is None:
            raise RuntimeError("nothing was noted: call follow() before you play")
        columns = zip(*rows, strict=True) if rows else [()] * len(self._noted_as)
        kinds = self._noted_as.items()
        found: dict[str, NDArray[Any]] = {
            name: np.array(c, kind) for (name, kind), c in zip(kinds, columns, strict=True)
        }
        names = names_of(self._identity)
        return found if names is None else {**found, "name": np.array(names)[found["arm"]]}

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot what was played since `follow`, with matplotlib.

        For bandits the shares of the arms over time, for MDPs the mean loss of the episodes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        """
        axes: Axes = import_module(_LOOKS).drawn(self, ax)
        return axes

    # ------------------------------------------------------------------ keeping

    def save(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return everything that the learner knows, as JSON for `load`.

        That is the algorithm and its settings, the buffer (base64 of little-endian float64,
        compressed by zlib if it is long), the generator, the outstanding tickets by who issued
        them, and a digest. With a ``path``, write it to that file as well, all or nothing.
        """
        with self._lock:
            buffer, records = self._snapshot()
            generator = documents.generator_fields(self._bits)
            inherited = dict(self._inherited)
            more = self._more()
        outstanding: dict[str, list[Any]] = {}
        for number, record in records.items():
            issuer = inherited.get(number, self._identity)
            outstanding.setdefault(issuer, []).append([number, *self._kept(record)])
        self.spec.packing.clear_scratch(buffer)
        fields = {
            "settings": documents.shortened(self._settings), "named": list(self._named),
            "buffer": documents.encoded(buffer), "asked": self._asked_at(buffer),
            "generator": generator, "spawned": self._spawned, "outstanding": outstanding, **more,
        }  # fmt: skip
        text = documents.written(self.spec.name, fields)
        if path is not None:
            write_atomic(os.path.realpath(path), text.encode())  # a link stays one
        return text

    def _asked_at(self, buffer: Vector) -> int:
        """Return how many tickets had been issued when ``buffer`` was copied."""
        return self._asked

    @classmethod
    def load(cls, saved: str | os.PathLike[str]) -> Self:
        """Restore a learner from what `save` returned, or from the file that it wrote.

        It continues exactly where the saved one stood, and takes the tickets that were outstanding
        then. Whatever is wrong with a file that can be opened, the error is a ValueError.
        """
        try:
            text = documents.text_of(saved)
            return cls._restored(documents.read(text, cls.spec.name))
        except documents.DAMAGE as error:  # and no other: a signal handler may raise its own
            what = f"it has no {error}" if isinstance(error, KeyError) else error
            raise ValueError(f"this is not a saved {cls.spec.name}: {what}") from error

    @classmethod
    def _restored(cls, fields: dict[str, Any]) -> Self:
        settings = documents.lengthened(fields["settings"])
        buffer = documents.decoded(fields["buffer"])
        if buffer.size < cls._fewest_entries(settings):  # before anything of that size is made
            raise ValueError("its state does not fit its settings")
        learner = cls(**settings, seed=0)
        learner._seed = None
        learner._named = tuple(name for name in settings if name in fields["named"])
        learner._fit(buffer.size)
        packing = learner.spec.packing
        packing.check(buffer, like=learner._buffer)
        packing.clear_scratch(buffer)
        learner._buffer[:] = buffer
        learner._params = packing.python.params(learner._buffer)
        documents.restore_generator(learner._bits, fields["generator"])
        learner._spawned = documents.whole_number(fields["spawned"], _MOST)
        learner._restore_asked(documents.whole_number(fields["asked"], _MOST))
        learner._take_more(fields)
        learner._check_state()  # before anything compiled sees it
        for issuer, kept in fields["outstanding"].items():
            for entry in kept:
                number = documents.whole_number(entry[0], learner._asked)
                if number in learner._records:
                    raise ValueError(f"it has two tickets of number {number}")
                learner._records[number] = learner._record_of(number, entry[1:])
                learner._inherited[number] = issuer
        learner._check_counts()
        return learner

    def _restore_asked(self, asked: int) -> None:
        if asked != self._asked:
            raise ValueError(f"{self._asked} tickets were issued, and not {asked}")

    # ------------------------------------------------------------------ copies

    def __reduce__(self) -> tuple[Any, ...]:
        """pickle, copy and deepcopy: with the same future, and with a user's public attributes."""
        own = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        own.pop("layers", None)
        own.pop("tell", None)  # of one that is followed
        own |= {"_seed": self._seed} if self._seed is not None else {}
        return type(self).load, (self.save(),), own or None

    def spawn(self, n: SupportsIndex) -> list[Self]:
        """Make copies for ``n`` workers, which know what this learner knows and draw independently.

        A plain copy (``copy``, ``pickle``, `load`) makes the same choices as the original. These
        have random numbers of their own, from this learner's seed, and nothing outstanding.

        Examples
        --------
        >>> from unbounded import SCB
        >>> workers = SCB(n_arms=10, seed=0).spawn(3)
        >>> [worker.ask().arm for worker in workers]
        [6, 0, 5]
        """
        count = checked_count("n", n)
        with self._lock:
            text, state = self.save(), self._bits.state["state"]
            first = self._spawned
            self._spawned += count
        children = []
        for i in range(first, first + count):
            child = type(self).load(text)
            child._renew_stream(bit_generator(SeedSequence([state["state"], state["inc"], i])))
            child._spawned = 0
            children.append(child)
        return children

    def _reject_fork(self) -> None:
        if self._forked:
            raise RuntimeError(
                f"this {self.spec.name} came here by a fork, and what it learns here would be lost "
                "to the process that made it: play with learner.spawn(n)[i] in child i of n, or "
                f"with {self.spec.name}.load(learner.save()) for the same choices"
            )

    def _after_fork(self) -> None:
        """In a child: who held the lock may be gone, and the random numbers are the parent's."""
        self._lock = threading.RLock()
        self._forked = True


# Set afterwards: in the class, type checkers would offer it.
setattr(AskTell, "reset", Elsewhere("reset", "clone() makes a fresh one"))  # noqa: B010


# Without callbacks: an interrupt that comes while Python code runs for an object that dies is lost.
_alive: list[weakref.ref[AskTell[Any]]] = []
_many_alive = 64
_noting_lock = threading.RLock()


def _note_alive(learner: AskTell[Any]) -> None:
    global _many_alive
    with _noting_lock:
        if len(_alive) >= _many_alive:
            _alive[:] = [known for known in _alive if known() is not None]
            _many_alive = 2 * len(_alive) + 64
        _alive.append(weakref.ref(learner))


def _after_fork_in_child() -> None:
    global _noting_lock
    _noting_lock = threading.RLock()  # another thread may have had it
    for known in _alive:
        learner = known()
        if learner is not None:
            learner._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
