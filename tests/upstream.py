"""The programs of docs/develop/upstream.md, and what they print."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "develop" / "upstream.md"
REPORT = re.compile(r"^## ([\w-]+):.*?^```python\n(.*?)^```\n\n^```text\n(.*?)^```$", re.M | re.S)


def reports() -> dict[str, tuple[str, str]]:
    """Return code and output by the name of the library."""
    return {name: (code, said) for name, code, said in REPORT.findall(PAGE.read_text("utf-8"))}
