"""The simulator: regret against brute force, Python adversaries, what adversaries see."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unbounded import SCB, AdaHedge, Uniform, simulate
from unbounded.adversaries import (
    Adversary,
    Growth,
    LowerBound,
    Replay,
    SpikeLeastLikely,
    StochasticGap,
    StudentT,
    Switch,
)
from unbounded.learners.seeds import replicate_key, root_of

ADVERSARIES = [
    StochasticGap(), LowerBound(), Switch(), Growth(), SpikeLeastLikely(),
    StochasticGap(shift=1000.0),
]  # fmt: skip


def losses_of(adversary: Adversary, n: int, rounds: int, key: int = 12345) -> np.ndarray:
    params, state = adversary.begin(n, rounds, key)
    out = np.empty((rounds, n))
    for t in range(rounds):
        type(adversary).fill(params[2:], state, t + 1, -1, np.full(n, 1 / n), out[t])
    return params[0] * out + params[1]


def test_regret_is_what_it_says():
    """Against a replayed matrix, everything can be recomputed with numpy."""
    rng = np.random.default_rng(0)
    losses = rng.normal(size=(500, 4))
    result = simulate(SCB(4), Replay(losses), 500, 3, seed=9, checkpoints=[1, 10, 500])
    for r in range(3):
        learner = SCB(4, seed=result.seed(r))
        played, means = [], []
        for row in losses:
            means.append(learner.probabilities() @ row)
            choice = learner.ask()
            played.append(row[choice])
            learner.tell(choice, row[choice])
        for j, t in enumerate([1, 10, 500]):
            best = losses[:t].sum(axis=0).min()
            assert result.regret[r, j] == pytest.approx(sum(played[:t]) - best)
            assert result.pseudo_regret[r, j] == pytest.approx(sum(means[:t]) - best)
            assert result.largest_loss[r, j] == np.abs(losses[:t]).max()
            assert result.loss_range[r, j] == np.ptp(losses[:t])
            for to, size in (("range", np.ptp(losses[:t])), ("scale", np.abs(losses[:t]).max())):
                for name, pseudo in (("regret", False), ("pseudo_regret", True)):
                    expected = getattr(result, name)[r, j] / size
                    found = result.relative_regret(to, pseudo=pseudo)[r, j]
                    assert found == pytest.approx(expected)


def test_replay_starts_again_after_its_last_row():
    losses = np.arange(6.0).reshape(3, 2)
    result = simulate(Uniform(2), Replay(losses), 7, seed=0, checkpoints=[7])
    rows = losses[[0, 1, 2, 0, 1, 2, 0]]
    expected = rows.mean(axis=1).sum() - rows[:, 0].sum()
    assert result.pseudo_regret[0, 0] == pytest.approx(expected)


@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_a_python_adversary_equals_the_compiled_one(adversary):
    """The same losses through a plain function: bit for bit the same result."""
    n, rounds = 5, 300
    compiled = simulate(SCB(n), adversary, rounds, 2, seed=3)
    states = {}

    for r in range(2):
        states[r] = adversary.begin(n, rounds, replicate_key(root_of(3), r))
    replicate = -1

    def python(t, last_arm, q, rng):
        nonlocal replicate
        replicate += t == 1
        params, state = states[replicate]
        row = np.empty(n)
        type(adversary).fill(params[2:], state, t, last_arm, q, row)
        return params[0] * row + params[1] if tuple(params[:2]) != (1.0, 0.0) else row

    plain = simulate(SCB(n), python, rounds, 2, seed=3)
    for name in ("regret", "pseudo_regret", "low", "high", "clipped", "threshold"):
        assert np.array_equal(getattr(compiled, name), getattr(plain, name)), name


def test_an_adversary_sees_q_and_the_last_arm_but_never_the_next():
    seen = []

    def watch(t, last_arm, q, rng):
        seen.append((t, last_arm, q.copy()))
        return rng.random(3)

    result = simulate(SCB(3), watch, 50, seed=1)
    learner = SCB(3, seed=result.seed(0))
    rng_losses = np.random.Generator(np.random.PCG64(np.random.SeedSequence(1, spawn_key=(0, 1))))
    last = -1
    for t, last_arm, q in seen:
        assert last_arm == last
        assert np.array_equal(q, learner.probabilities())
        losses = rng_losses.random(3)
        choice = learner.ask()
        last = choice.arm
        learner.tell(choice, losses[last])
        assert t == learner.rounds


def test_learners_with_equal_seeds_are_paired():
    """They meet the same losses, and different ones in each replicate."""
    met = []

    def watch(t, last_arm, q, rng):
        met.append(rng.random())
        return [met[-1], 0.5]

    for learner in (SCB(2), Uniform(2)):
        simulate(learner, watch, 50, 3, seed=2)
    assert met[:150] == met[150:]
    assert len(set(met[:150])) == 150
    runs = [
        simulate(learner, StudentT(), 400, 5, seed=2, checkpoints=range(1, 401))
        for learner in (SCB(4), Uniform(4))
    ]
    for name in ("low", "high"):
        assert np.array_equal(getattr(runs[0], name), getattr(runs[1], name))
        assert len(set(getattr(runs[0], name)[:, 0])) == 5


def test_results_do_not_depend_on_how_many_replicates_or_workers():
    few = simulate(SCB(4), LowerBound(), 500, 2, seed=4, workers=1)
    many = simulate(SCB(4), LowerBound(), 500, 7, seed=4, workers=4)
    assert np.array_equal(few.regret, many.regret[:2])
    later = simulate(SCB(4), LowerBound(), 500, 3, seed=4, first_replicate=4)
    assert np.array_equal(later.regret, many.regret[4:])
    assert later.seed(0).spawn_key == many.seed(4).spawn_key
    assert len(set(many.regret[:, -1])) == 7
    with pytest.raises(ValueError, match="first_replicate must be at least 0"):
        simulate(SCB(4), LowerBound(), 500, first_replicate=-1)


@pytest.mark.parametrize("n", [3, 40])
def test_pseudo_regret_has_the_probabilities_of_every_round(n):
    """Losses come in blocks of rows; q_t is looked at in each, also if the adversary does not."""
    rng = np.random.default_rng(8)
    losses = rng.random((400, n))
    result = simulate(SCB(n), Replay(losses), 400, seed=6, checkpoints=range(1, 401))
    learner, expected = SCB(n, seed=result.seed(0)), 0.0
    best = np.cumsum(losses, axis=0).min(axis=1)
    for t, row in enumerate(losses):
        expected += learner.probabilities() @ row
        choice = learner.ask()
        learner.tell(choice, row[choice])
        assert result.pseudo_regret[0, t] == pytest.approx(expected - best[t], abs=1e-9)
    without = simulate(
        SCB(n), Replay(losses), 400, seed=6, checkpoints=range(1, 401), pseudo_regret=False
    )
    assert np.array_equal(without.regret, result.regret)
    assert np.all(np.isnan(without.pseudo_regret))


def test_comparators():
    """Only some arms are followed, and the play is the same."""
    n, rounds, some = 30, 600, [4, 0, 17]
    points = range(1, rounds + 1)
    adversary = StochasticGap(0.3, scale=2.0)
    every = simulate(SCB(n), adversary, rounds, 2, seed=7, checkpoints=points)
    few = simulate(SCB(n), adversary, rounds, 2, seed=7, checkpoints=points, comparators=some)
    assert np.array_equal(every.threshold, few.threshold)
    assert np.array_equal(every.clipped, few.clipped)
    assert np.all(np.isnan(few.pseudo_regret))
    losses = losses_of(adversary, n, rounds, replicate_key(root_of(7), 1))
    best = np.cumsum(losses[:, some], axis=0).min(axis=1)
    learner, played = SCB(n, seed=few.seed(1)), []
    for row in losses:
        choice = learner.ask()
        played.append(row[choice])
        learner.tell(choice, float(row[choice]))
    assert few.regret[1] == pytest.approx(np.cumsum(played) - best, abs=1e-9)
    seen = np.column_stack([losses[:, some], played])
    assert np.array_equal(few.low[1], np.minimum.accumulate(seen.min(axis=1)))
    assert np.array_equal(few.high[1], np.maximum.accumulate(seen.max(axis=1)))


@pytest.mark.parametrize(
    ("learner", "adversary", "comparators", "words"),
    [
        (SCB(3), StochasticGap(), [], "arms to compare with"),
        (SCB(3), StochasticGap(), [0.5], "arms to compare with"),
        (SCB(3), StochasticGap(), [3], r"must lie in 0 .. 2"),
        (SCB(3), StochasticGap(), [-1], r"must lie in 0 .. 2"),
        (AdaHedge(3), StochasticGap(), [0], "leave comparators out"),
        (SCB(3), lambda t, a, q, rng: [0.0] * 3, [0], "need a compiled adversary"),
        (SCB(3), SpikeLeastLikely(), [0], "cannot tell the loss of one arm"),
    ],
)
def test_bad_comparators(learner, adversary, comparators, words):
    with pytest.raises((TypeError, ValueError), match=words):
        simulate(learner, adversary, 10, comparators=comparators)


def test_a_learner_is_taken_as_settings():
    learner = SCB(3, seed=0)
    learner.tell(learner.ask(), 5.0)
    before = learner.save()
    result = simulate(learner, StochasticGap(), 100, seed=1)
    fresh = simulate(SCB(3), StochasticGap(), 100, seed=1)
    assert learner.save() == before
    assert np.array_equal(result.regret, fresh.regret)


def test_sums_beyond_float64():
    """Regret / scale is the same at every power of two, even where the regret overflows."""
    results = {
        k: simulate(SCB(3), StochasticGap(0.4, scale=2.0**k), 1000, 2, seed=6, checkpoints=[1000])
        for k in (-1000, 0, 1023)
    }
    reference = results[0].relative_regret("scale")
    for k in (-1000, 1023):
        np.testing.assert_array_equal(results[k].relative_regret("scale"), reference)
    assert np.isinf(results[1023].regret).all()
    mixed = np.full((200, 2), 1.7e308)
    mixed[::2] *= -1.0
    result = simulate(Uniform(2), Replay(mixed), 200, seed=0, checkpoints=[200])
    assert result.relative_regret("range")[0, 0] == 0.0


def test_checkpoints():
    result = simulate(Uniform(2), StochasticGap(), 1000, checkpoints=20, seed=0)
    assert result.checkpoints[0] == 1
    assert result.checkpoints[-1] == 1000
    assert (np.diff(result.checkpoints) > 0).all()
    same = simulate(Uniform(2), StochasticGap(), 1000, checkpoints=np.int64(20), seed=0)
    assert np.array_equal(same.checkpoints, result.checkpoints)
    for wrong in ([], [0], [1001], 0, [1.5], 2.5, "all"):
        with pytest.raises((ValueError, TypeError), match="checkpoints"):
            simulate(Uniform(2), StochasticGap(), 1000, checkpoints=wrong)


def test_a_run_may_be_looked_at_before_its_end():
    """What the adversary does depends on how long the run is, not on where it is recorded."""
    some, all_ = (
        simulate(SCB(3), Switch(), 1000, seed=0, checkpoints=points)
        for points in ([600], [600, 1000])
    )
    assert some.regret[0, 0] == all_.regret[0, 0]


def test_one_checkpoint_is_the_last_round():
    result = simulate(Uniform(2), StochasticGap(), 1000, checkpoints=1, seed=0)
    assert result.checkpoints.tolist() == [1000]


def test_progress_is_reported():
    seen = []
    simulate(
        Uniform(2), StochasticGap(), 10, 3, seed=0, progress=lambda done, all: seen.append(done)
    )
    assert seen == [1, 2, 3]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: simulate(SCB(2), StochasticGap(), 0), "at least 1"),
        (lambda: simulate(SCB(2), "gap", 10), "Adversary or a function"),
        (
            lambda: simulate(SCB(2), lambda t: [t, 0.0], 10),
            r"adversary must take \(t, last_arm, q, rng\), and <function .* does not",
        ),
        (lambda: simulate(SCB(2), StochasticGap(), 10, 0), "replicates must be at least 1"),
        (lambda: simulate(SCB(2), StochasticGap(), 9).relative_regret("x"), "'scale' or 'range'"),
        (lambda: simulate(SCB(2), lambda t, a, q, rng: [1.0], 10), "2 finite losses"),
        (lambda: simulate(SCB(2), lambda t, a, q, rng: [1.0, math.nan], 10), "2 finite losses"),
        (lambda: simulate(SCB(2), Replay([[1.0, 2.0, 3.0]]), 10), "3 columns for 2 arms"),
    ],
)
def test_bad_arguments(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()
