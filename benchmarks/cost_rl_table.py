"""Table of exact regret / (sum_h l_inf,h S sqrt(A T)) where losses are costs, of at least 0.

    python benchmarks/cost_rl_table.py --episodes 1000 10000 --seeds 5
    python benchmarks/cost_rl_table.py --speed            # episodes per second, interleaved
    python benchmarks/cost_rl_table.py --summary          # only print what is there

The three small worlds are those of benchmarks/scb_rl_table.py, with the same seeds: what stands in
docs/results/data/scb_rl is not played again. Resumable in the same way, with
docs/results/data/cost_rl/T.csv. The constants were chosen on other worlds and seeds, but for a last
step: docs/theory/one-sided-mdp.md.
"""

import csv
import itertools
import time
from collections import defaultdict

import numpy as np
from result_tables import write_tables
from scb_rl_table import ADVERSARIES as ALL
from scb_rl_table import DATA as KNOWN
from scb_rl_table import RESULTS, key, parser_of, play_missing, true_ranges
from scb_rl_table import WORLDS as SMALL

from unbounded import worlds
from unbounded.adversaries.mdps import Stochastic
from unbounded.mdps.baselines.uniform_policy import UniformPolicy
from unbounded.mdps.baselines.uob_reps import UOBREPS
from unbounded.mdps.cost_scb_rl import CostSCBRL
from unbounded.mdps.scb_rl import SCBRL
from unbounded.simulation.mdp import simulate_mdp

DATA = RESULTS / "data" / "cost_rl"
HEAD = "# CostSCBRL: the whole table\n"
OURS = ("CostSCBRL", "CostSCBRL, told T", "CostSCBRL, theory")
PEERS = ("SCB-RL practical", "UOB-REPS, true range", "UOB-REPS, true range, practical", "uniform")
ADVERSARIES = {
    name: ALL[name]
    for name in (
        "stochastic", "small gap", "switch", "growth", "growth switch", "alternating", "bad spike",
        "punish",
    )
}  # fmt: skip


def grid(n, horizon, slip):
    """An n x n grid, unrolled: four moves from a corner, each failing with probability ``slip``."""
    P = np.zeros((n * n, 4, n * n))
    for (x, y), (a, (dx, dy)) in itertools.product(
        np.ndindex(n, n), enumerate([(1, 0), (-1, 0), (0, 1), (0, -1)])
    ):
        there = min(max(x + dx, 0), n - 1) * n + min(max(y + dy, 0), n - 1)
        P[x * n + y, a, there] += 1.0 - slip
        P[x * n + y, a, x * n + y] += slip
    return worlds.time_expansion(P, np.eye(n * n)[0], horizon)


WORLDS = {
    **SMALL,
    "bottleneck 6-6-1-6-6": worlds.dirichlet([6, 6, 1, 6, 6], 3, np.random.default_rng(81)),
    "sharp 5-5-5-5-5": worlds.dirichlet([5] * 5, 3, np.random.default_rng(82), concentration=0.05),
    "grid 5x5, H6": grid(5, 6, 0.1),
}


def make(name, mdp, T, ranges):
    """``ranges`` (H, 2): the true ranges of the layers, for those who are told."""
    shape = mdp.layers.sizes, mdp.layers.n_actions
    return {
        "CostSCBRL": lambda: CostSCBRL(*shape),
        "CostSCBRL, told T": lambda: CostSCBRL(*shape, T),
        "CostSCBRL, theory": lambda: CostSCBRL(*shape, profile="paper"),
        "SCB-RL practical": lambda: SCBRL(*shape, T),
        "UOB-REPS, true range": lambda: UOBREPS(*shape, T, loss_range=ranges),
        "UOB-REPS, true range, practical": lambda: UOBREPS(
            *shape, T, loss_range=ranges, rate=2.0, implicit=0.3, width=0.4
        ),
        "uniform": lambda: UniformPolicy(*shape),
    }[name]()


def cell(name, world, against, T, seed):
    mdp, adversary = WORLDS[world], ADVERSARIES[against]
    ranges = true_ranges(mdp, adversary, T, seed) if name.startswith("UOB") else None
    learner = make(name, mdp, T, ranges)
    result = simulate_mdp(learner, mdp, adversary, T, seed=seed, checkpoints=[T], workers=1)
    return {
        "learner": name, "world": world, "adversary": against, "T": T, "seed": seed,
        "regret": f"{result.minimax_regret(pseudo=True)[0, -1]:.4g}",
        "explored": result.explored[0], "solves": result.solves[0],
        "fallbacks": result.fallbacks[0],
        "unsolved": result.unsolved[0], "worst_gap": f"{result.worst_gap[0]:.1e}",
    }  # fmt: skip


def load():
    """What was played here, and there."""
    rows = []
    for folder in (KNOWN, DATA):
        for path in sorted(folder.glob("*.csv")):
            with path.open(newline="") as file:
                rows += csv.DictReader(file)
    wanted = set(OURS + PEERS)
    return [r for r in rows if r["learner"] in wanted and r["adversary"] in ADVERSARIES]


def cells_of(rows):
    """(T, world, adversary, learner) -> regrets, over the seeds that all learners have played.

    (But for the theory, which is slow.)
    """
    found = defaultdict(dict)
    for row in rows:
        learner, world, against, T, seed = key(row)
        found[T, world, against, learner][seed] = float(row["regret"])
    cells = {}
    for at, by_seed in found.items():
        seeds = [set(found.get((*at[:3], name), ())) for name in OURS[:2] + PEERS]
        common = set(by_seed).intersection(*seeds)
        cells[at] = [by_seed[seed] for seed in sorted(common)]
    return {at: values for at, values in cells.items() if values}


def summary(cells):
    """Mean over the cells and the worst of them, for small and larger worlds, as Markdown."""
    Ts, lines = sorted({at[0] for at in cells}), []
    small, grid_world = list(SMALL), list(WORLDS)[-1]
    middle = [w for w in WORLDS if w not in small and w != grid_world]
    for some in (small, middle, [grid_world]):
        lines.append(f"{'; '.join(some)}:\n")
        lines.append("| mean, worst cell (seeds) | " + " | ".join(f"T={T:g}" for T in Ts) + " |")
        lines.append("|---" * (len(Ts) + 1) + "|")
        for name in OURS + PEERS:
            entries = [_entry(cells, T, some, name) for T in Ts]
            lines.append(f"| {name} | " + " | ".join(entries) + " |")
        lines.append("")
    return "\n".join(lines)


def page(cells):
    """Every cell, as Markdown."""
    lines = [HEAD]
    for T in sorted({at[0] for at in cells}):
        names = [n for n in OURS + PEERS if any(at[0] == T and at[3] == n for at in cells)]
        lines.append(f"## T = {T:,}\n\n| | seeds | " + " | ".join(names) + " |")
        lines.append("|---" * (len(names) + 2) + "|")
        for world, against in itertools.product(WORLDS, ADVERSARIES):
            found = [cells.get((T, world, against, n)) for n in names]
            if found[0]:
                entries = [f"{np.mean(v):.3f}" if v else "" for v in found]
                lines.append(
                    f"| {world}, {against} | {len(found[0])} | " + " | ".join(entries) + " |"
                )
        lines.append("")
    return "\n".join(lines)


def _entry(cells, T, some, name):
    """Mean, the worst cell, and how many seeds."""
    means = {at[1:3]: np.mean(v) for at, v in cells.items() if _is(at, T, some, name)}
    if not means:
        return ""
    worst = max(means, key=means.get)
    seeds = {len(v) for at, v in cells.items() if _is(at, T, some, name)}
    count = f"{min(seeds)}" if len(seeds) == 1 else f"{min(seeds)}-{max(seeds)}"
    mean = np.mean(list(means.values()))
    return f"{mean:.3f}, {means[worst]:.3f} ({', '.join(worst)}; {count})"


def _is(at, T, some, name):
    return at[0] == T and at[1] in some and at[3] == name


def speed(rounds):
    """CPU time of runs in turn, against stochastic losses: least of the ratios' ingredients."""
    shapes = {
        "5,5,4": ([5] * 5, 4, 20_000),
        "1,50,50,50,1 with 10 actions": ([1, 50, 50, 50, 1], 10, 2_000),
    }
    print("\n| | episodes | SCB-RL practical, episodes/s | CostSCBRL, episodes/s | ratio |")
    print("|---" * 5 + "|")
    for title, (sizes, A, T) in shapes.items():
        mdp = worlds.dirichlet(sizes, A, np.random.default_rng(0))
        least = [np.inf, np.inf]
        for _ in range(rounds + 1):  # the first one compiles
            for i, learner in enumerate((SCBRL(sizes, A, T), CostSCBRL(sizes, A))):
                start = time.process_time()
                simulate_mdp(learner, mdp, Stochastic(), T, seed=1, checkpoints=[T], workers=1)
                least[i] = min(least[i], time.process_time() - start)
        rates = [T / seconds for seconds in least]
        print(
            f"| {title} | {T:,} | {rates[0]:,.0f} | {rates[1]:,.0f} | {rates[1] / rates[0]:.1f} |"
        )


def main():
    parser = parser_of(__doc__.splitlines()[0], OURS + PEERS, ADVERSARIES, WORLDS)
    parser.add_argument("--speed", action="store_true")
    given = parser.parse_args()
    if given.speed:
        speed(rounds=3)
        return
    play_missing(given, DATA, {key(row) for row in load()}, cell)
    cells = cells_of(load())
    print(summary(cells))
    write_tables("cost-rl-table", page(cells))


if __name__ == "__main__":
    main()
