"""Who plays what in the tables of losses of either sign, and how each cell is played."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import catalogue
import numpy as np
from adversary_search import Phases, random_program, search
from catalogue_cells import ADVERSARIES, Told

from unbounded import AHB, SCB, AdaINF, CostSCB, Learner, TsallisINF, TsallisINFRV, simulate
from unbounded.adversaries import Phase, Program, Replay
from unbounded.adversaries.bandits.program import NO_REACTION, REWARD_UNLIKELIEST

ARMS, ROUNDS, BLOCK, BLOCKS = (2, 10, 100), (10_000, 100_000), 25, 20
PROGRAMS_SEED, SEARCH_SEED, PLAY_SEED = 20_261_117, 71, 4_000_000
PROGRAM_ROUNDS, REPLICATES = 10_000, 4  # of each random program
SEARCHED, SEARCH_ROUNDS, FRESH = 2000, 10_000, 50
OUTLIER, OUTLIER_ARMS, OUTLIER_ROUNDS = 1e6, 10, 10_000

Range = tuple[float, float]
RIVALS: dict[str, Callable[[int, Range], Learner]] = {
    "AdaINF": lambda n, told: AdaINF(n),
    "SCB": lambda n, told: SCB(n),
    "AHB": lambda n, told: AHB(n),
    "TsallisINF (range)": lambda n, told: TsallisINF(n, loss_range=told),
    "TsallisINFRV (range)": lambda n, told: TsallisINFRV(n, loss_range=told),
    "CostSCB (lower)": lambda n, told: CostSCB(n, lower=told[0]),
}
VARIANTS: dict[str, Callable[[int, Range], Learner]] = {  # not counted among those who win
    "AdaINF exploration 1": lambda n, told: AdaINF(n, exploration=1.0),
    "AdaINF pure": lambda n, told: AdaINF(n, robust=False),
}
LEARNERS = RIVALS | VARIANTS
OUTLIERS: dict[str, list[tuple[int, float]]] = {  # (round, sign)
    "none": [],
    "up in round 1": [(1, 1.0)],
    "down in round 1": [(1, -1.0)],
    "ten up": [(1000 * j + 500, 1.0) for j in range(10)],
    "up at 1000": [(1000, 1.0)],
    "down at 1000": [(1000, -1.0)],
    "four down": [(1000 * j, -1.0) for j in (1, 3, 5, 7)],
}
TRIMMED = {f"AdaINF trim {r}": r for r in (1, 4)}


class Cell(NamedTuple):
    """What one line of the data is about."""

    table: str
    n: int
    rounds: int
    case: str
    learner: str


class Signed(NamedTuple):
    """A program, as it is or with the sign of all losses changed."""

    sign: float
    phases: Phases

    @property
    def adversary(self) -> Program:
        return Program(self.phases, scale=self.sign)

    @property
    def range(self) -> Range:
        """What the program's losses cannot leave; spikes are at losses that were seen."""
        reached = [loss for phase in self.phases for loss in _reached(phase)]
        low, high = sorted((self.sign * min(reached), self.sign * max(reached)))
        return low, high if high > low else low + max(1.0, abs(low))


def _reached(phase: Phase) -> list[float]:
    levels = []
    if phase.noise < 1.0:
        levels += [phase.level, phase.level - phase.gap]
    if phase.noise > 0.0:
        levels += [0.0, 1.0]
    if phase.reaction == REWARD_UNLIKELIEST:
        levels.append(0.0)
    elif phase.reaction != NO_REACTION:
        levels.append(1.0)
    sizes = phase.size, phase.size * phase.growth
    return [size * level for size in sizes for level in levels]


def programs(block: int) -> list[Signed]:
    """A block of random programs, half of them with the sign changed."""
    rng = np.random.default_rng([PROGRAMS_SEED, block])
    return [Signed((-1.0) ** j, random_program(rng, above=False)) for j in range(BLOCK)]


def played(
    name: str, program: Signed, n: int, rounds: int, replicates: int, seed: int
) -> np.ndarray:
    """Realized regrets over range sqrt(nT)."""
    low, high = program.range
    result = simulate(
        LEARNERS[name](n, (low, high)), program.adversary, rounds, replicates, seed,
        checkpoints=[rounds], pseudo_regret=False, workers=1,
    )  # fmt: skip
    return result.regret[:, -1] / ((high - low) * math.sqrt(n * rounds))


# ------------------------------------------------------------------------------------ the tables


def play_programs(cell: Cell) -> tuple[np.ndarray, str]:
    """The mean of each program of a block."""
    block = int(cell.case)
    means = [
        played(cell.learner, program, cell.n, cell.rounds, REPLICATES, PLAY_SEED + j)
        for j, program in enumerate(programs(block))
    ]
    return np.array(means).mean(axis=1), ""


def found(n: int, target: str) -> Signed:
    """What a search against ``target`` finds: half of it with the sign changed."""
    best: list[tuple[float, Signed]] = []
    for sign in (1.0, -1.0):
        rng = np.random.default_rng([SEARCH_SEED, n, [*RIVALS].index(target), int(sign > 0)])

        def score(
            phases: Phases,
            replicates: int,
            sign: float = sign,
            rng: np.random.Generator = rng,
        ) -> float:
            seed = int(rng.integers(2**32))
            values = played(target, Signed(sign, phases), n, SEARCH_ROUNDS, replicates, seed)
            return float(values.mean() - 2.0 * values.std() / math.sqrt(replicates))

        phases = search(score, SEARCHED // 2, rng)
        best.append((score(phases, 20), Signed(sign, phases)))
    return max(best)[1]


_FOUND: dict[tuple[int, str], Signed] = {}


def play_search(cell: Cell) -> tuple[np.ndarray, str]:
    key = cell.n, cell.case
    if key not in _FOUND:
        _FOUND[key] = found(*key)
    program = _FOUND[key]
    values = played(cell.learner, program, cell.n, SEARCH_ROUNDS, FRESH, PLAY_SEED)
    return values, code(program)


def code(program: Signed) -> str:
    """A program in short: the sign, and what differs from the defaults."""
    phases = [
        "Phase("
        + ", ".join(
            f"{name}={value:g}"
            for name, value in phase._asdict().items()
            if value != Phase._field_defaults[name]
        )
        + ")"
        for phase in program.phases
    ]
    return ("-" if program.sign < 0.0 else "+") + " " + " ".join(phases)


def coins(replicate: int) -> np.ndarray:
    """Losses 0 and 1 with one better arm."""
    rng = np.random.default_rng([PROGRAMS_SEED, replicate])
    means = np.where(np.arange(OUTLIER_ARMS) == 3, 0.3, 0.5)
    return (rng.random((OUTLIER_ROUNDS, OUTLIER_ARMS)) < means).astype(float)


def play_outliers(cell: Cell) -> tuple[np.ndarray, str]:
    """Rounds in which every arm has the same huge loss; told learners are told [0, 1]."""
    values = []
    for replicate in range(FRESH):
        losses = coins(replicate)
        for t, sign in OUTLIERS[cell.case]:
            losses[t - 1] = sign * OUTLIER
        n = cell.n
        learner = (
            AdaINF(n, trim=TRIMMED[cell.learner])
            if cell.learner in TRIMMED
            else LEARNERS[cell.learner](n, (0.0, 1.0))
        )
        result = simulate(
            learner, Replay(losses), cell.rounds, 1, replicate,
            checkpoints=[cell.rounds], pseudo_regret=False, workers=1,
        )  # fmt: skip
        values.append(result.regret[0, -1] / math.sqrt(n * cell.rounds))
    return np.array(values), ""


def play_catalogue(cell: Cell) -> tuple[np.ndarray, str]:
    told = Told(ADVERSARIES[cell.case], cell.n, cell.rounds)
    return catalogue.regrets_of(cell.n, cell.case, cell.learner, cell.rounds, told, 1), ""


TABLES: dict[str, Callable[[Cell], tuple[np.ndarray, str]]] = {
    "outliers": play_outliers,
    "catalogue": play_catalogue,
    "programs": play_programs,
    "search": play_search,
}


def all_cells() -> Iterator[Cell]:
    for case in OUTLIERS:
        for who in [*LEARNERS, *TRIMMED]:
            yield Cell("outliers", OUTLIER_ARMS, OUTLIER_ROUNDS, case, who)
    for n in ARMS:
        for rounds in ROUNDS:
            for case in ADVERSARIES:
                for who in [*RIVALS, "Uniform"]:
                    if rounds != catalogue.ROUNDS or n not in catalogue.ARMS:
                        yield Cell("catalogue", n, rounds, case, who)
    for block in range(BLOCKS):
        for n in ARMS:
            for who in LEARNERS:
                yield Cell("programs", n, PROGRAM_ROUNDS, str(block), who)
    for n in ARMS:
        for target in RIVALS:
            for who in LEARNERS:
                yield Cell("search", n, SEARCH_ROUNDS, target, who)
