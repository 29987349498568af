"""Fixtures of the tests of compiled code."""

import gc
from collections.abc import Iterator

import pytest

from unbounded import settings


@pytest.fixture(autouse=True)
def frozen() -> Iterator[None]:
    """Garbage that a test makes is found soon: nobody looks for that of others."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def auto(monkeypatch):
    monkeypatch.setattr(settings, "jit", "auto")


@pytest.fixture
def change_over(monkeypatch):
    """Which steps a learner uses from now on."""

    def choose(learner, compiled):
        monkeypatch.setattr(settings, "jit", "always" if compiled else "never")
        learner._steps._ready = compiled
        if hasattr(learner, "_choose_steps"):
            learner._choose_steps()

    return choose
