"""Ask/tell learners for layered MDPs: a policy for each episode, learned from its trajectory."""

from __future__ import annotations

import base64
import json
import os
import secrets
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self, SupportsIndex

import numpy as np
import numpy.typing as npt

from unbounded._arguments import checked_numbers
from unbounded.core.arrays import (
    Vector,
)
from unbounded.core.occupancy.layout import (
    Layers,
)
from unbounded.core.occupancy.policies import Markov
from unbounded.play.learner import Seed, _write_whole, bit_generator
from unbounded.play.plan import Plan
from unbounded.play.sections import (
    CLIPPED,
    FALLBACKS,
    LIBRARY,
    SOLVES,
    STEPS,
    TOLD,
    UNSOLVED,
    WORST,
    Sizes,
    carve,
    length,
)

_FORMAT = "unbounded.mdp_learner"
_VERSION = 2
_CAPACITY = 32  # exploration policies that fit at first; the buffer grows


def no_program() -> int:
    """For algorithms that solve nothing."""
    return 0


@dataclass(frozen=True)
class MDPSpec:
    """What an algorithm's file declares about itself.

    Parameters
    ----------
    name, reference : str
    State : type
        NamedTuple of vectors; ``head`` and ``pi`` are the first two.
    sizes : callable
        ``sizes(layers, capacity)``: their lengths.
    init : callable
        ``init(layers, state)`` fills a zeroed state, in Python.
    choose : kernel
        ``choose(lay, params, state, word, pi) -> component`` fills the policy of the next episode;
        changes nothing.
    learn : kernel
        ``learn(lay, params, state, program, component, states, actions, losses)``.
    expected : kernel
        ``expected(lay, params, state, P, cache, q)``: occupancy of the next episode's policy.
    program : callable
        Returns what ``learn`` gets as ``program``.
    scale_free : bool
        What is claimed, and tested.
    per_state : bool
        Whether the learner's ``episodes`` are those for one state, and not those of the run.
    """

    name: str
    reference: str
    State: Any
    sizes: Callable[[Layers, int], Sizes]
    init: Callable[[Layers, Any], None]
    choose: Callable[..., int]
    learn: Callable[..., None]
    expected: Callable[..., None]
    program: Callable[[], Any] = no_program
    scale_free: bool = False
    per_state: bool = False

    def new_buffer(self, layers: Layers, capacity: int = _CAPACITY) -> tuple[Vector, Any]:
        """A zeroed buffer and the state that looks into it."""
        sizes = self.sizes(layers, capacity)
        buffer = np.zeros(length(sizes))
        return buffer, carve(self.State, sizes, buffer)


class Solves(NamedTuple):
    """What is proved about the solves so far."""

    solves: int
    worst_gap: float  # largest certified gap, over the smallest weight of its solve
    fallbacks: int  # warm starts that needed the interior-point method
    unsolved: int  # solves whose gap exceeds the tolerance times the largest weight
    newton_steps: int


class MDPLearner:
    """Base of the learners for MDPs: ask for a policy, play it, tell what happened.

    One plan may be outstanding at a time.
    """

    spec: ClassVar[MDPSpec]

    def __init__(self, *, seed: Seed = None, **settings: Any) -> None:
        raise TypeError("MDPLearner is the base of the learners: make an SCBRL, for example")

    def _start(self, layers: Layers, params: Any, settings: Mapping[str, Any], seed: Seed) -> None:
        self.layers = layers
        self._params = params
        self._settings = {  # for `save`: JSON knows no NumPy scalars
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in settings.items()
        }
        self._capacity = max(_CAPACITY, layers.n_states + 1)
        self._buffer, self._state = self.spec.new_buffer(layers, self._capacity)
        self.spec.init(layers, self._state)
        self._prepare(self._state)
        self._bits = bit_generator(seed)
        self._outstanding: Plan | None = None
        self._forgotten = 0
        self._name = secrets.token_hex(8)
        self._lock = threading.Lock()

    def _prepare(self, state: Any) -> None:
        """What an algorithm does to a fresh state, given its settings."""

    # ------------------------------------------------------------------ playing

    def ask(self) -> Plan:
        """Choose the policy of the next episode."""
        with self._lock:
            if self._outstanding is not None:
                raise RuntimeError(
                    f"{self._outstanding!r} is outstanding: tell() or forget() it first"
                )
            self._warn_if_over(self.episodes_told + 1)
            words = self._bits.random_raw(1 + self.layers.horizon)
            self._outstanding = self._plan(words)
            return self._outstanding

    def _warn_if_over(self, episodes: int) -> None:
        T = None if self.spec.per_state else self.made_for  # RF-ELP may go on for ever
        if T is not None and episodes > T:
            warnings.warn(
                f"{self.spec.name} was made for {T} episodes: it goes on, but its rates and its "
                "guarantee are for that many",
                stacklevel=3,
            )

    def _plan(self, words: Any) -> Plan:
        pi = np.empty(self.layers.n_pairs)
        component = self.spec.choose(self.layers.table, self._params, self._state, words[0], pi)
        return Plan(
            self.layers, pi, component, words, self.episodes_told + self._forgotten, self._name
        )

    def tell(
        self,
        plan: Plan,
        states: npt.ArrayLike,
        actions: npt.ArrayLike,
        losses: npt.ArrayLike | None = None,
        *,
        rewards: npt.ArrayLike | None = None,
    ) -> None:
        """Report the episode that was played with ``plan``.

        Parameters
        ----------
        plan : Plan
            What `ask` returned.
        states, actions : array_like of int, shape (H,)
            Visited states, numbered within their layers, and actions.
        losses : array_like of float, shape (H,)
            Any finite numbers; lower is better.
        rewards : array_like of float, shape (H,)
            Instead of ``losses``: higher is better.
        """
        s = checked_numbers("states", states, self.layers.sizes)
        a = checked_numbers("actions", actions, (self.layers.n_actions,) * self.layers.horizon)
        if (losses is None) == (rewards is None):
            raise TypeError("tell() needs either losses= or rewards=")
        if losses is not None:
            values = self._checked("losses", losses)
        else:
            values = -self._checked("rewards", rewards)
        with self._lock:
            component = self._take(plan)
            self.spec.learn(
                self.layers.table, self._params, self._state, self.spec.program(), component, s,
                a, values,
            )  # fmt: skip
            self._make_room()

    def forget(self, plan: Plan) -> None:
        """Drop a plan whose episode will never be known; nothing is learned from it."""
        with self._lock:
            self._take(plan)
            self._forgotten += 1

    def _take(self, plan: Plan) -> int:
        """The plan is outstanding no more; which policy it is."""
        if not isinstance(plan, Plan):
            raise TypeError(f"plan must be what ask() returned, not {plan!r}")
        if plan._learner != self._name:
            raise ValueError(
                f"{plan!r} was issued by another learner; tell it to the learner that was asked"
            )
        if self._outstanding is None or self._outstanding.id != plan.id:
            raise ValueError(
                f"{plan!r} is not outstanding: it was told or forgotten before; "
                "ask() again for a new plan"
            )
        self._outstanding = None
        return plan._component

    def _checked(self, name: str, values: Any) -> Vector:
        given = np.asarray(values)
        if given.shape != (self.layers.horizon,):
            raise ValueError(
                f"{name} must have shape ({self.layers.horizon},), one a layer; got {given.shape}"
            )
        if given.dtype.kind not in "iuf":
            raise TypeError(f"{name} must be real numbers, not of type {given.dtype}")
        numbers = given.astype(np.float64)
        if not np.all(np.isfinite(numbers)):
            raise ValueError(f"{name} must be finite, got {given.tolist()}")
        return numbers

    def _make_room(self) -> None:
        if self._state.head[LIBRARY] < self._capacity - 1:
            return
        self._grow(2 * self._capacity)

    def _grow(self, capacity: int) -> None:
        """Move the state to a buffer with room for more exploration policies."""
        buffer, state = self.spec.new_buffer(self.layers, capacity)
        _copy(self._state, state)
        self._buffer, self._state, self._capacity = buffer, state, capacity

    # ------------------------------------------------------------------ looking

    @property
    def settings(self) -> Mapping[str, Any]:
        """The arguments that make an equal fresh learner, the seed apart."""
        return MappingProxyType(self._settings)

    @property
    def episodes_told(self) -> int:
        """How many episodes have been told."""
        return int(self._state.head[TOLD])

    @property
    def made_for(self) -> int | None:
        """How many episodes the learner was told to expect; None if any number will do."""
        T = self._settings.get("episodes")
        if T is None:
            return None
        return int(T) * (sum(self.layers.sizes) if self.spec.per_state else 1)

    @property
    def clipped(self) -> int:
        """How many losses lay outside the range that was told, or that had been seen."""
        return int(self._state.head[CLIPPED])

    @property
    def certificate(self) -> Solves:
        """How well programs over occupancy measures have been solved so far, if there are any."""
        head = self._state.head
        return Solves(
            int(head[SOLVES]), float(head[WORST]), int(head[FALLBACKS]), int(head[UNSOLVED]),
            int(head[STEPS]),
        )  # fmt: skip

    @property
    def outstanding(self) -> Plan | None:
        """The plan whose episode has not been told."""
        return self._outstanding

    def policy(self) -> Markov:
        """The learner's own policy now, without exploration."""
        return Markov(self.layers, self._state.pi)

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._settings.items())
        return f"{self.spec.name}({settings})"

    # ------------------------------------------------------------------ keeping

    def save(self, path: str | os.PathLike[str] | None = None) -> str:
        """Everything that the learner knows, its generator and outstanding plan included.

        Returns JSON for `load`; writes it to ``path`` as well, all or nothing.
        """
        with self._lock:
            plan = self._outstanding
            document = {
                "format": _FORMAT,
                "version": _VERSION,
                "algorithm": self.spec.name,
                "settings": self._settings,
                "capacity": self._capacity,
                "buffer": base64.b64encode(self._buffer.astype("<f8").tobytes()).decode(),
                "generator": {k: str(v) for k, v in self._bits.state["state"].items()},
                "forgotten": self._forgotten,
                "name": self._name,
                "outstanding": None if plan is None else [int(word) for word in plan._words],
            }
        text = json.dumps(document)
        if path is not None:
            _write_whole(Path(path), text)
        return text

    @classmethod
    def load(cls, saved: str | os.PathLike[str]) -> Self:
        """Restore a learner from what `save` returned, or from the file that it wrote.

        It continues exactly where the saved one stood; ``learner.outstanding`` is the plan that
        was outstanding then.
        """
        is_text = isinstance(saved, str) and saved.lstrip().startswith("{")
        text = str(saved) if is_text else Path(saved).read_text()
        try:
            document = json.loads(text)
            if document["format"] != _FORMAT:
                raise ValueError(f"its format is {document['format']!r}")
            if document["version"] != _VERSION:
                raise ValueError(f"its version is {document['version']!r}, not {_VERSION}")
            if document["algorithm"] != cls.spec.name:
                name = document["algorithm"]
                raise ValueError(f"it holds a {name}: use {name}.load")
            learner = cls(**document["settings"], seed=0)
            buffer = np.frombuffer(base64.b64decode(document["buffer"], validate=True), "<f8")
            learner._grow(int(document["capacity"]))
            if buffer.shape != learner._buffer.shape:
                raise ValueError("its state does not fit its settings")
            learner._buffer[:] = buffer
            pi = learner._state.pi
            if not (np.all(np.isfinite(learner._state.head)) and np.all((pi >= 0) & (pi <= 1.0))):
                raise ValueError("its state holds no policy")
            numbers = {key: int(value) for key, value in document["generator"].items()}
            learner._bits.state = {
                "bit_generator": "PCG64",
                "state": {"state": numbers["state"], "inc": numbers["inc"]},
                "has_uint32": 0,
                "uinteger": 0,
            }
            learner._forgotten = int(document["forgotten"])
            learner._name = str(document["name"])
            if document["outstanding"] is not None:
                words = np.array(document["outstanding"], dtype=np.uint64)
                if words.shape != (1 + learner.layers.horizon,):
                    raise ValueError("its outstanding plan does not fit its settings")
                learner._outstanding = learner._plan(words)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ValueError(f"this is not a saved {cls.spec.name}: {error}") from error
        return learner


def _copy(source: Any, target: Any) -> None:
    for before, after in zip(source, target, strict=True):
        if isinstance(before, tuple):
            _copy(before, after)
        else:
            after[: before.size] = before


def checked_layers(layers: Sequence[int], n_actions: SupportsIndex) -> Layers:
    """`Layers` from what the user gave, or a clear error."""
    try:
        sizes = [int(n) for n in layers]
        whole = all(n == size for n, size in zip(layers, sizes, strict=True))
    except (TypeError, ValueError):
        raise TypeError(f"layers must be whole numbers, one a layer; got {layers!r}") from None
    if not whole or isinstance(n_actions, bool) or not isinstance(n_actions, SupportsIndex):
        raise TypeError(
            f"layers and n_actions must be whole numbers, got {layers!r} and {n_actions!r}"
        )
    return Layers(sizes, int(n_actions))
