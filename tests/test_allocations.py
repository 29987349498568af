"""Kernels allocate nothing: none of the package makes an array, a list, a dict or a set."""

import ast
from pathlib import Path

import pytest

import unbounded

_SCALARS = {"float64", "int64", "uint64", "uint32", "bool_", "isnan", "isinf", "isfinite"}
_VIEWS = {"view", "reshape", "ravel"}  # of a contiguous array
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_DECORATORS = ("kernel", "subroutine")


def kernels(tree):
    """Yield functions that are decorated by one of `_DECORATORS`, or given to it by name."""
    given = {
        argument.id
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") in (*_DECORATORS, "Pointer")
        for argument in call.args
        if isinstance(argument, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            names = [getattr(getattr(d, "func", d), "id", "") for d in node.decorator_list]
            if node.name in given or any(name in _DECORATORS for name in names):
                yield node


def allocations(source):
    """List (kernel, line, what it makes) of every kernel in ``source``."""
    found = []
    for kernel in kernels(ast.parse(source)):
        inner = [n for statement in kernel.body for n in ast.walk(statement)]
        for node in inner:
            if isinstance(node, _DISPLAYS):
                found.append((kernel.name, node.lineno, type(node).__name__))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name, of = node.func.attr, getattr(node.func.value, "id", "")
                makes = name not in _SCALARS if of == "np" else name in ("copy", "astype", "tolist")
                if makes and name not in _VIEWS:
                    found.append((kernel.name, node.lineno, ast.unparse(node.func)))
    return found


def test_no_kernel_of_the_package_makes_an_array():
    found, count = [], 0
    for path in sorted(Path(unbounded.__file__).parent.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        count += sum(1 for _ in kernels(ast.parse(source)))
        found += [f"{path}:{line}: {name} calls {what}" for name, line, what in allocations(source)]
    assert count > 300  # kernels were found
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "y = np.zeros(x.size)",
        "y = np.empty_like(x)",
        "y = x.copy()",
        "y = np.sort(x)",
        "y = [1.0, 2.0]",
        "y = np.array([t for t in x])",
        "if x.size:\n        y = np.concatenate((x, x))",
    ],
)
def test_one_that_does_is_found(line):
    """The control of the test above."""
    assert allocations(f"@subroutine\ndef bad(x):\n    {line}\n    return 0.0\n")
    assert allocations(f"def bad(x):\n    {line}\n    return 0.0\nf = kernel(bad)\n")
    assert not allocations(f"def in_python(x):\n    {line}\n    return 0.0\n")
