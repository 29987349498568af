"""Fixtures shared by the tests."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

os.environ.setdefault("UNBOUNDED_JIT", "always")  # what is tested is the compiled code
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # so a shell starts what is in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # programs that are tested inherit it

from bandit_examples import EXAMPLES, Example
from tiers import tiered
from unbounded import settings


@pytest.fixture(params=tiered(EXAMPLES))
def example(request: pytest.FixtureRequest) -> Example:
    return request.param


@pytest.fixture(params=EXAMPLES)
def every_example(request: pytest.FixtureRequest) -> Example:
    return request.param


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Compile nothing while tests are collected, as every worker would."""
    jit, settings.jit = settings.jit, "never"
    try:
        return (yield)
    finally:
        settings.jit = jit


@cache
def learners() -> dict[str, str]:
    """Names of all learners, by themselves and by the names of their files."""
    from unbounded import bandits, mdps

    classes = [*bandits.algorithms().values(), *mdps.algorithms().values()]
    files = {cls.__module__.rpartition(".")[2]: cls.spec.name for cls in classes}
    return files | {cls.spec.name: cls.spec.name for cls in classes}


def learner_of(nodeid: str) -> str | None:
    """The learner whose test it is: by an example's id, SCB-0, or by a file, test_scb.py."""
    names = re.findall(r"(\w+)-\d", nodeid) + re.findall(r"/(?:test_)?(\w+?)(?:_long)?\.py", nodeid)
    return next((learners()[name] for name in names if name in learners()), None)


@pytest.hookimpl(optionalhook=True)  # without xdist there is no such hook
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """All tests of one learner on one worker, so that its kernels are compiled once; of others,
    those of one function."""
    from xdist.scheduler import LoadScopeScheduling

    class ByLearner(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return learner_of(nodeid) or nodeid.partition("[")[0]

    return ByLearner(config, log)
