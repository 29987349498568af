"""Full-speed simulation: one compiled loop over the steps of a learner and of an adversary."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from unbounded.core.scaled import LARGEST
from unbounded.jit.kernel import counted
from unbounded.jit.schedule import Pace
from unbounded.learners.arguments import in_our_words
from unbounded.learners.bandit import Learner
from unbounded.learners.seeds import Seed, root_of
from unbounded.results import BANDITS, Played, Shown, name_of, over
from unbounded.simulation import bandit_loops, sleeping
from unbounded.simulation.adversary import (
    Adversary,
    adversary_errors,
    check_adversary,
    check_learner,
)
from unbounded.simulation.bandit_loops import PythonAdversary
from unbounded.simulation.dynamic import ROWS, checked_switches
from unbounded.simulation.sleeping import PythonAvailability
from unbounded.validation import (
    ArgumentValueError,
    checked_count,
    checked_flag,
    recorded_rounds,
    warn,
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Simulation(Played):
    """What happened in each replicate at each checkpoint.

    Arrays have shape (replicates, checkpoints) and refer to rounds 1 .. ``checkpoints[j]``.

    Attributes
    ----------
    learner, adversary : str
        Their names.
    checkpoints : array of int, shape (checkpoints,)
    low, high : array
        The smallest and the largest loss of any arm so far.
    clipped : array
        How many losses the learner has clipped.
    threshold : array
        The learner's ``scale``: its clipping threshold or range, at most the largest float.
    switches : int or None
        How many switches the sequence of `switching_regret` may have, if it was followed.

    Examples
    --------
    >>> from unbounded import Uniform, simulate
    >>> from unbounded.adversaries import StochasticGap
    >>> result = simulate(Uniform(4), StochasticGap(gap=0.4), 1000, 50, seed=0, checkpoints=1)
    >>> result.regret.shape, int(result.checkpoints[0])
    ((50, 1), 1000)
    >>> bool(280 < result.pseudo_regret.mean() < 320)  # 1000 x 0.4 x 3/4
    True
    """

    shown: ClassVar[Shown] = BANDITS
    length: ClassVar[str] = "rounds"

    threshold: NDArray[np.float64]
    switches: int | None = None
    # With available=: sums as `sleeping` has them, in the unit of the ledger.
    _action: NDArray[np.float64] | None = None
    _gap: NDArray[np.float64] | None = None
    # With dynamic=True: sums as `dynamic.recorded` has them.
    _smallest: NDArray[np.float64] | None = None
    _sequence: NDArray[np.float64] | None = None
    _gaps: NDArray[np.float64] | None = None
    _best_probability: NDArray[np.float64] | None = None
    _changes: NDArray[np.float64] | None = None

    @property
    def largest_loss(self) -> NDArray[np.float64]:
        """The largest absolute loss of any arm so far, l_inf."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    @property
    def loss_range(self) -> NDArray[np.float64]:
        """The largest minus the smallest loss of any arm so far, at most the largest float."""
        with np.errstate(over="ignore"):
            return np.minimum(self.high - self.low, LARGEST)

    def relative_regret(
        self, to: Literal["scale", "range"] = "scale", *, pseudo: bool = False
    ) -> NDArray[np.float64]:
        """Return regret divided by ``largest_loss`` (to="scale") or ``loss_range`` (to="range").

        Finite at every scale, even where the regret itself exceeds float64.
        """
        if to == "scale":
            size = self.largest_loss * self._unit
        elif to == "range":
            size = self.high * self._unit - self.low * self._unit
        else:
            raise ValueError(f"to must be 'scale' or 'range', got {to!r}")
        return self._regret_over(size, pseudo)

    @property
    def dynamic_regret(self) -> NDArray[np.float64]:
        """Realized regret against the best arm of each round; needs ``dynamic=True``."""
        smallest = _followed_by("dynamic=True", self._smallest)
        with np.errstate(over="ignore"):
            return (self._paid - smallest) / self._unit

    @property
    def switching_regret(self) -> NDArray[np.float64]:
        """Realized regret against the best sequence with few switches; needs ``switches=``."""
        sequence = _followed_by("switches=", self._sequence)
        with np.errstate(over="ignore"):
            return (self._paid - sequence) / self._unit

    @property
    def dynamic_pseudo_regret(self) -> NDArray[np.float64]:
        """Expected regret against the arm with the smallest expected loss in each round.

        The sum of (<q_t, m_t> - min m_t) / s_t, where m_t are the expected losses and s_t is the
        scale of round t; needs ``dynamic=True`` and an adversary that declares them.
        """
        return _followed_by("dynamic=True and an adversary with `expected`", self._gaps)

    @property
    def action_regret(self) -> NDArray[np.float64]:
        """The largest regret of any arm over the rounds in which it was there.

        The maximum over i of the sum of (loss paid - loss of i) over the rounds with i available;
        needs ``available=``.
        """
        action = _followed_by("available=", self._action)
        with np.errstate(over="ignore"):
            return action / self._unit

    @property
    def available_regret(self) -> NDArray[np.float64]:
        """Regret against the best available arm of each round; needs ``available=``.

        In expected losses of the arms, if the adversary declares them, else in losses.
        """
        gap = _followed_by("available=", self._gap)
        with np.errstate(over="ignore"):
            return gap / self._unit

    @property
    def best_changes(self) -> NDArray[np.float64]:
        """Changes of the arm with the smallest expected loss so far; needs the same."""
        return _followed_by("dynamic=True and an adversary with `expected`", self._changes)

    @property
    def best_probability(self) -> NDArray[np.float64]:
        """The probability of the best arm, in the mean over the rounds since the last checkpoint.

        The best arm of a round has the smallest expected loss, or the smallest loss if the
        adversary does not declare expected losses; of equal ones all count. Needs ``dynamic=True``.
        """
        total = _followed_by("dynamic=True", self._best_probability)
        rounds = np.diff(self.checkpoints, prepend=0)
        return np.diff(total, axis=1, prepend=0.0) / rounds

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns of frames, each of shape (replicates, checkpoints)."""
        columns: dict[str, NDArray[Any]] = {
            "regret": self.regret,
            "relative_regret": self.relative_regret("range"),
            "low": self.low,
            "high": self.high,
            "clipped": self.clipped,
            "threshold": self.threshold,
        }
        if not np.isnan(self._expected).all():  # it was followed
            columns["pseudo_regret"] = self.pseudo_regret
            columns["relative_pseudo_regret"] = self.relative_regret("range", pseudo=True)
        width = self.high * self._unit - self.low * self._unit
        if self._action is not None:
            columns["action_regret"] = self.action_regret
            columns["available_regret"] = self.available_regret
        if self._smallest is not None:
            columns["dynamic_regret"] = self.dynamic_regret
            columns["relative_dynamic_regret"] = over(self._paid - self._smallest, width)
            columns["best_probability"] = self.best_probability
        if self._gaps is not None:
            columns["dynamic_pseudo_regret"] = self.dynamic_pseudo_regret
            columns["best_changes"] = self.best_changes
        if self._sequence is not None:
            columns["switching_regret"] = self.switching_regret
            columns["relative_switching_regret"] = over(self._paid - self._sequence, width)
        return columns


def _followed_by(wanted: str, sums: NDArray[np.float64] | None) -> NDArray[np.float64]:
    if sums is None:
        raise ValueError(f"this was not followed: it needs simulate(..., {wanted})")
    return sums


@in_our_words
def simulate(
    learner: Learner,
    adversary: Adversary | PythonAdversary,
    rounds: int,
    replicates: int = 1,
    seed: Seed = None,
    *,
    first_replicate: int = 0,
    checkpoints: Sequence[int] | int = 60,
    pseudo_regret: bool = True,
    comparators: Sequence[int] | None = None,
    dynamic: bool = False,
    switches: int | None = None,
    available: Adversary | PythonAvailability | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Simulation:
    """Play a learner against an adversary.

    Parameters
    ----------
    learner : Learner
        Of the package, or your own (`PythonLearner`). Only its settings are used: every replicate
        starts afresh, and ``learner`` is not changed.
    adversary : Adversary or callable
        A compiled adversary, or ``losses = adversary(t, last_arm, q, rng)`` in Python.
    rounds, replicates : int
        Rounds per replicate; number of independent replicates.
    seed : int, SeedSequence or Generator, optional
        Seeds losses and choices. Unless the adversary looks at the learner, losses depend on the
        seed only, so equal seeds give paired comparisons.
    first_replicate : int
        The number of the first replicate: replicates 3 and 4 of a run of five are equal to
        those of a run with ``first_replicate=3, replicates=2``.
    checkpoints : int or sequence of int
        At which rounds to record; an int means that many, log-spaced.
    pseudo_regret : bool
        Whether to follow pseudo-regret, which costs a pass over the arms per round.
    comparators : sequence of int, optional
        Follow only these arms beside the one that is played, so that a round costs nothing for
        the others: for many arms, and adversaries that can tell the loss of one arm. Regret is
        then against the best *of these* arms, ``low`` and ``high`` are over the losses of these
        arms and of those played, and there is no pseudo-regret (nan). The play is the same.
    dynamic : bool
        Whether to follow dynamic regret, against the best arm of each round, and the probability
        of that arm. Costs a few passes over the arms per round; the play is the same.
    switches : int, optional
        Follow also the regret against the best sequence of arms with at most so many switches, by
        dynamic programming: rounds x arms x (switches + 1) steps, at most 10^10. Implies
        ``dynamic``.
    available : Adversary or callable, optional
        Which arms are available in each round: an adversary that writes 1 for those that are and 0
        for the others, as `Outage`, or a function ``available(t, last_arm, p, rng)`` that returns
        what `Learner.ask` takes. The losses are then those of ``adversary`` for all arms, ``q`` is
        the distribution over those that are available, and `Simulation` has ``action_regret`` and
        ``available_regret``. Regret itself is against arms that may have slept.
    workers : int, optional
        Threads; all cores by default, and one for learners or adversaries in Python. Results do
        not depend on it.
    progress : callable, optional
        ``progress(done, replicates)`` after each replicate.

    Returns
    -------
    Simulation

    Examples
    --------
    >>> from unbounded import SCB, simulate
    >>> from unbounded.adversaries import StochasticGap
    >>> billions = StochasticGap(scale=1e9)
    >>> result = simulate(SCB(n_arms=5), billions, rounds=2000, replicates=4, seed=1)
    >>> bool((result.regret[:, -1] < 5e11).all())
    True
    """
    check_learner(learner, Learner, "SCB(n_arms=3)")
    rounds = checked_count("rounds", rounds)
    replicates = checked_count("replicates", replicates)
    first_replicate = checked_count("first_replicate", first_replicate, least=0)
    cores = (os.cpu_count() or 1) if workers is None else checked_count("workers", workers)
    points = recorded_rounds(checkpoints, rounds)
    root = root_of(seed)
    check_adversary(adversary, Adversary, "Replay(losses)", "t", "last_arm", "q", "rng")
    followed: NDArray[np.int64] | None = None
    if comparators is not None:
        followed = _followed(comparators, learner, adversary)
        pseudo_regret = False
    watched = checked_flag("dynamic", dynamic) or switches is not None
    sequence = checked_switches(switches, rounds, learner.n_arms) if watched else None
    if watched and comparators is not None:
        raise ValueError("dynamic regret needs the losses of all arms: leave comparators out")
    if learner.spec.advised:
        raise TypeError(f"{learner.spec.name} needs advice in every round: use simulate_advice")
    if learner.spec.elapsed is not None:
        raise TypeError("no time passes in a simulation: give the half_life in rounds")
    total = rounds * replicates
    play: Any
    compiled = isinstance(adversary, Adversary) and not learner.spec.in_python
    given: tuple[Any, ...] = (learner, adversary)
    if available is None:
        parts = bandit_loops.parts_of(
            learner, adversary, on_demand=followed is not None, watched=watched
        )
        play = bandit_loops.play_compiled if compiled else bandit_loops.play_python
        rows = 8 + ROWS * watched
    else:
        if watched or followed is not None:
            raise ArgumentValueError(
                "available", "has regrets of its own: leave comparators, dynamic and switches out"
            )
        sleeping.check(learner, available)
        given = (*given, available)
        parts = sleeping.parts_of(*given)
        compiled = compiled and isinstance(available, Adversary)
        play = sleeping.play_compiled if compiled else sleeping.play_python
        rows = 8 + sleeping.ROWS
    pool_size = min(cores, replicates) if compiled else 1
    # What users wrote may count on what compiled code does, as on integers that wrap around.
    first = isinstance(adversary, Adversary) and (learner.spec.counts or counted(adversary.fill))
    pace = Pace(parts, total, first=first, numbers=learner._buffer.size)
    heard: list[tuple[str, type[Warning]]] = []
    common = bandit_loops.Play(rounds, points, root, pseudo_regret, followed, sequence, heard)
    table = np.empty((rows, replicates, points.size))
    play = partial(adversary_errors()(play), *given)
    with ThreadPoolExecutor(pool_size) as pool:
        tasks = [
            pool.submit(play, common, r, pace, row)
            for r, row in enumerate(table.transpose(1, 0, 2), first_replicate)
        ]
        try:
            for done, task in enumerate(as_completed(tasks), 1):
                task.result()
                if progress is not None:
                    progress(done, replicates)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    for text, category in heard[:1]:  # every replicate says the same
        warn(text, category)
    played, best, expected, unit, low, high, clipped, threshold = table[:8]
    more = {"_action": table[8], "_gap": table[9]} if available is not None else {}
    more |= _dynamic(table[8:], switches, adversary) if watched else {}
    if not pseudo_regret:
        expected = np.full_like(expected, np.nan)
    return Simulation(
        learner=learner.spec.name, adversary=name_of(adversary),
        checkpoints=points, low=low, high=high, clipped=clipped.astype(np.int64),
        threshold=threshold, _paid=played, _best=best, _expected=expected, _unit=unit,
        _root=root, _first=first_replicate, **more,
    )  # fmt: skip


def _dynamic(rows: Any, switches: int | None, adversary: Any) -> dict[str, Any]:
    """Return the fields of dynamic regret."""
    names = ["_smallest", "_sequence", "_gaps", "_best_probability", "_changes"]
    found: dict[str, Any] = dict(zip(names, rows, strict=True))
    if switches is None:
        del found["_sequence"]
    if getattr(adversary, "expected", None) is None:
        del found["_gaps"], found["_changes"]
    return {"switches": switches, **found}


def _followed(
    comparators: Sequence[int], learner: Learner, adversary: Adversary | PythonAdversary
) -> NDArray[np.int64]:
    followed = np.array(comparators)
    if followed.ndim != 1 or followed.size == 0 or followed.dtype.kind not in "iu":
        raise ValueError(f"comparators must be arms to compare with, got {comparators!r}")
    if followed.min() < 0 or followed.max() >= learner.n_arms:
        raise ValueError(f"comparators must lie in 0 .. {learner.n_arms - 1}, got {comparators!r}")
    if learner.spec.feedback == "full":
        raise ValueError(
            f"{learner.spec.name} learns from the losses of all arms: leave comparators out"
        )
    if not isinstance(adversary, Adversary):
        raise TypeError("comparators need a compiled adversary with a kernel `entry`")
    if learner.spec.in_python:
        raise TypeError(
            f"{learner.spec.name} is in Python, and its distribution() looks at all arms in any "
            "case: leave comparators out"
        )
    return followed.astype(np.int64)
