"""Tickets by arm: for callers who know, when a loss comes, only which arm it is of."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import SupportsIndex

from numpy.typing import ArrayLike

from unbounded.learners.bandit import Choice, Learner
from unbounded.validation import checked_count, shown


class ByArm:
    """A learner whose losses are reported by arm, late and out of order, without tickets.

    Parameters
    ----------
    learner : Learner
        Its outstanding choices wait here too: those of a restored learner need nothing else.
    most : int
        How many choices of an arm may wait; beyond that the oldest one is forgotten.
    newest : bool
        Which choice of the arm a loss is for: the oldest that waits, or the newest. Take the newest
        where many losses never come.

    Notes
    -----
    A learner weighs a loss by the probability of its choice. Where losses of an arm come out of
    order, they are weighed by each other's probabilities: no bias if the order does not depend on
    the losses. With tickets there is no such condition.

    A learner that takes no delayed feedback forgets what waits at the next `ask`.

    Examples
    --------
    >>> from unbounded import ByArm, SCB
    >>> models = ByArm(SCB(n_arms=2, seed=0))
    >>> arms = [models.ask().arm for _ in range(5)]
    >>> [models.tell(arm, loss=0.3) for arm in reversed(arms)]
    [True, True, True, True, True]
    >>> models.tell(arms[0], loss=0.3), models.learner.rounds  # nothing waits
    (False, 5)
    """

    def __init__(
        self, learner: Learner, *, most: SupportsIndex = 1000, newest: bool = False
    ) -> None:
        if not isinstance(learner, Learner):
            raise TypeError(f"learner must be a bandit learner, not {shown(learner)}")
        self.learner, self._most, self._newest = learner, checked_count("most", most), newest
        self._waiting: dict[int, deque[Choice]] = {}
        for _, choice in sorted(learner.outstanding.items()):
            self._waiting.setdefault(choice.arm, deque()).append(choice)

    def ask(self, *, available: ArrayLike | None = None) -> Choice:
        """Choose an arm, and wait for its loss."""
        if not self.learner.spec.delayed:
            self.forget_all()
        choice = self.learner.ask() if available is None else self.learner.ask(available=available)
        waiting = self._waiting.setdefault(choice.arm, deque())
        if len(waiting) == self._most:
            self.learner.forget(waiting[0])
            waiting.popleft()
        waiting.append(choice)
        return choice

    def tell(
        self, arm: SupportsIndex | str, loss: float | None = None, *, reward: float | None = None
    ) -> bool:
        """Report the loss, or the reward, of an arm.

        Returns
        -------
        bool
            Whether a choice of the arm was waiting for it: else nothing is learned.
        """
        waiting = self._waiting.get(self._number(arm))
        if not waiting:
            return False
        self.learner.tell(waiting[-1 if self._newest else 0], loss, reward=reward)
        waiting.pop() if self._newest else waiting.popleft()  # now, as tell may raise
        return True

    def waiting(self, arm: SupportsIndex | str) -> int:
        """Return how many choices of an arm wait for their losses."""
        return len(self._waiting.get(self._number(arm), ()))

    def _number(self, arm: SupportsIndex | str) -> int:
        named = isinstance(arm, str)
        return self.learner._checked_arm(arm) if named else checked_count("arm", arm, least=0)

    def forget_all(self) -> int:
        """Forget all that wait, and learn nothing from them; how many there were."""
        count = 0
        for choice in self._drained():
            self.learner.forget(choice)
            count += 1
        return count

    def _drained(self) -> Iterator[Choice]:
        for waiting in self._waiting.values():
            while waiting:
                yield waiting[0]
                waiting.popleft()

    def __repr__(self) -> str:
        return f"ByArm({self.learner!r})"
