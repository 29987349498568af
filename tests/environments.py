"""Environments of their own, for libraries whose pins exclude those of other packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run_in(name: str, packages: list[str], command: list[str], python: str = sys.executable) -> int:
    """Make the environment .venv/NAME, if these are not its packages, and run a program there."""
    folder = ROOT / ".venv" / name
    mine, made = str(folder / "bin" / "python"), folder / "made"
    said = "\n".join([python, *packages])
    if not made.exists() or made.read_text() != said:
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        install = [mine, "-m", "pip", "install", "--quiet", *packages, "--editable", str(ROOT)]
        subprocess.run(install, check=True)
        made.write_text(said)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run([mine, *command], env=environment, check=False).returncode
