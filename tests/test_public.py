"""What `import unbounded` offers."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import unbounded
from unbounded import bandits, mdps

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
SUMMARIES = "".join((REFERENCE / name).read_text("utf-8") for name in ("bandits.rst", "mdps.rst"))


@pytest.mark.parametrize("name", [*bandits.algorithms(), *mdps.algorithms()])
def test_every_learner_is_public(name: str) -> None:
    assert name in unbounded.__all__, (
        f"{name} was found in its package: in unbounded/__init__.py import it, and name it in "
        "_NAMES and in __all__, so that people can too"
    )


@pytest.mark.parametrize("name", [*bandits.algorithms(), *mdps.algorithms()])
def test_every_learner_is_in_the_summary_of_the_reference(name: str) -> None:
    assert f":class:`~unbounded.{name}`" in SUMMARIES, (
        f"{name} has no row in the table at the top of docs/reference/bandits.rst or mdps.rst"
    )


@pytest.mark.parametrize("name", unbounded.__all__)
def test_what_is_named_is_there(name: str) -> None:
    assert getattr(unbounded, name).__name__ == name


def test_dir_shows_what_is_public() -> None:
    shown = dir(unbounded)
    assert set(unbounded.__all__) < set(shown)
    assert {"experiments", "worlds", "adversaries", "durable", "report", "__version__"} < set(shown)
    for name in shown:
        assert getattr(unbounded, name) is not None
    assert not [name for name in shown if name.startswith("_") and not name.startswith("__")]


def test_rooms_need_no_import_of_their_own() -> None:
    code = (
        "import unbounded; unbounded.experiments.run; unbounded.worlds.dirichlet; unbounded.bounds"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_version_is_the_packages() -> None:
    assert unbounded.__version__ == metadata.version("unbounded")


def test_importing_stays_light() -> None:
    """What results and the laboratory need is imported when it is wanted."""
    heavy = ("polars", "pandas", "matplotlib", "cyclopts", "rich", "unbounded.simulation.compare",
             "unbounded.results.summary", "unbounded.results.tables",
             "unbounded.experiments")  # fmt: skip
    code = f"import sys, unbounded; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        unbounded.Nothing  # noqa: B018


def test_the_citation_has_the_version() -> None:
    text = (Path(__file__).parents[1] / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {unbounded.__version__}\n" in text
    assert re.search(r"^date-released: \d{4}-\d{2}-\d{2}$", text, re.MULTILINE)


def releases(changelog: str, citation: str) -> set[tuple[str, str]]:
    """Return version and date of the newest release, as both files have them."""
    newest = re.search(r"^## \[(\d.*)\] - (.*)$", changelog, re.M)
    cited = re.search(r"^version: (.*)\ndate-released: (.*)$", citation, re.M)
    assert newest is not None
    assert cited is not None
    return {(newest[1], newest[2]), (cited[1], cited[2])}


def test_changelog_and_citation_have_the_version_and_one_date():
    files = [(ROOT / name).read_text("utf-8") for name in ("CHANGELOG.md", "CITATION.cff")]
    [(version, date)] = releases(*files)
    assert version == unbounded.__version__
    assert len(releases(files[0], files[1].replace(date, "2000-01-01"))) == 2
    assert files[0].index("## [Unreleased]") < files[0].index(f"## [{version}]")
