"""Bandit learners in plain Python: two methods, and everything that a built-in learner does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from unbounded.core.arrays import Vector
from unbounded.core.simplex.sampling import LANES, Law, draw, new_law
from unbounded.jit.interpreter import interpreted
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.learners.base import EMPTY
from unbounded.learners.python.steps import InPython, begins, checked_table
from unbounded.learners.spec import ASKED, DRAWN, FIRST_WORD, RING, TOLD, WORDS
from unbounded.validation import checked_count

_draw, _new_law = interpreted(draw), interpreted(new_law)


class Params(NamedTuple):
    n: int


class State(NamedTuple):
    t: int
    clipped: int  # of the buffer only: what a user's class counts is an attribute
    law: Law  # what `distribution` returned last


def init(params: Params) -> State:
    """Nothing was returned yet."""
    return State(t=1, clipped=0, law=_new_law(params.n))


def in_python(*_: Any) -> Any:
    """Stand for a kernel: a learner in Python has methods instead."""
    raise TypeError("the steps of a learner in Python are its methods")


class PythonLearner(InPython, Learner):
    """Base of your own bandit algorithm: say what to play, and learn from a loss.

    A class needs two methods. ``distribution()`` returns the probabilities of the arms, an array
    of shape (n_arms,), and changes nothing. ``update(arm, probability, loss)`` learns: ``arm`` was
    played, its probability was ``probability`` when it was asked for (feedback may come late), and
    it cost ``loss``, any finite number. What a class keeps, it keeps in attributes.

    A class with settings of its own has a constructor ``__init__(self, n_arms, *, ..., seed=None)``
    that calls ``super().__init__(n_arms, seed=seed)``. Settings are numbers, texts, and lists or
    dicts of such: what a file can hold.

    Random numbers are not the class's concern: the arm is drawn for it, with the seed.

    Attributes
    ----------
    reference, guarantee : str
        Where it was published, and what it promises; for people.
    delayed : bool
        Whether several choices may be outstanding.
    feedback : {"bandit", "full"}
        Whether ``update`` gets the loss of the arm, or an array of the losses of all arms.
    largest_loss : float
        The largest absolute loss that is legal.
    scale : float
        For results: the scale that the algorithm now works with. A class may set ``self.scale``.
    clipped : int
        For results: how many losses it has clipped. A class may count in ``self.clipped``.

    Examples
    --------
    >>> import numpy as np
    >>> from unbounded import PythonLearner
    >>> class FollowTheLeader(PythonLearner):
    ...     def __init__(self, n_arms, *, explore=0.1, seed=None):
    ...         super().__init__(n_arms, seed=seed)
    ...         self.explore, self.L = explore, np.zeros(n_arms)
    ...     def distribution(self):
    ...         best = self.L == self.L.min()
    ...         return self.explore / self.n_arms + (1 - self.explore) * best / best.sum()
    ...     def update(self, arm, probability, loss):
    ...         self.L[arm] += loss / probability
    >>> learner = FollowTheLeader(3, seed=0)
    >>> for _ in range(100):
    ...     choice = learner.ask()
    ...     learner.tell(choice, loss=[0.5, 0.1, 0.9][choice])
    >>> learner.probabilities().round(3).tolist()
    [0.033, 0.933, 0.033]
    >>> FollowTheLeader.load(learner.save()).L.tolist() == learner.L.tolist()
    True
    """

    reference: ClassVar[str] = ""
    guarantee: ClassVar[str] = "none is stated"
    delayed: ClassVar[bool] = True
    feedback: ClassVar[Literal["bandit", "full"]] = "bandit"
    largest_loss: ClassVar[float] = np.inf
    scale: float = 0.0
    clipped: int = 0
    n_arms: int = 0

    _takes = ("n_arms",)
    _defines = ("distribution", "update")
    _may_define = (
        "state", "restore", "reference", "guarantee", "delayed", "feedback", "largest_loss",
        "scale", "clipped",
    )  # fmt: skip
    _may_set = ("scale", "clipped")

    @begins
    def __init__(self, n_arms: NumberOrNames, *, seed: Seed = None) -> None:
        n = checked_count("n_arms", n_arms)
        self._make(lambda: self._start(Params(n), seed, self._given), n_arms=n_arms)

    def _start(self, params: Any, seed: Seed, checked: Mapping[str, Any] = EMPTY) -> None:
        self.n_arms = params.n
        super()._start(params, seed, checked)

    @classmethod
    def _declared(cls) -> BanditSpec:
        return BanditSpec(
            module=cls.__module__, name=cls.__name__, reference=cls.reference,
            guarantee=cls.guarantee, delayed=cls.delayed, feedback=cls.feedback,
            largest_loss=cls.largest_loss, Params=Params, State=State, init=init,
            distribution=in_python, act=in_python, update=in_python, scale=in_python,
            in_python=True,
        )  # fmt: skip

    # ------------------------------------------------------------------ for users, who define both

    def distribution(self) -> Any:
        """Return the probabilities of the arms, array_like of shape (n_arms,); changes nothing."""

    def update(self, arm: int, probability: float, loss: Any) -> None:
        """Learn from the loss of an arm, which had this probability when it was asked for."""

    # ------------------------------------------------------------------ playing

    def _fresh(self) -> Vector:
        buffer = self.spec.packing.new(self._params, init(self._params))
        buffer[TOLD : TOLD + RING] = -1.0
        return buffer

    def _choose_steps(self) -> bool:
        self._ask, self._tell = self._ask_user, self._tell_user
        self._look, self._scale = self._look_at, lambda _: self.scale
        self._t_at = self.spec.packing.slot("t")
        packing = self.spec.packing
        self._law_at = [packing.place(f"law.{part}", self._buffer) for part in Law._fields]
        return True

    def _law(self, buffer: Vector) -> Law:
        return Law(*(buffer[place] for place in self._law_at))

    def _look_at(self, buffer: Vector, q: Vector) -> None:
        q[:] = self._law(buffer).q

    def _ask_user(self, _: Vector) -> tuple[int, float, float, int]:
        with self._lock:
            buffer = self._buffer
            asked = int(buffer[ASKED])
            if asked == buffer[DRAWN]:
                return -1, 0.0, 0.0, asked
            buffer[ASKED] = asked + 1.0
            word = int(buffer.view(np.uint64)[FIRST_WORD + asked % WORDS])
            arm, probability = _draw(self._law(buffer), word)
            return arm, float(probability), float(probability), asked

    def _tell_user(self, _: Vector, arm: int, probability: float, number: int, loss: Any) -> None:
        with self._lock:

            def write(buffer: Vector) -> None:
                self._play_as_told(buffer)
                buffer[self._t_at] += 1.0
                buffer[TOLD + number % RING] = number

            self._learn_all_or_nothing((arm, probability, loss), write)

    def _play_as_told(self, buffer: Vector) -> None:
        given = self._run("distribution")
        law = self._law(buffer)
        law.q[:] = checked_table(f"{type(self).__name__}.distribution()", given, (self.n_arms,))
        if self.n_arms >= LANES:  # its sums, as `mix` adds them up
            padded = np.append(law.q, np.zeros(-self.n_arms % LANES))
            law.lane_sums[:] = padded.reshape(-1, LANES).sum(axis=0)
