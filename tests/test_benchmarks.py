"""What programs in benchmarks/ take from the package is there; most of them run for hours."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

BENCHMARKS = sorted((Path(__file__).parents[1] / "benchmarks").glob("*.py"))


def taken(source):
    """Names that a program imports from the package: (module, name), or (module, None)."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("unbounded"):
            yield from ((node.module, alias.name) for alias in node.names)
        if isinstance(node, ast.Import):
            yield from ((a.name, None) for a in node.names if a.name.startswith("unbounded"))


def missing(source):
    """Those that are not there."""
    out = []
    for module, name in taken(source):
        found = import_module(module)
        if name is not None and not hasattr(found, name):
            try:
                import_module(f"{module}.{name}")
            except ImportError:
                out.append((module, name))
    return out


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_a_benchmark_finds_what_it_imports(path):
    assert missing(path.read_text()) == []


def test_what_is_not_there_is_found_out():
    source = (
        "from unbounded.results.intervals import student, gone\nimport unbounded.experiments.api"
    )
    assert list(taken(source))[2] == ("unbounded.experiments.api", None)
    assert missing(source) == [("unbounded.results.intervals", "gone")]
