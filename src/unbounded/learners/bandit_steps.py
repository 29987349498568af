"""What a bandit learner runs: an algorithm's steps over its buffer."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from unbounded.jit.kernel import borrowed, words
from unbounded.learners.spec import ASKED, DRAWN, FIRST_WORD, RING, TOLD, WORDS, BanditSpec


class Entries(NamedTuple):
    """An algorithm's steps over its buffer, compiled."""

    ask: Any  # buffer -> arm (-1: no random words left), probability, memo, number
    tell: Any  # buffer, arm, memo, number, loss
    look: Any  # buffer, q
    scale: Any  # buffer -> float
    ask_and_count: Any  # as ask, and then the algorithm's ``asked``


@cache
def entries(spec: BanditSpec) -> Entries:
    """The compiled entries of an algorithm; made on first use."""
    params_of, state_of, pack = spec.packing.compiled
    act, update, distribution, scale_of = spec.act, spec.update, spec.distribution, spec.scale
    asked_of: Any = spec.asked

    def ask(owner: Any) -> tuple[int, float, float, int]:
        buffer = borrowed(owner)
        asked = int(buffer[ASKED])
        if buffer[ASKED] == buffer[DRAWN]:
            return -1, 0.0, 0.0, asked
        buffer[ASKED] += 1.0
        word = words(buffer)[FIRST_WORD + asked % WORDS]
        arm, probability, memo = act(params_of(buffer), state_of(buffer), word)
        return arm, probability, memo, asked

    def tell(owner: Any, arm: int, memo: float, number: int, loss: Any) -> None:
        buffer = borrowed(owner)
        pack(buffer, update(params_of(buffer), state_of(buffer), arm, memo, loss))
        buffer[TOLD + number % RING] = number  # with the update, whoever is interrupted

    def look(owner: Any, q: Any) -> None:
        buffer = borrowed(owner)
        distribution(params_of(buffer), state_of(buffer), q)

    def scale(buffer: Any) -> float:
        return scale_of(params_of(buffer), state_of(buffer))

    ask_only = spec.entry(ask)

    def ask_and_count(owner: Any) -> tuple[int, float, float, int]:
        found = ask_only(owner)
        if found[0] >= 0:
            buffer = borrowed(owner)
            pack(buffer, asked_of(params_of(buffer), state_of(buffer)))
        return found

    others = (spec.entry(step) for step in (tell, look, scale, ask_and_count))
    return Entries(ask_only, *others)
