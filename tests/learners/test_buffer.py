"""One flat buffer: every kind of field, in Python and compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from unbounded import SCB, SCBRL
from unbounded.core.arrays import (
    Arm,
    Count,
    CountsBelowT,
    Distribution,
    Exponent,
    Flags,
    Integers,
    IntScratch,
    Mantissa,
    Scratch,
    Share,
    Sizes,
    Vector,
)  # fmt: skip
from unbounded.learners.buffer import Packing


class Inner(NamedTuple):
    size: int
    parts: Vector


class Params(NamedTuple):
    n: int
    rate: float
    on: bool
    table: Vector
    inner: Inner


class State(NamedTuple):
    t: int
    numbers: Integers
    inner: Inner
    x: float
    empty: Vector
    flag: bool
    L: Vector


PARAMS = Params(3, 0.25, True, np.array([1.5, -2.0]), Inner(7, np.array([9.0])))


def new_state():
    return State(
        t=5, numbers=np.array([2**60 + 1, -3, 0]), inner=Inner(-4, np.array([0.5, np.inf])),
        x=-0.0, empty=np.zeros(0), flag=False, L=np.array([1e-300, 5e-324, np.nan]),
    )  # fmt: skip


def same(one, other):
    """Equal fields, all the way down; an integer is an int and no float."""
    assert type(one) is type(other)
    for a, b in zip(one, other, strict=True):
        if hasattr(a, "_fields"):
            same(a, b)
        elif isinstance(a, np.ndarray):
            assert a.dtype == b.dtype
            assert np.array_equal(a, b, equal_nan=a.dtype == float)
        else:
            assert a == b
            assert np.asarray(a).dtype.kind == np.asarray(b).dtype.kind


@pytest.fixture(params=[0, 6])
def packing(request):
    return Packing("Example", __name__, Params, State, request.param)


def test_what_is_packed_can_be_read(packing):
    buffer = packing.new(PARAMS, new_state())
    assert buffer.dtype == np.float64
    same(PARAMS, packing.python.params(buffer))
    same(new_state(), packing.python.state(buffer))
    assert not buffer[: packing.reserved].any()  # left to the caller


def test_vectors_are_views_and_scalars_are_stored_by_pack(packing):
    buffer = packing.new(PARAMS, new_state())
    state = packing.python.state(buffer)
    state.L[0] = 3.0
    state.numbers[1] = 2**62
    state.inner.parts[1] = 4.0
    changed = state._replace(t=6, x=2.5, flag=True, inner=state.inner._replace(size=8))
    packing.python.pack(buffer, changed)
    again = packing.python.state(buffer)
    same(changed, again)
    assert (again.t, again.inner.size, again.flag) == (6, 8, True)
    assert (again.L[0], again.numbers[1], again.inner.parts[1]) == (3.0, 2**62, 4.0)
    same(PARAMS, packing.python.params(buffer))


def test_slots_are_those_of_scalars_of_the_state(packing):
    buffer = packing.new(PARAMS, new_state())
    buffer[packing.slot("t")] = 11
    buffer[packing.slot("inner.size")] = 12
    state = packing.python.state(buffer)
    assert (state.t, state.inner.size) == (11, 12)
    assert packing.python.params(buffer).inner.size == 7
    with pytest.raises(KeyError):
        packing.slot("L")


def test_parameters_are_compared(packing):
    buffer = packing.new(PARAMS, new_state())
    played = new_state()._replace(t=99, x=1.0, L=np.ones(3))
    packing.check(packing.new(PARAMS, played), like=buffer)
    for other in (
        PARAMS._replace(n=4), PARAMS._replace(rate=0.5), PARAMS._replace(on=False),
        PARAMS._replace(table=np.array([1.5, -2.5])),
        PARAMS._replace(inner=Inner(8, np.array([9.0]))),
        PARAMS._replace(inner=Inner(7, np.array([9.5]))),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="does not fit its settings"):
            packing.check(packing.new(other, new_state()), like=buffer)


def test_layouts_are_compared(packing):
    buffer = packing.new(PARAMS, new_state())
    longer = new_state()._replace(L=np.zeros(4))
    moved = new_state()._replace(L=np.zeros(2), empty=np.zeros(1))  # as long in all
    assert packing.new(PARAMS, moved).shape == buffer.shape
    for other in (longer, moved):
        with pytest.raises(ValueError, match="does not fit its settings"):
            packing.check(packing.new(PARAMS, other), like=buffer)


def test_kinds_and_finite_numbers_are_checked(packing):
    buffer = packing.new(PARAMS, new_state())
    for field, values in (("t", (0.5, np.nan, np.inf, 2.0**53)), ("x", (np.nan, -np.inf))):
        for value in values:
            damaged = buffer.copy()
            damaged[packing.slot(field)] = value
            with pytest.raises(ValueError, match=f"state.{field} cannot be"):
                packing.check(damaged, like=buffer)
    with pytest.raises(ValueError, match=r"state\.L cannot be nan"):
        packing.check(packing.new(PARAMS, new_state()._replace(L=np.full(3, np.nan))), like=buffer)
    endless = packing.new(PARAMS, new_state()._replace(x=np.inf))
    packing.check(endless, like=endless)  # as a fresh one has it


class Half(NamedTuple):
    share: float
    room: Scratch
    order: IntScratch

    def check(self):
        if self.share > 0.5:
            raise ValueError("more than half")


class Nested(NamedTuple):
    half: Half


class Whole(NamedTuple):
    t: int
    nested: Nested


class Checked(NamedTuple):
    t: int
    half: Half

    def check(self, params):
        if self.t > params.n:
            raise ValueError("too late")


class Limit(NamedTuple):
    n: int


class Kinds(NamedTuple):
    t: int
    count: Count
    arm: Arm
    share: Share
    W: Mantissa
    e: Exponent
    plays: CountsBelowT
    q: Distribution
    flags: Flags
    u: Sizes


def test_fields_hold_what_their_kinds_say():
    """Each illegal number is refused by the name of its field; what is fresh is always legal."""
    packing = Packing("Kinds", __name__, Limit, Kinds)
    fresh = Kinds(
        1, 0, 0, 0.5, 0.0, 0, np.zeros(2), np.full(2, 0.5), np.zeros(2), np.array([np.inf, -1.0])
    )
    like = packing.new(Limit(3), fresh)
    good = fresh._replace(t=5, count=9, arm=2, W=0.5, e=-1074, plays=np.array([4.0, 0.0]))
    good = good._replace(q=np.array([0.0, 1.0]), flags=np.ones(2), u=np.array([np.inf, 7.0]))
    packing.check(packing.new(Limit(3), good), like=like)
    bad = {
        "count": (-1, 0.5), "arm": (3, -1), "share": (1.5, -0.1, np.nan), "W": (0.25, 1.0),
        "e": (1101, 0.5), "plays": ([5.0, 0.0], [0.5, 0.0]), "q": ([0.5, 0.6], [1.5, -0.5]),
        "flags": ([2.0, 0.0], [0.5, 0.0]), "u": ([7.0, np.inf], [-1.0, -1.0]),
    }  # fmt: skip
    for field, values in bad.items():
        for value in values:
            state = good._replace(**{field: np.array(value) if isinstance(value, list) else value})
            with pytest.raises(ValueError, match=f"state.{field} "):
                packing.check(packing.new(Limit(3), state), like=like)


def test_parts_check_themselves_and_scratch_is_not_cached():
    def half(share):
        return Half(share, np.full(2, np.nan), np.full(3, 2**62))

    inner = Packing("Whole", __name__, Limit, Whole)
    good = inner.new(Limit(3), Whole(1, Nested(half(0.5))))
    inner.check(good, like=good)
    with pytest.raises(ValueError, match="more than half"):
        inner.check(inner.new(Limit(3), Whole(1, Nested(half(0.75)))), like=good)
    inner.clear_scratch(good)
    state = inner.python.state(good)
    assert not state.nested.half.room.any()
    assert not state.nested.half.order.any()
    assert (state.t, state.nested.half.share) == (1, 0.5)
    outer = Packing("Checked", __name__, Limit, Checked)
    good = outer.new(Limit(3), Checked(3, half(0.5)))
    outer.check(good, like=good)
    with pytest.raises(ValueError, match="too late"):
        outer.check(outer.new(Limit(3), Checked(4, half(0.5))), like=good)
    with pytest.raises(ValueError, match="more than half"):
        outer.check(outer.new(Limit(3), Checked(3, half(0.75))), like=good)


def test_learners_read_the_same_compiled_and_interpreted():
    """The generated functions of real learners, through NamedTuples in NamedTuples."""
    for learner, fields in ((SCB(3, seed=0), "t clipped"), (SCBRL([1, 2], 2, 50, seed=0), "t")):
        packing, buffer = learner.spec.lacking(learner._buffer).packing, learner._buffer
        state, compiled = packing.python.state(buffer), packing.compiled.state(buffer)
        assert all(getattr(state, name) == getattr(compiled, name) for name in fields.split())
        same(packing.python.params(buffer), packing.compiled.params(buffer))
        before = buffer.copy()
        packing.compiled.pack(buffer, compiled._replace(t=17))
        before[packing.slot("t")] = 17
        assert np.array_equal(buffer, before, equal_nan=True)


class Optional(NamedTuple):
    t: int
    many: Vector | None
    L: Vector


def test_a_vector_that_may_be_none_is_none_where_it_is_empty():
    """In Python by looking; compiled by code of its own for those who lack it."""
    packing = Packing("Optional", __name__, Limit, Optional)
    for many, absent in ((None, ("state.many",)), (np.array([1.0, 2.0]), ())):
        buffer = packing.new(Limit(3), Optional(1, many, np.array([5.0])))
        assert packing.lacks(buffer) == absent
        for_it = Packing("Optional", __name__, Limit, Optional, absent=absent)
        for access in (packing.python, for_it.python, for_it.compiled):
            state = access.state(buffer)
            assert state.L.tolist() == [5.0]
            assert (state.many is None) == (many is None)
            assert many is None or state.many.tolist() == [1.0, 2.0]
        packing.check(buffer, like=buffer)
    with pytest.raises(ValueError, match="does not fit"):  # one has it, the other not
        packing.check(packing.new(Limit(3), Optional(1, None, np.array([5.0]))), like=buffer)


def test_learners_of_few_and_of_many_arms_have_code_of_their_own():
    few, also_few, many = (SCB(n, seed=0) for n in (3, 63, 64))
    assert few._variant is also_few._variant is not many._variant
    assert few._steps is also_few._steps is not many._steps
    assert many._variant is SCB.spec


def test_errors_point_to_a_line_of_source():
    """Tracebacks and Numba find the generated lines."""
    import inspect

    packing = Packing("Shown", __name__, Params, State)
    source = inspect.getsource(packing.python.pack)
    assert source.startswith("def pack(buffer, state):")
    assert f"buffer[{packing.slot('x')}] = state.x" in source
    assert packing.python.pack.__qualname__ == "Shown.pack"
