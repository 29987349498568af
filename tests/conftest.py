"""Fixtures shared by the tests."""

from __future__ import annotations

import gc
import os
import random
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

os.environ.setdefault("UNBOUNDED_JIT", "always")  # what is tested is the compiled code
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # else an edit within a second is not seen by processes
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # so a shell starts what is in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # programs that are tested inherit it

import evolution_stub
import litellm_stub
from bandit_examples import EXAMPLES, Example
from tiers import tiered
from unbounded import settings

sys.dont_write_bytecode = False  # workers of pytest inherit it: each would compile all tests again
evolution_stub.install()
litellm_stub.install()


collect_ignore = ["litellm_workers_app.py"]  # needs LiteLLM's proxy: tests/litellm_workers.py


@pytest.fixture(params=tiered(EXAMPLES))
def example(request: pytest.FixtureRequest) -> Example:
    return request.param


@pytest.fixture(params=EXAMPLES)
def every_example(request: pytest.FixtureRequest) -> Example:
    return request.param


def pytest_configure() -> None:
    """Temporary files are in memory where there is room: nobody waits for a disk to sync."""
    memory = "/dev/shm"
    if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**32:
        os.environ.setdefault("TMPDIR", memory)
        tempfile.tempdir = None  # looked up again


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Compile nothing while tests are collected, as every worker would; and little of what is made
    then is garbage."""
    jit, settings.jit = settings.jit, "never"
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        settings.jit = jit


@cache
def learners() -> dict[str, str]:
    """Names of all learners, by themselves and by the names of their files."""
    from unbounded import bandits, mdps

    classes = [*bandits.algorithms().values(), *mdps.algorithms().values()]
    files = {cls.__module__.rpartition(".")[2]: cls.spec.name for cls in classes}
    return files | {cls.spec.name: cls.spec.name for cls in classes}


def learner_of(nodeid: str) -> str | None:
    """The learner whose test it is: by its parameters, as SCB-0, or by its file, test_scb.py."""
    test, _, parameters = nodeid.partition("[")
    names = re.findall(r"\w+", parameters) + re.findall(r"/(?:test_)?(\w+)\.py", test)
    return next((learners()[name] for name in names if name in learners()), None)


# Packages whose tests compile most, or start processes.
SLOW = ("mdps", "experiments", "cli", "jit", "durable", "report", "learners", "adapters")


def turn(nodeid: str) -> tuple[int, str]:
    """When a test is run by one of several workers: first what takes long; the tests of a learner
    after one another, so that mostly one worker loads its kernels."""
    package = nodeid.removeprefix("tests/").partition("/")[0]
    return SLOW.index(package) if package in SLOW else len(SLOW), learner_of(nodeid) or ""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run tests in a random order")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.shuffle is not None:
        random.Random(config.option.shuffle).shuffle(items)
    elif hasattr(config, "workerinput"):
        items.sort(key=lambda item: turn(item.nodeid))


@pytest.hookimpl(optionalhook=True)  # without xdist there is no such hook
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Each worker has half of the tests; whoever has done its own takes from the other."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)
