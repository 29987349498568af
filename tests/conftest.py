"""Shared by the tests: every algorithm with the settings its file gives as examples."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from unbounded import Learner
from unbounded.bandits import algorithms

EXAMPLES = [
    pytest.param((cls, dict(settings)), id=f"{name}-{i}")
    for name, cls in algorithms().items()
    for i, settings in enumerate(cls.spec.examples)
]


class Example:
    """One algorithm with one of its example settings."""

    def __init__(self, cls: type[Learner], settings: dict[str, Any]) -> None:
        self.cls = cls
        self.spec = cls.spec
        self.settings = settings

    def make(self, n_arms: int = 5, seed: Any = 0) -> Learner:
        return self.cls(n_arms, **self.settings, seed=seed)

    def tell(self, learner: Learner, choice: Any, losses: Any) -> None:
        if self.spec.feedback == "full":
            learner.tell(choice, losses=losses)
        else:
            learner.tell(choice, float(losses[choice.arm]))

    def play(self, learner: Learner, losses: Any) -> tuple[list[int], np.ndarray]:
        """Play the rows of ``losses``; the arms and the probabilities before each round."""
        arms, qs = [], []
        for row in losses:
            qs.append(learner.probabilities())
            choice = learner.ask()
            arms.append(choice.arm)
            self.tell(learner, choice, row)
        qs.append(learner.probabilities())
        return arms, np.array(qs)


@pytest.fixture(params=EXAMPLES)
def example(request: pytest.FixtureRequest) -> Example:
    return Example(*request.param)


@pytest.hookimpl(optionalhook=True)  # without xdist there is no such hook
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """All tests of one learner on one worker, so that its kernels are compiled once."""
    from xdist.scheduler import LoadScopeScheduling

    class ByLearner(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            match = re.search(r"\[(\w+)-\d", nodeid)
            return match[1] if match and match[1] in algorithms() else nodeid

    return ByLearner(config, log)
