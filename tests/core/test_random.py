"""Random numbers that are functions of where they stand."""

import math

import numpy as np

from loss_helpers import uniforms
from unbounded.core.random import stream_of, uniform_at


def test_they_are_those_of_splitmix64():
    for key, t in ((0, 1), (12345, 7), (2**53 - 1, 10**9)):
        stream = np.uint64(stream_of(key, t))
        assert [uniform_at(stream, k) for k in range(20)] == uniforms(key, t, 20).tolist()


def test_random_numbers_are_uniform_and_independent_of_order():
    def number(t, k):
        return uniform_at(np.uint64(stream_of(7.0, t)), k)

    numbers = np.array([number(t, k) for t in range(200) for k in range(50)])
    assert number(3, 4) == numbers[3 * 50 + 4]
    counts = np.histogram(numbers, bins=20, range=(0, 1))[0]
    chi2 = ((counts - 500.0) ** 2 / 500.0).sum()
    assert chi2 < 19 + 5 * math.sqrt(38)
    table = numbers.reshape(200, 50)
    for lagged in (np.corrcoef(table[:-1].ravel(), table[1:].ravel()),
                   np.corrcoef(table[:, :-1].ravel(), table[:, 1:].ravel())):  # fmt: skip
        assert abs(lagged[0, 1]) < 5 / 100
