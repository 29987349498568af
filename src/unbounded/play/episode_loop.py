"""The loop over episodes of an MDP simulation: one source for every algorithm.

The book of a run holds what was expected and what was paid so far, times the unit (see `simulate`).
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, get_type_hints

from unbounded._jit import borrowed, source_hash, subroutine
from unbounded.core.arrays import (
    Integers,
    Vector,
)
from unbounded.core.occupancy.layout import (
    ACTIONS,
    PAIR,
    SIZE,
    TRIPLE,
    draw,
)
from unbounded.core.random import stream_of, word_at
from unbounded.play.mdp_learner import MDPSpec
from unbounded.play.sections import LIBRARY, VERSION

EXPECTED, PLAYED, SEEN, UNIT, LARGEST = range(5)  # slots of the book
_TRANSITIONS = 7919  # the environment's stream is the adversary's key plus this
_LEAST_EXPONENT = -1000  # 2^1000 is a unit, 2^1074 is not a float


@subroutine
def tally(
    lay: Integers, losses: Vector, q: Vector, book: Vector, low: Vector, high: Vector,
    cumulative: Vector,
) -> None:  # fmt: skip
    """Enter the losses of an episode."""
    largest = 0.0
    for h in range(1, lay.shape[1] - 1):
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            x = losses[p]
            low[h - 1] = min(low[h - 1], x)
            high[h - 1] = max(high[h - 1], x)
        largest = max(largest, -low[h - 1], high[h - 1])
    if largest > book[LARGEST]:
        book[LARGEST] = largest
        unit = math.ldexp(1.0, -max(math.frexp(largest)[1], _LEAST_EXPONENT))
        if unit != book[UNIT]:
            ratio = unit / book[UNIT]
            book[UNIT] = unit
            book[EXPECTED] *= ratio
            book[PLAYED] *= ratio
            for p in range(cumulative.size):
                cumulative[p] *= ratio
    unit = book[UNIT]
    expected = 0.0
    for p in range(1, losses.size):
        x = losses[p] * unit
        expected += q[p] * x
        cumulative[p] += x
    book[EXPECTED] += expected


@subroutine
def walk(
    lay: Integers, P: Vector, pi: Vector, key: int, t: int, words: Any, losses: Vector,
    book: Vector, states: Integers, actions: Integers, seen: Vector,
) -> None:  # fmt: skip
    """Play one episode: actions by the learner's words, states by the environment's stream."""
    stream = stream_of(key + _TRANSITIONS, t)
    i = 0
    for h in range(lay.shape[1] - 2):
        A = lay[ACTIONS, h + 1]
        stride = lay[SIZE, h] * lay[ACTIONS, h]
        word = word_at(stream, h)  # a uint64, which kernels take as an int
        s = draw(P, lay[TRIPLE, h] + i, stride, lay[SIZE, h + 1], word)  # type: ignore[arg-type]
        a = draw(pi, lay[PAIR, h + 1] + s * A, 1, A, words[1 + h])
        i = s * A + a
        states[h] = s
        actions[h] = a
        seen[h] = losses[lay[PAIR, h + 1] + i]
        book[PLAYED] += seen[h] * book[UNIT]


_SOURCE = """
def run(
    lay, params, state, program, P, words, t, capacity, fill, adversary, key, book, low, high,
    cumulative, losses, q, cache, pi, states, actions, seen
):
    state = {state}
    for i in range(words.shape[0]):
        if state.head[LIBRARY] >= capacity - 1:
            return i
        if state.head[VERSION] != book[SEEN]:
            expected(lay, params, state, P, cache, q)
            book[SEEN] = state.head[VERSION]
        fill(adversary, t + i, q, lay, losses)
        tally(lay, losses, q, book, low, high, cumulative)
        component = choose(lay, params, state, words[i, 0], pi)
        walk(lay, P, pi, key, t + i, words[i], losses, book, states, actions, seen)
        learn(lay, params, state, program, component, states, actions, seen)
    return words.shape[0]
"""


def _borrowed(kind: Any, value: str, names: dict[str, Any]) -> str:
    """Source of a copy of the NamedTuple ``value`` whose arrays have no reference counts.

    Counting references to some forty arrays in every call was half of a short episode.
    """
    fields = []
    for name, hint in get_type_hints(kind).items():
        field = f"{value}.{name}"
        nested = hasattr(hint, "_fields")
        fields.append(_borrowed(hint, field, names) if nested else f"borrowed({field})")
    names[kind.__name__] = kind
    return f"{kind.__name__}({', '.join(fields)})"


def _names(choose: Any, learn: Any, expected: Any) -> dict[str, Any]:
    """What the source of a loop names."""
    return {
        "choose": choose, "learn": learn, "expected": expected, "tally": tally,
        "walk": walk, "LIBRARY": LIBRARY, "VERSION": VERSION, "SEEN": SEEN,
        "borrowed": borrowed, "__name__": __name__,
    }  # fmt: skip


@cache
def _loop_of(kind: Any, choose: Any, learn: Any, expected: Any) -> Any:
    namespace = _names(choose, learn, expected)
    source = _SOURCE.format(state=_borrowed(kind, "state", namespace))
    # The file name is one of the package's, so that it is cached what is compiled here; the
    # function's name says which steps it runs, and of which sources.
    exec(compile(source, __file__, "exec"), namespace)
    run, module = namespace["run"], learn.__module__
    run.__qualname__ = f"run_{learn.__name__}_{module.rpartition('.')[2]}_{source_hash(module)}"
    return subroutine(run)


def compiled_loop(spec: MDPSpec) -> Any:
    """The loop over an algorithm's steps; its compiled code is cached on disk."""
    return _loop_of(spec.State, spec.choose, spec.learn, spec.expected)


def python_loop(spec: MDPSpec) -> Any:
    """The same loop, not compiled itself, around an adversary in Python."""
    namespace = _names(spec.choose, spec.learn, spec.expected)
    exec(compile(_SOURCE.format(state="state"), __file__, "exec"), namespace)
    return namespace["run"]
