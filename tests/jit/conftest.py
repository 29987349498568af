"""Fixtures of the tests of compiled code."""

import pytest

from unbounded import settings


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
