"""What the optimistic learners MVP and UCBVI share as learners: their arguments, and which rewards
they take. What their algorithms share is in `optimism`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import numpy.typing as npt

from unbounded.core.arrays import Vector
from unbounded.learners.mdp import MDPLearner, checked_layers
from unbounded.learners.seeds import Seed
from unbounded.mdps.steps.optimism import Bonus, checked_rewards
from unbounded.validation import checked_constant, checked_count, checked_positive


class Optimistic(MDPLearner):
    """Base of the learners that seek rewards by optimism."""

    _chosen_bonus: ClassVar[Callable[..., Bonus]]

    def __init__(
        self,
        layers: Sequence[int],
        n_actions: int,
        episodes: int,
        delta: float = 0.05,
        *,
        total: float = 1.0,
        constants: Literal["practical", "paper"] = "practical",
        bonus: float = 0.3,
        allowed: Sequence[npt.ArrayLike] | None = None,
        ends: bool = False,
        seed: Seed = None,
    ) -> None:
        shape = checked_layers(layers, n_actions, allowed, ends)
        delta = checked_constant("delta", delta, below=1.0)
        total = self._total = checked_positive("total", total)
        episodes, bonus = checked_count("episodes", episodes), checked_constant("bonus", bonus)
        params = self._chosen_bonus(shape, constants, bonus, episodes, delta, total)
        self._begin(shape, params, seed)

    def _checked(self, name: str, values: Any) -> Vector:
        numbers = super()._checked(name, values)
        checked_rewards(self.spec.name, name, numbers, self._total)
        return numbers
