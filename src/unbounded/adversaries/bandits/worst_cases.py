"""Adversaries that cost one learner much, after programs found by a search.

Four separate range clipping from scale clipping, two were found against `AdaINF`. The searches are
benchmarks/adversary_search.py and benchmarks/signed.py; what they say about the learners is in
docs/results/clipping.md. The programs were simplified and rounded by hand; the reasons given for
their effect are conjectures.
"""

from __future__ import annotations

from unbounded.adversaries.bandits.program import (
    PUNISH_LAST,
    REWARD_UNLIKELIEST,
    Phase,
    Program,
)


def worst_cases() -> dict[str, tuple[Program, tuple[float, float]]]:
    """By name, each with a range that its losses do not leave.

    - "punish confident": the best arm is at the observed minimum, by a small gap; who becomes sure
      of it is punished. Range clipping becomes sure sooner, and so loses where scale clipping never
      gets there (many arms, few rounds).
    - "lock-in": after a quiet start and a stretch of punished confidence, large coin flips during
      which the likeliest arm mostly gets the smallest loss observed: range clipping learns nothing
      from it and stays with that arm.
    - "late scale": small losses for half of the time, then large ones with another best arm, after
      which the offset of scale clipping forgets slowly.
    - "offset": the losses are far from 0 compared with their differences.
    - "reward the unlikely": the least likely arm of each round has no loss. What is learned about
      an arm is wrong as soon as it is acted upon; learners that are told the range suffer most.
    - "turns good late": the unlikely arm is rewarded and the first arm learned; then the last arm,
      of which nothing good is known, becomes the best, and who finds it is punished.

    Examples
    --------
    >>> from unbounded import SCB, simulate
    >>> from unbounded.adversaries import worst_cases
    >>> offset, loss_range = worst_cases()["offset"]
    >>> learner = SCB(n_arms=10)
    >>> result = simulate(learner, offset, rounds=1000, seed=0)
    >>> bool(loss_range[0] <= result.low[0, -1] <= result.high[0, -1] <= loss_range[1])
    True
    """
    confident = Phase(level=0.05, gap=0.05, reaction=PUNISH_LAST, trigger=0.93)
    quiet = Phase(end=0.2, best=0.99, level=0.7, gap=0.06, growth=0.01)
    punished = Phase(
        end=0.62, best=0.5, level=0.99, gap=0.82, noise=0.83, reaction=PUNISH_LAST, trigger=0.94
    )
    locked = Phase(level=0.14, gap=0.06, noise=1.0, size=48.0, spike_rate=0.9)
    small = Phase(end=0.5, level=0.4, gap=0.4, size=0.05)
    large = Phase(best=0.99, level=0.5, gap=0.5)
    unlikely = Phase(level=1.0, gap=0.1, reaction=REWARD_UNLIKELIEST)
    first = Phase(
        end=0.4, level=0.45, gap=0.34, noise=0.85, reaction=REWARD_UNLIKELIEST, trigger=0.6
    )
    last = Phase(best=0.99, level=0.26, gap=0.16, noise=0.13, reaction=PUNISH_LAST, trigger=0.27)
    return {
        "punish confident": (Program([confident]), (0.0, 1.0)),
        "lock-in": (Program([quiet, punished, locked]), (0.0, 48.0)),
        "late scale": (Program([small, large]), (0.0, 0.5)),
        "offset": (Program([Phase(best=0.99, level=0.92, gap=0.39)]), (0.53, 0.92)),
        "reward the unlikely": (Program([unlikely]), (0.0, 1.0)),
        "turns good late": (Program([first, last]), (0.0, 1.0)),
    }
