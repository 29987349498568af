"""What a bandit learner runs: an algorithm's steps over its buffer, and steps that are usual.

A bandit's file need not define ``distribution``, ``act`` and ``scale``. If the state has a field
``law`` or ``arms``, the arm is drawn from it; else, if it has a field ``best``, that arm is played.
The scale is high - low, if the params have these fields, and 0 otherwise. Nor need it define
``init`` where each number in the state begins as the legal one nearest to 0, vectors have an entry
for each arm, and distributions are uniform. A file that defines a step of its own overrides the
default.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

from unbounded.core.arrays import NotKept, Values, Vector
from unbounded.core.scaled import LARGEST
from unbounded.core.simplex.sampling import Law, draw, fill, new_law
from unbounded.core.simplex.sleeping import draw_noted, note_best, restrict
from unbounded.jit.kernel import borrowed, kernel, words
from unbounded.learners.spec import (
    ASKED,
    DRAWN,
    FIRST_WORD,
    RING,
    TOLD,
    WORDS,
    Ask,
    BanditSpec,
    SideAsk,
)


class Entries(NamedTuple):
    """An algorithm's steps over its buffer, compiled."""

    ask: Any  # buffer -> arm (-1: no random words left), probability, record, number
    tell: Any  # buffer, arm, record, number, loss
    look: Any  # buffer, q
    scale: Any  # buffer -> float
    ask_and_count: Any  # as ask, and then the algorithm's ``asked``
    pass_time: Any  # buffer, tick: the algorithm's ``elapsed``


class SideEntries(NamedTuple):
    """The same with side information, compiled."""

    ask: Any  # buffer, side, note -> arm (-1: no words left), probability, info, clock, number
    tell: Any  # buffer, arm, info, clock, note, number, loss
    look: Any  # buffer, side, q


@kernel
def _info(state: Any, ask_info: float) -> float:
    return ask_info


@kernel
def _same(record: float) -> float:
    return record


@kernel
def _info_and_clock(state: Any, ask_info: float) -> complex:
    return complex(ask_info, state.clock)


@kernel
def _ask_of(record: complex) -> Ask:
    return Ask(record.real, int(record.imag))


def remembering(spec: BanditSpec) -> tuple[Any, Any]:
    """Return the kernels ``(state, ask_info) -> record`` of an ask, and ``record -> `` what
    ``update`` gets of it. A record is one number, info + i clock: that crosses to Python fast."""
    return (_info_and_clock, _ask_of) if spec.clocked else (_info, _same)


@kernel
def _clock(state: Any) -> int:
    return int(state.clock)


@kernel
def _no_clock(state: Any) -> int:
    return 0


def clock_of(spec: BanditSpec) -> Any:
    """Return the kernel ``state -> clock``, which is 0 if the states have none."""
    return _clock if spec.clocked else _no_clock


@cache
def entries(spec: BanditSpec) -> Entries:
    """Return the compiled entries of an algorithm; made on first use."""
    params_of, state_of, pack = spec.packing.compiled
    record_of, ask_of = remembering(spec)
    act, update, distribution, scale_of = spec.act, spec.update, spec.distribution, spec.scale
    asked_of: Any = spec.asked
    elapsed: Any = spec.elapsed

    def ask(owner: Any) -> tuple[int, float, Any, int]:
        buffer = borrowed(owner)
        asked, state = int(buffer[ASKED]), state_of(buffer)
        if buffer[ASKED] == buffer[DRAWN]:
            return -1, 0.0, record_of(state, 0.0), asked
        buffer[ASKED] += 1.0
        word = words(buffer)[FIRST_WORD + asked % WORDS]
        arm, probability, ask_info = act(params_of(buffer), state, word)
        return arm, probability, record_of(state, ask_info), asked

    def tell(owner: Any, arm: int, record: Any, number: int, loss: Any) -> None:
        buffer = borrowed(owner)
        pack(buffer, update(params_of(buffer), state_of(buffer), arm, ask_of(record), loss))
        buffer[TOLD + number % RING] = number  # with the update, whoever is interrupted

    def look(owner: Any, q: Any) -> None:
        buffer = borrowed(owner)
        distribution(params_of(buffer), state_of(buffer), q)

    def scale(buffer: Any) -> float:
        return scale_of(params_of(buffer), state_of(buffer))

    ask_only = spec.entry(ask)

    def ask_and_count(owner: Any) -> tuple[int, float, Any, int]:
        found = ask_only(owner)
        if found[0] >= 0:
            buffer = borrowed(owner)
            pack(buffer, asked_of(params_of(buffer), state_of(buffer)))
        return found

    def pass_time(owner: Any, tick: int) -> None:
        buffer = borrowed(owner)
        pack(buffer, elapsed(params_of(buffer), state_of(buffer), tick))

    others = (spec.entry(step) for step in (tell, look, scale, ask_and_count, pass_time))
    return Entries(ask_only, *others)


@cache
def side_entries(spec: BanditSpec) -> SideEntries:
    """Return the compiled entries of an algorithm with side information; made on first use."""
    params_of, state_of, pack = spec.packing.compiled
    act: Any = spec.act_with
    update: Any = spec.update_with
    distribution: Any = spec.distribution_with
    clock = clock_of(spec)

    def ask_with(owner: Any, side: Any, note: Any) -> tuple[int, float, float, int, int]:
        buffer, side, note = borrowed(owner), borrowed(side), borrowed(note)
        asked, state = int(buffer[ASKED]), state_of(buffer)
        if buffer[ASKED] == buffer[DRAWN]:
            return -1, 0.0, 0.0, 0, asked
        buffer[ASKED] += 1.0
        word = words(buffer)[FIRST_WORD + asked % WORDS]
        arm, probability, ask_info = act(params_of(buffer), state, word, side, note)
        return arm, probability, ask_info, clock(state), asked

    def tell_with(
        owner: Any, arm: int, info: float, clock: int, note: Any, number: int, loss: Any
    ) -> None:
        buffer, ask = borrowed(owner), SideAsk(info, clock, borrowed(note))
        pack(buffer, update(params_of(buffer), state_of(buffer), arm, ask, loss))
        buffer[TOLD + number % RING] = number

    def look_with(owner: Any, side: Any, q: Any) -> None:
        buffer, side, q = borrowed(owner), borrowed(side), borrowed(q)
        distribution(params_of(buffer), state_of(buffer), side, q)

    return SideEntries(*(spec.entry(step) for step in (ask_with, tell_with, look_with)))


def default_steps(module: str, Params: Any, State: Any) -> dict[str, Callable[..., Any]]:
    """Make ``distribution``, ``act`` and ``scale`` for these records, as kernels of ``module``."""
    held, given = (set(getattr(record, "_fields", ())) for record in (State, Params))
    steps: dict[str, Any] = {"scale": _given_range if {"low", "high"} <= given else _no_scale}
    if "law" in held:
        steps |= {"distribution": _law_distribution, "act": _law_act}
        steps |= {"distribution_with": _law_distribution_with, "act_with": _law_act_with}
    elif "arms" in held:
        steps |= {"distribution": _arms_distribution, "act": _arms_act}
        steps |= {"distribution_with": _arms_distribution_with, "act_with": _arms_act_with}
    elif "best" in held:
        steps |= {"distribution": _best_distribution, "act": _best_act}
        if "best_of" in vars(sys.modules[module]):
            steps |= {"distribution_with": _best_distribution_with, "act_with": _best_act_with}
    found = {name: _own(step, name, module) for name, step in steps.items()}
    init = None if "init" in vars(sys.modules[module]) else _usual_init(module, State)
    return found if init is None else found | {"init": init}


def _usual_init(module: str, State: Any) -> Callable[..., Any] | None:
    """Make ``init`` of the kinds of the state's fields; None if there is one that says too little.

    Each number is the legal one nearest to 0, and distributions are uniform.
    """
    arms = vars(sys.modules[module]).get("Arms")
    new_arms: Any = vars(sys.modules[arms.__module__])["new_arms"] if arms else None
    kinds = [
        get_args(kind) if get_origin(kind) is Annotated else (kind, Values())
        for kind in get_type_hints(State, include_extras=True).values()
    ]
    for kind, note in kinds:
        known = kind in (int, Vector, Law, arms) or (kind is float and note != Values())
        if not known or note == NotKept():
            return None

    def init(params: Any) -> Any:
        n, made = params.n, []
        for kind, note in kinds:
            if kind in (Law, arms):
                made.append(new_law(n) if kind is Law else new_arms(n))
            elif kind == Vector:
                made.append(np.full(n, note.first if note.total is None else note.total / n))
            else:
                made.append(kind(note.first))
        return State(*made)

    return init


def _own(step: Any, name: str, module: str) -> Callable[..., Any]:
    """Make a separate kernel for each algorithm, so that each is compiled on its own."""
    found = step.__globals__
    if "arms" in step.__name__:  # `fill` and `draw` are those of the arms that the file imports
        arms = vars(sys.modules[vars(sys.modules[module])["Arms"].__module__])
        found = found | {name: arms[name] for name in ("fill", "draw")}
    if step in (_best_distribution_with, _best_act_with):
        found = found | {"best_of": vars(sys.modules[module])["best_of"]}
    copy = FunctionType(step.__code__, found, name)
    copy.__module__, copy.__doc__ = module, step.__doc__
    return kernel(copy)


def _law_distribution(params: Any, state: Any, q: Vector) -> None:
    """Fill ``q`` with the law."""
    fill(state.law, q)


def _law_act(params: Any, state: Any, word: int) -> tuple[int, float, float]:
    """Draw an arm from the law; the ask_info is its probability."""
    arm, q_k = draw(state.law, word)
    return arm, q_k, q_k


def _arms_distribution(params: Any, state: Any, q: Vector) -> None:
    """Fill ``q`` with the distribution of the arms."""
    fill(state.arms, q)


def _arms_act(params: Any, state: Any, word: int) -> tuple[int, float, float]:
    """Draw an arm; the ask_info is its probability."""
    arm, q_k = draw(state.arms, word)
    return arm, q_k, q_k


def _law_distribution_with(params: Any, state: Any, side: Vector, q: Vector) -> None:
    """Fill ``q`` with the law, restricted to the available arms."""
    fill(state.law, q)
    restrict(side, q)


def _law_act_with(
    params: Any, state: Any, word: int, side: Vector, note: Vector
) -> tuple[int, float, float]:
    """Draw an available arm from the law; the ask_info is its probability among them."""
    fill(state.law, note[: params.n])
    arm, q_k = draw_noted(side, note, word)
    return arm, q_k, q_k


def _arms_distribution_with(params: Any, state: Any, side: Vector, q: Vector) -> None:
    """Fill ``q`` with the distribution of the arms, restricted to the available ones."""
    fill(state.arms, q)
    restrict(side, q)


def _arms_act_with(
    params: Any, state: Any, word: int, side: Vector, note: Vector
) -> tuple[int, float, float]:
    """Draw an available arm; the ask_info is its probability among them."""
    fill(state.arms, note[: params.n])
    arm, q_k = draw_noted(side, note, word)
    return arm, q_k, q_k


def _best_distribution(params: Any, state: Any, q: Vector) -> None:
    """Put all probability on the best arm."""
    q[:] = 0.0
    q[state.best] = 1.0


def _best_act(params: Any, state: Any, word: int) -> tuple[int, float, float]:
    """Play the best arm."""
    return state.best, 1.0, 1.0


def _best_distribution_with(params: Any, state: Any, side: Vector, q: Vector) -> None:
    """Put all probability on the best one of the available arms."""
    q[:] = 0.0
    q[best_of(params, state, side)] = 1.0  # type: ignore[name-defined] # noqa: F821 - the module's


def _best_act_with(
    params: Any, state: Any, word: int, side: Vector, note: Vector
) -> tuple[int, float, float]:
    """Play the best one of the available arms."""
    arm = best_of(params, state, side)  # type: ignore[name-defined] # noqa: F821 - the module's
    arm, q_k = note_best(side, note, arm)
    return arm, q_k, q_k


def _given_range(params: Any, state: Any) -> float:
    """Return the width of the range that it was given, at most the largest float."""
    return min(params.high - params.low, LARGEST)


def _no_scale(params: Any, state: Any) -> float:
    """Return 0: it has no scale."""
    return 0.0
