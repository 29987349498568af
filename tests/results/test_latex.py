"""LaTeX tables: escaped names, as many cells as columns, caption and label."""

from __future__ import annotations

import re

import pytest

from unbounded import Uniform, compare, simulate
from unbounded.results import summary

EVIL = r"50% of a_b & {c} $d$ #e ~f ^g \h <i> | √(nT)"


def losses(t, arm, q, rng):
    return [0.0, 1.0]


def unescaped(text: str) -> list[str]:
    """The special characters that LaTeX would see: none that is not escaped, or part of ours."""
    ours = r"\\text\w+\{\}|\$\\\w+\$|\$-\$|\\[{}$&#%_]"
    return re.findall(r"[{}$&#%_~^\\<>|]", re.sub(ours, "", text))


def test_what_is_special_is_escaped():
    assert unescaped(summary.escaped(EVIL)) == []
    assert unescaped(EVIL)  # the control: as it is, it would not compile
    assert summary.escaped("two\nlines") == "two lines"


@pytest.mark.parametrize("several", [True, False])
def test_a_summary_has_a_cell_for_every_column(several):
    learners = {EVIL: Uniform(2), "b": Uniform(2)} if several else {EVIL: Uniform(2)}
    text = compare(learners, losses, 50, 3, seed=1).summary().to_latex(label="tab:one")
    columns = re.search(r"\\begin\{tabular\}\{(l(r+))\}", text)
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 1 + len(learners)
    for row in rows:
        cells = re.split(r"(?<!\\)&", row[:-2])
        assert len(cells) == len(columns[1]) == (7 if several else 4)
        assert not any(map(unescaped, cells))
    assert r"\label{tab:one}" in text
    assert [text.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]
    assert not unescaped(re.search(r"\\caption\{(.*)\}", text)[1])


def test_a_caption_of_ones_own_is_latex():
    text = simulate(Uniform(2), losses, 20, 2, seed=1).summary().to_latex(r"Of $\sqrt{T}$.")
    assert r"\caption{Of $\sqrt{T}$.}" in text
