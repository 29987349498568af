"""What the files of the algorithms declare."""

import sys
import types
from typing import Annotated, NamedTuple

import numpy as np
import pytest

from unbounded import bandits, mdps
from unbounded.core.arrays import Distribution, Round, Scratch, Values, Vector
from unbounded.core.simplex.sampling import Law, new_law
from unbounded.core.simplex.shannon_arms import Arms, new_arms
from unbounded.learners.spec import BanditSpec, MDPSpec

ALL = {**bandits.algorithms(), **mdps.algorithms()}


@pytest.fixture
def module():
    """A module that defines every step."""
    made = types.ModuleType("algorithm_of_this_test")
    for step in MDPSpec.steps:
        setattr(made, step, f"the {step}")
    sys.modules[made.__name__] = made
    yield made
    del sys.modules[made.__name__]


def test_steps_are_those_of_the_module(module):
    spec = MDPSpec.of(module.__name__, name="A", reference="B", scale_free=True)
    assert [getattr(spec, step) for step in MDPSpec.steps] == [f"the {s}" for s in MDPSpec.steps]
    assert (spec.module, spec.name, spec.scale_free) == (module.__name__, "A", True)


def test_a_step_from_elsewhere_is_given(module):
    del module.act
    spec = MDPSpec.of(module.__name__, name="A", reference="", act="another act")
    assert spec.act == "another act"
    with pytest.raises(TypeError, match="must define act for A"):
        MDPSpec.of(module.__name__, name="A", reference="")


def test_bandits_have_default_steps_for_a_law_and_for_the_best_arm(module):
    """Where the file defines a step, that is taken."""

    class Given(NamedTuple):
        low: float
        high: float

    class Held(NamedTuple):
        law: Law

    class Best(NamedTuple):
        best: int

    def spec():
        return BanditSpec.of(module.__name__, name="A", reference="", guarantee="")

    del module.act, module.distribution
    with pytest.raises(TypeError, match="must define distribution, act for A"):
        spec()
    module.Params, module.State = Given, Held
    law, q = new_law(2), np.zeros(2)
    assert spec().act(Given(0.0, 3.0), Held(law), 0) == (0, 0.5, 0.5)
    spec().distribution(Given(0.0, 3.0), Held(law), q)
    assert q.tolist() == [0.5, 0.5]
    assert spec().scale(Given(0.0, 3.0), Held(law)) == 3.0
    module.Params, module.State = Best, Best
    assert spec().act(Best(1), Best(1), 0) == (1, 1.0, 1.0)
    spec().distribution(Best(1), Best(1), q)
    assert q.tolist() == [0.0, 1.0]
    assert spec().scale(Best(1), Best(1)) == 0.0
    module.act = "its own"
    assert spec().act == "its own"


def test_a_state_begins_with_what_its_kinds_say(module):
    class Params(NamedTuple):
        n: int

    class State(NamedTuple):
        t: Round
        J: Annotated[int, Values(-7, -2)]
        S: Annotated[float, Values(4.0)]
        L: Vector
        w: Distribution
        arms: Arms
        law: Law

    def spec():
        return BanditSpec.of(module.__name__, name="A", reference="", guarantee="")

    del module.init
    module.Params, module.State, module.Arms = Params, State, Arms
    first = spec().init(Params(3))
    assert first[:3] == (1, -2, 4.0)
    assert [type(number) for number in first[:3]] == [int, int, float]
    assert (first.L.tolist(), first.w.tolist()) == ([0.0] * 3, [1.0 / 3.0] * 3)
    for part, like in ((first.law, new_law(3)), (first.arms.law, new_arms(3).law)):
        assert all(map(np.array_equal, part, like))
    module.init = "its own"
    assert spec().init == "its own"
    del module.init
    for kind in (float, bool, Scratch):  # with no word on how it begins
        module.State = NamedTuple("State", [("t", Round), ("x", kind), ("law", Law)])
        with pytest.raises(TypeError, match=r"must define init for A .*core\.arrays"):
            spec()


def test_what_an_mdp_algorithm_need_not_say(module):
    spec = MDPSpec.of(module.__name__, name="A", reference="")
    assert spec.solves == ""
    assert spec.unsolved is None
    assert spec.room(None) is True
    assert spec.solver() == 0
    assert spec.grown is None
    assert not spec.per_state
    assert not spec.scale_free
    assert spec.policy(types.SimpleNamespace(pi="the policy")) == "the policy"
    assert spec.examples == ({},)


@pytest.mark.parametrize("name", ALL)
def test_every_file_keeps_the_contract(name):
    cls = ALL[name]
    spec = cls.spec
    assert spec.name == cls.__name__ == name
    if name == "SCBRL":  # plays one of two files, by its profile
        assert spec.module == "unbounded.mdps.practical_scb_rl"
        assert cls._published.module == cls.__module__
    else:
        assert spec.module == cls.__module__
    assert {"t", "clipped"} <= set(spec.State._fields)
    assert spec.examples
    if isinstance(spec, MDPSpec):
        assert "version" in spec.State._fields
    else:
        assert spec.guarantee
        assert "n" in spec.Params._fields
        assert spec.feedback in ("bandit", "full")
        assert spec.bound_unit in ("scale", "range")


def test_compiled_entries_bear_the_name_of_their_algorithm():
    def step(x):
        return x

    spec = ALL["SCB"].spec
    entry = spec.entry(step)
    assert entry.__module__ == "unbounded.bandits.scb"
    assert entry.__qualname__ == "SCB.step"
    assert entry(2) == 2
