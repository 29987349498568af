"""How the practical constants of SCB-RL were chosen: one change at a time, on worlds of its own.

    python benchmarks/scb_rl_calibrate.py 10000 --replicates 2
    python benchmarks/scb_rl_calibrate.py 100000 --changes "as it is" "eta x2"

Exact regret / (sum_h l_inf,h S sqrt(A T)) over 5 worlds and all adversaries. Neither these worlds
nor these seeds are those of benchmarks/scb_rl_table.py.
"""

import argparse
import itertools

import numpy as np
from scb_rl_table import ADVERSARIES

from unbounded import worlds
from unbounded.mdps.profiles import PRACTICAL
from unbounded.mdps.scb_rl import SCBRL
from unbounded.play.simulate_mdp import simulate_mdp

SEED = 17
WORLDS = {
    "dirichlet 3-3-3": worlds.dirichlet([3, 3, 3], 2, np.random.default_rng(171)),
    "lock H3": worlds.combination_lock(3, 2, np.random.default_rng(172)),
    "hard 2-3-3": worlds.hard_to_reach([2, 3, 3], 2, np.random.default_rng(173), reach=1e-2),
    "dirichlet 2-4, A3": worlds.dirichlet([2, 4], 3, np.random.default_rng(175)),
    "lock H4, A3": worlds.combination_lock(4, 3, np.random.default_rng(176)),
}
CHANGES = {
    "as it is": {},
    "eta x2": {"rate": 2 * PRACTICAL.rate},
    "eta /1.5": {"rate": PRACTICAL.rate / 1.5},
    "gamma x2": {"implicit": 2 * PRACTICAL.implicit},
    "gamma /3": {"implicit": PRACTICAL.implicit / 3},
    "beta /2": {"mixing": PRACTICAL.mixing / 2},
    "beta /4": {"mixing": PRACTICAL.mixing / 4},
    "width x2": {"width": 2 * PRACTICAL.width},
    "width /2": {"width": PRACTICAL.width / 2},
    "early stop 8": {"early_stop": 8},
    "xi /3": {"exploration": PRACTICAL.exploration / 3},
    "skip 0": {"skip": 0.0},
    "ftrl_only": {"estimator": "ftrl_only"},
    "paper's clipping": {"clip": "scale"},
}


def cells(T, replicates, change):
    """Mean of each world and adversary."""
    out = {}
    for world, against in itertools.product(WORLDS, ADVERSARIES):
        mdp = WORLDS[world]
        learner = SCBRL(mdp.layers.sizes, mdp.layers.n_actions, T, **change)
        result = simulate_mdp(
            learner, mdp, ADVERSARIES[against], T, replicates, SEED, checkpoints=[T], workers=1
        )
        out[world, against] = result.minimax_regret(pseudo=True)[:, -1].mean()
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("episodes", type=int)
    parser.add_argument("--replicates", type=int, default=1)
    parser.add_argument("--changes", nargs="+", default=list(CHANGES), choices=list(CHANGES))
    given = parser.parse_args()
    print(f"T = {given.episodes:,}: mean, worst cell, for oblivious and for adaptive adversaries\n")
    print("| change | oblivious | adaptive |\n|---|---|---|")
    for name in given.changes:
        played = cells(given.episodes, given.replicates, CHANGES[name])
        entries = []
        for adaptive in (False, True):
            some = {c: v for c, v in played.items() if ADVERSARIES[c[1]].looks == adaptive}
            worst = max(some, key=some.get)
            mean = np.mean(list(some.values()))
            entries.append(f"{mean:.2f}, {some[worst]:.2f} ({', '.join(worst)})")
        print(f"| {name} | " + " | ".join(entries) + " |", flush=True)


if __name__ == "__main__":
    main()
