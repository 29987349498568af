"""Where should a student start to practise? A teacher with 2,500 tasks, rewards of no known unit.

    python examples/curriculum.py

The student is a table of Q-values on a frozen lake of 50 x 50 fields (Gymnasium's maps) without
slipping; the present lies in one corner. A task is a field to start from. What a task was worth is
what the student's table changed by in the episode, in the unit of the present's value: one, a
millionth, a million. After 20,000 episodes it is counted from how many fields the student
finds the present. The rivals: any field at random; the corner that the lake begins with; and
Exp3.S, told the range that it would have with a present of one, or with running extremes as
teachers of curricula keep them, both with the best of three settings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import matplotlib.pyplot as plt
import numba
import numpy as np
from gallery import OTHER, OURS, TUNED, command, finish, interval, said, table
from gymnasium.envs.toy_text.frozen_lake import generate_random_map

from unbounded import Exp3S, Uniform
from unbounded.adapters.teacher import Teacher

SIDE, EPISODES, STEPS, SEEDS = 50, 20_000, 200, 20
RATE, DISCOUNT, CHANCE = 0.5, 0.99, 0.2  # of the student: learning, patience, random actions
UNITS = (1.0, 1e-6, 1e6)
WORTH = 2.0  # what a task is worth at most, for a present of 1: Exp3.S is told that
ROUNDS = (10**5, 10**6, 10**7)  # for which Exp3.S is made: the more, the less it explores


class Teaching(Protocol):
    def sample(self) -> int: ...
    def update(self, index: int, reward: float) -> None: ...


class RunningExtremes:
    """A teacher for rewards in [0, 1], with the rewards seen so far as the range."""

    def __init__(self, teacher: Teaching) -> None:
        self._teacher, self._low, self._high = teacher, np.inf, -np.inf

    def sample(self) -> int:
        return self._teacher.sample()

    def update(self, index: int, reward: float) -> None:
        self._low, self._high = min(self._low, reward), max(self._high, reward)
        width = self._high - self._low
        self._teacher.update(index, (reward - self._low) / width if width > 0.0 else 0.0)


class Always:
    def sample(self) -> int:
        return 0

    def update(self, index: int, reward: float) -> None:
        pass


@numba.njit(cache=True)
def moved(field, action):
    """Left, down, right, up, as in Gymnasium; whoever would leave the lake stays."""
    row, column = divmod(field, SIDE)
    if action == 0:
        column = max(column - 1, 0)
    elif action == 1:
        row = min(row + 1, SIDE - 1)
    elif action == 2:
        column = min(column + 1, SIDE - 1)
    else:
        row = max(row - 1, 0)
    return SIDE * row + column


@numba.njit(cache=True)
def practise(Q, lake, field, unit, draws):
    """One episode of Q-learning; what the table changed by, in all."""
    change = 0.0
    for step in range(STEPS):
        if lake[field] != 0:
            break
        action = np.argmax(Q[field])
        if draws[step, 0] < CHANCE or Q[field].min() == Q[field].max():
            action = int(4.0 * draws[step, 1])
        after = moved(field, action)
        reward = unit if lake[after] == 2 else 0.0
        later = DISCOUNT * Q[after].max() if lake[after] == 0 else 0.0
        delta = RATE * (reward + later - Q[field, action])
        Q[field, action] += delta
        change += abs(delta)
        field = after
    return change


@numba.njit(cache=True)
def solved(Q, lake):
    """From which share of the fields the student finds the present, doing what it thinks best."""
    found, fields = 0, 0
    for first in range(lake.size):
        if lake[first] == 0:
            fields += 1
            field = first
            for _ in range(STEPS):
                field = moved(field, np.argmax(Q[field]))
                if lake[field] != 0:
                    break
            found += lake[field] == 2
    return found / fields


def lake_of(seed: int) -> np.ndarray:
    """0 for ice, 1 for a hole, 2 for the present."""
    rows = generate_random_map(size=SIDE, p=0.95, seed=seed)
    return np.array([{"S": 0, "F": 0, "H": 1, "G": 2}[field] for row in rows for field in row])


def taught(teacher: Teaching, seed: int, unit: float) -> list[float]:
    """The share of the fields that are solved, at ten times."""
    lake, rng = lake_of(seed), np.random.default_rng(seed)
    Q, shares = np.zeros((lake.size, 4)), []
    for episode in range(1, EPISODES + 1):
        task = teacher.sample()
        worth = practise(Q, lake, task, unit, rng.random((STEPS, 2)))
        teacher.update(task, worth)
        if episode % (EPISODES // 10) == 0:
            shares.append(solved(Q, lake))
    return shares


def exp3s(seed: int, high: float, rounds: int) -> Teacher:
    told = {"rounds": rounds, "switches": 10, "loss_range": (-high, 0.0)}
    return Teacher(SIDE**2, Exp3S, told, seed=seed)


def told_range(rounds: int) -> Callable[[int], Teaching]:
    return lambda seed: exp3s(seed, WORTH, rounds)


def with_extremes(rounds: int) -> Callable[[int], Teaching]:
    return lambda seed: RunningExtremes(exp3s(seed, 1.0, rounds))


def tuned(family: Callable[[int], Callable[[int], Teaching]]) -> Callable[[int], Teaching]:
    """With the best of some settings, on other seeds and in the unit 1."""
    scores = [
        np.mean([taught(family(rounds)(seed), seed, 1.0) for seed in (100, 101)])
        for rounds in ROUNDS
    ]
    return family(ROUNDS[int(np.argmax(scores))])


def main() -> None:
    into = command("curriculum").parse_args().into
    teachers: dict[str, Callable[[int], Teaching]] = {
        "Teacher, no range": lambda seed: Teacher(SIDE**2, seed=seed),
        "Exp3.S, known range at x1, tuned": tuned(told_range),
        "Exp3.S, running extremes, tuned": tuned(with_extremes),
        "any field": lambda seed: Teacher(SIDE**2, Uniform, seed=seed),
        "always the first field": lambda seed: Always(),
    }
    shares = {
        (name, unit): np.array([taught(make(seed), seed, unit) for seed in range(SEEDS)])
        for name, make in teachers.items()
        for unit in UNITS
    }
    rows = [
        [name, *(said(100.0 * shares[name, unit][:, -1]) for unit in UNITS)] for name in teachers
    ]
    figure, all_axes = plt.subplots(1, 3, figsize=(10.0, 3.4), sharey=True, layout="constrained")
    looks = dict(zip(teachers, (OURS, TUNED, "#E69F00", OTHER, "black"), strict=True))
    times = np.arange(1, 11) * EPISODES // 10
    for axes, unit in zip(all_axes, UNITS, strict=True):
        for name, color in looks.items():
            middle = 100.0 * shares[name, unit].mean(axis=0)
            half = [100.0 * interval(column)[1] for column in shares[name, unit].T]
            axes.errorbar(times, middle, half, color=color, label=name, lw=1.5, elinewidth=0.8)
        axes.set_title(f"the present is worth {unit:g}")
        axes.set_xlabel("episodes")
        axes.spines[["top", "right"]].set_visible(False)
    all_axes[0].set_ylabel("% of the fields solved")
    figure.legend(
        *all_axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
    )
    header = ["% of the fields solved after 20,000 episodes", *(f"x {unit:g}" for unit in UNITS)]
    finish("curriculum", figure, table(header, rows), into)


if __name__ == "__main__":
    main()
