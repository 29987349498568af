"""Learners for MDPs in plain Python: two methods, and everything that a built-in learner does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import Layers
from unbounded.core.occupancy.mdp import Markov
from unbounded.learners.arguments import Elsewhere
from unbounded.learners.mdp import MDPLearner, MDPSpec, Seed, checked_layers
from unbounded.learners.mdp_steps import OWN
from unbounded.learners.python.bandit import in_python
from unbounded.learners.python.steps import InPython, begins, checked_table


class Params(NamedTuple):
    n_actions: int


class State(NamedTuple):
    t: int
    clipped: int  # of the buffer only: what a user's class counts is an attribute
    version: int
    pi: Vector  # what `policy` returned last


def init(layers: Layers, params: Params) -> State:
    """Nothing was returned yet."""
    return State(1, 0, 0, Markov.uniform(layers).pi)


class PythonMDPLearner(InPython, MDPLearner):
    """Base of your own algorithm for layered MDPs: say what to play, learn from an episode.

    A class needs two methods. ``policy()`` returns the probabilities of the actions in the next
    episode, one array of shape (states, actions) per layer, and changes nothing.
    ``update(states, actions, losses)`` learns from an episode that was played: arrays with one
    entry per layer. What a class keeps, it keeps in attributes; ``self.layers.sizes`` and
    ``self.layers.n_actions`` say what the MDP is like.

    A class with settings of its own has a constructor ``__init__(self, layers, n_actions, *, ...,
    seed=None)`` that calls ``super().__init__(layers, n_actions, seed=seed)``. One that has a
    setting ``episodes`` is told in experiments how many there will be. One that plays where some
    actions are not allowed or episodes end early takes ``allowed=None`` and ``ends=False`` too, and
    passes them on: ``self.layers.allowed`` has then a boolean table per layer, and `policy` must
    give no other action a probability.

    Attributes
    ----------
    reference : str
        Where it was published; for people.
    feedback : {"bandit", "full"}
        Whether ``update`` gets the losses that were paid, or a list with the losses of all pairs,
        one array of shape (states, actions) per layer.
    clipped : int
        For results: how many losses it has clipped. A class may count in ``self.clipped``.

    Examples
    --------
    >>> import numpy as np
    >>> from unbounded import PythonMDPLearner, simulate_mdp, worlds
    >>> class Cheapest(PythonMDPLearner):
    ...     def __init__(self, layers, n_actions, *, explore=0.2, seed=None):
    ...         super().__init__(layers, n_actions, seed=seed)
    ...         self.explore = explore
    ...         self.sums = [np.zeros((n, n_actions)) for n in layers]
    ...         self.counts = [np.ones((n, n_actions)) for n in layers]
    ...     def policy(self):
    ...         greedy = [np.eye(self.layers.n_actions)[(S / N).argmin(axis=1)]
    ...                   for S, N in zip(self.sums, self.counts)]
    ...         return [self.explore / g.shape[1] + (1 - self.explore) * g for g in greedy]
    ...     def update(self, states, actions, losses):
    ...         for h, (s, a, loss) in enumerate(zip(states, actions, losses)):
    ...             self.sums[h][s, a] += loss
    ...             self.counts[h][s, a] += 1
    >>> mdp = worlds.dirichlet([2, 3], 2, seed=0)
    >>> def second_is_better(t, last, q, rng):
    ...     return [np.tile([1.0, 0.0], (len(table), 1)) for table in q]
    >>> result = simulate_mdp(Cheapest([2, 3], 2), mdp, second_is_better, 300, seed=0)
    >>> 55 < result.pseudo_regret[0, -1] < 80  # exploration alone costs 0.1 * 2 * 300
    np.True_
    """

    reference: ClassVar[str] = ""
    feedback: ClassVar[Literal["bandit", "full"]] = "bandit"
    clipped: int = 0

    _takes = ("layers", "n_actions")
    _defines = ("policy", "update")
    _may_define = ("state", "restore", "reference", "feedback", "clipped")
    _may_set = ("clipped",)
    _keeps_transitions = False

    @begins
    def __init__(
        self, layers: Sequence[int], n_actions: SupportsIndex, *,
        allowed: Sequence[npt.ArrayLike] | None = None, ends: bool = False, seed: Seed = None,
    ) -> None:  # fmt: skip
        shape = checked_layers(layers, n_actions, allowed, ends)
        passed = {"layers": list(layers), "n_actions": n_actions, "allowed": allowed, "ends": ends}
        self._make(
            lambda: self._begin(shape, Params(shape.n_actions), seed, self._given),
            **{name: value for name, value in passed.items() if name in self._given},
        )

    @classmethod
    def _declared(cls) -> MDPSpec:
        return MDPSpec(
            module=cls.__module__, name=cls.__name__, reference=cls.reference, Params=Params,
            State=State, init=init, distribution=in_python, act=in_python, update=in_python,
            in_python=True, feedback=cls.feedback,
        )  # fmt: skip

    # ------------------------------------------------------------------ for users, who define both

    def policy(self) -> Any:
        """Return the policy of the next episode: one array of shape (n_h, A) per layer."""

    def update(self, states: Integers, actions: Integers, losses: Any) -> None:
        """Learn from the episode that was played, one entry per layer in each array."""

    # ------------------------------------------------------------------ playing

    def _fresh(self) -> Vector:
        packing = self.spec.packing
        buffer = packing.new(self._params, init(self.layers, self._params))
        self._pi_at = packing.place("pi", buffer)
        self._t_at, self._version_at = packing.slot("t"), packing.slot("version")
        return buffer

    @property
    def _pi(self) -> Vector:
        """Return the policy that is played, flat over pairs."""
        return self._buffer[self._pi_at]

    def _planned(self, words: Any) -> tuple[Any, ...]:
        pi = self._pi.copy()
        pi.flags.writeable = False
        return OWN, pi, words, self.episodes_told

    def _learn(self, ask_info: int, states: Integers, actions: Integers, losses: Vector) -> bool:
        def write(buffer: Vector) -> None:
            self._play_as_told(buffer)
            buffer[self._version_at] += 1.0
            buffer[self._t_at] += 1.0

        # Copies: it may keep what it gets.
        told: Any = losses.copy()
        if self.spec.feedback == "full":
            told = self.layers.unpack_pairs(told)
        self._learn_all_or_nothing((states.copy(), actions.copy(), told), write)
        return True

    def _play_as_told(self, buffer: Vector) -> None:
        who = f"{type(self).__name__}.policy()"
        given = self._run("policy")
        try:
            tables = list(given)
        except TypeError:
            tables = []
        sizes, A = self.layers.sizes, self.layers.n_actions
        if len(tables) != len(sizes):
            raise ValueError(
                f"{who} must return one table per layer, of shapes {[(n, A) for n in sizes]}, got "
                f"{len(tables)} tables"
            )
        checked = [
            checked_table(f"{who}[{h}]", table, (n, A))
            for h, (n, table) in enumerate(zip(sizes, tables, strict=True))
        ]
        allowed = self.layers.allowed if self.layers.forbidden else []
        for h, (table, legal) in enumerate(zip(checked, allowed, strict=False)):
            if (table[~legal] > 0.0).any():
                s, a = np.argwhere((table > 0.0) & ~legal)[0]
                raise ValueError(
                    f"{who}[{h}] gives action {a} in state {s} the probability {table[s, a]:g}, "
                    "and it is not allowed: self.layers.allowed says what is"
                )
        buffer[self._pi_at] = self.layers.pack_pairs(checked, first=1.0)

    def _check_state(self) -> None:
        pass  # what it plays was compared with what it played


# A class may set it, as what its constructor was given: for type checkers it is not declared here.
setattr(PythonMDPLearner, "n_actions", Elsewhere("n_actions", "self.layers.n_actions"))  # noqa: B010
