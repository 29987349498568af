"""The accelerator changes nothing: learners play the same with it and without, on each Numba.

    python tests/numba_versions.py --here
    python tests/numba_versions.py [--all] [VERSION ...]

Play learners compiled with the accelerator and without it. Within one version of Numba the plays
must be equal to the last bit; differences between versions are reported.

``--here`` uses the Numba that is installed, and is short enough for continuous integration. The
reference path compiles SCBRL in some 220 CPU seconds, so SCBRL is compared with its interpreted
play there. The other call makes an environment for each version (by default the oldest that is
allowed and the newest on the index), and compares three learners, or all, by both paths.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

OLDEST, NEWEST = "0.63.*", ""
FEW = ["SCB", "CostSCB", "SCBRL"]
SLOW = ["SCBRL"]  # to compile without the accelerator
ROOT = Path(__file__).resolve().parents[1]

ARMS = (3, 100)  # some learners have other code where there are many

# Prints the version of Numba, the path that compiles, and a hash of each play.
PLAY = """
import hashlib, inspect, json, sys
import numba
import numpy as np
from unbounded import bandits, mdps, settings, worlds

def bandit(cls):
    digest = hashlib.sha256()
    for n in SIZES:
        learner, rng = cls(n, **cls.spec.examples[0], seed=1), np.random.default_rng(2)
        for t in range(200):
            losses = np.clip(rng.random(n) * 4.0 ** (t % 9), 0.0, cls.spec.largest_loss)
            choice = learner.ask()
            if cls.spec.feedback == "full":
                learner.tell(choice, losses=losses)
            else:
                learner.tell(choice, float(losses[choice.arm]))
        digest.update(learner.probabilities().tobytes() + np.float64(learner.scale).tobytes())
    return digest.hexdigest()

def mdp(cls):
    world = worlds.dirichlet([1, 3, 2], 2, np.random.default_rng(3))
    given, known = dict(cls.spec.examples[0]), inspect.signature(cls).parameters
    if "episodes" in known:
        given.setdefault("episodes", 40)
    if "transitions" in known and known["transitions"].default is inspect.Parameter.empty:
        given["transitions"] = world.P
    learner = cls(world.layers.sizes, world.layers.n_actions, **given, seed=1)
    digest, rng = hashlib.sha256(), np.random.default_rng(4)
    for _ in range(40):
        plan, states, actions = learner.ask(), [], []
        for h, size in enumerate(world.layers.sizes):
            states.append(int(rng.integers(size)))
            actions.append(plan.act(h, states[-1]))
        losses = rng.random(3)
        if cls.spec.name in ("MVP", "UCBVI"):  # they take rewards, of at most 1 in an episode
            losses /= -3.0
        if cls.spec.feedback == "full":
            losses = [rng.random((size, 2)) for size in world.layers.sizes]
        learner.tell(plan, states, actions, losses)
        digest.update(plan._pi.tobytes())
    return digest.hexdigest()

learners = {**bandits.algorithms(), **mdps.algorithms()}
plays = {
    name: (bandit if name in bandits.algorithms() else mdp)(learners[name])
    for name in (sys.argv[1:] or learners)
}
path = getattr(settings, "compiled_path", str)()
print(json.dumps([numba.__version__, path, plays]))
"""


def played(
    python: str, names: list[str], way: str, sizes: tuple[int, ...]
) -> tuple[str, str, dict[str, str]]:
    """Play in a new process; return the version of Numba, the path and the hashes."""
    environment = os.environ | {
        "UNBOUNDED_JIT": "never" if way == "interpreted" else "always",
        "UNBOUNDED_ACCELERATOR": "off" if way == "reference" else "auto",
    }
    done = subprocess.run(
        [python, "-W", "ignore", "-c", f"SIZES = {sizes}{PLAY}", *names],
        env=environment, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    version, path, plays = json.loads(done.stdout)
    return version, path, plays


def compare(
    python: str, names: list[str], other: str = "reference", *, here: bool = False
) -> tuple[str, dict[str, str]]:
    """Play with the accelerator and another way, both at once; exit if they differ.

    ``here`` the accelerator must be on, and bandits have few arms, to compile half as much.
    """
    sizes = ARMS[:1] if here else ARMS
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(
            lambda way: played(python, names, way, sizes), ("accelerated", other)
        )
    (version, path, fast), (_, other_path, plain) = first, second
    different = sorted(name for name in fast if fast[name] != plain[name])
    print(f"Numba {version}, {path} and {other}: {len(fast)} learners, different: {different}")
    if different or (other == "reference" and other_path != "reference"):
        raise SystemExit(1)
    if here and path != "accelerated":
        raise SystemExit("the accelerator is not on")
    return version, fast


def environment_of(version: str, directory: Path, extras: str = "") -> str:
    """Make an environment with this version of Numba and the package."""
    subprocess.run([sys.executable, "-m", "venv", directory], check=True)
    python = str(directory / "bin" / "python")
    numba = f"numba=={version}" if version else "numba"
    package = f"{ROOT}[{extras}]" if extras else str(ROOT)
    command = [python, "-m", "pip", "install", "--quiet", "--upgrade", numba, "-e", package]
    subprocess.run(command, check=True)
    return python


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("versions", nargs="*", default=[OLDEST, NEWEST])
    parser.add_argument("--all", action="store_true", help="every learner, not only three")
    parser.add_argument("--here", action="store_true", help="three, on the Numba of this Python")
    given = parser.parse_args()
    if given.here:
        compare(sys.executable, [name for name in FEW if name not in SLOW], here=True)
        compare(sys.executable, SLOW, "interpreted", here=True)
        return
    with tempfile.TemporaryDirectory() as directory:
        found = [
            compare(environment_of(version, Path(directory, str(i))), [] if given.all else FEW)
            for i, version in enumerate(given.versions)
        ]
    for (one, first), (two, second) in pairwise(found):
        changed = sorted(name for name in first if first[name] != second[name])
        print(f"between Numba {one} and {two}, other bits: {changed or 'none'}")


if __name__ == "__main__":
    main()
