"""PolicyOptimization beside SCB-RL: regret, time per episode, Taxi; and full information.

    python benchmarks/policy_optimization.py regret --episodes 1000 10000 --seeds 20
    python benchmarks/policy_optimization.py larger --seeds 3
    python benchmarks/policy_optimization.py full --seeds 5
    python benchmarks/policy_optimization.py large speed against taxi calibrate
    python benchmarks/policy_optimization.py            # only write the page

Every part writes into docs/results/data/policy_optimization; cells of `regret` and `full` that are
there are not played again. At the end the tables in docs/results/tables are written from what is
there. What others have in the small worlds is read from docs/results/data/scb_rl.
Times are CPU
times.
"""

import argparse
import csv
import itertools
import json
import time
from collections import defaultdict

import numpy as np
from policy_optimization_page import APO, BESIDE, DATA, page
from result_tables import write_tables
from scb_rl_calibrate import SEED as CALIBRATION_SEED
from scb_rl_calibrate import WORLDS as CALIBRATION_WORLDS
from scb_rl_table import ADVERSARIES, FIRST_SEED
from scb_rl_table import WORLDS as SMALL
from scb_rl_table import load as load_small

from unbounded import (
    APOMVP,
    IndependentSCB,
    PolicyOptimization,
    UniformPolicy,
    simulate_mdp,
    worlds,
)
from unbounded.mdps.scb_rl import SCBRL

OURS, THEIRS = "policy optimization", "SCB-RL practical"
LARGER = {
    "dirichlet 10-10-10, A3": worlds.dirichlet([10, 10, 10], 3, np.random.default_rng(74)),
    "lock H8, A3": worlds.combination_lock(8, 3, np.random.default_rng(75)),
    "hard 5-10-15": worlds.hard_to_reach([5, 10, 15], 2, np.random.default_rng(76), reach=1e-2),
}
FIELDS = ("learner", "world", "adversary", "T", "seed", "regret")


def cells():
    """Regret of every cell that was played: (learner, world, adversary, T, seed)."""
    rows = []
    for path in (DATA / "regret.csv", DATA / "full.csv"):
        if path.exists():
            with path.open(newline="") as file:
                rows += csv.DictReader(file)
    rows += [row for row in load_small() if row["learner"] in BESIDE]
    key = ("learner", "world", "adversary", "T", "seed")
    return {tuple(row[k] for k in key): float(row["regret"]) for row in rows}


def made(name, mdp, T):
    """A learner by its name in the tables."""
    sizes, A = mdp.layers.sizes, mdp.layers.n_actions
    if name in APO:
        return APOMVP(sizes, A, **APO[name])
    return PolicyOptimization(sizes, A) if name == OURS else SCBRL(sizes, A, T)


def play_cells(path, names, places, episodes, seeds):
    """Play what is missing."""
    done = cells()
    path.parent.mkdir(exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(FIELDS)
        for T, seed, (world, mdp), against, name in itertools.product(
            episodes, range(FIRST_SEED, FIRST_SEED + seeds), places.items(), ADVERSARIES, names
        ):
            if (name, world, against, str(T), str(seed)) in done:
                continue
            learner = made(name, mdp, T)
            result = simulate_mdp(
                learner, mdp, ADVERSARIES[against], T, seed=seed, checkpoints=[T], workers=1
            )
            regret = result.minimax_regret(pseudo=True)[0, -1]
            writer.writerow([name, world, against, T, seed, f"{regret:.4g}"])
            file.flush()


def play_large():
    """500 states: regret beside learners that can be played there."""
    mdp = worlds.dirichlet([1, 166, 166, 166, 1], 5, np.random.default_rng(77), concentration=0.05)
    sizes, T, out = mdp.layers.sizes, 10_000, {}
    learners = {
        OURS: PolicyOptimization(sizes, 5),
        THEIRS: SCBRL(sizes, 5, T),
        "independent SCB": IndependentSCB(sizes, 5),
        "uniform": UniformPolicy(sizes, 5),
    }
    for against, name in itertools.product(("stochastic", "punish"), learners):
        result = simulate_mdp(
            learners[name], mdp, ADVERSARIES[against], T, seed=1, checkpoints=[1000, T], workers=1
        )
        out[f"{against}|{name}"] = result.minimax_regret(pseudo=True)[0].tolist()
    write("large", out)


# ---------------------------------------------------------------------- time


class Random:
    """States of a layered world: each pair leads to some ``successors``, or anywhere."""

    def __init__(self, sizes, n_actions, successors, seed):
        self.rng, self.sizes = np.random.default_rng(seed), sizes
        self.next = [
            self.rng.integers(after, size=(n, n_actions, successors)) if successors else None
            for n, after in itertools.pairwise(sizes)
        ]

    def episode(self, learner):
        """Play one; the CPU time of ask and tell."""
        began = time.process_time()
        plan = learner.ask()
        spent = time.process_time() - began
        states, actions = [int(self.rng.integers(self.sizes[0]))], []
        for h in range(len(self.sizes)):
            actions.append(plan.act(h, states[h]))
            if h + 1 < len(self.sizes):
                n, table = self.sizes[h + 1], self.next[h]
                after = self.rng.integers(n if table is None else table.shape[2])
                states.append(int(after if table is None else table[states[h], actions[h], after]))
        losses = self.rng.random(len(states)) + np.array(actions)
        began = time.process_time()
        learner.tell(plan, states, actions, losses)
        return spent + time.process_time() - began


def shape(S):
    """Five layers of ``S`` states in all, the first and the last of one."""
    third = (S - 2) // 3
    return [1, third, third, S - 2 - 2 * third, 1]


def measure_speed():
    """Against the number of states."""
    out = []
    for successors, S in itertools.product((0, 5), (100, 500, 1000, 2000)):
        learner = PolicyOptimization(shape(S), 5, seed=0)
        world, T = Random(shape(S), 5, successors, 0), 3000
        spent = [world.episode(learner) for _ in range(T)]
        out.append(
            {
                "S": S, "successors": successors, "first": float(np.median(spent[50:500])),
                "last": float(np.median(spent[-500:])), "seen": learner.transitions_seen,
                "bytes": learner._buffer.nbytes, "saved": len(learner.save()),
            }
        )  # fmt: skip
    write("sizes", out)


def measure_against(successors, S=500, T=1000, turns=60):
    """Episodes of both learners in turn, in SCB-RL's exploration and in its main phase."""
    sizes = shape(S)
    world = Random(sizes, 5, successors, 2)
    support = None
    if successors:
        support = np.concatenate([np.ones(sizes[0]), *[_possible(n, t) for n, t in zip(
            sizes[1:], world.next, strict=True)]]) > 0  # fmt: skip
    ours, theirs = (
        PolicyOptimization(sizes, 5, seed=0),
        SCBRL(sizes, 5, T, known={"support": support}, seed=0),
    )
    times = defaultdict(list)
    while len(times["playing"]) < turns:
        phase = theirs.phase
        spent = world.episode(theirs)
        times[phase].append(spent)
        times["ours " + phase].append(world.episode(ours))
    return {
        "S": S, "successors": successors, "T": T, "explored": len(times["exploring"]),
        "played": len(times["playing"]),
        **{phase: float(np.mean(spent)) for phase, spent in times.items()},
    }  # fmt: skip


def _possible(n, table):
    """Flat over triples of a layer, next state first: 1 where ``table`` leads."""
    pairs = table.reshape(-1, table.shape[2])
    out = np.zeros((n, len(pairs)))
    out[pairs.T, np.arange(len(pairs))] = 1.0
    return out.ravel()


def calibrate():
    """One change at a time on the worlds and seeds of benchmarks/scb_rl_calibrate.py."""
    changes = {
        "as it is": {},
        "rate x2": {"rate": 1.0},
        "rate /2": {"rate": 0.25},
        "implicit x3": {"implicit": 0.9},
        "implicit /3": {"implicit": 0.1},
        "bonus x2": {"bonus": 4.0},
        "bonus /2": {"bonus": 1.0},
        "mixing x4": {"mixing": 2.0},
        "mixing /4": {"mixing": 0.125},
        "paper's clipping": {"clip": "scale"},
    }
    out = {}
    for name, change in changes.items():
        regret = {}
        for (world, mdp), against in itertools.product(CALIBRATION_WORLDS.items(), ADVERSARIES):
            learner = PolicyOptimization(mdp.layers.sizes, mdp.layers.n_actions, **change)
            result = simulate_mdp(
                learner, mdp, ADVERSARIES[against], 10_000, 2, CALIBRATION_SEED,
                checkpoints=[10_000], workers=1,
            )  # fmt: skip
            regret[f"{world}, {against}"] = result.minimax_regret(pseudo=True)[:, -1].mean()
        out[name] = {
            "adaptive" if looks else "oblivious": {
                c: v for c, v in regret.items() if ADVERSARIES[c.split(", ")[-1]].looks == looks
            }
            for looks in (False, True)
        }
    write("calibrate", out)


def write(name, values):
    DATA.mkdir(exist_ok=True)
    (DATA / f"{name}.json").write_text(json.dumps(values, indent=1) + "\n")


PARTS = {
    "large": play_large,
    "speed": measure_speed,
    "against": lambda: write("against", [measure_against(k) for k in (0, 5)]),
    "calibrate": calibrate,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = ["regret", "larger", "full", "large", "speed", "against", "taxi", "calibrate"]
    parser.add_argument("parts", nargs="*", help=", ".join(parts))
    parser.add_argument("--episodes", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    if unknown := set(given.parts) - set(parts):
        parser.error(f"there are no parts {unknown}")
    for part in given.parts:
        if part == "full":
            play_cells(DATA / "full.csv", APO, SMALL, given.episodes, given.seeds)
        elif part in ("regret", "larger"):
            places = LARGER if part == "larger" else SMALL
            play_cells(DATA / "regret.csv", (OURS, THEIRS), places, given.episodes, given.seeds)
        elif part == "taxi":
            from policy_optimization_taxi import play_taxi  # needs Gymnasium

            write("taxi", play_taxi())
        else:
            PARTS[part]()
    write_tables("policy-optimization", page(cells()))


if __name__ == "__main__":
    main()
