"""Dynamic regret, against brute force and a replay in plain Python."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from paces import assert_same, each_way
from unbounded import SCB, AdaINF, Comparison, Simulation, Uniform, compare, settings, simulate
from unbounded.adversaries import Adversary, Changing, Chaser, Drift, MovesAway, Replay
from unbounded.learners.seeds import replicate_key, root_of
from unbounded.simulation.dynamic import MOST_STEPS

PLAYED = ("regret", "pseudo_regret", "low", "high", "clipped", "threshold")


def brute_force(losses, switches):
    """The loss of the best sequence, of all sequences."""
    return min(
        sum(losses[t, k] for t, k in enumerate(arms))
        for arms in itertools.product(range(losses.shape[1]), repeat=len(losses))
        if sum(a != b for a, b in itertools.pairwise(arms)) <= switches
    )


@pytest.mark.parametrize("switches", range(5))
def test_the_best_sequence_is_that_of_brute_force(switches):
    T, differ = 6, 0
    for seed in range(4):
        losses = np.random.default_rng(seed).integers(-9, 10, size=(T, 3)).astype(float)
        points = range(1, T + 1)
        result = simulate(
            Uniform(3), Replay(losses), T, 2, seed=0, checkpoints=points, switches=switches
        )
        paid = result.regret + [np.min(losses[:t].sum(axis=0)) for t in points]
        best = [brute_force(losses[:t], switches) for t in points]
        assert np.array_equal(result.switching_regret, paid - best)
        differ += best[-1] != brute_force(losses, switches + 1)
    assert differ > 0  # the control: one switch more is another number


def test_no_switch_is_static_regret_and_a_switch_a_round_is_dynamic_regret():
    adversary, T = Changing(noise="normal"), 60
    for switches, static, dynamic in ((0, True, False), (T - 1, False, True), (3, False, False)):
        result = simulate(AdaINF(4), adversary, T, 3, seed=1, switches=switches)
        assert np.array_equal(result.switching_regret, result.regret) == static
        assert np.allclose(result.switching_regret, result.dynamic_regret, rtol=1e-12) == dynamic


def replayed(result, learner, adversary, rounds, r, seed):
    """The columns of one replicate at every round, by ask and tell in plain Python."""
    n = learner.n_arms
    player = type(learner)(**learner.settings, seed=result.seed(r))
    params, state = adversary.begin(n, rounds, replicate_key(root_of(seed), r))
    row, means, arm = np.empty(n), np.empty(n), -1
    paid = smallest = gaps = probability = changes = 0.0
    last, found = None, []
    for t in range(1, rounds + 1):
        q = player.probabilities()
        type(adversary).fill(params[2:], state, t, arm, q, row)
        losses, expected, size = params[0] * row + params[1], None, 1.0
        if type(adversary).expected is not None:
            size = abs(params[0]) * type(adversary).expected(params[2:], state, t, means)
            expected = params[0] * means + params[1]
        choice = player.ask()
        arm = choice.arm
        player.tell(choice, losses[arm])
        paid, smallest = paid + losses[arm], smallest + min(losses)
        m = losses if expected is None else expected
        best = [k for k in range(n) if m[k] == min(m)]
        probability += sum(q[best])
        gaps += (q @ m - min(m)) / size
        changes += last is not None and last not in best
        last = last if last in best else best[0]
        found.append((paid - smallest, gaps, changes, probability))
    return np.array(found).T


CASES = {
    "incidents": Changing(incidents=3, length=0.05, factor=1e3),
    "negative units": Drift(cycles=1.0, scale=-8.0, shift=3.0),
    "looks": MovesAway(window=5, share=0.6),
    "declares nothing": Replay(np.random.default_rng(2).normal(size=(40, 3))),
}


@pytest.mark.parametrize("case", CASES)
def test_columns_are_those_of_a_replay(case):
    learner, adversary, rounds = AdaINF(3), CASES[case], 120
    points = range(1, rounds + 1)
    result = simulate(learner, adversary, rounds, 2, seed=3, checkpoints=points, dynamic=True)
    for r in range(2):
        regret, gaps, changes, total = replayed(result, learner, adversary, rounds, r, seed=3)
        assert result.dynamic_regret[r] == pytest.approx(regret, rel=1e-9, abs=1e-9)
        assert np.cumsum(result.best_probability[r]) == pytest.approx(total, rel=1e-9)
        assert 0.0 < total[-1] < rounds
        if adversary.expected is None:
            with pytest.raises(ValueError, match="expected"):
                _ = result.dynamic_pseudo_regret
            continue
        assert result.dynamic_pseudo_regret[r] == pytest.approx(gaps, rel=1e-9, abs=1e-9)
        assert result.best_changes[r].tolist() == changes.tolist()
        assert changes[-1] > 0
    few = simulate(learner, adversary, rounds, 2, seed=3, checkpoints=[30, 120], dynamic=True)
    parts = (
        result.best_probability[:, :30].mean(axis=1),
        result.best_probability[:, 30:].mean(axis=1),
    )
    assert few.best_probability == pytest.approx(np.array(parts).T)


@pytest.mark.parametrize("adversary", [Changing(), Chaser()])
@pytest.mark.parametrize("pseudo", [True, False])
def test_the_play_is_the_same(adversary, pseudo):
    plain, followed = (
        simulate(SCB(5), adversary, 300, 2, seed=4, pseudo_regret=pseudo, **given)
        for given in ({}, {"switches": 2})
    )
    for name in PLAYED:
        assert getattr(plain, name).tobytes() == getattr(followed, name).tobytes(), name
    assert set(plain.columns()) < set(followed.columns())
    with pytest.raises(ValueError, match="dynamic=True"):
        _ = plain.dynamic_regret
    with pytest.raises(ValueError, match="switches="):
        _ = simulate(SCB(5), adversary, 10, dynamic=True).switching_regret


def test_interpreted_and_compiled(monkeypatch):
    adversary = Changing(incidents=2)
    assert_same(
        each_way(monkeypatch, lambda: simulate(Uniform(4), adversary, 50, 2, 1, switches=2))
    )


@pytest.mark.parametrize("jit", ["always", "never"])
def test_an_adversary_in_python(monkeypatch, jit):
    monkeypatch.setattr(settings, "jit", jit)
    losses = np.random.default_rng(5).normal(size=(60, 3))
    given = {"rounds": 60, "replicates": 2, "seed": 6, "switches": 2}
    python = simulate(SCB(3), lambda t, arm, q, rng: losses[t - 1], **given)
    kernels = simulate(SCB(3), Replay(losses), **given)
    for name in ("dynamic_regret", "switching_regret", "best_probability"):
        assert np.array_equal(getattr(python, name), getattr(kernels, name)), name
    assert "dynamic_pseudo_regret" not in python.columns()


def test_an_adversary_of_a_user_declares_expected_losses():
    class Turns(Adversary):
        def fill(params, state, t, last_arm, q, out):  # noqa: N805
            out[:] = 1.0
            out[t % out.size] = 0.0

        def expected(params, state, t, out):  # noqa: N805
            out[:] = 1.0
            out[t % out.size] = 0.0
            return 2.0

    result = simulate(Uniform(4), Turns(), 100, seed=0, dynamic=True)
    assert result.dynamic_pseudo_regret[0, -1] == pytest.approx(100 * 0.75 / 2.0)
    assert result.best_changes[0, -1] == 99
    assert result.best_probability == pytest.approx(0.25)


def test_losses_near_the_largest_float():
    """Sums exceed float64, and what is relative to the range does not."""
    rng = np.random.default_rng(7)
    losses = (
        rng.uniform(-1.0, 1.0, size=(40, 3)) * np.where(np.arange(40) < 20, 1.0, 1.7e308)[:, None]
    )
    result = simulate(Uniform(3), Replay(losses), 40, seed=0, checkpoints=[40], switches=4)
    exact = [[Fraction(x) for x in row] for row in losses.tolist()]
    paid = result.relative_regret("range")[0, 0]
    width = max(map(max, exact)) - min(map(min, exact))
    best = min(map(sum, zip(*exact, strict=True)))
    found = result.columns()["relative_dynamic_regret"][0, 0]
    expected = (Fraction(paid) * width + best - sum(map(min, exact))) / width
    assert found == pytest.approx(float(expected), rel=1e-9)
    columns = result.columns()
    relative = columns["relative_regret"], columns["relative_switching_regret"]
    assert relative[0] < relative[1] < columns["relative_dynamic_regret"]


def test_frames_files_and_comparisons(tmp_path):
    given = {"rounds": 50, "replicates": 2, "seed": 8, "switches": 1}
    whole = compare({"a": SCB(3), "b": Uniform(3)}, Changing(), **given)
    frame = whole.to_frame()
    assert frame["switching_regret"].len() == frame.height
    whole.save(tmp_path / "it.parquet")
    again = Comparison.load(tmp_path / "it.parquet")
    for name in ("dynamic_regret", "dynamic_pseudo_regret", "switching_regret", "best_probability"):
        assert getattr(again["b"], name).tobytes() == getattr(whole["b"], name).tobytes()
    assert again["a"].switches == 1
    plain = simulate(SCB(3), Changing(), 50)
    plain.save(tmp_path / "plain.parquet")
    assert Simulation.load(tmp_path / "plain.parquet").columns().keys() == plain.columns().keys()


def test_charts():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    both = compare({"a": AdaINF(3), "b": Uniform(3)}, Changing(), 60, 4, 9, switches=1)
    labels = {
        "dynamic": "dynamic regret / range",
        "switching": "switching regret / range",
        "best": "probability of the best arm",
    }
    for what, label in labels.items():
        ax = both.plot(what=what, log=False)
        column = label.replace(" / range", "").replace(" ", "_")
        column = "best_probability" if what == "best" else f"relative_{column}"
        line = ax.get_lines()[0].get_ydata()
        assert line == pytest.approx(both["a"].columns()[column].mean(axis=0))
        assert ax.get_ylabel() == label
    assert both.plot(what="best").get_yscale() == "linear"
    plain = simulate(SCB(3), Changing(), 20)
    with pytest.raises(ValueError, match="what='best'"):
        plain.plot(what="best")
    with pytest.raises(ValueError, match=r"what must be one of .*got 'worst'"):
        both.plot(what="worst")


def test_errors():
    adversary = Changing()
    with pytest.raises(ValueError, match="comparators"):
        simulate(SCB(3), adversary, 10, dynamic=True, comparators=[0])
    with pytest.raises(ValueError, match="switches must be at least 0, got -1"):
        simulate(SCB(3), adversary, 10, switches=-1)
    most = MOST_STEPS // (1000 * 10) - 1
    with pytest.raises(ValueError, match=f"switches={most + 1} .*1e\\+10"):
        simulate(SCB(10), adversary, 1000, switches=most + 1)
    with pytest.raises(TypeError, match="dynamic must be True or False, not 3"):
        simulate(SCB(3), adversary, 10, dynamic=3)
