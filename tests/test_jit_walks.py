"""The hash of a kernel is the same whoever calls it: else what was compiled is never found again.

Names that are attributes in a kernel are taken for globals, too, where there are such ones. A
function of that name that calls the kernel back would make a circle, and the hash would depend on
where the walk begins.
"""

import pytest

from unbounded import _jit_key, bandits, mdps
from unbounded._jit_cache import _opened
from unbounded._jit_key import Fingerprint

LEARNERS = {**bandits.algorithms(), **mdps.algorithms()}


def walked(kernel):
    """Every kernel that is met on the way, and its hash."""
    walk = Fingerprint(_opened)
    walk.of(kernel)
    return walk.kernels


def depend_on_the_caller(spec):
    """Kernels that have another hash if the walk begins with them."""
    met = {}
    for kernel in (spec.act, spec.update, spec.distribution):
        met |= walked(kernel)
    assert met
    return [
        kernel.function.__qualname__
        for code, kernel in met.items()
        if Fingerprint(_opened).of(kernel) != code
    ]


@pytest.mark.parametrize("name", LEARNERS)
def test_hashes_do_not_depend_on_the_caller(name):
    assert depend_on_the_caller(LEARNERS[name].spec) == []


class Everything:
    def __contains__(self, name):
        return True


def test_they_would_if_attributes_were_taken_for_globals(monkeypatch):
    monkeypatch.setattr(_jit_key, "_loaded", lambda code, loads: Everything())
    assert "_draw" in str(depend_on_the_caller(LEARNERS["SCB"].spec))
