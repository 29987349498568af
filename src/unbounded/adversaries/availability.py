"""Which arms are available: outages, at random, and by an adversary that watches.

They are adversaries that write 1 for an arm that is available and 0 for one that sleeps, for
``simulate(..., available=...)``.
"""

from __future__ import annotations

from typing import Any

from unbounded.core.random import stream_of, uniform_at
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary, adversary
from unbounded.validation import checked_share, checked_whole, setting


@kernel
def _fill_outage(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    out[:] = 1.0
    if params[1] < t <= params[2] and out.size > 1:
        out[int(params[0])] = 0.0


@adversary
class Outage(Adversary):
    """One arm is not available during one part of the rounds."""

    arm: int = setting(0, checked_whole, doc="Which one.")
    begin_at: float = setting(1 / 3, checked_share, doc="When it begins, as a share of the rounds.")
    length: float = setting(0.1, checked_share, doc="How long it lasts, as a share of the rounds.")

    fill = _fill_outage

    def params(self, n: int, rounds: int) -> Any:
        first = int(self.begin_at * rounds)
        return self.arm % n, first, first + self.length * rounds


@kernel
def _fill_at_random(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    stream = stream_of(state[0], t)
    some = False
    for k in range(out.size):
        out[k] = 1.0 if uniform_at(stream, k) < params[0] else 0.0
        some = some or out[k] > 0.0
    if not some:
        out[int(uniform_at(stream, out.size) * out.size)] = 1.0


@adversary
class AtRandom(Adversary):
    """Each arm is available with the same probability, independently; if none is, one is drawn."""

    share: float = setting(0.7, checked_share, doc="The probability.")

    fill = _fill_at_random

    def params(self, n: int, rounds: int) -> Any:
        return (self.share,)


_RECENT = 100


@kernel
def _fill_favorite(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    # state: the key, the last arms in a ring, and how often each occurs in it.
    ring, counts = state[1 : _RECENT + 1], state[_RECENT + 1 :]
    if last_arm >= 0:
        place = (t - 2) % _RECENT
        if t - 2 >= _RECENT:
            counts[int(ring[place])] -= 1.0
        ring[place] = last_arm
        counts[last_arm] += 1.0
    favorite = 0
    for k in range(out.size):
        out[k] = 1.0
        if counts[k] > counts[favorite]:
            favorite = k
    if out.size > 1 and uniform_at(stream_of(state[0], t), 0) < params[0]:
        out[favorite] = 0.0


@adversary
class FavoriteSleeps(Adversary):
    """The arm that was played most in the last 100 rounds is often not available."""

    share: float = setting(0.9, checked_share, doc="The probability that it is not.")

    fill = _fill_favorite
    looks = True

    def params(self, n: int, rounds: int) -> Any:
        return (self.share,)

    def state(self, n: int, rounds: int, key: int) -> Any:
        return (key, *[0.0] * (_RECENT + n))
