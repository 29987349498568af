"""Weights that change one at a time: sums, draws and least estimates, against all arms at once."""

from __future__ import annotations

import numpy as np
import pytest

from unbounded.core.simplex import tree as trees
from unbounded.jit.interpreter import interpreted

SIZES = [2, 3, 5, 64, 100, 129]


def planted(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A tree with random weights, of which some are 0, and estimates."""
    rng = np.random.default_rng(seed)
    tree, M = np.zeros(trees.TREE * n), rng.normal(size=n)
    tree[n : 2 * n] = np.floor(trees.heaviest(n) * rng.random(n) ** 30) * (rng.random(n) < 0.8)
    tree[n] = trees.heaviest(n)
    interpreted(trees.grow)(tree, M)
    return tree, M


@pytest.mark.parametrize("n", SIZES)
def test_sums_and_least_estimates_follow_every_change(n):
    tree, M = planted(n, n)
    rng = np.random.default_rng(1)
    for _ in range(200):
        k = int(rng.integers(n))
        weight = float(rng.integers(0, int(trees.heaviest(n)), endpoint=True))
        interpreted(trees.weigh)(tree, n, k, weight)
        M[k] += rng.standard_cauchy()
        interpreted(trees.follow)(tree, M, k)
        assert tree[1] == sum(int(w) for w in tree[n : 2 * n]) < 2**53
        assert interpreted(trees.lowest)(tree, n) == M.min()
    trees.check_tree(tree, M)


@pytest.mark.parametrize("n", SIZES)
def test_every_arm_has_as_many_places_as_its_weight(n):
    """The places of an arm begin and end where the sums of the weights before it say so."""
    tree, _ = planted(n, n)
    total = int(tree[1])
    order, pick = [], interpreted(trees.pick)
    place = 0
    while place < total:
        word = -(-(place << 64) // total)  # the least word whose share is this place
        k = pick(tree, n, np.uint64(word))
        end = place + int(tree[n + k])
        last = -(-(end << 64) // total) - 1
        assert pick(tree, n, np.uint64(last)) == k
        order.append(k)
        place = end
    assert sorted(order) == np.flatnonzero(tree[n : 2 * n]).tolist()


def test_the_share_of_a_word_is_exact():
    rng = np.random.default_rng(0)
    words = [0, 1, 2**64 - 1, 2**32, 2**32 - 1, *rng.integers(2**64, size=200, dtype=np.uint64)]
    for total in (1, 3, 2**32, 2**52 + 1, 2**53 - 1, int(rng.integers(2**53))):
        for word in words:
            share = interpreted(trees._share)(np.uint64(word), np.uint64(total))
            assert int(share) == int(word) * total >> 64


@pytest.mark.parametrize("slot", [1, 5, 8 + 3, 16 + 1, 16 + 7])
def test_a_tree_that_is_not_one_is_rejected(slot):
    tree, M = planted(8, 3)
    trees.check_tree(tree, M)
    tree[slot] += 1.0
    with pytest.raises(ValueError, match="there are no such"):
        trees.check_tree(tree, M)
