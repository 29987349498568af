"""Which learners are scale-free and translation-invariant: found by playing, saved as a table.

``PYTHONPATH=tests python tests/bandits/test_invariance.py`` writes the table,
docs/results/tables/invariance.csv. Each learner plays 150 rounds of losses of both signs, and the
same losses multiplied by 2^±100 and by 3.7, and shifted by 1024 (they are multiples of 2^-20, so
that the shift is exact); then the same with losses of 0 and 1/4, where means are often tied.
"""

from __future__ import annotations

import csv
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np

from bandit_examples import EXAMPLES, Example

TABLE = Path(__file__).resolve().parents[2] / "docs" / "results" / "tables" / "invariance.csv"
ROUNDS, N = 150, 5
EXACT, ROUNDING, NO = "bit for bit", "to rounding", "no"
HEAD = ["learner", "settings", "times 2^±100", "times 3.7", "plus 1024", "tied, times 2^±100",
        "tied, times 3.7", "tied, plus 1024"]  # fmt: skip


def losses() -> np.ndarray:
    rng = np.random.default_rng(21)
    values = rng.normal(size=(ROUNDS, N))
    values[:, 1] -= 0.5
    values[ROUNDS // 2 :] *= 4.0
    return np.round(values * 2**20) / 2**20


def tied() -> np.ndarray:
    """Losses of 0 and 1/4 with the same mean for all arms but one."""
    means = np.where(np.arange(N) == 1, 0.4, 0.5)
    return np.where(np.random.default_rng(22).uniform(size=(ROUNDS, N)) < means, 0.25, 0.0)


def is_tie(values: np.ndarray, arms: list[int], one: int, other: int) -> bool:
    """Whether two arms have the same mean loss, in exact arithmetic."""
    means = []
    for arm in (one, other):
        seen = [Fraction(values[t, arm]) for t, played in enumerate(arms) if played == arm]
        means.append(sum(seen, Fraction(0)) / len(seen))
    return means[0] == means[1]


def verdict(example: Example, values: np.ndarray, *changed: np.ndarray) -> str:
    arms, qs = example.play(example.make(N), values)
    found = EXACT
    for other in changed:
        other_arms, other_qs = example.play(example.make(N), other)
        apart = np.abs(other_qs - qs).max(axis=1) > 1e-9
        if apart.any():
            t = int(apart.argmax())
            greedy = np.array_equal(np.sort(other_qs[t]), np.sort(qs[t])) and t >= N
            tops = int(qs[t].argmax()), int(other_qs[t].argmax())
            return f"until a tie, {t}" if greedy and is_tie(values, arms[:t], *tops) else NO
        if other_arms != arms:
            return NO
        if not np.array_equal(other_qs, qs):
            found = ROUNDING
    return found


@cache
def row(example: Example) -> list[str]:
    return [
        verdict(example, values, *changed)
        for values in (losses(), tied())
        for changed in (
            (np.ldexp(values, 100), np.ldexp(values, -100)),
            (3.7 * values,),
            (values + 1024.0,),
        )
    ]


def line(example: Example) -> list[str]:
    settings = ", ".join(f"{key}={value!r}" for key, value in example.settings.items())
    return [example.spec.name, settings, *row(example)]


def saved() -> list[list[str]]:
    with TABLE.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_the_table_says_what_happens(every_example):
    assert line(every_example) in saved(), (
        "what happens is not what docs/results/tables/invariance.csv says: run "
        "`PYTHONPATH=tests python tests/bandits/test_invariance.py`, and look at the difference"
    )


def test_claims_agree_with_what_happens(every_example):
    example = every_example
    power, factor, shift, power_tied, factor_tied, shift_tied = row(example)
    assert example.spec.scale_free == (power == EXACT) == (factor != NO)
    assert example.spec.scale_free == (power_tied == EXACT) == (factor_tied != NO)
    translation_invariant = (
        example.spec.translation_invariant or example.make().settings.get("clip") == "range"
    )
    assert translation_invariant == (shift != NO) == (shift_tied != NO)


def test_only_epsilon_greedy_minds_ties(every_example):
    example = every_example
    parted = [found.startswith("until") for found in row(example)]
    means = example.spec.name == "EpsilonGreedy" and "step" not in example.settings
    assert any(parted) == means  # exponential averages of these losses never tie
    assert not any(parted[:4])


def test_the_table_has_every_learner_and_no_other():
    head, *rows = saved()
    assert head == HEAD
    assert len(rows) == len(EXAMPLES)


if __name__ == "__main__":
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([HEAD, *(line(parameter.values[0]) for parameter in EXAMPLES)])
    print(TABLE.read_text(encoding="utf-8"))
