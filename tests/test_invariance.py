"""Who is scale-free and who is shift-free: found by playing, and kept as a page of the docs.

``python tests/test_invariance.py`` writes docs/invariance.md again.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from conftest import EXAMPLES, Example

PAGE = Path(__file__).resolve().parents[1] / "docs" / "invariance.md"
ROUNDS, N = 150, 5
EXACT, ROUNDING, NO = "bit for bit", "to rounding", "no"
_HEAD = f"""# Who is scale-free, who is shift-free

Made by `python tests/test_invariance.py` and compared with every test run. Each learner plays
{ROUNDS} rounds of losses of both signs, and the same losses multiplied by 2^100 and 2^-100, by 3.7,
and moved by +1024 (the losses are multiples of 2^-20, so that moving them is exact). "bit for bit":
the probabilities of all rounds are identical. "to rounding": they differ by less than 1e-9, and the
arms played are the same. Longer plays with factors other than powers of two do part in the end: a
difference of 1e-16 grows, because estimates divide by probabilities.

Learners that are told the range are told that of the losses before they are changed.

| learner | settings | times 2^±100 | times 3.7 | plus 1024 |
|---|---|---|---|---|
"""


def losses() -> np.ndarray:
    rng = np.random.default_rng(21)
    values = rng.normal(size=(ROUNDS, N))
    values[:, 1] -= 0.5
    values[ROUNDS // 2 :] *= 4.0
    return np.round(values * 2**20) / 2**20


def verdict(example: Example, plain: tuple, *changed: np.ndarray) -> str:
    found = EXACT
    for other in changed:
        arms, qs = example.play(example.make(N), other)
        if arms != plain[0] or np.abs(qs - plain[1]).max() > 1e-9:
            return NO
        if not np.array_equal(qs, plain[1]):
            found = ROUNDING
    return found


def row(example: Example) -> tuple[str, str, str]:
    values = losses()
    plain = example.play(example.make(N), values)
    return (
        verdict(example, plain, np.ldexp(values, 100), np.ldexp(values, -100)),
        verdict(example, plain, 3.7 * values),
        verdict(example, plain, values + 1024.0),
    )


def line(example: Example) -> str:
    settings = ", ".join(f"{key}={value!r}" for key, value in example.settings.items())
    return f"| {example.spec.name} | {settings} | {' | '.join(row(example))} |"


def test_the_page_says_what_happens(example):
    assert line(example) in PAGE.read_text(encoding="utf-8").splitlines()


def test_claims_agree_with_what_happens(example):
    power, factor, shift = row(example)
    assert example.spec.scale_free == (power == EXACT) == (factor != NO)
    shift_free = example.spec.shift_free or example.settings.get("clip") == "range"
    assert shift_free == (shift != NO)


def test_the_page_has_every_learner_and_no_other():
    rows = [text for text in PAGE.read_text(encoding="utf-8").splitlines() if text[:2] == "| "]
    assert len(rows) == 1 + len(EXAMPLES)


if __name__ == "__main__":
    lines = [line(Example(*parameter.values[0])) for parameter in EXAMPLES]
    PAGE.write_text(_HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))
