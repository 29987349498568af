"""Check the types of every Python example of README.md and of the pages for users.

    python tests/snippets.py [PAGE ...]

They are checked by mypy --strict and by pyright, as programs outside of the repository: the
examples of a page or the cells of a notebook are one module, a block without prompts is one of its
own. As people do, examples may define functions without annotations.
"""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "docs/index.md", "docs/faq.md", "docs/guide/*.md", "docs/notebooks/*.md"]
CELL = re.compile(r"^```\{code-cell\}\n(?:---\n.*?^---\n)?(.*?)^```$", re.M | re.S)
STRICT = [
    "--strict", "--allow-untyped-defs", "--allow-incomplete-defs", "--allow-untyped-calls",
    "--allow-redefinition-new",
]  # fmt: skip
CONTROL = "control.py"  # both must find its error
WRONG = "import unbounded\n\nunbounded.recommend().learner(n_arms=2).ask().act(0, 0)\n"
ABSENT = ("golem", "litellm", "shinka")  # in environments of their own: anything goes
ANYTHING = "from typing import Any\n\ndef __getattr__(name: str) -> Any: ...\n"
UNTYPED = ("alns", "joblib", "pandas", "sklearn")  # packages without types


def modules(page: Path) -> Iterator[tuple[str, str]]:
    """Return names and sources of the modules of a page, with the page's line numbers."""
    text = page.read_text("utf-8")
    name = re.sub(r"\W", "_", page.relative_to(ROOT).with_suffix("").as_posix())
    lines = [""] * (text.count("\n") + 1)
    for example in doctest.DocTestParser().get_examples(text):
        if "Traceback" in example.want:
            continue
        for k, line in enumerate(example.source.rstrip("\n").split("\n")):
            lines[example.lineno + k] = line
    for cell in CELL.finditer(text):
        for k, line in enumerate(cell[1].rstrip("\n").split("\n")):
            lines[text.count("\n", 0, cell.start(1)) + k] = line
    if any(lines):
        yield name, "\n".join(lines) + "\n"
    for block in re.finditer(r"^```python\n(?!>>>)(.*?)^```$", text, re.M | re.S):
        first = text.count("\n", 0, block.start(1))
        yield f"{name}_{first}", "\n" * first + block[1]


def main() -> int:
    found = sys.argv[1:] or PAGES
    pages = sorted({page for pattern in found for page in ROOT.glob(pattern)})
    with tempfile.TemporaryDirectory() as directory:
        for page in pages:
            for name, source in modules(page):
                (Path(directory) / f"{name}.py").write_text(source, "utf-8")
        (Path(directory) / CONTROL).write_text(WRONG)
        for name in ABSENT:
            (Path(directory) / f"{name}.pyi").write_text(ANYTHING)
        untyped = [f"[mypy-{name}.*]\nignore_missing_imports = true\n" for name in UNTYPED]
        (Path(directory) / "mypy.ini").write_text("[mypy]\n" + "".join(untyped))
        files = sorted(path.name for path in Path(directory).glob("*.py"))
        pyright = ["pyright", "--level=error", "--pythonpath", sys.executable]
        failed = False
        for tool in (["mypy", *STRICT], pyright):
            command = [sys.executable, "-m", *tool, *files]
            said = subprocess.run(command, cwd=directory, capture_output=True, text=True).stdout
            errors = re.findall(r"^.*\b\w+\.py:.* error: .*$", said, re.M)
            missed = not any(CONTROL in error for error in errors)
            wrong = [error for error in errors if CONTROL not in error]
            print(tool[0], *wrong, f"missed {CONTROL}\n{said}" if missed else "", sep="\n")
            failed = failed or missed or bool(wrong)
    print(f"{len(files) - 1} modules of {len(pages)} pages")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
