"""Kernels count no references, and nothing is freed too early or never."""

from __future__ import annotations

import gc
import weakref

import numba
import numpy as np
import pytest
from numba.core.lowering import Lower

from unbounded.core.occupancy.layout import Layers
from unbounded.core.occupancy.solver.ftrl import OccupancyFTRL
from unbounded.jit.counts import Uncounted
from unbounded.jit.kernel import kernel, section, subroutine

if numba.config.DISABLE_JIT:
    pytest.skip("nothing is compiled", allow_module_level=True)


def of_the_package(function):
    function.__module__ = "unbounded.core.a_test"
    return function


def made(how=subroutine):
    """Three kernels: one returns a view, one calls it, one of a user calls that."""

    @how
    @of_the_package
    def second_half(x):
        return section(x, x.size // 2, x.size)

    @how
    @of_the_package
    def last_of_half(x):
        half = second_half(x)
        return half[half.size - 1] + second_half(half)[0]

    @kernel
    def of_a_user(n):
        half = second_half(np.full(n, 1.5))  # nobody else holds it now
        other = np.full(n, 9.0)  # takes the place of what was freed
        return half[0] + last_of_half(other) - 18.0

    return second_half, last_of_half, of_a_user


def lives_on(function):
    """Whether an array is still there, after ``function`` had it and nobody holds it."""
    array = np.full(1000, 2.5)
    function(array)
    there = weakref.ref(array)
    del array
    gc.collect()
    return there() is not None


@pytest.mark.parametrize("how", [kernel, subroutine])
def test_a_view_holds_what_it_is_a_view_of(how):
    second_half, last_of_half, of_a_user = made(how)
    half = second_half(np.full(1000, 2.5))
    others = [np.zeros(1000) for _ in range(100)]
    assert (half == 2.5).all()
    assert len(others) == 100
    assert last_of_half(np.full(1000, 2.5)) == 5.0
    assert all(of_a_user(n) == 1.5 for n in (10, 1000, 100_000) for _ in range(100))


@pytest.mark.parametrize("how", [kernel, subroutine])
def test_nothing_is_held_for_ever(how):
    second_half, last_of_half, _ = made(how)
    assert not lives_on(second_half)
    assert not lives_on(last_of_half)


def test_what_is_not_let_go_of_is_noticed(monkeypatch, tmp_path):
    """The control of the test above."""
    monkeypatch.setenv("UNBOUNDED_CACHE_DIR", str(tmp_path))  # nobody else may find such code
    monkeypatch.setattr(Uncounted, "lower_expr", Lower.lower_expr)
    second_half, last_of_half, _ = made()
    assert not lives_on(second_half)
    assert lives_on(last_of_half)


def test_a_kernel_of_the_package_does_not_return_what_it_makes():
    @subroutine
    @of_the_package
    def makes(n):
        return np.zeros(n)

    @subroutine
    @of_the_package
    def uses(n):
        return np.zeros(n).size

    assert uses(3) == 3
    with pytest.raises(TypeError, match="makes an array and returns one: let its caller make it"):
        makes(3)


def test_a_users_kernel_may():
    @kernel
    def makes(n):
        return np.full(n, 3.0)

    @kernel
    def uses(n):
        return makes(n)[n - 1]

    assert makes(4).tolist() == [3.0] * 4
    assert all(uses(n) == 3.0 for n in range(1, 200))


@pytest.mark.parametrize("spread", [1.0, 1e25])
def test_a_solver_holds_nothing_when_it_is_gone(spread):
    """Also when it was not easy, and made arrays."""
    layers = Layers([3, 3], n_actions=2)
    rng = np.random.default_rng(1)
    solver = OccupancyFTRL(
        layers, np.zeros(layers.n_transitions), np.full(layers.n_transitions, 0.7)
    )
    held = [weakref.ref(array) for array in (solver._work, solver.memory.v, solver._q, solver.lo)]
    for _ in range(3):
        losses = rng.exponential(size=layers.n_pairs) * spread ** rng.uniform(size=layers.n_pairs)
        solver.solve(losses, [1.0, 1.0])
    del solver
    gc.collect()
    assert [one() is None for one in held] == [True] * 4
