"""What a regret bound costs policy optimization: `CostPolicyOptimization` beside its rivals.

    python benchmarks/cost_policy_optimization.py --episodes 10000 --seeds 2

Exact regret in percent of that of uniform play, summed over the adversaries of
benchmarks/cost_rl_table.py, by environment. Then CPU time in seconds. Constants were
chosen on four environments of benchmarks/cost_rl_proved.py, with other seeds.
"""

import argparse
import time

import numpy as np
from cost_rl_table import ADVERSARIES, WORLDS

from unbounded import worlds
from unbounded.mdps.baselines.uniform_policy import UniformPolicy
from unbounded.mdps.cost_policy_optimization import CostPolicyOptimization
from unbounded.mdps.cost_scb_rl import CostSCBRL
from unbounded.mdps.policy_optimization import PolicyOptimization
from unbounded.simulation.mdp import simulate_mdp

LARGE = "dirichlet 1-40-40-40, A4"
ENVIRONMENTS = {
    **WORLDS,
    LARGE: worlds.dirichlet([1, 40, 40, 40], 4, np.random.default_rng(83), concentration=0.05),
}
LEARNERS = {
    "CostPolicyOptimization": CostPolicyOptimization,
    "rate 0.5, implicit 0.5, bonus 2": lambda *shape: CostPolicyOptimization(
        *shape, rate=0.5, implicit=0.5, bonus=2.0
    ),
    "bonus 1e-9": lambda *shape: CostPolicyOptimization(*shape, bonus=1e-9),
    "PolicyOptimization": PolicyOptimization,
    "CostSCBRL": CostSCBRL,
    "uniform": UniformPolicy,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS), choices=list(LEARNERS))
    parser.add_argument("--worlds", nargs="+", default=list(ENVIRONMENTS))
    given = parser.parse_args()
    T, names = given.episodes, dict.fromkeys([*given.learners, "uniform"])
    print("| | " + " | ".join(names) + " |\n" + "|---" * (len(names) + 1) + "|")
    for world in given.worlds:
        mdp = ENVIRONMENTS[world]
        total, seconds = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
        for seed in range(8100, 8100 + given.seeds):
            for adversary in ADVERSARIES.values():
                for name in names:
                    learner = LEARNERS[name](mdp.layers.sizes, mdp.layers.n_actions)
                    start = time.process_time()
                    result = simulate_mdp(
                        learner, mdp, adversary, T, seed=seed, checkpoints=[T], workers=1
                    )
                    seconds[name] += time.process_time() - start
                    total[name] += result.minimax_regret(pseudo=True)[0, -1]
        shares = [100.0 * total[name] / total["uniform"] for name in names]
        print(f"| {world} | " + " | ".join(f"{x:.1f}" for x in shares) + " |")
        print("| s | " + " | ".join(f"{x:.1f}" for x in seconds.values()) + " |", flush=True)


if __name__ == "__main__":
    main()
