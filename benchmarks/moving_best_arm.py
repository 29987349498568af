"""Gains that shrink while the best arm moves: ours beside the selector of ShinkaEvolve.

    pip install --no-deps shinka-evolve==0.0.7      # only its file of bandits is read; rich, scipy
    python benchmarks/moving_best_arm.py [--write]  # docs/results/tables/moving-best-arm-1.csv

Four arms, 800 rounds. Every 200 rounds another arm becomes the best, and all gains shrink
threefold. Gains are exponential with mean 1 for the best arm and 0.3 for the others ("dense"), or 0
in four of five rounds on average for the best arm ("sparse"), times the unit. The figure is the
mean of the chosen arm's expected gain, in units of the best arm's: uniform play has 0.475. The toy
of ShinkaEvolve's moving best arm that others have reported on is not published in detail, so
figures of other toys are not comparable.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from result_tables import write_tables

from unbounded import SCB, AdaINF, EpsilonGreedy, Learner, ScaleWarning, recommend, settings

N, ROUNDS, SEGMENT, OTHERS, SEEDS = 4, 800, 200, 0.3, 50
UNITS = (1e-3, 1.0, 1e3)
SPARSE = 0.2  # the probability of a gain of the best arm

Select = Callable[[np.ndarray, int], np.ndarray]  # gains and a seed to arms


def environment(seed: int, sparse: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return expected gains of all arms, the best arm's being 1, and gains in unit 1."""
    rng = np.random.default_rng(seed)
    best = [int(rng.integers(N))]
    for _ in range(ROUNDS // SEGMENT - 1):
        best.append((best[-1] + 1 + int(rng.integers(N - 1))) % N)
    means = np.full((ROUNDS, N), OTHERS)
    means[np.arange(ROUNDS), np.repeat(best, SEGMENT)] = 1.0
    size = np.repeat(3.0 ** -np.arange(len(best)), SEGMENT)[:, None]
    if sparse:
        hit = rng.random(means.shape) < SPARSE * means
        return means, size * hit / SPARSE * rng.exponential(size=means.shape)
    return means, size * means * rng.exponential(size=means.shape)


def ours(cls: Any, **given: Any) -> Select:
    def select(gains: np.ndarray, seed: int) -> np.ndarray:
        learner: Learner = cls(N, **given, seed=seed)
        arms = []
        for row in gains:
            choice = learner.ask()
            learner.tell(choice, reward=float(row[choice.arm]))
            arms.append(choice.arm)
        return np.array(arms)

    return select


def bandits_of_shinka() -> Any:
    """Return the module of its selectors, without what it imports for language models."""
    found = importlib.util.find_spec("shinka")
    if found is None or not found.submodule_search_locations:
        return None
    root = found.submodule_search_locations[0]
    for name, path in (("shinka", root), ("shinka.llm", f"{root}/llm")):
        package = types.ModuleType(name)
        package.__path__ = [path]
        sys.modules[name] = package
    return importlib.import_module("shinka.llm.prioritization")


def shinka(module: Any, **given: Any) -> Select:
    def select(gains: np.ndarray, seed: int) -> np.ndarray:
        bandit = module.AsymmetricUCB(n_arms=N, seed=seed, **given)
        bandit.set_baseline_score(0.0)
        arms = []
        for row in gains:
            chosen, _ = bandit.select_llm()
            arm = int(np.argmax(chosen))
            bandit.update_submitted(arm)
            bandit.update(arm, float(row[arm]), 0.0)
            arms.append(arm)
        return np.array(arms)

    return select


def policies() -> dict[str, Select]:
    found = {
        "AdaINF()": ours(AdaINF),
        **{f"AdaINF(half_life={h})": ours(AdaINF, half_life=h) for h in (25, 54, 100, 200)},
        "recommend(changing=200, n_arms=4)": ours(recommend(changing=200, n_arms=N).learner),
        "SCB()": ours(SCB),
        "EpsilonGreedy()": ours(EpsilonGreedy),
        **{f"EpsilonGreedy(step={x})": ours(EpsilonGreedy, step=x) for x in (0.1, 0.03)},
        "uniform": lambda gains, seed: np.random.default_rng(seed).integers(N, size=ROUNDS),
    }
    module = bandits_of_shinka()
    if module is not None:
        found["ShinkaEvolve AsymmetricUCB"] = shinka(module)
        found["ShinkaEvolve AsymmetricUCB, linear"] = shinka(module, exponential_base=None)
    return found


def page(seeds: int) -> str:
    units = " | ".join(f"unit {unit:g}" for unit in UNITS)
    lines, selectors = [], policies()
    for title, sparse in (("Dense gains", False), ("Sparse gains", True)):
        lines += [f"# {title}", "", f"| policy | {units} |", "|---|---|---|---|"]
        for name, select in selectors.items():
            cells = []
            for unit in UNITS:
                shares = []
                for seed in range(seeds):
                    means, gains = environment(seed, sparse)
                    arms = select(unit * gains, seed)
                    shares.append(means[np.arange(ROUNDS), arms].mean())
                error = 1.96 * np.std(shares, ddof=1) / math.sqrt(seeds)
                cells.append(f"{np.mean(shares):.3f} ± {error:.2g}")
            lines.append(f"| {name} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    given = parser.parse_args()
    settings.jit = "always"
    warnings.simplefilter("ignore", ScaleWarning)
    warnings.simplefilter("ignore", RuntimeWarning)  # theirs overflows in the unit 1000
    text = page(given.seeds)
    if given.write:
        write_tables("moving-best-arm", text)


if __name__ == "__main__":
    main()
