"""Commands that README and pages for users show, tried: `python tests/commands.py dist/*.whl`.

In a new environment with the wheel, away from the repository: every `unbounded ...` of a block or a
line of text is run, those of a page in their order. The page of any other command says that it
needs the repository.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "docs/index.md", "docs/faq.md", "docs/guide/*.md", "docs/results/*.md"]
PREPARE = """
from unbounded import SCB
from unbounded.durable import Durable
arms = Durable("arms.db", SCB(2, seed=0))
arms.tell(arms.ask(), 1.0)
arms.close()
"""
FIRST = [  # what results are shown of
    "unbounded run scales",
    "unbounded run scales --out out/before",
    "unbounded run scales --out out/after",
    "unbounded run paper --quick --out out/paper",
]
SHORTER = {  # hours, or until it is stopped
    "unbounded run paper": " --dry-run",
    "unbounded watch out/scales": " --help",
    "unbounded warm": " --status",
}
ELSEWHERE = ("NAME", "FILE", "mine.toml", "postgresql:")  # the reader's own


def shown(text: str) -> Iterator[str]:
    """Yield the commands of a page, without comments and what they are piped to.

    >>> list(shown("Say `unbounded list`.\\n```console\\nunbounded run x  # all\\nmake a\\n```\\n"))
    ['unbounded list', 'unbounded run x', 'make a']
    """
    command = r"^`?((?:unbounded|make|pip|python|\.venv\S*) [^`#|\n]*)"
    for found in re.finditer(r"`[^`\n]+`|^```console\n.*?^```", text, re.M | re.S):
        for line in re.finditer(command, found[0], re.M):
            yield line[1].strip()


def unsaid(text: str) -> list[str]:
    """Return the commands of a page that need a copy of the repository, which it does not say.

    >>> unsaid("In a copy of the repository: `make docs`."), unsaid("Or `make docs`.")
    ([], ['make docs'])
    """
    local = re.compile(r"(make|python (examples|benchmarks)/|pip install '?\.|\.venv)")
    needs = [one for one in shown(text) if local.match(one)]
    return needs if needs and "repository" not in text.replace("/repository", "") else []


def main(wheel: str) -> int:
    pages = {page: page.read_text("utf-8") for one in PAGES for page in sorted(ROOT.glob(one))}
    failed = [f"{page.name}: {one}" for page, text in pages.items() for one in unsaid(text)]
    commands = [one for text in pages.values() for one in shown(text) if " " in one]
    ours = [one for one in commands if one.startswith("unbounded ")]
    ours = [one for one in ours if not any(word in one for word in ELSEWHERE)]
    os.environ.pop("PYTHONPATH", None)  # what is tried is the wheel
    with tempfile.TemporaryDirectory() as away:
        subprocess.run([sys.executable, "-m", "venv", f"{away}/new"], check=True)
        programs = Path(away, "new", "bin")
        install = [programs / "pip", "install", "-q"]
        subprocess.run([*install, f"{Path(wheel).resolve()}[experiments,plot]"], check=True)
        subprocess.run([programs / "python", "-c", PREPARE], cwd=away, check=True)
        for one in dict.fromkeys([*FIRST, *ours]):
            name, *words = shlex.split(one + SHORTER.get(one, ""))
            call = [programs / name, *words]
            done = subprocess.run(call, cwd=away, capture_output=True, text=True)
            # `unbounded run` alone is the name of a command, which asks for its arguments
            asks = len(words) == 1 and "requires an argument" in done.stdout + done.stderr
            print("asks  " if asks else f"{done.returncode:<6}", one, flush=True)
            if done.returncode and not asks:
                failed.append(f"{one}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    print("\n".join(failed) or f"{len(dict.fromkeys(ours))} commands run from the wheel")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
