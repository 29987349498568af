"""Newton's linear systems, against dense ones."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from occupancy_lists import Both
from unbounded.core.occupancy.layout import Layers
from unbounded.core.occupancy.solver import newton as ssn
from unbounded.core.occupancy.solver.linear_algebra import (
    _multiply,
    add_gram,
    conjugate_direction,
    factor,
    solve_factored,
    transpose,
)
from unbounded.core.occupancy.solver.work import list_scratch

seeds = st.integers(0, 2**32 - 1)


def system(rng, sizes):
    """A positive definite system, as flat blocks and as one matrix."""
    n, ends = sum(sizes), np.cumsum([0, *sizes])
    dense = np.zeros((n, n))
    for a, b, c in zip(ends, ends[1:], [*ends[2:], n], strict=False):
        X = rng.normal(size=(c - a, c - a + 2))
        dense[a:c, a:c] += X @ X.T  # a window over two layers
        assert b <= c
    D = np.concatenate([dense[a:b, a:b].ravel() for a, b in pairwise(ends)])
    pairs = zip(ends, ends[1:], ends[2:], strict=False)
    E = np.concatenate([np.zeros(0), *[dense[a:b, b:c].ravel() for a, b, c in pairs]])
    return D, E, dense


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_solutions_are_those_of_the_dense_system(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, size=rng.integers(1, 6)).tolist()
    layers = Layers(sizes, 1)
    D, E, dense = system(rng, sizes)
    b = rng.normal(size=layers.n_states)
    inverse = np.concatenate([[np.nan], np.diag(dense)])
    x = b.copy()
    factor(layers.table, D, E, inverse, np.empty(max(sizes)))
    solve_factored(layers.table, D, E, inverse, x)
    assert x[0] == b[0]
    expected = np.linalg.solve(dense, b[1:])
    assert np.allclose(x[1:], expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())


def test_a_pivot_that_elimination_wipes_out_does_not_move():
    layers = Layers([3], 1)
    X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 2.0]])
    dense = X @ X.T  # rank two: the last pivot vanishes
    D, inverse = dense.ravel().copy(), np.concatenate([[0.0], np.diag(dense)])
    factor(layers.table, D, np.zeros(0), inverse, np.empty(3))
    x = np.array([0.0, *dense @ [1.0, 2.0, 0.0]])
    solve_factored(layers.table, D, np.zeros(0), inverse, x)
    assert np.allclose(x, [0.0, 1.0, 2.0, 0.0])


@pytest.mark.parametrize("m", range(10))
def test_gram_matrices_are_added_to_the_lower_triangle(m):
    rng = np.random.default_rng(m)
    n = 5
    c, X, D = rng.normal(size=m), rng.normal(size=(m, n)), rng.normal(size=(n, n))
    expected = D + np.tril(X.T @ np.diag(c) @ X)
    flat = D.ravel().copy()
    add_gram(n, m, c, X.ravel().copy(), flat)
    assert np.allclose(flat.reshape(n, n), expected, rtol=0, atol=1e-13)


def test_transpose():
    X, Y = np.arange(20.0), np.full(13, -1.0)
    transpose(3, 4, X, 5, Y)
    assert np.array_equal(Y[:12].reshape(4, 3), X[5:17].reshape(3, 4).T)
    assert Y[12] == -1.0


@pytest.mark.parametrize("seed", range(5))
def test_products_are_with_the_newton_matrix_and_directions_solve_for_it(seed):
    case = Both(seed)
    case.evaluate()
    ssn.assemble(case.lay, case.lo, case.hi, 0.01, case.W)
    M = case.newton_matrix()
    lo, hi, _ = case.listed
    slope = conjugate_direction(case.lay, lo, hi, 0.01, case.few)
    z, y = case.rng.normal(size=case.v.size), np.full(case.v.size, np.nan)
    z[0] = 0.0
    _multiply(case.lay, 0.01, list_scratch(case.few, 3), z, case.few, y)
    assert np.allclose(y, M @ z, rtol=0, atol=1e-12 * np.abs(M).max())
    assert not np.allclose(y, M @ z + 0.01 * z, rtol=0, atol=1e-12 * np.abs(M).max())
    grad, dv = case.few.grad, case.few.dv
    left = (grad - M @ dv)[1:]
    norm = np.diag(M)[1:] ** -0.5
    assert np.linalg.norm(left * norm) <= 1.01e-2 * np.linalg.norm(grad[1:] * norm)
    assert slope == pytest.approx(grad @ dv)
    assert slope > 0.0
