"""The loops over episodes that simulations of MDPs run, compiled or interpreted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from unbounded.core.occupancy.layout import backward_induction, roll_forward
from unbounded.core.occupancy.mdp import LayeredMDP, Markov, best_policy, occupancy
from unbounded.jit.interpreter import interpreted_pointer, quietly
from unbounded.jit.kernel import borrowed
from unbounded.jit.kernel import counting_kernel as kernel
from unbounded.jit.schedule import COMPILED, Code, Pace, Seconds, pointed
from unbounded.learners.mdp import MDPLearner
from unbounded.learners.mdp_steps import entries
from unbounded.learners.python.mdp import PythonMDPLearner
from unbounded.learners.seeds import CHOICES, OUTSIDE, bit_generator, replicate_key, replicate_seed
from unbounded.learners.spec import Cache, MDPSpec
from unbounded.simulation.adversary import MDPAdversary, PythonMDPAdversary, PythonPlay, fill_python
from unbounded.simulation.episode import EXPECTED, PAID, UNIT, new_book, new_walk, play, tally

_BLOCK = 1 << 12  # episodes for which random words are held at a time


@dataclass(frozen=True)
class End:
    """Totals of a replicate."""

    certificate: Any
    explored: int
    reach: float


NOT_PLAYED = End(None, 0, np.nan)


@kernel
def _of_the_visited(walk: Any) -> Any:
    return walk.seen


@kernel
def _of_all_pairs(walk: Any) -> Any:
    return walk.losses


def _feedback(spec: MDPSpec) -> Callable[[Any], Any]:
    """Return what the learner is told of the losses of an episode."""
    return _of_all_pairs if spec.feedback == "full" else _of_the_visited


@cache
def loop(spec: MDPSpec) -> Any:
    """Return the compiled loop over episodes for one algorithm; made on first use."""
    params_of, state_of, pack = spec.packing.compiled
    distribution, act, update = spec.distribution, spec.act, spec.update
    room, takes, feedback = spec.room, spec.takes, _feedback(spec)

    def run(
        owner: Any, lay: Any, solver: Any, P: Any, words: Any, t: int, fill: Any, adversary: Any,
        key: int, seen_version: int, q: Any, cache: Any, walk: Any, book: Any,
    ) -> tuple[int, int, bool, bool]:  # fmt: skip
        """Return how many episodes were played, the version of ``q``, whether there is room, and
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
            ask_info = act(lay, params, state, words[played, 0], walk.pi)
            play(lay, P, key, t + played, words[played], walk, book)
            told = feedback(walk)
            legal = takes(params, told)
            if not legal:
                break
            state = update(lay, params, state, solver, ask_info, walk.states, walk.actions, told)
            played += 1
        pack(buffer, state)
        return played, seen_version, room(state), legal

    return spec.entry(run, nogil=True)


@cache
def python_loop(spec: MDPSpec, *, compiled: bool) -> Any:
    """The same loop around an adversary in Python; its steps are compiled, or interpreted."""
    chosen: Callable[..., Any] = _unchanged if compiled else quietly
    return _loop_in_python(spec, *map(chosen, entries(spec)), compiled=compiled)


def _loop_around(player: PythonMDPLearner, compiled: bool) -> Any:
    """Return the same loop around a learner in Python."""
    player._careful = False  # an error ends the play
    roll: Callable[..., Any] = roll_forward if compiled else quietly(roll_forward)

    def look(buffer: Any, lay: Any, P: Any, cache: Cache, q: Any) -> None:
        roll(lay, P, player._pi, cache.mass, q)

    def ask(buffer: Any, lay: Any, word: Any, pi: Any) -> int:
        pi[:] = player._pi
        return 0

    def tell(
        buffer: Any, lay: Any, solver: Any, ask_info: int, states: Any, actions: Any, losses: Any
    ) -> tuple[bool, bool]:
        return player._learn(ask_info, states, actions, losses), True

    return _loop_in_python(player.spec, look, ask, tell, compiled=compiled)


def _loop_in_python(spec: MDPSpec, look: Any, ask: Any, tell: Any, *, compiled: bool) -> Any:
    chosen: Callable[..., Any] = _unchanged if compiled else quietly
    takes, add, walk_through = map(chosen, (spec.takes, tally, play))
    params_of = spec.packing.python.params
    version_at = spec.packing.slot("version")
    full = spec.feedback == "full"

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
            add(lay, walk.losses, q, book)
            ask_info = ask(buffer, lay, row[0], walk.pi)
            walk_through(lay, P, key, t + i, row, walk, book)
            told = walk.losses if full else walk.seen
            if not takes(params, told):
                return i, seen_version, True, False
            _, has_room = tell(buffer, lay, solver, ask_info, walk.states, walk.actions, told)
            if not has_room:
                return i + 1, seen_version, False, True
        return len(words), seen_version, True, True

    return run


class Game(NamedTuple):
    """What a simulation runs, compiled or interpreted."""

    run: Any  # the loop over episodes
    fill: Any  # what the loop gets its losses from
    solver: Any
    best: Any  # backward induction
    reach: Any


def _game(player: MDPLearner, adversary: MDPAdversary | PythonMDPAdversary, compiled: bool) -> Game:
    spec = player.spec
    one: Callable[..., Any] = _unchanged if compiled else quietly
    solver = spec.solver() if compiled else interpreted_pointer(spec.solver)
    run: Any
    fill: Any
    if isinstance(player, PythonMDPLearner):
        run, fill = _loop_around(player, compiled), fill_python
        if isinstance(adversary, MDPAdversary):
            losses = adversary.filler()
            fill = partial(_fill, losses()) if compiled else quietly(losses.kernel)
    elif isinstance(adversary, MDPAdversary):
        losses = adversary.filler()
        run, fill = one(loop(spec)), losses() if compiled else interpreted_pointer(losses)
    else:
        run, fill = python_loop(spec, compiled=compiled), fill_python
    return Game(run, fill, solver, one(backward_induction), one(_reach))


class Play(NamedTuple):
    """What the replicates of a simulation have in common."""

    mdp: LayeredMDP
    episodes: int
    points: NDArray[np.int64]
    root: SeedSequence


def play_replicate(
    learner: MDPLearner,
    adversary: MDPAdversary | PythonMDPAdversary,
    common: Play,
    replicate: int,
    pace: Pace,
    table: NDArray[np.float64],
    extremes: NDArray[np.float64],
) -> End:
    """Play one replicate, and record it in ``table`` and ``extremes``."""
    mdp, episodes, points, root = common
    layers = mdp.layers
    H, X, lay = layers.horizon, layers.n_pairs, layers.table
    player = type(learner)(**learner.settings, seed=0)
    bits = bit_generator(replicate_seed(root, replicate, CHOICES))
    key = replicate_key(root, replicate)
    book, walk, q = new_book(layers), new_walk(layers), np.zeros(X)
    cache = Cache(np.zeros(X), np.zeros(1), np.zeros(X), np.zeros(layers.n_states))
    value, pi = np.empty(layers.n_states), np.empty(X)
    begun: Any
    if isinstance(adversary, MDPAdversary):
        begun = adversary.begin(mdp, episodes, key)
    else:
        rng = np.random.Generator(bit_generator(replicate_seed(root, replicate, OUTSIDE)))
        begun = PythonPlay(adversary, layers, rng, walk.states, walk.actions)
    compiled = pace.compiled
    game = _game(player, adversary, compiled)
    t, version = 1, -1
    for j, point in enumerate(points):
        while t <= point:
            if not compiled and pace.compiled:
                compiled, game = True, _game(player, adversary, True)
            some = int(min(_BLOCK if compiled else pace.rounds, point - t + 1))
            words = bits.random_raw(some * (1 + H)).reshape(-1, 1 + H)
            with nullcontext() if compiled else pace.interpreting(some):
                while len(words):
                    played, version, has_room, legal = game.run(
                        player._buffer, lay, game.solver, mdp.P, words, t, game.fill, begun, key,
                        version, q, cache, walk, book,
                    )  # fmt: skip
                    t += played
                    words = words[played:]
                    if not legal:
                        _reject(player, walk, t)
                    if not has_room:
                        player._grow()
        best = game.best(lay, mdp.P, book.cumulative, value, pi)
        sums = book.sums
        table[:, j] = sums[EXPECTED], sums[PAID], best, sums[UNIT], player.clipped
        extremes[:, j] = book.low, book.high
    return End(player.certificate, player.episodes_explored, game.reach(mdp, player))


def _reject(player: MDPLearner, walk: Any, t: int) -> NoReturn:
    """Raise the error of `tell` for losses that are not legal."""
    if player.spec.feedback == "full":
        player._checked_tables("losses", player.layers.unpack_pairs(walk.losses))
    else:
        player._checked("losses", walk.seen)
    raise ValueError(f"{player.spec.name} does not take the losses of episode {t}")


def _reach(mdp: LayeredMDP, player: MDPLearner) -> float:
    layers, found = mdp.layers, player.explorers()
    ratios = []
    for h, n in enumerate(layers.sizes if found else ()):
        for s in range(n):
            there = np.zeros(layers.n_pairs)
            first = layers.index(h + 1, s)
            there[first : first + layers.n_actions] = 1.0
            most = -best_policy(mdp, -there)[0]
            if most > 0.0 and not layers.is_end(h + 1, s):
                if (h, s) not in found:
                    return float("nan")
                ratios.append(float(there @ occupancy(mdp, found[h, s])) / most)
    return min(ratios, default=float("nan"))


def _zeros(params: Any, t: int, q: Any, lay: Any, out: Any) -> None:
    out[:] = 0.0


class _Still(MDPAdversary):
    """One that does nothing, for warm-ups."""

    fill = _zeros


def _still(t: int, last: Any, q: list[Any], rng: Any) -> list[Any]:
    return [np.zeros_like(table) for table in q]


@kernel
def _fill(losses_of: Any, params: Any, t: int, q: Any, lay: Any, out: Any) -> None:
    """Call a pointer from Python."""
    losses_of(params, t, q, lay, out)


def _around_nothing() -> None:
    """Play a learner in Python once."""
    mdp = LayeredMDP([1.0], [], n_actions=1)
    common = Play(mdp, 1, np.ones(1, np.int64), SeedSequence(0))
    table, extremes = np.empty((5, 1)), np.empty((2, 1, 1))
    play_replicate(_Idle([1], 1), _Still(), common, 0, COMPILED, table, extremes)


class _Idle(PythonMDPLearner):
    """One that does nothing, for warm-ups."""

    def policy(self) -> Any:
        return [[[1.0]]]

    def update(self, states: Any, actions: Any, losses: Any) -> None:
        pass


IN_PYTHON = Code("simulations of learners in Python", _around_nothing, Seconds.MDP)
_codes: dict[tuple[MDPSpec, bool], Code] = {}


def code_of(learner: MDPLearner, mdp: LayeredMDP, *, in_python: bool = False) -> Code:
    """Return what is compiled for the simulations of a learner; ``in_python`` is its adversary."""
    spec, cls, arguments = learner.spec, type(learner), learner.settings

    def warm_up() -> None:
        common = Play(mdp, 1, np.ones(1, np.int64), SeedSequence(0))
        H = mdp.layers.horizon
        play_replicate(
            cls(**arguments, seed=0), _still if in_python else _Still(), common, 0, COMPILED,
            np.empty((5, 1)), np.empty((2, 1, H)),
        )  # fmt: skip
        occupancy(mdp, Markov.uniform(mdp.layers))  # for `_reach`, when there are explorers

    if (spec, in_python) not in _codes:
        name = f"simulations of {spec.name}"
        _codes[spec, in_python] = Code(name, warm_up, spec.seconds_to_compile)
    return _codes[spec, in_python]


def parts_of(
    learner: MDPLearner, mdp: LayeredMDP, adversary: MDPAdversary | PythonMDPAdversary
) -> list[Code]:
    """Return what is compiled for the simulations of a learner against an adversary."""
    if learner.spec.in_python:
        parts = [IN_PYTHON]
    else:
        parts = [code_of(learner, mdp, in_python=not isinstance(adversary, MDPAdversary))]
    if isinstance(adversary, MDPAdversary):
        parts.append(pointed(adversary.filler(), type(adversary).__name__))
    return parts


def _unchanged(kernel: Any) -> Any:
    return kernel
