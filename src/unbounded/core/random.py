"""Random numbers as a function of (key, t, k): the same in whatever order they are asked for."""

from __future__ import annotations

import numpy as np

from unbounded.jit.kernel import kernel

Word = np.uint64

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@kernel
def scramble(word: Word) -> Word:
    """The finalizer of SplitMix64 (Steele, Lea & Flood 2014): a bijection of 64-bit words."""
    z = np.uint64(word)
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@kernel
def stream_of(key: float, t: int) -> Word:
    """Return the start of the stream of round ``t``; ``key`` is an integer below 2^53."""
    return scramble(scramble(np.uint64(key) * _GOLDEN) + np.uint64(t))


@kernel
def word_at(stream: Word, k: int) -> Word:
    """Return the ``k``-th word of a stream: 64 random bits."""
    return scramble(np.uint64(stream) + np.uint64(k + 1) * _GOLDEN)


@kernel
def uniform_at(stream: Word, k: int) -> float:
    """Return the ``k``-th number of a stream, uniform in [0, 1)."""
    return float(word_at(stream, k) >> np.uint64(11)) * 2.0**-53
