"""The programs as values that kernels take as arguments."""

import numpy as np

from occupancy_reference import random_instance
from unbounded.core.occupancy.solver import Outcome, ftrl, kl
from unbounded.core.occupancy.solver.ftrl import new_memory, solve
from unbounded.core.occupancy.solver.kl import kl_step, uniform_base
from unbounded.core.occupancy.solver.work import work_size
from unbounded.jit.kernel import counting_kernel as kernel


@kernel
def call_ftrl(program, lay, lo, hi, L, w, memory, buffer, q, pi):
    return program(lay, lo, hi, 1, L, w, 1e-8, memory, buffer, q, pi)


@kernel
def call_mirror(program, lay, lo, hi, L, w, ln_q, ln_P, v, theta, buffer, pi):
    return program(lay, lo, hi, L, w, 1e-8, ln_q, ln_P, v, theta, buffer, pi)


def test_a_value_returns_what_its_kernel_does():
    mdp, lo, hi, L, w = random_instance(
        np.random.default_rng(2), max_horizon=3, max_states=4, max_actions=3
    )
    layers, lay = mdp.layers, mdp.layers.table
    buffer, zeros = np.zeros(work_size(lay)), (np.zeros(layers.n_states), np.zeros(layers.n_pairs))
    out = [[np.zeros(layers.n_pairs) for _ in range(2)] for _ in range(2)]
    one = solve(lay, lo, hi, 1, L, w, 1e-8, new_memory(layers), buffer, *out[0])
    two = call_ftrl(ftrl.PROGRAM(), lay, lo, hi, L, w, new_memory(layers), buffer, *out[1])
    assert isinstance(two, Outcome)
    assert one == two
    assert np.array_equal(out[0], out[1])
    base = [uniform_base(layers) for _ in range(2)]
    duals = [[x.copy() for x in zeros] for _ in range(2)]
    one = kl_step(lay, lo, hi, L, w, 1e-8, *base[0], *duals[0], buffer, out[0][1])
    two = call_mirror(kl.PROGRAM(), lay, lo, hi, L, w, *base[1], *duals[1], buffer, out[1][1])
    assert one == two
    assert np.array_equal(out[0][1], out[1][1])
    assert all(np.array_equal(a, b) for a, b in zip(*base, strict=True))
