"""SCB-RL against the number of states: time of an episode and memory, beside two other learners.

    python benchmarks/scb_rl_sizes.py            # 50 to 2,000 states; about ten minutes
    python benchmarks/scb_rl_sizes.py 50 100     # these only

Five layers, 1-n-n-n-1, and 5 actions; each pair leads to any state of the next layer, or to 5 of
them and SCB-RL and UOB-REPS are told which. CPU time of `ask` and `tell`, an episode of each
learner in turn, after SCB-RL's exploration; UOB-REPS stops after 20 seconds. Each size is a process
of its own. Its peak of memory, less what it had before, is of SCB-RL by itself.
"""

import json
import os
import resource
import subprocess
import sys
import time

os.environ.setdefault("UNBOUNDED_JIT", "always")

import numpy as np
from policy_optimization import Random, _possible, shape

from unbounded import SCBRL, UOBREPS, PolicyOptimization

SIZES, EPISODES, PATIENCE = (50, 100, 200, 500, 1000, 2000), 200, 20.0


def learners(S, successors, seed=3):
    """The world, and the learners in it."""
    sizes = shape(S)
    world, support, T = Random(sizes, 5, successors, seed), None, max(1000, 2 * S)
    if successors:
        possible = [_possible(n, t) for n, t in zip(sizes[1:], world.next, strict=True)]
        support = np.concatenate([np.ones(sizes[0]), *possible]) > 0
    return world, {
        "SCB-RL": SCBRL(sizes, 5, T, known={"support": support}, seed=0),
        "PO": PolicyOptimization(sizes, 5, seed=0),
        "UOB-REPS": UOBREPS(sizes, 5, T, loss_range=(0.0, 5.0), support=support, seed=0),
    }


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def explored(world, learner):
    """Play the exploration phase; its episodes, and CPU time."""
    spent = []
    while learner.phase == "exploring":
        spent.append(world.episode(learner))
    return len(spent), sum(spent)


def memory(S, successors):
    """Megabytes that SCB-RL takes at most in exploration and in 20 episodes after it."""
    world, small = learners(10, successors)
    explored(world, small["SCB-RL"])  # load what was compiled
    before = peak()
    world, found = learners(S, successors)
    learner = found.pop("SCB-RL")
    found.clear()
    explored(world, learner)
    for _ in range(20):
        world.episode(learner)
    return {"peak": peak() - before, "buffer": learner._buffer.nbytes / 1e6}


def times(S, successors):
    """Mean CPU times; of SCB-RL also the exploration phase's, solves and what was not solved."""
    world, small = learners(10, successors)
    explored(world, small["SCB-RL"])
    for learner in small.values():
        world.episode(learner)
    world, found = learners(S, successors)
    scb = found["SCB-RL"]
    n, exploring = explored(world, scb)
    before = scb.certificate.solves
    spent = {name: [] for name in found}
    for _ in range(EPISODES):
        for name, learner in found.items():
            if name != "UOB-REPS" or sum(spent[name]) < PATIENCE:
                spent[name].append(world.episode(learner))
    solves = scb.certificate
    return {
        "explored": n, "exploring": exploring / n, "solves": solves.solves - before,
        "unsolved": solves.unsolved, "fallbacks": solves.fallbacks, "gap": float(solves.worst_gap),
        "UOB-REPS played": len(spent["UOB-REPS"]),
        **{name: float(np.mean(some)) for name, some in spent.items()},
    }  # fmt: skip


def child(what, S, successors):
    arguments = [sys.executable, __file__, what, str(S), str(successors)]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main(sizes):
    head = (
        "states", "successors", "ms: SCB-RL", "policy optimization", "UOB-REPS",
        "to the smallest", "SCB-RL/PO", "UOB-REPS/SCB-RL", "solves", "unsolved", "exploring, ms",
        "peak MB",
    )  # fmt: skip
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    began = time.monotonic()
    for successors in (0, 5):
        first = None
        for S in sizes:
            d = child("times", S, successors) | child("memory", S, successors)
            first = first or d["SCB-RL"]
            ms = [1e3 * d[name] for name in ("SCB-RL", "PO", "UOB-REPS")]
            row = [
                f"{S:,}", str(successors or "any"), *[f"{x:.2f}" for x in ms],
                f"{d['SCB-RL'] / first:.1f}", f"{ms[0] / ms[1]:.1f}", f"{ms[2] / ms[0]:.0f}",
                str(d["solves"]), str(d["unsolved"]),
                f"{1e3 * d['exploring']:.2f} ({d['explored']})", f"{d['peak']:,.0f}",
            ]  # fmt: skip
            print("| " + " | ".join(row) + " |", flush=True)
    print(f"\n{time.monotonic() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1:2] in (["times"], ["memory"]):
        print(json.dumps(globals()[sys.argv[1]](*map(int, sys.argv[2:]))))
    else:
        main([int(S) for S in sys.argv[1:]] or SIZES)
