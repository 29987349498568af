"""The compile cache never serves stale code, and never stands in the way."""

from __future__ import annotations

import ast
import gc
import os
import shutil
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
from numba import types

import unbounded
from unbounded._jit import Compiled, _named_in, kernel

PACKAGE = Path(unbounded.__file__).parent

PROGRAM = """
from unbounded.bandits_of_test.caller import outer
from unbounded._jit import cache_directory
print(outer(2.0), outer.stats.cache_hits[next(iter(outer.signatures))], cache_directory())
"""


# An adversary or a learner of a user: its own step, and an entry that the package makes of it.
OUTSIDE = """
from unbounded._jit import kernel
from unbounded.bandits_of_test.maker import made_for
@kernel
def step(x):
    return x + {number}
entry = made_for(step, {module})
print(entry(2.0), entry.stats.cache_hits.get(next(iter(entry.signatures)), 0))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A small package with ours' decorator: a kernel that calls one of another file."""
    copy = tmp_path / "unbounded"
    (copy / "bandits_of_test").mkdir(parents=True)
    shutil.copy(PACKAGE / "_jit.py", copy)
    (copy / "__init__.py").write_text("")
    (copy / "bandits_of_test" / "__init__.py").write_text("")
    write_callee(copy, "x + 1.0")
    (copy / "bandits_of_test" / "caller.py").write_text(
        "from unbounded._jit import kernel\n"
        "from unbounded.bandits_of_test.callee import inner\n"
        "@kernel\n"
        "def outer(x):\n    return 10.0 * inner(x)\n"
    )
    (copy / "bandits_of_test" / "maker.py").write_text(
        "from unbounded._jit import kernel\n"
        "def made_for(step, module):\n"
        "    def entry(x):\n        return 10.0 * step(x)\n"
        "    entry.__module__ = module\n"
        "    return kernel(entry)\n"
    )
    return copy


def write_callee(package: Path, expression: str) -> None:
    (package / "bandits_of_test" / "callee.py").write_text(
        f"from unbounded._jit import kernel\n@kernel\ndef inner(x):\n    return {expression}\n"
    )


def run(package: Path, program: str = PROGRAM, **environment: str) -> list[str]:
    result = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(package.parent)} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout.split()


def test_an_edit_of_a_callee_in_another_file_is_seen(package):
    assert run(package)[:2] == ["30.0", "0"]
    assert run(package)[:2] == ["30.0", "1"]  # from the cache
    write_callee(package, "x + 2.0")
    assert run(package)[:2] == ["40.0", "0"]
    write_callee(package, "x + 1.0")
    assert run(package)[0] == "30.0"


def test_an_edit_outside_of_the_package_is_seen(package):
    """What the package makes of a user's step has its code from a file of the package."""
    for number, expected in (("1.0", "30.0"), ("2.0", "40.0"), ("1.0", "30.0")):
        program = OUTSIDE.format(number=number, module="__name__")
        assert run(package, program) == [expected, "0"]
    assert not list(package.rglob("*entry*.nbc"))


def test_what_is_made_for_a_module_of_the_package_is_cached(package):
    program = OUTSIDE.format(number="1.0", module="'unbounded.bandits_of_test.callee'")
    assert run(package, program) == ["30.0", "0"]
    assert run(package, program) == ["30.0", "1"]
    write_callee(package, "x + 7.0")  # its file has changed, whatever is made for it
    assert run(package, program) == ["30.0", "0"]


def test_no_import_is_overlooked():
    """The hash follows import statements by a pattern; the syntax tree knows them all."""
    for path in PACKAGE.rglob("*.py"):
        parts = ("unbounded", *path.relative_to(PACKAGE).with_suffix("").parts)
        imported = set()
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.module is not None, f"a relative import in {path}"
                imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        ours = {name for name in imported if name.split(".")[0] == "unbounded"}
        assert ours <= _named_in(".".join(parts).removesuffix(".__init__")), path


def test_a_damaged_cache_is_compiled_again(package):
    *_, directory = run(package)
    for path in Path(directory).glob("*.nbc"):
        path.write_bytes(path.read_bytes()[:100])
    assert run(package)[:2] == ["30.0", "0"]


def test_a_read_only_installation_uses_the_users_cache(package, tmp_path):
    # A file in place of the directory keeps even root from writing there.
    (package / "__pycache__").mkdir(exist_ok=True)
    (package / "__pycache__" / "kernels").write_text("")
    *_, directory = run(package, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert directory.startswith(str(tmp_path / "cache" / "unbounded"))


def test_no_place_to_write_is_no_obstacle(package, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert run(package, UNBOUNDED_CACHE_DIR=str(blocked)) == ["30.0", "0", "None"]


def test_processes_that_compile_at_once_agree(package):
    environment = os.environ | {"PYTHONPATH": str(package.parent)}
    command = [sys.executable, "-c", PROGRAM]
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert {process.communicate()[0].split()[0] for process in running} == {"30.0"}
    assert run(package)[:2] == ["30.0", "1"]


def test_a_compiled_value_keeps_its_kernel_alive():
    """A kernel may refer to Python objects, which the machine code alone does not keep."""

    def double(x):
        return 2.0 * x

    dispatcher = kernel(double)
    alive = weakref.ref(dispatcher)
    value = Compiled(dispatcher, types.float64(types.float64))
    del dispatcher
    gc.collect()
    assert alive() is not None
    del value
