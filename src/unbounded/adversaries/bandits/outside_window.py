"""An adversary that places losses just outside of what the learner has seen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary
from unbounded.validation import checked_positive

_LOW, _HIGH, _LAST = 0, 1, 2  # slots of the state: the observed range, then last round's losses


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    margin, limit = params[0], params[1]
    n = out.size
    if last_arm >= 0:
        seen = state[_LAST + last_arm]
        state[_LOW] = min(state[_LOW], seen)
        state[_HIGH] = max(state[_HIGH], seen)
    low = state[_LOW] if state[_LOW] <= state[_HIGH] else 0.0
    high = state[_HIGH] if state[_LOW] <= state[_HIGH] else 0.0
    step = margin * max(high - low, 1e-3 * limit)
    likeliest = 0
    unlikeliest = 0
    for k in range(n):
        out[k] = 0.5 * (low + high)
        if q[k] > q[likeliest]:
            likeliest = k
        if q[k] <= q[unlikeliest]:
            unlikeliest = k
    out[unlikeliest] = max(-limit, low - step)
    if likeliest != unlikeliest:
        out[likeliest] = min(limit, high + step)
    for k in range(n):
        state[_LAST + k] = out[k]


class OutsideWindow(Adversary):
    """The likeliest arm just above the observed range, the least likely just below it.

    Sees the probabilities and the arms played, and so knows the window that a learner clips to:
    what is gained by the least likely arm is never seen whole. The other arms are in the middle.

    Parameters
    ----------
    margin : float
        How far outside, in units of the width of the window.
    limit : float
        Losses stay in [-limit, limit].
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.

    Examples
    --------
    >>> from unbounded import SCB, simulate
    >>> from unbounded.adversaries import OutsideWindow
    >>> learner = SCB(n_arms=4)
    >>> result = simulate(learner, OutsideWindow(), rounds=1000, seed=0)
    >>> bool(result.clipped[0, -1] > 10)
    True
    """

    fill = _fill
    looks = True

    def __init__(
        self,
        margin: float = 0.05,
        limit: float = 1.0,
        *,
        scale: float = 1.0,
        shift: float = 0.0,
    ) -> None:
        super().__init__(scale=scale, shift=shift)
        self.margin = checked_positive("margin", margin)
        self.limit = checked_positive("limit", limit)

    def params(self, n: int, rounds: int) -> Any:
        return self.margin, self.limit

    def state(self, n: int, rounds: int, key: int) -> Any:
        return np.concatenate([(math.inf, -math.inf), np.zeros(n)])
