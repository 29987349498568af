"""The tables of a Markdown text as CSV files: what the pages of results offer for download.

    python benchmarks/result_tables.py NAME PAGE.md    # docs/results/tables/NAME-1.csv, ...

Tables with the same head become one file, whose first column is the heading that they stand under.
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

TABLES = Path(__file__).resolve().parents[1] / "docs" / "results" / "tables"


def cells(line: str) -> list[str]:
    """Split a row of a Markdown table.

    >>> cells("| a | **1.5** ± 0.1 | `b` |")
    ['a', '1.5 ± 0.1', 'b']
    """
    return [re.sub(r"\*\*|`", "", cell).strip() for cell in line.strip().strip("|").split("|")]


def tables(text: str) -> dict[tuple[str, ...], list[list[str]]]:
    """Collect the rows of all tables by their head.

    >>> tables("# One\\n| a |\\n|---|\\n| 1 |\\n# Two\\n| a |\\n|--:|\\n| 3 |")
    {('section', 'a'): [['One', '1'], ['Two', '3']]}
    """
    found: dict[tuple[str, ...], list[list[str]]] = {}
    section, title, caption, head, last = "", "", "", None, ""
    for line in text.splitlines():
        if line.startswith("#"):
            section, caption, head = line.lstrip("# "), "", None
        elif re.fullmatch(r"\|[-:| ]+\|", line.strip()):
            head = ("section", *cells(last))
            found.setdefault(head, [])
            title = f"{section}: {caption}" if caption else section
        elif line.startswith("|") and head is not None:
            found[head].append([title, *cells(line)])
        elif line and line[0] not in "|<!":  # a short line alone is the caption of what follows
            caption = line.strip(":.") if not last and len(line) < 80 else ""
            head = None
        last = line
    return found


def write_tables(name: str, text: str) -> None:
    """Write the tables of ``text`` as docs/results/tables/NAME-1.csv and so on."""
    TABLES.mkdir(exist_ok=True)
    for number, (head, rows) in enumerate(tables(text).items(), start=1):
        path = TABLES / f"{name}-{number}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([head, *rows])
        print(f"wrote {path}: {len(rows)} rows")


if __name__ == "__main__":
    write_tables(sys.argv[1], Path(sys.argv[2]).read_text(encoding="utf-8"))
