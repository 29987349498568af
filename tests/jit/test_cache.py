"""Compiled code of other processes is used when it is the same code, and only then."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import unbounded
from tiers import first_only

PACKAGE = Path(unbounded.__file__).parent

PROGRAM = """
from unbounded.bandits_of_test.caller import outer
from unbounded.jit.files import cache_directory
print(outer(2.0), outer.stats.cache_hits[next(iter(outer.signatures))], cache_directory())
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A small package with ours' decorator: a kernel that calls one of another file."""
    copy = tmp_path / "unbounded"
    (copy / "bandits_of_test").mkdir(parents=True)
    shutil.copytree(PACKAGE / "jit", copy / "jit", ignore=lambda *_: ["__pycache__"])
    for name in ("io", "settings", "validation"):
        shutil.copy(PACKAGE / f"{name}.py", copy)
    (copy / "__init__.py").write_text("")
    (copy / "bandits_of_test" / "__init__.py").write_text("")
    write_callee(copy, "x + 1.0")
    (copy / "bandits_of_test" / "caller.py").write_text(
        "from unbounded.jit.kernel import counting_kernel as kernel\n"
        "from unbounded.bandits_of_test.callee import inner\n"
        "@kernel\n"
        "def outer(x):\n    return 10.0 * inner(x)\n"
    )
    return copy


def write_callee(package: Path, expression: str, made: str = "kernel") -> None:
    (package / "bandits_of_test" / "callee.py").write_text(
        f"from unbounded.jit.kernel import {made}\n"
        f"@{made}\ndef inner(x):\n    return {expression}\n"
    )


def surroundings(package: Path) -> dict[str, str]:
    """Of a process that uses this package, and its own cache."""
    others = {name: value for name, value in os.environ.items() if name != "UNBOUNDED_CACHE_DIR"}
    return others | {"PYTHONPATH": str(package.parent)}


def run(package: Path, program: str = PROGRAM, warned: str = "", **environment: str) -> list[str]:
    """What the program prints in a new process; ``warned`` is in the one warning, if there is."""
    result = subprocess.run(
        [sys.executable, "-c", program],
        env=surroundings(package) | environment,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("Warning: ") == bool(warned), result.stderr
    assert warned in result.stderr
    return result.stdout.split()


@pytest.mark.parametrize("made", first_only(["kernel", "subroutine"]))
def test_an_edit_of_a_callee_in_another_file_is_seen(package, made):
    write_callee(package, "x + 1.0", made)
    assert run(package)[:2] == ["30.0", "0"]
    assert run(package)[:2] == ["30.0", "1"]  # from the cache
    write_callee(package, "x + 2.0", made)
    assert run(package)[:2] == ["40.0", "0"]
    write_callee(package, "x + 1.0", made)
    assert run(package)[:2] == ["30.0", "1"]  # as it was before


@pytest.mark.long
def test_a_subroutine_whose_code_is_gone_is_compiled_again(package):
    """Its callers call it by its name, which would lead nowhere."""
    write_callee(package, "x + 1.0", "subroutine")
    run(package)
    for path in package.rglob("*-inner.*.nbc"):
        path.unlink()
    # In a process that has compiled something before, it is another function for Numba.
    first = "from unbounded.jit.kernel import counting_kernel as kernel\n"
    first += "".join(f"kernel(lambda x: x + {i})(1)\n" for i in range(11))
    assert run(package, first + PROGRAM)[:2] == ["30.0", "0"]
    assert run(package)[:2] == ["30.0", "1"]


FOREIGN = """
from numba import njit
from unbounded.bandits_of_test.caller import outer
@njit(cache=True)
def foreign(x):
    return outer(x)
print(foreign(2.0))
"""


def test_numbas_own_cache_keeps_no_call_of_a_subroutine(package):
    """It does not know that the subroutine must be there, and the process would end."""
    write_callee(package, "x + 1.0", "subroutine")
    (package.parent / "foreign.py").write_text(FOREIGN)
    for _ in range(2):
        why = "Cannot cache compiled function"
        assert run(package, "import foreign", warned=why) == ["30.0"]


EDITED = """
from pathlib import Path
from unbounded.bandits_of_test import callee, caller
Path(callee.__file__).write_text(Path(callee.__file__).read_text().replace("1.0", "2.0"))
print(caller.outer(2.0))
"""


def test_fields_in_another_order_are_seen(package):
    """Of a NamedTuple that a kernel only takes as an argument; their types are the same."""
    caller = package / "bandits_of_test" / "caller.py"
    for order, hits in (("x y", "0"), ("x y", "1"), ("y x", "0"), ("x y", "1")):
        first, second = order.split()
        caller.write_text(
            "from typing import NamedTuple\n"
            "from unbounded.jit.kernel import counting_kernel as kernel\n"
            f"class State(NamedTuple):\n    {first}: float\n    {second}: float\n"
            "@kernel\n"
            "def outer(state):\n    return state.x\n"
        )
        program = PROGRAM.replace("import outer", "import State, outer").replace(
            "outer(2.0)", "outer(State(x=1.0, y=2.0))"
        )
        assert run(package, program)[:2] == ["1.0", hits]


def test_an_edit_under_a_running_process_does_not_mislead_the_next(package):
    """The old code, which the process has imported, is not kept as the new."""
    assert run(package, EDITED) == ["30.0"]
    assert run(package)[:2] == ["40.0", "0"]


@pytest.mark.long
def test_a_constant_that_is_replaced_is_seen(package):
    """Whoever changes a constant of a module changes what is compiled."""
    changed = "from unbounded.bandits_of_test import callee\ncallee.C = {}\n" + PROGRAM
    write_callee(package, "x + C")
    for value, expected in (("1.0", "30.0"), ("2.0", "40.0"), ("1.0", "30.0")):
        assert run(package, changed.format(value))[0] == expected


def test_a_read_only_installation_uses_the_users_cache(package, tmp_path):
    # A file in place of the directory keeps even root from writing there.
    (package / "__pycache__").mkdir(exist_ok=True)
    (package / "__pycache__" / "kernels").write_text("")
    *_, directory = run(package, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert directory.startswith(str(tmp_path / "cache" / "unbounded"))
    assert run(package, XDG_CACHE_HOME=str(tmp_path / "cache"))[1] == "1"


def test_what_others_can_write_is_not_used_and_it_is_said(package, tmp_path):
    shared = tmp_path / "shared"
    place = {"UNBOUNDED_CACHE_DIR": str(shared)}
    assert run(package, **place)[:2] == ["30.0", "0"]
    assert run(package, **place)[:2] == ["30.0", "1"]
    shared.chmod(0o777)
    why = f"CacheWarning: compiled code is not cached: {shared} can be written by other users"
    assert run(package, warned=why, **place) == ["30.0", "0", "None"]


def test_no_place_to_write_is_no_obstacle(package, tmp_path):
    (tmp_path / "file").write_text("")
    place = {"UNBOUNDED_CACHE_DIR": str(tmp_path / "file")}
    assert run(package, warned="is not a directory", **place) == ["30.0", "0", "None"]


@pytest.mark.long  # test_locks.py has two
def test_processes_that_compile_at_once_agree(package):
    environment = surroundings(package)
    command = [sys.executable, "-c", PROGRAM]
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert {process.communicate()[0].split()[0] for process in running} == {"30.0"}
    assert run(package)[:2] == ["30.0", "1"]


FOR_C = """
import gc
from numba import types
from numba.core.environment import Environment
from unbounded.jit.kernel import pointer
from unbounded.bandits_of_test.callee import inner
made = pointer(inner, types.float64(types.float64))
gc.collect()
print(made._cache_hits, any(name.endswith("whole") for name in Environment._memo))
"""


def test_what_machine_code_points_to_lives_as_long_as_the_code(package):
    assert run(package, FOR_C) == ["0", "True"]
    assert run(package, FOR_C) == ["1", "True"]


# ------------------------------------------------------------------ damage

# A process whose forked children play with damaged files. It prints how many changes of files came
# to how many children, how many files were written again, and how many children crashed or played
# something else.
DAMAGE = """
import os, random, re, sys
from pathlib import Path
import numpy as np
from unbounded import Exp3, Uniform, UniformPolicy, simulate, simulate_mdp, worlds
from unbounded.adversaries import StochasticGap
from unbounded.adversaries.mdps import Stochastic

def play():
    learner = Exp3(n_arms=3, rounds=50, seed=0)
    for t in range(30):
        choice = learner.ask()
        learner.tell(choice, choice.arm / 3.0)
    numbers = [learner.probabilities()]
    numbers += [simulate(Uniform(n_arms=2), StochasticGap(), rounds=50, seed=0, workers=1).regret]
    if {mdps}:
        mdp = worlds.dirichlet([2, 2], 2, np.random.default_rng(0))
        learner = UniformPolicy([2, 2], 2)
        numbers += [simulate_mdp(learner, mdp, Stochastic(), 20, seed=1, workers=1).regret]
    return "".join(part.tobytes().hex() for part in numbers)

def child():
    "What a child plays; empty if it crashed."
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        try:
            os.write(write, play().encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read) as file:
        played = file.read()
    return played if os.waitpid(pid, 0)[1] == 0 else ""

def damaged(data):
    "One byte changed; now and then the end lost, or something appended."
    where, kind = rng.randrange(len(data)), rng.random()
    if kind < 0.1:
        return data[:where]
    if kind < 0.2:
        return data + rng.randbytes(1 + where % 8)
    return data[:where] + bytes([data[where] ^ rng.randrange(1, 256)]) + data[where + 1 :]

rng = random.Random(0)
cache = Path(os.environ["UNBOUNDED_CACHE_DIR"])
expected = child()
assert expected
changes = children = repaired = bad = 0
while changes < {changes}:
    # One that is loaded at once, and others that are loaded when that is compiled again.
    files = sorted(cache.glob("*.nbc"))
    first = [path for path in files if re.search("_(ask|tell|look|run|rows|losses)[.]", path.name)]
    chosen = dict.fromkeys((rng.choice(first), *rng.sample(files, {at_once} - 1)), b"")
    for path in chosen:
        chosen[path] = damaged(path.read_bytes())
        path.write_bytes(chosen[path])
    bad += child() != expected
    changes += len(chosen)
    children += 1
    repaired += sum(path.read_bytes() != data for path, data in chosen.items())
print(changes >= {changes}, repaired >= children, bad)
"""


def play_after_damage(cache: Path, **settings: object) -> None:
    environment = {"UNBOUNDED_CACHE_DIR": str(cache), "OPENBLAS_NUM_THREADS": "1"}
    assert run(PACKAGE, DAMAGE.format(**settings), **environment) == ["True", "True", "0"]


def test_damaged_files_are_compiled_again(tmp_path):
    play_after_damage(tmp_path / "cache", changes=16, at_once=8, mdps=False)


@pytest.mark.long
def test_many_damaged_files_are_compiled_again(tmp_path):
    play_after_damage(tmp_path / "cache", changes=500, at_once=4, mdps=True)
