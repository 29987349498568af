"""Try a wheel with the lowest and the highest versions of what it depends on.

    python tests/dependencies.py dist/unbounded-*.whl

Needs uv. The lowest are the floors in pyproject.toml; the program touches every extra but
`cluster` and `postgres`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = ("plot", "experiments", "river", "alns", "gym", "service")
PROGRAM = """
import subprocess, sys, tempfile
import matplotlib
matplotlib.use("agg")
import gymnasium as gym
import numpy as np
import pandas as pd
import polars as pl
from river import bandit
from unbounded import SCB, Comparison, CostSCB, UniformPolicy, compare, simulate_mdp, worlds
from unbounded.adapters.alns import ScaleFreeSelect
from unbounded.adapters.gymnasium import Layered, play
from unbounded.adapters.river import ScaleFree
from unbounded.adversaries import Switch
from unbounded.adversaries.mdps import Stochastic
from unbounded.durable import Durable, estimate
from unbounded import experiments


if __name__ == "__main__":  # workers import this file
    both = compare({"SCB": SCB(3), "CostSCB": CostSCB(3)}, Switch(), 200, 2, seed=0)
    assert both.to_frame().height and len(both.to_frame("pandas"))
    both.plot().figure.savefig("both.svg")
    both.save("both.parquet")
    Comparison.load("both.parquet")
    print(both.summary().to_latex()[:20])
    mdp = worlds.dirichlet([2, 2], 2, seed=0)
    simulate_mdp(UniformPolicy.for_mdp(mdp), mdp, Stochastic(), 50, seed=0)
    env = Layered(gym.make("FrozenLake-v1"), horizon=4)
    play(UniformPolicy(env.layers, env.n_actions, seed=0), env, episodes=3, seed=0)
    with tempfile.TemporaryDirectory() as d:
        arms = Durable(f"{d}/arms.db", SCB(2, seed=0))
        for _ in range(300):
            c = arms.ask()
            arms.tell(c.id, float(c.arm))
        print(estimate(arms.log(), "0"))
        arms.close()
    log = {"arm": [0, 1] * 100, "probability": [0.5] * 200, "loss": [1.0, 2.0] * 100}
    for frame in (log, pd.DataFrame(log), pl.DataFrame(log)):
        print(estimate(frame, 1).loss)
        SCB(2, seed=0).learn_from(frame)
    ScaleFreeSelect(2, 1), ScaleFree(seed=0)
    e = {"learners": [{"name": "SCB"}], "adversaries": [{"name": "Switch"}]}
    e |= {"arms": 2, "rounds": 20, "replicates": 2}
    frame = experiments.run(e, out="out/x", engine="local", workers=2)
    assert frame.height
    for command in ("list", "run paper --quick --dry-run", "report out/x"):
        call = [sys.executable, "-m", "unbounded", *command.split()]
        done = subprocess.run(call, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "Warning" not in done.stderr, done.stderr
    print("ok")
"""


def main(wheel: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    floors = [*project["dependencies"], *(one for extra in EXTRAS for one in extras[extra])]
    environment = {**os.environ, "UNBOUNDED_JIT": "never"}
    environment.pop("PYTHONPATH", None)
    for resolution in ("lowest-direct", "highest"):
        with tempfile.TemporaryDirectory() as away:
            Path(away, "program.py").write_text(PROGRAM)
            subprocess.run([sys.executable, "-m", "venv", f"{away}/new"], check=True)
            python = f"{away}/new/bin/python"
            install = ["uv", "pip", "install", "-q", "--python", python, "--resolution", resolution]
            subprocess.run([*install, *floors, str(Path(wheel).resolve())], check=True)
            call = [python, "program.py"]
            done = subprocess.run(call, cwd=away, env=environment, capture_output=True, text=True)
            print(done.stdout, done.stderr, sep="")
            assert done.returncode == 0
            assert "Warning" not in done.stderr, "a dependency warns"
            print(f"{resolution}: passed")


if __name__ == "__main__":
    main(sys.argv[1])
