"""The book of a play, against exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from unbounded.core.simplex.sampling import LANES
from unbounded.simulation.ledger import (
    EXPECTED,
    HIGH,
    LOW,
    PLAYED,
    UNIT,
    new_book,
    tally,
    tally_expected,
    tally_played,
    tally_some,
)

LARGEST = np.finfo(float).max


def exact(values):
    return sum((Fraction(float(x)) for x in values), Fraction(0))


def close(value, unit, expected, size):
    """Within rounding of the exact number; ``size`` is that of the terms."""
    error = Fraction(float(value)) / Fraction(float(unit)) - expected
    assert abs(error) <= size * Fraction(2) ** -40


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, LANES - 1, LANES, LANES + 1, 3 * LANES + 5])
@pytest.mark.parametrize("rows", [1, 3])
def test_extremes_and_sums(n, rows):
    """Wherever the extremes stand."""
    rng = np.random.default_rng(n)
    for where in range(n):
        losses = rng.uniform(-1.0, 1.0, size=(rows, n))
        low, high = losses.copy(), losses.copy()
        low[rows - 1, where], high[0, where] = -3.0, 5.0
        for table in (low, high):
            book, cumulative = new_book(), np.zeros(n)
            tally(book, cumulative, table)
            assert (book[LOW], book[HIGH]) == (table.min(), table.max())
            assert np.array_equal(cumulative, np.add.accumulate(table, axis=0)[-1])
            assert book[UNIT] == 1.0
            tally(book, cumulative, 0.1 * losses)  # the extremes are over all rounds
            both = np.concatenate([table, 0.1 * losses])
            assert (book[LOW], book[HIGH]) == (both.min(), both.max())


@pytest.mark.parametrize("n", [1, 5, LANES, 2 * LANES + 3])
def test_the_expected_loss(n):
    """Half of it, so that a q that sums to 1 + 1e-16 does not overflow."""
    rng = np.random.default_rng(n)
    book, total = new_book(), Fraction(0)
    for _ in range(5):
        q, losses = rng.dirichlet(np.ones(n)), rng.normal(size=n)
        tally_expected(book, q, losses)
        total += exact(Fraction(a) * Fraction(b) for a, b in zip(q, losses, strict=True))
        close(2 * book[EXPECTED], 1.0, total, 10)
    book = new_book()
    q = np.full(n, (1.0 + 4e-16) / n)
    tally(book, np.zeros(n), np.full((1, n), LARGEST))
    tally_expected(book, q, np.full(n, LARGEST))
    assert np.isfinite(2 * book[EXPECTED])
    close(2 * book[EXPECTED], book[UNIT], Fraction(LARGEST), Fraction(LARGEST))


def test_the_unit_moves_when_losses_become_huge():
    """Everything that was entered before is rescaled; sums beyond float64 are kept."""
    rng = np.random.default_rng(0)
    losses = [rng.normal(size=(1, 3)) * 2.0**890 for _ in range(3)]
    losses += [np.array([[LARGEST, -LARGEST, 2.0**901]])] * 4
    book, cumulative, q = new_book(), np.zeros(3), np.array([0.5, 0.25, 0.25])
    sums, played, expected = [Fraction(0)] * 3, Fraction(0), Fraction(0)
    for t, row in enumerate(losses):
        tally(book, cumulative, row)
        tally_expected(book, q, row[0])
        tally_played(book, row[0, 0])
        assert book[UNIT] == (1.0 if t < 3 else 2.0**-200)
        sums = [a + Fraction(float(b)) for a, b in zip(sums, row[0], strict=True)]
        played += Fraction(float(row[0, 0]))
        expected += exact(Fraction(a) * Fraction(float(b)) for a, b in zip(q, row[0], strict=True))
        size = Fraction(float(np.abs(row).max())) * (t + 1)
        for value, total in zip(cumulative, sums, strict=True):
            close(value, book[UNIT], total, size)
        close(book[PLAYED], book[UNIT], played, size)
        close(2 * book[EXPECTED], book[UNIT], expected, size)
        if t == 2:  # what the small unit must not lose
            before = book[PLAYED], 2 * book[EXPECTED], cumulative.copy()
    assert played > Fraction(LARGEST)
    book, cumulative = new_book(), np.zeros(3)
    book[PLAYED], book[EXPECTED] = before[0], before[1] / 2
    cumulative[:] = before[2]
    tally(book, cumulative, np.array([[2.0**901, 0.0, 0.0]]))
    assert book[PLAYED] == before[0] * 2.0**-200
    assert 2 * book[EXPECTED] == before[1] * 2.0**-200
    assert cumulative[1] == before[2][1] * 2.0**-200


@pytest.mark.parametrize("huge", [2.0**901, -(2.0**901)])
def test_a_few_arms(huge):
    rng = np.random.default_rng(1)
    book, cumulative, sums = new_book(), np.zeros(3), [Fraction(0)] * 3
    rows = [*rng.normal(size=(20, 3)), np.array([0.0, huge, 1.0]), *rng.normal(size=(3, 3))]
    for t, row in enumerate(rows):
        tally_some(book, cumulative, row)
        sums = [a + Fraction(float(b)) for a, b in zip(sums, row, strict=True)]
        seen = np.concatenate(rows[: t + 1])
        assert (book[LOW], book[HIGH]) == (seen.min(), seen.max())
        assert book[UNIT] == (1.0 if t < 20 else 2.0**-200)
        size = Fraction(float(np.abs(seen).max())) * (t + 1)
        for value, total in zip(cumulative, sums, strict=True):
            close(value, book[UNIT], total, size)


def test_a_few_arms_as_all_arms():
    rng = np.random.default_rng(2)
    some, every = new_book(), new_book()
    a, b = np.zeros(4), np.zeros(4)
    for row in rng.normal(size=(50, 4)):
        tally_some(some, a, row)
        tally(every, b, row[None])
    assert np.array_equal(a, b)
    assert np.array_equal(some, every)
