"""A learner as a teacher: which task should a student practice next?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, SupportsIndex

from unbounded.adapters import checked_bandit
from unbounded.bandits.scb import SCB
from unbounded.core.arrays import Vector
from unbounded.learners.arguments import Repeatable
from unbounded.learners.bandit import Learner
from unbounded.learners.by_arm import ByArm
from unbounded.validation import checked_count


class Teacher(Repeatable):
    """Choose tasks for a student, and learn from how much each was worth.

    It takes the place of the Exp3 and Exp3.S teachers of curricula, without the running least and
    largest rewards that those need: rewards, like gains in score, may be of any size and sign.

    Parameters
    ----------
    n_tasks : int
        The number of tasks. Thousands are no problem.
    learner : type
        The learner's class.
    settings : mapping, optional
        Its settings; the number of arms and the seed apart.
    seed : int, optional
        For the choices.

    Attributes
    ----------
    learner : Learner
        The learner itself, to be saved, for example.

    Notes
    -----
    Of each task, the last 1,000 samples may wait for their rewards; older ones are forgotten.
    `SCB` learns which task is worth most over the whole time. Where that changes again and again
    and the range of the rewards is known, ``learner=Exp3S`` with its ``switches`` follows.

    Examples
    --------
    >>> from unbounded.adapters.teacher import Teacher
    >>> teacher = Teacher(n_tasks=4, seed=0)
    >>> for _ in range(1000):
    ...     task = teacher.sample()
    ...     teacher.update(task, reward=[0.0, -3e4, 2e5, 1e3][task])
    >>> int(teacher.probabilities().argmax())
    2
    """

    def __init__(
        self,
        n_tasks: SupportsIndex,
        learner: type[Learner] = SCB,
        settings: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        self.learner = checked_bandit(learner)(n_arms=n_tasks, seed=seed, **dict(settings or {}))
        self._made_by = {"n_tasks": n_tasks, "learner": learner, "settings": settings, "seed": seed}
        self._by_arm = ByArm(self.learner)

    def sample(self) -> int:
        """Choose a task."""
        return self._by_arm.ask().arm

    def update(self, index: SupportsIndex, reward: float) -> None:
        """Report what a sampled task was worth; late and out of order is fine.

        Parameters
        ----------
        index : int
            The task.
        reward : float
            Any finite number; higher is better.
        """
        task = checked_count("index", index, least=0)
        if not self._by_arm.tell(task, reward=reward):
            raise ValueError(f"task {task} was not sampled, or its reward was reported before")

    def probabilities(self) -> Vector:
        """Return the distribution that the next `sample` draws from."""
        return self.learner.probabilities()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments that it was made by."""
        return dict(self._made_by)

    def __repr__(self) -> str:
        return f"Teacher({self.learner!r})"
