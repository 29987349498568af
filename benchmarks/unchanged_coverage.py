"""Which lines of the kernels a play has reached, as Python runs them.

Kernels are found in the source: functions under ``@kernel`` or ``@subroutine``, and functions that
another function makes and hands to the compiler. Nothing is imported from the package.
"""

from __future__ import annotations

import ast
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

DECORATORS = {"kernel", "subroutine"}
MAKERS = {"kernel", "subroutine", "entry", "Pointer"}  # they compile an argument

Function = ast.FunctionDef


class Kernel(NamedTuple):
    """A function that is compiled where the package is not interpreted."""

    name: str  # its file's name without the folder, and its own
    path: str
    lines: frozenset[int]  # those of its body that Python can reach
    source: Mapping[int, str]


def kernels(package: Path, folders: Iterable[str]) -> Iterator[Kernel]:
    """All kernels of some folders of a package."""
    for folder in folders:
        for path in sorted((package / folder).rglob("*.py")):
            yield from kernels_of(path)


def kernels_of(path: Path) -> Iterator[Kernel]:
    """All kernels of a file."""
    text = path.read_text(encoding="utf-8")
    codes = {_place(code): code for code in _nested(compile(text, str(path), "exec"))}
    lines = dict(enumerate(text.splitlines(), start=1))
    for name, function in _kernel_functions(ast.parse(text)):
        body = function.body
        if ast.get_docstring(function, clean=False) is not None:
            body = body[1:]
        if not body:
            continue
        decorators = [node.lineno for node in function.decorator_list]
        code = codes[function.name, min([function.lineno, *decorators])]
        first, last = body[0].lineno, function.end_lineno or 0
        reachable = {
            line
            for part in (code, *_nested(code))
            for _, _, line in part.co_lines()
            if line is not None and first <= line <= last
        }
        yield Kernel(f"{path.stem}.{name}", str(path), frozenset(reachable), lines)


def _kernel_functions(tree: ast.AST, outer: str = "") -> Iterator[tuple[str, Function]]:
    """Functions that are compiled, by their names; what is inside them is part of them."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    makes = isinstance(tree, Function) and any(_name(call) in MAKERS for call in calls)
    for node in ast.iter_child_nodes(tree):
        name = f"{outer}{node.name}" if isinstance(node, Function | ast.ClassDef) else outer
        if isinstance(node, Function) and (
            makes or any(_name(one) in DECORATORS for one in node.decorator_list)
        ):
            yield name, node
        else:
            yield from _kernel_functions(node, name if name == outer else f"{name}.")


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        return _name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _nested(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _nested(constant)


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_name, code.co_firstlineno


@contextmanager
def reached(found: Iterable[Kernel]) -> Iterator[dict[str, set[int]]]:
    """While this lasts, collect by file the lines of these kernels that are reached."""
    missing: dict[str, set[int]] = {}
    for kernel in found:
        missing.setdefault(kernel.path, set()).update(kernel.lines)
    seen: dict[str, set[int]] = {path: set() for path in missing}
    # What is still missing, by the code's address: equal code of two files is equal.
    wanted: dict[int, tuple[CodeType, set[int]]] = {}

    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if id(code) not in wanted:
            inside = {line for _, _, line in code.co_lines() if line is not None}
            wanted[id(code)] = code, inside & missing.get(code.co_filename, set())
        lines = wanted[id(code)][1]
        if not lines:
            return None
        found_lines = seen[code.co_filename]

        def step(frame: FrameType, event: str, argument: Any) -> Any:
            line = frame.f_lineno
            if event == "line" and line in lines:
                lines.discard(line)
                found_lines.add(line)
            return step

        return step

    before = sys.gettrace()
    threading.settrace(enter)
    sys.settrace(enter)
    try:
        yield seen
    finally:
        sys.settrace(before)
        threading.settrace(None)  # type: ignore[arg-type]  # what the documentation says to do


def report(
    found: Iterable[Kernel], seen: Mapping[str, set[int]], listed: Mapping[str, str]
) -> list[str]:
    """What is wrong: lines that were not reached and are not listed, and listed ones that were.

    ``listed`` has reasons, by the kernel's name and the line's text; the second line of the same
    text ends in (2).
    """
    missing: dict[str, str] = {}
    known: set[str] = set()
    kernels = lines = unreached = 0
    for kernel in found:
        kernels += 1
        lines += len(kernel.lines)
        texts: Counter[str] = Counter()
        for line in sorted(kernel.lines):
            text = kernel.source[line].strip()
            texts[text] += 1
            again = f" ({texts[text]})" if texts[text] > 1 else ""
            key = f"{kernel.name}: {text}{again}"
            known.add(key)
            if line not in seen[kernel.path]:
                unreached += 1
                missing.setdefault(key, f"{kernel.path}:{line}")
    wrong = [f"never reached: {at} {key}" for key, at in missing.items() if key not in listed]
    wrong += [f"listed, but reached: {key}" for key in listed if key in known - missing.keys()]
    wrong += [f"listed, but not there: {key}" for key in listed if key not in known]
    print(f"{kernels} kernels with {lines} lines, of which {unreached} were not reached")
    return wrong
