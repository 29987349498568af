"""Search for adversaries: against one learner, or such that separate two ways of clipping.

    python benchmarks/adversary_search.py [--arms 2 10 20] [--programs 1000] [--seed 1]
    python benchmarks/adversary_search.py --against CostSCB CostSCBIX

Random programs over switches, spikes, growth, and reactions to the learner's probabilities; then
the best are mutated; then the winner is played again with fresh seeds, because the best of
thousands of noisy values is biased. Prints the winners as code. By default programs that separate
range clipping from scale clipping, in both directions; spikes are then at the observed minimum.
Against a learner for costs, whose losses are at least 0, they may also be far above what was seen.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable

import numpy as np

import unbounded
from unbounded import SCB, simulate
from unbounded.adversaries import Phase, Program
from unbounded.adversaries.bandits.program import ABOVE, AT_MINIMUM

ROUNDS = 10_000
GENERATIONS, PARENTS, CHILDREN = 6, 12, 8


Phases = tuple[Phase, ...]
Score = Callable[[Phases, int], float]  # of a program, by so many replicates


def random_phase(rng: np.random.Generator, end: float, above: bool) -> Phase:
    level = rng.uniform(0.05, 1.0)
    spike = {}
    if above and rng.uniform() < 0.5:
        spike = {"spike": ABOVE, "margin": float(f"{10 ** rng.uniform(-1, 3):.2g}")}
    return Phase(
        end=round(end, 3),
        best=float(rng.choice([0.0, 0.5, 0.99])),
        level=round(level, 3),
        gap=round(rng.uniform(0.0, level), 3),
        noise=float(rng.choice([0.0, 0.0, 1.0, round(rng.uniform(), 2)])),
        size=float(f"{10 ** rng.choice([0.0, rng.uniform(-2, 2)]):.3g}"),
        growth=float(f"{10 ** rng.choice([0.0, 0.0, rng.uniform(-2, 3)]):.3g}"),
        reaction=int(rng.choice([0, 0, 1, 2, 3])),
        trigger=round(rng.uniform(), 2),
        spike_rate=float(f"{rng.choice([0.0, 0.0, 10 ** rng.uniform(-4, 0)]):.2g}"),
        **({"spike": AT_MINIMUM} | spike),
    )


def random_program(rng: np.random.Generator, above: bool) -> Phases:
    ends = [*np.sort(rng.uniform(0.02, 0.98, rng.integers(0, 3))), 1.0]
    return tuple(random_phase(rng, end, above) for end in ends)


def mutated(phases: Phases, rng: np.random.Generator, above: bool) -> Phases:
    """One field of one phase replaced, or a whole phase."""
    changed = list(phases)
    at = rng.integers(len(changed))
    fresh = random_phase(rng, changed[at].end, above)
    if rng.uniform() < 0.85:
        name = rng.choice(Phase._fields[1:])
        fresh = changed[at]._replace(**{name: getattr(fresh, name)})
        fresh = fresh._replace(gap=min(fresh.gap, fresh.level))
    changed[at] = fresh
    return tuple(changed)


def regret_of(name: str, phases: Phases, n: int, replicates: int, seed: int) -> np.ndarray:
    """Pseudo-regrets / (largest loss sqrt(n T)) of one learner, with its default settings."""
    result = simulate(
        getattr(unbounded, name)(n), Program(phases), ROUNDS, replicates, seed, checkpoints=[ROUNDS]
    )
    return result.relative_regret("scale", pseudo=True)[:, -1] / math.sqrt(n * ROUNDS)


def regrets(phases: Phases, n: int, replicates: int, seed: int, unit: str = "range") -> np.ndarray:
    """Pseudo-regrets / (unit sqrt(n T)) with scale and with range clipping.

    One unit for both: an adversary that reacts may show one of them a wider range.
    """
    results = [
        simulate(learner, Program(phases), ROUNDS, replicates, seed, checkpoints=[ROUNDS])
        for learner in (SCB(n, profile="paper", clip=clip) for clip in ("scale", "range"))
    ]
    sizes = [r.loss_range if unit == "range" else r.largest_loss for r in results]
    common = np.maximum(*sizes)[:, -1] * math.sqrt(n * ROUNDS)
    return np.array([r.pseudo_regret[:, -1] for r in results]) / common


def separating(n: int, sign: int, rng: np.random.Generator) -> Score:
    """sign * (range - scale), where regret below 0 counts as 0, less two standard errors.

    Where scale clipping is to lose, in units of the largest absolute loss: in units of the range it
    loses without limit to a mere offset, which needs no search.
    """
    unit = "range" if sign > 0 else "scale"

    def score(phases: Phases, replicates: int) -> float:
        values = regrets(phases, n, replicates, int(rng.integers(2**32)), unit).clip(min=0.0)
        difference = sign * (values[1] - values[0])
        return float(difference.mean() - 2.0 * difference.std() / math.sqrt(replicates))

    return score


def against(name: str, n: int, rng: np.random.Generator) -> Score:
    """The regret of one learner, less two standard errors."""

    def score(phases: Phases, replicates: int) -> float:
        values = regret_of(name, phases, n, replicates, int(rng.integers(2**32)))
        return float(values.mean() - 2.0 * values.std() / math.sqrt(replicates))

    return score


def search(score: Score, programs: int, rng: np.random.Generator, above: bool = False) -> Phases:
    """The program with the largest score."""
    pool = []
    for done in range(programs):
        phases = random_program(rng, above)
        pool.append((score(phases, 2), phases))
        if done % 200 == 199:
            print(f"  {done + 1}/{programs} best {max(pool)[0]:.2f}", file=sys.stderr)
    for _ in range(GENERATIONS):
        pool = sorted(pool, reverse=True)[:PARENTS]
        pool = [(score(phases, 8), phases) for _, phases in pool]
        children = [mutated(phases, rng, above) for _, phases in pool for _ in range(CHILDREN)]
        pool += [(score(phases, 4), phases) for phases in children]
    pool = sorted(pool, reverse=True)[:PARENTS]
    return max((score(phases, 20), phases) for _, phases in pool)[1]


def show(what: str, phases: Phases) -> None:
    """A program as code."""
    print(f"\n{what}:")
    for phase in phases:
        settings = ", ".join(
            f"{name}={value:g}"
            for name, value in phase._asdict().items()
            if value != Phase._field_defaults[name]
        )
        print(f"    Phase({settings}),", flush=True)


def search_against(names: list[str], args: argparse.Namespace, rng: np.random.Generator) -> None:
    """One program per learner and number of arms, played by all the learners and some others."""
    played = [*names, "SCB", "AHB", "UMABNN"]
    print("| n | searched against | " + " | ".join(played) + " |\n|---|---|" + "---|" * len(played))
    found = []
    for n in args.arms:
        for name in names:
            phases = search(against(name, n, rng), args.programs, rng, above=True)
            cells = []
            for who in played:
                values = regret_of(who, phases, n, args.replicates, 10**6 + n)
                error = 1.96 * values.std(ddof=1) / math.sqrt(args.replicates)
                cells.append(f"{values.mean():.2f} ± {error:.2f}")
            print(f"| {n} | {name} | " + " | ".join(cells) + " |", flush=True)
            found.append((f"n = {n}, against {name}", phases))
    for what, phases in found:
        show(what, phases)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arms", type=int, nargs="+", default=[2, 10, 20])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--against", nargs="+", metavar="LEARNER")
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    if args.against:
        search_against(args.against, args, rng)
        return
    print("| n | searched for | scale | range | range - scale |")
    print("|---|---|---|---|---|")
    found = []
    for n in args.arms:
        for sign, wanted in ((1, "range loses"), (-1, "scale loses")):
            phases = search(separating(n, sign, rng), args.programs, rng)
            values = regrets(phases, n, args.replicates, 10**6 + n)
            difference = values[1] - values[0]
            error = 1.96 * difference.std(ddof=1) / math.sqrt(args.replicates)
            scale, range_ = values.mean(axis=1)
            print(
                f"| {n} | {wanted} | {scale:.3f} | {range_:.3f} | {difference.mean():.3f} "
                f"± {error:.3f} |",
                flush=True,
            )
            found.append((f"n = {n}, {wanted}", phases))
    for what, phases in found:
        show(what, phases)


if __name__ == "__main__":
    main()
