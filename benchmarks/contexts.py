"""How finely to split: `PerContext` beside one learner per kind of request, for every fixed split.

    python benchmarks/contexts.py [--rounds 10000] [--seeds 20]

Six services, three regions, two tiers; latencies are log-normal. Which service is best is the same
everywhere, or depends on the region, on the tier, on both, or differs in one of the six pairs only.
Printed is the sum of what was paid above the best service of each request, in the mean over the
seeds with its standard error; the mixture's over that of the best fixed split; and the same ratio
for all that was paid.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from unbounded import AdaINF, CostSCB, PerContext

SERVICES, REGIONS, TIERS = 6, 3, 2
FACTORS = ("region", "tier")
SPLITS = ((), ("region",), ("tier",), FACTORS)
MEDIANS = np.linspace(40.0, 120.0, SERVICES)
BEST: dict[str, Callable[[int, int], int]] = {
    "the same everywhere": lambda region, tier: 0,
    "by region": lambda region, tier: region,
    "by tier": lambda region, tier: tier,
    "by both": lambda region, tier: 2 * region + tier,
    "one pair differs": lambda region, tier: 3 if (region, tier) == (2, 1) else 0,
}


def means(case: str) -> np.ndarray:
    """Return the mean latency of each service, of shape (regions, tiers, services)."""
    found = np.tile(MEDIANS, (REGIONS, TIERS, 1))
    for region in range(REGIONS):
        for tier in range(TIERS):
            best = BEST[case](region, tier)
            found[region, tier, [0, best]] = found[region, tier, [best, 0]]
    return found


def requests(case: str, rounds: int, seed: int) -> Any:
    """Yield region, tier, expected and realized latencies."""
    rng, expected = np.random.default_rng(seed), means(case)
    for _ in range(rounds):
        region, tier = int(rng.integers(REGIONS)), int(rng.integers(TIERS))
        mean = expected[region, tier]
        yield region, tier, mean, mean * np.exp(rng.normal(0.0, 0.5, SERVICES) - 0.125)


def fixed(
    make: Callable[..., Any], split: tuple[str, ...], case: str, rounds: int, seed: int
) -> float:
    """Return the regret of one learner per kind."""
    cells: dict[Any, Any] = {}
    regret = 0.0
    for region, tier, mean, latency in requests(case, rounds, seed):
        kind = tuple({"region": region, "tier": tier}[name] for name in split)
        cell = cells.get(kind)
        if cell is None:
            cell = cells[kind] = make(seed=1000 * seed + len(cells))
        choice = cell.ask()
        regret += mean[choice.arm] - mean.min()
        cell.tell(choice, float(latency[choice.arm]))
    return regret


def mixed(make: Callable[..., Any], case: str, rounds: int, seed: int) -> float:
    """Return the regret of `PerContext`."""
    learner = PerContext(make(seed=0), FACTORS, seed=seed)
    regret = 0.0
    for region, tier, mean, latency in requests(case, rounds, seed):
        choice = learner.ask({"region": region, "tier": tier})
        regret += mean[choice.arm] - mean.min()
        learner.tell(choice, float(latency[choice.arm]))
    return regret


def compared(make: Callable[..., Any], case: str, rounds: int, seeds: int) -> dict[str, np.ndarray]:
    """Return the regret of every fixed split and of the mixture, for each seed."""
    found = {
        " x ".join(split) or "all": np.array(
            [fixed(make, split, case, rounds, seed) for seed in range(seeds)]
        )
        for split in SPLITS
    }
    found["PerContext"] = np.array([mixed(make, case, rounds, seed) for seed in range(seeds)])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--learners", nargs="*", default=["AdaINF", "CostSCB"])
    given = parser.parse_args()
    makers = {
        "AdaINF": lambda seed: AdaINF(SERVICES, seed=seed),
        "CostSCB": lambda seed: CostSCB(SERVICES, seed=seed),
    }
    for name in given.learners:
        print(f"\n{name}, {given.rounds:,} rounds, {given.seeds} seeds")
        for case in BEST:
            found = compared(makers[name], case, given.rounds, given.seeds)
            best = min(regret.mean() for split, regret in found.items() if split != "PerContext")
            row = "  ".join(
                f"{split} {regret.mean():,.0f}±{regret.std() / given.seeds**0.5:,.0f}"
                for split, regret in found.items()
            )
            ours, least = found["PerContext"].mean(), given.rounds * MEDIANS.min()
            paid = (least + ours) / (least + best)
            print(f"{case}: {row}  ratio {ours / best:.2f}  paid {paid:.3f}", flush=True)


if __name__ == "__main__":
    main()
