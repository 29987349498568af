"""Clipping at the m-th largest loss: against sorting, and at the ends of float64."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from unbounded.core.ceiling import (
    Ceiling,
    checked_lower,
    clip_above,
    clip_each_above,
    new_ceiling,
    new_ceilings,
    unit_factor,
)

TINY, HUGE = 5e-324, 1.7976931348623157e308
TINY_F = Fraction(TINY)
RANKS = {
    "1": lambda t: 1,
    "3": lambda t: 3,
    "7": lambda t: 7,
    "growing": lambda t: min(9, math.ceil(math.sqrt(t))),
}


def sequences(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    anything = 2.0 ** rng.integers(-1074, 1023, 300) * rng.uniform(-1.0, 1.0, 300)
    return [
        rng.pareto(0.7, 300),
        rng.normal(size=300) * 2.0 ** rng.integers(-3, 3, 300),
        rng.integers(0, 3, 300).astype(float),
        np.arange(300.0),
        anything,
        np.array([0.0, TINY, HUGE, TINY, 1.0, HUGE, -HUGE, 0.0, 1e-300] * 5),
    ]


@pytest.mark.parametrize("lower", [0.0, -1.5, 1e-310, -HUGE, 3e307])
@pytest.mark.parametrize("ranks", RANKS)
def test_what_is_clipped_and_where(ranks, lower):
    """Against sorting, in exact arithmetic; the clipped loss is right to rounding or underflow."""
    rank = RANKS[ranks]
    for losses in sequences(1):
        K = max(rank(t) for t in range(1, losses.size + 2))
        ceiling, told, largest = new_ceiling(lower, K), [], Fraction(0)
        for t, loss in enumerate(losses, 1):
            m = rank(t)
            at = sorted(told)[-m] if len(told) >= m else lower
            C = Fraction(at) - Fraction(lower)
            largest = max(largest, C)
            assert ceiling.at == at
            assert 0.0 <= ceiling.C <= ceiling.C_max < 1.0
            unit = Fraction(2) ** ceiling.e
            assert abs(Fraction(ceiling.C) * unit - C) <= C * Fraction(2.0**-52) + unit * TINY_F
            assert (ceiling.C_max >= 0.5) == (largest > 0)
            before = ceiling
            clipped_loss, clipped, ceiling = clip_above(ceiling, lower, rank(t + 1), float(loss))
            x = max(Fraction(loss), Fraction(lower)) - Fraction(lower)
            assert clipped == (x > C)
            assert 0.0 <= clipped_loss <= before.C
            exact = min(x, C)
            size = max(abs(Fraction(loss)), abs(Fraction(lower)), exact) if exact else exact
            assert (
                abs(Fraction(clipped_loss) * unit - exact)
                <= size * Fraction(2.0**-52) + unit * TINY_F
            )
            told.append(max(float(loss), lower))
            kept = sorted(told, reverse=True)[:K]
            assert ceiling.largest.tolist() == kept + [lower] * (K - len(kept))
            assert ceiling.e >= before.e or before.C_max == 0.0


@pytest.mark.parametrize("k", [-900, -1, 7, 900])
def test_powers_of_two_change_the_exponent_only(k):
    rng = np.random.default_rng(2)
    losses, lower = rng.pareto(1.0, 500), 0.25
    plain, scaled = new_ceiling(lower, 4), new_ceiling(math.ldexp(lower, k), 4)
    for loss in losses:
        was, was_scaled = plain, scaled
        value, clipped, plain = clip_above(plain, lower, 4, float(loss))
        found = clip_above(scaled, math.ldexp(lower, k), 4, math.ldexp(float(loss), k))
        scaled = found[2]
        assert (value, clipped) == found[:2]
        assert (plain.C, plain.C_max) == (scaled.C, scaled.C_max)
        assert scaled.e == plain.e + (k if plain.C_max > 0.0 else 0)
        assert unit_factor(was, plain) == unit_factor(was_scaled, scaled)


def test_units_follow_the_largest_threshold():
    """With a growing rank the threshold may fall; its unit does not."""
    ceiling = new_ceiling(0.0, 2)
    _, _, high = clip_above(ceiling, 0.0, 1, 12.0)
    assert (high.C, high.C_max, high.e) == (0.75, 0.75, 4)
    _, _, low = clip_above(high, 0.0, 2, 3.0)
    assert (low.at, low.C, low.C_max, low.e) == (3.0, 0.1875, 0.75, 4)
    assert unit_factor(high, low) == unit_factor(ceiling, high) == 1.0
    _, _, higher = clip_above(low, 0.0, 1, 100.0)
    assert unit_factor(low, higher) == 2.0**-3
    assert unit_factor(Ceiling(0.0, 0.0, 0.0, 0, high.largest), higher) == 1.0


@pytest.mark.parametrize("m", [1, 3])
def test_ceilings_of_layers_are_one_ceiling_each(m):
    lower = np.array([0.0, -1.5, -HUGE, 1e-310])
    rng = np.random.default_rng(4)
    together, alone = new_ceilings(lower, m), [new_ceiling(b, m) for b in lower]
    sizes = 2.0 ** rng.integers(-1074, 1023, (200, 4)).astype(float)
    for row in sizes * rng.uniform(-1.0, 1.0, (200, 4)):
        clipped, rose = clip_each_above(together, lower, row)
        found = [clip_above(c, b, m, x) for c, b, x in zip(alone, lower, row, strict=True)]
        assert together.l.tolist() == [l for l, _, _ in found]
        assert together.e_before.tolist() == [c.e for c in alone]
        assert clipped == sum(above for _, above, _ in found)
        assert rose == any(c.at != after.at for c, (_, _, after) in zip(alone, found, strict=True))
        alone = [after for _, _, after in found]
        assert together.at.tolist() == [c.at for c in alone]
        assert together.C.tolist() == [c.C for c in alone] == [c.C_max for c in alone]
        together.check_for(lower)
    together.e[1] += 1.0
    with pytest.raises(ValueError, match="threshold"):
        together.check_for(lower)


def test_the_lower_bound():
    assert checked_lower(None, None) == 0.0
    assert checked_lower(-3, None) == -3.0
    assert checked_lower(None, 2) == -2.0
    assert math.copysign(1.0, checked_lower(None, 0.0)) == 1.0
    with pytest.raises(TypeError, match="best_reward is -lower"):
        checked_lower(0.0, 0.0)
    with pytest.raises(ValueError, match="lower must be finite"):
        checked_lower(math.inf, None)
    with pytest.raises(TypeError, match="best_reward must be a real number"):
        checked_lower(None, "1")
