"""Arms that go and come back: an outage of a tenth of the rounds, and a hundred changes.

    python benchmarks/sleeping.py [--seeds 20]

Costs of 8 arms are 0 or 1, with means 0.2, 0.3 and six times 0.5. In an *outage* the best arm, or a
bad one, is out for 3,000 of 30,000 rounds. In *come and go* a new arm of mean 0.5 is added or
retired every 300 rounds, a hundred times in all. Regret is that of means, against the best arm of
each round; means over seeds with 95% intervals. The strategies:

- sleep: ``ask(available=...)``, which charges arms that sleep what was paid;
- left alone: the same, but arms that sleep are charged nothing (the natural rule, a control);
- ask again: until an available arm is chosen, and forget the other choices (what users do); after
  300 asks one of the available arms is drawn uniformly, and nothing is learned;
- move: ``with_arms`` when the arm goes, and when it comes back as a new one;
- restart: a fresh learner at both times.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from unbounded import AdaINF, CostSCB, CostSCBIX
from unbounded.results.intervals import student

ROUNDS, BEGIN, END = 30_000, 10_000, 13_000
MEANS = np.array([0.2, 0.3, *[0.5] * 6])
N = MEANS.size
STRATEGIES = ("sleep", "left alone", "ask again", "move", "restart")
WINDOW = 100
MOST = 300


def outage(cls, out, strategy, seed):
    """Play a run; return regret during the outage and in as many rounds after it, and the rounds
    until the arm is played again: once, and in half of 100 rounds."""
    rng = np.random.default_rng([seed, out])
    losses = (rng.random((ROUNDS, N)) < MEANS).astype(float).tolist()
    learner, arms = cls(N, seed=seed), list(range(N))
    some = np.arange(N) != out
    played = np.empty(ROUNDS, dtype=np.int64)
    for t in range(ROUNDS):
        gone = BEGIN <= t < END
        if strategy in ("move", "restart") and t in (BEGIN, END):
            arms = [k for k in range(N) if k != out] + ([] if t == BEGIN else [out])
            if strategy == "restart":
                learner = cls(len(arms), seed=ROUNDS * seed + t)
            else:
                kept = [k for k in range(N) if k != out] if t == BEGIN else [*range(N - 1), None]
                learner = learner.with_arms(kept)
        if gone and strategy in ("sleep", "left alone"):
            choice = learner.ask(available=some)
            if strategy == "left alone":
                note = learner._records[choice.id][2].note
                note[:N], note[N], note[N + 1] = 0.0, 1.0, 0.0
        else:
            choice = learner.ask()
            asks = 1
            while gone and strategy == "ask again" and choice.arm == out and asks < MOST:
                learner.forget(choice)
                choice = learner.ask()
                asks += 1
        arm = arms[choice.arm]
        if gone and arm == out:
            learner.forget(choice)
            played[t] = rng.choice(np.flatnonzero(some))
            continue
        played[t] = arm
        learner.tell(choice, losses[t][arm])
    best = np.full(ROUNDS, MEANS.min())
    best[BEGIN:END] = MEANS[some].min()
    regret = MEANS[played] - best
    again = played[END:] == out
    first = int(np.argmax(again)) if again.any() else ROUNDS - END
    often = np.convolve(again, np.ones(WINDOW), "valid") >= WINDOW / 2
    usually = int(np.argmax(often)) if often.any() else ROUNDS - END
    return regret[BEGIN:END].sum(), regret[END : 2 * END - BEGIN].sum(), first, usually


def come_and_go(cls, strategy, seed):
    """Return the regret of a run with a hundred changes."""
    rng = np.random.default_rng(seed)
    losses = (rng.random((ROUNDS, N + 1)) < [*MEANS, 0.5]).astype(float).tolist()
    learner, total = cls(N, seed=seed), 0.0
    for t in range(ROUNDS):
        if strategy != "no changes" and t > 0 and t % 300 == 0:
            more = learner.n_arms == N
            if strategy == "restart":
                learner = cls(N + more, seed=ROUNDS * seed + t)
            else:
                learner = learner.with_arms([*range(N), None] if more else list(range(N)))
        choice = learner.ask()
        learner.tell(choice, losses[t][choice.arm])
        total += (0.5 if choice.arm >= N else MEANS[choice.arm]) - MEANS.min()
    return total


def shown(values):
    """Return a mean with its 95% interval."""
    values = np.asarray(values, dtype=float)
    half = student(values.size - 1.0, 0.95) * values.std(ddof=1) / np.sqrt(values.size)
    digits = 0 if values.mean() >= 20 else 1
    return f"{values.mean():.{digits}f} ± {half:.{digits}f}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    seeds = range(given.seeds)
    for cls in (CostSCB, CostSCBIX, AdaINF):
        if given.only and cls.__name__ != given.only:
            continue
        began = time.perf_counter()
        print(f"\n## {cls.__name__}\n\n| | " + " | ".join(STRATEGIES) + " |")
        print("|---" * (len(STRATEGIES) + 1) + "|", flush=True)
        for out, name in ((0, "best"), (7, "bad")):
            runs = [[outage(cls, out, one, seed) for seed in seeds] for one in STRATEGIES]
            rows = ("during", "after", "rounds until it is played again", "... half of the time")
            for k, row in enumerate(rows[: 4 if out == 0 else 2]):
                cells = [shown([run[k] for run in some]) for some in runs]
                print(f"| {name} arm out: {row} | " + " | ".join(cells) + " |", flush=True)
        cells = [
            f"{one} {shown([come_and_go(cls, one, seed) for seed in seeds])}"
            for one in ("no changes", "move", "restart")
        ]
        print(f"\nCome and go, a hundred times: {', '.join(cells)}")
        print(f"({time.perf_counter() - began:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
