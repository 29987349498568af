"""Loss sequences for layered MDPs, oblivious and adaptive.

Every pair has a mean mu in [0, 1), drawn once. Losses of episode t are a function of (key, t,
pair), so that they do not depend on the learner unless the adversary looks at its occupancy
measure q_t. All kinds are one compiled kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unbounded._arguments import checked_option
from unbounded._jit import subroutine
from unbounded.core.arrays import (
    Integers,
    Vector,
)
from unbounded.core.occupancy.layout import (
    ACTIONS,
    PAIR,
    SIZE,
    Layers,
)
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.core.occupancy.policies import Markov, best_policy, occupancy
from unbounded.core.random import stream_of, uniform_at

KINDS = (
    "stochastic",  # mu/2 + noise/2
    "small gap",  # mu/20 + 19/20 noise
    "switch",  # mu becomes 1 - mu half-way
    "growth",  # stochastic, growing 2^20-fold
    "growth switch",
    "negative",  # stochastic minus 1
    "alternating",  # mu and 1 - mu in turn
    "good spike",  # from half-way, -64 w.p. 0.2 in the state that uniform play reaches least
    "bad spike",  # ... +64
    "lure",  # good spike; till then what leads there costs more than all the rest
    "quiet lure",  # the same, and all the rest costs exactly the layer's minimum, 0
    "punish",  # adaptive: 1 for the likeliest action of each state, else 0
    "hide",  # adaptive: -8 for the pair of least occupancy, else stochastic
)
_ADAPTIVE = ("punish", "hide")
_SPIKE, _CHANCE, _HIDDEN = 64.0, 0.2, 8.0
_GROWTH = 2.0**20
# Bounds on the absolute losses of the kinds where it is not 1.
_MOST = {
    **dict.fromkeys(("growth", "growth switch"), _GROWTH),
    **dict.fromkeys(("good spike", "bad spike", "lure", "quiet lure"), _SPIKE),
    "hide": _HIDDEN,
}
_PATH = 6  # where params tell which pairs lead to the spike

PythonMDPAdversary = Callable[
    [int, tuple[Integers, Integers] | None, list[Vector], np.random.Generator],
    Sequence[npt.ArrayLike],
]
"""``losses = adversary(t, last, q, rng)``; see `unbounded.simulate_mdp`."""


class MDPAdversary:
    """One of the loss sequences.

    Parameters
    ----------
    kind : str
        One of ``KINDS``.
    scale : float, default 1
        Multiplies every loss.

    Examples
    --------
    >>> MDPAdversary("switch").adaptive
    False
    """

    def __init__(self, kind: str = "stochastic", scale: float = 1.0) -> None:
        self._number = checked_option("kind", kind, KINDS)
        most = _MOST.get(kind, 1.0)
        if not math.isfinite(scale * most):
            raise ValueError(
                f"the largest loss, {most:g} times scale, must be finite; got scale={scale!r}"
            )
        self.kind = kind
        self.scale = float(scale)

    @property
    def adaptive(self) -> bool:
        """Whether the losses depend on the learner."""
        return self.kind in _ADAPTIVE

    def begin(self, mdp: LayeredMDP, episodes: int, key: int) -> Vector:
        """The ``params`` of `fill`; ``key`` is random, below 2^53."""
        h, s = hardest_state(mdp)
        first = mdp.layers.index(h, s)
        path = np.zeros(mdp.layers.n_pairs)
        path[first : first + mdp.layers.n_actions] = 1.0
        _, policy = best_policy(mdp, -path)
        before = mdp.layers.table[PAIR, h]
        path[1:before] = policy.pi[1:before]
        return np.concatenate([[self._number, self.scale, episodes, key, h, s], path])

    def __repr__(self) -> str:
        return f"MDPAdversary({self.kind!r}, scale={self.scale!r})"


def hardest_state(mdp: LayeredMDP) -> tuple[int, int]:
    """Layer 1..H and number of the state that uniform play reaches least often, but does."""
    q = occupancy(mdp, Markov.uniform(mdp.layers))
    mass = [table.sum(axis=1) for table in mdp.layers.unpack_pairs(q)]
    states = [(m[s], h, s) for h, m in enumerate(mass, start=1) for s in range(len(m)) if m[s] > 0]
    return min(states)[1:]


@subroutine
def fill(params: Vector, t: int, q: Vector, lay: Integers, out: Vector) -> None:
    """Losses of episode t = 1, 2, ... into ``out`` (pairs); out[0] = 0."""
    kind = int(params[0])
    T = params[2]
    means = stream_of(params[3], 0)
    noise = stream_of(params[3], t)
    late = 2 * t > T
    flip = (late and (kind == 2 or kind == 4)) or (kind == 6 and t % 2 == 0)
    factor = params[1]
    if kind == 3 or kind == 4:
        factor *= 2.0 ** (20.0 * t / T)
    weight = 0.05 if kind == 1 else 0.5
    shift = -1.0 if kind == 5 else 0.0
    out[0] = 0.0
    for p in range(1, out.size):
        mu = uniform_at(means, p)
        if flip:
            mu = 1.0 - mu
        out[p] = factor * (weight * mu + (1.0 - weight) * uniform_at(noise, p) + shift)
    if 7 <= kind <= 10:
        if kind >= 9:
            for p in range(1, out.size):
                if params[_PATH + p] > 0.0:
                    out[p] = factor * (0.5 + 0.5 * uniform_at(noise, p))
                else:
                    out[p] = 0.0 if kind == 10 else factor * (0.5 * uniform_at(noise, p))
        if late and uniform_at(noise, out.size) < _CHANCE:
            h = int(params[4])
            first = lay[PAIR, h] + int(params[5]) * lay[ACTIONS, h]
            for p in range(first, first + lay[ACTIONS, h]):
                out[p] = factor * (_SPIKE if kind == 8 else -_SPIKE)
    elif kind == 11:
        for h in range(1, lay.shape[1] - 1):
            A = lay[ACTIONS, h]
            for s in range(lay[SIZE, h]):
                p = lay[PAIR, h] + s * A
                likeliest = 0
                for a in range(1, A):
                    if q[p + a] > q[p + likeliest]:
                        likeliest = a
                for a in range(A):
                    out[p + a] = factor if a == likeliest else 0.0
    elif kind == 12:
        least = 1
        for p in range(2, out.size):
            if q[p] < q[least]:
                least = p
        out[least] = -_HIDDEN * factor


class PythonPlay(NamedTuple):
    """An adversary in Python, and what it sees of a play."""

    adversary: PythonMDPAdversary
    layers: Layers
    rng: np.random.Generator
    states: Integers  # of the last episode
    actions: Integers


def fill_python(play: PythonPlay, t: int, q: Vector, lay: Any, out: Vector) -> None:
    """As `fill`, by a call of the adversary; it gets copies of everything."""
    last = None if t == 1 else (play.states.copy(), play.actions.copy())
    given = play.adversary(t, last, play.layers.unpack_pairs(q.copy()), play.rng)
    shapes = [(n, play.layers.n_actions) for n in play.layers.sizes]
    try:
        tables = [np.asarray(table, dtype=np.float64) for table in given]
    except (TypeError, ValueError):
        tables = []
    if [table.shape for table in tables] != shapes:
        got = [table.shape for table in tables] or repr(given)
        raise ValueError(
            f"the adversary must return one table of losses a layer, of shapes {shapes}; got "
            f"{got} at t = {t}"
        )
    for h, table in enumerate(tables):
        if not np.all(np.isfinite(table)):
            raise ValueError(
                f"the adversary must return finite losses, got {table.tolist()} in layer {h} at "
                f"t = {t}"
            )
    out[:] = play.layers.pack_pairs(tables)
