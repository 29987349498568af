"""Ablation of CostSCBRL's proved profile: what each of its choices is worth.

    python benchmarks/cost_rl_proved.py --play proved "center 0" --minutes 5
    python benchmarks/cost_rl_proved.py                  # only print what is there

Relative exact regret, regret / (sum_h l_inf,h S sqrt(A T)), against the adversaries of
benchmarks/cost_rl_table.py, in its environments and in ten that no calibration saw. The rows
"practical" are of the profile that was the default before there was a theorem: boxes of 0.4 times
the width that holds, one center for all pairs of a layer. They cannot be played again; the others
can, and are written to docs/results/data/cost_proved.csv as they are played.
"""

import argparse
import csv
import itertools
import time
from collections import defaultdict

import numpy as np
from cost_rl_table import ADVERSARIES, SMALL, WORLDS, grid
from scb_rl_table import RESULTS

from unbounded import worlds
from unbounded.mdps.cost_scb_rl import CostSCBRL
from unbounded.simulation.mdp import simulate_mdp

DATA = RESULTS / "data" / "cost_proved.csv"
FIELDS = ("learner", "world", "adversary", "T", "seed", "regret", "solves", "unsolved")
FIRST_SEED = 7000
LARGER = {name: mdp for name, mdp in WORLDS.items() if name not in SMALL}


def _rng(k):
    return np.random.default_rng([381, k])


UNSEEN = {
    "dirichlet 2-2": worlds.dirichlet([2, 2], 2, _rng(0)),
    "dirichlet 4-4-4, A4": worlds.dirichlet([4] * 3, 4, _rng(1)),
    "dirichlet 1-6-1-6, A3": worlds.dirichlet([1, 6, 1, 6], 3, _rng(2)),
    "dirichlet 3-3, A16": worlds.dirichlet([3, 3], 16, _rng(3)),
    "sharp 4-8-4": worlds.dirichlet([4, 8, 4], 2, _rng(4), concentration=0.05),
    "even 5-5-5-5": worlds.dirichlet([5] * 4, 2, _rng(5), concentration=20.0),
    "lock H5": worlds.combination_lock(5, 2, _rng(6)),
    "lock H3, A4": worlds.combination_lock(3, 4, _rng(7)),
    "hard 3-5-5": worlds.hard_to_reach([3, 5, 5], 3, _rng(8), reach=3e-2),
    "grid 3x3, H4": grid(3, 4, 0.2),
}
GROUPS = {"small": SMALL, "larger": LARGER, "unseen": UNSEEN}
EVERY = {**SMALL, **LARGER, **UNSEEN}
LEARNERS = {
    "proved": {},
    "paper": {"profile": "paper"},
    "center 0": {"center": 0.0},
    "skip 0": {"skip": 0.0},
    "implicit 1": {"implicit": 1.0},
    "width 0.3": {"width": 0.3},
    "rate 0.8": {"rate": 0.8},
}


def cell(name, world, against, T, seed):
    mdp = EVERY[world]
    learner = CostSCBRL(mdp.layers.sizes, mdp.layers.n_actions, **LEARNERS[name])
    result = simulate_mdp(
        learner, mdp, ADVERSARIES[against], T, seed=seed, checkpoints=[T], workers=1
    )
    return {
        "learner": name, "world": world, "adversary": against, "T": T, "seed": seed,
        "regret": f"{result.minimax_regret(pseudo=True)[0, -1]:.4g}",
        "solves": result.solves[0], "unsolved": result.unsolved[0],
    }  # fmt: skip


def load():
    if not DATA.exists():
        return []
    with DATA.open(newline="") as file:
        return list(csv.DictReader(file))


def _key(row):
    return row["learner"], row["world"], row["adversary"], int(row["T"]), int(row["seed"])


def play(given):
    done, deadline = {_key(row) for row in load()}, time.process_time() + 60 * given.minutes
    new = not DATA.exists()
    with DATA.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if new:
            writer.writeheader()
        for at in itertools.product(
            given.play, EVERY, ADVERSARIES, [given.episodes],
            range(FIRST_SEED, FIRST_SEED + given.seeds),
        ):  # fmt: skip
            if time.process_time() > deadline:
                print("time is up; run again to go on")
                return
            if at not in done:
                writer.writerow(cell(*at))


def summary(rows, T):
    """Mean over the cells, worst cell, and ratios to `practical`, over the seeds that both have."""
    found = defaultdict(dict)
    for row in rows:
        if int(row["T"]) == T:
            found[row["learner"], row["world"], row["adversary"]][row["seed"]] = float(
                row["regret"]
            )
    head = ["learner", "group", "seeds", "mean", "worst cell", "to practical: sums", "worst ratio"]
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for name, (group, some) in itertools.product(("practical", *LEARNERS), GROUPS.items()):
        mean, before, count = {}, {}, []
        for world, against in itertools.product(some, ADVERSARIES):
            ours, base = (found.get((who, world, against), {}) for who in (name, "practical"))
            seeds = sorted(set(ours) & set(base))
            if seeds:
                mean[world, against] = np.mean([ours[s] for s in seeds])
                before[world, against] = np.mean([base[s] for s in seeds])
                count.append(len(seeds))
        if not mean:
            continue
        worst = max(mean, key=mean.get)
        positive = [at for at in mean if before[at] > 0.0]
        ratio = sum(mean[at] for at in positive) / sum(before[at] for at in positive)
        large = [at for at in mean if before[at] > 0.02]
        most = max(large, key=lambda at: mean[at] / before[at])
        entries = [
            name, group, f"{min(count)}", f"{np.mean(list(mean.values())):.3f}",
            f"{mean[worst]:.3f} ({', '.join(worst)})", f"{ratio:.2f}",
            f"{mean[most] / before[most]:.2f} ({', '.join(most)})",
        ]  # fmt: skip
        print("| " + " | ".join(entries) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--play", nargs="+", default=[], choices=list(LEARNERS))
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=5.0)
    given = parser.parse_args()
    play(given)
    summary(load(), given.episodes)


if __name__ == "__main__":
    main()
