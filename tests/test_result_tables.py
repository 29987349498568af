"""Tables of the results: computed again from the data, and what the pages show of them."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TABLES = ROOT / "docs" / "results" / "tables"
SHOWN = r"<!-- tables/([\w-]+\.csv)(?:: (.+?))? -->\n+((?:\|.*\n)+)"


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def catalogue():
    import catalogue as program

    return program.page(program.load(), program.ROUNDS)


def signed():
    import signed as program

    return program.page(program.load())


def scb_rl_table():
    import scb_rl_table as program

    return program.page(program.load())


def scb_rl_large():
    import scb_rl_large as program

    small = [row for row in program.load_small() if row["learner"] in program.LEARNERS]
    return program.page([row for row in small if int(row["T"]) <= 10**5] + program.load())


def cost_rl_table():
    import cost_rl_table as program

    return program.page(program.cells_of(program.load()))


def changing():
    import changing as program

    return program.page(program.load())


def service_day():
    import service_day as program

    return program.page()


@pytest.mark.parametrize(
    "page",
    [catalogue, changing, service_day, signed, scb_rl_table, scb_rl_large, cost_rl_table],
    ids=lambda p: p.__name__,
)
def test_tables_are_what_the_data_say(page, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    from result_tables import tables

    name = page.__name__.replace("_", "-")
    found = tables(page())
    assert len(found) == len(list(TABLES.glob(f"{name}-[0-9]*.csv")))
    for number, (head, lines) in enumerate(found.items(), start=1):
        assert rows(TABLES / f"{name}-{number}.csv") == [[*head], *lines], f"{name}-{number}.csv"


EXCERPTS = [
    pytest.param(name, section, table, id=f"{page.stem}-{name}-{section}")
    for page in sorted((ROOT / "docs").rglob("*.md"))
    for name, section, table in re.findall(SHOWN, page.read_text("utf-8"))
]


@pytest.mark.parametrize(("name", "section", "table"), EXCERPTS)
def test_what_a_page_shows_is_in_the_table(name, section, table, monkeypatch):
    """Every row of an excerpt is a row of the file, in the columns that the excerpt has."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    from result_tables import cells

    head, *known = rows(TABLES / name)
    if section:
        known = [row for row in known if row[0] == section]
    shown, _, *lines = [cells(line) for line in table.splitlines()]
    columns: list[int] = []
    for name in shown:  # of columns with the same name, the next one
        columns.append(next(i for i, c in enumerate(head) if i and c == name and i not in columns))
    assert known
    for line in lines:
        assert line in [[row[column] for column in columns] for row in known]


def test_pages_show_excerpts():
    assert len(EXCERPTS) >= 5
