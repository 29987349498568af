"""What robustness costs where losses are stationary: regret of learners for stochastic MDPs.

    python benchmarks/stationary_mdps.py --seeds 3

Each pair has a mean drawn once, and losses are coins with that mean, less 1, so that learners of
rewards can play. MVP and UCBVI are given the range (``total``); so is `UOBREPS`. `CostSCBRL` is
given the lower bound, `SCBRL` the number of episodes, `PolicyOptimization` nothing. Exact
pseudo-regret in percent of that of uniform play: at T/10, and at T.
"""

import argparse

import numpy as np

from unbounded import worlds
from unbounded.adversaries.mdps import MDPReplay
from unbounded.mdps.baselines.uniform_policy import UniformPolicy
from unbounded.mdps.baselines.uob_reps import UOBREPS
from unbounded.mdps.cost_scb_rl import CostSCBRL
from unbounded.mdps.mvp import MVP
from unbounded.mdps.policy_optimization import PolicyOptimization
from unbounded.mdps.scb_rl import SCBRL
from unbounded.mdps.ucbvi import UCBVI
from unbounded.simulation.mdp import simulate_mdp


def _rng(k):
    return np.random.default_rng([382, k])


ENVIRONMENTS = {
    "dirichlet 5-5-5, A4": worlds.dirichlet([5] * 3, 4, _rng(0)),
    "lock H5": worlds.combination_lock(5, 2, _rng(1)),
    "hard 2-3-3": worlds.hard_to_reach([2, 3, 3], 2, _rng(2), reach=1e-2),
    "dirichlet 1-20-20-20, A3": worlds.dirichlet([1, 20, 20, 20], 3, _rng(3)),
}


def learners(mdp, T):
    sizes, A = mdp.layers.sizes, mdp.layers.n_actions
    H = float(len(sizes))
    return {
        "UCBVI": UCBVI(sizes, A, T, total=H),
        "UCBVI, paper": UCBVI(sizes, A, T, total=H, constants="paper"),
        "MVP": MVP(sizes, A, T, total=H),
        "MVP, paper": MVP(sizes, A, T, total=H, constants="paper"),
        "UOB-REPS": UOBREPS(sizes, A, T, loss_range=(-1.0, 0.0)),
        "CostSCBRL": CostSCBRL(sizes, A, lower=-1.0),
        "SCBRL": SCBRL(sizes, A, T),
        "PolicyOptimization": PolicyOptimization(sizes, A),
        "uniform": UniformPolicy(sizes, A),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    T = given.episodes
    print("| | " + " | ".join(ENVIRONMENTS) + " |\n" + "|---" * (len(ENVIRONMENTS) + 1) + "|")
    rows = {}
    for mdp in ENVIRONMENTS.values():
        found = {}
        for seed in range(9000, 9000 + given.seeds):
            rng = np.random.default_rng(seed)
            means = rng.random(mdp.layers.n_pairs - 1)
            losses = (rng.random((T, means.size)) < means) - 1.0
            for name, learner in learners(mdp, T).items():
                result = simulate_mdp(
                    learner, mdp, MDPReplay(losses), T, seed=seed, checkpoints=[T // 10, T],
                    workers=1,
                )  # fmt: skip
                found.setdefault(name, []).append(result.pseudo_regret[0])
        even = np.mean(found["uniform"], axis=0)
        for name, some in found.items():
            share = 100.0 * np.mean(some, axis=0) / even
            rows.setdefault(name, []).append(f"{share[0]:.1f}, {share[1]:.1f}")
    for name, entries in rows.items():
        print(f"| {name} | " + " | ".join(entries) + " |")


if __name__ == "__main__":
    main()
