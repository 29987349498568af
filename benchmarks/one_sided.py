"""Costs: where one-sided clipping is good and bad; the tables of docs/theory/one-sided.md.

    python benchmarks/one_sided.py [replicas bad late tails growth] [--replicates 50]

Replicas: eight log-normal latencies (medians 40 to 120 ms, sigma 0.5), time-outs of 30 s; "tails
differ" has 1% of them on the replica of least median and 0.1% on the others. Share of the replica
with the least mean in the last half of the calls, in percent, and cost above it in ms per call.
Bad cases: regret over sqrt(n T) in units of the usual loss. Late feedback: regret over sqrt(n T) at
constant delays. Tails: the largest of many realized regrets beside their mean. Growth:
pseudo-regret on independent draws, from T = 100,000 to a million.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections import deque

import numpy as np

from unbounded import (
    AHB,
    HTINF,
    SCB,
    UMABNN,
    AdaTINF,
    CostSCB,
    CostSCBIX,
    EpsilonGreedy,
    Exp3S,
    LogThompson,
    RobustUCB,
    ScaleWarning,
    TsallisINF,
    TsallisINFRV,
    Uniform,
    simulate,
)
from unbounded.adversaries import Replay, StochasticGap, Switch, worst_cases

T = 20_000
BEST = 3  # not the first arm, to which ties go
COSTS = {
    'CostSCB(tune="scale", implicit=0)': lambda n, M, v: CostSCB(n, tune="scale", implicit=0.0),
    "CostSCB()": lambda n, M, v: CostSCB(n),
    "CostSCB(outliers=3)": lambda n, M, v: CostSCB(n, outliers=3),
    'CostSCB(outliers="sqrt")': lambda n, M, v: CostSCB(n, outliers="sqrt"),
    "CostSCBIX()": lambda n, M, v: CostSCBIX(n),
}
OTHERS = {
    "SCB()": lambda n, M, v: SCB(n),
    "AHB": lambda n, M, v: AHB(n),
    "UMABNN": lambda n, M, v: UMABNN(n),
    "EpsilonGreedy": lambda n, M, v: EpsilonGreedy(n),
    "TsallisINF, known range": lambda n, M, v: TsallisINF(n, loss_range=(0.0, M)),
    "Exp3S, known range": lambda n, M, v: Exp3S(n, rounds=T, loss_range=(0.0, M)),
    "HTINF, told the second moment": lambda n, M, v: HTINF(n, sigma=math.sqrt(v[1])),
    "AdaTINF": lambda n, M, v: AdaTINF(n, rounds=T),
    "RobustUCB, told the variance": lambda n, M, v: RobustUCB(n, rounds=T, moment=v[0]),
    "LogThompson": lambda n, M, v: LogThompson(n),
    "Uniform": lambda n, M, v: Uniform(n),
}


def replicas(rng, timeouts) -> np.ndarray:
    latencies = np.linspace(40.0, 120.0, 8) * np.exp(0.5 * rng.standard_normal((T, 8)))
    return np.where(rng.uniform(size=(T, 8)) < timeouts, 30_000.0, latencies)


def coins(rng, n=10) -> np.ndarray:
    means = np.full(n, 0.5)
    means[BEST] = 0.3
    return (rng.uniform(size=(T, n)) < means).astype(float)


def with_outliers(count: int):
    def make(rng):
        losses = coins(rng)
        losses[rng.choice(T, count, replace=False)] = 1e4
        return losses

    return make


def catastrophic(rng) -> np.ndarray:
    losses = np.ones((T, 10))
    losses[:, BEST] = np.where(rng.uniform(size=T) < 1e-3, 1e4, 0.9)
    return losses


def sparse(rng) -> np.ndarray:
    losses = (rng.uniform(size=(T, 10)) < 0.011).astype(float)
    losses[:, BEST] = 0.0
    return losses


BAD = {
    "gap 0.2": coins,
    "floor: 1000 added": lambda rng: coins(rng) + 1000.0,
    "one outlier of 1e4": with_outliers(1),
    "100 outliers of 1e4": with_outliers(100),
    "sparse: 1 w.p. 0.011, best arm 0": sparse,
    "catastrophic arm": catastrophic,
}


def share(make, tables, best) -> tuple[float, float, float]:
    """Percent of plays of ``best`` in the last half: mean and worst; cost above it, per call."""
    shares, costs = [], []
    means = np.mean([losses.mean(axis=0) for losses in tables], axis=0)
    for r, losses in enumerate(tables):
        n = losses.shape[1]
        moments = losses.var(axis=0).max(), (losses**2).mean(axis=0).max()
        learner = make(n, losses.max(), moments)
        learner = type(learner)(**learner.settings, seed=r)
        arms = np.empty(T, dtype=int)
        for t, row in enumerate(losses.tolist()):
            choice = learner.ask()
            arms[t] = choice.arm
            learner.tell(choice, row[choice.arm])
        shares.append(100.0 * (arms[T // 2 :] == best).mean())
        costs.append((means - means[best])[arms].mean())
    return float(np.mean(shares)), min(shares), float(np.mean(costs))


def print_replicas(replicates: int) -> None:
    kinds = {
        "no time-outs": (0.0, 0),
        "0.1%": (0.001, 0),
        "1%": (0.01, 0),
        "tails differ": (np.array([0.01] + [0.001] * 7), 1),
    }
    print("| | " + " | ".join(kinds) + " |\n|" + "---|" * (len(kinds) + 1))
    made = {
        name: [replicas(np.random.default_rng(r), timeouts) for r in range(replicates)]
        for name, (timeouts, _) in kinds.items()
    }
    for label, make in (COSTS | OTHERS).items():
        cells = []
        for name, (_, best) in kinds.items():
            mean, worst, cost = share(make, made[name], best)
            cells.append(f"{mean:.1f} ({worst:.1f}), {cost:.2g}")
        print(f"| {label} | " + " | ".join(cells) + " |", flush=True)


def print_bad(replicates: int) -> None:
    print("\n| | " + " | ".join(BAD) + " |\n|" + "---|" * (len(BAD) + 1))
    for label, make in (COSTS | OTHERS).items():
        cells = []
        for kind in BAD.values():
            total = 0.0
            for r in range(replicates):
                losses = kind(np.random.default_rng(r))
                moments = losses.var(axis=0).max(), (losses**2).mean(axis=0).max()
                learner = make(losses.shape[1], losses.max(), moments)
                result = simulate(learner, Replay(losses), T, 1, r, checkpoints=[T])
                total += result.pseudo_regret[0, -1] / replicates
            cells.append(f"{total / math.sqrt(losses.shape[1] * T):.2g}")
        print(f"| {label} | " + " | ".join(cells) + " |", flush=True)


def print_late(replicates: int) -> None:
    wanted = {
        "CostSCB()": {},
        'CostSCB(tune="scale", implicit=0)': {"tune": "scale", "implicit": 0.0},
        'the same, delayed="adaptive"': {"tune": "scale", "implicit": 0.0, "delayed": "adaptive"},
        "... and rate=1": {"tune": "scale", "implicit": 0.0, "delayed": "adaptive", "rate": 1.0},
    }
    delays = (0, 10, 100, 1000)
    print("\n| delay | " + " | ".join(map(str, delays)) + " |\n|" + "---|" * (len(delays) + 1))
    for label, settings in wanted.items():
        cells = []
        for delay in delays:
            total = 0.0
            for r in range(replicates):
                learner, waiting = CostSCB(10, **settings, seed=r), deque()
                for row in coins(np.random.default_rng(r)).tolist():
                    choice = learner.ask()
                    total += (0.2 if choice.arm != BEST else 0.0) / replicates
                    waiting.append((choice, row[choice.arm]))
                    if len(waiting) > delay:
                        learner.tell(*waiting.popleft())
            cells.append(f"{total / math.sqrt(10 * T):.2f}")
        print(f"| {label} | " + " | ".join(cells) + " |", flush=True)


def print_tails(replicates: int) -> None:
    """Mean and largest realized regret over range sqrt(n T), T = 100,000."""
    n, rounds = 10, 100_000
    late_scale = worst_cases()["late scale"][0]
    adversaries = {"late scale": late_scale, "switch": Switch(), "gap 0.1": StochasticGap(0.1)}
    learners = {
        'CostSCB(tune="scale", implicit=0)': CostSCB(n, tune="scale", implicit=0.0),
        "CostSCB(implicit=0)": CostSCB(n, implicit=0.0),
        "CostSCB()": CostSCB(n),
        "CostSCB(implicit=4)": CostSCB(n, implicit=4.0),
        "CostSCB(implicit=16)": CostSCB(n, implicit=16.0),
        "CostSCBIX()": CostSCBIX(n),
        "SCB()": SCB(n),
    }
    print("\n| | " + " | ".join(adversaries) + " |\n|" + "---|" * (len(adversaries) + 1))
    for label, learner in learners.items():
        cells = []
        for adversary in adversaries.values():
            result = simulate(learner, adversary, rounds, replicates, 5, checkpoints=[rounds])
            regret = result.relative_regret("range")[:, -1] / math.sqrt(n * rounds)
            cells.append(f"{regret.mean():.2f}, {regret.max():.2f}")
        print(f"| {label} | " + " | ".join(cells) + " |", flush=True)


def print_growth(replicates: int) -> None:
    """Pseudo-regret at 100,000 and 1,000,000 rounds, gap 0.2, and how it grows."""
    n, points = 10, [100_000, 1_000_000]
    learners = {
        "CostSCB()": CostSCB(n),
        'CostSCB(tune="scale", implicit=0)': CostSCB(n, tune="scale", implicit=0.0),
        'CostSCB(outliers="sqrt")': CostSCB(n, outliers="sqrt"),
        "CostSCBIX()": CostSCBIX(n),
        "TsallisINF, known range": TsallisINF(n),
        "TsallisINFRV, known range": TsallisINFRV(n),
        "UMABNN": UMABNN(n),
        "SCB()": SCB(n),
        "AHB": AHB(n),
    }
    print("\n| | 100,000 | 1,000,000 | factor |\n|---|---|---|---|")
    for label, learner in learners.items():
        result = simulate(
            learner, StochasticGap(0.2, best=BEST), points[-1], replicates, 7, checkpoints=points
        )
        before, after = result.pseudo_regret.mean(axis=0)
        errors = 1.96 * result.pseudo_regret.std(axis=0, ddof=1) / math.sqrt(replicates)
        cells = f"{before:.0f} ± {errors[0]:.0f} | {after:.0f} ± {errors[1]:.0f}"
        print(f"| {label} | {cells} | {after / before:.2f} |", flush=True)


TABLES = {
    "replicas": (print_replicas, 1.0),
    "bad": (print_bad, 0.25),
    "late": (print_late, 0.08),
    "tails": (print_tails, 1.0),
    "growth": (print_growth, 0.4),
}  # with the part of the replicates that it takes

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", choices=TABLES, default=[*TABLES])
    parser.add_argument("--replicates", type=int, default=50)
    args = parser.parse_args()
    warnings.simplefilter("ignore", ScaleWarning)
    for name in args.tables:
        table, part = TABLES[name]
        table(max(2, round(part * args.replicates)))
