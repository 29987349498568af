"""The hash of what a result was computed with."""

from __future__ import annotations

import ast
from pathlib import Path

import unbounded
from unbounded.experiments.sources import _named_in, source_hash

PACKAGE = Path(unbounded.__file__).parent


def test_modules_differ():
    assert source_hash("unbounded.bandits.scb") != source_hash("unbounded.bandits.baselines.exp3")


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
