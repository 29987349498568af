"""Full-speed simulation of MDP learners, with exact pseudo-regret by occupancy measures.

Pseudo-regret after t episodes is ``sum <q_tau, l_tau> - min_pi <q^pi, sum l_tau>`` with q_tau the
true occupancy measure of what the learner plays in episode tau given its past, its explorers
included. Regret has the losses that were paid instead of <q_tau, l_tau>.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from unbounded._arguments import checked_count, recorded_rounds
from unbounded._jit import borrowed
from unbounded.core.occupancy.layout import backward_induction
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.core.occupancy.outcome import SolverWarning
from unbounded.core.occupancy.policies import best_policy, occupancy
from unbounded.play.adversary import MDPAdversary, PythonMDPAdversary, PythonPlay, fill_python
from unbounded.play.contract import Cache, MDPSpec
from unbounded.play.episode import EXPECTED, PAID, UNIT, new_book, new_walk, play, tally
from unbounded.play.mdp_learner import MDPLearner, entries, unsolved
from unbounded.play.seeds import (
    CHOICES,
    OUTSIDE,
    bit_generator,
    replicate_key,
    replicate_seed,
    root_of,
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
    _expected: NDArray[np.float64]
    _paid: NDArray[np.float64]
    _best: NDArray[np.float64]
    _unit: NDArray[np.float64]

    @property
    def regret(self) -> NDArray[np.float64]:
        """Realised regret: the losses that were paid minus those of the best fixed policy."""
        with np.errstate(over="ignore"):
            return (self._paid - self._best) / self._unit

    @property
    def pseudo_regret(self) -> NDArray[np.float64]:
        """The same with <q_t, l_t> for the losses that were paid: exact, and less noisy."""
        with np.errstate(over="ignore"):
            return (self._expected - self._best) / self._unit

    def relative_regret(self, *, pseudo: bool = False) -> NDArray[np.float64]:
        """Regret over sum_h l_inf,h, the largest absolute losses of the layers added up.

        Finite at every scale, even where the regret itself exceeds float64.
        """
        return self._over(np.ones(1), pseudo)

    def minimax_regret(self, *, pseudo: bool = False) -> NDArray[np.float64]:
        """Regret over (sum_h l_inf,h) S sqrt(A t), finite at every scale too."""
        return self._over(self._states * np.sqrt(self._actions * self.checkpoints), pseudo)

    def _over(self, rate: NDArray[np.float64], pseudo: bool) -> NDArray[np.float64]:
        regret = (self._expected if pseudo else self._paid) - self._best
        largest = np.maximum(np.abs(self.low), np.abs(self.high))
        size = (largest * self._unit[:, :, None]).sum(axis=2) * rate
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(size > 0.0, regret / size, 0.0)

    def seed(self, replicate: int) -> SeedSequence:
        """The seed that makes an ask/tell learner repeat this replicate bit for bit."""
        return replicate_seed(self._root, self._first + replicate, CHOICES)


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
        q and losses are tables (n_h, A), one per layer.
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
    >>> from unbounded import UniformPolicy, worlds
    >>> from unbounded.adversaries.mdps import Stochastic
    >>> mdp = worlds.dirichlet([2, 2], 2, np.random.default_rng(0))
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
    cores = (os.cpu_count() or 1) if workers is None else checked_count("workers", workers)
    points = recorded_rounds(checkpoints, T)
    root = root_of(seed)
    table = np.empty((5, replicates, points.size))
    extremes = np.empty((2, replicates, points.size, mdp.layers.horizon))
    ends: list[_End] = [_NOT_PLAYED] * replicates
    if isinstance(adversary, MDPAdversary):  # compiled once, before threads want it
        adversary.losses()
    done = 0

    def one(r: int) -> None:
        nonlocal done
        ends[r] = _play(
            learner, mdp, adversary, T, points, root, first_replicate + r, table[:, r],
            extremes[:, r],
        )  # fmt: skip
        done += 1
        if progress is not None:
            progress(done, replicates)

    threads = 1 if in_python else min(cores, replicates)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, range(replicates)))
    expected, paid, best, unit, clipped = table
    certificates = [end.certificate for end in ends]
    failed, solves = sum(c.unsolved for c in certificates), sum(c.solves for c in certificates)
    if failed:
        warnings.warn(unsolved(learner.spec.name, failed, solves), SolverWarning, stacklevel=2)
    return MDPSimulation(
        checkpoints=points,
        low=extremes[0],
        high=extremes[1],
        clipped=clipped.astype(np.int64),
        reach=np.array([end.reach for end in ends]),
        explored=np.array([end.explored for end in ends]),
        solves=np.array([c.solves for c in certificates]),
        fallbacks=np.array([c.fallbacks for c in certificates]),
        unsolved=np.array([c.unsolved for c in certificates]),
        worst_gap=np.array([c.worst_gap for c in certificates]),
        _states=sum(mdp.layers.sizes),
        _actions=mdp.layers.n_actions,
        _root=root,
        _first=first_replicate,
        _expected=expected,
        _paid=paid,
        _best=best,
        _unit=unit,
    )


@dataclass(frozen=True)
class _End:
    """What is known when a replicate is over."""

    certificate: Any
    explored: int
    reach: float


_NOT_PLAYED = _End(None, 0, np.nan)


@cache
def _loop(spec: MDPSpec) -> Any:
    """The loop over episodes for one algorithm."""
    params_of, state_of, pack = spec.packing.compiled
    distribution, act, update = spec.distribution, spec.act, spec.update
    room, takes = spec.room, spec.takes

    def run(
        owner: Any, lay: Any, solver: Any, P: Any, words: Any, t: int, fill: Any, adversary: Any,
        key: int, seen_version: int, q: Any, cache: Any, walk: Any, book: Any,
    ) -> tuple[int, int, bool, bool]:  # fmt: skip
        """How many episodes were played, the version of ``q``, and whether there is room; and
        whether the last losses could be told."""
        buffer = borrowed(owner)
        params, state = params_of(buffer), state_of(buffer)
        played, legal = 0, True
        while played < words.shape[0] and room(state):
            if state.version != seen_version:
                distribution(lay, params, state, P, cache, q)
                seen_version = state.version
            fill(adversary, t + played, q, lay, walk.losses)
            tally(lay, walk.losses, q, book)
            memo = act(lay, params, state, words[played, 0], walk.pi)
            play(lay, P, key, t + played, words[played], walk, book)
            legal = takes(params, walk.seen)
            if not legal:
                break
            state = update(lay, params, state, solver, memo, walk.states, walk.actions, walk.seen)
            played += 1
        pack(buffer, state)
        return played, seen_version, room(state), legal

    return spec.entry(run, nogil=True)


def _python_loop(spec: MDPSpec) -> Any:
    """The same loop around an adversary in Python; its steps are compiled."""
    look, ask, tell = entries(spec)
    params_of, takes = spec.packing.python.params, spec.takes
    version_at = spec.packing.slot("version")

    def run(
        buffer: Any, lay: Any, solver: Any, P: Any, words: Any, t: int, fill: Any, adversary: Any,
        key: int, seen_version: int, q: Any, cache: Any, walk: Any, book: Any,
    ) -> tuple[int, int, bool, bool]:  # fmt: skip
        params = params_of(buffer)
        for i, row in enumerate(words):
            if buffer[version_at] != seen_version:
                look(buffer, lay, P, cache, q)
                seen_version = int(buffer[version_at])
            fill(adversary, t + i, q, lay, walk.losses)
            tally(lay, walk.losses, q, book)
            memo = ask(buffer, lay, row[0], walk.pi)
            play(lay, P, key, t + i, row, walk, book)
            if not takes(params, walk.seen):
                return i, seen_version, True, False
            _, has_room = tell(buffer, lay, solver, memo, walk.states, walk.actions, walk.seen)
            if not has_room:
                return i + 1, seen_version, False, True
        return len(words), seen_version, True, True

    return run


def _play(
    learner: MDPLearner,
    mdp: LayeredMDP,
    adversary: MDPAdversary | PythonMDPAdversary,
    episodes: int,
    points: NDArray[np.int64],
    root: SeedSequence,
    replicate: int,
    table: NDArray[np.float64],
    extremes: NDArray[np.float64],
) -> _End:
    layers, spec = mdp.layers, learner.spec
    H, X, lay = layers.horizon, layers.n_pairs, layers.table
    player = type(learner)(**learner.settings, seed=0)
    bits = bit_generator(replicate_seed(root, replicate, CHOICES))
    key = replicate_key(root, replicate)
    book, walk, q = new_book(layers), new_walk(layers), np.zeros(X)
    cache = Cache(np.zeros(X), np.zeros(1), np.zeros(X), np.zeros(layers.n_states))
    value, pi = np.empty(layers.n_states), np.empty(X)
    run: Any
    fill: Any
    begun: Any
    if isinstance(adversary, MDPAdversary):
        run, fill = _loop(spec), adversary.losses()
        begun = adversary.begin(mdp, episodes, key)
    else:
        run, fill = _python_loop(spec), fill_python
        rng = np.random.Generator(bit_generator(replicate_seed(root, replicate, OUTSIDE)))
        begun = PythonPlay(adversary, layers, rng, walk.states, walk.actions)
    t, version = 1, -1
    for j, point in enumerate(points):
        while t <= point:
            words = bits.random_raw(int(min(_BLOCK, point - t + 1)) * (1 + H)).reshape(-1, 1 + H)
            while len(words):
                played, version, has_room, legal = run(
                    player._buffer, lay, spec.solver(), mdp.P, words, t, fill, begun, key,
                    version, q, cache, walk, book,
                )  # fmt: skip
                t += played
                words = words[played:]
                if not legal:  # the error is that of `tell`
                    player._checked("losses", walk.seen)
                if not has_room:
                    player._grow()
        best = backward_induction(lay, mdp.P, book.cumulative, value, pi)
        sums = book.sums
        table[:, j] = sums[EXPECTED], sums[PAID], best, sums[UNIT], player.clipped
        extremes[:, j] = book.low, book.high
    return _End(player.certificate, player.episodes_explored, _reach(mdp, player))


def _reach(mdp: LayeredMDP, player: MDPLearner) -> float:
    layers, found = mdp.layers, player.explorers()
    ratios = []
    for h, n in enumerate(layers.sizes if found else ()):
        for s in range(n):
            there = np.zeros(layers.n_pairs)
            first = layers.index(h + 1, s)
            there[first : first + layers.n_actions] = 1.0
            most = -best_policy(mdp, -there)[0]
            if most > 0.0:
                if (h, s) not in found:
                    return float("nan")
                ratios.append(float(there @ occupancy(mdp, found[h, s])) / most)
    return min(ratios, default=float("nan"))
