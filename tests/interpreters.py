"""Play every learner on every Python of this machine that the package says it runs on.

    python tests/interpreters.py [--all]

Looks on PATH and among pyenv's versions for interpreters from 3.11 on, installs the package as it
is into a new environment of each, and plays there: every learner interpreted, and a few (``--all``:
every one) compiled, which must be the same play to the last bit.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FEW = {"EpsilonGreedy", "Exp3", "SCB", "UCB1", "Uniform", "UniformPolicy"}
Version = tuple[int, ...]


def interpreters() -> dict[Version, Path]:
    """The newest patch release of each version from 3.11 on."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser()
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    folders += sorted(pyenv.glob("versions/*/bin"))
    paths = {path.resolve(): path for folder in folders for path in folder.glob("python3*")}
    found: dict[Version, Path] = {}
    for path in paths.values():
        if re.fullmatch(r"python3(\.\d+)?", path.name) and "shims" not in path.parts:
            version = version_of(path)
            if version >= (3, 11):
                found.setdefault(version, path)
    newest = {version[:2]: version for version in sorted(found)}
    return {version: found[version] for version in newest.values()}


def version_of(python: Path) -> Version:
    """Its version; empty if it does not run or cannot make environments."""
    command = [python, "-c", "import sys, venv, ensurepip; print(*sys.version_info[:3])"]
    result = subprocess.run(command, capture_output=True, text=True)
    return tuple(map(int, result.stdout.split())) if result.returncode == 0 else ()


def newest_supported() -> Version:
    """The newest version that the package names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = re.findall(r"Python :: 3\.(\d+)", " ".join(project["classifiers"]))
    return 3, max(map(int, named))


def tried(version: Version, python: Path, everything: bool) -> tuple[str, bool]:
    """What came of one interpreter, in a line; and whether that is as it should be."""
    start = time.monotonic()
    name = ".".join(map(str, version))
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "UNBOUNDED_CACHE_DIR": f"{folder}/cache"}
        environment = {k: v for k, v in environment.items() if k != "PYTHONPATH"}
        mine = f"{folder}/env/bin/python"
        commands: list[list[Any]] = [
            [python, "-m", "venv", f"{folder}/env"],
            [mine, "-m", "pip", "install", "--quiet", ROOT],
            [mine, "-W", "error::DeprecationWarning", __file__, "--play"],
            [mine, "-W", "error::DeprecationWarning", __file__, "--play", "--compiled"],
        ]
        if everything:
            commands[-1].append("--all")
        outputs = []
        for command in commands:
            interpreted = command[-1] == "--play"
            result = subprocess.run(
                command,
                env={
                    **environment,
                    "NUMBA_DISABLE_JIT": str(int(interpreted)),
                    "UNBOUNDED_JIT": "always",
                },
                capture_output=True,
                text=True,
            )
            if result.returncode != 0:
                if "pip" in command and version[:2] > newest_supported():
                    return f"Python {name}: not supported, and not installed", True
                return f"Python {name}: {command[1:]} failed:\n{result.stderr}", False
            outputs.append(result.stdout.splitlines())
        (numba, *interpreted_plays), (_, *compiled_plays) = outputs[-2:]
    seconds = time.monotonic() - start
    line = (
        f"Python {name}, {numba}: {len(interpreted_plays)} learners interpreted, "
        f"{len(compiled_plays)} compiled, {seconds:.0f} s"
    )
    other = sorted(set(compiled_plays) - set(interpreted_plays))
    if other:
        line += "; compiled, the play is another:\n" + "\n".join(other)
    return line, not other and bool(compiled_plays)


def play(names: set[str] | None) -> None:
    """Print a line for each learner: what it chose and believes."""
    from inspect import Parameter, signature

    import numba
    import numpy as np

    from unbounded import bandits, mdps, simulate_mdp, worlds

    print(f"Numba {numba.__version__}, NumPy {np.__version__}")
    losses = np.random.default_rng(0).standard_normal((30, 3))
    for name, learner in bandits.algorithms().items():
        if names is None or name in names:
            player = learner(3, seed=1, **learner.spec.examples[0])
            for row in losses:
                choice = player.ask()
                if learner.spec.feedback == "full":
                    player.tell(choice, losses=row)
                else:
                    player.tell(choice, row[choice.arm])
            print(name, player.probabilities().tobytes().hex())
    mdp = worlds.dirichlet([1, 2], 2, np.random.default_rng(0))

    def adversary(t: int, last: Any, q: Any, rng: Any) -> Any:
        return [-rng.random(table.shape) / 2.0 for table in q]

    for name, seeker in mdps.algorithms().items():
        if names is None or name in names:
            settings = dict(seeker.spec.examples[0])
            parameters = signature(seeker).parameters
            if "episodes" in parameters:
                settings.setdefault("episodes", 10)
            given = parameters.get("transitions")
            if given is not None and given.default is Parameter.empty:
                settings["transitions"] = mdp.P
            result = simulate_mdp(seeker([1, 2], 2, **settings), mdp, adversary, 10, seed=1)
            print(name, result.pseudo_regret.tobytes().hex())


def main() -> int:
    """Try them all, two at a time."""
    everything = "--all" in sys.argv
    found = interpreters()
    print("Found Python", ", ".join(".".join(map(str, version)) for version in found), flush=True)
    good = bool(found)
    with ThreadPoolExecutor(2) as pool:
        for line, fine in pool.map(lambda item: tried(*item, everything), found.items()):
            print(line, flush=True)
            good = good and fine
    return 0 if good else 1


if __name__ == "__main__":
    if "--play" in sys.argv:
        play(FEW if "--compiled" in sys.argv and "--all" not in sys.argv else None)
    else:
        sys.exit(main())
