"""How the practical constants of CostSCBRL were chosen: some changes, on worlds of its own.

    python benchmarks/cost_rl_calibrate.py 1000 --replicates 10
    python benchmarks/cost_rl_calibrate.py 10000 --replicates 3 --learners "as it is" "not centred"

Worlds are those of benchmarks/scb_rl_calibrate.py and one of its larger ones; neither they nor the
seeds are those of benchmarks/cost_rl_table.py. Three kinds of losses:

- the adversaries of the table: exact regret / (sum_h l_inf,h S sqrt(A T));
- costs with heavy tails: regret / that of uniform play, as the largest loss says little;
- adversaries that hide something good, where the least loss is told and most are far above it.
"""

import argparse
import itertools

import numpy as np
from cost_rl_table import ADVERSARIES
from scb_rl_calibrate import LARGER, WORLDS
from scb_rl_table import ADVERSARIES as ALL
from scb_rl_table import true_ranges

from unbounded.adversaries.mdps import MDPReplay
from unbounded.mdps.baselines.uniform_policy import UniformPolicy
from unbounded.mdps.baselines.uob_reps import UOBREPS
from unbounded.mdps.cost_scb_rl import PROVED, CostSCBRL
from unbounded.mdps.scb_rl import SCBRL
from unbounded.simulation.mdp import simulate_mdp

SEED = 1700
WORLDS = {**WORLDS, "hard 4-7-7": LARGER["hard 4-7-7"]}
HIDDEN = {name: ALL[name] for name in ("lure", "quiet lure", "good spike", "hide")}
CHANGES = {
    "as it is": {},
    "before": {"center": 0.0, "implicit": 0.3},
    "not centred": {"center": 0.0},
    "half centred": {"center": 0.5},
    "eta /1.3": {"rate": PROVED.rate / 1.3},
    "eta x1.3": {"rate": 1.3 * PROVED.rate},
    "gamma /2": {"implicit": PROVED.implicit / 2},
    "gamma x2": {"implicit": 2 * PROVED.implicit},
    "width x2": {"width": 2 * PROVED.width},
    "skip 0": {"skip": 0.0},
}
LEARNERS = (*CHANGES, "told T", "before, told T", "SCB-RL practical", "UOB-REPS, true range")
TIME_OUT = 60.0


def lognormal(rng, shape):
    """Each pair has a mean of its own, and costs vary by a factor of e around it."""
    means = np.exp(rng.normal(0.0, 0.7, shape[1]))
    return means * np.exp(rng.normal(0.0, 1.0, shape) - 0.5)


def time_outs(rng, shape):
    """The same, and now and then a cost of 60 that is as likely everywhere, more or less."""
    costs = np.minimum(lognormal(rng, shape), TIME_OUT)
    return np.where(rng.random(shape) < 0.004 * rng.random(shape[1]), TIME_OUT, costs)


def rare(rng, shape):
    """Small costs that are alike, and time-outs in which pairs differ: 0.2% or 2% of the time."""
    costs = 0.2 * np.exp(rng.normal(0.0, 1.0, shape) - 0.5)
    return np.where(rng.random(shape) < rng.choice([0.002, 0.02], shape[1]), TIME_OUT, costs)


HEAVY = {"lognormal": lognormal, "time-outs": time_outs, "rare": rare}


def adversary_of(name, mdp, T, seed):
    if name in HEAVY:
        rng = np.random.default_rng([91, seed])
        return MDPReplay(HEAVY[name](rng, (T, mdp.layers.n_pairs - 1)))
    return ALL[name]


def make(name, mdp, T, against, adversary, seed):
    shape = mdp.layers.sizes, mdp.layers.n_actions
    if name == "SCB-RL practical":
        return SCBRL(*shape, T)
    if name == "UOB-REPS, true range":
        return UOBREPS(*shape, T, loss_range=true_ranges(mdp, adversary, T, seed))
    change = CHANGES[
        "before" if name.startswith("before") else name if name in CHANGES else "as it is"
    ]
    told = {"episodes": T} if name.endswith("told T") else {}
    if against in HIDDEN:
        told["lower"] = true_ranges(mdp, adversary, T, seed)[:, 0].tolist()
    return CostSCBRL(*shape, **change, **told)


def cell(name, world, against, T, seed, even):
    """Relative regret; ``even`` keeps that of uniform play where it is relative to that."""
    mdp = WORLDS[world]
    adversary = adversary_of(against, mdp, T, seed)

    def played(learner):
        return simulate_mdp(learner, mdp, adversary, T, seed=seed, checkpoints=[T], workers=1)

    result = played(make(name, mdp, T, against, adversary, seed))
    if against not in HEAVY:
        return result.minimax_regret(pseudo=True)[0, -1]
    if (world, against, seed) not in even:
        uniform = UniformPolicy(mdp.layers.sizes, mdp.layers.n_actions)
        even[world, against, seed] = played(uniform).pseudo_regret[0, -1]
    return result.pseudo_regret[0, -1] / even[world, against, seed]


def entry(name, adversaries, T, replicates, even):
    """Mean of the cells, the largest of them, and which it is."""
    cells = {
        at: np.mean([cell(name, *at, T, SEED + i, even) for i in range(replicates)])
        for at in itertools.product(WORLDS, adversaries)
    }
    worst = max(cells, key=cells.get)
    return f"{np.mean(list(cells.values())):.3f}, {cells[worst]:.3f} ({', '.join(worst)})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("episodes", type=int)
    parser.add_argument("--replicates", type=int, default=1)
    parser.add_argument("--learners", nargs="+", default=LEARNERS, choices=LEARNERS)
    given = parser.parse_args()
    groups = [list(ADVERSARIES), *([name] for name in HEAVY), list(HIDDEN)]
    titles = ["the table's adversaries", *HEAVY, "something good is hidden"]
    print(f"T = {given.episodes:,}, {given.replicates} seeds: mean, worst cell\n")
    print("| | " + " | ".join(titles) + " |\n" + "|---" * (len(titles) + 1) + "|")
    even = {}
    for name in given.learners:
        entries = [entry(name, g, given.episodes, given.replicates, even) for g in groups]
        print(f"| {name} | " + " | ".join(entries) + " |", flush=True)


if __name__ == "__main__":
    main()
