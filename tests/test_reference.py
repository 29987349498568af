"""Everything public is in the reference, with an example."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from unbounded import bandits, mdps
from unbounded.adversaries.mdps import adversaries

PAGES = Path(__file__).resolve().parents[1] / "docs" / "reference"
SHOWN = set(
    re.findall(
        r"^(?:\.\. auto(?:exception|data)::|  ) ~?(unbounded\.\S+)$",
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


@pytest.mark.parametrize("name", [*bandits.algorithms(), *mdps.algorithms()])
def test_every_parameter_of_a_learner_is_documented(name: str) -> None:
    cls = found(f"unbounded.{name}")
    entries = re.findall(r"^(\w[\w, ]*) : ", inspect.getdoc(cls) or "", re.MULTILINE)
    documented = {one for entry in entries for one in entry.split(", ")}
    assert inspect.signature(cls).parameters.keys() <= documented


def named_paths(page: str) -> set[str]:
    """Paths of files in a page, but for those that stand for any."""
    paths = re.findall(r"\w[\w/-]*\.(?:py|md|rst|toml|json)\b", page)
    return {path for path in paths if not path.endswith(("NAME.py", "experiment.toml"))}


@pytest.mark.parametrize("name", ["architecture.md", "adding.md"])
def test_what_the_pages_for_developers_name_is_there(name: str) -> None:
    root = PAGES.parents[1]
    rooms = ("src/unbounded", "tests", "docs", "benchmarks")
    files = [root / "README.md", root / "CHANGELOG.md", root / "pyproject.toml"]
    files += [path for room in rooms for path in (root / room).rglob("*.*")]
    paths = [f"/{path.relative_to(root)}" for path in files]
    page = (root / "docs/develop" / name).read_text("utf-8")
    wanted = sorted(named_paths(page))
    assert len(wanted) > 20
    missing = [path for path in wanted if not any(p.endswith(f"/{path}") for p in paths)]
    assert not missing, f"docs/develop/{name} names {missing}"


def test_the_pages_for_developers_are_short() -> None:
    pages = [PAGES.parent / "develop" / name for name in ("architecture.md", "adding.md")]
    assert sum(len(page.read_text("utf-8").split()) for page in pages) < 1500
