"""Find phrases that docs/develop/style.md says to avoid.

    python docs/style_check.py docs src tests

Prints every place in docs, and counts for other directories. Fails if docs has one.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STYLE = ROOT / "docs" / "develop" / "style.md"
SUFFIXES = (".md", ".rst", ".py", ".toml")


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
    """Blank the code of a Markdown page, whose names are not its own, and addresses of links."""
    if path.suffix != ".md":
        return text

    def blank(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", found[0])

    return re.sub(r"^```.*?^```|`[^`\n]+`|\]\([^)\n]*\)|<!--.*?-->", blank, text, flags=re.M | re.S)


def pattern(rows: list[list[str]], flags: int = 0) -> re.Pattern[str]:
    """Match any phrase of the first cells as whole words, over the ends of lines."""
    phrases = [re.escape(phrase.strip()) for row in rows for phrase in row[0].split(",")]
    words = "|".join(phrase.replace(r"\ ", r"\s+") for phrase in phrases)
    return re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", flags)


def main() -> int:
    rows = tables(STYLE.read_text("utf-8"))
    exceptions = {(path, phrase) for path, phrase in rows["path"]}
    avoid = pattern(rows["avoid"], re.IGNORECASE), pattern(rows["identifier"])
    found: Counter[str] = Counter()
    for directory in sys.argv[1:] or ["docs"]:
        for path in sorted(p for p in (ROOT / directory).rglob("*") if p.suffix in SUFFIXES):
            name = path.relative_to(ROOT).as_posix()
            text = prose(path, path.read_text("utf-8"))
            for match in (match for one in avoid for match in one.finditer(text)):
                phrase = re.sub(r"\s+", " ", match[0])
                if (name, phrase) in exceptions or (name, "all") in exceptions:
                    continue
                found[directory] += 1
                if directory == "docs":
                    print(f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {phrase}")
        print(f"{directory}: {found[directory]} found")
    return 1 if found["docs"] else 0


if __name__ == "__main__":
    sys.exit(main())
