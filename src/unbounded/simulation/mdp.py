"""Full-speed simulation of MDP learners, with exact pseudo-regret by occupancy measures.

Pseudo-regret after t episodes is ``sum <q_tau, l_tau> - min_pi <q^pi, sum l_tau>`` with q_tau the
true occupancy measure of what the learner plays in episode tau given its past, its explorers
included. Regret has the losses that were paid instead of <q_tau, l_tau>.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.core.occupancy.solver import SolverWarning
from unbounded.jit.kernel import counted
from unbounded.jit.schedule import Pace
from unbounded.learners.arguments import check_mdp, in_our_words
from unbounded.learners.mdp import MDPLearner, unsolved
from unbounded.learners.seeds import Seed, root_of
from unbounded.results import MDPS, Played, Shown, name_of
from unbounded.simulation.adversary import (
    MDPAdversary,
    PythonMDPAdversary,
    adversary_errors,
    check_adversary,
    check_learner,
)
from unbounded.simulation.mdp_loops import NOT_PLAYED, End, Play, parts_of, play_replicate
from unbounded.validation import checked_count, recorded_rounds, warn


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MDPSimulation(Played):
    """What happened in each replicate at each checkpoint; arrays (replicates, checkpoints).

    Attributes
    ----------
    learner, adversary : str
        Their names.
    checkpoints : array of int, shape (checkpoints,)
    low, high : array, shape (replicates, checkpoints, H)
        Extreme losses of each layer so far, of any pair that is allowed.
    clipped : array
        How many losses the learner has clipped.
    reach : array, shape (replicates,)
        Of a learner whose exploration is over: the smallest, over the states that can be reached,
        of the probability with which the policy found for a state reaches it, over the largest
        possible one. Exact; nan for other learners, and if a state has no policy of its own.
    explored, solves, fallbacks, unsolved, worst_gap : array, shape (replicates,)
        Episodes of exploration, and how well FTRL was solved.

    Examples
    --------
    >>> import numpy as np
    >>> from unbounded import UniformPolicy, simulate_mdp, worlds
    >>> from unbounded.adversaries.mdps import Stochastic
    >>> world = worlds.dirichlet([1, 2], n_actions=2, seed=0)
    >>> learner = UniformPolicy(layers=[1, 2], n_actions=2)
    >>> result = simulate_mdp(learner, world, Stochastic(), 100, 4, seed=0, checkpoints=1)
    >>> result.pseudo_regret.shape, result.low.shape
    ((4, 1), (4, 1, 2))
    """

    shown: ClassVar[Shown] = MDPS
    length: ClassVar[str] = "episodes"

    reach: NDArray[np.float64]
    explored: NDArray[np.int64]
    solves: NDArray[np.int64]
    fallbacks: NDArray[np.int64]
    unsolved: NDArray[np.int64]
    worst_gap: NDArray[np.float64]
    _states: int
    _actions: int

    def relative_regret(self, *, pseudo: bool = False) -> NDArray[np.float64]:
        """Return regret over sum_h l_inf,h, the largest absolute losses of the layers added up.

        Finite at every scale, even where the regret itself exceeds float64.
        """
        return self._over(np.ones(1), pseudo)

    def minimax_regret(self, *, pseudo: bool = False) -> NDArray[np.float64]:
        """Return regret over (sum_h l_inf,h) S sqrt(A t), finite at every scale too."""
        return self._over(self._states * np.sqrt(self._actions * self.checkpoints), pseudo)

    def _over(self, rate: NDArray[np.float64], pseudo: bool) -> NDArray[np.float64]:
        largest = np.maximum(np.abs(self.low), np.abs(self.high))
        size = (largest * self._unit[:, :, None]).sum(axis=2) * rate
        return self._regret_over(size, pseudo)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns of frames, each of shape (replicates, checkpoints)."""
        explored = self.explored[:, None]
        over = explored <= self.checkpoints
        return {
            "regret": self.regret,
            "pseudo_regret": self.pseudo_regret,
            "relative_regret": self.relative_regret(),
            "relative_pseudo_regret": self.relative_regret(pseudo=True),
            "low": self.low.min(axis=2),
            "high": self.high.max(axis=2),
            "clipped": self.clipped,
            "explored": np.minimum(explored, self.checkpoints),
            "reach": np.where(over, self.reach[:, None], np.nan),
        }


@in_our_words
def simulate_mdp(
    learner: MDPLearner,
    mdp: LayeredMDP,
    adversary: MDPAdversary | PythonMDPAdversary,
    episodes: int | None = None,
    replicates: int = 1,
    seed: Seed = None,
    *,
    first_replicate: int = 0,
    checkpoints: Sequence[int] | int = 20,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> MDPSimulation:
    """Play a learner on an MDP against an adversary.

    Parameters
    ----------
    learner : MDPLearner
        Of the package, or your own (`PythonMDPLearner`). Taken as
        settings: every replicate starts afresh, and ``learner`` is not changed.
    mdp : LayeredMDP
        Its true transitions.
    adversary : MDPAdversary or callable
        A compiled adversary, or ``losses = adversary(t, last, q, rng)`` in Python. It gets the
        number of the episode 1, 2, ..., the states and actions of the episode before (None in the
        first), the learner's true occupancy measure q_t and a generator, and returns the losses;
        q and losses are tables (n_h, A), one per layer. What it says of actions that are not
        allowed, and of the end of episodes that ended early, which costs nothing, does not count.
    episodes : int, optional
        How long; as many as the learner was made for by default (RF-ELP: for all states).
    replicates : int
    seed : int, SeedSequence or Generator, optional
        Of losses, transitions and choices. Learners simulated with equal seeds meet equal losses
        (against adversaries that do not look).
    first_replicate : int
        The number of the first replicate, as for `simulate`.
    checkpoints : int or sequence of int
        At which episodes to record; an int means that many, log-spaced.
    workers : int, optional
        Threads; results do not depend on it. Adversaries in Python get one.
    progress : callable, optional
        ``progress(done, replicates)`` after each replicate.

    Examples
    --------
    >>> import numpy as np
    >>> from unbounded import UniformPolicy, worlds
    >>> from unbounded.adversaries.mdps import Stochastic
    >>> mdp = worlds.dirichlet([2, 2], 2, seed=0)
    >>> result = simulate_mdp(UniformPolicy([2, 2], 2), mdp, Stochastic(), 1000, seed=1)
    >>> bool(result.pseudo_regret[0, -1] > 0)
    True

    An adversary in Python that charges the first action of the second layer:

    >>> def unfair(t, last, q, rng):
    ...     return [np.zeros((2, 2)), np.array([[1.0, 0.0], [1.0, 0.0]])]
    >>> result = simulate_mdp(UniformPolicy([2, 2], 2), mdp, unfair, 10)
    >>> round(float(result.pseudo_regret[0, -1]), 12)
    5.0
    """
    check_learner(learner, MDPLearner, "CostSCBRL(layers=[2, 2], n_actions=2)")
    check_mdp(mdp)
    check_adversary(adversary, MDPAdversary, "MDPReplay(losses)", "t", "last", "q", "rng")
    in_python = not isinstance(adversary, MDPAdversary)
    if mdp.layers != learner.layers:
        raise ValueError(
            f"the learner is for {learner.layers}, the MDP has {mdp.layers}: make it by "
            f"{type(learner).__name__}.for_mdp(mdp, ...)"
        )
    wanted = learner.made_for if episodes is None else episodes
    if wanted is None:
        raise ValueError(f"{learner.spec.name} was made for any number of episodes: say episodes=")
    T = checked_count("episodes", wanted)
    if isinstance(adversary, MDPAdversary):
        adversary.fits(mdp, T)
    learner._warn_if_over(T)
    replicates = checked_count("replicates", replicates)
    first_replicate = checked_count("first_replicate", first_replicate, least=0)
    cores = (os.cpu_count() or 1) if workers is None else checked_count("workers", workers)
    points = recorded_rounds(checkpoints, T)
    root = root_of(seed)
    table = np.empty((5, replicates, points.size))
    extremes = np.empty((2, replicates, points.size, mdp.layers.horizon))
    ends: list[End] = [NOT_PLAYED] * replicates
    # What users wrote may count on what compiled code does, as on integers that wrap around.
    theirs = isinstance(adversary, MDPAdversary) and counted(adversary.fill)
    first = theirs or learner.spec.counts
    parts, numbers = parts_of(learner, mdp, adversary), learner._buffer.size
    pace = Pace(parts, T * replicates, first=first, numbers=numbers)
    common = Play(mdp, T, points, root)
    done = 0

    @adversary_errors()
    def one(r: int) -> None:
        nonlocal done
        ends[r] = play_replicate(
            learner, adversary, common, first_replicate + r, pace, table[:, r], extremes[:, r]
        )
        done += 1
        if progress is not None:
            progress(done, replicates)

    threads = 1 if in_python or learner.spec.in_python else min(cores, replicates)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, range(replicates)))
    expected, paid, best, unit, clipped = table
    certificates = [end.certificate for end in ends]
    failed, solves = sum(c.unsolved for c in certificates), sum(c.solves for c in certificates)
    if failed:
        warn(unsolved(learner.spec.name, failed, solves), SolverWarning)
    return MDPSimulation(
        learner=learner.spec.name, adversary=name_of(adversary), checkpoints=points,
        low=extremes[0], high=extremes[1], clipped=clipped.astype(np.int64),
        reach=np.array([end.reach for end in ends]),
        explored=np.array([end.explored for end in ends]),
        solves=np.array([c.solves for c in certificates]),
        fallbacks=np.array([c.fallbacks for c in certificates]),
        unsolved=np.array([c.unsolved for c in certificates]),
        worst_gap=np.array([c.worst_gap for c in certificates]),
        _states=sum(mdp.layers.sizes), _actions=mdp.layers.n_actions, _expected=expected,
        _paid=paid, _best=best, _unit=unit, _root=root, _first=first_replicate,
    )  # fmt: skip
