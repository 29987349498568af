"""Classes are found by their files."""

import importlib
import sys

import pytest

from unbounded.learners import discovered

FILES = {
    "__init__": "class Base: pass",
    "one": "from rooms import Base\nclass Chair(Base): pass\nclass Other: pass",
    "two": "from rooms import Base\nfrom rooms.one import Chair\nclass Bed(Base): pass",
    "_private": "from rooms import Base\nclass Hidden(Base): pass",
}


@pytest.fixture
def rooms(tmp_path, monkeypatch):
    (tmp_path / "rooms").mkdir()
    for name, source in FILES.items():
        (tmp_path / "rooms" / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("rooms")
    for name in [name for name in sys.modules if name.split(".")[0] == "rooms"]:
        del sys.modules[name]


def test_what_is_found(rooms):
    found = discovered("rooms", rooms.Base)
    assert list(found) == ["Bed", "Chair"]  # in order of names, not of files
    assert found["Chair"] is importlib.import_module("rooms.one").Chair
    assert "rooms._private" not in sys.modules
