"""Simulations in which not all arms are available in every round.

Which arms are is said by another adversary, whose ``fill`` writes more than 1/2 for those that are
(`unbounded.adversaries.Outage`, for example, or `Replay` of a matrix of zeros and ones). In round t
it comes first, and may see p_t, the distribution over all arms; then come the losses, which may see
q_t, that over the available ones; then the arm is drawn.

Two sums are followed beside the others. With A_t the available arms,

    action regret     max_i sum_{t : i in A_t} (l_{t,k} - l_{t,i})      (docs/theory/sleeping.md)
    available regret  sum_t (m_{t,k} - min_{i in A_t} m_{t,i})

where m_t are the expected losses, or the losses if the adversary does not declare expected ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.random import PCG64

from unbounded.core.arrays import Matrix, Vector
from unbounded.jit.interpreter import interpreted_pointer, quietly
from unbounded.jit.kernel import Pointer, assign, borrowed, counted
from unbounded.jit.kernel import counting_kernel as kernel
from unbounded.jit.schedule import COMPILED, Code, Pace, pointed
from unbounded.learners.available import mask_of
from unbounded.learners.bandit import Learner
from unbounded.learners.bandit_steps import clock_of, entries, remembering
from unbounded.learners.seeds import (
    AVAILABLE,
    CHOICES,
    OUTSIDE,
    bit_generator,
    replicate_key,
    replicate_seed,
)
from unbounded.learners.spec import BanditSpec, SideAsk
from unbounded.simulation import ledger
from unbounded.simulation.adversary import Adversary, as_kernel
from unbounded.simulation.bandit_loops import Play, PythonAdversary, write_point
from unbounded.simulation.ledger import ARM, UNIT, new_book
from unbounded.validation import ArgumentTypeError, ArgumentValueError, shown

PythonAvailability = Callable[[int, int, Vector, np.random.Generator], Any]
"""``available = availability(t, last_arm, p, rng)``: a mask, indices or names."""

ROWS = 2  # that are followed beside the others
_BLOCK = 1 << 14  # rounds for which random words are held at a time
_V = types.float64[::1]
_EXPECTED = types.float64(_V, _V, types.int64, _V)
# Of the sums, after one for each arm: that of available regret, the unit of all, and the first
# round without an arm.
_GAP, _UNIT, _EMPTY = range(3)
_SLOTS = 3


def check(learner: Learner, available: Any) -> None:
    """Reject a learner that has no rule for arms that sleep, and what says nothing of arms."""
    if not isinstance(available, Adversary) and not callable(available):
        raise ArgumentTypeError(
            "available", f"must be an Adversary or a function, not {shown(available)}"
        )
    if learner.n_arms > 1:
        learner._side(np.arange(learner.n_arms) > 0)


@kernel
def follow(
    book: Vector, sums: Vector, side: Vector, losses: Vector, means: Vector, arm: int
) -> None:
    """Enter a round."""
    n = losses.size
    unit = book[UNIT]
    if sums[n + _UNIT] != unit:
        for k in range(n + 1):
            sums[k] *= unit / sums[n + _UNIT]
        sums[n + _UNIT] = unit
    smallest = math.inf
    for k in range(n):
        if side[k] != 0.0:
            sums[k] += losses[arm] * unit - losses[k] * unit
            smallest = min(smallest, means[k])
    sums[n + _GAP] += means[arm] * unit - smallest * unit


@kernel
def settle(side: Vector) -> int:
    """Turn what was written into ones and zeros; return how many arms are available."""
    count = 0
    for k in range(side.size):
        side[k] = 1.0 if side[k] > 0.5 else 0.0
        count += int(side[k])
    return count


@kernel
def _unknown(params: Any, state: Any, t: int, out: Any) -> float:
    return 0.0


@cache
def _means_of(given: Any) -> Pointer:
    expected = as_kernel(given)

    def means_of(params: Any, state: Any, t: int, out: Any) -> float:
        size = 1.0 * expected(params[2:], state, t, out)
        if params[0] != 1.0 or params[1] != 0.0:
            for k in range(out.size):
                out[k] = params[0] * out[k] + params[1]
        return size

    means_of.__module__, means_of.counts = given.__module__, counted(given)  # type: ignore[attr-defined]
    means_of.__qualname__ = f"{given.__qualname__}.means_of"
    return Pointer(means_of, _EXPECTED)


class Loops(NamedTuple):
    """What a simulation of one algorithm runs."""

    run: Any
    scale: Any


@cache
def loops(spec: BanditSpec) -> Loops:
    """Return the compiled loop of an algorithm; made on first use."""
    params_of, state_of, pack = spec.packing.compiled
    act, update, distribution = spec.act, spec.update, spec.distribution
    act_with: Any = spec.act_with
    update_with: Any = spec.update_with
    distribution_with: Any = spec.distribution_with
    record_of, ask_of = remembering(spec)
    clock = clock_of(spec)

    def run_with(
        owner: Any, words: Any, t: int, choose: Any, choose_params: Any, choose_state: Any,
        choose_looks: bool, fill: Any, looks: bool, adversary_params: Any, adversary_state: Any,
        means_of: Any, book: Any, cumulative: Any, losses: Any, q: Any, side: Any, note: Any,
        means: Any, sums: Any,
    ) -> None:  # fmt: skip
        buffer, losses, q = borrowed(owner), borrowed(losses), borrowed(q)
        book, cumulative = borrowed(book), borrowed(cumulative)
        adversary_params, adversary_state = borrowed(adversary_params), borrowed(adversary_state)
        choose_params, choose_state = borrowed(choose_params), borrowed(choose_state)
        side, note, means, sums = borrowed(side), borrowed(note), borrowed(means), borrowed(sums)
        params = params_of(buffer)
        state = state_of(buffer)
        arm = int(book[ARM])
        n = q.size
        for i in range(words.size):
            if choose_looks:
                distribution(params, state, q)
            choose(choose_params, choose_state, t + i, arm, q, side)
            count = settle(side[0])
            if count == 0:
                sums[n + _EMPTY] = t + i
                break
            if looks:
                if count == n:
                    distribution(params, state, q)
                else:
                    distribution_with(params, state, side[0], q)
            fill(adversary_params, adversary_state, t + i, arm, q, losses)
            ledger.tally(book, cumulative, losses)
            if looks:
                ledger.tally_expected(book, q, losses[0])
            if means_of(adversary_params, adversary_state, t + i, means) == 0.0:  # not known
                assign(means, losses[0])
            if count == n:
                arm, _, ask_info = act(params, state, words[i])
                loss = losses[0, arm]
                state = update(params, state, arm, ask_of(record_of(state, ask_info)), loss)
            else:
                arm, _, ask_info = act_with(params, state, words[i], side[0], note)
                loss = losses[0, arm]
                ask = SideAsk(ask_info, clock(state), note)
                state = update_with(params, state, arm, ask, loss)
            ledger.tally_played(book, loss)
            follow(book, sums, side[0], losses[0], means, arm)
        book[ARM] = arm
        pack(buffer, state)

    return Loops(spec.entry(run_with, nogil=True), entries(spec).scale)


@cache
def interpreted_loops(spec: BanditSpec) -> Loops:
    """Return the same as Python runs it."""
    return Loops(*map(quietly, loops(spec)))


def _ones(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    out[:] = 1.0


class _Always(Adversary):
    """All arms are available, for warm-ups."""

    fill = _ones


_codes: dict[BanditSpec, Code] = {}


def code_of(learner: Learner) -> Code:
    """Return what is compiled for the simulations of a learner with arms that sleep."""
    spec, cls, arguments = learner._variant, type(learner), learner.settings

    def warm_up() -> None:
        play = Play(1, np.ones(1, np.int64), np.random.SeedSequence(0), True, None)
        table = np.empty((8 + ROWS, 1))
        play_compiled(cls(**arguments, seed=0), _Always(), _Always(), play, 0, COMPILED, table)

    if spec not in _codes:
        name = f"simulations of {spec.name} with arms that sleep"
        _codes[spec] = Code(name, warm_up, spec.seconds_to_compile)
    return _codes[spec]


def _expected_of(adversary: Adversary) -> Pointer:
    return _means_of(type(adversary).expected or _unknown)


def parts_of(learner: Learner, adversary: Any, available: Any) -> list[Code]:
    """Return what is compiled for such a simulation; nothing, if it has functions in Python."""
    if not (isinstance(adversary, Adversary) and isinstance(available, Adversary)):
        return []
    kinds = [type(adversary), type(available)]
    pointers = [pointed(kind.rows(), kind.__name__) for kind in kinds]
    means = pointed(_expected_of(adversary), f"expected losses of {kinds[0].__name__}")
    return [code_of(learner), *pointers, means]


def _availability_key(play: Play, replicate: int) -> int:
    word = replicate_seed(play.root, replicate, AVAILABLE).generate_state(1, np.uint64)[0]
    return int(word) >> 11


def play_compiled(
    learner: Learner, adversary: Adversary, available: Adversary, play: Play, replicate: int,
    pace: Pace, table: Matrix,
) -> None:  # fmt: skip
    """Play one replicate against adversaries of kernels, and record it in ``table``."""
    n, spec, buffer = learner.n_arms, learner._variant, learner._fresh()
    bits = bit_generator(replicate_seed(play.root, replicate, CHOICES))
    params, state = adversary.begin(n, play.rounds, replicate_key(play.root, replicate))
    choice = available.begin(n, play.rounds, _availability_key(play, replicate))
    looks = adversary.looks or play.pseudo_regret
    book, cumulative, sums = new_book(), np.zeros(n), _new_sums(n)
    losses, side, q, means = np.empty((1, n)), np.empty((1, n)), np.empty(n), np.empty(n)
    note = np.empty(spec.note_size(learner._params))
    pointers = type(available).rows(), type(adversary).rows(), _expected_of(adversary)
    clipped = spec.packing.slot("clipped")

    def advance(run: Any, called: list[Any], words: Any) -> None:
        choose, fill, means_of = called
        run(
            buffer, words, t, choose, *choice, available.looks, fill, looks, params, state,
            means_of, book, cumulative, losses, q, side, note, means, sums,
        )  # fmt: skip

    t = 1
    for j, point in enumerate(play.points):
        while t <= point:
            compiled = pace.compiled
            words = bits.random_raw(int(min(_BLOCK if compiled else pace.rounds, point - t + 1)))
            if compiled:
                advance(loops(spec).run, [pointer() for pointer in pointers], words)
            else:
                mirrors = [interpreted_pointer(pointer) for pointer in pointers]
                with pace.interpreting(words.size):
                    advance(interpreted_loops(spec).run, mirrors, words)
            if sums[n + _EMPTY] > 0.0:
                raise _empty(int(sums[n + _EMPTY]))
            t += words.size
        scale = (loops if pace.compiled else interpreted_loops)(spec).scale(buffer)
        write_point(table[:8, j], book, cumulative, buffer[clipped], scale)
        table[8:, j] = sums[:n].max(), sums[n + _GAP]


def _new_sums(n: int) -> Vector:
    sums = np.zeros(n + _SLOTS)
    sums[n + _UNIT] = 1.0
    return sums


def _empty(t: int) -> ArgumentValueError:
    return ArgumentValueError(
        "available", f"must leave at least one arm in every round, and leaves none at t = {t}"
    )


def rows_of(
    adversary: Any, n: int, rounds: int, key: int
) -> Callable[[int, int, Vector, Any], Vector]:
    """Return an adversary, of kernels or a function, as a function, interpreted."""
    if not isinstance(adversary, Adversary):
        found: PythonAdversary = adversary
        return found
    params, state = adversary.begin(n, rounds, key)
    fill = interpreted_pointer(type(adversary).rows())

    def row(t: int, last_arm: int, q: Vector, rng: Any) -> Vector:
        out = np.empty((1, n))
        with np.errstate(all="ignore"):
            fill(params, state, t, last_arm, q, out)
        return out[0]

    return row


def play_python(
    learner: Learner, adversary: Any, available: Any, play: Play, replicate: int, pace: Pace,
    table: Matrix,
) -> None:  # fmt: skip
    """Play by ask and tell: something is a function in Python. Expected losses are not known."""
    n, root = learner.n_arms, play.root
    player = type(learner)(**learner.settings, seed=replicate_seed(root, replicate, CHOICES))
    player._watching = True  # who made the losses need not be warned of them
    player._heard = play.heard
    rngs = [
        np.random.Generator(PCG64(replicate_seed(root, replicate, branch)))
        for branch in (OUTSIDE, AVAILABLE)
    ]
    losses_of = rows_of(adversary, n, play.rounds, replicate_key(root, replicate))
    arms_of = rows_of(available, n, play.rounds, _availability_key(play, replicate))
    book, cumulative, sums = new_book(), np.zeros(n), _new_sums(n)
    last_arm, t = -1, 0
    for j, point in enumerate(play.points):
        for t in range(t + 1, int(point) + 1):  # noqa: B020 - continues where the last one ended
            given: Any = arms_of(t, last_arm, player.probabilities(), rngs[1])
            if isinstance(available, Adversary):
                given = np.asarray(given) > 0.5
                if not given.any():
                    raise _empty(t)
            mask = mask_of(given, n)
            q = player.probabilities(available=mask > 0.0)
            losses = np.array(losses_of(t, last_arm, q.copy(), rngs[0]), dtype=np.float64)
            if losses.shape != (n,) or not np.isfinite(losses).all():
                raise ValueError(
                    f"the adversary must return {n} finite losses, got {losses!r} at t = {t}"
                )
            choice = player.ask(available=mask > 0.0)
            last_arm = choice.arm
            _tally(book, cumulative, losses[None])
            _tally_expected(book, q, losses)
            _tally_played(book, losses[last_arm])
            _follow(book, sums, mask, losses, losses, last_arm)
            player.tell(choice, float(losses[last_arm]))
        write_point(table[:8, j], book, cumulative, player.clipped, player.scale)
        table[8:, j] = sums[:n].max(), sums[n + _GAP]


_sums = map(quietly, (ledger.tally, ledger.tally_expected, ledger.tally_played, follow))
_tally, _tally_expected, _tally_played, _follow = _sums
