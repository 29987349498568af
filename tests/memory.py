"""Run a selection of the tests under memory checks: what is freed is overwritten, and often.

    python tests/memory.py [OPTIONS OF PYTEST]

A write past the end of an array or a use after free ends the process. The selection plays every
learner compiled, with threads and forks. `tests/jit/test_backend.py` has the control: under the
same checks a planted use after free is found.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator

import pytest

CHECKS = {"PYTHONMALLOC": "debug", "MALLOC_PERTURB_": "165", "MALLOC_CHECK_": "3"}
SELECTION = [
    "tests/jit/test_kernel.py",
    "tests/jit/test_users.py",
    "tests/learners/test_bandit.py",
    "tests/learners/test_mdp.py",
    "tests/learners/test_buffer.py",
    "tests/learners/test_persistence.py",
    "tests/simulation/test_bandit.py",
    "tests/simulation/test_mdp.py",
    "tests/core/occupancy/solver",
    "tests/test_extend.py",
    "tests/test_testing.py",
    "tests/test_unchanged.py",
    "tests/durable/test_forks.py",
]


class Collecting:
    """Collect garbage at each allocation of a test; what was there before it is left alone."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        before = gc.get_threshold()
        gc.freeze()
        gc.set_threshold(1)
        try:
            return (yield)
        finally:
            gc.set_threshold(*before)
            gc.unfreeze()


def main(options: list[str]) -> int:
    if any(os.environ.get(name) != value for name, value in CHECKS.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **CHECKS})
    return pytest.main([*options, *SELECTION], plugins=[Collecting()])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
