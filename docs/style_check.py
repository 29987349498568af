"""Find phrases that docs/develop/style.md says to avoid.

    python docs/style_check.py docs src tests

Checks all text of docs and src, and of tests the names. Prints every place, and fails if there is
one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
STYLE = ROOT / "docs" / "develop" / "style.md"
SUFFIXES = (".md", ".rst", ".py", ".toml", ".js", ".css", ".html")


def tables(text: str) -> dict[str, list[list[str]]]:
    """Read the rows of all tables by the first cell of their head.

    >>> tables("| avoid | write |\\n|---|---|\\n| a b, c | d |")
    {'avoid': [['a b, c', 'd']]}
    """
    rows: dict[str, list[list[str]]] = {}
    head = ""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            head = ""
        elif not head:
            head = cells[0]
        elif not cells[0].startswith("---"):
            rows.setdefault(head, []).append(cells)
    return rows


def prose(path: Path, text: str) -> str:
    """Return what is checked: of tests the names, of Markdown pages what is no code or address."""
    if path.is_relative_to(ROOT / "tests"):
        names = (re.match(r" *(?:async )?def (test_\w+)", line) for line in text.splitlines())
        return "\n".join([*(name[1] if name else "" for name in names), path.stem]).replace(
            "_", " "
        )

    def blank(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", found[0])

    code = r"^```.*?^```|`[^`\n]+`|\]\([^)\n]*\)|<!--.*?-->"
    return re.sub(code, blank, text, flags=re.M | re.S) if path.suffix == ".md" else text


def pattern(rows: list[list[str]], flags: int = 0) -> re.Pattern[str]:
    """Match any phrase of the first cells as whole words, over the ends of lines."""
    phrases = [re.escape(phrase.strip()) for row in rows for phrase in row[0].split(",")]
    words = "|".join(phrase.replace(r"\ ", r"\s+") for phrase in phrases)
    return re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", flags)


def found_in(directory: str, rows: dict[str, list[list[str]]]) -> Iterator[str]:
    """Yield every place of a directory with a phrase that is no exception."""
    exceptions = {(path, phrase) for path, phrase, _ in rows["path"]}
    avoid = pattern(rows["avoid"], re.IGNORECASE), pattern(rows["identifier"])
    for path in sorted(p for p in (ROOT / directory).rglob("*") if p.suffix in SUFFIXES):
        name = path.relative_to(ROOT).as_posix()
        text = prose(path, path.read_text("utf-8"))
        for match in (match for one in avoid for match in one.finditer(text)):
            phrase = re.sub(r"\s+", " ", match[0])
            if not exceptions & {(name, phrase), (name, "all")}:
                yield f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {phrase}"


def main() -> int:
    rows = tables(STYLE.read_text("utf-8"))
    places = [place for directory in sys.argv[1:] for place in found_in(directory, rows)]
    print(*places, f"{len(places)} phrases to avoid", sep="\n")
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main())
