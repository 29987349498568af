"""Learners for layered MDPs: ask for the policy of an episode, tell what happened."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from unbounded._arguments import checked_numbers
from unbounded._jit import borrowed
from unbounded.core.arrays import Vector
from unbounded.core.occupancy.layout import Layers
from unbounded.core.occupancy.outcome import SolverWarning
from unbounded.core.occupancy.policies import Markov, Mixture
from unbounded.play.ask_tell import AskTell
from unbounded.play.contract import NO_SOLVES, MDPSpec, Solves
from unbounded.play.plan import Plan
from unbounded.play.seeds import Seed


class Entries(NamedTuple):
    """An algorithm's steps over its buffer, compiled."""

    look: Any  # buffer, lay, P, cache, q
    ask: Any  # buffer, lay, word, pi -> memo
    tell: Any  # buffer, lay, solver, memo, states, actions, losses -> whether there is room


@cache
def entries(spec: MDPSpec) -> Entries:
    """The compiled entries of an algorithm; made on first use."""
    params_of, state_of, pack = spec.packing.compiled
    distribution, act, update, room = spec.distribution, spec.act, spec.update, spec.room

    def look(owner: Any, lay: Any, P: Any, cache: Any, q: Any) -> None:
        buffer = borrowed(owner)
        distribution(lay, params_of(buffer), state_of(buffer), P, cache, q)

    def ask(owner: Any, lay: Any, word: Any, pi: Any) -> int:
        buffer = borrowed(owner)
        return act(lay, params_of(buffer), state_of(buffer), word, pi)

    def tell(
        owner: Any, lay: Any, solver: Any, memo: int, states: Any, actions: Any, losses: Any
    ) -> bool:
        buffer = borrowed(owner)
        params, state = params_of(buffer), state_of(buffer)
        state = update(lay, params, state, solver, memo, states, actions, losses)
        pack(buffer, state)
        return room(state)

    return Entries(*(spec.entry(step) for step in (look, ask, tell)))


class MDPLearner(AskTell[Plan]):
    """Base of the learners for MDPs: ask for a policy, play it, tell what happened.

    One plan may be outstanding at a time.
    """

    spec: ClassVar[MDPSpec]
    layers: Layers
    _noun = "plan"
    _example = "SCBRL"
    _said_unsolved = False

    def _begin(self, layers: Layers, params: Any, arguments: Any, seed: Seed) -> None:
        """As `_start`, for an MDP of this shape."""
        self.layers = layers
        shape = {"layers": list(layers.sizes), "n_actions": layers.n_actions}
        self._start(params, {**arguments, **shape}, seed)

    def _fresh(self) -> Vector:
        return self.spec.packing.new(self._params, self.spec.init(self.layers, self._params))

    # ------------------------------------------------------------------ playing

    def ask(self) -> Plan:
        """Choose the policy of the next episode."""
        with self._lock:
            self._refuse_second()
            self._warn_if_over(self.episodes_told + 1)
            words = self._bits.random_raw(1 + self.layers.horizon)
            plan = self._plan(words)
            self._outstanding[plan.id] = plan
            return plan

    def _warn_if_over(self, episodes: int) -> None:
        T = None if self.spec.per_state else self.made_for  # RF-ELP may go on for ever
        if T is not None and episodes > T:
            warnings.warn(
                f"{self.spec.name} was made for {T} episodes: it goes on, but its rates and its "
                "guarantee are for that many",
                stacklevel=3,
            )

    def _plan(self, words: Any) -> Plan:
        pi = np.empty(self.layers.n_pairs)
        memo = entries(self.spec).ask(self._buffer, self.layers.table, words[0], pi)
        number = self.episodes_told + self._forgotten
        return Plan(self.layers, pi, memo, words, number, self._identity)

    def tell(
        self,
        plan: Plan,
        states: npt.ArrayLike,
        actions: npt.ArrayLike,
        losses: npt.ArrayLike | None = None,
        *,
        rewards: npt.ArrayLike | None = None,
    ) -> None:
        """Report the episode that was played with ``plan``.

        Parameters
        ----------
        plan : Plan
            What `ask` returned.
        states, actions : array_like of int, shape (H,)
            Visited states, numbered within their layers, and actions.
        losses : array_like of float, shape (H,)
            Any finite numbers; lower is better.
        rewards : array_like of float, shape (H,)
            Instead of ``losses``: higher is better.
        """
        s = checked_numbers("states", states, self.layers.sizes)
        a = checked_numbers("actions", actions, (self.layers.n_actions,) * self.layers.horizon)
        if (losses is None) == (rewards is None):
            raise TypeError("tell() needs either losses= or rewards=")
        if losses is not None:
            values = self._checked("losses", losses)
        else:
            values = -self._checked("rewards", rewards)
        with self._lock:
            self._take(plan)
            lay, solver = self.layers.table, self.spec.solver()
            if not entries(self.spec).tell(self._buffer, lay, solver, plan._memo, s, a, values):
                self._grow()
        self._warn_if_unsolved()

    def _warn_if_unsolved(self) -> None:
        """Once, when a solve has failed."""
        slot = self.spec.unsolved
        if slot is None or self._said_unsolved or not self._buffer[slot]:
            return
        self._said_unsolved = True
        tally = self.certificate
        warnings.warn(
            unsolved(self.spec.name, tally.unsolved, tally.solves), SolverWarning, stacklevel=3
        )

    def forget(self, plan: Plan) -> None:
        """Drop a plan whose episode will never be known; nothing is learned from it."""
        with self._lock:
            self._take(plan)
            self._forgotten += 1

    def _checked(self, name: str, values: Any) -> Vector:
        given = np.asarray(values)
        if given.shape != (self.layers.horizon,):
            raise ValueError(
                f"{name} must have shape ({self.layers.horizon},), one per layer; got {given.shape}"
            )
        if given.dtype.kind not in "iuf":
            raise TypeError(f"{name} must be real numbers, not of type {given.dtype}")
        numbers = given.astype(np.float64)
        if not np.all(np.isfinite(numbers)):
            raise ValueError(f"{name} must be finite, got {given.tolist()}")
        return numbers

    def _grow(self) -> None:
        """Move the state to a buffer with more room."""
        if self.spec.grown is None:
            raise ValueError(f"the state of {self.spec.name} does not grow")
        self._buffer = self.spec.packing.new(self._params, self.spec.grown(self._state()))

    # ------------------------------------------------------------------ looking

    @property
    def episodes_told(self) -> int:
        """How many episodes have been told."""
        return int(self._scalar("t")) - 1

    @property
    def made_for(self) -> int | None:
        """How many episodes the learner was told to expect; None if any number will do."""
        T = self._settings.get("episodes")
        if T is None:
            return None
        return int(T) * (sum(self.layers.sizes) if self.spec.per_state else 1)

    @property
    def certificate(self) -> Solves:
        """How well programs over occupancy measures have been solved so far, if there are any."""
        return attrgetter(self.spec.solves)(self._state()) if self.spec.solves else NO_SOLVES

    @property
    def episodes_explored(self) -> int:
        """How many episodes were exploration, in learners that have such a phase."""
        return 0

    def explorers(self) -> dict[tuple[int, int], Mixture]:
        """The policies found for each state ``(h, s)``, h = 0 .. H - 1, that was explored."""
        return {}

    def policy(self) -> Markov:
        """The learner's own policy now, without exploration."""
        return Markov(self.layers, self.spec.policy(self._state()))

    # ------------------------------------------------------------------ keeping

    def _fit(self, size: int) -> None:
        while self._buffer.size < size:
            self._grow()

    def _checked_state(self) -> None:
        self.policy()

    def _record(self, plan: Plan) -> list[Any]:
        return [int(word) for word in plan._words]

    def _reissued(self, record: list[Any]) -> Plan:
        words = np.array(record, dtype=np.uint64)
        if words.shape != (1 + self.layers.horizon,):
            raise ValueError("its outstanding plan does not fit its settings")
        return self._plan(words)


def unsolved(name: str, failed: int, solves: int) -> str:
    """What to say about solves that failed."""
    return (
        f"{name} could not solve {failed} of {solves} programs over occupancy "
        "measures to its tolerance and played the best policy that it could certify: say "
        "tolerance= to accept more, and see learner.certificate"
    )


def checked_layers(layers: Sequence[int], n_actions: SupportsIndex) -> Layers:
    """`Layers` from what the user gave, or a clear error."""
    try:
        sizes = [int(n) for n in layers]
        whole = all(n == size for n, size in zip(layers, sizes, strict=True))
    except (TypeError, ValueError):
        raise TypeError(f"layers must be whole numbers, one per layer; got {layers!r}") from None
    if not whole or isinstance(n_actions, bool) or not isinstance(n_actions, SupportsIndex):
        raise TypeError(
            f"layers and n_actions must be whole numbers, got {layers!r} and {n_actions!r}"
        )
    return Layers(sizes, int(n_actions))
