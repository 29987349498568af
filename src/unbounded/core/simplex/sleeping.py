"""Arms that sleep: the distribution over those that are available, and what an ask notes of it.

Of an ask in which only the arms A were available, the *note* has a flag for each arm, 1 if it
slept; p(A); and the sum of p_i^(3/2) over the sleepers (docs/theory/sleeping.md). Everything here
takes O(n).
"""

from __future__ import annotations

import math
from typing import Any

from unbounded.core.arrays import Vector
from unbounded.core.simplex.sampling import invert, uniform
from unbounded.jit.kernel import kernel

_VANISHING = 2.0**-500  # of p(A): the quotients would be rounding errors


@kernel
def restrict(side: Vector, q: Vector) -> tuple[float, float]:
    """Restrict ``q`` to the available arms, where ``side`` is 1.

    Return what they had together, and the sum of q^(3/2) over the others. Where all of them have
    vanished, they become equal.
    """
    awake = asleep = 0.0
    count = 0
    for k in range(q.size):
        if side[k] == 0.0:
            asleep += q[k] * math.sqrt(q[k])
            q[k] = 0.0
        else:
            awake += q[k]
            count += 1
    for k in range(q.size):
        if side[k] != 0.0:
            q[k] = q[k] / awake if awake > _VANISHING else 1.0 / count
    return awake, asleep


@kernel
def draw_noted(side: Vector, note: Vector, word: int) -> tuple[int, float]:
    """Draw an available arm from the distribution that ``note`` begins with, and take the note.

    Return the arm and its probability among the available ones.
    """
    n = note.size - 2
    q = note[:n]
    awake, asleep = restrict(side, q)
    arm = invert(q, 0, 1, uniform(word))
    q_k = q[arm]
    note[n] = min(1.0, awake)
    note[n + 1] = min(1.0, asleep)
    for k in range(n):
        q[k] = 1.0 - side[k]
    return arm, q_k


@kernel
def note_best(side: Vector, note: Vector, arm: int) -> tuple[int, float]:
    """Take the note of an ask that plays ``arm``, and return that and its probability, 1."""
    n = note.size - 2
    for k in range(n):
        note[k] = 1.0 - side[k]
    note[n], note[n + 1] = 1.0, 0.0
    return arm, 1.0


@kernel
def square(l: float, n: int, p_k_gamma: float, note: Any) -> float:
    """Return Z_t of tuning B, at least sum_i p_i^(3/2) x_i^2 / sqrt(n) for the estimates x.

    For the arm that was played x = l / p_k_gamma, for sleepers x = l. Without sleepers ``note`` is
    None.
    """
    if note is None:
        return l * l / math.sqrt(n * p_k_gamma)
    awake, asleep = note[note.size - 2], note[note.size - 1]
    return l * l * (awake * math.sqrt(awake / p_k_gamma) + asleep) / math.sqrt(n)
