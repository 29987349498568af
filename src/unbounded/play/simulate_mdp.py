"""Full-speed simulation of MDP learners, with exact regret by occupancy measures.

Regret after t episodes is ``sum <q_tau, l_tau> - min_pi <q^pi, sum l_tau>`` with q_tau the true
occupancy measure of what the learner plays in episode tau given its past, its explorers included.

Sums are kept times a unit, a power of two that brings the largest loss so far below 1, so that none
overflows and a common factor 2^k of all losses changes the unit and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from unbounded._arguments import checked_count, recorded_rounds
from unbounded.core.arrays import (
    Vector,
)
from unbounded.core.occupancy.layout import (
    backward_induction,
)
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.core.occupancy.policies import best_policy, occupancy
from unbounded.mdps import rf_elp
from unbounded.play.adversary import MDPAdversary, PythonMDPAdversary, PythonPlay, fill_python
from unbounded.play.episode_loop import EXPECTED, PLAYED, UNIT, compiled_loop, python_loop
from unbounded.play.learner import bit_generator
from unbounded.play.mdp_learner import MDPLearner
from unbounded.play.sections import (
    CLIPPED,
    EXPLORED,
    FALLBACKS,
    SOLVES,
    TARGET,
    UNSOLVED,
    WORST,
)

_BLOCK = 1 << 12  # episodes for which random words are held at a time


@dataclass(frozen=True)
class MDPSimulation:
    """What happened in each replicate at each checkpoint; arrays (replicates, checkpoints).

    Attributes
    ----------
    checkpoints : array of int, shape (checkpoints,)
    low, high : array, shape (replicates, checkpoints, H)
        Extreme losses of each layer so far, of any pair.
    clipped : array
        How many losses the learner has clipped.
    reach : array, shape (replicates,)
        Of a learner whose exploration is over: the smallest, over the states that can be reached,
        of the probability with which the policy found for a state reaches it, over the largest
        possible one. Exact; nan for other learners.
    explored, solves, fallbacks, unsolved, worst_gap : array, shape (replicates,)
        Episodes of exploration, and how well FTRL was solved.
    """

    checkpoints: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    clipped: NDArray[np.int64]
    reach: NDArray[np.float64]
    explored: NDArray[np.int64]
    solves: NDArray[np.int64]
    fallbacks: NDArray[np.int64]
    unsolved: NDArray[np.int64]
    worst_gap: NDArray[np.float64]
    _states: int
    _actions: int
    _root: SeedSequence
    _first: int
    # Times a unit, so that none overflows.
    _regret: NDArray[np.float64]
    _realised: NDArray[np.float64]
    _unit: NDArray[np.float64]

    @property
    def regret(self) -> NDArray[np.float64]:
        """Exact expected regret against the best fixed policy in hindsight."""
        with np.errstate(over="ignore"):
            return self._regret / self._unit

    @property
    def realised(self) -> NDArray[np.float64]:
        """The same with the losses that were paid."""
        with np.errstate(over="ignore"):
            return self._realised / self._unit

    @property
    def scaled_regret(self) -> NDArray[np.float64]:
        """Regret over sum_h l_inf,h, the largest absolute losses of the layers added up.

        Finite at every scale, even where the regret itself exceeds float64.
        """
        return self._over(np.ones(1))

    def relative_regret(self) -> NDArray[np.float64]:
        """Regret over (sum_h l_inf,h) S sqrt(A t), finite at every scale too."""
        return self._over(self._states * np.sqrt(self._actions * self.checkpoints))

    def _over(self, rate: NDArray[np.float64]) -> NDArray[np.float64]:
        largest = np.maximum(np.abs(self.low), np.abs(self.high))
        size = (largest * self._unit[:, :, None]).sum(axis=2) * rate
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(size > 0.0, self._regret / size, 0.0)

    def seed(self, replicate: int) -> SeedSequence:
        """The seed that makes an ask/tell learner repeat this replicate bit for bit."""
        return _seed(self._root, self._first + replicate, 0)


def simulate_mdp(
    learner: MDPLearner,
    mdp: LayeredMDP,
    adversary: MDPAdversary | PythonMDPAdversary,
    episodes: int | None = None,
    replicates: int = 1,
    seed: int | SeedSequence | None = None,
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
        Taken as settings: every replicate starts afresh, and ``learner`` is not changed.
    mdp : LayeredMDP
        Its true transitions.
    adversary : MDPAdversary or callable
        A compiled adversary, or ``losses = adversary(t, last, q, rng)`` in Python. It gets the
        number of the episode 1, 2, ..., the states and actions of the episode before (None in the
        first), the learner's true occupancy measure q_t and a generator, and returns the losses;
        q and losses are tables (n_h, A), one a layer.
    episodes : int, optional
        How long; as many as the learner was made for by default (RF-ELP: for all states).
    replicates : int
    seed : int or SeedSequence, optional
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
    >>> from unbounded import worlds
    >>> from unbounded.adversaries.mdps import Stochastic
    >>> from unbounded.mdps.baselines import UniformPolicy
    >>> mdp = worlds.dirichlet([2, 2], 2, np.random.default_rng(0))
    >>> result = simulate_mdp(UniformPolicy([2, 2], 2), mdp, Stochastic(), 1000, seed=1)
    >>> bool(result.regret[0, -1] > 0)
    True

    An adversary in Python that charges the first action of the second layer:

    >>> def unfair(t, last, q, rng):
    ...     return [np.zeros((2, 2)), np.array([[1.0, 0.0], [1.0, 0.0]])]
    >>> result = simulate_mdp(UniformPolicy([2, 2], 2), mdp, unfair, 10)
    >>> round(float(result.regret[0, -1]), 12)
    5.0
    """
    in_python = not isinstance(adversary, MDPAdversary)
    if in_python and not callable(adversary):
        raise TypeError(f"adversary must be an MDPAdversary or a function, not {adversary!r}")
    if mdp.layers != learner.layers:
        raise ValueError(f"the learner is for {learner.layers}, the MDP has {mdp.layers}")
    wanted = learner.made_for if episodes is None else episodes
    if wanted is None:
        raise ValueError(f"{learner.spec.name} was made for any number of episodes: say episodes=")
    T = checked_count("episodes", wanted)
    learner._warn_if_over(T)
    replicates = checked_count("replicates", replicates)
    first_replicate = checked_count("first_replicate", first_replicate, least=0)
    points = recorded_rounds(checkpoints, T)
    root = seed if isinstance(seed, SeedSequence) else SeedSequence(seed)
    H = mdp.layers.horizon
    table = np.empty((4, replicates, points.size))
    extremes = np.empty((2, replicates, points.size, H))
    counts = np.zeros((6, replicates))
    # made once, before threads want it
    run = python_loop(learner.spec) if in_python else compiled_loop(learner.spec)
    if isinstance(adversary, MDPAdversary):
        adversary.losses()
    done = 0

    def one(r: int) -> None:
        nonlocal done
        _play(
            run, learner, mdp, adversary, T, points, root, first_replicate + r, table[:, r],
            extremes[:, r], counts[:, r],
        )  # fmt: skip
        done += 1
        if progress is not None:
            progress(done, replicates)

    threads = 1 if in_python else min(workers or os.cpu_count() or 1, replicates)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, range(replicates)))
    whole = counts[:4].astype(np.int64)
    return MDPSimulation(
        points, extremes[0], extremes[1], table[3].astype(np.int64), counts[5], whole[0], whole[1],
        whole[2], whole[3], counts[4], sum(mdp.layers.sizes), mdp.layers.n_actions, root,
        first_replicate, table[0], table[1], table[2],
    )  # fmt: skip


def _seed(root: SeedSequence, replicate: int, part: int) -> SeedSequence:
    return SeedSequence(root.entropy, spawn_key=(*root.spawn_key, replicate, part))


def _play(
    run: Any,
    learner: MDPLearner,
    mdp: LayeredMDP,
    adversary: MDPAdversary | PythonMDPAdversary,
    episodes: int,
    points: NDArray[np.int64],
    root: SeedSequence,
    replicate: int,
    table: Vector,
    extremes: Vector,
    counts: Vector,
) -> None:
    layers = mdp.layers
    H, X = layers.horizon, layers.n_pairs
    player = type(learner)(**learner.settings, seed=0)
    bits = bit_generator(_seed(root, replicate, 0))
    key = int(_seed(root, replicate, 1).generate_state(1, np.uint64)[0]) >> 11
    book = np.array([0.0, 0.0, -1.0, 1.0, 0.0])
    low, high = np.full(H, np.inf), np.full(H, -np.inf)
    cumulative, losses, q = np.zeros(X), np.empty(X), np.zeros(X)
    cache = np.zeros(1 + 2 * X + layers.n_states)
    value, pi = np.empty(layers.n_states), np.empty(X)
    steps = np.empty(H, np.int64), np.empty(H, np.int64), np.empty(H)
    fill: Any
    params: Any
    if isinstance(adversary, MDPAdversary):
        fill, params = adversary.losses(), adversary.begin(mdp, episodes, key)
    else:
        rng = np.random.Generator(bit_generator(_seed(root, replicate, 1)))
        fill, params = fill_python, PythonPlay(adversary, layers, rng, steps[0], steps[1])
    t = 1
    for j, point in enumerate(points):
        while t <= point:
            words = bits.random_raw(int(min(_BLOCK, point - t + 1)) * (1 + H)).reshape(-1, 1 + H)
            first = 0
            while first < len(words):
                first += run(
                    layers.table, player._params, player._state, player.spec.program(), mdp.P,
                    words[first:], t + first, player._capacity, fill, params, key, book, low,
                    high, cumulative, losses, q, cache, pi, *steps,
                )  # fmt: skip
                player._make_room()
            t += len(words)
        best = backward_induction(layers.table, mdp.P, cumulative, value, pi)
        clipped = player._state.head[CLIPPED]
        table[:, j] = book[EXPECTED] - best, book[PLAYED] - best, book[UNIT], clipped
        extremes[:, j] = low, high
    head = player._state.head
    counts[:5] = [head[slot] for slot in (EXPLORED, SOLVES, FALLBACKS, UNSOLVED, WORST)]
    counts[5] = _reach(mdp, player)


def _reach(mdp: LayeredMDP, player: MDPLearner) -> float:
    state, layers = player._state, mdp.layers
    if not hasattr(state, "library") or state.head[TARGET] < sum(layers.sizes):
        return np.nan
    ratios = []
    for (h, s), mixture in rf_elp.found(layers, state.head, state.library).items():
        there = np.zeros(layers.n_pairs)
        first = layers.index(h + 1, s)
        there[first : first + layers.n_actions] = 1.0
        most = -best_policy(mdp, -there)[0]
        if most > 0.0:
            ratios.append(float(there @ occupancy(mdp, mixture)) / most)
    return min(ratios)
