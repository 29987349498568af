"""The hash of a kernel changes with everything that is compiled, and with nothing else."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import subprocess
import sys
import types
from typing import NamedTuple

import numba
import numpy as np
import pytest

import unbounded
from unbounded.jit.cache import Cached, _opened
from unbounded.jit.kernel import borrowed
from unbounded.jit.kernel import counting_kernel as kernel
from unbounded.jit.key import Fingerprint, UncertainError

if numba.config.DISABLE_JIT:
    pytest.skip("nothing is compiled", allow_module_level=True)


def code(value) -> str:
    return Fingerprint(_opened).of(value).hex()


def uncertain(value) -> bool:
    try:
        code(value)
    except UncertainError:
        return True
    return False


def run(source: str, **names):
    """The kernel ``step`` that a cell of a notebook defines, and what it runs in."""
    space = {"__name__": "cell", "kernel": kernel, "np": np, **names}
    exec(compile(source, "<cell>", "exec"), space)
    return space["step"], space


STEP = "@kernel\ndef step(x):\n    return {}\n"


def step(expression: str, **names):
    return run(STEP.format(expression), **names)[0]


def test_a_set_has_one_hash_in_whatever_order_it_is():
    one, other = frozenset([0, 8]), frozenset([8, 0])
    assert one == other
    assert list(one) != list(other)  # they share a place, and who came first has it
    assert code(one) == code(other) != code(frozenset([0, 1]))


def test_the_same_code_has_the_same_hash():
    assert code(step("x + 1.0")) == code(step("x + 1.0"))
    assert code(step("x + C", C=2.0)) == code(step("x + C", C=2.0, D=3.0))


DIFFERENT = {
    "an expression": [step("x + 1.0"), step("x - 1.0"), step("1.0 + x")],
    "a constant": [step("x + 1.0"), step("x + 2.0"), step("x + 1"), step("x + True")],
    "a sign": [step("x * 0.0"), step("x * -0.0")],
    "a global": [step("x + C", C=value) for value in (1.0, 2.0, 1, True, np.float64(1.0), 1j)],
    "a tuple": [step("x + C[0]", C=value) for value in ((1.0, 2.0), (1.0, 3.0), ((1.0, 2.0),))],
    "an array": [
        step("x + C[0]", C=value)
        for value in (np.ones(2), np.ones(3), np.array([1.0, 2.0]), np.ones(2, np.float32),
                      np.ones((2, 1)), np.ones(4)[::2], np.ones(2, ">f8"))
    ],
    "a kernel": [step("x + f(x)", f=f) for f in (step("x"), step("x * x"))],
    "a kernel's global": [step("f(x)", f=step("x + C", C=C)) for C in (1.0, 2.0)],
    "a function": [step("x + f(x)", f=f) for f in (np.sqrt, np.cbrt, abs, float)],
    "a default": [run(f"@kernel\ndef step(x, y={y}):\n    return x + y\n")[0] for y in (1.0, 2.0)],
    "an inner function": [
        run(f"@kernel\ndef step(x):\n    def g(y):\n        return y + {y}\n    return g(x)\n")[0]
        for y in (1.0, 2.0)
    ],
    "an inner function's global": [
        run("@kernel\ndef step(x):\n    def g(y):\n        return y + C\n    return g(x)\n", C=C)[0]
        for C in (1.0, 2.0)
    ],
    "options": [kernel(step("x").py_func), kernel(step("x").py_func, nogil=False)],
    "itself": [
        run(f"@kernel\ndef step(x):\n    return x if x < {y} else step(x / 2)\n")[0]
        for y in (1.0, 2.0)
    ],
}  # fmt: skip


@pytest.mark.parametrize("what", DIFFERENT)
def test_different_code_has_another_hash(what):
    codes = [code(value) for value in DIFFERENT[what]]
    assert len(set(codes)) == len(codes)


def closing(value):
    @kernel
    def inner(x):
        return x + value

    return inner


def test_what_a_kernel_closes_over_counts():
    assert code(closing(1.0)) == code(closing(1.0))
    assert len({code(closing(value)) for value in (1.0, 2.0, 1)}) == 3


def test_fields_count():
    def made(*fields):
        kind = NamedTuple("Params", [(field, float) for field in fields])
        return step("Params(x, x)[0]", Params=kind)

    assert code(made("a", "b")) == code(made("a", "b"))
    assert code(made("a", "b")) != code(made("b", "a"))


def test_attributes_of_modules_count():
    helpers = types.ModuleType("helpers")
    helpers.constant, helpers.other, helpers.lock = 1.0, 1.0, object()
    taken = step("x + helpers.constant", helpers=helpers)
    before = code(taken)
    helpers.other = 2.0
    assert code(taken) == before
    helpers.constant = 2.0
    assert code(taken) != before
    helpers.constant = object()
    assert uncertain(taken)


def test_names_of_attributes_do_not_stand_in_the_way():
    """`size` is an attribute here, and `flat` a global that another module has too."""
    helpers = types.ModuleType("helpers")
    helpers.flat, helpers.C = object(), 1.0
    assert not uncertain(step("x.size + flat + helpers.C", size=object(), flat=1, helpers=helpers))
    assert uncertain(step("size + x", size=object()))


@pytest.mark.parametrize(
    "value",
    [object(), [1.0], {"a": 1.0}, numba.njit(lambda x: x), np.array([object()]), NamedTuple, sys],
)  # fmt: skip
def test_what_no_hash_can_describe_is_not_cached(value):
    assert uncertain(step("x + C.path", C=value))


def test_getattr_is_not_followed():
    helpers = types.ModuleType("helpers")
    helpers.C = 1.0
    assert uncertain(step("x + getattr(helpers, 'C')", helpers=helpers))


def test_a_module_that_makes_its_attributes_is_not_followed():
    assert uncertain(step("x + unbounded.C", unbounded=unbounded))


def test_a_kernel_is_what_it_was_compiled_as():
    """Numba takes global values when it compiles; a caller that comes later gets the old ones."""
    inner, space = run(STEP.format("x + C"), C=1.0)
    outer = step("10.0 * f(x)", f=inner)
    before = code(outer)
    space["C"] = 2.0
    assert code(outer) != before  # not compiled yet
    space["C"] = 1.0
    assert inner(1.0) == 2.0
    assert code(outer) == before
    space["C"] = 2.0
    assert inner(1.0) == 2.0  # it is frozen
    assert outer(1.0) == 20.0
    assert uncertain(outer)
    assert uncertain(inner)


def test_intrinsics_are_followed():
    assert not uncertain(step("borrowed(x)", borrowed=borrowed))


def kernels():
    for module in pkgutil.walk_packages(unbounded.__path__, "unbounded."):
        if not module.name.startswith(
            ("unbounded.report", "unbounded.experiments", "unbounded.cli.app", "unbounded.adapters")
        ):
            for name, value in vars(importlib.import_module(module.name)).items():
                if isinstance(getattr(value, "_cache", None), Cached):
                    yield f"{module.name}.{name}", value


PRINT = """
import json
import os
import sys
sys.path[:0] = {path}
import test_key as tests
print(json.dumps({{name: tests.code(value) for name, value in tests.kernels()}}))
"""


def test_every_kernel_of_the_package_has_a_hash_equal_in_every_process():
    program = PRINT.format(path=[os.path.dirname(__file__), *sys.path])
    runs = [
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)  # sets are in another order each time
    ]
    assert runs[0] == runs[1]
    assert "unbounded.mdps.scb_rl.update" in json.loads(runs[0])
