"""Who plays whom in the catalogue: the adversaries, the learners, and what these are told."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from unbounded import (
    AHB,
    HTINF,
    INF,
    SCB,
    SCBIX,
    SFMAB,
    SOLOFTRL,
    UCB1,
    UMABG,
    UMABNN,
    AdaFTRL,
    AdaHedge,
    AdaINF,
    AdaTINF,
    Banker,
    CostSCB,
    CostSCBIX,
    DoublingTsallisINF,
    EpsilonGreedy,
    Exp3,
    Exp3Auer,
    Exp3IX,
    Exp3P,
    Exp3S,
    Learner,
    LogThompson,
    RobustUCB,
    TsallisINF,
    TsallisINFRV,
    Uniform,
    UniINF,
    simulate,
)
from unbounded.adversaries import (
    Adversary,
    Catastrophe,
    Chaser,
    Drift,
    Growth,
    Latencies,
    LowerBound,
    Outliers,
    OutsideWindow,
    Pareto,
    Shrink,
    Signs,
    SpikeLeastLikely,
    Spikes,
    StochasticGap,
    StudentT,
    Switch,
    ZerosFirst,
    worst_cases,
)

ROUNDS, REPLICATES, SEED = 100_000, 50, 2024
SAMPLE = 20_000  # rounds from which moments are estimated
BEST = 3  # of the costs: not the first arm, to which ties go

Range = tuple[float, float]


class Row(NamedTuple):
    """An adversary, and what may be known of its losses."""

    adversary: Adversary
    range: Range | None  # of the losses' construction; None: that of all replicates
    best: int | None = None  # of a row of costs: the arm of least mean
    lower: float | None = None  # what a learner for costs is told, if not the range's lower end


# What is told beyond the construction (range None, moments) nobody could know beforehand.
ADVERSARIES: dict[str, Row] = {
    "gap": Row(StochasticGap(0.1), (0, 1)),
    "gap + 1000": Row(StochasticGap(0.1, shift=1000.0), (1000, 1001)),
    "gap / 1000": Row(StochasticGap(0.1, scale=1e-3), (0, 1e-3)),
    "lower bound": Row(LowerBound(), (0, 1)),
    "switch": Row(Switch(), (0, 1)),
    "drift": Row(Drift(), (0, 1)),
    "growth": Row(Growth(), (-1, 1)),
    "shrink": Row(Shrink(), (0, 1)),
    "spikes up": Row(Spikes(sign="positive"), (0, 30)),
    "spikes down": Row(Spikes(sign="negative"), (-30, 1)),
    "negative": Row(Signs("negative"), (-1, 0)),
    "mixed": Row(Signs("mixed"), (-1, 1)),
    "alternating": Row(Signs("alternating"), (-1, 1)),
    "Student t": Row(StudentT(2.0), None),
    "Pareto": Row(Pareto(1.5), None),
    "zeros first": Row(ZerosFirst(), (0, 1)),
    "gem": Row(Catastrophe(rate=0.01, height=-50.0, gap=-0.1, lure=-1), (-50, 1.1)),
    "hidden spikes*": Row(SpikeLeastLikely(), (-8, 1)),
    "chaser*": Row(Chaser(), (0, 1)),
    "outside*": Row(OutsideWindow(), (-1, 1)),
    **{f"{name}*": Row(case, told) for name, (case, told) in worst_cases().items()},
}

# Costs: independent draws with a lower bound, in units of the usual loss.
COSTS: dict[str, Row] = {
    "lognormal": Row(Latencies(fastest=BEST), None, BEST, 0.0),
    "time-outs 0.1%": Row(Latencies(rate=1e-3, fastest=BEST), None, BEST, 0.0),
    "time-outs 1%": Row(Latencies(rate=1e-2, fastest=BEST), None, BEST, 0.0),
    "Pareto tails": Row(Pareto(1.5, best=BEST), None, BEST, 0.0),
    "one outlier": Row(Outliers(1, best=BEST), (0, 1e4), BEST),
    "100 outliers": Row(Outliers(100, best=BEST), (0, 1e4), BEST),
    "tails differ": Row(Latencies(rate=1e-3, fastest_rate=1e-2, fastest=BEST), None, BEST + 1, 0.0),
    "catastrophic arm": Row(Catastrophe(lure=BEST), (0, 1e4), BEST + 1),
    "floor of 9": Row(Latencies(fastest=BEST, shift=9.0), None, BEST, 9.0),
    "floor of 9, told 0": Row(Latencies(fastest=BEST, shift=9.0), None, BEST, 0.0),
}


class Told:
    """What a learner may be told of the losses that it will meet; found out when it asks."""

    def __init__(self, row: Row, n: int, rounds: int = ROUNDS) -> None:
        self.row = row
        self.n = n
        self.rounds = rounds

    @cached_property
    def range(self) -> Range:
        """The construction's, or that of all replicates."""
        if self.row.range is not None:
            return self.row.range
        seen = simulate(
            Uniform(self.n), self.row.adversary, self.rounds, REPLICATES, SEED,
            checkpoints=[self.rounds], pseudo_regret=False,
        )  # fmt: skip
        return float(seen.low.min()), float(seen.high.max())

    @property
    def lower(self) -> float:
        """The lower bound on the losses, for learners for costs."""
        return self.range[0] if self.row.lower is None else self.row.lower

    @cached_property
    def moments(self) -> tuple[float, float]:
        """The largest variance and second moment of an arm, from a sample of rounds.

        Of an adversary that does nothing while all arms are equally likely: the largest variance
        within the range.
        """
        adversary, losses = self.row.adversary, np.empty((SAMPLE, self.n))
        params, state = adversary.begin(self.n, self.rounds, 1)
        rng, q = np.random.default_rng(0), np.full(self.n, 1.0 / self.n)
        step = 1 if adversary.looks else max(1, self.rounds // SAMPLE)
        for i in range(SAMPLE):
            last_arm = int(rng.integers(self.n))
            type(adversary).fill(params[2:], state, 1 + i * step, last_arm, q, losses[i])
        losses = params[0] * losses + params[1]
        variance = float(losses.var(axis=0).max()) or (self.range[1] - self.range[0]) ** 2 / 4.0
        return variance, float((losses**2).mean(axis=0).max())


Maker = Callable[[int, int, Told], Learner]
LEARNERS: dict[str, Maker] = {
    "Uniform": lambda n, T, told: Uniform(n),
    "EpsilonGreedy": lambda n, T, told: EpsilonGreedy(n),
    "UCB1 (range)": lambda n, T, told: UCB1(n, loss_range=told.range),
    "Exp3 (range)": lambda n, T, told: Exp3(n, loss_range=told.range),
    "Exp3 (range, T)": lambda n, T, told: Exp3(n, rounds=T, loss_range=told.range),
    "Exp3Auer (range, T)": lambda n, T, told: Exp3Auer(n, rounds=T, loss_range=told.range),
    "Exp3S (range, T)": lambda n, T, told: Exp3S(n, rounds=T, loss_range=told.range),
    "Exp3P (range, T)": lambda n, T, told: Exp3P(n, rounds=T, loss_range=told.range),
    "Exp3IX (range)": lambda n, T, told: Exp3IX(n, loss_range=told.range),
    "Exp3IX (range, T)": lambda n, T, told: Exp3IX(n, rounds=T, delta=0.05, loss_range=told.range),
    "INF (range, T)": lambda n, T, told: INF(n, rounds=T, loss_range=told.range),
    "TsallisINF (range)": lambda n, T, told: TsallisINF(n, loss_range=told.range),
    "TsallisINFRV (range)": lambda n, T, told: TsallisINFRV(n, loss_range=told.range),
    "DoublingTsallisINF": lambda n, T, told: DoublingTsallisINF(n),
    "AHB": lambda n, T, told: AHB(n),
    "SFMAB fixed": lambda n, T, told: SFMAB(n),
    "SFMAB adaptive": lambda n, T, told: SFMAB(n, exploration="adaptive"),
    "UMABNN": lambda n, T, told: UMABNN(n),
    "UMABG adaptive": lambda n, T, told: UMABG(n),
    "UMABG fixed (T)": lambda n, T, told: UMABG(n, exploration="fixed", rounds=T),
    "Banker (T)": lambda n, T, told: Banker(n, rounds=T),
    "UniINF (T)": lambda n, T, told: UniINF(n, rounds=T),
    "HTINF (moment)": lambda n, T, told: HTINF(n, sigma=math.sqrt(told.moments[1])),
    "AdaTINF (T)": lambda n, T, told: AdaTINF(n, rounds=T),
    "RobustUCB (moment, T)": lambda n, T, told: RobustUCB(n, rounds=T, moment=told.moments[0]),
    "LogThompson": lambda n, T, told: LogThompson(n),
    "SCB": lambda n, T, told: SCB(n),
    "SCB mixing 1": lambda n, T, told: SCB(n, mixing=1.0),
    "SCB paper + range": lambda n, T, told: SCB(n, profile="paper", clip="range"),
    "SCB paper": lambda n, T, told: SCB(n, profile="paper"),
    "AdaINF": lambda n, T, told: AdaINF(n),
    "SCBIX": lambda n, T, told: SCBIX(n),
    "SCBIX mixing 1": lambda n, T, told: SCBIX(n, mixing=1.0),
    "SCBIX paper": lambda n, T, told: SCBIX(n, profile="paper"),
    "CostSCB (lower)": lambda n, T, told: CostSCB(n, lower=told.lower),
    "CostSCB sqrt (lower)": lambda n, T, told: CostSCB(n, lower=told.lower, outliers="sqrt"),
    "CostSCB scale (lower)": lambda n, T, told: CostSCB(
        n, lower=told.lower, tune="scale", implicit=0.0
    ),
    "CostSCBIX (lower)": lambda n, T, told: CostSCBIX(n, lower=told.lower),
    "AdaINF half-life 1000": lambda n, T, told: AdaINF(n, half_life=1000),
    "AdaINF half-life 10000": lambda n, T, told: AdaINF(n, half_life=10_000),
    "CostSCB half-life 1000 (lower)": lambda n, T, told: CostSCB(
        n, lower=told.lower, half_life=1000
    ),
    "CostSCB half-life 1000, cap 100 (lower)": lambda n, T, told: CostSCB(
        n, lower=told.lower, half_life=1000, cap=100.0
    ),
    "CostSCB half-life 10000 (lower)": lambda n, T, told: CostSCB(
        n, lower=told.lower, half_life=10_000
    ),
    "AdaHedge (all losses)": lambda n, T, told: AdaHedge(n),
    "SOLOFTRL (all losses)": lambda n, T, told: SOLOFTRL(n),
    "AdaFTRL (all losses)": lambda n, T, told: AdaFTRL(n),
}
