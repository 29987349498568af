"""Comparisons, and what every result can do with its numbers: words, frames, charts, files."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from unbounded import (
    SCB,
    Comparison,
    Exp3,
    MDPSimulation,
    Simulation,
    Uniform,
    UniformPolicy,
    compare,
    compare_mdp,
    simulate,
    simulate_mdp,
    worlds,
)
from unbounded.adversaries import Chaser, StochasticGap
from unbounded.adversaries.mdps import Stochastic

pl = pytest.importorskip("polars")
pd = pytest.importorskip("pandas")
experiments = pytest.importorskip("unbounded.experiments")

GAP = StochasticGap(gap=0.3, scale=1e3, shift=5.0)
MDP = worlds.dirichlet([1, 2, 2], 2, np.random.default_rng(0))


@pytest.fixture(scope="module")
def three() -> Comparison[Simulation]:
    learners = {"mine": Uniform(4), "SCB": SCB(4), "<b>&": Exp3(4)}
    return compare(learners, GAP, 200, 5, seed=3, checkpoints=6)


@pytest.fixture(scope="module")
def two_mdp() -> Comparison[MDPSimulation]:
    learners = {"one": UniformPolicy([1, 2, 2], 2), "other": UniformPolicy([1, 2, 2], 2)}
    return compare_mdp(learners, MDP, Stochastic(), 60, 4, seed=3, checkpoints=5)


def same(a: Simulation | MDPSimulation, b: Simulation | MDPSimulation) -> bool:
    """Every field, bit for bit."""
    if type(a) is not type(b) or vars(a).keys() != vars(b).keys():
        return False
    for name, value in vars(a).items():
        other = getattr(b, name)
        if isinstance(value, np.ndarray):
            if value.dtype != other.dtype or value.shape != other.shape:
                return False
            if value.tobytes() != other.tobytes():
                return False
        elif name == "_root":
            if (value.entropy, value.spawn_key) != (other.entropy, other.spawn_key):
                return False
        elif value != other:
            return False
    return True


# --------------------------------------------------------------------- playing


def test_a_comparison_is_the_simulations(three: Comparison[Simulation]) -> None:
    assert list(three) == ["mine", "SCB", "<b>&"]
    alone = simulate(SCB(4), GAP, 200, 5, seed=3, checkpoints=6)
    assert same(three["SCB"], alone)
    assert not same(three["SCB"], simulate(SCB(4), GAP, 200, 5, seed=4, checkpoints=6))
    part = compare({"SCB": SCB(4)}, GAP, 200, 2, seed=3, checkpoints=6, first_replicate=3)
    assert (part["SCB"].regret == alone.regret[3:]).all()
    difference = three.difference("SCB", "mine")
    relative = [three[name].relative_regret("range") for name in ("SCB", "mine")]
    assert (difference == relative[0] - relative[1]).all()
    with pytest.raises(KeyError, match="there is no 'SBC': there are mine, SCB"):
        three["SBC"]


def test_mdps_alike(two_mdp: Comparison[MDPSimulation]) -> None:
    alone = simulate_mdp(
        UniformPolicy([1, 2, 2], 2), MDP, Stochastic(), 60, 4, seed=3, checkpoints=5
    )
    assert same(two_mdp["other"], alone)
    assert not two_mdp.difference("one", "other").any()  # the same seeds, the same learner


def test_seeds_are_shared_also_without_one() -> None:
    both = compare({"a": Uniform(3), "b": Uniform(3)}, GAP, 50, 3)
    assert same(both["a"], both["b"])
    again = compare({"a": Uniform(3)}, GAP, 50, 3)
    assert not (again["a"].regret == both["a"].regret).all()


def test_paired_where_the_adversary_does_not_look(three: Comparison[Simulation]) -> None:
    assert three.paired
    assert "depend" not in three.summary().title
    looking = compare({"a": Uniform(3), "b": SCB(3)}, Chaser(), 100, 3, seed=1)
    assert not looking.paired
    assert looking.summary().title.endswith("losses that depend on the learner")


def test_progress_counts_all_learners() -> None:
    seen: list[tuple[int, int]] = []
    compare({"a": Uniform(3), "b": SCB(3)}, GAP, 20, 3, progress=lambda *now: seen.append(now))
    assert seen == [(k, 6) for k in range(1, 7)]


@pytest.mark.parametrize(
    ("learners", "error", "words"),
    [
        ({}, TypeError, "must be a dict of names and learners"),
        ([SCB(3)], TypeError, "must be a dict of names and learners"),
        ({"a": SCB}, TypeError, "'a' must be a Learner, not <class"),
        ({"a": UniformPolicy([1], 2)}, TypeError, "'a' must be a Learner, not UniformPolicy"),
        ({3: SCB(3)}, TypeError, "the name of a learner must be text, not 3"),
        ({"a": SCB(3), "b": SCB(4)}, ValueError, r"same number of arms, got \{'a': 3, 'b': 4\}"),
    ],
)
def test_wrong_learners_are_a_sentence(
    learners: object, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        compare(learners, GAP, 10)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_an_error_says_whose_it_is() -> None:
    def broken(t: int, arm: int, q: np.ndarray, rng: np.random.Generator) -> list[float]:
        return [math.nan] * 3

    with pytest.raises(ValueError, match="finite") as caught:
        compare({"good": SCB(3)}, broken, 10)
    assert caught.value.__notes__ == ["while 'good' was played"]


def test_episodes_must_be_said_where_learners_disagree() -> None:
    with pytest.raises(ValueError, match="say episodes=: the learners were made for"):
        compare_mdp({"a": UniformPolicy([1, 2, 2], 2)}, MDP, Stochastic())


# ----------------------------------------------------------------------- words


def test_one_line_whatever_it_holds(
    three: Comparison[Simulation], two_mdp: Comparison[MDPSimulation]
) -> None:
    for result in (three, three["SCB"], two_mdp, two_mdp["one"]):
        assert "\n" not in repr(result)
        assert len(repr(result)) < 200
    mean = three["SCB"].relative_regret("range")[:, -1].mean()
    error = stats.sem(three["SCB"].relative_regret("range")[:, -1])
    assert repr(three["SCB"]) == (
        "<Simulation against StochasticGap, 200 rounds, 5 replicates: "
        f"regret / range SCB {mean:.4g} ± {error:.2g}>"
    )
    many = compare({f"{i}\n": Uniform(2) for i in range(30)}, GAP, 5, 1, seed=1)
    assert repr(many).endswith("and 26 more>")
    assert "\n" not in repr(many)
    assert "±" not in repr(many)  # of one replicate
    assert repr(two_mdp).startswith(
        "<Comparison against Stochastic, 60 episodes, 4 replicates: pse"
    )


def test_summary_against_scipy(three: Comparison[Simulation]) -> None:
    first, *others = three.summary()
    assert (first.learner, first.better) == ("mine", 0)
    assert math.isnan(first.difference)
    for line in others:
        own = three[line.learner].relative_regret("range")[:, -1]
        pairs = own - three["mine"].relative_regret("range")[:, -1]
        assert line.regret == pytest.approx(three[line.learner].regret[:, -1].mean())
        assert (line.relative, line.error) == pytest.approx((own.mean(), stats.sem(own)))
        low, high = stats.t.interval(0.95, 4, pairs.mean(), stats.sem(pairs))
        assert (line.difference, line.low, line.high) == pytest.approx((pairs.mean(), low, high))
        assert line.better == int((pairs < 0).sum())
    head, *rows = str(three.summary()).splitlines()[1:]
    assert re.split(r" {2,}", head) == [
        "learner", "regret", "regret / range", "± s.e.", "minus mine", "95% interval", "better",
    ]  # fmt: skip
    assert len(rows) == 3
    alone = str(simulate(SCB(4), GAP, 20, 1, seed=1).summary())
    assert alone.splitlines()[-1].endswith("–")  # no error of one replicate
    assert "minus" not in alone


def test_html_is_a_table_and_escaped(three: Comparison[Simulation]) -> None:
    html = three._repr_html_()
    assert html.count("<tr>") == html.count("</tr>") == 4
    assert "&lt;b&gt;&amp;" in html
    assert "<b>&" not in html


def test_huge_losses_are_said_too() -> None:
    result = simulate(Uniform(2), StochasticGap(scale=1e308), 3000, 3, seed=1, checkpoints=3)
    assert result.regret.max() == np.inf  # no float64 can hold it
    [line] = result.summary()
    assert line.regret == np.inf
    assert 0.0 < line.relative < 3000.0
    assert "\n" not in repr(result)
    assert result.plot(relative=True) is not None


# ---------------------------------------------------------------------- frames


def test_frames_are_those_of_experiments(tmp_path: Path) -> None:
    document = {
        "learners": [{"name": "SCB"}, {"name": "Uniform"}], "arms": 4, "rounds": 200,
        "adversaries": [{"name": "StochasticGap", "gap": 0.3, "shift": 5.0, "scale": 1e3}],
        "replicates": 5, "seed": 3, "checkpoints": 6,
    }  # fmt: skip
    theirs = experiments.run(document, engine="serial")
    ours = compare({"SCB": SCB(4), "Uniform": Uniform(4)}, GAP, 200, 5, 3, checkpoints=6).to_frame()
    columns = [name for name in ours.columns if name not in ("learner", "adversary")]
    assert len(columns) == 10
    assert ours.select(columns).equals(theirs.select(columns))
    assert ours["learner"].to_list() == theirs["learner"].to_list()
    mdps = {
        "learners": [{"name": "RFELP", "episodes": 5}, {"name": "UniformPolicy"}], "seed": 3,
        "adversaries": [{"name": "Stochastic"}], "episodes": 60, "replicates": 4, "checkpoints": 5,
        "worlds": [{"name": "combination_lock", "horizon": 2, "n_actions": 2}],
    }  # fmt: skip
    from unbounded import RFELP

    mdp = worlds.combination_lock(2, 2, np.random.default_rng(0))
    sizes, actions = list(mdp.layers.sizes), mdp.layers.n_actions
    learners = {"RFELP": RFELP(sizes, actions, 5), "U": UniformPolicy(sizes, actions)}
    rows = compare_mdp(learners, mdp, Stochastic(), 60, 4, 3, checkpoints=5).to_frame()
    theirs = experiments.run(mdps, engine="serial")
    columns = [name for name in rows.columns if name not in ("learner", "adversary")]
    assert {"reach", "explored", "pseudo_regret"} < set(columns)
    assert rows["reach"].null_count() > 0
    assert rows.select(columns).equals(theirs.select(columns))


def test_pandas_has_the_same(three: Comparison[Simulation]) -> None:
    frame, other = three.to_frame("pandas"), three.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == other.columns
    for name in other.columns:
        assert frame[name].tolist() == other[name].to_list()
    with pytest.raises(ValueError, match="library must be one of 'polars', 'pandas', got 'dask'"):
        three.to_frame("dask")  # type: ignore[arg-type]


def test_no_pseudo_regret_no_column() -> None:
    result = simulate(SCB(4), GAP, 20, 2, seed=1, pseudo_regret=False)
    assert "pseudo_regret" not in result.to_frame().columns


# ----------------------------------------------------------------------- files


def test_saved_and_loaded(
    three: Comparison[Simulation], two_mdp: Comparison[MDPSimulation], tmp_path: Path
) -> None:
    path = tmp_path / "results.parquet"
    for whole in (three, two_mdp):
        whole.save(path)
        again = Comparison.load(path)
        assert list(again) == list(whole)
        assert all(same(again[name], whole[name]) for name in whole)
        assert again.to_frame().equals(whole.to_frame())
        assert pl.read_parquet(path).select(whole.to_frame().columns).equals(whole.to_frame())
    deep = np.random.SeedSequence([5, 2**80], spawn_key=(7, 8))
    odd = simulate(SCB(2), StochasticGap(scale=1e300), 9, 2, seed=deep, pseudo_regret=False)
    odd.save(path)
    again = Simulation.load(str(path))
    assert same(again, odd)
    assert (again.seed(1).generate_state(4) == odd.seed(1).generate_state(4)).all()
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_loaded_is_a_sentence(three: Comparison[Simulation], tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    three.save(path)
    with pytest.raises(ValueError, match=r"it holds a Comparison: use Comparison\.load"):
        Simulation.load(path)
    content = path.read_bytes()
    rng = np.random.default_rng(1)
    for position in rng.integers(0, len(content), 300):
        damaged = bytearray(content)
        damaged[position] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(damaged))
        with pytest.raises(ValueError, match=r"cannot be loaded: (its digest|it holds no results)"):
            Comparison.load(path)
    for length in (0, 1, 100, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"cannot be loaded: (its digest|it holds no results)"):
            Comparison.load(path)
    path.write_bytes(content)
    assert list(Comparison.load(path)) == list(three)
    three.to_frame().write_parquet(path)
    with pytest.raises(ValueError, match="it holds no results that `save` has written"):
        Comparison.load(path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="not a regular file"):
        Comparison.load(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError):
        Comparison.load(tmp_path / "nothing")


# ---------------------------------------------------------------------- charts


@pytest.fixture(autouse=True)
def no_windows() -> None:
    pytest.importorskip("matplotlib").use("agg")


def test_a_chart_has_the_means(three: Comparison[Simulation]) -> None:
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert three.plot(ax, interval=False) is ax
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert list(lines) == list(three)
    for name, line in lines.items():
        assert line.get_xdata().tolist() == three[name].checkpoints.tolist()
        mean = three[name].relative_regret("range").mean(axis=0)
        assert line.get_ydata() == pytest.approx(mean)
    looks = {(line.get_marker(), line.get_linestyle(), str(line._dash_pattern)) for line in
             lines.values()}  # fmt: skip
    assert len(looks) == 3  # also without color
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(three)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("round", "regret / range")


def test_more_charts_on_the_same_axes(three: Comparison[Simulation]) -> None:
    ax = three["SCB"].plot(log=False)
    three["mine"].plot(ax, relative=False, log=False)
    one, other = ax.get_lines()
    assert one.get_color() != other.get_color()
    assert other.get_ydata() == pytest.approx(three["mine"].regret.mean(axis=0))
    assert ax.get_xscale() == "linear"
    assert len(ax.collections) == 2  # intervals
    assert three.plot(log=True).get_yscale() == "log"
    flat = simulate(Uniform(2), lambda t, arm, q, rng: [1.0, 1.0], 10, 2, seed=1)
    assert flat.plot().get_yscale() == "linear"  # nothing but zeros
    with pytest.warns(UserWarning, match="no positive values"):
        flat.plot(log=True)
    with pytest.raises(TypeError, match="relative must be True or False"):
        three.plot(relative=1)  # type: ignore[arg-type]


WITHOUT = """
import sys
for name in ("polars", "matplotlib", "pandas"):
    sys.modules[name] = None
from unbounded import Simulation, Uniform, simulate
result = simulate(Uniform(2), lambda t, arm, q, rng: [0.0, 1.0], 20, 2, seed=1)
print(result, result.summary(), len(result._repr_html_()) > 100)
for call in (result.to_frame, result.plot, lambda: result.save("x"), lambda: Simulation.load("x"),
             lambda: result.to_frame("pandas")):
    try:
        call()
    except ModuleNotFoundError as error:
        print(error)
"""


def test_what_is_not_installed_is_named() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-5:] == [
        "to_frame needs polars: pip install 'unbounded[experiments]'",
        "plot needs matplotlib: pip install 'unbounded[plot]'",
        "save needs polars: pip install 'unbounded[experiments]'",
        "load needs polars: pip install 'unbounded[experiments]'",
        "to_frame('pandas') needs pandas: pip install pandas",
    ]
