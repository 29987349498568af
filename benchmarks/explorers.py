"""RF-ELP: from how many episodes per state it keeps its promise, and how long RF-ELP-ES takes.

    python benchmarks/explorers.py             # about 3 minutes of CPU time
    python benchmarks/explorers.py --quick     # N up to 1000, two seeds

The promise: for every state that can be reached, the policies found reach it with at least half of
the largest possible probability. Both are exact, from the true transitions. Worlds and seeds were
not used to choose any constant.
"""

import argparse

import numpy as np
from scb_rl_table import WORLDS

from unbounded import worlds
from unbounded.adversaries.mdps import Stochastic
from unbounded.mdps.rf_elp import RFELP
from unbounded.simulation.mdp import simulate_mdp

ALL = {
    **WORLDS,
    "lock H5, 3 actions": worlds.combination_lock(5, 3, np.random.default_rng(74)),
    "dirichlet 2-3-4-5-3": worlds.dirichlet([2, 3, 4, 5, 3], 2, np.random.default_rng(75)),
}
PROFILES = {  # settings, and the largest N tried
    "practical": ({}, 100_000),
    "practical, counts not shared": ({"share_counts": False}, 10_000),
    "practical, UCBVI": ({"explorer": "ucbvi"}, 10_000),
    "theory": ({"constants": "paper", "share_counts": False}, 100_000),
}
FIRST_SEED = 2000
SEEDS = 5


def explore(mdp, N, seed, **settings):
    """Smallest ratio over the states that can be reached, and the episodes it took."""
    learner = RFELP(mdp.layers.sizes, mdp.layers.n_actions, N, **settings)
    most = N * sum(mdp.layers.sizes)
    for T in (min(50_000, most), most):  # the first is often enough when it stops early
        result = simulate_mdp(learner, mdp, Stochastic(), T, seed=seed, checkpoints=[T], workers=1)
        if not np.isnan(result.reach[0]):
            break
    return result.reach[0], result.explored[0]


def promise(Ns, seeds):
    print(
        "Least N of the grid from which on all seeds keep the promise; then the smallest ratio of"
    )
    print(f"any seed at N = {', '.join(f'{N:g}' for N in Ns)}.\n")
    print("| | " + " | ".join(ALL) + " |\n" + "|---" * (len(ALL) + 1) + "|")
    for name, (settings, most) in PROFILES.items():
        cells = []
        tried = [N for N in Ns if most >= N]
        for mdp in ALL.values():
            worst = [min(explore(mdp, N, seed, **settings)[0] for seed in seeds) for N in tried]
            kept = len(tried)
            while kept > 0 and worst[kept - 1] >= 0.5:
                kept -= 1
            first = f"{tried[kept]:g}" if kept < len(tried) else "not yet"
            cells.append(f"{first} ({', '.join(f'{ratio:.2f}' for ratio in worst)})")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def early_stopping(Ns, seeds, m=16):
    print(f"\nRF-ELP-ES, practical, m = {m}: episodes in all, least to most; smallest ratio.\n")
    print("| | " + " | ".join(f"N = {N:g}" for N in Ns) + " |\n" + "|---" * (len(Ns) + 1) + "|")
    for world, mdp in ALL.items():
        cells = []
        for N in Ns:
            runs = [explore(mdp, N, seed, early_stop=m) for seed in seeds]
            used = [episodes for _, episodes in runs]
            cells.append(f"{min(used)}-{max(used)}, {min(ratio for ratio, _ in runs):.2f}")
        print(f"| {world} | " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    seeds = range(FIRST_SEED, FIRST_SEED + (2 if quick else SEEDS))
    promise([10, 30, 100, 300, 1000, 10_000, 100_000][: 5 if quick else None], seeds)
    early_stopping([100, 1000, 10_000, 100_000][: 2 if quick else None], seeds)


if __name__ == "__main__":
    main()
