"""Check that a learner or an adversary of your own keeps its contract.

`check_learner`, `check_mdp_learner` and `check_adversary` play a class a few rounds in every way
that the package does, and raise an `AssertionError` that names the check, what was seen and the
remedy. `learner_checks`, `mdp_learner_checks` and `adversary_checks` return the same checks one by
one, for pytest (`check_storage` and `storage_checks` do so for where `Durable` stores a learner)::

    @pytest.mark.parametrize("check", learner_checks(Mine, rate=0.5), ids=lambda c: c.name)
    def test_mine(check):
        check()

A pass shows no regret bound: compare with a learner you trust in `unbounded.simulate`.

Examples
--------
>>> from unbounded import SCB
>>> from unbounded.testing import check_learner, learner_checks
>>> check_learner(SCB)
>>> [check.name for check in learner_checks(SCB)][:2]
['distribution', 'same_seed']
"""

from __future__ import annotations

import math
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

import numpy as np

from unbounded import settings as _settings
from unbounded.core.arrays import Vector
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.durable.rows import ASK, Context, Row, Snapshot, Storage
from unbounded.jit.interpreter import interpreted
from unbounded.learners.bandit import Learner
from unbounded.learners.mdp import MDPLearner
from unbounded.simulation.adversary import Adversary, MDPAdversary
from unbounded.simulation.bandit import simulate
from unbounded.simulation.mdp import simulate_mdp
from unbounded.validation import ArgumentTypeError, shown

__all__ = [
    "Check", "adversary_checks", "check_adversary", "check_learner", "check_mdp_learner",
    "check_storage", "learner_checks", "mdp_learner_checks", "storage_checks",
]  # fmt: skip

_LARGEST = sys.float_info.max
# Remedies.
_RANDOM = "Use no random numbers of your own and no state outside of the learner's attributes"
_SAVE = "Keep all that changes in attributes that JSON can hold, or define `state` and `restore`"
_UPDATE = "Change attributes in `update` only"
_CHECKED = "Do not override `tell`: it checks what it is given"
_UNITS = "Keep losses relative to a scale that they alone set, or claim scale_free=False"
_STATE = "Keep no state outside of the learner"
_KERNELS = (
    "In kernels, avoid x**k, fastmath and indices out of bounds, and write every entry of an array "
    "before you read it"
)
_OVERFLOW = (
    "Divide before you multiply and subtract the largest exponent; or declare a largest_loss in "
    "the class, as in largest_loss = 1e100"
)
_KEY = "Draw random numbers from the key only: `unbounded.extend.uniform_at`"
_FILL = "`fill` must write every entry of `out`"

_SNAPSHOT = Snapshot(0, b"", "")
_ROUNDS = 60  # or episodes, of each play
_SUM = 1e-9  # what probabilities may lack of 1
_MDP = LayeredMDP([0.75, 0.25], [[[[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]], [[1.0, 0.0, 0.0]] * 2]])


@dataclass(frozen=True)
class Check:
    """One check of one class; call it to run it.

    Parameters
    ----------
    name : str
    of : str
        What is checked.
    run : callable
    """

    name: str
    of: str
    run: Callable[[], None]

    def __call__(self) -> None:
        """Run the check; raise an `AssertionError` if it fails."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self.run()
            except _FailedError as failed:
                raise AssertionError(f"{self.of}, {self.name}: {failed}") from None
            except Exception as error:
                rule = " ".join((self.run.__doc__ or "").split())
                seen = f"{self.of}, {self.name}: it raised {error!r}. {rule}"
                raise AssertionError(seen.rstrip()) from error


class _FailedError(Exception):
    """A check failed; the message says what was seen, and the remedy."""


def _require(condition: Any, seen: str, remedy: str) -> None:
    if not condition:
        raise _FailedError(f"{seen}. {remedy}")


def _checks(of: str, cases: object) -> list[Check]:
    classes = reversed(type(cases).__mro__[:-1])
    methods = [name for cls in classes for name in vars(cls) if not name.startswith("_")]
    return [Check(name, of, getattr(cases, name)) for name in methods]


def _check_class(cls: Any, kind: type, others: str) -> None:
    if not (isinstance(cls, type) and issubclass(cls, kind)):
        must = f"must be a class below {kind.__name__}, not {shown(cls)}; {others}"
        raise ArgumentTypeError("cls", must)


def _run(checks: Sequence[Check]) -> None:
    for check in checks:
        check()


Play = list[tuple[Any, list[Vector]]]  # of each round: what was chosen, and from which tables


class _Learner:
    """The checks that all learners share; the public methods are checks, in this order."""

    _round = "round"
    _make: Callable[..., Any]  # of a seed; by those who know the sizes, like the others
    _losses: Callable[..., Vector]  # a row for each round
    _tables: Callable[[Any], list[Vector]]  # what a learner plays next
    _tell: Callable[[Any, Any, Vector, int], Any]  # learner, ticket, losses, t: what was chosen

    def __init__(self, cls: Any, settings: dict[str, Any]) -> None:
        self._cls, self._settings = cls, settings

    def distribution(self) -> None:
        """Probabilities are finite, at least 0, and add up to 1."""
        for learner, losses in self._plays():
            for _, tables in self._play(learner, losses):
                _require_distributions(tables, "it plays")

    def same_seed(self) -> None:
        """Equal seeds and losses give equal play, whatever else draws random numbers."""
        first = self._play(self._make(), self._losses())
        self._same(first, self._play(self._make(), self._losses()), "with one seed", _RANDOM)

    def looking(self) -> None:
        """What only looks changes nothing; nor does a choice that is forgotten."""
        looked = self._make()
        plain = self._play(self._make(), self._losses())
        play = self._play(looked, self._losses(), look=True)
        self._same(plain, play, "with and without looking", _UPDATE)
        before = self._tables(looked)
        looked.forget(looked.ask())
        same = all(map(np.array_equal, before, self._tables(looked)))
        _require(same, "a choice that was forgotten changed the distribution", _UPDATE)

    def save_and_load(self) -> None:
        """A learner that is saved and loaded in the middle plays on as if nothing had been."""
        losses = self._losses()
        whole = self._play(self._make(), losses)
        for at in (0, 1, _ROUNDS // 2):
            learner = self._make()
            before = self._play(learner, losses[:at])
            after = self._play(type(learner).load(learner.save()), losses[at:], first=at)
            saved = f"with and without a save after {self._round} {at}"
            self._same(whole, before[:-1] + after, saved, _SAVE)

    def wrong_feedback(self) -> None:
        """NaN and infinities are errors, and change nothing."""
        learner = self._make()
        self._play(learner, self._losses())
        ticket, before = learner.ask(), self._tables(learner)
        for wrong in (math.nan, math.inf, -math.inf):
            try:
                self._tell(learner, ticket, np.full_like(self._losses()[0], wrong), _ROUNDS)
            except (ValueError, TypeError):
                same = all(map(np.array_equal, before, self._tables(learner)))
            else:
                same = False
            _require(same, f"a loss of {wrong} was accepted, or changed the learner", _CHECKED)

    def scale_free(self) -> None:
        """Losses times 2^k give the same play, bit for bit, where that is claimed."""
        if not self._cls.spec.scale_free:
            return
        losses = self._losses()
        losses[:3] = 0.0
        plain = self._play(self._make(), losses)
        for k in (-900, -7, 1, 64, 900):
            scaled = self._play(self._make(), np.ldexp(losses, k))
            self._same(plain, scaled, f"of losses and of the same times 2^{k}", _UNITS)

    def compiled(self) -> None:
        """Compiled and interpreted play are the same, bit for bit."""
        if self._cls.spec.in_python:
            return
        plays = []
        for jit in ("never", "always"):
            with _jit(jit):
                plays.append(self._play(self._make(), self._losses()))
        self._same(plays[0], plays[1], "interpreted and compiled", _KERNELS)

    def _plays(self) -> list[tuple[Any, Vector]]:
        """Return learners, and losses for each of them."""
        return [(self._make(), self._losses())]

    def _play(self, learner: Any, losses: Vector, *, first: int = 0, look: bool = False) -> Play:
        """Play the rounds after the ``first`` ones; the last entry is what would be played next."""
        out: Play = []
        for t, row in enumerate(losses, start=first):
            if look:
                for one in (learner.save, learner.__repr__, lambda: self._tables(learner)):
                    one()
            tables = self._tables(learner)
            out.append((self._tell(learner, learner.ask(), row, t), tables))
        return [*out, (None, self._tables(learner))]

    def _same(self, one: Play, other: Play, of: str, remedy: str) -> None:
        for t, (a, b) in enumerate(zip(one, other, strict=True), start=1):
            if a[0] != b[0] or not all(map(np.array_equal, a[1], b[1])):
                seen = f"the plays of two learners {of} differ from {self._round} {t} on"
                raise _FailedError(f"{seen}. {remedy}")


# ------------------------------------------------------------------ bandits


def check_learner(cls: type[Learner], **settings: Any) -> None:
    """Check a bandit learner: run all of `learner_checks`.

    Parameters
    ----------
    cls : type
        A learner: below `PythonLearner`, or compiled.
    **settings
        Arguments of its constructor but for ``n_arms`` and ``seed``.

    Examples
    --------
    >>> import numpy as np
    >>> from unbounded import PythonLearner
    >>> class Forgetful(PythonLearner):  # its estimates are of the class, not of the learner
    ...     L = {}
    ...     def distribution(self):
    ...         w = np.exp(-np.array([self.L.get(k, 0.0) for k in range(self.n_arms)]))
    ...         return w / w.sum()
    ...     def update(self, arm, probability, loss):
    ...         self.L[arm] = 0.9 * self.L.get(arm, 0.0) + np.tanh(loss)
    >>> check_learner(Forgetful)
    Traceback (most recent call last):
    AssertionError: Forgetful, same_seed: the plays of two learners with one seed differ from \
round 1 on. Use no random numbers of your own and no state outside of the learner's attributes
    """
    _run(learner_checks(cls, **settings))


def learner_checks(cls: type[Learner], **settings: Any) -> list[Check]:
    """Return the checks of a bandit learner, to run one by one.

    Parameters
    ----------
    cls, **settings
        As for `check_learner`.
    """
    _check_class(cls, Learner, "learners of MDPs have check_mdp_learner")
    return _checks(cls.__name__, _Bandit(cls, settings))


class _Bandit(_Learner):
    """The checks of a bandit learner."""

    def probability(self) -> None:
        """The probability of a choice is that of its arm."""
        learner = self._make()
        for t, row in enumerate(self._losses()):
            q, choice = learner.probabilities(), learner.ask()
            seen = f"arm {choice.arm} has probability {choice.probability}, of {q.tolist()}"
            same = choice.probability == q[choice.arm] > 0.0
            _require(same, seen, "`act` must draw from what `distribution` returns")
            self._tell(learner, choice, row, t)

    def delayed_feedback(self) -> None:
        """Several choices may be outstanding, and are told in any order."""
        if not self._cls.spec.delayed:
            return
        learner = self._make()
        for rows in np.array_split(self._losses(), _ROUNDS // 4):
            choices = [learner.ask() for _ in rows]
            for choice, row in zip(reversed(choices), rows, strict=True):
                self._tell(learner, choice, row, 0)
            _require_distributions(self._tables(learner), "after delayed feedback it plays")
        seen = f"{learner.rounds} of {_ROUNDS} rounds are counted with delayed feedback"
        remedy = "`update` alone advances t; or declare delayed = False"
        _require(learner.rounds == _ROUNDS, seen, remedy)

    def any_finite_loss(self) -> None:
        """Losses of any size leave a distribution."""
        largest = min(self._cls.spec.largest_loss, _LARGEST)
        learner = self._make(n=4)
        for size in (0.0, 5e-324, 1e-310, 1e-200, 1.0, 1e100, largest, 1.0, 0.0):
            for row in np.outer([1, 1, -1, -1], [1.0, 0.5, -1.0, 0.0]) * min(size, largest):
                try:
                    self._tell(learner, learner.ask(), row, 0)
                except (ValueError, ArithmeticError) as error:
                    seen = f"told losses of {min(size, largest):g}, it raises: {error}"
                    raise _FailedError(f"{seen}. {_OVERFLOW}") from error
                seen = f"after losses of {size:g} it plays"
                _require_distributions(self._tables(learner), seen, _OVERFLOW)

    def translation_invariant(self) -> None:
        """A constant that is added to all losses changes nothing, where that is claimed."""
        if not self._cls.spec.translation_invariant:
            return
        losses = np.round(self._losses() * 2.0**20) / 2.0**20  # exact if 2^10 is added
        plain = np.array([q for _, [q] in self._play(self._make(), losses)])
        shifted = np.array([q for _, [q] in self._play(self._make(), losses + 1024.0)])
        seen = f"adding 1024 to all losses moves probabilities by {abs(plain - shifted).max():.1e}"
        _require(np.allclose(plain, shifted, atol=1e-6), seen, "Claim translation_invariant=False")

    def simulation(self) -> None:
        """`simulate` plays what ``ask`` and ``tell`` play, on any number of workers."""
        losses = self._losses()

        def row_of(t: int, last_arm: int, q: Vector, rng: Any) -> Vector:
            return losses[t - 1]

        once, more = (
            simulate(self._make(), row_of, _ROUNDS, 2, seed=3, workers=k, checkpoints=checkpoints)
            for k, checkpoints in ((1, [_ROUNDS]), (2, [5, _ROUNDS]))
        )
        same = np.array_equal(once.regret[:, -1], more.regret[:, -1])
        _require(same, "workers and checkpoints change the regret", _STATE)
        arms = [arm for arm, _ in self._play(self._make(seed=once.seed(1)), losses)][:-1]
        paid = math.fsum(losses[np.arange(_ROUNDS), arms])
        regret = paid - losses.sum(axis=0).min()
        seen = f"regret is {once.regret[1, -1]} simulated and {regret} by ask and tell"
        _require(np.isclose(once.regret[1, -1], regret, rtol=1e-9, atol=1e-9), seen, _STATE)

    def _plays(self) -> list[tuple[Any, Vector]]:
        return [(self._make(n=n), self._losses(n)) for n in (1, 2, 5, 70)]

    def _make(self, seed: Any = 0, n: int = 5) -> Any:
        return self._cls(n, **self._settings, seed=seed)

    def _losses(self, n: int = 5) -> Vector:
        """Return losses of both signs that grow, with one better arm."""
        losses = np.random.default_rng(7).normal(size=(_ROUNDS, n))
        losses[:, n // 3] -= 0.7
        losses[_ROUNDS // 3 :] *= 3.7
        return losses

    def _tables(self, learner: Any) -> list[Vector]:
        return [learner.probabilities()]

    def _tell(self, learner: Any, ticket: Any, row: Vector, t: int) -> int:
        if self._cls.spec.feedback == "full":
            learner.tell(ticket, losses=row)
        else:
            learner.tell(ticket, float(row[ticket.arm]))
        return int(ticket.arm)


# ------------------------------------------------------------------ MDPs


def check_mdp_learner(
    cls: type[MDPLearner], mdp: LayeredMDP | None = None, **settings: Any
) -> None:
    """Check a learner for MDPs: run all of `mdp_learner_checks`.

    Parameters
    ----------
    cls : type
        A learner: below `PythonMDPLearner`, or compiled.
    mdp : LayeredMDP, optional
        Where it plays; by default two layers of two and three states, with two actions.
    **settings
        Arguments of its constructor but for ``layers``, ``n_actions`` and ``seed``.
        ``episodes`` and ``transitions`` may be left out.

    Examples
    --------
    >>> from unbounded import CostSCBRL
    >>> check_mdp_learner(CostSCBRL)
    """
    _run(mdp_learner_checks(cls, mdp, **settings))


def mdp_learner_checks(
    cls: type[MDPLearner], mdp: LayeredMDP | None = None, **settings: Any
) -> list[Check]:
    """Return the checks of a learner for MDPs, to run one by one.

    Parameters
    ----------
    cls, mdp, **settings
        As for `check_mdp_learner`.
    """
    _check_class(cls, MDPLearner, "learners of bandits have check_learner")
    given, parameters = dict(settings), signature(cls).parameters
    for name, value in (("episodes", _ROUNDS), ("transitions", (mdp or _MDP).P)):
        if name in parameters and parameters[name].default is Parameter.empty:
            given.setdefault(name, value)
    return _checks(cls.__name__, _MDPLearner(cls, given, mdp or _MDP))


class _MDPLearner(_Learner):
    """The checks of a learner for MDPs."""

    _round = "episode"

    def __init__(self, cls: Any, settings: dict[str, Any], mdp: LayeredMDP) -> None:
        super().__init__(cls, settings)
        self._mdp = mdp

    def simulation(self) -> None:
        """`simulate_mdp` plays the same on any number of workers."""
        layers, losses = self._mdp.layers, self._losses()

        def tables_of(t: int, last: Any, q: Any, rng: Any) -> list[Vector]:
            return list(layers.unpack_pairs(losses[t - 1]))

        once, more = (
            simulate_mdp(
                self._make(), self._mdp, tables_of, _ROUNDS, 2, seed=3, workers=workers,
                checkpoints=checkpoints,
            )
            for workers, checkpoints in ((1, [_ROUNDS]), (2, [5, _ROUNDS]))
        )  # fmt: skip
        same = np.array_equal(once.regret[:, -1], more.regret[:, -1])
        _require(same, "workers and checkpoints change the regret", _STATE)

    def _make(self, seed: Any = 0) -> Any:
        layers = self._mdp.layers
        return self._cls(layers.sizes, layers.n_actions, **self._settings, seed=seed)

    def _losses(self) -> Vector:
        """Return losses of every pair: rewards between 0 and 1/H, which all learners take."""
        shape = _ROUNDS, self._mdp.layers.n_pairs
        return -np.random.default_rng(7).random(shape) / self._mdp.layers.horizon

    def _tables(self, learner: Any) -> list[Vector]:
        policy = learner.policy()  # the package's, or what a user's method returns
        return [np.array(table) for table in getattr(policy, "tables", policy)]

    def _tell(self, learner: Any, ticket: Any, row: Vector, t: int) -> list[int]:
        """Walk through episode ``t``, and tell its losses."""
        rng, p = np.random.default_rng([8, t]), self._mdp.initial
        tables = self._mdp.layers.unpack_pairs(row)
        states: list[int] = []
        actions: list[int] = []
        for h in range(self._mdp.layers.horizon):
            if h > 0:
                p = self._mdp.transitions[h - 1][states[-1], actions[-1]]
            states.append(int(rng.choice(p.size, p=p)))
            actions.append(ticket.act(h, states[-1]))
        visited = zip(tables, states, actions, strict=True)
        paid = [float(table[s, a]) for table, s, a in visited]
        full = self._cls.spec.feedback == "full"
        learner.tell(ticket, states, actions, tables if full else paid)
        return actions


# ------------------------------------------------------------------ adversaries


def check_adversary(adversary: Adversary | MDPAdversary) -> None:
    """Check an adversary of bandits or of MDPs: run all of `adversary_checks`.

    Parameters
    ----------
    adversary : Adversary or MDPAdversary

    Examples
    --------
    >>> from unbounded.adversaries import StochasticGap
    >>> check_adversary(StochasticGap())
    """
    _run(adversary_checks(adversary))


def adversary_checks(adversary: Adversary | MDPAdversary) -> list[Check]:
    """Return the checks of an adversary, to run one by one.

    Parameters
    ----------
    adversary
        As for `check_adversary`.
    """
    cases = _MDPLosses if isinstance(adversary, MDPAdversary) else _Losses
    return _checks(type(adversary).__name__, cases(adversary))


class _Losses:
    """The checks of an adversary of bandits."""

    def __init__(self, adversary: Any) -> None:
        self._adversary = adversary

    def finite(self) -> None:
        """Every loss of every round is written, and finite."""
        for n in (1, 2, 7):
            rows = self._rows(n)
            seen = f"losses are {rows[~np.isfinite(rows)][:1]} with {n} arms"
            _require(np.isfinite(rows).all(), seen, _FILL)

    def same_key(self) -> None:
        """Equal keys give equal losses."""
        same = np.array_equal(self._rows(5), self._rows(5))
        _require(same, "losses of one key differ from one run to the next", _KEY)

    def looks(self) -> None:
        """One that says it looks at nothing does not depend on the learner."""
        if self._adversary.looks:
            return
        same = np.array_equal(self._rows(5), self._rows(5, other=True))
        seen = "losses depend on q or last_arm"
        _require(same, seen, "Declare looks = True: many rounds are filled at once otherwise")

    def entry(self) -> None:
        """The loss of one arm is what ``fill`` writes."""
        kernel = type(self._adversary).entry
        if kernel is None:
            return
        rows = self._rows(5, units=False)
        (params, state), loss_of = self._begin(5), interpreted(kernel)
        for t, row in enumerate(rows, start=1):
            for k, loss in enumerate(row):
                one = loss_of(params, state, t, k)
                seen = f"entry gives {one} and fill {loss} for arm {k} in round {t}"
                _require(one == loss, seen, "`entry` must return what `fill` writes")

    def expected(self) -> None:
        """Expected losses are written and finite, their scale is above 0, and nothing changes."""
        kernel = type(self._adversary).expected
        if kernel is None:
            return
        (params, state), q = self._begin(5), np.full(5, 0.2)
        fill, expected = interpreted(type(self._adversary).fill), interpreted(kernel)
        for t in range(1, _ROUNDS + 1):
            means = np.full(5, np.nan)
            fill(params, state, t, -1 if t == 1 else t % 5, q, np.empty(5))
            before = state.copy()
            scale = expected(params, state, t, means)
            seen = f"expected writes {means} and returns {scale} in round {t}"
            legal = np.isfinite(means).all() and scale is not None and scale > 0.0
            _require(legal, seen, "It must write every entry, and return the scale, above 0")
            same = np.array_equal(before, state)
            _require(same, f"expected changes the state in round {t}", "Leave that to `fill`")

    def _begin(self, n: int) -> tuple[Vector, Vector]:
        params, state = self._adversary.begin(n, _ROUNDS, 12345)
        return params[2:], state

    def _rows(self, n: int, *, other: bool = False, units: bool = True) -> Vector:
        (params, state), fill = self._begin(n), interpreted(type(self._adversary).fill)
        rows, last = np.full((_ROUNDS, n), np.nan), -1
        q = np.full(n, 1.0 / n) if not other else np.eye(n)[0]
        for t, row in enumerate(rows, start=1):
            fill(params, state, t, last, q, row)
            last = (t if other else 2 * t) % n
        scale, shift = (self._adversary.scale, self._adversary.shift) if units else (1.0, 0.0)
        return scale * rows + shift


class _MDPLosses:
    """The checks of an adversary of MDPs."""

    def __init__(self, adversary: Any) -> None:
        self._adversary = adversary

    def finite(self) -> None:
        """Every loss of every episode is written, and finite."""
        rows = self._rows()
        seen = f"losses are {rows[~np.isfinite(rows)][:1]}"
        _require(np.isfinite(rows).all(), seen, _FILL)
        remedy = "`fill` must write out[0] = 0, of the pair before the first layer"
        _require(np.all(rows[:, 0] == 0.0), f"out[0] is {rows[0, 0]}", remedy)

    def same_key(self) -> None:
        """Equal keys give equal losses."""
        same = np.array_equal(self._rows(), self._rows())
        _require(same, "losses of one key differ from one run to the next", _KEY)

    def _rows(self) -> Vector:
        params = self._adversary.begin(_MDP, _ROUNDS, 12345)
        fill = interpreted(type(self._adversary).fill)
        rows = np.full((_ROUNDS, _MDP.layers.n_pairs), np.nan)
        q = np.full(_MDP.layers.n_pairs, 0.25)
        for t, row in enumerate(rows, start=1):
            fill(params, t, q, _MDP.layers.table, row)
        return rows


def check_storage(opened: Callable[[], Storage]) -> None:
    """Check that a storage keeps the guarantees of `unbounded.durable.rows.Storage`.

    Parameters
    ----------
    opened : callable
        Opens a connection to one place, which is empty at first: the same at each call.

    Examples
    --------
    >>> import tempfile
    >>> from unbounded.durable.store import Store
    >>> from unbounded.testing import check_storage
    >>> directory = tempfile.TemporaryDirectory()
    >>> path = f"{directory.name}/arms.db"
    >>> check_storage(lambda: Store(path, synchronous="normal", timeout=5.0, read_only=False))
    >>> directory.cleanup()
    """
    _run(storage_checks(opened))


def storage_checks(opened: Callable[[], Storage]) -> list[Check]:
    """Return the checks of `check_storage` one by one; they go on where the last one ended."""
    return _checks("a storage", _Storage(opened))


class _Storage:
    """Checks of a storage."""

    def __init__(self, opened: Callable[[], Storage]) -> None:
        self._opened, self._at = opened, 10**15

    def _begun(self) -> Storage:
        storage = self._opened()
        storage.prepare(lambda: _SNAPSHOT)
        return storage

    def _append(self, storage: Storage, **fields: Any) -> Row:
        """Append a row after the last one, in a write."""
        last = storage.last
        before = storage.rows(last, 1)[0].digest if last > 0 else b""
        self._at += 1
        row = Row(last + 1, fields.pop("kind", ASK), None, self._at, **fields)
        row = row._replace(digest=row.digest_after(before))
        storage.append(row)
        return row

    def beginning(self) -> None:
        """Check that nothing is there at first, also after a creation that has failed."""

        def fail(target: Storage) -> None:
            self._append(target)
            raise ZeroDivisionError

        for create in (False, True):
            with suppress(ZeroDivisionError):
                if create:
                    self._opened().create(_SNAPSHOT, fail)
            found = True
            try:
                self._opened().prepare(None)
            except Exception:
                found = False
            _require(not found, "a learner that nobody made", "Create all of it, or nothing")

    def values(self) -> None:
        """Check that rows read as they were written."""
        storage, other = self._begun(), self._begun()
        texts, numbers = (
            ["a b", "\u2603 \"'%s\\;--", "x" * 500],
            [5e-324, -_LARGEST, 0.1, -math.inf],
        )

        def write() -> list[Row]:
            pairs = zip([*texts, None], numbers, strict=True)
            return [self._append(storage, key=k, loss=x, payload=b"\0\xff") for k, x in pairs]

        written = storage.write(write)
        found = other.read(lambda: other.rows(written[0].n))
        _require(found == written, f"{found} for {written}", "Store every bit of a row")
        keys = other.read(lambda: [other.number_of(text) for text in texts])
        right = [row.n for row in written[:3]]
        _require(keys == right, f"rows {keys} for {right}", "Find rows by their keys")
        since = other.read(lambda: other.first_since(written[1].at))
        _require(since == written[1].n, f"row {since} is the first since", "Find rows by time")
        some = other.read(lambda: other.rows(written[1].n, 2))
        _require(some == written[1:3], f"{some}", "Return so many rows, in their order")

    def clock(self) -> None:
        """Check that all connections have one clock, of microseconds since 1970."""
        times = [storage.now() for storage in (self._begun(), self._begun()) for _ in range(2)]
        late = max(times) - min(times)
        _require(times[0] > 10**15, f"{times[0]} microseconds since 1970", "Count microseconds")
        _require(late < 10**8, f"clocks {late} us apart", "Give all processes one clock")

    def atomicity(self) -> None:
        """Check that a write which fails leaves nothing."""
        storage, other = self._begun(), self._begun()
        before = storage.read(lambda: storage.last)

        def fail() -> None:
            self._append(storage, key="lost")
            raise ZeroDivisionError

        with suppress(ZeroDivisionError):
            storage.write(fail)
        after = other.read(lambda: (other.last, other.number_of("lost")))
        _require(after == (before, None), f"{after} after {before}", "Undo a write that fails")
        storage.write(lambda: self._append(storage))

    def durability(self) -> None:
        """Check that what was written survives the end of the process."""
        if not hasattr(os, "fork"):
            return

        def write() -> Storage:
            storage = self._begun()
            storage.write(lambda: self._append(storage, key="survives"))
            return storage

        _in_child(write)
        storage = self._begun()
        found = storage.read(lambda: storage.number_of("survives"))
        _require(found is not None, "a row is lost", "Store it before `write` returns")

    def ownership(self) -> None:
        """Check that a child of a fork leaves the connection to the parent."""
        if not hasattr(os, "fork"):
            return
        storage, other = self._begun(), self._begun()

        def write() -> Row:
            row = self._append(storage)
            _in_child(storage.inherit)
            return row

        row = storage.write(write)
        found = other.read(lambda: other.rows(row.n, 1))
        _require(found == [row], f"{found}", "Let `inherit` send nothing and close nothing")

    def keys(self) -> None:
        """Check that no key is given twice."""
        storage = self._begun()
        storage.write(lambda: self._append(storage, key="once"))
        try:
            storage.write(lambda: self._append(storage, key="once"))
        except Exception:
            return
        _require(False, "the same key was stored twice", "Let the storage reject it")

    def isolation(self) -> None:
        """Check that writes take turns, and that a read sees one state."""
        storages = [self._begun() for _ in range(4)]
        reader, writer = storages[:2]

        def look() -> tuple[int, int]:
            before = reader.last
            writer.write(lambda: self._append(writer))
            return before, reader.last

        before, after = reader.read(look)
        _require(before == after, f"rows {before}, then {after}", "Let a read see one state")
        first = reader.read(lambda: reader.last)
        failed: list[BaseException] = []

        def work(storage: Storage) -> None:
            try:
                for _ in range(25):
                    storage.write(lambda: self._append(storage))
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(storage,)) for storage in storages[1:]]

        def while_others_try() -> None:
            for thread in threads:
                if thread.ident is None:  # a storage may do its work again
                    thread.start()
            threads[0].join(0.2)

        reader.write(while_others_try)
        for thread in threads:
            thread.join()
        _require(not failed, f"{failed}", "Let a write wait for the others")
        rows = reader.read(lambda: reader.rows(first + 1))
        numbers = [row.n for row in rows]
        right = list(range(first + 1, first + 76))
        _require(numbers == right, f"rows {numbers}", "Let nobody else write during a write")

    def snapshots(self) -> None:
        """Check that a snapshot takes the place of the one before, and rows can be removed."""
        storage, other = self._begun(), self._begun()
        row = storage.write(lambda: self._append(storage))
        kept = Snapshot(row.n, row.digest, "after")
        storage.write(lambda: storage.keep("latest", kept))
        storage.write(lambda: self._append(storage))
        found = other.read(lambda: (other.snapshot("latest"), other.age_of("latest")))
        _require(found == (kept, 1), f"{found}", "Return the snapshot that was kept last")
        storage.write(lambda: storage.remove_before(row.n))
        first = other.read(lambda: (other.rows(1)[0].n, other.snapshot("first").n, other.last))
        right = row.n, row.n - 1, row.n + 1
        _require(first == right, f"{first} for {right}", "Keep what comes after removed rows")

    def contexts(self) -> None:
        """Check that contexts are stored with their rows, and can be deleted."""
        storage, other = self._begun(), self._begun()

        def write() -> list[Context]:
            rows = [self._append(storage) for _ in range(3)]
            found = [Context.of(row.n, '{"who": 1}') for row in rows]
            for one in found:
                storage.attach(one)
            return found

        written = storage.write(write)
        first, last = written[0].n, written[2].n
        found = other.read(lambda: other.contexts(first, last))
        _require(found == written, f"{found} for {written}", "Store every bit of a context")
        gone = storage.write(lambda: storage.detach([first, last + 1]))
        found = other.read(lambda: other.contexts(first, last))
        _require((gone, found) == (1, written[1:]), f"{gone} gone", "Delete those that are named")
        storage.write(lambda: storage.remove_before(last))
        found = other.read(lambda: other.contexts(1, last))
        _require(found == written[2:], f"{found} are left", "Delete them with their rows")

    def creation(self) -> None:
        """Check that a learner is not made where there is one."""
        storage = self._begun()
        before = storage.read(lambda: storage.last)
        try:
            self._opened().create(_SNAPSHOT, lambda target: self._append(target))
        except Exception:
            after = storage.read(lambda: storage.last)
        else:
            after = -1
        _require(before == after, f"{after} rows for {before}", "Leave it, and raise an error")

    def closing(self) -> None:
        """Check that a closed connection is opened again."""
        storage = self._begun()
        before = storage.read(lambda: storage.last)
        storage.close()
        after = storage.read(lambda: storage.last)
        _require(before == after, f"{after} rows for {before}", "Open it again when it is used")
        storage.close()
        storage.close()


def _in_child(work: Callable[[], object]) -> None:
    """Let a child do this, and wait until it has ended without any cleaning up."""
    child, kept = os.fork(), []
    if child == 0:
        try:
            kept.append(work())
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def _require_distributions(
    tables: Sequence[Vector],
    what: str,
    remedy: str = "Return probabilities that are finite and add up to 1",
) -> None:
    for table in tables:
        sums = table.sum(axis=-1)
        legal = np.all(np.isfinite(table)) and np.all(table >= 0.0)
        legal = legal and np.all(np.abs(sums - 1.0) <= _SUM)
        _require(legal, f"{what} {table.tolist()}, which is no distribution", remedy)


@contextmanager
def _jit(how: str) -> Iterator[None]:
    before, _settings.jit = _settings.jit, how
    try:
        yield
    finally:
        _settings.jit = before
