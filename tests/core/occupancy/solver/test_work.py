"""The solvers' arrays share one buffer and no entry."""

from itertools import pairwise

import numpy as np
import pytest

from unbounded.core.occupancy.layout import Layers
from unbounded.core.occupancy.solver.work import carve, work_size


@pytest.mark.parametrize(("sizes", "n_actions"), [([1], 1), ([4, 2, 3], 3), ([2, 5], 1)])
def test_arrays_fill_the_buffer_and_do_not_overlap(sizes, n_actions):
    layers = Layers(sizes, n_actions)
    H, S, X, T = layers.horizon, layers.n_states, layers.n_pairs, layers.n_transitions
    n, m = max(sizes), max(sizes) * n_actions
    buffer = np.zeros(work_size(layers.table))
    work = carve(layers.table, buffer)
    for x in work[:-2]:  # without lists the last two are empty
        x += 1.0
    assert np.all(buffer == 1.0)
    squares = sum(k * k for k in sizes)
    between = sum(a * b for a, b in pairwise(sizes))
    expected = {
        "L": X, "w": H + 1, "rho": H + 1, "P": T, "x": X, "bound": X, "slack": X, "v_old": S,
        "dv": S, "grad": S, "q": S, "r": S, "inverse": S, "D": squares, "E": between,
        "pair": 6 * m, "rows": n * m, "c": n + m, "best_v": S, "best_theta": X, "best_P": T,
        "best_q": X, "best_pi": X, "parts": 2, "q_out": X, "pi_out": X, "mass": S, "ln_x": n,
        "lists": X + 2 + 5 * (T // 8), "cg": 3 * S, "begin": 0, "to": 0,
    }  # fmt: skip
    assert {name: x.size for name, x in work._asdict().items()} == expected
