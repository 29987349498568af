"""Losses whose best arm, scale or offset changes."""

import math

import numpy as np
import pytest

from loss_helpers import losses_of, uniforms
from unbounded import Uniform, adversaries, simulate
from unbounded.adversaries import Changing, MovesAway, RandomChanges, Replicas, ServiceDay

KEY = 17


def means_of(adversary, n, rounds, key=KEY):
    """Expected losses and scales of all rounds, of an adversary that does not look."""
    params, state = adversary.begin(n, rounds, key)
    means = np.empty((rounds, n))
    sizes = [
        type(adversary).expected(params[2:], state, t, means[t - 1]) for t in range(1, rounds + 1)
    ]
    return means, np.array(sizes)


def normals(u):
    return np.sqrt(-2.0 * np.log(1.0 - u[:, 0])) * np.cos(2.0 * math.pi * u[:, 1])


def numbers(t, n):
    return uniforms(KEY, t, 3 * n).reshape(n, 3)


def test_the_better_arm_changes_at_equal_distances_to_another_one():
    n, rounds, changes = 4, 600, 5
    means, sizes = means_of(Changing(changes=changes), n, rounds)
    assert (np.sort(means, axis=1) == [0.6 - 0.2, 0.6, 0.6, 0.6]).all()
    assert (sizes == 1.0).all()
    best = means.argmin(axis=1)
    assert np.flatnonzero(np.diff(best)).tolist() == [99, 199, 299, 399, 499]
    assert not np.array_equal(best, means_of(Changing(), n, rounds, key=18)[0].argmin(axis=1))
    still = means_of(Changing(changes=0), n, rounds)[0]
    assert (still == still[0]).all()


FORMULAS = {
    "coins": lambda m, u: u[:, 0] < m,
    "uniform": lambda m, u: 2.0 * m * u[:, 0],
    "exponential": lambda m, u: -m * np.log(1.0 - u[:, 0]),
    "normal": lambda m, u: m + normals(u),
    "pareto": lambda m, u: m / 3.0 * (1.0 - u[:, 0]) ** (-2.0 / 3.0),
}


@pytest.mark.parametrize("noise", FORMULAS)
def test_losses(noise):
    """Around the offset, of the size of the moment; scale and shift come last."""
    n, rounds = 4, 300
    adversary = Changing(3, noise, 0.7, 0.5, factor=1e-3, offset=100.0, swing=20.0)
    means, sizes = means_of(adversary, n, rounds)
    assert sizes.tolist() == [1.0] * 150 + [1e-3] * 150
    losses = losses_of(adversary, n, rounds)
    for t in range(1, rounds + 1):
        offset = 100.0 + 20.0 * math.sin(2.0 * math.pi * 5.0 * (t - 1) / rounds)
        plain = (means[t - 1] - offset) / sizes[t - 1]
        assert np.sort(plain) == pytest.approx([0.2, 0.7, 0.7, 0.7], abs=1e-10)
        mean = np.where(plain < 0.5, 0.7 - 0.5, 0.7)
        expected = offset + sizes[t - 1] * FORMULAS[noise](mean, numbers(t, n))
        np.testing.assert_allclose(losses[t - 1], expected, rtol=1e-13)


def test_incidents_are_larger_and_have_another_better_arm():
    n, rounds = 5, 1000
    plain, _ = means_of(Changing(), n, rounds)
    means, sizes = means_of(Changing(incidents=10, length=0.01), n, rounds)
    burst = np.zeros(rounds, dtype=bool)
    for middle in range(50, 1000, 100):
        burst[middle - 5 : middle + 5] = True
    assert np.array_equal(sizes, np.where(burst, 100.0, 1.0))
    assert np.array_equal(means[~burst], plain[~burst])
    assert (means.argmin(axis=1) != plain.argmin(axis=1))[burst].all()


def test_cheap_costs_a_hundredth():
    means, _ = means_of(adversaries.changing()["cheap"], 4, 60)
    assert means.min(axis=1) == pytest.approx(0.01 * means.max(axis=1))


def test_random_programs():
    n, rounds = 4, 2000
    found = [means_of(RandomChanges(seed=s), n, rounds) for s in range(12)]
    pieces = [1 + int((np.diff(means, axis=0) != 0.0).any(axis=1).sum()) for means, _ in found]
    assert len(set(pieces)) > 5
    assert max(pieces) <= 40
    steps = np.concatenate([np.diff(np.log10(sizes)) for _, sizes in found])
    steps = steps[steps != 0.0]
    assert 0.1 < steps.size / sum(pieces) < 0.3
    assert np.abs(steps).max() <= 2.0
    for means, sizes in found:
        assert (means >= 0.0).all()
        assert (means / sizes[:, None] <= 1.0).all()


def test_a_seed_fixes_the_program_and_not_the_losses():
    fixed, free = RandomChanges(seed=3), RandomChanges()
    for adversary, same in ((fixed, True), (free, False)):
        one, other = (means_of(adversary, 3, 200, key)[0] for key in (1, 2))
        assert np.array_equal(one, other) == same
    one, other = (losses_of(fixed, 3, 200, key=key) for key in (1, 2))
    assert not np.array_equal(one, other)


def latencies(medians, rates, sigma, t):
    u = numbers(t, len(medians))
    return np.where(u[:, 2] < rates, 30_000.0, medians * np.exp(sigma * normals(u)))


def test_replicas():
    n, rounds = 5, 400
    adversary = Replicas(degradations=4, rate=0.1)
    means, _ = means_of(adversary, n, rounds)
    medians = (means - 0.1 * 30_000.0) / 0.9 / math.exp(0.125)
    usual = medians[0]
    assert np.sort(usual) == pytest.approx([40.0, 60.0, 80.0, 100.0, 120.0])
    slow = ~np.isclose(medians, usual)
    assert np.flatnonzero(slow.any(axis=1)).tolist() == [
        t for t in range(rounds) if 25 <= t % 100 < 75
    ]
    assert medians[slow] == pytest.approx(4.0 * np.broadcast_to(usual, slow.shape)[slow])
    assert set(np.argwhere(slow)[:, 1]) <= set(np.argsort(usual)[:2])
    losses = losses_of(adversary, n, rounds)
    for t in range(1, rounds + 1):
        expected = latencies(medians[t - 1], 0.1, 0.5, t)
        np.testing.assert_allclose(losses[t - 1], expected, rtol=1e-12)


def test_the_service_day():
    """Of 2,000 requests, from the description."""
    rounds, usual = 2000, np.array([120.0, 80.0, 150.0, 60.0, 200.0, 95.0])
    losses = losses_of(ServiceDay(), 6, rounds)
    for t in range(1, rounds + 1):
        medians, rates = usual.copy(), np.full(6, 0.001)
        if 300 < t <= 600:
            medians[3], rates[3] = 360.0, 0.05
        elif 900 < t <= 1050:
            medians[1] = 320.0
        elif 1200 < t <= 1500:
            rates[3] = 0.03
        np.testing.assert_allclose(losses[t - 1], latencies(medians, rates, 0.35, t), rtol=1e-12)


def test_any_number_of_arms():
    for adversary in (Changing(incidents=2), RandomChanges(), Replicas(), ServiceDay()):
        for n in (1, 2, 7):
            assert np.isfinite(losses_of(adversary, n, 50)).all()


def moved(adversary, n, arms):
    """The better arm of each round, from the definition: what was played, round by round."""
    best, bests = KEY % n, []
    for t in range(len(arms)):
        recent = arms[max(0, t - adversary.window) : t]
        share = adversary.share * adversary.window
        if len(recent) == adversary.window and recent.count(best) >= share:
            plays = [arms[:t].count(k) for k in range(n)]
            best = plays.index(min(plays))
        bests.append(best)
    return bests


@pytest.mark.parametrize("confidence", [0.95, 0.1])
def test_it_moves_away_from_who_is_confident(confidence):
    n, rounds, adversary = 4, 400, MovesAway(window=10)
    rng = np.random.default_rng(1)
    params, state = adversary.begin(n, rounds, KEY)
    means, losses = np.empty((2, rounds, n))
    arms, last, best = [], -1, KEY % n
    for t in range(1, rounds + 1):
        MovesAway.fill(params[2:], state, t, last, np.full(n, 0.25), losses[t - 1])
        assert MovesAway.expected(params[2:], state, t, means[t - 1]) == 1.0
        best = int(means[t - 1].argmin())
        last = best if rng.random() < confidence else int(rng.integers(n))
        arms.append(last)
    bests = moved(adversary, n, arms)
    assert np.array_equal(means, np.where(np.arange(n) == np.array(bests)[:, None], 0.6 - 0.2, 0.6))
    coins = [uniforms(KEY, t, n) for t in range(1, rounds + 1)]
    assert np.array_equal(losses, coins < means)
    changes = np.count_nonzero(np.diff(bests))
    assert changes > 15 if confidence > 0.9 else changes == 0


def test_all_can_be_played():
    for name, adversary in adversaries.changing().items():
        result = simulate(Uniform(6), adversary, rounds=40, seed=0, checkpoints=1)
        assert np.isfinite(result.regret).all(), name


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Changing(mean=1.2), "mean .*for coins, got 1.2"),
        (lambda: Changing(mean=0.1), "mean .*for coins, got 0.1 and -0.1"),
        (lambda: Changing(noise="cauchy"), "noise must be one of .*got 'cauchy'"),
        (lambda: Changing(changes=-1), "changes must be at least 0, got -1"),
        (lambda: MovesAway(mean=0.1), "gap must be at most mean=0.1, got 0.2"),
        (lambda: Replicas(sigma=21.0), r"sigma must be in \[0, 20\], got 21"),
    ],
)
def test_errors(make, said):
    with pytest.raises(ValueError, match=said):
        make()
    assert Changing(mean=1.2, noise="normal").mean == 1.2
