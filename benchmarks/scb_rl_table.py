"""Table of exact regret / (sum_h l_inf,h S sqrt(A T)): learners x adversaries x worlds.

    python benchmarks/scb_rl_table.py --episodes 1000 10000 --seeds 5
    python benchmarks/scb_rl_table.py --summary          # only print what is there

Resumable: every cell (learner, world, adversary, T, seed) is one line of
docs/results/data/scb_rl/T.csv, written when it is done, and is not computed again; delete lines to
play them again. At the end docs/results/tables has its tables. Nothing was tuned on these
worlds and seeds.
"""

import argparse
import csv
import itertools
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from result_tables import write_tables

from unbounded import worlds
from unbounded.adversaries.mdps import (
    Alternating,
    BadSpike,
    GoodSpike,
    Growth,
    GrowthSwitch,
    Hide,
    Lure,
    Negative,
    Punish,
    QuietLure,
    SmallGap,
    Stochastic,
    Switch,
)
from unbounded.mdps.baselines.explore_then_commit import ExploreThenCommit
from unbounded.mdps.baselines.independent_scb import IndependentSCB
from unbounded.mdps.baselines.o_reps import OREPS
from unbounded.mdps.baselines.uniform_policy import UniformPolicy
from unbounded.mdps.baselines.uob_reps import UOBREPS
from unbounded.mdps.scb_rl import SCBRL
from unbounded.simulation.mdp import simulate_mdp

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
DATA = RESULTS / "data" / "scb_rl"
HEAD = "# SCB-RL: the whole table\n"
FIELDS = (
    "learner", "world", "adversary", "T", "seed", "regret", "explored", "solves", "fallbacks",
    "unsolved", "worst_gap",
)  # fmt: skip
FIRST_SEED = 1000
WORLDS = {
    "dirichlet 3-3-3": worlds.dirichlet([3, 3, 3], 2, np.random.default_rng(71)),
    "lock H3": worlds.combination_lock(3, 2, np.random.default_rng(72)),
    "hard 2-3-3": worlds.hard_to_reach([2, 3, 3], 2, np.random.default_rng(73), reach=1e-2),
}
ADVERSARIES = {
    "stochastic": Stochastic(),
    "small gap": SmallGap(),
    "switch": Switch(),
    "growth": Growth(),
    "growth switch": GrowthSwitch(),
    "negative": Negative(),
    "alternating": Alternating(),
    "good spike": GoodSpike(),
    "bad spike": BadSpike(),
    "lure": Lure(),
    "quiet lure": QuietLure(),
    "punish": Punish(),
    "hide": Hide(),
}
# The practical constants until the calibration with larger worlds.
BEFORE = {
    "rate": 0.35, "exploration": 0.3, "early_stop": 16, "exploration_cap": 0.5, "few": False,
    "center": 0.0, "renewal": "epoch",
}  # fmt: skip
LEARNERS = (
    "SCB-RL practical",
    "SCB-RL practical, T unknown",
    "SCB-RL practical, before",
    "SCB-RL theory",
    "SCB-RL before, scale clipping",
    "UOB-REPS, true range",
    "UOB-REPS, true range, practical",
    "UOB-REPS, assumes [-1, 1]",
    "O-REPS, true range and transitions",
    "independent SCB",
    "explore-then-commit",
    "uniform",
)


def make(name, mdp, T, ranges):
    """``ranges`` (H, 2): the true ranges of the layers."""
    sizes, A = mdp.layers.sizes, mdp.layers.n_actions
    told = {"loss_range": ranges}
    return {
        "SCB-RL practical": lambda: SCBRL(sizes, A, T),
        "SCB-RL practical, T unknown": lambda: SCBRL(sizes, A),
        "SCB-RL theory": lambda: SCBRL(sizes, A, T, profile="paper"),
        "SCB-RL practical, before": lambda: SCBRL(sizes, A, T, constants=BEFORE),
        "SCB-RL before, scale clipping": lambda: SCBRL(
            sizes, A, T, constants=BEFORE, reading={"clip": "scale"}
        ),
        "UOB-REPS, true range": lambda: UOBREPS(sizes, A, T, **told),
        "UOB-REPS, true range, practical": lambda: UOBREPS(
            sizes, A, T, **told, rate=2.0, implicit=0.3, width=0.4
        ),
        "UOB-REPS, assumes [-1, 1]": lambda: UOBREPS(sizes, A, T, loss_range=(-1, 1)),
        "O-REPS, true range and transitions": lambda: OREPS(sizes, A, T, transitions=mdp.P, **told),
        "independent SCB": lambda: IndependentSCB(sizes, A),
        "explore-then-commit": lambda: ExploreThenCommit(sizes, A, T),
        "uniform": lambda: UniformPolicy(sizes, A),
    }[name]()


def true_ranges(mdp, adversary, T, seed):
    """Extreme losses of each layer: from uniform play, which meets the same losses.

    Where they depend on the learner, what the adversary may do in any layer.
    """
    seen = simulate_mdp(UniformPolicy(mdp.layers.sizes, mdp.layers.n_actions), mdp, adversary, T,
                        seed=seed, checkpoints=[T])  # fmt: skip
    low, high = seen.low[0, -1], seen.high[0, -1]
    if adversary.looks:
        low[:], high[:] = low.min(), high.max()
    return np.stack([low, np.where(high > low, high, low + 1.0)], axis=1)


def cell(name, world, against, T, seed):
    mdp, adversary = WORLDS[world], ADVERSARIES[against]
    learner = make(name, mdp, T, true_ranges(mdp, adversary, T, seed))
    result = simulate_mdp(learner, mdp, adversary, T, seed=seed, checkpoints=[T], workers=1)
    return {
        "learner": name, "world": world, "adversary": against, "T": T, "seed": seed,
        "regret": f"{result.minimax_regret(pseudo=True)[0, -1]:.4g}",
        "explored": result.explored[0], "solves": result.solves[0],
        "fallbacks": result.fallbacks[0],
        "unsolved": result.unsolved[0], "worst_gap": f"{result.worst_gap[0]:.1e}",
    }  # fmt: skip


def load():
    rows = []
    for path in sorted(DATA.glob("*.csv")):
        with path.open(newline="") as file:
            rows += csv.DictReader(file)
    return rows


def key(row):
    return row["learner"], row["world"], row["adversary"], int(row["T"]), int(row["seed"])


def summary(rows):
    """For oblivious and for adaptive adversaries; then how well the programs were solved."""
    for adaptive in (False, True):
        some = [row for row in rows if ADVERSARIES[row["adversary"]].looks == adaptive]
        print(f"\n{'Adaptive' if adaptive else 'Oblivious'} adversaries, {len(some)} cells\n")
        table(some)
    print("\n| learner | cells | solves | fallbacks | unsolved | worst gap |")
    print("|---" * 6 + "|")
    for name in LEARNERS:
        some = [row for row in rows if row["learner"] == name and int(row["solves"])]
        if some:
            counts = [sum(int(row[k]) for row in some) for k in ("solves", "fallbacks", "unsolved")]
            worst = max(float(row["worst_gap"]) for row in some)
            entries = " | ".join(f"{c:,}" for c in counts)
            print(f"| {name} | {len(some)} | {entries} | {worst:.1e} |")


def table(rows):
    """Mean / 90% quantile over all cells, then the worst cell (mean over seeds)."""
    by = defaultdict(lambda: defaultdict(list))
    for row in rows:
        cells = by[row["learner"], int(row["T"])]
        cells[row["world"], row["adversary"]].append(float(row["regret"]))
    Ts = sorted({T for _, T in by})
    print(
        "| learner | " + " | ".join(f"T={T:g}" for T in Ts) + " |\n" + "|---" * (len(Ts) + 1) + "|"
    )
    for name in LEARNERS:
        entries = []
        for T in Ts:
            cells = by.get((name, T))
            if not cells:
                entries.append("")
                continue
            every = np.concatenate([np.array(v) for v in cells.values()])
            worst = max(cells, key=lambda c: np.mean(cells[c]))
            entries.append(
                f"{every.mean():.2f} / {np.quantile(every, 0.9):.2f}, worst "
                f"{np.mean(cells[worst]):.2f} ({', '.join(worst)})"
            )
        print(f"| {name} | " + " | ".join(entries) + " |")


def page(rows):
    """Every cell of the table as Markdown."""
    cells = defaultdict(list)
    for row in rows:
        cells[int(row["T"]), row["world"], row["adversary"], row["learner"]].append(
            float(row["regret"])
        )
    lines = [HEAD]
    for T in sorted({key[0] for key in cells}):
        for world in WORLDS:
            learners = [n for n in LEARNERS if any((T, world, k, n) in cells for k in ADVERSARIES)]
            if not learners:
                continue
            seeds = [len(v) for key, v in cells.items() if key[:2] == (T, world)]
            count = f"{min(seeds)}" if min(seeds) == max(seeds) else f"{min(seeds)} to {max(seeds)}"
            lines.append(f"## T = {T:,}, {world}: {count} seeds\n")
            lines.append(
                "| | " + " | ".join(learners) + " |\n" + "|---" * (len(learners) + 1) + "|"
            )
            for against, adversary in ADVERSARIES.items():
                star = "*" if adversary.looks else ""
                entries = [_entry(cells.get((T, world, against, name))) for name in learners]
                lines.append(f"| {against}{star} | " + " | ".join(entries) + " |")
            lines.append("")
    return "\n".join(lines)


def _entry(values):
    return f"{np.mean(values):.2f} / {np.quantile(values, 0.9):.2f}" if values else ""


def parser_of(description, learners, adversaries, worlds):
    """What one may choose of a table."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--episodes", type=int, nargs="+", default=[1000])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--learners", nargs="+", default=learners, choices=learners)
    parser.add_argument("--adversaries", nargs="+", default=list(adversaries), choices=adversaries)
    parser.add_argument("--worlds", nargs="+", default=list(worlds), choices=list(worlds))
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this long")
    parser.add_argument("--summary", action="store_true")
    return parser


def play_missing(given, data, done, cell):
    """Play the cells that were chosen and are not ``done``, and write them into ``data``."""
    deadline = time.monotonic() + 60 * given.minutes
    for T in () if given.summary else given.episodes:
        path = data / f"{T}.csv"
        new = not path.exists()
        path.parent.mkdir(exist_ok=True)
        with path.open("a", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            if new:
                writer.writeheader()
            for seed, world, against, name in itertools.product(
                range(given.first_seed, given.first_seed + given.seeds), given.worlds,
                given.adversaries, given.learners,
            ):  # fmt: skip
                if (name, world, against, T, seed) in done:
                    continue
                if time.monotonic() > deadline:
                    sys.exit("time is up; run again to go on")
                writer.writerow(cell(name, world, against, T, seed))
                file.flush()


def main():
    given = parser_of(__doc__.splitlines()[0], LEARNERS, ADVERSARIES, WORLDS).parse_args()
    play_missing(given, DATA, {key(row) for row in load()}, cell)
    summary(load())
    write_tables("scb-rl-table", page(load()))


if __name__ == "__main__":
    main()
