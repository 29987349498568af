"""`benchmarks/unchanged.py` reports one operation that is another one, and nothing else."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import unbounded

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
ONLY = "short/bandit/Exp3()/5 arms"
PLACE, LINE = "bandits/baselines/exp3.py", "L_hat[arm] += x / p_k"


def run(package: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The program with the package that is in this folder."""
    command = [sys.executable, str(BENCHMARKS / "unchanged.py"), *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def record(folder: Path, after: str = LINE) -> Path:
    """The recording of a copy of the package, in which a line may be another one."""
    package, out = folder / "src" / "unbounded", folder / "out.json"
    (folder / "tests").mkdir()
    shutil.copy(Path(__file__).with_name("occupancy_facades.py"), folder / "tests")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(unbounded.__file__).parent, package, ignore=ignored)
    source = (package / PLACE).read_text()
    assert source.count(LINE) == 1
    (package / PLACE).write_text(source.replace(LINE, after))
    done = run(package.parent, "record", out, "--interpreted", "--only", ONLY)
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"playing {package}" in done.stdout
    return out


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("before"))


def test_a_copy_plays_the_same(before: Path, tmp_path: Path) -> None:
    done = run(tmp_path, "compare", before, record(tmp_path))
    assert done.returncode == 0, done.stdout
    assert "4 records, none differ" in done.stdout


@pytest.mark.parametrize(
    "after",
    ["L_hat[arm] -= x / p_k", "L_hat[arm] += x / p_k * (1.0 + 2.0**-52)"],
    ids=["an operator", "a bit"],
)
def test_one_operation_or_bit_is_reported(before: Path, tmp_path: Path, after: str) -> None:
    done = run(tmp_path, "compare", before, record(tmp_path, after))
    assert done.returncode == 1
    assert f"\n{ONLY}" in f"\n{done.stdout}"
    assert "probabilities" in done.stdout


@pytest.fixture(scope="module")
def lines() -> Any:
    """The module that finds the lines of kernels."""
    spec = importlib.util.spec_from_file_location(
        "unchanged_coverage", BENCHMARKS / "unchanged_coverage.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SOURCE = '''
def kernel(function):
    return function

@kernel
def sign(x):
    """Of a number."""
    if x > 0:
        return 1
    return -1

def made(entry):
    def inner(x):
        return sign(x)
    return entry(inner)

def other(x):
    return x
'''


def covered(lines: Any, path: Path, x: float, listed: dict[str, str]) -> list[str]:
    """What is wrong after a call of the kernels in ``path``."""
    namespace: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    found = [*lines.kernels_of(path)]
    assert [kernel.name for kernel in found] == ["two.sign", "two.made.inner"]
    with lines.reached(found) as seen:
        namespace["made"](lambda function: function)(x)
    return lines.report(found, seen, listed)


def test_lines_that_are_not_reached_are_reported(lines: Any, tmp_path: Path) -> None:
    path = tmp_path / "two.py"
    path.write_text(SOURCE)
    reason = {"two.sign: return -1": "no negative number is given"}
    (wrong,) = covered(lines, path, 1.0, {})
    assert "two.py:10 two.sign: return -1" in wrong
    assert covered(lines, path, 1.0, reason) == []
    assert covered(lines, path, -1.0, reason) == [
        f"never reached: {path}:9 two.sign: return 1",
        "listed, but reached: two.sign: return -1",
    ]
    assert covered(lines, path, 1.0, {**reason, "two.gone: pass": ""}) == [
        "listed, but not there: two.gone: pass"
    ]
