"""SCB-RL in larger worlds beside UOB-REPS told the range: exact regret, and the ratio of the two.

    python benchmarks/scb_rl_large.py --episodes 1000 10000 --seeds 5
    python benchmarks/scb_rl_large.py --summary          # only write the page

Resumable, as benchmarks/scb_rl_table.py: cells are lines of docs/results/data/scb_rl_large/T.csv.
What the small worlds have is read from docs/results/data/scb_rl. Constants were chosen on worlds
of benchmarks/scb_rl_calibrate.py. That exploration policies are chosen by counts, and sought again,
came from a look at these worlds, with other seeds.
"""

import csv
from collections import defaultdict

import numpy as np
from result_tables import write_tables
from scb_rl_table import ADVERSARIES, RESULTS, make, parser_of, play_missing, true_ranges
from scb_rl_table import WORLDS as SMALL
from scb_rl_table import load as load_small

from unbounded import worlds
from unbounded.simulation.mdp import simulate_mdp

DATA = RESULTS / "data" / "scb_rl_large"
OURS, TOLD, UNIFORM = "SCB-RL practical", "UOB-REPS, true range", "uniform"
LEARNERS = (OURS, TOLD, UNIFORM)
WORLDS = {
    "dirichlet 10-10-10, A3": worlds.dirichlet([10, 10, 10], 3, np.random.default_rng(271)),
    "lock H8, A3": worlds.combination_lock(8, 3, np.random.default_rng(272)),
    "hard 5-10-15": worlds.hard_to_reach([5, 10, 15], 2, np.random.default_rng(273), reach=1e-2),
    "dirichlet 12-12-12": worlds.dirichlet([12, 12, 12], 2, np.random.default_rng(274)),
    "dirichlet 1-20-20-19": worlds.dirichlet([1, 20, 20, 19], 3, np.random.default_rng(275)),
}
FIRST_SEED = 2000
LEAST = 0.005  # of UOB-REPS's figure, for a ratio: below, both have next to no regret
HEAD = "# SCB-RL beside UOB-REPS told the range, larger worlds included\n"


def cell(name, world, against, T, seed):
    mdp, adversary = WORLDS[world], ADVERSARIES[against]
    learner = make(name, mdp, T, true_ranges(mdp, adversary, T, seed))
    result = simulate_mdp(learner, mdp, adversary, T, seed=seed, checkpoints=[T], workers=1)
    return {
        "learner": name, "world": world, "adversary": against, "T": T, "seed": seed,
        "regret": f"{result.minimax_regret(pseudo=True)[0, -1]:.4g}",
        "explored": result.explored[0], "solves": result.solves[0],
        "fallbacks": result.fallbacks[0], "unsolved": result.unsolved[0],
        "worst_gap": f"{result.worst_gap[0]:.1e}",
    }  # fmt: skip


def load():
    rows = []
    for path in sorted(DATA.glob("*.csv")):
        with path.open(newline="") as file:
            rows += csv.DictReader(file)
    return rows


def page(rows):
    found = defaultdict(list)
    for row in rows:
        found[int(row["T"]), row["world"], row["adversary"], row["learner"]].append(
            float(row["regret"])
        )
    lines, overview = [], []
    for T in sorted({key[0] for key in found}):
        for world in (*SMALL, *WORLDS):
            cells = {
                against: tuple(found.get((T, world, against, name), []) for name in LEARNERS)
                for against in ADVERSARIES
            }
            cells = {against: parts for against, parts in cells.items() if all(parts)}
            if not cells:
                continue
            seeds = {len(part) for parts in cells.values() for part in parts}
            count = f"{min(seeds)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"
            lines.append(f"\n## T = {T:,}, {world}: {count} seeds\n")
            lines.append("| | SCB-RL / UOB-REPS / uniform | |\n|---|---|---|")
            ratios, worse = {}, []
            for against, parts in cells.items():
                ours, told, even = (float(np.mean(part)) for part in parts)
                star = "*" if ADVERSARIES[against].looks else ""
                said = ""
                if told >= LEAST:
                    ratios[against] = ours / told
                    said = f"({ours / told:.2f})"
                lines.append(f"| {against}{star} | {ours:.3f} / {told:.3f} / {even:.3f} | {said} |")
                if _surely_above(parts[0], parts[2]):
                    worse.append(against)
            worst = max(ratios, key=ratios.get) if ratios else ""
            entry = f"{ratios[worst]:.2f} ({worst})" if ratios else ""
            middle = f"{np.median(list(ratios.values())):.2f}" if ratios else ""
            below = ", ".join(worse) or "none"
            overview.append(f"| {T:,} | {world} | {count} | {middle} | {entry} | {below} |")
    solves = [row for row in rows if row["learner"] == OURS]
    total = sum(int(row["solves"]) for row in solves)
    unsolved = sum(int(row["unsolved"]) for row in solves)
    head = (
        "\n| T | world | seeds | ratio, median | worst ratio | 95% interval above uniform's |\n"
        + "|---" * 6 + "|\n" + "\n".join(overview)
        + f"\n\nSolves of SCB-RL in these runs: {total:,}, of which {unsolved} are unsolved.\n"
    )  # fmt: skip
    return "\n".join([HEAD + head, *lines]) + "\n"


def _surely_above(ours, other):
    """Whether the 95% interval of the mean of the differences, seed by seed, is above 0."""
    n = min(len(ours), len(other))
    differences = np.subtract(ours[:n], other[:n])
    if n < 2:
        return False
    return bool(differences.mean() > 2.1 * differences.std(ddof=1) / np.sqrt(n))


def main():
    parser = parser_of(__doc__.splitlines()[0], LEARNERS, ADVERSARIES, WORLDS)
    parser.set_defaults(first_seed=FIRST_SEED)
    given = parser.parse_args()
    done = {
        (row["learner"], row["world"], row["adversary"], int(row["T"]), int(row["seed"]))
        for row in load()
    }
    play_missing(given, DATA, done, cell)
    small = [row for row in load_small() if row["learner"] in LEARNERS and int(row["T"]) <= 10**5]
    write_tables("scb-rl-large", page(small + load()))


if __name__ == "__main__":
    main()
