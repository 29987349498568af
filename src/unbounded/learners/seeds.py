"""Seeds: what learners, adversaries and replicates draw their random words from.

A seed is the root of a tree. Learners draw from a branch of their own, so that an environment made
with the same seed is independent of their choices; each replicate of a simulation has one branch
for the learner's choices and one for everything outside of the learner.
"""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence

from unbounded.validation import ArgumentTypeError, checked_count, shown

Seed = int | SeedSequence | Generator | None

CHOICES, OUTSIDE, AVAILABLE = range(3)  # the branches of a replicate
_LEARNERS = 0x5CB  # the branch that every learner draws from


def root_of(seed: Seed) -> SeedSequence:
    """Return the root of the tree of ``seed``; from a generator it is drawn."""
    if seed is None or isinstance(seed, SeedSequence):
        return seed or SeedSequence()
    if isinstance(seed, Generator):
        return SeedSequence(seed.integers(2**32, size=4, dtype=np.uint32).tolist())
    return SeedSequence(checked_seed(seed))


def checked_seed(seed: Seed) -> int:
    """Return a seed that is an integer."""
    if not isinstance(seed, SupportsIndex):
        kinds = "an int, a SeedSequence, a numpy.random.Generator or None"
        raise ArgumentTypeError("seed", f"must be {kinds}, got {shown(seed)}")
    return checked_count("seed", seed, least=0, below=None)


def generator_of(seed: Seed) -> Generator:
    """Return the generator of an environment: that one, or what NumPy makes of a seed."""
    if seed is None or isinstance(seed, SeedSequence | Generator):
        return np.random.default_rng(seed)
    return np.random.default_rng(checked_seed(seed))


def bit_generator(seed: Seed) -> PCG64:
    """Return the generator of a learner's choices.

    It is not ``PCG64(seed)``: an environment that draws its losses from
    ``np.random.default_rng(seed)`` with the learner's seed would otherwise be correlated with the
    choices, and a good arm could look bad.
    """
    root = root_of(seed)
    return PCG64(SeedSequence(root.entropy, spawn_key=(*root.spawn_key, _LEARNERS)))


def replicate_seed(root: SeedSequence, replicate: int, branch: int) -> SeedSequence:
    """Return the seed of one ``branch`` of a replicate: CHOICES, OUTSIDE or AVAILABLE."""
    return SeedSequence(root.entropy, spawn_key=(*root.spawn_key, replicate, branch))


def replicate_key(root: SeedSequence, replicate: int) -> int:
    """Return what an adversary's losses are a function of: an integer below 2^53."""
    word = replicate_seed(root, replicate, OUTSIDE).generate_state(1, np.uint64)[0]
    return int(word) >> 11
