"""A learner as an operator selection scheme of ALNS: `pip install "unbounded[alns]"`."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from alns.select import OperatorSelectionScheme
from numpy.random import Generator
from numpy.typing import ArrayLike

from unbounded.adapters import checked_bandit
from unbounded.bandits.scb import SCB
from unbounded.learners.arguments import Repeatable
from unbounded.learners.bandit import Choice, Learner
from unbounded.validation import checked_option

LOSSES = ("delta", "gain")
_MOST = sys.float_info.max  # a difference of two finite objectives may be more


class ScaleFreeSelect(Repeatable, OperatorSelectionScheme):
    """Select pairs of operators by a learner, from what they did to the objective.

    There are no scores and no decay to tune, and objectives may be of any size.

    Parameters
    ----------
    num_destroy, num_repair : int
        The numbers of operators.
    op_coupling : array_like of bool, optional
        Which repair operators may follow which destroy operators, as in ALNS. Each pair that may be
        is an arm.
    learner : type
        The learner's class.
    settings : mapping, optional
        Its settings; the number of arms and the seed apart. The seed is drawn from the generator of
        ALNS.
    loss : {"delta", "gain"}
        What a pair is held to account for: the candidate's objective minus the current one, or that
        only if it is an improvement, and otherwise 0.

    Examples
    --------
    >>> import numpy as np
    >>> from unbounded.adapters.alns import ScaleFreeSelect
    >>> select = ScaleFreeSelect(2, 2, op_coupling=[[True, False], [True, True]])
    >>> select.pairs
    [(0, 0), (1, 0), (1, 1)]
    """

    def __init__(
        self,
        num_destroy: int,
        num_repair: int,
        op_coupling: ArrayLike | None = None,
        learner: type[Learner] = SCB,
        settings: Mapping[str, Any] | None = None,
        loss: Literal["delta", "gain"] = "delta",
    ) -> None:
        coupling = None if op_coupling is None else np.asarray(op_coupling)
        super().__init__(num_destroy, num_repair, coupling)
        self._improvements_only = checked_option("loss", loss, LOSSES) == LOSSES.index("gain")
        self._class = checked_bandit(learner)
        self._settings = dict(settings or {})
        self._coupling = coupling
        self.pairs = [(int(d), int(r)) for d, r in np.argwhere(self.op_coupling)]
        self._made: Learner | None = None  # at the first call
        self._choice: Choice | None = None
        self._before = math.nan

    @property
    def learner(self) -> Learner:
        """The learner, which the first call makes."""
        if self._made is None:
            raise AttributeError(
                "the learner is made at the first call, with the generator of ALNS"
            )
        return self._made

    def __call__(self, rng: Generator, best: Any, curr: Any) -> tuple[int, int]:
        """Choose a destroy and a repair operator."""
        if self._made is None:
            seed = int(rng.integers(2**63))
            self._made = self._class(n_arms=len(self.pairs), seed=seed, **self._settings)
        if self._choice is not None:  # an operator raised, and nothing is known of the pair
            self.learner.forget(self._choice)
        self._before = curr.objective()
        self._choice = self.learner.ask()
        return self.pairs[self._choice.arm]

    def update(self, candidate: Any, d_idx: int, r_idx: int, outcome: Any) -> None:
        """Learn from the candidate that a pair of operators made."""
        choice = self._choice
        if choice is None or self.pairs[choice.arm] != (d_idx, r_idx):
            raise ValueError(
                f"operators {(d_idx, r_idx)} are not the pair that was selected last: call the "
                "scheme before each update"
            )
        after = candidate.objective()
        if not (abs(self._before) < math.inf and abs(after) < math.inf):
            raise ValueError(
                f"the objective went from {self._before} to {after}: give what is infeasible a "
                "large finite objective"
            )
        delta = float(min(max(after - self._before, -_MOST), _MOST))
        self.learner.tell(choice, min(delta, 0.0) if self._improvements_only else delta)
        self._choice = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments that it was made by."""
        return {
            "num_destroy": self.num_destroy,
            "num_repair": self.num_repair,
            "op_coupling": self._coupling,
            "learner": self._class,
            "settings": dict(self._settings),
            "loss": LOSSES[self._improvements_only],
        }

    def __repr__(self) -> str:
        loss = LOSSES[self._improvements_only]
        return (
            f"ScaleFreeSelect({self.num_destroy}, {self.num_repair}, "
            f"learner={self._class.__name__}, settings={self._settings}, loss={loss!r})"
        )
