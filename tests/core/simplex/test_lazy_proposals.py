"""Arms proposed by frozen weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbounded.core.simplex import lazy


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 1e-30, 1e-9, 1.0])),
        min_size=1,
        max_size=80,
    )
)
def test_the_alias_table_draws_by_weight(weights):
    n = len(weights)
    table = np.zeros(lazy.RECORD * n)
    unit = lazy.quantum(n)
    w = np.array([lazy.round_up(value, unit) for value in weights])
    assert (w >= np.minimum(weights, 1.0)).all()
    assert (w - weights <= unit).all()
    table[lazy.WEIGHT :: lazy.RECORD] = w
    total = lazy.tabulate(table)
    cut, alias = table[lazy.CUT :: lazy.RECORD], table[lazy.ALIAS :: lazy.RECORD]
    assert (cut >= 0.0).all()
    assert (cut <= 1.0).all()
    law = cut.copy()
    np.add.at(law, alias.astype(int), 1.0 - cut)
    np.testing.assert_allclose(law / n, w / w.sum(), rtol=1e-12, atol=1e-15)
    assert total == pytest.approx(w.sum(), rel=1e-14)


@pytest.mark.parametrize("n", [1, 7, 1000, 999_983, 2**31])
def test_below_is_uniform(n):
    words = np.random.PCG64(0).random_raw(3000)
    for word in words:
        assert lazy.below(word, n) == (int(word) * n) >> 64
    assert lazy.below(np.uint64(0), n) == 0
    assert lazy.below(np.uint64(2**64 - 1), n) == n - 1


def test_proposals_follow_the_weights():
    weights = np.array([0.5, 0.25, 0.125, 0.0625, 1.0, 0.03125])
    table = np.zeros(lazy.RECORD * weights.size)
    table[lazy.WEIGHT :: lazy.RECORD] = weights
    lazy.tabulate(table)
    words, draws = np.random.PCG64(3).random_raw(60_000), 60_000
    for j in (0, 3):  # any place of the stream will do
        found = np.bincount([lazy.propose(table, word, j) for word in words], minlength=6)
        expected = draws * weights / weights.sum()
        assert (np.abs(found - expected) <= 5.0 * np.sqrt(expected)).all()
