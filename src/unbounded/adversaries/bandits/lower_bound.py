"""The instance behind the lower bound: a gap too small to be found in time."""

from __future__ import annotations

import math
from typing import Any

from unbounded._jit import kernel
from unbounded.core.random import stream_of, uniform_at
from unbounded.play.adversary import Adversary


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    gap, best = params[0], int(state[1])
    stream = stream_of(state[0], t)
    for k in range(out.size):
        mean = 0.5 - gap if k == best else 0.5
        out[k] = 1.0 if uniform_at(stream, k) < mean else 0.0


@kernel
def _entry(params: Any, state: Any, t: int, k: int) -> float:
    mean = 0.5 - params[0] if k == int(state[1]) else 0.5
    return 1.0 if uniform_at(stream_of(state[0], t), k) < mean else 0.0


class LowerBound(Adversary):
    """Fair coins, except for one random arm that is better by about sqrt(n / T).

    No learner can have regret below a constant times sqrt(n T) on it (Auer et al. 2002).

    Parameters
    ----------
    factor : float
        The gap is ``min(1/4, factor * sqrt(n / rounds))``.
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.
    """

    fill = _fill
    entry = _entry
    reference = "Auer, Cesa-Bianchi, Freund & Schapire 2002, Theorem 5.1"

    def __init__(self, factor: float = 0.5, *, scale: float = 1.0, shift: float = 0.0) -> None:
        super().__init__(scale=scale, shift=shift)
        if not factor >= 0.0:
            raise ValueError(f"factor must be at least 0, got {factor!r}")
        self.factor = factor

    def params(self, n: int, rounds: int) -> Any:
        return (min(0.25, self.factor * math.sqrt(n / rounds)),)

    def state(self, n: int, rounds: int, key: int) -> Any:
        return key, key % n
