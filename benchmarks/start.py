"""How soon one can play: fresh processes, most with an empty cache, beside ``import numba``.

    python benchmarks/start.py [--turns 5] [--write]    # docs/results/tables/start-1.csv, ...

Every figure is CPU seconds of a process from its beginning, so that other load does not count, or
a ratio to those of a process that only imports Numba, measured in the same turn. The peers
are installed into an environment of their own, by ``--peers DIRECTORY`` one that stays.

1. SCB and SCB-RL to their first decisions, with an empty and with a filled cache; SCB to its 20th;
   SCB-RL to its fifth playing episode, on a small and on a larger MDP;
2. ask + tell while another process compiles, and after the change-over, in milliseconds;
3. the CPU seconds of compiling SCB and SCB-RL;
4. every learner to its first decision, beside River, pymab and MABWiser;
5. the tour of ``make demo``: seconds by the clock until its first result is on the screen.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

from result_tables import write_tables

UNIT = "import numba"
SCB_20 = """
    from unbounded import SCB
    learner = SCB(10, seed=0)
    for t in range(20):
        choice = learner.ask()
        learner.tell(choice, 1.0 + choice.arm)
"""
SCB_RL = """
    import numpy as np
    from unbounded import SCBRL, worlds
    sizes, actions = {sizes}, {actions}
    mdp = worlds.dirichlet(sizes, actions, np.random.default_rng(0))
    rng, learner = np.random.default_rng(1), SCBRL(sizes, actions, episodes=100, seed=0)
    playing = 0
    while playing < 5:
        playing += learner.phase == "playing"
        plan, states, done, p = learner.ask(), [], [], mdp.initial
        for h in range(len(sizes)):
            states.append(int(rng.choice(p.size, p=p)))
            done.append(plan.act(h, states[h]))
            p = mdp.transitions[h][states[h], done[h]] if h + 1 < len(sizes) else p
        learner.tell(plan, states, done, rng.random(len(sizes)))
"""
ONE_SCB = "from unbounded import SCB\nSCB(10, seed=0).ask()"
ONE_SCB_RL = "from unbounded import SCBRL\nSCBRL([1, 5, 5, 4], 3, episodes=100, seed=0).ask()"
STARTS = {  # what is played, and how many imports of Numba it may take
    "SCB, first decision": (ONE_SCB, 1.6),
    "SCB, first decision, cached": (ONE_SCB, 1.6),
    "SCB-RL, first decision": (ONE_SCB_RL, 2.5),
    "SCB-RL, first decision, cached": (ONE_SCB_RL, 2.5),
    "SCB, 10 arms, 20 decisions": (SCB_20, 3.0),
    "SCB-RL, layers 1-5-5-4, 3 actions, fifth playing episode": (
        SCB_RL.format(sizes=[1, 5, 5, 4], actions=3),
        6.0,
    ),
    "SCB-RL, layers 1-20-20-20-1, 5 actions, fifth playing episode": (
        SCB_RL.format(sizes=[1, 20, 20, 20, 1], actions=5),
        15.0,
    ),
}
LATENCY = """
    import time
    import numpy as np
    from unbounded import {name}
    learner = {name}(10, seed=0)
    def rounds(n, until):
        spent = []
        while len(spent) < n and not until():
            before = time.perf_counter()
            choice = learner.ask()
            learner.tell(choice, 1.0 + choice.arm)
            spent.append(time.perf_counter() - before)
        return spent
    began = time.perf_counter()
    during = rounds(10**8, lambda: learner._steps.ready or time.perf_counter() - began > 600.0)
    after = rounds(20_000, lambda: False)
    print(*(1e3 * x for some in (during, after) for x in np.percentile(some, [50, 99])))
"""
COMPILE = {
    "SCB": "from unbounded import SCB\nlearner = SCB(10, seed=0)",
    "SCB-RL": "from unbounded import SCBRL\nlearner = SCBRL([1, 5, 5, 4], 3, episodes=100, seed=0)",
}
COMPILED = """
import time
before = time.process_time()
learner._steps.compile()
print(time.process_time() - before)
"""
FIRST = """
    from inspect import Parameter, signature
    from unbounded import {name}
    given = dict({name}.spec.examples[0])
    parameters = signature({name}).parameters
    full = {name}.spec.feedback == "full"
    if "n_arms" in parameters:
        learner = {name}(10, **given, seed=0)
        choice = learner.ask()
        if full:
            learner.tell(choice, losses=[1.0] * 10)
        else:
            learner.tell(choice, 1.0)
    else:
        if "episodes" in parameters:
            given.setdefault("episodes", 100)
        if "transitions" in parameters and parameters["transitions"].default is Parameter.empty:
            import numpy as np
            from unbounded import worlds
            given["transitions"] = worlds.dirichlet([2, 3], 2, np.random.default_rng(0)).P
        learner = {name}([2, 3], 2, **given, seed=0)
        plan = learner.ask()
        losses = [[[-0.5] * 2] * 2, [[-0.5] * 2] * 3] if full else [-0.5, -0.5]
        learner.tell(plan, [0, 0], [plan.act(0, 0), plan.act(1, 0)], losses)
"""
PEERS = {
    "River Exp3": """
        from river import bandit
        policy = bandit.Exp3(gamma=0.1, seed=0)
        arm = policy.pull(list(range(10)))
        policy.update(arm, 1.0)
    """,
    "pymab EXP3Policy": """
        import numpy as np
        from pymab.policies import EXP3Policy
        policy = EXP3Policy(n_arms=10, gamma=0.1)
        arm = policy.select_action(rng=np.random.default_rng(0))
        policy.update(action=arm, reward=1.0)
    """,
    "MABWiser EpsilonGreedy": """
        from mabwiser.mab import MAB, LearningPolicy
        policy = MAB(list(range(10)), LearningPolicy.EpsilonGreedy())
        policy.fit([0], [1.0])
        arm = policy.predict()
        policy.partial_fit([arm], [1.0])
    """,
}
TOUR = Path(__file__).resolve().parents[1] / "experiments" / "tour"


def child(
    script: str, python: str = sys.executable, jit: str = "auto", cache: str = ""
) -> list[float]:
    """The numbers that a script prints in a fresh process, and its CPU seconds.

    Unless ``cache`` is given, nothing is cached.
    """
    text = textwrap.dedent(script) + "\nimport time\nprint(time.process_time())\n"
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(
            [python, "-c", text], capture_output=True, text=True, check=False,
            env=os.environ | {"UNBOUNDED_CACHE_DIR": cache or empty, "UNBOUNDED_JIT": jit},
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{script}\n{done.stderr}")
    return [float(number) for number in done.stdout.split()]


def beside_numba(
    scripts: dict[str, tuple[str, str]], turns: int, cache: str = ""
) -> dict[str, tuple[float, float]]:
    """Medians of the CPU seconds of scripts, each with its Python, and of ratios to the unit."""
    seconds: dict[str, list[float]] = {name: [] for name in scripts}
    ratios: dict[str, list[float]] = {name: [] for name in scripts}
    for _ in range(turns):
        unit = child(UNIT)[-1]
        for name, (script, python) in scripts.items():
            filled = cache if name.endswith("cached") else ""
            seconds[name].append(child(script, python, cache=filled)[-1])
            ratios[name].append(seconds[name][-1] / unit)
    return {
        name: (statistics.median(seconds[name]), statistics.median(ratios[name]))
        for name in scripts
    }


def starts(turns: int) -> list[str]:
    scripts = {name: (script, sys.executable) for name, (script, _) in STARTS.items()}
    with tempfile.TemporaryDirectory() as cache:
        for script in COMPILE.values():
            child(script, jit="always", cache=cache)
        measured = beside_numba({UNIT: (UNIT, sys.executable), **scripts}, turns, cache)
    lines = ["| until | CPU seconds | x `import numba` | may be |", "|---|---|---|---|"]
    for name, (seconds, ratio) in measured.items():
        limit = STARTS[name][1] if name in STARTS else 1.0
        late = "" if ratio <= limit or name == UNIT else " **missed**"
        lines.append(f"| {name} | {seconds:.2f} | {ratio:.2f}{late} | {limit:g} |")
    return lines


def latencies(turns: int) -> list[str]:
    lines = ["| ask + tell, ms | while compiling: p50, p99 | after: p50, p99 |", "|---|---|---|"]
    for name in ("SCB", "Exp3"):
        found = [child(LATENCY.format(name=name))[:4] for _ in range(turns)]
        a, b, c, d = (statistics.median(column) for column in zip(*found, strict=True))
        lines.append(f"| {name}, 10 arms | {a:.3f}, {b:.3f} | {c:.4f}, {d:.4f} |")
    return lines


def compilations() -> list[str]:
    lines = ["| compiling, for ask and tell | CPU seconds |", "|---|---|"]
    for name, script in COMPILE.items():
        lines.append(f"| {name} | {child(script + COMPILED)[0]:.1f} |")
    return lines


def first_decisions(turns: int, peers: str) -> list[str]:
    from unbounded import bandits, mdps

    names = [*bandits.algorithms(), *mdps.algorithms()]
    scripts = {name: (script, peers) for name, script in PEERS.items()}
    scripts |= {f"`{name}`": (FIRST.format(name=name), sys.executable) for name in names}
    measured = beside_numba(scripts, turns)
    lines = ["| to its first decision | CPU seconds | x `import numba` |", "|---|---|---|"]
    return lines + [f"| {name} | {s:.2f} | {r:.1f} |" for name, (s, r) in measured.items()]


def demo() -> list[str]:
    """By the clock, with workers: what somebody sees who has just installed it."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "unbounded.cli.app", "run", TOUR, "--out", f"{folder}/out"],
            env=os.environ | {"UNBOUNDED_CACHE_DIR": f"{folder}/cache", "UNBOUNDED_JIT": "auto"},
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stderr is not None
        result = next(line for line in process.stderr if " regret / " in line)
        seconds = time.perf_counter() - began
        process.terminate()
        process.communicate()
    lines = ["| `make demo`, installed | seconds by the clock | may be |", "|---|---|---|"]
    return [*lines, f"| first result: {result.strip()} | {seconds:.0f} | 20 |"]


def installed(directory: Path) -> str:
    """A Python that has the peers."""
    python = directory / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", directory], check=True)
        command = [python, "-m", "pip", "install", "--quiet", "river", "pymab", "mabwiser"]
        subprocess.run(command, check=True)
    return str(python)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write the tables as CSV files")
    parser.add_argument("--peers", type=Path, help="an environment with the peers; made if missing")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        peers = installed(given.peers or Path(folder) / "peers")
        parts = [starts(given.turns), latencies(1), compilations()]
        parts += [first_decisions(max(1, given.turns // 2), peers), demo()]
    tables = "\n\n".join("\n".join(part) for part in parts)
    print(tables)
    if given.write:
        write_tables("start", tables)


if __name__ == "__main__":
    main()
