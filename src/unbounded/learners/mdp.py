"""Learners for layered MDPs: ask for the policy of an episode, tell what happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Self, SupportsIndex

import numpy as np
import numpy.typing as npt

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import PAIR, Layers
from unbounded.core.occupancy.mdp import Markov, Mixture
from unbounded.core.occupancy.solver import SolverWarning
from unbounded.jit.interpreter import interpreted, interpreted_pointer
from unbounded.jit.schedule import steps_of
from unbounded.learners import persistence as documents
from unbounded.learners.arguments import arguments_for, name_elsewhere
from unbounded.learners.base import EMPTY, AskTell
from unbounded.learners.episodes import Plan, all_losses, check_end, completed, is_tables
from unbounded.learners.mdp_steps import entries
from unbounded.learners.seeds import Seed
from unbounded.learners.spec import NO_SOLVES, Cache, MDPSpec, Solves
from unbounded.validation import (
    checked_count,
    checked_flag,
    checked_losses,
    checked_numbers,
    checked_sizes,
)

if TYPE_CHECKING:
    from unbounded.core.occupancy.mdp import LayeredMDP

__all__ = ["Cache", "MDPLearner", "MDPSpec", "Seed", "checked_layers"]


class MDPLearner(AskTell[Plan]):
    """Base of the learners for MDPs: ask for a policy, play it, tell what happened.

    One plan may be outstanding at a time.

    Examples
    --------
    >>> from unbounded import CostSCBRL
    >>> learner = CostSCBRL(layers=[1, 2], n_actions=2, seed=0)
    >>> plan = learner.ask()
    >>> actions = [plan.act(0, 0), plan.act(1, 1)]  # the world led to state 1 of layer 1
    >>> learner.tell(plan, states=[0, 1], actions=actions, losses=[3.0, 250.0])
    """

    spec: MDPSpec
    layers: Layers
    _noun = "plan"
    _noted_as: ClassVar[Mapping[str, type]] = {"loss": float, "clipped": int}
    _unit = "episode"
    _example = "SCBRL"
    _shared: ClassVar[Mapping[str, str]] = {
        "layers": "sequence of int\n"
        "    Number of states in each layer 1..H. Where episodes begin is unknown, too.",
        "n_actions": "int",
        "episodes": "int\n    How many will be played.",
        "delta": "float, default 0.05\n    The regret bound holds with probability 1 - delta.",
        "tolerance": "float, default 1e-8\n    Certified accuracy of each solve.",
        "support": "array_like of bool, shape (n_transitions,), optional\n"
        "    Which transitions are possible, flat as ``LayeredMDP.P > 0``; by default all are.",
        "allowed": "sequence of array_like of bool, shapes (n_h, n_actions), optional\n"
        "    Which actions may be taken, as `LayeredMDP.allowed`; all by default.",
        "ends": "bool, default False\n    Whether episodes may end early: the last state of each "
        "layer but the first is then the end.",
        "seed": "int, SeedSequence or Generator, optional",
    }  # fmt: skip
    _keeps_transitions = True  # whether something in the buffer is over triples (s, a, s')
    _said_unsolved = False
    _warms_up = False  # whether to run compiled steps in any case
    _least: Vector | None = None  # lower bounds on the losses, of learners that are given them

    def _begin(
        self, layers: Layers, params: Any, seed: Seed, checked: Mapping[str, Any] = EMPTY
    ) -> None:
        """As `_start`, for an MDP of this shape."""
        self.layers = layers
        self._asks = 0
        shape = {
            "layers": list(layers.sizes), "n_actions": layers.n_actions, "ends": layers.ends,
            "allowed": [table.tolist() for table in layers.allowed] if layers.n_forbidden else None,
        }  # fmt: skip
        self._start(params, seed, {**checked, **shape})

    def _fresh(self) -> Vector:
        self._steps = steps_of(type(self), self.spec, self._settings, entries)
        init = self.spec.init if self._steps.ready else interpreted(self.spec.init)
        buffer = self.spec.packing.new(self._params, init(self.layers, self._params))
        self._steps.begin(buffer.size)
        return buffer

    def _warm_up(self) -> None:
        """Run every compiled step once."""
        self._warms_up = True
        self.spec.init(self.layers, self._params)
        plan, H = self.ask(), self.layers.horizon
        actions = [plan.act(h, 0) for h in range(H)]
        losses: Any = np.zeros(H) if self._least is None else np.maximum(0.0, self._least)
        if self.spec.feedback == "full":
            losses = self.layers.unpack_pairs(np.zeros(self.layers.n_pairs))
        self.tell(plan, [0] * H, actions, losses)

    @classmethod
    def for_mdp(
        cls, mdp: LayeredMDP, episodes: SupportsIndex | None = None, *, seed: Seed = None,
        **settings: Any,
    ) -> Self:  # fmt: skip
        """Make a learner for the shape of an MDP: its layers, its actions, whether episodes end.

        Transitions stay unknown, but to learners that need them (``transitions``). ``episodes``, if
        the learner takes it, ``seed`` and ``settings`` are its own arguments.

        Examples
        --------
        >>> from unbounded import SCBRL, LayeredMDP
        >>> mdp = LayeredMDP.from_arrays([[[1.0]]], [1.0], horizon=3, ends=[[0.0]])
        >>> SCBRL.for_mdp(mdp, 100, profile="paper", seed=0).layers
        Layers(sizes=(1, 2, 2), n_actions=1, ends=True)
        """
        return cls(**arguments_for(cls, mdp, episodes, settings), seed=seed)

    # ------------------------------------------------------------------ playing

    def ask(self) -> Plan:
        """Choose the policy of the next episode."""
        with self._lock:
            self._reject_fork()
            self._settle()
            self._reject_second()
            self._warn_if_over(self.episodes_told + 1)
            words = self._bits.random_raw(1 + self.layers.horizon)
            record = self._planned(words)
            number = self._asks
            self._asks += 1  # an interrupt here leaves a number that nobody has
            self._records[number] = record
            return self._ticket(number, record, self._identity)

    def _warn_if_over(self, episodes: int) -> None:
        T = None if self.spec.per_state else self.made_for  # RF-ELP may go on for ever
        if T is not None and episodes > T:
            said = f"{self.spec.name} was made for {T} episodes: it goes on, but its rates and its "
            self._warn(said + "guarantee are for that many", UserWarning)

    def _planned(self, words: Any) -> tuple[Any, ...]:
        """Return the record of a plan: ask_info, policy, random words, and its episode."""
        pi = np.empty(self.layers.n_pairs)
        compiled = self._warms_up or self._steps.ready
        steps = self._steps.compiled if compiled else self._steps.interpreted
        ask_info = int(steps.ask(self._buffer, self.layers.table, words[0], pi))
        pi.flags.writeable = False
        return ask_info, pi, words, self.episodes_told

    def _ticket(self, number: int, record: tuple[Any, ...], issuer: str) -> Plan:
        ask_info, pi, words, _ = record
        return Plan(self.layers, pi, ask_info, words, number, issuer)

    @property
    def outstanding(self) -> Mapping[int, Plan]:
        """The plan that has not been told, by ``plan.id``."""
        with self._lock:
            self._settle()
        return super().outstanding

    def _settle(self) -> None:
        """Drop a plan that was told before an interrupt could be seen."""
        for number, record in list(self._records.items()):
            if record[3] != self.episodes_told:
                del self._records[number]

    def tell(
        self,
        plan: Plan,
        states: npt.ArrayLike,
        actions: npt.ArrayLike,
        losses: npt.ArrayLike | Sequence[npt.ArrayLike] | None = None,
        *,
        rewards: npt.ArrayLike | Sequence[npt.ArrayLike] | None = None,
    ) -> None:
        """Report the episode that was played with ``plan``.

        Parameters
        ----------
        plan : Plan
            What `ask` returned.
        states, actions : array_like of int, shape (H,)
            Visited states, numbered within their layers, and actions. With ``ends=True``: as many
            as there were.
        losses, rewards : array_like of float, shape (H,)
            One of the two, any finite numbers, as many as states. For full-information learners:
            those of all pairs, one table of shape (n_h, A) per layer.
        """
        if (losses is None) == (rewards is None):
            raise TypeError("tell() needs either losses= or rewards=")
        said = losses if losses is not None else rewards
        full = self.spec.feedback == "full"
        states, actions, paid = completed(self.layers, states, actions, None if full else said)
        s = checked_numbers("states", states, self.layers.sizes)
        a = checked_numbers("actions", actions, (self.layers.n_actions,) * self.layers.horizon)
        name = "losses" if losses is not None else "rewards"
        values = self._checked_tables(name, said) if full else self._checked(name, paid)
        if losses is None:
            values = 0.0 - values  # 0, never -0
        if self.layers.ends:
            check_end(self.layers, s, np.zeros(s.size) if full else values)
        if self._least is not None:
            self._warn_if_below(values, self._least, reward=losses is None)
        with self._lock:
            self._reject_fork()
            self._settle()
            number, (ask_info, pi, _, _) = self._held(plan)
            self._check_actions(pi, s, a)
            if not self._learn(ask_info, s, a, values):
                self._grow()
                self._learn(ask_info, s, a, values)
            del self._records[number]
        self._warn_if_unsolved()

    def _noted(
        self, plan: Plan, states: Any, actions: Any, losses: Any = None, *, rewards: Any = None
    ) -> tuple[Any, ...]:
        paid = rewards if losses is None else losses
        if self.spec.feedback == "full":
            visited = zip(paid, states, actions, strict=False)
            paid = [np.asarray(table)[s, a] for table, s, a in visited]
        total = float(np.sum(paid))
        return total if losses is not None else 0.0 - total, self.clipped

    def _warn_if_below(self, losses: Vector, least: Vector, *, reward: bool) -> None:
        """Warn once, when a loss is below the lower bound."""
        low = np.flatnonzero(losses < least)
        if low.size and self._scalar("below") == 0.0:
            self._warn_below(losses[low[0]], least[low[0]], reward=reward)

    def _warn_if_unsolved(self) -> None:
        """Once, when a solve has failed."""
        slot = self.spec.unsolved
        if slot is None or self._said_unsolved or not self._buffer[slot]:
            return
        self._said_unsolved = True
        tally = self.certificate
        said = unsolved(self.spec.name, tally.unsolved, tally.solves)
        self._warn(said, SolverWarning)

    def _learn(self, ask_info: int, states: Integers, actions: Integers, losses: Vector) -> bool:
        """Run the algorithm's update; False if there is no room for it."""
        steps, lay = self._steps, self.layers.table
        if self._warms_up or steps.loaded:  # an interpreted update may take longer than loading
            solver = self.spec.solver()
            return steps.compiled.tell(
                self._buffer, lay, solver, ask_info, states, actions, losses
            )[0]
        solver, tell = interpreted_pointer(self.spec.solver), steps.interpreted.tell
        return bool(self._on_a_copy(tell, lay, solver, ask_info, states, actions, losses)[0])

    def _check_actions(self, pi: Vector, states: Integers, actions: Integers) -> None:
        first = self.layers.table[PAIR, 1:-1]
        chances = pi[first + states * self.layers.n_actions + actions]
        if not np.all(chances > 0.0):
            h = int(np.argmin(chances))
            raise ValueError(
                f"the plan never takes action {actions[h]} in state {states[h]} of layer {h}: "
                "play what plan.act says, or tell the actions that were played"
            )

    def _checked(self, name: str, values: Any) -> Vector:
        try:
            return checked_losses(name, values, self.layers.horizon, "layer")
        except (TypeError, ValueError):
            if not is_tables(values):
                raise
        raise TypeError(
            f"{self.spec.name} learns from the {name} of the pairs that were visited: tell one "
            "number per layer, not tables"
        )

    def _checked_tables(self, name: str, values: Any) -> Vector:
        """Return the same with full information: flat over pairs."""
        return all_losses(self.layers, self.spec.name, name, values)

    def _grow(self) -> None:
        """Move the state to a buffer with more room."""
        if self.spec.grown is None:
            raise ValueError(f"the state of {self.spec.name} does not grow")
        self._buffer = self.spec.packing.new(self._params, self.spec.grown(self._state()))

    # ------------------------------------------------------------------ looking

    @property
    def episodes_told(self) -> int:
        """Return the number of episodes told."""
        return int(self._scalar("t")) - 1

    @property
    def made_for(self) -> int | None:
        """Return the number of episodes that the learner was made for; None if there is none."""
        T = self._settings.get("episodes")
        if T is None:
            return None
        return int(T) * (sum(self.layers.sizes) if self.spec.per_state else 1)

    @property
    def certificate(self) -> Solves:
        """Return how well programs over occupancy measures were solved, if there are any."""
        return attrgetter(self.spec.solves)(self._state()) if self.spec.solves else NO_SOLVES

    @property
    def episodes_explored(self) -> int:
        """Return the number of exploration episodes, in learners that have such a phase."""
        return 0

    def explorers(self) -> dict[tuple[int, int], Mixture]:
        """Return the policies found for each explored state ``(h, s)``, h = 0 .. H - 1."""
        return {}

    def policy(self) -> Markov:
        """Return the learner's own policy now, without exploration."""
        return Markov(self.layers, self.spec.policy(self._state()))

    def _shown_settings(self) -> list[str]:
        parts = [f"{name}={value!r}" for name, value in self._differing().items()]
        parts += [f"{self.layers.n_forbidden} not allowed"] if self.layers.n_forbidden else []
        parts += ["ends=True"] if self.layers.ends else []
        return parts

    def _differing(self) -> dict[str, Any]:
        """Return the settings that are not defaults, but for what `__repr__` says of the shape."""
        shape = ("allowed", "ends", "known")
        return {name: self._settings[name] for name in self._named if name not in shape}

    # ------------------------------------------------------------------ keeping

    @property
    def _asked(self) -> int:
        return self._asks

    def _snapshot(self) -> tuple[Vector, dict[int, tuple[Any, ...]]]:
        self._settle()
        return self._buffer.copy(), dict(self._records)

    def _kept(self, record: tuple[Any, ...]) -> list[Any]:
        return [int(word) for word in record[2]]

    def _record_of(self, number: int, kept: list[Any]) -> tuple[Any, ...]:
        words = [documents.whole_number(word, 2**64) for word in kept]
        if len(words) != 1 + self.layers.horizon:
            raise ValueError("its outstanding plan does not fit its settings")
        return self._planned(np.array(words, dtype=np.uint64))

    @classmethod
    def _fewest_entries(cls, settings: Mapping[str, Any]) -> int:
        sizes = [documents.whole_number(n, 2**48) for n in settings["layers"]]
        n_actions = documents.whole_number(settings["n_actions"], 2**48)
        fewest = 1 + n_actions * sum(sizes)
        outliers = settings.get("outliers")
        if isinstance(outliers, int):
            fewest += len(sizes) * documents.whole_number(outliers, 2**48)
        if cls._keeps_transitions:
            fewest = max(fewest, sizes[0] + n_actions * sum(n * m for n, m in pairwise(sizes)))
        if cls.spec.grown is not None:  # a library of policies, one for each state at least
            fewest = max(fewest, sum(sizes) ** 2)
        return fewest

    def _fit(self, size: int) -> None:
        while self._buffer.size < size:
            self._grow()

    def _restore_asked(self, asked: int) -> None:
        self._asks = asked

    def _check_state(self) -> None:
        barred = list(self.layers.forbidden)
        state = self._state()
        kept = all(np.all(np.isinf(attrgetter(v)(state)[barred])) for v in self.spec.infinite)
        if not kept or np.any(self.policy().pi[barred] > 0.0):
            raise ValueError("it takes actions that are not allowed")

    def _check_counts(self) -> None:
        told, outstanding = self.episodes_told, len(self._records)
        if told < 0 or self._asks < told + outstanding or outstanding > 1 or self.clipped < 0:
            raise ValueError("more was told than asked")


name_elsewhere(
    MDPLearner, "ask() returns a plan, plan.act(h, state) chooses an action, and "
    "tell(plan, states, actions, losses) learns", shows="; policy() says how likely each action is",
)  # fmt: skip


def unsolved(name: str, failed: int, solves: int) -> str:
    """Return what to say about solves that failed."""
    return (
        f"{name} could not solve {failed} of {solves} programs over occupancy "
        "measures to its tolerance and played the best policy that it could certify: say "
        "tolerance= to accept more, and see learner.certificate"
    )


def checked_layers(
    layers: Sequence[int],
    n_actions: SupportsIndex,
    allowed: Sequence[npt.ArrayLike] | None = None,
    ends: bool = False,
) -> Layers:
    """`Layers` from what the user gave, or a clear error."""
    sizes, n_actions = checked_sizes("layers", layers), checked_count("n_actions", n_actions)
    return Layers(sizes, n_actions, allowed, checked_flag("ends", ends))
