"""The best certified point so far."""

import numpy as np
import pytest

from occupancy_work import Case
from unbounded.core.occupancy.solver.certificate import bounds
from unbounded.core.occupancy.solver.incumbent import offer
from unbounded.core.occupancy.solver.work import KL, SLACK


@pytest.mark.parametrize("seed", range(5))
def test_a_point_is_kept_if_and_only_if_its_gap_is_smaller(seed):
    case = Case(seed)
    W = case.W
    W.P[:] = case.P0
    bounds(case.lay, case.lo, case.hi, case.v, case.theta, W.P, W.bound, W.slack)
    best, gap, slack = offer(case.lay, case.v, case.theta, False, np.inf, W)
    assert best == gap == W.parts[KL] + W.parts[SLACK]
    assert slack == W.parts[SLACK]
    for kept, of in (
        (W.best_v, case.v), (W.best_theta, case.theta), (W.best_P, W.P), (W.best_q, W.q_out),
        (W.best_pi, W.pi_out),
    ):  # fmt: skip
        assert np.array_equal(kept, of)
        kept[:] = 7.0
    W.parts[:] = 7.0
    for limit in (gap, 0.9 * gap):  # not smaller: nothing is written
        assert offer(case.lay, case.v, case.theta, False, limit, W) == (limit, gap, slack)
        for kept in (W.best_v, W.best_theta, W.best_P, W.best_q, W.best_pi, W.parts):
            assert np.all(kept == 7.0)
