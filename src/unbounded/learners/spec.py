"""The contract of an algorithm: what its file defines, and what it says of itself.

An algorithm is a file with ``Params`` (never changes), ``State`` (everything that changes),
``init`` and three kernels, for bandits and for MDPs alike (bandits also say their ``scale``):

============  =================================================  ==========================
step          bandits                                            MDPs
============  =================================================  ==========================
init          params -> State                                    layers, params -> State
distribution  fills q_t, the distribution over the arms          ... the occupancy measure
act           word -> arm, probability, ask_info                     word -> policy, ask_info
update        arm, ask_info, loss -> State                           episode, ask_info -> State
============  =================================================  ==========================

`bandit_steps` and `mdp_steps` have the usual ``distribution`` and ``act``, and ``scale``.
``act`` changes nothing; ``update`` is the only place where t advances. Scalars of the state change
by returning a new ``State``, vectors in place. The interactive learner and the simulator run these
same steps.

A bandit's file may also say how it learns where something is known at each ask: which arms are
available, for example. This *side information* is one vector, ``side``, and what ``update`` needs
of it is another, the *note*, which ``act_with`` takes.

==================  ===========================================================
optional step
==================  ===========================================================
distribution_with   side -> fills q_t
act_with            word, side -> arm, probability, ask_info; fills the note
update_with         arm, `SideAsk`, loss -> State
==================  ===========================================================

They are compiled by themselves, when they are first used.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numba
import numpy as np

from unbounded.core.arrays import Vector
from unbounded.jit.kernel import counted, kernel
from unbounded.jit.schedule import Seconds
from unbounded.learners.buffer import Packing

WORDS = 256  # random words that the buffer of a bandit holds
# Slots at the front of a bandit's buffer: how often it was asked, which is the position in the
# stream of random words; the position up to which words have been drawn; the last WORDS words; and
# which tickets were told, as far as that is still in question: number k at TOLD + k % RING.
ASKED, DRAWN, FIRST_WORD = range(3)
TOLD, RING = FIRST_WORD + WORDS, 64


@dataclass(frozen=True, kw_only=True, eq=False)
class Spec:
    """What an algorithm's file declares about itself, whatever it is for."""

    steps: ClassVar[tuple[str, ...]] = (
        "Params", "State", "init", "distribution", "act", "update",
    )  # fmt: skip
    optional: ClassVar[tuple[str, ...]] = ()

    module: str  # where the algorithm is defined
    name: str = ""  # of its public class; by default, of the class that it is given to
    reference: str  # where the algorithm was published
    Params: Any  # NamedTuples; `unbounded.learners.buffer.Packing` says what their fields may be
    State: Any  # it has ``t`` (tells + 1) and ``clipped``
    init: Callable[..., Any]  # in Python: the first ``State``
    distribution: Callable[..., None]  # kernels: the steps of a round or of an episode
    act: Callable[..., Any]
    update: Callable[..., Any]
    scale_free: bool = False  # a claim; the shared tests verify it, or else the opposite
    examples: tuple[Mapping[str, Any], ...] = ({},)  # settings that the shared tests run
    in_python: bool = False  # whether the steps are methods of the learner, never compiled
    absent: tuple[str, ...] = ()  # vectors without which its steps are compiled: see `lacking`

    @classmethod
    def of(cls, module: str, **claims: Any) -> Self:
        """The spec of a module that defines ``cls.steps`` under these names, with its claims.

        A step that is defined elsewhere is given as a claim; some have defaults.
        """
        defined = cls._defaults(module) | vars(sys.modules[module])
        wanted = [step for step in cls.steps if step not in claims]
        missing = [step for step in wanted if step not in defined]
        if missing:
            name = claims.get("name", cls.__name__)
            kinds = " (as State has a field of a kind that is not in unbounded.core.arrays)"
            more = kinds if missing == ["init"] else ""
            raise TypeError(f"{module} must define {', '.join(missing)} for {name}{more}")
        wanted += [step for step in cls.optional if step in defined and step not in claims]
        found = {step: defined[step] for step in wanted}
        return cls(module=module, **found, **claims)

    def __set_name__(self, owner: type, _: str) -> None:
        if not self.name:
            object.__setattr__(self, "name", owner.__name__)

    @classmethod
    def _defaults(cls, module: str) -> dict[str, Any]:
        """Return what a module need not define."""
        return {}

    @cached_property
    def packing(self) -> Packing:
        """The layout of the learner's buffer."""
        reserved, absent = self._reserved, self.absent
        return Packing(self.name, self.module, self.Params, self.State, reserved, absent)

    @property
    def seconds_to_compile(self) -> float:
        """About how long it takes to compile."""
        return Seconds.BANDIT

    @cached_property
    def counts(self) -> bool:
        """Whether any of its steps counts references to arrays, as those of users do."""
        steps = [getattr(self, field.name) for field in fields(self)]
        return any(counted(step) for step in steps if hasattr(step, "py_func"))

    def lacking(self, buffer: Vector) -> Self:
        """The same for learners without the vectors that are None in this buffer: code of its own,
        with nothing of what those are for."""
        absent = self.packing.lacks(buffer)
        if absent == self.absent:
            return self
        if absent not in self._lacking:
            self._lacking[absent] = replace(self, absent=absent)
        return self._lacking[absent]

    @cached_property
    def _lacking(self) -> dict[tuple[str, ...], Self]:
        return {}

    @property
    def _reserved(self) -> int:
        """Slots at the front of the buffer that are not the algorithm's."""
        return 0

    def entry(self, function: Callable[..., Any], *, nogil: bool = False) -> Any:
        """Compile ``function``, made for this algorithm from its steps.

        Under the GIL it is one indivisible action for other threads.
        """
        function.__module__ = self.module
        function.__qualname__ = f"{self.name}.{function.__name__}"
        if numba.config.DISABLE_JIT:  # compiled code does not warn of what it is meant to do
            return np.errstate(all="ignore")(function)
        return kernel(function, nogil=nogil, counts=self.counts)


class Ask(NamedTuple):
    """What a learner with a ``clock`` remembers of an ask until its loss is told."""

    info: float  # the ask_info that ``act`` returned
    clock: int  # the state's ``clock`` at the ask


class SideAsk(NamedTuple):
    """What a learner remembers of an ask with side information until its loss is told."""

    info: float  # the ask_info that ``act_with`` returned
    clock: int  # the state's ``clock`` at the ask; 0 if it has none
    note: Vector  # what ``act_with`` noted, in [0, 1]


def _mask_note(params: Any) -> int:
    """Return the size of the note that `sleeping.draw_noted` takes."""
    return int(params.n) + 2


@dataclass(frozen=True, kw_only=True, eq=False)
class BanditSpec(Spec):
    """What the file of a bandit algorithm declares about itself.

    ``init(params) -> State``; ``distribution(params, state, q)`` fills ``q`` with q_t;
    ``act(params, state, word) -> (arm, probability, ask_info)``;
    ``update(params, state, arm, ask_info, loss) -> State``. The ask_info is a float; a learner with
    a ``clock`` gets an `Ask` in its place.

    With side information: ``distribution_with(params, state, side, q)``;
    ``act_with(params, state, word, side, note) -> (arm, probability, ask_info)``;
    ``update_with(params, state, arm, side_ask, loss) -> State``. The first n entries of ``side``
    are 1 for the arms that are available and 0 for the others.
    """

    steps = (*Spec.steps, "scale")
    optional: ClassVar[tuple[str, ...]] = (
        "distribution_with", "act_with", "update_with", "with_arms",
    )  # fmt: skip

    guarantee: str  # the regret bound that is claimed for it, in words
    scale: Callable[..., float]  # scale(params, state) -> float: what it now works with
    # asked(params, state) -> State, after every ask, for learners that count what is outstanding.
    # The simulator, in which nothing is outstanding, does without it.
    asked: Callable[..., Any] | None = None
    # elapsed(params, state, tick) -> State, before an ask, for learners whose half-life is a time.
    elapsed: Callable[..., Any] | None = None
    feedback: Literal["bandit", "full"] = "bandit"  # update takes the arm's loss, or all losses
    delayed: bool = True  # whether several asks may be outstanding
    clocked: bool = False  # whether `update` gets an `Ask`, with the state's ``clock`` of the ask
    advised: bool = False  # whether `ask` needs the advice of experts
    translation_invariant: bool = False  # as ``scale_free``
    largest_loss: float = math.inf  # the largest absolute loss that is legal
    bound: Callable[[int, int], float] | None = None  # bound(n, T): the theorem's, on mean regret
    bound_unit: Literal["scale", "range"] = "range"  # of that: largest |loss|, or max - min
    distribution_with: Callable[..., None] | None = None
    act_with: Callable[..., Any] | None = None
    update_with: Callable[..., Any] | None = None  # None: it takes no side information
    # with_arms(params, state, new_params, keep) -> State, in Python, after arms came or went: new
    # arm i was arm keep[i], or is new if that is -1. None: what was learned cannot be kept.
    with_arms: Callable[..., Any] | None = None
    note_size: Callable[[Any], int] = _mask_note  # of its params

    @classmethod
    def _defaults(cls, module: str) -> dict[str, Any]:
        from unbounded.learners.bandit_steps import default_steps  # which imports this file

        defined = vars(sys.modules[module])
        records = [defined.get(name) for name in ("Params", "State")]
        return default_steps(module, *records) if all(records) else {}

    @property
    def _reserved(self) -> int:
        return TOLD + RING


class Solves(NamedTuple):
    """The certificate of the solves so far, of learners that solve programs."""

    solves: int
    worst_gap: float  # largest certified gap, over the smallest weight of its solve
    fallbacks: int  # warm starts that needed the interior-point method
    unsolved: int  # solves whose gap exceeds the tolerance times the largest weight
    newton_steps: int


NO_SOLVES = Solves(0, 0.0, 0, 0, 0)


class Cache(NamedTuple):
    """Scratch for an MDP algorithm's ``distribution``, kept from call to call of one play."""

    explorers: Vector  # (n_pairs,): occupancy of a finished library of exploration policies
    known: Vector  # (1,): which library it is of; 0: none
    pi: Vector  # (n_pairs,): scratch
    mass: Vector  # (n_states,): scratch


@kernel
def _any_losses(params: Any, losses: Vector) -> bool:
    return True


@kernel
def _always(state: Any) -> bool:
    return True


def _nothing() -> Any:
    return 0


@dataclass(frozen=True, kw_only=True, eq=False)
class MDPSpec(Spec):
    """What the file of an algorithm for MDPs declares about itself.

    ``State`` also has ``version``, which changes when what the learner plays changes. ``lay`` is
    ``Layers.table``; policies and losses are flat over pairs.

    ``init(layers, params) -> State``; ``distribution(lay, params, state, P, cache, q)`` fills ``q``
    with q_t, the occupancy measure under the transitions ``P`` of what ``act`` will play;
    ``act(lay, params, state, word, pi) -> ask_info`` fills the policy of the next episode;
    ``update(lay, params, state, solver, ask_info, states, actions, losses) -> State``.
    """

    feedback: Literal["bandit", "full"] = "bandit"  # losses of the visited pairs, or of all, flat
    policy: Callable[[Any], Vector] = attrgetter("pi")  # of the state: its own, without explorers
    solves: str = ""  # which field of the state has its `Solves`; empty if it solves nothing
    solver: Callable[[], Any] = _nothing  # returns what ``update`` gets as ``solver``
    takes: Callable[[Any, Any], bool] = _any_losses  # kernel: (params, losses) are legal
    room: Callable[[Any], bool] = _always  # kernel: one more ``update`` fits into the state
    grown: Callable[[Any], Any] | None = None  # from a state without room to one with more
    per_state: bool = False  # whether ``episodes`` are those for one state, not those of the run
    told_episodes: bool = True  # experiments tell theirs, where ``episodes`` is optional
    infinite: tuple[str, ...] = ()  # vectors that are infinite where an action is not allowed

    @classmethod
    def _defaults(cls, module: str) -> dict[str, Any]:
        from unbounded.learners.mdp_steps import default_mdp_steps  # bandits need not load it

        return default_mdp_steps(vars(sys.modules[module]).get("State"))

    @property
    def seconds_to_compile(self) -> float:
        """About how long it takes to compile."""
        return Seconds.SOLVER if hasattr(self.solver, "kernel") else Seconds.MDP

    @cached_property
    def unsolved(self) -> int | None:
        """Where the buffer counts the solves that failed, if there are any solves."""
        return self.packing.slot(f"{self.solves}.unsolved") if self.solves else None
