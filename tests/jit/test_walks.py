"""The hash of a kernel is the same whoever calls it: else what was compiled is never found again.

Names that are attributes in a kernel are taken for globals, too, where there are such ones. A
function of that name that calls the kernel back would make a circle, and the hash would depend on
where the walk begins.
"""

from typing import NamedTuple

import numba
import pytest

from unbounded import bandits, mdps
from unbounded.jit import key as _jit_key
from unbounded.jit.cache import _opened
from unbounded.jit.kernel import counting_kernel as kernel
from unbounded.jit.key import Fingerprint

LEARNERS = {**bandits.algorithms(), **mdps.algorithms()}


def walked(kernel):
    """Every kernel that is met on the way, and its hash."""
    walk = Fingerprint(_opened)
    walk.of(kernel)
    return walk.kernels


def depend_on_the_caller(spec):
    """Kernels that have another hash if the walk begins with them."""
    met = {}
    for one in (spec.act, spec.update, spec.distribution):
        met |= walked(one)
    assert met
    return [
        one.function.__qualname__
        for code, one in met.items()
        if Fingerprint(_opened).of(one) != code
    ]


@pytest.mark.parametrize("name", LEARNERS)
def test_hashes_do_not_depend_on_the_caller(name):
    assert depend_on_the_caller(LEARNERS[name].spec) == []


class Arms(NamedTuple):
    draw: int


@kernel
def draw(arms):
    return _draw(arms)


@kernel
def _draw(arms):
    return arms.draw  # an attribute with the name of the global that calls this


class Everything:
    def __contains__(self, name):
        return True


def starts():
    """The hash of `_draw`, if the walk begins with it and with its caller."""
    from_caller = {kernel.function.__qualname__: code for code, kernel in walked(draw).items()}
    return Fingerprint(_opened).of(_draw), from_caller["_draw"]


def test_an_attribute_is_not_taken_for_the_global_of_its_name():
    first, second = starts()
    assert first == second


def test_the_hashes_would_differ_if_it_were(monkeypatch):
    monkeypatch.setattr(_jit_key, "_loaded", lambda code, loads: Everything())
    first, second = starts()
    assert first != second


@kernel
def _odd(arms):
    return arms.foreign  # not the global of that name, of which no hash can be taken


@numba.njit
def foreign(arms):
    return arms


def test_an_attribute_may_have_the_name_of_something_uncertain():
    Fingerprint(_opened).of(_odd)
    with pytest.raises(_jit_key.UncertainError):
        Fingerprint(_opened).of(foreign)
