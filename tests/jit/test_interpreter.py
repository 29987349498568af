"""Kernels that are not compiled, as under NUMBA_DISABLE_JIT, neither warn nor raise.

Compiled code does not warn where a float overflows on purpose or a 64-bit word wraps around, and
C's functions return inf where Python's raise. Run interpreted, learners must do the same. This
file is also the script that the tests start, in a process without the compiler and with warnings
as errors.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tiers import first_only, selected

LARGEST = np.finfo(float).max
SIZES = [0.0, 5e-324, 1e-310, 1e-200, 1e-3, 1.0, 1e100, 1e300, LARGEST]


def streams(rows: int, columns: int) -> Iterator[np.ndarray]:
    """Losses, ordinary and hostile."""
    rng = np.random.default_rng(1)
    shape = rows, columns
    signs = rng.choice([-1.0, 1.0], shape)
    yield rng.random(shape)
    yield rng.choice(SIZES, shape) * signs
    yield rng.choice([0.0, 1.0, LARGEST], shape) * signs
    yield np.full(shape, LARGEST) * signs
    yield np.full(shape, 5e-324)
    yield np.zeros(shape)
    yield np.outer(np.ldexp(1.0, np.arange(rows) * 2000 // rows - 1000), rng.random(columns))


def bandits(every: bool) -> None:
    from bandit_examples import EXAMPLES
    from unbounded import adversaries, simulate

    for parameters in selected(EXAMPLES, every):
        example = parameters.values[0]
        many = 130 if example.spec.name == "AdaINF" else 70  # those keep a picture of the arms
        for n in (1, 2, 10, many):
            for losses in streams(70, n):
                limit = min(LARGEST, example.spec.largest_loss)
                learner = example.make(n)
                _, qs = example.play(learner, np.clip(losses, -limit, limit))
                assert np.all(qs >= 0.0), parameters.id
                assert np.allclose(qs.sum(axis=1), 1.0, rtol=0.0, atol=1e-9), parameters.id
                assert np.isfinite(learner.scale), parameters.id
        result = simulate(example.make(10), adversaries.StochasticGap(), 50, seed=1)
        assert np.isfinite(result.threshold).all()


def mdps(every: bool) -> None:
    from mdp_examples import EXAMPLES, MDP, SEEKERS
    from mdp_play import play
    from unbounded import simulate_mdp
    from unbounded.adversaries.mdps import Negative

    for parameters in selected(EXAMPLES, every):
        example = parameters.values[0]
        hostile = list(streams(40, MDP.layers.n_pairs)) if example.spec.name not in SEEKERS else []
        for losses in [example.losses(episodes=40), *hostile]:
            learner = example.make()
            policies, _ = play(learner, MDP, losses, seed=3)
            assert np.isfinite(policies).all(), parameters.id
            if hasattr(learner, "thresholds"):
                assert np.isfinite(learner.thresholds).all(), parameters.id
        simulate_mdp(example.make(), MDP, Negative(scale=0.25), 40, seed=1)


@pytest.mark.parametrize("every", first_only([False, True]))
@pytest.mark.parametrize("which", ["bandits", "mdps"])
def test_interpreted_learners_neither_warn_nor_raise(which: str, every: bool) -> None:
    here = Path(__file__)
    paths = [str(here.parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-W", "error::RuntimeWarning", str(here), which, str(int(every))]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]


if __name__ == "__main__":
    {"bandits": bandits, "mdps": mdps}[sys.argv[1]](sys.argv[2] == "1")
