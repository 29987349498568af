"""The accelerator: kernels count no references, nothing is freed too early or never; and the
reference path, which plays the same where the accelerator cannot."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import weakref

import numba
import numpy as np
import pytest
from numba.core.lowering import Lower

from occupancy_facades import OccupancyFTRL
from tiers import first_only
from unbounded.core.occupancy.layout import Layers
from unbounded.jit import backend
from unbounded.jit.backend import Uncounted
from unbounded.jit.kernel import counting_kernel, kernel, section, subroutine

if numba.config.DISABLE_JIT:
    pytest.skip("nothing is compiled", allow_module_level=True)


def made(how=subroutine):
    """Three kernels: one returns a view, one calls it, one of a user calls that."""

    @how
    def second_half(x):
        return section(x, x.size // 2, x.size)

    @how
    def last_of_half(x):
        half = second_half(x)
        return half[half.size - 1] + second_half(half)[0]

    @counting_kernel
    def of_a_user(n):
        half = second_half(np.full(n, 1.5))  # nobody else holds it now
        other = np.full(n, 9.0)  # takes the place of what was freed
        return half[0] + last_of_half(other) - 18.0

    return second_half, last_of_half, of_a_user


def lives_on(function):
    """Whether an array is still there, after ``function`` had it and nobody holds it."""
    array = np.full(1000, 2.5)
    function(array)
    there = weakref.ref(array)
    del array
    gc.collect()
    return there() is not None


@pytest.mark.parametrize("how", [kernel, subroutine])
def test_a_view_holds_what_it_is_a_view_of(how):
    second_half, last_of_half, of_a_user = made(how)
    half = second_half(np.full(1000, 2.5))
    others = [np.zeros(1000) for _ in range(100)]
    assert (half == 2.5).all()
    assert len(others) == 100
    assert last_of_half(np.full(1000, 2.5)) == 5.0
    assert all(of_a_user(n) == 1.5 for n in (10, 1000, 100_000) for _ in range(100))


@pytest.mark.parametrize("how", [kernel, subroutine])
def test_nothing_is_held_for_ever(how):
    second_half, last_of_half, _ = made(how)
    assert not lives_on(second_half)
    assert not lives_on(last_of_half)


def test_what_is_not_let_go_of_is_noticed(monkeypatch, tmp_path):
    """The control of the test above."""
    monkeypatch.setenv("UNBOUNDED_CACHE_DIR", str(tmp_path))  # nobody else may find such code
    monkeypatch.setattr(backend, "_verdict", True)  # the self-test would see it
    monkeypatch.setattr(Uncounted, "lower_expr", Lower.lower_expr)
    second_half, last_of_half, _ = made()
    assert not lives_on(second_half)
    assert lives_on(last_of_half)


def test_a_kernel_of_the_package_does_not_return_what_it_makes():
    @subroutine
    def makes(n):
        return np.zeros(n)

    @subroutine
    def uses(n):
        return np.zeros(n).size

    assert uses(3) == 3
    with pytest.raises(TypeError, match="makes an array and returns one: let its caller make it"):
        makes(3)


def test_a_users_kernel_may():
    @counting_kernel
    def makes(n):
        return np.full(n, 3.0)

    @counting_kernel
    def uses(n):
        return makes(n)[n - 1]

    assert makes(4).tolist() == [3.0] * 4
    assert all(uses(n) == 3.0 for n in range(1, 200))


@pytest.mark.parametrize("spread", [1.0, 1e25])
def test_a_solver_holds_nothing_when_it_is_gone(spread):
    """Also when it was not easy, and made arrays."""
    layers = Layers([3, 3], n_actions=2)
    rng = np.random.default_rng(1)
    solver = OccupancyFTRL(
        layers, np.zeros(layers.n_transitions), np.full(layers.n_transitions, 0.7)
    )
    held = [weakref.ref(array) for array in (solver._work, solver.memory.v, solver._q, solver.lo)]
    for _ in range(3):
        losses = rng.exponential(size=layers.n_pairs) * spread ** rng.uniform(size=layers.n_pairs)
        solver.solve(losses, [1.0, 1.0])
    del solver
    gc.collect()
    assert [one() is None for one in held] == [True] * 4


# ------------------------------------------------------------------ which path

# Kernels of a small program, one of each kind; what it prints is the same on every path.
PROGRAM = """
import logging, sys
logging.basicConfig(level=logging.WARNING, format="message: %(message)s", stream=sys.stderr)
import numba, numpy as np
logging.getLogger("numba").setLevel(logging.WARNING)
{change}
from numba import types
from unbounded import settings
from unbounded.jit.kernel import assign, kernel, pointer, section, subroutine

@subroutine
def half(x):
    return section(x, 0, x.size // 2)

@kernel
def total(x, y):
    assign(half(y), half(x))
    s = 0.0
    for value in half(y):
        s += value / 3.0
    return s

@kernel
def call(function, x):
    return function(x)

def double(x):
    return 2.0 * x

x = np.arange(6.0)
for _ in range(3):
    s = total(x, np.zeros(6))
print(s, call(pointer(double, types.float64(types.float64)), 4.0), sys.getrefcount(x))
print(settings.compiled_path(), total.stats.cache_hits[next(iter(total.signatures))])
"""


def run(cache, change="", **environment):
    """What the program prints, and the messages."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(change=textwrap.dedent(change))],
        env=os.environ | {"UNBOUNDED_CACHE_DIR": str(cache)} | environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    played, path = done.stdout.splitlines()
    assert played == "1.0 8.0 2"
    messages = [line for line in done.stderr.splitlines() if "message: " in line]
    warned = [line for line in done.stderr.splitlines() if "CacheWarning: " in line]
    return path.split(), messages, warned


@pytest.mark.long
def test_each_path_has_its_own_files_and_says_which_it_is(tmp_path):
    assert run(tmp_path) == (["accelerated", "0"], [], [])
    assert run(tmp_path) == (["accelerated", "1"], [], [])
    assert run(tmp_path, UNBOUNDED_ACCELERATOR="off") == (["reference", "0"], [], [])
    assert run(tmp_path, UNBOUNDED_ACCELERATOR="off") == (["reference", "1"], [], [])


def test_an_untested_numba_has_the_reference_path(tmp_path):
    newer = "numba.__version__ = '0.99.0'"
    for hits in ("0", "1"):
        path, [message], warned = run(tmp_path, newer)
        assert path == ["reference", hits]
        assert "0.99.0" in message
        assert not warned


# What a later Numba may lack is taken away where the package looks for it.
HIDDEN = """
import importlib, sys, types
path, _, name = {name!r}.rpartition(".")
real = importlib.import_module(path)
sys.modules[path] = types.ModuleType(path)
vars(sys.modules[path]).update(vars(real))
delattr(sys.modules[path], name)
package = sys.modules[path.rpartition(".")[0]]
setattr(package, path.rpartition(".")[2], sys.modules[path])
from unbounded import SCB  # whose kernels are what first asks for it
sys.modules[path] = real
setattr(package, path.rpartition(".")[2], real)
"""
# What is taken away, and what then happens: the path, hits of the cache in a second process, and
# the numbers of messages in the log and of warnings.
REMOVED = {
    "numba.core.ccallback.CFunc": ("reference", "0", 0, 1),
    "numba.core.codegen.JITCodeLibrary": ("reference", "1", 1, 0),
    "numba.core.lowering.Lower": ("reference", "1", 1, 0),
    "numba.core.environment.lookup_environment": ("reference", "1", 1, 0),
    "numba.core.cgutils.raw_memmove": ("reference", "1", 1, 0),
    # What files of compiled code need: it is compiled in each process.
    "numba.core.compiler.CompileResult._reduce": ("accelerated", "0", 0, 1),
    "numba.core.compiler.CompileResult._rebuild": ("accelerated", "0", 0, 1),
}
CHANGED = {
    # another order of arguments
    "load_overload": (
        "numba.core.caching.NullCache.load_overload = lambda self, a, b, c=0: None",
        ("reference", "0", 0, 1),
    ),
    # another meaning of what is returned, which only the process notices that reads the file
    "_reduce": (
        "numba.core.compiler.CompileResult._reduce = lambda self: (1, 2)",
        ("accelerated", "0", 0, 1),
    ),
    "_rebuild": (
        "numba.core.compiler.CompileResult._rebuild = classmethod(lambda cls, *_: cls._no)",
        ("accelerated", "0", 0, 1),
    ),
    "pipelines": (
        """
        from numba.core.compiler import Compiler
        pipelines = Compiler.define_pipelines
        Compiler.define_pipelines = lambda self: pipelines(self) * 2
        """,
        ("reference", "1", 1, 0),
    ),
    # one reference too many
    "decref": (
        """
        from numba.core.lowering import Lower
        import unbounded.jit.backend as backend
        backend.Uncounted.lower_expr = Lower.lower_expr
        """,
        ("reference", "1", 1, 0),
    ),
    # one too few
    "incref": (
        """
        from numba.core.lowering import Lower
        import unbounded.jit.backend as backend
        backend.Uncounted.lower_inst = Lower.lower_inst
        """,
        ("reference", "1", 1, 0),
    ),
}


def second_run(cache, change):
    run(cache, change)
    (path, hits), messages, warned = run(cache, change)
    return path, hits, len(messages), len(warned)


@pytest.mark.parametrize("name", first_only(REMOVED))
def test_without_a_private_name_it_plays_and_says_so_once(tmp_path, name):
    module = name.rpartition(".")[0]
    if module.rpartition(".")[2][0].isupper():
        change = f"import {module.rpartition('.')[0]}\ndel {name}"
    else:
        change = HIDDEN.format(name=name)
    assert second_run(tmp_path, change) == REMOVED[name]


@pytest.mark.parametrize("name", first_only(CHANGED))
def test_with_a_changed_private_name_it_plays_and_says_so_once(tmp_path, name):
    change, expected = CHANGED[name]
    change = f"import numba.core.caching, numba.core.compiler\n{textwrap.dedent(change)}"
    assert second_run(tmp_path, change) == expected


@pytest.mark.long
def test_where_the_self_test_fails_auto_mode_loads_what_is_cached(tmp_path):
    """By the reference path; the test runs only before something is compiled."""
    program = """
        from unbounded import Uniform
        from unbounded.adversaries import StochasticGap
        from unbounded.jit import backend, schedule
        backend._self_test = lambda: "no"
        learner = Uniform(3, seed=0)
        pointed = schedule.pointed(StochasticGap.rows(), "it")
        print(learner._steps.loaded, pointed.loaded, backend._verdict)
    """

    def played(jit):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            capture_output=True, text=True, check=True,
            env=os.environ | {"UNBOUNDED_CACHE_DIR": str(tmp_path), "UNBOUNDED_JIT": jit},
        )  # fmt: skip
        return done.stdout.split()

    assert played("auto") == ["False", "False", "None"]
    assert played("always") == ["True", "True", "False"]
    assert played("auto") == ["True", "True", "None"]


def test_an_edit_of_a_docstring_compiles_nothing(tmp_path):
    program = """
        from unbounded.jit.kernel import kernel
        @kernel
        def f(x):
            {doc}
            return x + {number}
        print(f(1.0), f.stats.cache_hits[next(iter(f.signatures))])
    """

    def edited(doc, number="1.0"):
        (tmp_path / "edited.py").write_text(textwrap.dedent(program.format(doc=doc, number=number)))
        done = subprocess.run(
            [sys.executable, tmp_path / "edited.py"], capture_output=True, text=True, check=True,
            env=os.environ | {"UNBOUNDED_CACHE_DIR": str(tmp_path / "cache")},
        )  # fmt: skip
        return done.stdout.split()

    assert edited('"""One."""') == ["2.0", "0"]
    assert edited('"""Another, longer."""  # and a comment') == ["2.0", "1"]
    assert edited('"""One."""', number="2.0") == ["3.0", "0"]  # the control


# ------------------------------------------------------------------ memory

MEMORY = """
import gc, os, threading
import numpy as np
{plant}
from unbounded import Exp3, settings
from unbounded.jit.kernel import counting_kernel, kernel, section, subroutine
gc.set_threshold(1)

@subroutine
def tail(x):
    return section(x, x.size // 2, x.size)

@counting_kernel
def views(n):
    made = tail(np.full(n, 1.5))  # nobody else holds what it is a view of
    other = np.full(n, 9.0)
    return made[0], other[n // 2 :], made

def work():
    for n in range(2, 300):
        first, other, made = views(n)
        held = [np.full(n, 7.0) for _ in range(3)]
        assert first == 1.5 and (made == 1.5).all() and (other == 9.0).all()
        assert (tail(np.full(n, 2.5)) == 2.5).all()
    learner = Exp3(n_arms=3, rounds=200, seed=0)
    for _ in range(100):
        learner.tell(learner.ask(), 0.5)

work()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
child = os.fork()
if child == 0:
    work()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print("whole", settings.compiled_path())
"""
PLANTED = """
import unbounded.jit.backend as backend
from numba.core.lowering import Lower
backend.Uncounted.lower_inst = Lower.lower_inst  # what is returned is not counted
backend.works = lambda: True  # the self-test would see it
"""


def memory_run(cache, **given):
    environment = {
        "UNBOUNDED_CACHE_DIR": str(cache), "UNBOUNDED_JIT": "always", "PYTHONMALLOC": "debug",
        "MALLOC_PERTURB_": "165", "MALLOC_CHECK_": "3",
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", MEMORY.format(**given)],
        env=os.environ | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_nothing_is_used_after_it_is_freed(tmp_path):
    done = memory_run(tmp_path, plant="")
    assert done.stdout.split() == ["whole", "accelerated"], done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_planted_use_after_free_is_caught(tmp_path):
    """The control."""
    done = memory_run(tmp_path, plant=PLANTED)
    assert done.returncode != 0
    assert "whole" not in done.stdout
