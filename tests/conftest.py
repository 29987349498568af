"""Fixtures shared by the tests."""

from __future__ import annotations

import re
from typing import Any

import pytest

from bandit_examples import EXAMPLES, Example
from unbounded.bandits import algorithms


@pytest.fixture(params=EXAMPLES)
def example(request: pytest.FixtureRequest) -> Example:
    return request.param


@pytest.hookimpl(optionalhook=True)  # without xdist there is no such hook
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """All tests of one learner on one worker, so that its kernels are compiled once."""
    from xdist.scheduler import LoadScopeScheduling

    class ByLearner(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            match = re.search(r"\[(\w+)-\d", nodeid)
            return match[1] if match and match[1] in algorithms() else nodeid

    return ByLearner(config, log)
