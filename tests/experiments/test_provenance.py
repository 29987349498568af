"""The hash of what a result was computed with."""

from __future__ import annotations

import pytest

from unbounded.experiments import provenance
from unbounded.experiments.provenance import _imported_modules, package_hash, parsed

SOURCE = b'''"""A module."""
import math

from .beside import other
from unbounded.core import random

HALF = 0.5
"""One over two."""


def double(x, y=2):
    """Twice x."""
    return x * y  # not x + x
'''


def test_modules_differ():
    assert package_hash("unbounded.bandits.scb") != package_hash("unbounded.bandits.baselines.exp3")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"# not x + x", b"# as written"),
        (b"  # not x + x", b""),
        (b"Twice x.", b"Two times x."),
        (b'    """Twice x."""\n', b""),
        (b"A module.", b"The module."),
        (b"One over two.", b"A half."),
        (b"\n\n\n", b"\n\n\n\n\n"),
        (b"x * y  #", b"(x * y)  #"),
        (b"HALF = 0.5", b"HALF  =  0.50"),
    ],
)
def test_comments_docstrings_and_layout_do_not_count(old, new):
    assert old in SOURCE
    assert parsed(SOURCE.replace(old, new), "p").digest == parsed(SOURCE, "p").digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"x * y", b"x + y"),
        (b"y=2", b"y=3"),
        (b"HALF = 0.5", b"HALF = 0.25"),
        (b"import math", b"import cmath as math"),
        (b"return x", b"return -x"),
        (b"return x * y", b"return 'x * y'"),
        (b"def double", b"def twice"),
    ],
)
def test_operators_constants_and_names_count(old, new):
    assert old in SOURCE
    assert parsed(SOURCE.replace(old, new), "p").digest != parsed(SOURCE, "p").digest


def test_imports_are_found_wherever_they_stand():
    found = parsed(SOURCE + b"def f():\n    import p.late\n", "p").imports
    assert {"math", "p.beside", "unbounded.core.random", "p.late"} <= set(found)
    closure = _imported_modules("unbounded.simulation.bandit")
    assert {"unbounded.simulation.bandit_loops", "unbounded.core.arrays"} <= closure


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("q = 1", "q = 1  # one", True),
        ("q = 1", '"""New."""\nq = 1', True),
        ("q = 1", "q = 2", False),
    ],
)
def test_the_hash_of_the_package_is_that_of_what_is_imported(tmp_path, monkeypatch, old, new, same):
    (tmp_path / "unbounded").mkdir()
    (tmp_path / "unbounded/a.py").write_text("from unbounded import b\n")
    (tmp_path / "unbounded/c.py").write_text("nobody imports it\n")
    monkeypatch.setattr(provenance, "_PACKAGE", tmp_path / "unbounded")

    def hashed(text):
        (tmp_path / "unbounded/b.py").write_text(text)
        for cached in (package_hash, provenance._parsed_own, provenance._own_file):
            cached.cache_clear()
        return package_hash("unbounded.a")

    try:
        before = hashed("q = 1\n")
        assert (before == hashed("q = 1\n".replace(old, new))) is same
        versions = ("another Python", *provenance.VERSIONS[1:])
        monkeypatch.setattr(provenance, "VERSIONS", versions)
        assert hashed("q = 1\n") != before
    finally:
        for cached in (package_hash, provenance._parsed_own, provenance._own_file):
            cached.cache_clear()
