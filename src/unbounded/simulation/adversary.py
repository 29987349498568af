"""What an adversary is, and how the simulators call one.

An adversary is a class with a kernel and settings. Its settings are what ``__init__`` takes; a
class of the package declares each of them by `setting`, with its check and what it means.

**Bandits.** An adversary's file has a kernel ``fill(params, state, t, last_arm, q, out)`` that
writes the losses of round t (t = 1, 2, ...) into ``out``. It may look at everything up to and
including q_t, but never at the arm of round t: ``last_arm`` is that of round t - 1 (-1 at t = 1).

An adversary that looks at nothing may also have a kernel ``entry(params, state, t, k)`` that
returns the loss of one arm, the same as ``fill`` would write, and changes nothing. With it, a
simulation need not touch every arm in every round.

An adversary that knows the expected losses of round t, given the past, may have a kernel
``expected(params, state, t, out)``: it writes them into ``out``, changes nothing else, and returns
the scale of the round, above 0. It is called after ``fill`` of the same round.

**MDPs.** The kernel is ``fill(params, t, q, lay, out)``: it writes the losses of episode t (t = 1,
2, ...) into ``out``, flat over pairs, with ``out[0] = 0`` for the dummy pair. It may look at the
learner's occupancy measure q_t, but not at what happens in episode t. ``params`` begins with the
scale, the number of episodes and the key of the random numbers; from ``OWN`` on it is the
adversary's own.
"""

from __future__ import annotations

import math
import sys
import threading
import typing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, fields, is_dataclass
from functools import cache
from inspect import get_annotations, signature
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from numba import types

from unbounded.core.arrays import Integers, Vector
from unbounded.jit.kernel import Pointer, counted, counting_kernel
from unbounded.learners.arguments import with_sections
from unbounded.validation import (
    ArgumentTypeError,
    check_fields,
    check_settings,
    checked_finite,
    checked_function,
    checked_real,
    setting,
    shown,
)

if TYPE_CHECKING:  # a bandit should not wait for the MDPs
    from unbounded.core.occupancy.layout import Layers
    from unbounded.core.occupancy.mdp import LayeredMDP

SCALE, EPISODES, KEY, OWN = range(4)  # slots of the params of an adversary for MDPs

_V = types.float64[::1]
_ENTRY = types.float64(_V, _V, types.int64, types.int64)
FILL_ROWS = types.void(_V, _V, types.int64, types.int64, _V, types.float64[:, ::1])
_FILL_PAIRS = types.void(_V, types.int64, _V, types.int64[:, ::1], _V)

A = TypeVar("A")


class _Settings:
    """Checks declared settings, and shows them."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        base = cls.__mro__[1]
        settings = {one.name for one in fields(base)} if is_dataclass(base) else set()
        if "__init__" in vars(cls):
            given = list(signature(cls).parameters)
            check_settings(cls, cls, (name for name in given if name not in settings))
        own = get_annotations(cls).items()
        declared = (name for name, kind in own if "ClassVar" not in f"{kind}")
        check_settings(cls, base, (name for name in declared if callable(getattr(base, name, 0))))

    def __post_init__(self) -> None:
        check_fields(self)

    def __repr__(self) -> str:
        names = [name for name in vars(self) if name[0] != "_"]
        names.sort(key=("scale", "shift").__contains__)
        settings = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__name__}({settings})"


@typing.dataclass_transform()
def adversary(cls: type[A]) -> type[A]:
    """Make a dataclass of an adversary; its docstring gets its settings, and an example."""
    made: Any = dataclass(repr=False, eq=False)(cls)
    hints = typing.get_type_hints(made)
    documented = {one.name: one.metadata.get("doc") for one in fields(made)}
    parameters = [f"{n} : {_kind(hints[n])}\n    {doc}" for n, doc in documented.items() if doc]
    name, place = made.__name__, made.__module__.rpartition(".")[0].removesuffix(".bandits")
    example = f">>> from {place} import {name}\n>>> {name}()\n{made()!r}"
    made.__doc__ = with_sections(made.__doc__ or "", "\n".join(parameters), example)
    return typing.cast("type[A]", made)


def _kind(hint: Any) -> str:
    """Return a type as a docstring names it."""
    parts = typing.get_args(hint)
    if typing.get_origin(hint) is Literal:
        return "{" + ", ".join(f'"{option}"' for option in parts) + "}"
    return f"{parts[0].__name__}, optional" if parts else str(hint.__name__)


@dataclass(repr=False, eq=False)
class Adversary(_Settings):
    """Base of the adversaries of bandits.

    Parameters
    ----------
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.

    Examples
    --------
    >>> from unbounded import Uniform, simulate
    >>> from unbounded.adversaries import Adversary
    >>> class InTurn(Adversary):
    ...     def fill(params, state, t, last_arm, q, out):
    ...         out[:] = 0.0
    ...         out[t % out.size] = 1.0
    >>> result = simulate(Uniform(n_arms=2), InTurn(scale=3.0), rounds=10, seed=0)
    >>> float(result.pseudo_regret[0, -1])
    0.0
    """

    fill: ClassVar[Callable[..., None]]
    entry: ClassVar[Callable[..., float] | None] = None
    expected: ClassVar[Callable[..., float] | None] = None
    reference: ClassVar[str] = ""
    """Where it was published, if it was."""
    looks: ClassVar[bool] = False
    """Whether ``fill`` uses ``q`` or ``last_arm``; if not, many rounds are filled at once."""

    _: KW_ONLY
    scale: float = setting(1.0, checked_finite)
    shift: float = setting(0.0, checked_finite)

    def params(self, n: int, rounds: int) -> Any:
        """Return what ``fill`` gets as ``params``, for ``n`` arms and ``rounds`` rounds."""
        return ()

    def state(self, n: int, rounds: int, key: int) -> Any:
        """Return what ``fill`` gets as ``state`` and may change; ``key`` is random, below 2^53."""
        return (key,)

    def begin(self, n: int, rounds: int, key: int) -> tuple[Vector, Vector]:
        """Return both, as the arrays that `rows` takes."""
        params = np.concatenate([(self.scale, self.shift), self.params(n, rounds)])
        return params, np.array(self.state(n, rounds, key), dtype=np.float64)

    @classmethod
    def rows(cls) -> Pointer:
        """Return a pointer to what fills several rows of losses."""
        return _rows(cls.fill)

    @classmethod
    def loss_of(cls) -> Pointer:
        """Return a pointer to the loss of one arm."""
        if cls.entry is None:
            raise TypeError(
                f"{cls.__name__} cannot tell the loss of one arm (it has no kernel `entry`): "
                "simulate against all arms, without comparators="
            )
        return _loss_of(cls.entry)


@dataclass(repr=False, eq=False)
class MDPAdversary(_Settings):
    """Base of the adversaries of layered MDPs.

    Parameters
    ----------
    scale : float
        Multiplies every loss.

    Examples
    --------
    >>> import numpy as np
    >>> from unbounded import MDPAdversary, UniformPolicy, simulate_mdp, worlds
    >>> class FirstPair(MDPAdversary):
    ...     def fill(params, t, q, lay, out):
    ...         out[:] = 0.0
    ...         out[1] = params[0]
    >>> mdp = worlds.dirichlet([1, 2], 2, seed=0)
    >>> result = simulate_mdp(UniformPolicy([1, 2], 2), mdp, FirstPair(scale=3.0), 10, seed=0)
    >>> result.high[0, -1].tolist()
    [3.0, 0.0]
    """

    fill: ClassVar[Callable[..., None]]
    looks: ClassVar[bool] = False
    """Whether ``fill`` uses ``q``; if not, every learner meets the same losses."""
    draws: ClassVar[bool] = True
    """Whether the losses depend on the random ``key``."""

    _: KW_ONLY
    scale: float = setting(1.0, checked_real)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not math.isfinite(self.scale * self.largest):
            raise ValueError(
                f"the largest loss, {self.largest:g} times scale, must be finite; got "
                f"scale={shown(self.scale)}"
            )

    @property
    def largest(self) -> float:
        """A bound on the absolute losses at scale 1, for the settings that it has."""
        return 1.0

    def fits(self, mdp: LayeredMDP, episodes: int) -> None:
        """Reject an MDP, or a number of episodes, that it is not for; before anything is played."""

    def params(self, mdp: LayeredMDP, episodes: int) -> Any:
        """Return what ``fill`` gets in ``params`` from ``OWN`` on."""
        return ()

    def begin(self, mdp: LayeredMDP, episodes: int, key: int) -> Vector:
        """Return the ``params`` of ``fill``; ``key`` is random, below 2^53."""
        return np.concatenate([(self.scale, episodes, key), self.params(mdp, episodes)])

    @classmethod
    def filler(cls) -> Pointer:
        """Return a pointer to ``fill``."""
        return _losses(cls.fill)


# What was made is remembered by the function that it was made of: another class of the same
# name, or a class that is given another ``fill``, has its own.


@cache
def _rows(given: Any) -> Pointer:
    fill = as_kernel(given)

    def rows(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
        scale, shift = params[0], params[1]
        for row in range(out.shape[0]):
            fill(params[2:], state, t + row, last_arm, q, out[row])
            if scale != 1.0 or shift != 0.0:
                for k in range(out.shape[1]):
                    out[row, k] = scale * out[row, k] + shift

    return Pointer(_made_for(given, rows), FILL_ROWS)


@cache
def _loss_of(given: Any) -> Pointer:
    entry = as_kernel(given)

    def loss_of(params: Any, state: Any, t: int, k: int) -> float:
        loss = entry(params[2:], state, t, k)
        scale, shift = params[0], params[1]
        return scale * loss + shift if scale != 1.0 or shift != 0.0 else loss

    return Pointer(_made_for(given, loss_of), _ENTRY)


@cache
def _losses(given: Any) -> Pointer:
    fill = as_kernel(given)

    def losses(params: Any, t: int, q: Any, lay: Any, out: Any) -> None:
        fill(params, t, q, lay, out)

    return Pointer(_made_for(given, losses), _FILL_PAIRS)


def as_kernel(given: Any) -> Any:
    """Return a kernel, of a function too."""
    return given if hasattr(given, "py_func") else counting_kernel(given)


def _made_for(given: Any, function: Any) -> Any:
    function.__module__, function.counts = given.__module__, counted(given)
    function.__qualname__ = f"{given.__qualname__}.{function.__name__}"
    return function


def check_adversary(given: object, kind: type, recorded: str, *takes: str) -> None:
    """Reject what is neither an adversary of a ``kind`` nor a function that ``takes`` this."""
    if isinstance(given, kind):
        return
    if isinstance(given, type) and issubclass(given, _Settings):
        name = given.__name__
        raise ArgumentTypeError(
            "adversary", f"must be an object, as {name}(), not the class {name}"
        )
    if not callable(given):
        function = f"a function of ({', '.join(takes)})"
        must = f"must be an {kind.__name__} or {function}; for recorded losses take {recorded}"
        raise ArgumentTypeError("adversary", f"{must}; got {shown(given)}")
    checked_function("adversary", given, *takes)


def check_learner(given: object, kind: type, example: str) -> None:
    """Reject what is no learner of a ``kind``, as a class of learners is not."""
    if not isinstance(given, kind):
        name = f"an {kind.__name__}" if kind.__name__.startswith("MDP") else f"a {kind.__name__}"
        must = f"must be {name}, as {example} is, not {shown(given)}"
        raise ArgumentTypeError("learner", must)


PythonMDPAdversary = Callable[
    [int, tuple[Integers, Integers] | None, list[Vector], np.random.Generator],
    Sequence[npt.ArrayLike],
]
"""``losses = adversary(t, last, q, rng)``; see `unbounded.simulate_mdp`."""


class PythonPlay(NamedTuple):
    """An adversary of an MDP in Python, and what it sees of a play."""

    adversary: PythonMDPAdversary
    layers: Layers
    rng: np.random.Generator
    states: Integers  # of the last episode
    actions: Integers


def fill_python(play: PythonPlay, t: int, q: Vector, lay: Any, out: Vector) -> None:
    """As ``fill``, by a call of the adversary; it gets copies of everything."""
    last = None if t == 1 else (play.states.copy(), play.actions.copy())
    given = play.adversary(t, last, play.layers.unpack_pairs(q.copy()), play.rng)
    shapes = [(n, play.layers.n_actions) for n in play.layers.sizes]
    try:
        tables = [np.asarray(table, dtype=np.float64) for table in given]
    except (TypeError, ValueError):
        tables = []
    if [table.shape for table in tables] != shapes:
        got = [table.shape for table in tables] or repr(given)
        raise ValueError(
            f"the adversary must return one table of losses per layer, of shapes {shapes}; got "
            f"{got} at t = {t}"
        )
    out[:] = play.layers.pack_pairs(tables)
    out[play.layers.free] = 0.0  # whatever was said of it
    for h, table in enumerate(play.layers.unpack_pairs(out)):
        if not np.all(np.isfinite(table)):
            raise ValueError(
                f"the adversary must return finite losses, got {table.tolist()} in layer {h} at "
                f"t = {t}"
            )


# Errors of compiled adversaries

_lock = threading.Lock()
_playing: dict[int, list[BaseException]] = {}  # by thread: the first error of its play
_before: Any = sys.__unraisablehook__


@contextmanager
def adversary_errors() -> Iterator[None]:
    """Raise at the end what a compiled adversary has raised in this thread.

    Loops call ``fill`` by a C pointer, through which no error can pass: Numba gives it to
    `sys.unraisablehook`, which prints it, and the play goes on with wrong losses.
    """
    global _before
    me = threading.get_ident()
    found: list[BaseException] = []
    with _lock:
        _playing[me] = found
        if sys.unraisablehook is not _note:
            _before, sys.unraisablehook = sys.unraisablehook, _note
    try:
        yield
    finally:
        with _lock:
            del _playing[me]
            if not _playing and sys.unraisablehook is _note:
                sys.unraisablehook = _before
    if found:
        raise found[0]


def _note(unraisable: Any) -> None:
    found = _playing.get(threading.get_ident())
    if found is None or not isinstance(unraisable.object, str):  # Numba says where, as text
        _before(unraisable)
    elif not found:
        found.append(unraisable.exc_value)
