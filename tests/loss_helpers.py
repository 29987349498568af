"""Losses of adversaries, and their random numbers a second time, from the definitions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unbounded import worlds
from unbounded.adversaries import Adversary
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.simulation.adversary import MDPAdversary

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


def _scramble(z: int) -> int:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK
    return z ^ (z >> 31)


def uniforms(key: int, t: int, count: int) -> np.ndarray:
    """The first numbers of the stream (key, t): SplitMix64 in integers of Python."""
    stream = _scramble(_scramble(key * _GOLDEN & _MASK) + t & _MASK)
    words = [_scramble(stream + (k + 1) * _GOLDEN & _MASK) for k in range(count)]
    return np.array([(word >> 11) * 2.0**-53 for word in words])


# ------------------------------------------------------------------------------------- bandits


def losses_of(
    adversary: Adversary,
    n: int = 4,
    rounds: int = 2000,
    q: Any = None,
    arms: Any = None,
    key: int = 17,
) -> np.ndarray:
    """The losses of one play; ``q`` and ``arms`` are what the adversary gets to see."""
    params, state = adversary.begin(n, rounds, key)
    q = np.full(n, 1.0 / n) if q is None else np.asarray(q, dtype=float)
    out = np.empty((rounds, n))
    last = -1
    for t in range(1, rounds + 1):
        type(adversary).fill(params[2:], state, t, last, q, out[t - 1])
        last = 0 if arms is None else arms[t - 1]
    return params[0] * out + params[1]


def coins(key: int, t: int, n: int, best: int, gap: float) -> np.ndarray:
    """True where the coin of an arm falls on a loss."""
    return uniforms(key, t, n) < np.where(np.arange(n) == best, 0.5 - gap, 0.5)


# ---------------------------------------------------------------------------------------- MDPs

WORLDS = {
    "one layer": worlds.dirichlet([3], 2, np.random.default_rng(0)),
    "dirichlet": worlds.dirichlet([2, 3, 4], 3, np.random.default_rng(1)),
    "lock": worlds.combination_lock(4, 3, np.random.default_rng(2)),
    "hard": worlds.hard_to_reach([2, 3, 3], 2, np.random.default_rng(3), reach=0.01),
}


@dataclass(frozen=True)
class Case:
    """One episode, and the random numbers of its pairs (entry 0 is the dummy pair's)."""

    mdp: LayeredMDP
    T: int
    t: int
    q: np.ndarray
    mu: np.ndarray
    u: np.ndarray
    toss: float
    """The number after those of the pairs."""

    def per_state(self, flat: np.ndarray) -> np.ndarray:
        """``flat`` over pairs without the dummy, as a table (states of all layers, A)."""
        return flat[1:].reshape(-1, self.mdp.layers.n_actions)


def some_q(mdp: LayeredMDP, seed: int) -> np.ndarray:
    """Any measure with mass one in each layer; the flow does not matter to an adversary."""
    rng, A = np.random.default_rng(seed), mdp.layers.n_actions
    tables = [rng.dirichlet(np.ones(n * A)).reshape(n, A) for n in mdp.layers.sizes]
    return mdp.layers.pack_pairs(tables, first=1.0)


def filled(
    adversary: MDPAdversary, mdp: LayeredMDP, T: int, t: int, q: np.ndarray, key: int
) -> np.ndarray:
    """The losses of one episode."""
    out = np.full(mdp.layers.n_pairs, np.nan)
    params = adversary.begin(mdp, T, key)
    type(adversary).fill(params, t, q, mdp.layers.table, out)
    return out


def assert_losses(
    adversary: MDPAdversary, formula: Callable[[Case], np.ndarray], rtol: float = 0.0
) -> None:
    """Compare with the scale times ``formula`` in many episodes, early and late.

    Exactly, unless ``rtol`` is given; scales that are no powers of two round as they like.
    """
    for mdp, T, key in itertools.product(WORLDS.values(), (1, 10, 41), (0, 12345, 2**53 - 1)):
        X = mdp.layers.n_pairs
        mu = uniforms(key, 0, X)
        for t in range(1, T + 1):
            numbers = uniforms(key, t, X + 1)
            case = Case(mdp, T, t, some_q(mdp, t), mu, numbers[:X], float(numbers[X]))
            expected = adversary.scale * formula(case)
            expected[0] = 0.0
            got = filled(adversary, mdp, T, t, case.q, key)
            np.testing.assert_allclose(got, expected, rtol=rtol, atol=0.0)
