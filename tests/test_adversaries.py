"""What the adversaries' losses are supposed to look like."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from unbounded import SCB, Uniform, simulate
from unbounded.adversaries import (
    Chaser,
    Drift,
    OutsideWindow,
    Pareto,
    Phase,
    Program,
    Replay,
    Shrink,
    Signs,
    Spikes,
    StochasticGap,
    StudentT,
    ZerosFirst,
)
from unbounded.adversaries.bandits import worst_cases
from unbounded.adversaries.bandits.program import (
    ABOVE,
    AT_MINIMUM,
    BELOW,
    PUNISH_LAST,
    PUNISH_LIKELIEST,
    REWARD_UNLIKELIEST,
)


def losses_of(adversary, n=4, rounds=2000, q=None, arms=None, key=17):
    """The losses of one play; ``q`` and ``arms`` are what the adversary gets to see."""
    params, state = adversary.begin(n, rounds, key)
    q = np.full(n, 1.0 / n) if q is None else np.asarray(q, dtype=float)
    out = np.empty((rounds, n))
    last = -1
    for t in range(1, rounds + 1):
        type(adversary).fill(params[2:], state, t, last, q, out[t - 1])
        last = 0 if arms is None else arms[t - 1]
    return params[0] * out + params[1]


def test_drift_moves_the_best_arm():
    losses = losses_of(Drift(gap=0.5, cycles=1.0), n=2, rounds=8000)
    quarters = losses.reshape(4, 2000, 2).mean(axis=1)
    # arm 0 starts at its highest mean and is lowest in the middle; arm 1 is half a cycle away
    np.testing.assert_allclose(quarters[:, 0], [0.75, 0.25, 0.25, 0.75], atol=0.04)
    np.testing.assert_allclose(quarters[:, 1], [0.25, 0.75, 0.75, 0.25], atol=0.04)


def test_shrink_ends_at_its_final_size():
    losses = losses_of(Shrink(final=1e-4), rounds=1000)
    assert losses[0].max() in (0.0, 1.0)
    sizes = losses.max(axis=1)
    expected = 1e-4 ** (np.arange(1000) / 999)
    seen = sizes > 0.0
    np.testing.assert_allclose(sizes[seen], expected[seen], rtol=1e-12)


@pytest.mark.parametrize(("sign", "low", "high"), [("positive", 0, 9), ("negative", -9, 1)])
def test_spikes_have_their_rate_and_sign(sign, low, high):
    losses = losses_of(Spikes(height=9.0, rate=0.1, sign=sign), rounds=5000)
    assert (losses.min(), losses.max()) == (low, high)
    spikes = np.abs(losses) == 9.0
    assert stats.binomtest(int(spikes.sum()), 5000, 0.1).pvalue > 1e-4
    assert stats.chisquare(spikes.sum(axis=0)).pvalue > 1e-4  # on any arm


def test_chaser_punishes_the_likeliest():
    losses = losses_of(Chaser(), q=[0.2, 0.5, 0.3, 0.0], rounds=3)
    assert losses.tolist() == [[0.0, 1.0, 0.0, 0.0]] * 3


def test_outside_window_follows_what_was_observed():
    rounds = 60
    arms = [int(k) for k in np.random.default_rng(0).integers(0, 3, rounds)]
    losses = losses_of(
        OutsideWindow(margin=0.5, limit=10.0), n=3, rounds=rounds, q=[0.2, 0.5, 0.3], arms=arms
    )
    low = high = losses[0, arms[0]]
    for t in range(1, rounds):
        step = 0.5 * max(high - low, 0.01)
        assert losses[t, 0] == pytest.approx(max(-10.0, low - step))  # the least likely
        assert losses[t, 1] == pytest.approx(min(10.0, high + step))  # the likeliest
        assert losses[t, 2] == pytest.approx(0.5 * (low + high))
        low, high = min(low, losses[t, arms[t]]), max(high, losses[t, arms[t]])


@pytest.mark.parametrize(
    ("pattern", "low", "high"),
    [("positive", 0.0, 1.0), ("negative", -1.0, 0.0), ("mixed", -1.0, 1.0)],
)
def test_signs_stay_in_their_range_and_one_arm_is_better(pattern, low, high):
    losses = losses_of(Signs(pattern, gap=0.5, best=2), rounds=5000)
    assert losses.min() >= low
    assert losses.max() <= high
    assert losses.mean(axis=0).argmin() == 2


def test_alternating_signs_concern_all_arms_at_once():
    losses = losses_of(Signs("alternating"), rounds=1100)
    sign = np.sign(losses)
    assert (sign == sign[:, :1]).all()
    assert (np.diff(sign[:, 0]) != 0).sum() == 10


@pytest.mark.parametrize("degrees", [1.0, 2.0, 3.5])
def test_student_t_has_its_distribution(degrees):
    losses = losses_of(StudentT(degrees, gap=0.5), n=2, rounds=4000)
    assert stats.kstest(losses[:, 1], stats.t(degrees).cdf).pvalue > 1e-3
    assert stats.kstest(losses[:, 0] + 0.5, stats.t(degrees).cdf).pvalue > 1e-3


def test_pareto_has_its_distribution():
    losses = losses_of(Pareto(1.5, ratio=0.5), n=2, rounds=4000)
    assert stats.kstest(losses[:, 1], stats.pareto(1.5).cdf).pvalue > 1e-3
    assert stats.kstest(2.0 * losses[:, 0], stats.pareto(1.5).cdf).pvalue > 1e-3


def test_zeros_first():
    losses = losses_of(ZerosFirst(share=0.3), rounds=100)
    assert not losses[:30].any()
    assert losses[30:].any()


def test_programs_switch_grow_and_react():
    switch = Program([Phase(end=0.5, best=0.0, gap=0.5), Phase(best=0.99, gap=0.5)])
    losses = losses_of(switch, rounds=10)
    assert losses[:5].argmin(axis=1).tolist() == [0] * 5
    assert losses[5:].argmin(axis=1).tolist() == [3] * 5
    growth = losses_of(Program([Phase(level=1.0, gap=0.0, growth=16.0)]), rounds=4)
    np.testing.assert_allclose(growth[:, 0], [1.0, 2.0, 4.0, 8.0])
    q = [0.1, 0.2, 0.6, 0.1]
    for reaction, arm, loss in (
        (PUNISH_LIKELIEST, 2, 1.0),
        (REWARD_UNLIKELIEST, 0, 0.0),
        (PUNISH_LAST, 0, 1.0),
    ):
        phase = Phase(level=0.5, gap=0.0, reaction=reaction, trigger=0.5)
        reacted = losses_of(Program([phase]), q=q, rounds=3)[-1]
        assert reacted.tolist() == [loss if k == arm else 0.5 for k in range(4)]
        calm = losses_of(Program([phase._replace(trigger=0.7)]), q=q, rounds=3)
        assert (calm == 0.5).all()


def test_spikes_of_programs_are_placed_by_what_was_observed():
    q = [0.1, 0.7, 0.1, 0.1]
    for spike, expected in ((AT_MINIMUM, 0.4), (BELOW, 0.4 - 2.0 * 0.1), (ABOVE, 0.5 + 2.0 * 0.1)):
        phase = Phase(best=0.0, spike_rate=1.0, spike=spike, margin=2.0)
        params, state = Program([phase]).begin(4, 10, 3)
        row = np.empty(4)
        state[1], state[2] = 0.4, 0.5  # what the learner has observed
        Program.fill(params[2:], state, 5, -1, np.array(q), row)
        usual = np.array([0.4, 0.5, 0.5, 0.5])
        changed = np.flatnonzero(row != usual)
        assert changed.size == 1 or (spike == AT_MINIMUM and changed.tolist() == [1])
        assert row[changed[0]] == pytest.approx(expected)


def test_worst_cases_stay_in_the_range_they_declare():
    for name, (case, (low, high)) in worst_cases().items():
        result = simulate(SCB(10, clip="range"), case, 5000, 4, seed=1)
        assert low <= result.low.min(), name
        assert result.high.max() <= high, name


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Drift(gap=0.6), r"gap must be in \[0, 0.5\], got 0.6"),
        (lambda: Drift(cycles=-1), "cycles must be at least 0, got -1"),
        (lambda: Shrink(final=0.0), r"final must be in \(0, 1\], got 0.0"),
        (lambda: Spikes(rate=2.0), r"rate must be in \[0, 1\], got 2.0"),
        (lambda: Spikes(sign="up"), "sign must be one of"),
        (lambda: Signs("odd"), "pattern must be one of"),
        (lambda: StudentT(0.0), "degrees must be finite and at least 0.2, got 0.0"),
        (lambda: Pareto(math.inf), "shape must be finite and at least 0.1, got inf"),
        (lambda: ZerosFirst(share=1.5), r"share must be in \[0, 1\], got 1.5"),
        (lambda: OutsideWindow(margin=0.0), "margin must be positive and finite, got 0.0"),
        (lambda: Program([]), "order of their ends"),
        (lambda: Program([Phase(end=1.0), Phase(end=0.5)]), "order of their ends"),
        (lambda: Program([Phase(best=1.0)]), r"best must be in \[0, 1\)"),
        (lambda: Program([Phase(size=math.nan)]), "finite numbers"),
    ],
)
def test_errors_name_the_argument(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_replay_from_csv(tmp_path):
    path = tmp_path / "losses.csv"
    path.write_text("day,a,b\n1,0.5,-2\n2,1e3,4\n")
    replay = Replay.from_csv(path, columns=["b", "a"], scale=2.0)
    assert losses_of(replay, n=2, rounds=3).tolist() == [[-4.0, 1.0], [8.0, 2000.0], [-4.0, 1.0]]
    assert losses_of(Replay.from_csv(path), n=3, rounds=1).tolist() == [[1.0, 0.5, -2.0]]
    with pytest.raises(ValueError, match="has no column 'c'; it has day, a, b"):
        Replay.from_csv(path, columns=["c"])
    path.write_text("a,b\n1,2\n3,\n")
    with pytest.raises(ValueError, match="line 3 has no number in column 'b'"):
        Replay.from_csv(path)
    path.write_text("a,b\n")
    with pytest.raises(ValueError, match="losses must have shape"):
        Replay.from_csv(path)


def test_replay_from_parquet(tmp_path):
    polars = pytest.importorskip("polars")
    path = tmp_path / "losses.parquet"
    polars.DataFrame({"a": [1, 2], "b": [0.5, -7.0]}).write_parquet(path)
    assert losses_of(Replay.from_parquet(path), n=2, rounds=2).tolist() == [[1.0, 0.5], [2.0, -7.0]]
    picked = Replay.from_parquet(path, columns=["b"])
    result = simulate(Uniform(1), picked, 2, seed=0, checkpoints=[2])
    assert (result.low[0, -1], result.high[0, -1]) == (-7.0, 0.5)


def test_scale_and_shift_of_any_adversary():
    plain = losses_of(StochasticGap(), rounds=50)
    moved = losses_of(StochasticGap(scale=3.0, shift=-7.0), rounds=50)
    np.testing.assert_array_equal(moved, 3.0 * plain - 7.0)
