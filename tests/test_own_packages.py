"""The example packages: algorithms of one's own, from files to a page, and that they are right."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import mpmath
import numpy as np
import pytest

import unbounded.settings
from unbounded import simulate
from unbounded.adversaries import StochasticGap
from unbounded.testing import check_mdp_learner, learner_checks

EXAMPLES = Path(__file__).parents[1] / "examples"
PACKAGES = ("own_bandit", "own_compiled", "own_mdp")
SOURCES = [EXAMPLES / name / "src" for name in PACKAGES]


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch):
    """The modules; what they have compiled is compiled by nobody."""
    monkeypatch.setattr(unbounded.settings, "jit", "never")
    for path in SOURCES:
        monkeypatch.syspath_prepend(str(path))
    yield {name: importlib.import_module(name) for name in PACKAGES}
    for name in [name for name in sys.modules if name.partition(".")[0] in PACKAGES]:
        del sys.modules[name]


def exp3pp(history, K, alpha, beta):
    """The next distribution after rounds of (arm, probability, loss), from the papers' formulas,
    with 50 digits: Seldin & Slivkins 2014, Algorithm 1; Seldin & Lugosi 2017, section 3."""
    with mpmath.workdps(50):
        t = len(history) + 1
        log, sqrt, mpf = mpmath.log, mpmath.sqrt, mpmath.mpf
        played = [[mpf(loss) for a, _, loss in history if a == k] for k in range(K)]
        L_tilde = [mpf(0)] * K
        for a, p, loss in history:
            L_tilde[a] += mpf(loss) / mpf(p)
        upper, lower = [], []
        for losses in played:
            if not losses:  # no bound is known
                upper.append(mpf(1))
                lower.append(mpf(0))
                continue
            N = len(losses)
            radius = sqrt(alpha * log(t * mpf(K) ** (mpf(1) / alpha)) / (2 * N))
            upper.append(min(mpf(1), sum(losses) / N + radius))
            lower.append(max(mpf(0), sum(losses) / N - radius))
        half = sqrt(log(K) / (t * K)) / 2
        epsilon = []
        for k in range(K):
            gap = max(mpf(0), lower[k] - min(upper))
            xi = mpmath.inf if gap == 0 else beta * log(t) / (t * gap**2)
            epsilon.append(min(mpf(1) / (2 * K), half, xi))
        weights = [mpmath.exp(-half * x) for x in L_tilde]
        rest = 1 - sum(epsilon)
        q = [rest * w / sum(weights) + e for w, e in zip(weights, epsilon, strict=True)]
        return np.array([float(x) for x in q]), min(epsilon) < min(mpf(1) / (2 * K), half)


@pytest.mark.parametrize(
    ("K", "alpha", "beta"), [(1, 3.0, 256.0), (2, 3.0, 256.0), (3, 0.1, 1e-3), (5, 3.0, 256.0)]
)
def test_exp3pp_is_what_an_independent_implementation_computes(packages, K, alpha, beta) -> None:
    learner = packages["own_bandit"].EXP3pp(K, alpha=alpha, beta=beta, seed=K)
    rng, history, less = np.random.default_rng(K), [], 0
    for t in range(60):
        expected, explored_less = exp3pp(history, K, alpha, beta)
        less += explored_less
        assert np.allclose(learner.probabilities(), expected, rtol=1e-12, atol=0.0)
        choice = learner.ask()
        loss = float(choice.arm > 0) if t % 3 else float(rng.random())
        history.append((choice.arm, choice.probability, loss))
        learner.tell(choice, loss)
    assert (less > 0) == (beta < 1.0)  # where beta is small, gaps decide
    if K > 1:  # a control: it would be seen if a round were left out, or a constant were another
        now = learner.probabilities()
        assert not np.allclose(now, exp3pp(history[:-1], K, alpha, beta)[0], rtol=1e-6)
        assert beta > 1.0 or not np.allclose(now, exp3pp(history, K, alpha, 2 * beta)[0], rtol=1e-6)


def test_its_python_form_is_under_forty_lines_and_the_compiled_one_imports_nothing_private() -> (
    None
):
    lines = (EXAMPLES / "own_bandit/src/own_bandit/__init__.py").read_text().splitlines()
    assert sum(bool(line.strip()) for line in lines) < 40
    text = (EXAMPLES / "own_compiled/src/own_compiled/__init__.py").read_text()
    assert set(re.findall(r"(?:from|import) (unbounded[\w.]*)", text)) == {"unbounded.extend"}


@pytest.mark.parametrize("n", [1, 4, 40])
def test_the_compiled_form_agrees_with_the_python_form(packages, n) -> None:
    agree(packages["own_bandit"].EXP3pp, packages["own_compiled"].CompiledEXP3pp, n, 120)


@pytest.mark.long
@pytest.mark.parametrize("n", [2, 10, 100])
def test_the_compiled_form_agrees_with_the_python_form_when_it_is_compiled(
    packages, n, monkeypatch
) -> None:
    monkeypatch.setattr(unbounded.settings, "jit", "always")
    agree(packages["own_bandit"].EXP3pp, packages["own_compiled"].CompiledEXP3pp, n, 20_000)


def agree(in_python, compiled, n, rounds):
    """The same arms in every round and the same regret; probabilities up to rounding."""
    settings = {"alpha": 1.0, "beta": 1e-3, "loss_range": (0.0, 2.0)}
    one, other = in_python(n, **settings, seed=3), compiled(n, **settings, seed=3)
    rng = np.random.default_rng(n)
    for t in range(rounds):
        a, b = one.ask(), other.ask()
        assert a.arm == b.arm
        loss = float(rng.normal(1.0 + a.arm / n))
        one.tell(a, loss)
        other.tell(b, loss)
        if t < 1000:  # in the long run the last bits of exp grow: each probability divides a loss
            assert np.allclose(one.probabilities(), other.probabilities(), rtol=1e-9, atol=1e-15)
    assert one.clipped == other.clipped > 0
    losses = StochasticGap(gap=0.3)
    first = simulate(in_python(n), losses, rounds, 1, seed=1)
    second = simulate(compiled(n), losses, rounds, 1, seed=1)
    assert np.array_equal(first.regret, second.regret)
    assert np.allclose(first.pseudo_regret, second.pseudo_regret, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("package", "name"), [("own_bandit", "EXP3pp"), ("own_compiled", "CompiledEXP3pp")]
)
def test_they_pass_the_checks_for_learners(packages, package, name) -> None:
    for check in learner_checks(getattr(packages[package], name)):
        if check.name != "compiled":  # it takes a compiler; see above
            check()


def test_the_mdp_learner_passes_its_checks(packages) -> None:
    check_mdp_learner(packages["own_mdp"].GreedyModel)


def test_greedy_model_plans_as_backward_induction_does(packages) -> None:
    """Against brute force, in the MDP of its counts."""
    import itertools

    learner = packages["own_mdp"].GreedyModel([2, 2], 2, explore=0.0, seed=0)
    rng = np.random.default_rng(1)
    learner.costs = [rng.random((2, 2)), rng.random((2, 2))]
    learner.counts = [np.ones((2, 2)), np.ones((2, 2))]
    learner.moves = [rng.dirichlet([1, 1], size=(2, 2))]
    first, second = learner.policy()

    def cost(s, a, rule):
        return learner.costs[0][s, a] + sum(
            learner.moves[0][s, a, r] * learner.costs[1][r, rule[r]] for r in range(2)
        )

    for s in range(2):
        best = min(
            ((a, rule) for a in range(2) for rule in itertools.product(range(2), repeat=2)),
            key=lambda one: cost(s, *one),
        )
        assert first[s, best[0]] == 1.0
        assert [second[r, best[1][r]] for r in range(2)] == [1.0, 1.0]


def offered(directory: Path) -> dict[str, str]:
    """The environment of processes for which the packages are installed, without installing."""
    for name in PACKAGES:
        project = tomllib.loads((EXAMPLES / name / "pyproject.toml").read_text())["project"]
        info = directory / f"{name}-{project['version']}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        )
        (info / "top_level.txt").write_text(f"{name}\n")
        lines = []
        for group, entries in project["entry-points"].items():
            lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    path = os.pathsep.join([str(directory), *map(str, SOURCES)])
    return os.environ | {"PYTHONPATH": path}


def experiments(directory: Path) -> Path:
    directory.mkdir()
    for name in PACKAGES:
        shutil.copy(EXAMPLES / name / "experiment.toml", directory / f"{name}.toml")
    return directory


@pytest.mark.long
def test_from_toml_on_two_workers_to_a_page(tmp_path: Path) -> None:
    environment = offered(tmp_path / "site") | {"UNBOUNDED_JIT": "never"}
    files, out = experiments(tmp_path / "files"), tmp_path / "out"

    def run(*arguments: object) -> str:
        command = [sys.executable, "-m", "unbounded.cli.app", *map(str, arguments)]
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    assert "0 failed" in run("run", files, "--quick", "--workers", 2, "--out", out)
    run("report", out, "--no-figures")
    page = (out / "report.html").read_text()
    for name in ("EXP3pp", "CompiledEXP3pp", "GreedyModel", "SCB", "turns", "corridor"):
        assert f'"{name}"' in page, name
    assert "own_bandit of own-bandit 0.1.0" in page
    assert "Seldin &" in page


@pytest.mark.long
def test_as_wheels_in_a_new_environment_on_workers_and_on_dask(tmp_path: Path) -> None:
    """What an author does who publishes an algorithm, and what a reader does with it."""

    def run(*command: object, cwd: Path = tmp_path) -> str:
        done = subprocess.run(
            [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    wheels, root = tmp_path / "wheels", EXAMPLES.parent
    for source in (root, *(EXAMPLES / name for name in PACKAGES)):
        run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", wheels, source)
    run(sys.executable, "-m", "venv", tmp_path / "fresh")
    bin = tmp_path / "fresh" / "bin"
    wanted = [name.replace("_", "-") for name in PACKAGES]
    run(bin / "pip", "install", "-q", "--find-links", wheels, *wanted, "unbounded[cluster]")
    files = experiments(tmp_path / "files")
    run(bin / "unbounded", "run", files, "--quick", "--workers", 2, "--out", "local")
    scheduler = ["dask", "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    command = [str(bin / scheduler[0]), *scheduler[1:], "--scheduler-file", "where.json"]
    started = [subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)]
    try:
        for number in range(2):
            place = tmp_path / f"worker-{number}"
            place.mkdir()
            command = [str(bin / "dask"), "worker", "--scheduler-file", "../where.json"]
            command += ["--nthreads", "1", "--no-dashboard", "--no-nanny"]
            started.append(subprocess.Popen(command, cwd=place, stderr=subprocess.DEVNULL))
        wait = "from distributed import Client; c = Client(scheduler_file='where.json'); " + (
            "c.wait_for_workers(2, timeout=120); print(c.scheduler.address)"
        )
        address = run(bin / "python", "-c", wait).strip().splitlines()[-1].removeprefix("tcp://")
        run(
            bin / "unbounded",
            "run",
            files,
            "--quick",
            "--out",
            "dask",
            "--engine",
            f"dask://{address}",
        )
    finally:
        for process in reversed(started):
            process.kill()  # a worker that loses its scheduler while it ends may wait for ever
        for process in started:
            process.wait()
    run(bin / "unbounded", "report", "dask", "--no-figures")
    assert '"GreedyModel"' in (tmp_path / "dask" / "report.html").read_text()
    same = "from unbounded import experiments; " + "; ".join(
        f"a, b = (experiments.results(f'{{d}}/{name}').drop(*experiments.TIMING) "
        "for d in ('local', 'dask')); "
        "assert a.height and a.equals(b)"
        for name in PACKAGES
    )
    run(bin / "python", "-c", same)
