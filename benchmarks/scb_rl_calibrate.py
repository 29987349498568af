"""How the practical constants of SCB-RL were chosen: one change at a time, on worlds of its own.

    python benchmarks/scb_rl_calibrate.py 10000 --replicates 2
    python benchmarks/scb_rl_calibrate.py 100000 --changes "as it is" "eta x2"
    python benchmarks/scb_rl_calibrate.py 10000 --replicates 3 --larger

Exact regret / (sum_h l_inf,h S sqrt(A T)) over 5 worlds and all adversaries; with --larger over
worlds of 6 to 60 states and six adversaries, and the ratio to UOB-REPS told the range. Neither
these worlds nor these seeds are those of benchmarks/scb_rl_table.py and scb_rl_large.py.
"""

import argparse
import itertools

import numpy as np
from scb_rl_table import ADVERSARIES, BEFORE, true_ranges

from unbounded import worlds
from unbounded.mdps.baselines.uob_reps import UOBREPS
from unbounded.mdps.scb_rl import SCBRL
from unbounded.mdps.steps.profiles import PRACTICAL
from unbounded.simulation.mdp import simulate_mdp

SEED = 17
WORLDS = {
    "dirichlet 3-3-3": worlds.dirichlet([3, 3, 3], 2, np.random.default_rng(171)),
    "lock H3": worlds.combination_lock(3, 2, np.random.default_rng(172)),
    "hard 2-3-3": worlds.hard_to_reach([2, 3, 3], 2, np.random.default_rng(173), reach=1e-2),
    "dirichlet 2-4, A3": worlds.dirichlet([2, 4], 3, np.random.default_rng(175)),
    "lock H4, A3": worlds.combination_lock(4, 3, np.random.default_rng(176)),
}
LARGER_SEED = 5170
LARGER = {
    "dirichlet 2-4, A3": worlds.dirichlet([2, 4], 3, np.random.default_rng(575)),
    "lock H5, A3": worlds.combination_lock(5, 3, np.random.default_rng(576)),
    "hard 4-7-7": worlds.hard_to_reach([4, 7, 7], 2, np.random.default_rng(577), reach=1e-2),
    "dirichlet 8-8-8-8, A3": worlds.dirichlet([8, 8, 8, 8], 3, np.random.default_rng(578)),
    "lock H7, A3": worlds.combination_lock(7, 3, np.random.default_rng(580)),
    "hard 4-8-12": worlds.hard_to_reach([4, 8, 12], 2, np.random.default_rng(581), reach=1e-2),
    "dirichlet 20-20-20": worlds.dirichlet([20, 20, 20], 2, np.random.default_rng(579)),
}
LEAST = 0.005  # of UOB-REPS's figure, for a ratio
SIX = ("stochastic", "switch", "good spike", "quiet lure", "punish", "hide")
CHANGES = {
    "as it is": {},
    "as it was": {"constants": BEFORE},
    "as it was, cap 0.05": {"constants": BEFORE | {"exploration_cap": 0.05}},
    "not centred": {"constants": {"center": 0.0, "rate": 0.35}},
    "early stop 4": {"constants": {"early_stop": 4}},
    "early stop 1": {"constants": {"early_stop": 1}},
    "cap 0.1": {"constants": {"exploration_cap": 0.1}},
    "cap 0.05": {"constants": {"exploration_cap": 0.05}},
    "xi x2": {"constants": {"exploration": 2 * PRACTICAL.exploration}},
    "eta x2": {"constants": {"rate": 2 * PRACTICAL.rate}},
    "eta /1.5": {"constants": {"rate": PRACTICAL.rate / 1.5}},
    "gamma x2": {"constants": {"implicit": 2 * PRACTICAL.implicit}},
    "gamma /3": {"constants": {"implicit": PRACTICAL.implicit / 3}},
    "beta /2": {"constants": {"mixing": PRACTICAL.mixing / 2}},
    "beta /4": {"constants": {"mixing": PRACTICAL.mixing / 4}},
    "width x2": {"constants": {"width": 2 * PRACTICAL.width}},
    "width /2": {"constants": {"width": PRACTICAL.width / 2}},
    "xi /3": {"constants": {"exploration": PRACTICAL.exploration / 3}},
    "skip 0": {"constants": {"skip": 0.0}},
    "ftrl_only": {"reading": {"estimator": "ftrl_only"}},
    "paper's clipping": {"reading": {"clip": "scale"}},
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


def larger_cells(T, replicates, change):
    """The same over the larger worlds and six adversaries; None stands for UOB-REPS."""
    out = {}
    for world, against in itertools.product(LARGER, SIX):
        mdp, regrets = LARGER[world], []
        sizes, A = mdp.layers.sizes, mdp.layers.n_actions
        for seed in range(LARGER_SEED, LARGER_SEED + replicates):
            if change is None:
                ranges = true_ranges(mdp, ADVERSARIES[against], T, seed)
                learner = UOBREPS(sizes, A, T, loss_range=ranges)
            else:
                learner = SCBRL(sizes, A, T, **change)
            result = simulate_mdp(
                learner, mdp, ADVERSARIES[against], T, seed=seed, checkpoints=[T], workers=1
            )
            regrets.append(result.minimax_regret(pseudo=True)[0, -1])
        out[world, against] = np.mean(regrets)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("episodes", type=int)
    parser.add_argument("--replicates", type=int, default=1)
    parser.add_argument("--changes", nargs="+", default=list(CHANGES), choices=list(CHANGES))
    parser.add_argument("--larger", action="store_true")
    given = parser.parse_args()
    told = larger_cells(given.episodes, given.replicates, None) if given.larger else {}
    print(f"T = {given.episodes:,}: mean, worst cell, for oblivious and for adaptive adversaries\n")
    print("| change | oblivious | adaptive | to UOB-REPS |\n|---|---|---|---|")
    for name in given.changes:
        play = larger_cells if given.larger else cells
        played = play(given.episodes, given.replicates, CHANGES[name])
        entries = []
        for adaptive in (False, True):
            some = {c: v for c, v in played.items() if ADVERSARIES[c[1]].looks == adaptive}
            worst = max(some, key=some.get)
            mean = np.mean(list(some.values()))
            entries.append(f"{mean:.2f}, {some[worst]:.2f} ({', '.join(worst)})")
        ratios = {c: played[c] / told[c] for c in told if c[1] != "switch" and told[c] > LEAST}
        if ratios:
            worst = max(ratios, key=ratios.get)
            mean = np.mean(list(ratios.values()))
            entries.append(f"{mean:.2f}, {ratios[worst]:.2f} ({', '.join(worst)})")
        print(f"| {name} | " + " | ".join(entries) + " |", flush=True)


if __name__ == "__main__":
    main()
