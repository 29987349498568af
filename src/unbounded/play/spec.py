"""The contract of a bandit algorithm, and the compiled entries made from it.

An algorithm is a file with ``Params`` (never changes), ``State`` (everything that changes),
``init`` and three kernels. ``Entries`` wraps the kernels so that Python passes *one* float64
buffer across the Numba boundary: the NamedTuples are built inside, which is several times
faster than passing them, and a buffer is also all there is to save. The interactive learner and
the simulator run these same steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, get_type_hints

import numpy as np
from numpy.random import BitGenerator

from unbounded._jit import borrowed, kernel
from unbounded.core.arrays import (
    Vector,
)
from unbounded.play.tally import tally, tally_expected, tally_played, tally_some

# The buffer's first slots: how often it was asked, which is the position in the stream of random
# words; and the position up to which words have been drawn. The buffer holds the last WORDS.
ASKED, DRAWN = 0, 1
WORDS = 256


@dataclass(frozen=True)
class BanditSpec:
    """What an algorithm's file declares about itself.

    Parameters
    ----------
    name : str
        The name of the public class.
    reference : str
        Where the algorithm was published.
    guarantee : str
        The regret bound that is claimed for it, in words.
    Params, State : type
        NamedTuples. Fields of ``Params`` are ``int``, ``float`` or ``bool``; fields of ``State``
        may also be ``Vector``, which kernels change in place, or a NamedTuple of such fields.
    init : callable
        ``init(params) -> State``, in Python.
    distribution : kernel
        ``distribution(params, state, q)`` fills ``q`` with q_t.
    act : kernel
        ``act(params, state, word) -> (arm, probability, memo)``; changes nothing.
    update : kernel
        ``update(params, state, arm, memo, loss) -> State``; the only place where t advances.
    scale : kernel
        ``scale(params, state) -> float``: the scale that the algorithm now works with.
    feedback : {"bandit", "full"}
        Whether ``update`` takes the loss of the arm or the vector of all losses.
    delayed : bool
        Whether several asks may be outstanding.
    scale_free, shift_free : bool
        What is claimed; the shared tests verify it, and verify the opposite too.
    largest_loss : float
        The largest absolute loss that is legal.
    bound : callable, optional
        ``bound(n, T)``: the theorem's bound on mean regret, in units of ``bound_unit``.
    bound_unit : {"scale", "range"}
        Whether ``bound`` multiplies the largest absolute loss or the range of the losses.
    examples : tuple of dict
        Settings of the public class that the shared tests run.
    """

    name: str
    reference: str
    guarantee: str
    Params: Any
    State: Any
    init: Callable[[Any], Any]
    distribution: Callable[..., None]
    act: Callable[..., Any]
    update: Callable[..., Any]
    scale: Callable[..., float]
    feedback: Literal["bandit", "full"] = "bandit"
    delayed: bool = True
    scale_free: bool = False
    shift_free: bool = False
    largest_loss: float = math.inf
    bound: Callable[[int, int], float] | None = None
    bound_unit: Literal["scale", "range"] = "range"
    examples: tuple[Mapping[str, Any], ...] = field(default=({},))

    @cached_property
    def entries(self) -> Entries:
        """The compiled entries; made on first use."""
        return Entries(self)


def _leaves(kind: Any, prefix: str = "") -> list[tuple[str, Any]]:
    """Names, with dots, and types of a NamedTuple's fields, those of NamedTuples in it included."""
    found = []
    for name, part in get_type_hints(kind).items():
        inner = hasattr(part, "_fields")
        found += _leaves(part, f"{prefix}{name}.") if inner else [(prefix + name, part)]
    return found


def _nested(kind: Any) -> list[Any]:
    parts = [part for part in get_type_hints(kind).values() if hasattr(part, "_fields")]
    return parts + [inner for part in parts for inner in _nested(part)]


class Entries:
    """Compiled functions over one flat buffer, and the buffer's layout."""

    ask: Callable[[Vector], tuple[int, float, float, int]]
    tell: Callable[[Vector, int, float, Any], None]
    look: Callable[[Vector, Vector], None]
    scale: Callable[[Vector], float]
    run: Callable[..., None]
    run_on_demand: Callable[..., None]
    state: Callable[[Vector], Any]
    """The ``State`` that a buffer holds; its vectors are views."""

    def __init__(self, spec: BanditSpec) -> None:
        self._spec = spec
        self._params = list(get_type_hints(spec.Params).items())
        leaves = _leaves(spec.State)
        self._vectors = [name for name, kind in leaves if kind not in (int, float, bool)]
        self._scalars = [(name, kind) for name, kind in leaves if name not in self._vectors]
        self._params_at = DRAWN + 1
        self._offsets_at = self._params_at + len(self._params)
        self._scalars_at = self._offsets_at + len(self._vectors) + 1
        self.words_at = self._scalars_at + len(self._scalars)
        namespace = {
            "Params": spec.Params,
            "State": spec.State,
            "distribution": spec.distribution,
            "act": spec.act,
            "update": spec.update,
            "scale_of": spec.scale,
            "borrowed": borrowed,
            "tally": tally,
            "tally_expected": tally_expected,
            "tally_played": tally_played,
            "tally_some": tally_some,
            "np": np,
            "__name__": spec.act.__module__,
        }
        namespace |= {kind.__name__: kind for kind in _nested(spec.State)}
        # The file name is one of the package's, so that @kernel caches what is compiled here.
        name = Path(__file__).with_name(f"{spec.name}.entries")
        exec(compile(self._source(), str(name), "exec"), namespace)
        self.state = namespace["unpack_state"]
        for step in ("unpack_params", "unpack_state", "pack"):
            namespace[step] = kernel(namespace[step])
        # Under the GIL, the short ones are atomic for other threads; the simulator needs threads.
        for entry in ("ask", "tell", "look", "scale"):
            setattr(self, entry, kernel(namespace[entry], nogil=False))
        for entry in ("run", "run_on_demand"):
            setattr(self, entry, kernel(namespace[entry]))

    def _source(self) -> str:
        def read(kind: type, slot: int) -> str:
            if kind is bool:
                return f"buffer[{slot}] != 0.0"
            return f"int(buffer[{slot}])" if kind is int else f"buffer[{slot}]"

        def view(index: int) -> str:
            slot = self._offsets_at + index
            return f"buffer[int(buffer[{slot}]) : int(buffer[{slot + 1}])]"

        scalars = {
            name: (kind, self._scalars_at + i) for i, (name, kind) in enumerate(self._scalars)
        }
        params = ", ".join(
            read(kind, slot) for slot, (_, kind) in enumerate(self._params, self._params_at)
        )

        def make(kind: Any, prefix: str = "") -> str:
            parts = (
                make(part, f"{prefix}{name}.") if hasattr(part, "_fields")
                else read(*scalars[prefix + name]) if prefix + name in scalars
                else view(self._vectors.index(prefix + name))
                for name, part in get_type_hints(kind).items()
            )  # fmt: skip
            return f"{kind.__name__}({', '.join(parts)})"

        stores = "\n    ".join(
            f"buffer[{slot}] = state.{name}" for name, (_, slot) in scalars.items()
        )
        loss = "block[row]" if self._spec.feedback == "full" else "block[row, arm]"
        return f"""
def unpack_params(buffer):
    return Params({params})

def unpack_state(buffer):
    return {make(self._spec.State)}

def pack(buffer, state):
    {stores}

def ask(owner):
    buffer = borrowed(owner)
    asked = int(buffer[{ASKED}])
    if buffer[{ASKED}] == buffer[{DRAWN}]:
        return -1, 0.0, 0.0, asked
    buffer[{ASKED}] += 1.0
    word = buffer.view(np.uint64)[{self.words_at} + asked % {WORDS}]
    arm, probability, memo = act(unpack_params(buffer), unpack_state(buffer), word)
    return arm, probability, memo, asked

def tell(owner, arm, memo, loss):
    buffer = borrowed(owner)
    pack(buffer, update(unpack_params(buffer), unpack_state(buffer), arm, memo, loss))

def look(owner, q):
    buffer = borrowed(owner)
    distribution(unpack_params(buffer), unpack_state(buffer), q)

def scale(buffer):
    return scale_of(unpack_params(buffer), unpack_state(buffer))

def run(
    owner, words, t, fill, looks, adversary_params, adversary_state, book, cumulative, losses, q
):
    buffer, losses, q = borrowed(owner), borrowed(losses), borrowed(q)
    book, cumulative = borrowed(book), borrowed(cumulative)
    adversary_params, adversary_state = borrowed(adversary_params), borrowed(adversary_state)
    params = unpack_params(buffer)
    state = unpack_state(buffer)
    arm = int(book[0])
    rows = losses.shape[0]
    for start in range(0, words.size, rows):
        block = losses[: min(rows, words.size - start)]
        if looks:  # an adversary that looks gets blocks of one round
            distribution(params, state, q)
        fill(adversary_params, adversary_state, t + start, arm, q, block)
        tally(book, cumulative, block)
        for row in range(block.shape[0]):
            if looks:
                if row > 0:
                    distribution(params, state, q)
                tally_expected(book, q, block[row])
            arm, probability, memo = act(params, state, words[start + row])
            tally_played(book, block[row, arm])
            state = update(params, state, arm, memo, {loss})
    book[0] = arm
    pack(buffer, state)

def run_on_demand(
    owner, words, t, loss_of, adversary_params, adversary_state, comparators,
    book, cumulative, losses,
):
    buffer, losses, comparators = borrowed(owner), borrowed(losses), borrowed(comparators)
    book, cumulative = borrowed(book), borrowed(cumulative)
    adversary_params, adversary_state = borrowed(adversary_params), borrowed(adversary_state)
    params = unpack_params(buffer)
    state = unpack_state(buffer)
    last = comparators.size
    for i in range(words.size):
        arm, probability, memo = act(params, state, words[i])
        for c in range(last):
            losses[c] = loss_of(adversary_params, adversary_state, t + i, comparators[c])
        loss = loss_of(adversary_params, adversary_state, t + i, arm)
        losses[last] = loss
        tally_some(book, cumulative, losses)
        state = update(params, state, arm, memo, loss)
    pack(buffer, state)
"""

    def new_buffer(self, params: Any) -> Vector:
        """The buffer of a fresh state."""
        state = self._spec.init(params)
        vectors = [attrgetter(name)(state) for name in self._vectors]
        ends = np.cumsum([self.words_at + WORDS, *(vector.size for vector in vectors)])
        buffer = np.zeros(int(ends[-1]))
        buffer[self._params_at : self._offsets_at] = params
        buffer[self._offsets_at : self._scalars_at] = ends
        for slot, (name, _) in enumerate(self._scalars, self._scalars_at):
            buffer[slot] = attrgetter(name)(state)
        for vector, begin, end in zip(vectors, ends[:-1], ends[1:], strict=True):
            buffer[begin:end] = vector
        return buffer

    def draw_words(self, buffer: Vector, bits: BitGenerator) -> None:
        """Draw random words for the next WORDS asks."""
        words = buffer.view(np.uint64)[self.words_at : self.words_at + WORDS]
        words[:] = bits.random_raw(WORDS)
        buffer[DRAWN] += WORDS

    def settings_match(self, buffer: Vector, other: Vector) -> bool:
        """Whether two buffers are of equal layout and parameters."""
        fixed = slice(self._params_at, self._scalars_at)
        return buffer.shape == other.shape and np.array_equal(buffer[fixed], other[fixed])

    def slot(self, field_name: str) -> int:
        """Where a scalar field of the state stands in the buffer."""
        names = [name for name, _ in self._scalars]
        return self._scalars_at + names.index(field_name)
