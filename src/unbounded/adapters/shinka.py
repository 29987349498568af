"""A learner as the selector of language models in ShinkaEvolve: `pip install shinka-evolve`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from shinka.llm import BanditBase

from unbounded.adapters import checked_bandit
from unbounded.bandits.ada_inf import AdaINF
from unbounded.core.arrays import Vector
from unbounded.learners.bandit import Learner
from unbounded.learners.by_arm import ByArm
from unbounded.validation import checked_loss

HALF_LIFE = 25  # programs; docs/results/index.md has others
_MOST = sys.float_info.max  # a difference of two finite scores may be more


class ScaleFreeModels(BanditBase):
    """Select the language model of each new program, from what earlier programs have gained.

    The reward of a model is by how much its program's score exceeds that of its parent and of the
    first program; 0 if it does not, or if the program is wrong. Scores may be of any size: in
    another unit of the score, the same models are selected.

    Parameters
    ----------
    arm_names : sequence of str
        The models: ``EvolutionConfig.llm_models``.
    learner : type
        The learner's class.
    settings : mapping, optional
        Its settings; the number of arms and the seed apart. By default a half-life of 25 programs,
        or of as many as there are models.
    seed : int, optional
        For the choices.

    Notes
    -----
    ShinkaEvolve reports late and by model, and nothing of proposals that failed: a report is for
    the newest proposal of its model (`ByArm`).

    Examples
    --------
    >>> from unbounded.adapters.shinka import ScaleFreeModels
    >>> models = ScaleFreeModels(["small", "large"], seed=0)  # llm_dynamic_selection=models
    >>> one_hot, probabilities = models.select_llm()
    >>> model = ["small", "large"][one_hot.argmax()]
    >>> models.update(model, reward=131.0, baseline=127.5)  # the scores of a program, its parent
    (3.5, 127.5)
    """

    def __init__(
        self,
        arm_names: Sequence[str],
        learner: type[Learner] = AdaINF,
        settings: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(arm_names=list(arm_names), seed=seed)
        if settings is None:
            settings = {"half_life": max(HALF_LIFE, len(arm_names))}
        made = checked_bandit(learner)(n_arms=len(arm_names), seed=seed, **dict(settings))
        self._by_arm = ByArm(made, newest=True)

    @property
    def learner(self) -> Learner:
        """The learner itself."""
        return self._by_arm.learner

    def select_llm(
        self, subset: Any = None, samples: int | None = None, **_: Any
    ) -> tuple[Vector, Vector]:
        """Choose a model: a vector that is 1 for it and else 0, and the distribution."""
        available = None if subset is None else self._resolve_subset(subset)
        q = self.posterior(subset)
        one_hot = np.zeros(self.n_arms)
        one_hot[self._by_arm.ask(available=available).arm] = 1.0
        return one_hot, q

    def posterior(self, subset: Any = None, samples: int | None = None, **_: Any) -> Vector:
        """Return the distribution of the next choice."""
        if subset is None:
            return self.learner.probabilities()
        return self.learner.probabilities(available=self._resolve_subset(subset))

    def update_submitted(self, arm: int | str) -> float:
        """Return how many proposals of a model wait for their scores."""
        return float(self._by_arm.waiting(self._resolve_arm(arm)))

    def update(
        self, arm: int | str, reward: float | None, baseline: float | None = None
    ) -> tuple[float, float]:
        """Learn from the score of a program, and return its gain and what that is above."""
        above = self._baseline
        if baseline is not None:
            above = max(above, checked_loss("baseline", baseline))
        score = above if reward is None else checked_loss("reward", reward)
        gain = min(max(score - above, 0.0), _MOST)
        self._by_arm.tell(self._resolve_arm(arm), reward=gain)
        return gain, above

    def decay(self, factor: float) -> None:
        """Do nothing: the learner forgets by its half-life."""

    def print_summary(self, console: Any = None) -> None:
        """Print the distribution over the models, and how many proposals wait."""
        say = print if console is None else console.print
        say(f"{self.learner!r} after {self.learner.rounds} programs")
        for arm, (name, p) in enumerate(zip(self._arm_names, self.posterior(), strict=True)):
            say(f"  {p:6.1%} {name} ({self._by_arm.waiting(arm)} waiting)")

    def get_state(self) -> dict[str, Any]:
        """Return the learner and the names of its arms."""
        return {"arm_names": list(self._arm_names), "learner": self.learner.save()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a learner; models that it does not have become arms, others go."""
        names = list(state["arm_names"])
        restored = type(self.learner).load(state["learner"])
        if names != self._arm_names:
            keep = [names.index(one) if one in names else None for one in self._arm_names]
            restored = restored.with_arms(keep)
        self._by_arm = ByArm(restored, newest=True)
