"""Everything public is in the reference, with an example."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from unbounded.adversaries.mdps import adversaries

PAGES = Path(__file__).resolve().parents[1] / "docs" / "reference"
SHOWN = set(
    re.findall(
        r"^\.\. auto(?:class|function|exception|data):: (\S+)",
        "\n".join(page.read_text("utf-8") for page in PAGES.glob("*.rst")),
        re.MULTILINE,
    )
)
ROOMS = ("unbounded", "unbounded.adversaries", "unbounded.durable", "unbounded.experiments",
         "unbounded.report")  # fmt: skip
PUBLIC = [f"{room}.{name}" for room in ROOMS for name in import_module(room).__all__]
PUBLIC += [f"unbounded.adversaries.mdps.{name}" for name in adversaries()]


def found(name: str) -> object:
    room, _, last = name.rpartition(".")
    return getattr(import_module(room), last)


@pytest.mark.parametrize("name", PUBLIC)
def test_it_is_in_the_reference(name: str) -> None:
    assert name in SHOWN, f"{name} is public: name it in one of docs/reference/*.rst"


@pytest.mark.parametrize("name", sorted(SHOWN))
def test_what_is_in_the_reference_is_there_and_has_an_example(name: str) -> None:
    what = found(name)
    is_error = inspect.isclass(what) and issubclass(what, Exception)
    if is_error or not callable(what):  # an error is shown where it is raised
        return
    assert ">>>" in (inspect.getdoc(what) or ""), f"the docstring of {name} has no example"
