"""Newton's direction by conjugate gradients: its products are with the matrix of `ssn`."""

import numpy as np
import pytest

from occupancy_lists import Both
from unbounded.core.occupancy.solver import conjugate_gradients as conjugate
from unbounded.core.occupancy.solver import newton as ssn
from unbounded.core.occupancy.solver.work import list_room


@pytest.mark.parametrize("seed", range(5))
def test_products_are_with_the_newton_matrix_and_directions_solve_for_it(seed):
    case = Both(seed)
    case.evaluate()
    ssn.assemble(case.lay, case.lo, case.hi, 0.01, case.W)
    M = case.newton_matrix()
    lo, hi, _ = case.listed
    slope = conjugate.direction(case.lay, lo, hi, 0.01, case.few)
    z, y = case.rng.normal(size=case.v.size), np.full(case.v.size, np.nan)
    z[0] = 0.0
    conjugate._multiply(case.lay, 0.01, list_room(case.few, 3), z, case.few, y)
    assert np.allclose(y, M @ z, rtol=0, atol=1e-12 * np.abs(M).max())
    assert not np.allclose(y, M @ z + 0.01 * z, rtol=0, atol=1e-12 * np.abs(M).max())
    grad, dv = case.few.grad, case.few.dv
    left = (grad - M @ dv)[1:]
    norm = np.diag(M)[1:] ** -0.5
    assert np.linalg.norm(left * norm) <= 1.01e-2 * np.linalg.norm(grad[1:] * norm)
    assert slope == pytest.approx(grad @ dv)
    assert slope > 0.0
