"""The loops over rounds that simulations run, compiled or interpreted."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.random import PCG64, SeedSequence
from numpy.typing import NDArray

from unbounded.core.arrays import Vector
from unbounded.jit.interpreter import interpreted_pointer, quietly
from unbounded.jit.kernel import Pointer, borrowed
from unbounded.jit.kernel import counting_kernel as kernel
from unbounded.jit.schedule import COMPILED, Code, Pace, Seconds, pointed
from unbounded.learners.bandit import Learner
from unbounded.learners.bandit_steps import entries, remembering
from unbounded.learners.python.bandit import PythonLearner
from unbounded.learners.seeds import CHOICES, OUTSIDE, bit_generator, replicate_key, replicate_seed
from unbounded.learners.spec import BanditSpec
from unbounded.simulation import dynamic, ledger
from unbounded.simulation.adversary import Adversary
from unbounded.simulation.ledger import ARM, EXPECTED, HIGH, LOW, PLAYED, UNIT, new_book

PythonAdversary = Callable[[int, int, Vector, np.random.Generator], Any]
"""``losses = adversary(t, last_arm, q, rng)``: the same contract as a compiled ``fill``."""

_BLOCK = 1 << 14  # rounds for which random words are held at a time
_ROW_BYTES = 1 << 15  # losses that a non-looking adversary fills at a time: fits the L1 cache


@kernel
def _of_the_arm(losses: Any, row: int, arm: int) -> float:
    return losses[row, arm]


@kernel
def _of_all_arms(losses: Any, row: int, arm: int) -> Any:
    return losses[row]


class Loops(NamedTuple):
    """What a simulation of one algorithm runs."""

    run: Any  # the loop over rounds
    run_on_demand: Any  # the one that asks only for some arms' losses
    scale: Any  # buffer -> float


@cache
def loops(spec: BanditSpec) -> Loops:
    """Return the compiled loops of an algorithm; made on first use."""
    params_of, state_of, pack = spec.packing.compiled
    act, update, distribution = spec.act, spec.update, spec.distribution
    record_of, ask_of = remembering(spec)
    feedback = _of_all_arms if spec.feedback == "full" else _of_the_arm

    def run(
        owner: Any, words: Any, t: int, fill: Any, looks: bool, adversary_params: Any,
        adversary_state: Any, book: Any, cumulative: Any, losses: Any, q: Any,
    ) -> None:  # fmt: skip
        buffer, losses, q = borrowed(owner), borrowed(losses), borrowed(q)
        book, cumulative = borrowed(book), borrowed(cumulative)
        adversary_params, adversary_state = borrowed(adversary_params), borrowed(adversary_state)
        params = params_of(buffer)
        state = state_of(buffer)
        arm = int(book[ARM])
        rows = losses.shape[0]
        for start in range(0, words.size, rows):
            block = losses[: min(rows, words.size - start)]
            if looks:  # an adversary that looks gets blocks of one round
                distribution(params, state, q)
            fill(adversary_params, adversary_state, t + start, arm, q, block)
            ledger.tally(book, cumulative, block)
            for row in range(block.shape[0]):
                if looks:
                    if row > 0:
                        distribution(params, state, q)
                    ledger.tally_expected(book, q, block[row])
                arm, _, ask_info = act(params, state, words[start + row])
                ledger.tally_played(book, block[row, arm])
                ask = ask_of(record_of(state, ask_info))
                state = update(params, state, arm, ask, feedback(block, row, arm))
        book[ARM] = arm
        pack(buffer, state)

    def run_on_demand(
        owner: Any, words: Any, t: int, loss_of: Any, adversary_params: Any, adversary_state: Any,
        comparators: Any, book: Any, cumulative: Any, losses: Any,
    ) -> None:  # fmt: skip
        buffer, losses, comparators = borrowed(owner), borrowed(losses), borrowed(comparators)
        book, cumulative = borrowed(book), borrowed(cumulative)
        adversary_params, adversary_state = borrowed(adversary_params), borrowed(adversary_state)
        params = params_of(buffer)
        state = state_of(buffer)
        last = comparators.size
        for i in range(words.size):
            arm, _, ask_info = act(params, state, words[i])
            for c in range(last):
                losses[c] = loss_of(adversary_params, adversary_state, t + i, comparators[c])
            loss = loss_of(adversary_params, adversary_state, t + i, arm)
            losses[last] = loss
            ledger.tally_some(book, cumulative, losses)
            state = update(params, state, arm, ask_of(record_of(state, ask_info)), loss)
        pack(buffer, state)

    loop, on_demand = spec.entry(run, nogil=True), spec.entry(run_on_demand, nogil=True)
    return Loops(loop, on_demand, entries(spec).scale)


@cache
def interpreted_loops(spec: BanditSpec) -> Loops:
    """Return the same as Python runs them."""
    return Loops(*map(quietly, loops(spec)))


class Play(NamedTuple):
    """What the replicates of a simulation have in common."""

    rounds: int
    points: NDArray[np.int64]
    root: SeedSequence
    pseudo_regret: bool
    followed: NDArray[np.int64] | None  # the comparators, if only some arms are followed
    switches: int | None = None  # of the best sequence, -1 for none; None without dynamic regret
    heard: list[tuple[str, type[Warning]]] | None = None  # the warnings of learners that are told


def _zeros(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    out[:] = 0.0


def _zero(params: Any, state: Any, t: int, k: int) -> float:
    return 0.0


class _Still(Adversary):
    """One that does nothing, for warm-ups."""

    fill = _zeros
    entry = _zero


_codes: dict[tuple[BanditSpec | None, bool], Code] = {}


def code_of(learner: Learner, *, on_demand: bool = False) -> Code:
    """Return what is compiled for the simulations of a learner."""
    spec, cls, arguments = learner._variant, type(learner), learner.settings

    def warm_up() -> None:
        followed = np.zeros(1, np.int64) if on_demand else None
        play = Play(1, np.ones(1, np.int64), SeedSequence(0), not on_demand, followed)
        play_compiled(cls(**arguments, seed=0), _Still(), play, 0, COMPILED, np.empty((8, 1)))

    if (spec, on_demand) not in _codes:
        _codes[spec, on_demand] = Code(
            f"simulations of {spec.name}", warm_up, spec.seconds_to_compile
        )
    return _codes[spec, on_demand]


def parts_of(
    learner: Learner,
    adversary: Adversary | PythonAdversary,
    *,
    on_demand: bool = False,
    watched: bool = False,
) -> list[Code]:
    """Return what is compiled for the simulations of a learner against an adversary."""
    if not isinstance(adversary, Adversary):
        return [SUMS, WATCH] if watched else [SUMS]
    kind = type(adversary)
    pointer = kind.loss_of() if on_demand else _pointer(kind, watched)
    if learner.spec.in_python:
        return [SUMS, FILLS, pointed(pointer, kind.__name__)]
    return [code_of(learner, on_demand=on_demand), pointed(pointer, kind.__name__)]


def _pointer(kind: type[Adversary], watched: bool) -> Pointer:
    return dynamic.pointer_of(kind) if watched else kind.rows()


def write_point(
    row: Vector, book: Vector, cumulative: Vector, clipped: float, scale: float
) -> None:
    """Write what is recorded of a play at a checkpoint."""
    row[:8] = (
        book[PLAYED], cumulative.min(), 2.0 * book[EXPECTED], book[UNIT], book[LOW], book[HIGH],
        clipped, scale,
    )  # fmt: skip


def play_compiled(
    learner: Learner, adversary: Adversary, play: Play, replicate: int, pace: Pace, table: Vector
) -> None:
    """Play one replicate against an adversary of kernels, and record it in ``table``."""
    _, points, root, pseudo_regret, followed, switches, _ = play
    n, spec, buffer = learner.n_arms, learner._variant, learner._fresh()
    bits = bit_generator(replicate_seed(root, replicate, CHOICES))
    params, state = _begun(adversary, n, play, replicate)
    watched = switches is not None
    looks = adversary.looks or watched
    book = new_book()
    sums = n if followed is None else followed.size + 1  # the comparators, then the arm played
    cumulative, few, q = np.zeros(sums), np.empty(sums), np.empty(n)
    rows = 1 if looks else max(1, _ROW_BYTES // (8 * n))
    losses = np.empty((rows if followed is None else 0, n))
    pointer = adversary.loss_of() if followed is not None else _pointer(type(adversary), watched)
    clipped = spec.packing.slot("clipped")

    def advance(found: Loops, losses_of: Any, words: Any) -> None:
        if followed is None:
            found.run(
                buffer, words, t, losses_of, looks or pseudo_regret,
                params, state, book, cumulative, losses, q,
            )  # fmt: skip
        else:
            found.run_on_demand(
                buffer, words, t, losses_of, params, state, followed, book, cumulative, few
            )
            book[PLAYED] = cumulative[-1]

    t = 1
    for j, point in enumerate(points):
        while t <= point:
            compiled = pace.compiled
            words = bits.random_raw(int(min(_BLOCK if compiled else pace.rounds, point - t + 1)))
            if compiled:
                advance(loops(spec), pointer(), words)
            else:
                mirrors = interpreted_loops(spec), interpreted_pointer(pointer)
                with pace.interpreting(words.size):
                    advance(*mirrors, words)
            t += words.size
        best = cumulative if followed is None else cumulative[:-1]
        scale = (loops if pace.compiled else interpreted_loops)(spec).scale(buffer)
        write_point(table[:, j], book, best, buffer[clipped], scale)
        if watched:
            table[8:, j] = dynamic.recorded(state, n)


def _begun(adversary: Adversary, n: int, play: Play, replicate: int) -> tuple[Vector, Vector]:
    """Return params and state of an adversary for one replicate."""
    key = replicate_key(play.root, replicate)
    if play.switches is None:
        return adversary.begin(n, play.rounds, key)
    return dynamic.begin(adversary, n, play.rounds, key, play.switches)


class _Sums(NamedTuple):
    """What adds up the losses of an adversary in Python."""

    tally: Any
    tally_expected: Any
    tally_played: Any


_SUMS = _Sums(ledger.tally, ledger.tally_expected, ledger.tally_played)
_interpreted_sums = _Sums(*map(quietly, _SUMS))


def _add_nothing() -> None:
    book, zeros = new_book(), np.zeros(1)
    ledger.tally(book, zeros, np.zeros((1, 1)))
    ledger.tally_expected(book, zeros, zeros)
    ledger.tally_played(book, 0.0)


def _watch_nothing() -> None:
    dynamic.watch(dynamic.new_record(1, 0), np.zeros(1), np.zeros(1), 0.0)


SUMS = Code("the sums of simulations", _add_nothing, Seconds.SMALL)
WATCH = Code("dynamic regret", _watch_nothing, Seconds.SMALL)
_interpreted_watch = quietly(dynamic.watch)


@kernel
def _fill(losses_of: Any, params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    """Call a pointer from Python."""
    losses_of(params, state, t, last_arm, q, out)


def _fill_nothing() -> None:
    zero = np.zeros(1)
    _fill(_Still.rows()(), np.array([1.0, 0.0]), zero, 1, -1, zero, np.zeros((1, 1)))


FILLS = Code("losses for learners in Python", _fill_nothing, Seconds.SMALL)


class _Losses:
    """Of an adversary of kernels, round by round as of one in Python."""

    def __init__(
        self, adversary: Adversary, n: int, play: Play, replicate: int, pace: Pace
    ) -> None:
        watched = play.switches is not None
        self._pointer, self._pace = _pointer(type(adversary), watched), pace
        self._params, self.state = _begun(adversary, n, play, replicate)
        self._rounds = play.rounds
        one = adversary.looks or watched
        rows = 1 if one else max(1, min(_ROW_BYTES // (8 * n), play.rounds))
        self._rows, self._next = np.empty((rows, n)), 1  # the round whose losses are not known yet

    def __call__(self, t: int, last_arm: int, q: Vector, rng: Any) -> Vector:
        held = len(self._rows)
        if t == self._next:
            block = self._rows[: min(held, self._rounds - t + 1)]
            given = self._params, self.state, t, last_arm, q, block
            if self._pace.compiled:
                _fill(self._pointer(), *given)
            else:
                with np.errstate(all="ignore"):
                    interpreted_pointer(self._pointer)(*given)
            self._next += held
        return self._rows[(t - 1) % held]


def play_python(
    learner: Learner,
    adversary: Adversary | PythonAdversary,
    play: Play,
    replicate: int,
    pace: Pace,
    table: Vector,
) -> None:
    """The same by ask and tell: an adversary or a learner in Python."""
    n, points, root = learner.n_arms, play.points, play.root
    player = type(learner)(**learner.settings, seed=replicate_seed(root, replicate, CHOICES))
    player._watching = True  # who made the losses need not be warned of them
    player._heard = play.heard
    if isinstance(player, PythonLearner):
        player._careful = False  # an error ends the play
    rng = np.random.Generator(PCG64(replicate_seed(root, replicate, OUTSIDE)))
    losses_of: PythonAdversary = adversary  # type: ignore[assignment]
    watched = play.switches is not None
    record = dynamic.new_record(n, play.switches or 0)
    if isinstance(adversary, Adversary):
        losses_of = filled = _Losses(adversary, n, play, replicate, pace)
        record, watched = filled.state, False  # its kernel does it
    book, cumulative = new_book(), np.zeros(n)
    t, last_arm = 1, -1
    for j, point in enumerate(points):
        for t in range(t, int(point) + 1):  # noqa: B020 - continues where the last segment ended
            q = player.probabilities()
            losses = np.array(losses_of(t, last_arm, q.copy(), rng), dtype=np.float64)
            if losses.shape != (n,) or not np.isfinite(losses).all():
                raise ValueError(
                    f"the adversary must return {n} finite losses, got {losses!r} at t = {t}"
                )
            choice = player.ask()
            last_arm = choice.arm
            if pace.compiled:
                _add(_SUMS, book, cumulative, q, losses, last_arm)
            else:
                with pace.interpreting(1):
                    _add(_interpreted_sums, book, cumulative, q, losses, last_arm)
            if watched:
                (dynamic.watch if pace.compiled else _interpreted_watch)(record, q, losses, 0.0)
            if player.spec.feedback == "full":
                player.tell(choice, losses=losses)
            else:
                player.tell(choice, float(losses[last_arm]))
        t += 1
        write_point(table[:, j], book, cumulative, player.clipped, player.scale)
        if play.switches is not None:
            table[8:, j] = dynamic.recorded(record, n)


def _add(sums: _Sums, book: Vector, cumulative: Vector, q: Vector, losses: Any, arm: int) -> None:
    sums.tally(book, cumulative, losses[None])
    sums.tally_expected(book, q, losses)
    sums.tally_played(book, losses[arm])
