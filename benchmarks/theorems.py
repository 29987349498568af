"""The bandit theorems at a million rounds: measured regret beside the bound, as Markdown.

Mean pseudo-regret of SCB over l_inf sqrt(nT) and over range sqrt(nT), and the 99% quantile of the
realized regret of SCB-IX, n = 10; the uniform learner for comparison.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from unbounded import SCB, SCBIX, Uniform, simulate
from unbounded.adversaries import Growth, LowerBound, SpikeLeastLikely, StochasticGap, Switch
from unbounded.bandits import scb, scb_ix

N = 10
ADVERSARIES = {
    "stochastic gap": StochasticGap(),
    "lower bound": LowerBound(),
    "switch": Switch(),
    "growth": Growth(),
    "spike on the least likely arm": SpikeLeastLikely(),
    "shifted by 1000": StochasticGap(shift=1000.0),
}


def main(rounds: int, replicates: int) -> None:
    root = math.sqrt(N * rounds)
    columns = [
        ("SCB paper / ℓ∞", SCB(N, profile="paper"), "scale", True, scb.scale_bound(N, rounds)),
        ("uniform / ℓ∞", Uniform(N), "scale", True, math.nan),
        ("SCB paper + range / range", SCB(N, profile="paper", clip="range"), "range", True,
         scb.range_bound(N, rounds, 1.0, 1.0)),
        ("SCB mixing 1", SCB(N, mixing=1.0), "range", True, scb.range_bound(N, rounds, 2.0, 1.0)),
        ("SCB-IX mixing 1, 99%", SCBIX(N, mixing=1.0), "range", False,
         scb_ix.range_bound(N, rounds, 0.01, 1.0)),
    ]  # fmt: skip
    print(f"n = {N}, T = {rounds:,}, {replicates} replicates; everything divided by sqrt(nT).\n")
    print("| adversary |", " | ".join(name for name, *_ in columns), "|")
    print("|---|" + "---|" * len(columns))
    for adversary_name, adversary in ADVERSARIES.items():
        cells = []
        for _, learner, unit, mean, _ in columns:
            result = simulate(
                learner, adversary, rounds, replicates, seed=2024, checkpoints=[rounds]
            )
            values = result.relative_regret(unit, pseudo=mean)[:, -1] / root
            error = 1.96 * values.std(ddof=1) / math.sqrt(replicates)
            cells.append(
                f"{values.mean():.2f} ± {error:.2f}" if mean else f"{np.quantile(values, 0.99):.2f}"
            )
        print(f"| {adversary_name} |", " | ".join(cells), "|", flush=True)
    bounds = (f"{bound / root:.1f}" if bound == bound else "none" for *_, bound in columns)
    print("| **bound** |", " | ".join(bounds), "|")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--replicates", type=int, default=100)
    arguments = parser.parse_args()
    main(arguments.rounds, arguments.replicates)
