"""Every MDP learner with the settings that its file gives as examples."""

from inspect import Parameter, signature

import numpy as np
import pytest

from mdp_play import random_losses
from unbounded import worlds
from unbounded.mdps import algorithms

MDP = worlds.dirichlet([2, 3], 2, np.random.default_rng(0))
EPISODES = 120
SEEKERS = ("MVP", "UCBVI")  # they want rewards of at most 1 in an episode


class MDPExample:
    """One algorithm with one of its example settings."""

    def __init__(self, cls, settings):
        self.cls = cls
        self.spec = cls.spec
        self.settings = settings

    def make(self, seed=0):
        """A learner for `MDP`."""
        return self.cls(MDP.layers.sizes, MDP.layers.n_actions, **self.given, seed=seed)

    @property
    def given(self):
        """The settings, with those that must be given."""
        given = dict(self.settings)
        parameters = signature(self.cls).parameters
        needed = {name for name, p in parameters.items() if p.default is Parameter.empty}
        if "episodes" in needed:
            given.setdefault("episodes", EPISODES)
        if "transitions" in needed:
            given["transitions"] = MDP.P
        if self.settings.get("explorer") == "oracle":
            given["known"] = {"transitions": MDP.P}
        return given

    def losses(self, seed=1, episodes=EPISODES):
        """Losses that it takes, shape (episodes, n_pairs)."""
        if self.spec.name in SEEKERS:
            numbers = np.random.default_rng(seed).random((episodes, MDP.layers.n_pairs))
            return -numbers / MDP.layers.horizon
        return random_losses(MDP.layers, episodes, seed)


EXAMPLES = [
    pytest.param(MDPExample(cls, dict(settings)), id=f"{name}-{i}")
    for name, cls in algorithms().items()
    for i, settings in enumerate(cls.spec.examples)
]
