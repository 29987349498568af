"""Many arms with estimates of either sign: the same law as that of a solve over all of them."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from scipy import stats

from unbounded.core.simplex import lazy, signed_arms, signed_picture
from unbounded.core.simplex.signed_arms import Arms

BETA = 0.1


@pytest.fixture
def few_and_many(monkeypatch):
    """Makes arms that are all touched, and arms that are not."""

    def new(n: int) -> tuple[Arms, Arms]:
        both = []
        for least in (n + 1, 1):
            monkeypatch.setattr(signed_arms, "MANY_ARMS", least)
            both.append(signed_arms.new_arms(n))
        return both[0], both[1]

    return new


def law_of(arms: Arms) -> np.ndarray:
    q = np.empty(arms.M.size)
    signed_arms.fill(arms, q)
    return q


def solved(M: np.ndarray, S: float) -> np.ndarray:
    """q from the estimates alone, in extended precision."""
    m = (M - M.min()).astype(np.longdouble) / (2.0 * np.longdouble(S))
    low, high = np.longdouble(1.0), np.sqrt(np.longdouble(M.size))
    for _ in range(90):
        y = 0.5 * (low + high)
        if ((m + y) ** -2).sum() > 1.0:
            low = y
        else:
            high = y
    p = (m + low) ** -2
    return ((1.0 - BETA) * p / p.sum() + BETA / M.size).astype(np.float64)


def changed(arms: Arms, k: int, x: float) -> tuple[Arms, float]:
    """The arms after one round, and the gap in it."""
    arms, gap = signed_arms.add(arms, k, x)
    return signed_arms.solve(arms, arms.S + gap / (4.0 * math.sqrt(arms.M.size)), BETA), gap


def anchors(arms: Arms) -> int:
    return int(arms.picture[lazy.ANCHORS])


def leaders(arms: Arms) -> int:
    return int(arms.picture[signed_picture.COUNT])


# ---------------------------------------------------------------------------------- exactness

STORIES = {
    "small": lambda rng, n, t, S: rng.normal() * S,
    "of the size of a loss": lambda rng, n, t, S: rng.choice([-1.0, 1.0]) * math.sqrt(n),
    "falling": lambda rng, n, t, S: -rng.exponential() * S * math.sqrt(n),
    "rising": lambda rng, n, t, S: rng.exponential() * S * math.sqrt(n),
    "heavy tails": lambda rng, n, t, S: rng.standard_cauchy() ** 3 * S,
    "all sizes": lambda rng, n, t, S: rng.normal() * 10.0 ** rng.uniform(-20, 20) * S,
    "one high rise": lambda rng, n, t, S: 1e250 * S if t == 50 else rng.normal() * S,
    "one deep fall": lambda rng, n, t, S: -1e12 * S if t % 100 == 50 else rng.normal() * S,
    "nothing": lambda rng, n, t, S: 0.0 if t % 2 else rng.normal(),
}


@pytest.mark.parametrize("add", [signed_arms.add, signed_arms.add_fading])
@pytest.mark.parametrize("whom", ["drawn", "likeliest", "least likely", "three"])
@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("n", [2, 30, 200])
def test_many_arms_are_what_few_arms_are(few_and_many, n, story, whom, add):
    """Gaps and probabilities, on the same changes; S is that of the many."""
    few, many = few_and_many(n)
    rng = np.random.default_rng(n)
    few, many = changed(few, 0, 1.0)[0], changed(many, 0, 1.0)[0]
    q = law_of(many)
    for t in range(250):
        k = int(rng.choice(n, p=q / q.sum()))
        if whom == "likeliest":
            k = int(q.argmax())
        elif whom == "least likely":
            k = int(q.argmin())
        elif whom == "three":
            k = int(rng.integers(3)) % n
        x = float(STORIES[story](rng, n, t, many.S))
        few, expected = signed_arms.add(few, k, x)
        many, gap = add(many, k, x)
        assert gap == pytest.approx(expected, rel=1e-9, abs=1e-13 * many.S)
        if many.S > 1e30:  # as callers see to it
            few, many = (signed_arms.rescale(arms, 2.0**-99) for arms in (few, many))
            gap *= 2.0**-99
        S = many.S + gap / (4.0 * math.sqrt(n))
        few, many = signed_arms.solve(few, S, BETA), signed_arms.solve(many, S, BETA)
        q = law_of(many)
        np.testing.assert_allclose(q, law_of(few), rtol=1e-10)
    np.testing.assert_allclose(q, solved(many.M, many.S), rtol=1e-11)
    many.check_for(BETA)
    assert anchors(many) < (250 if add is signed_arms.add else 500)


def test_a_term_left_out_would_be_noticed(few_and_many):
    """The control: without its leaders, or with the moments of another arm, q is another one."""
    _, arms = few_and_many(200)
    rng = np.random.default_rng(4)
    for t in range(300):
        arms, _ = changed(arms, int(rng.integers(200)) if t else 0, float(rng.normal() * 20.0))
    assert leaders(arms) > 0
    for slot, value in ((signed_picture.COUNT, leaders(arms) - 1.0), (lazy.MOMENTS, 1.001)):
        spoilt = arms._replace(picture=arms.picture.copy())
        spoilt.picture[slot] = value if slot == signed_picture.COUNT else value * arms.picture[slot]
        known = anchors(spoilt)
        spoilt = signed_arms.solve(spoilt, arms.S, BETA)
        assert anchors(spoilt) == known
        assert abs(law_of(spoilt) / solved(arms.M, arms.S) - 1.0).max() > 1e-6
    np.testing.assert_allclose(law_of(arms), solved(arms.M, arms.S), rtol=1e-11)


# ------------------------------------------------------------------------- when a picture is taken


def settled(few_and_many, n: int = 300) -> Arms:
    """Many arms, all about equal, and a picture of now."""
    _, arms = few_and_many(n)
    arms.M[:] = np.random.default_rng(0).random(n)
    arms = signed_arms.solve(arms, 10.0, BETA)
    assert anchors(arms) == 1
    return arms


def test_small_changes_take_no_picture(few_and_many):
    arms = settled(few_and_many)
    rng = np.random.default_rng(1)
    for _ in range(500):
        arms, _ = signed_arms.add(arms, int(rng.integers(300)), float(rng.normal()))
        arms = signed_arms.solve(arms, 10.0, BETA)
    assert anchors(arms) == 1


def test_too_many_leaders_take_one(few_and_many):
    arms = settled(few_and_many)
    for k in range(signed_picture.LEADERS):
        arms, _ = signed_arms.add(arms, k, -100.0)
        arms = signed_arms.solve(arms, 10.0, BETA)
        assert (leaders(arms), anchors(arms)) == (k + 1, 1)
    arms, _ = signed_arms.add(arms, signed_picture.LEADERS, -100.0)
    arms = signed_arms.solve(arms, 10.0, BETA)
    assert anchors(arms) == 2
    np.testing.assert_allclose(law_of(arms), solved(arms.M, arms.S), rtol=1e-11)


@pytest.mark.parametrize(
    ("change", "rate"),
    [
        ((5, -1e3), 10.0),  # one that comes to lead alone
        ((5, -1e30), 10.0),  # one that falls so far that S would be lost beside it
        ((5, 0.0), 21.0),  # S has more than doubled
    ],
)
def test_large_changes_take_one(few_and_many, change, rate):
    arms = settled(few_and_many)
    arms, _ = signed_arms.add(arms, *change)
    arms = signed_arms.solve(arms, rate, BETA)
    assert anchors(arms) == 2
    arms.check_for(BETA)
    np.testing.assert_allclose(law_of(arms), solved(arms.M, arms.S), rtol=1e-11)


def test_rounding_errors_take_one(few_and_many):
    """As soon as they might be seen; here by a count that says so."""
    arms = settled(few_and_many)
    arms.picture[lazy.CHANGES] = 65_534.5 * arms.picture[lazy.MOMENTS]
    for known in (1, 2):
        arms, _ = signed_arms.add(arms, 0, 0.0)
        arms = signed_arms.solve(arms, 10.0, BETA)
        assert anchors(arms) == known


def test_leaders_that_fall_on_and_on_stay_exact(few_and_many):
    """A few arms far ahead move x much further than their distance to it, without a picture."""
    arms = settled(few_and_many)
    for k in range(3):
        arms, _ = signed_arms.add(arms, k, -1e6)
    arms = signed_arms.solve(arms, 10.0, BETA)
    known = anchors(arms)
    for t in range(200):
        arms, _ = signed_arms.add(arms, t % 3, -4.0)
        arms = signed_arms.solve(arms, 10.0, BETA)
    assert anchors(arms) == known
    np.testing.assert_allclose(law_of(arms), solved(arms.M, arms.S), rtol=1e-11)


@pytest.mark.parametrize("factor", [2.0**-60, 2.0**9])
def test_another_unit_changes_nothing(few_and_many, factor):
    one, other = settled(few_and_many), settled(few_and_many)
    rng = np.random.default_rng(1)
    other = signed_arms.rescale(other, factor)
    for _ in range(200):
        k, x = int(rng.integers(300)), float(rng.normal() * 900.0)
        one, gap = changed(one, k, x)
        other, scaled = changed(other, k, x * factor)
        assert scaled == gap * factor
    assert np.array_equal(law_of(one), law_of(other))
    assert anchors(one) == anchors(other) > 1


# ------------------------------------------------------------------------------------ the law


@numba.njit
def count(arms, words, found):
    for word in words:
        found[signed_arms.draw(arms, word)[0]] += 1


def p_value(found: np.ndarray, q: np.ndarray) -> float:
    """Chi-square, with arms of small expectation put together."""
    expected = q * found.sum()
    small = expected < 10.0
    groups, wanted = found[~small], expected[~small]
    if expected[small].sum() >= 10.0:
        groups = np.append(groups, found[small].sum())
        wanted = np.append(wanted, expected[small].sum())
    return float(stats.chisquare(groups, wanted * (groups.sum() / wanted.sum())).pvalue)


def test_arms_are_drawn_from_q_and_a_wrong_law_would_be_noticed(few_and_many):
    """With leaders and without, x below the center and above it, before a picture and after."""
    _, arms = few_and_many(150)
    rng, seen = np.random.default_rng(3), set()
    for t in range(600):
        size = 3.0 if t < 300 else 30.0
        arms, _ = changed(arms, int(rng.integers(150)) if t else 0, float(rng.normal() * size))
        z = (arms.picture[signed_picture.X] - arms.picture[signed_picture.CENTER]) / arms.picture[
            signed_picture.GAP
        ]
        state = (leaders(arms) > 0, bool(z > 0.05), bool(z < -0.05))
        if state in seen:
            continue
        seen.add(state)
        found, q = np.zeros(150, dtype=np.int64), solved(arms.M, arms.S)
        count(arms, np.random.PCG64(t).random_raw(400_000), found)
        assert p_value(found, q) > 1e-3
        wrong = q * np.where(np.arange(150) % 2, 1.05, 1.0)
        assert p_value(found, wrong / wrong.sum()) < 1e-4
    assert {state[0] for state in seen} == {True, False}
    assert {state[1:] for state in seen} == {(True, False), (False, True), (False, False)}


def test_the_probability_of_an_arm_is_told_with_it(few_and_many):
    _, arms = few_and_many(90)
    for t in range(60):
        arms, _ = changed(arms, t % 90, float((-1) ** t * (10.0 + t)))
        q = law_of(arms)
        for word in np.random.PCG64(t).random_raw(10):
            k, q_k = signed_arms.draw(arms, word)
            assert q_k == q[k] > 0.0


# ------------------------------------------------------------------------------- damaged pictures


def is_refused(arms: Arms, beta: float) -> bool:
    try:
        arms.check_for(beta)
    except ValueError:
        return True
    return False


def test_what_cannot_be_is_rejected(few_and_many):
    """Every number of the picture that a draw or a solve uses, the estimates and the tree."""
    _, arms = few_and_many(130)
    rng = np.random.default_rng(6)
    for t in range(300):
        arms, _ = changed(arms, int(rng.integers(130)) if t else 0, float(rng.normal() * 20.0))
    count = leaders(arms)
    assert count > 1
    arms.check_for(BETA)
    kept = {
        lazy.CHANGES,
        lazy.ANCHORS,
        signed_picture.S_S,
        signed_picture.X_S,
    }  # of which many are possible
    kept |= set(range(lazy.MOMENTS + 6, lazy.MOMENTS + 24))  # high powers: next to nothing here
    slots = (
        set(range(signed_picture.LIST)) - kept - set(range(lazy.MOMENTS + 24, signed_picture.S2))
    )
    places = signed_picture.LEADERS + 1
    for part in range(3):
        first = signed_picture.LIST + part * places
        slots |= set(range(first, first + count))
    slips = [
        *(("picture", slot) for slot in sorted(slots)),
        *((name, slot) for name in ("M", "tree") for slot in (1, 70, 129)),
        ("tree", 3 * 130 - 1),
    ]
    for name, slot in slips:
        damaged = arms._replace(**{name: getattr(arms, name).copy()})
        value = getattr(damaged, name)[slot]
        getattr(damaged, name)[slot] = 1.01 * value + (0.01 if name == "picture" else 1.0)
        assert is_refused(damaged, BETA), (name, slot)
    assert is_refused(arms, 0.2)
    assert is_refused(arms._replace(S=1.01 * arms.S), BETA)
    assert is_refused(arms._replace(S=0.0), BETA)
