"""Kernels that run as Python (NUMBA_DISABLE_JIT=1) give the same bits, and no warnings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# The words of core/random.py wrap around, of which NumPy warns when they are scalars.
SCRIPT = """
import sys
import warnings

import numpy as np

import unbounded

warnings.simplefilter("error")
warnings.filterwarnings("ignore", module=r"unbounded.core.(random|simplex.proposal)")
warnings.filterwarnings("ignore", "a loss of .* is below the least possible one")
cls = getattr(unbounded, sys.argv[1])
rng = np.random.default_rng(0)
for settings in cls.spec.examples:
    for n in (1, 3, 70):
        learner = cls(n, **settings, seed=1)
        losses = rng.pareto(1.0, (200, n)) * 2.0 ** rng.integers(-30, 30, (200, 1))
        losses[::17] = 0.0
        losses[7::40] = min(1.7e308, cls.spec.largest_loss)
        losses[11::40] = 5e-324
        losses[13::40] *= -1.0
        for row in losses:
            choice = learner.ask()
            learner.tell(choice, float(row[choice.arm]))
            print(choice.arm, choice.probability.hex(), learner.scale)
        print([float(p).hex() for p in learner.probabilities()])
"""
LEARNERS = ["CostSCB", "CostSCBIX", "Exp3S", "AdaTINF", "HTINF", "RobustUCB", "LogThompson"]


def played(learner: str, **environment: str) -> str:
    paths = os.pathsep.join(p for p in sys.path if p)
    environment = dict(os.environ) | {"PYTHONPATH": paths} | environment
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, learner],
        env=environment, check=True, capture_output=True, text=True, cwd=Path(__file__).parent,
    ).stdout  # fmt: skip


@pytest.mark.parametrize("learner", LEARNERS)
def test_interpreted_is_compiled(learner):
    compiled = played(learner)
    assert compiled.count("\n") > 600
    assert played(learner, NUMBA_DISABLE_JIT="1") == compiled
