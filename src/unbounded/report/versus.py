"""Two runs side by side: the difference in each case that both have, replicate by replicate."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import polars as pl

from unbounded.report.data import Data, prepared
from unbounded.report.labels import Variant, thousands
from unbounded.report.model import Chart, Column, Panel, Section, number
from unbounded.report.source import Results
from unbounded.results.intervals import mean_interval

_MOST_ROWS = 2000


def versus(found: Sequence[Results], ids: Mapping[Variant, int]) -> Section:
    """A section on the second of two runs against the first."""
    first, second = found
    together = pl.concat(
        [
            results.frame.with_columns(
                pl.format("{}|{}", pl.lit(run), pl.col("cell").cast(pl.String)).alias("cell")
            )
            for run, results in enumerate(found)
        ],
        how="vertical_relaxed",
    )
    data = prepared(together, ids, min(results.experiment.replicates for results in found))
    rows = _differences(data)
    names = [_name(results) for results in found]
    chart = Chart(
        "versus", f"{names[1]} against {names[0]}",
        f"Mean {data.regret} at the last round, divided by {data.norm}, in each case that both "
        "runs have, and the mean of the differences replicate by replicate with Student's 95% "
        f"interval; below 0, {names[1]} has less.",
        "table" if rows else "none",
        columns=[
            Column("learner", "learner"), Column("difference"), Column("95% interval", "interval"),
            Column(names[0]), Column(names[1]), Column("replicates"), Column("case", "text"),
        ],
        panels=[Panel({}, rows=rows[:_MOST_ROWS])] if rows else [],
    )  # fmt: skip
    if not rows:
        chart.note = "The two runs have no case in common."
    return Section(
        id="versus",
        title=f"{names[1]} against {names[0]}",
        answer=_answer(rows, names),
        claim=[],
        facts=[],
        warnings=_warnings(first, second),
        learners=[
            place for place in dict.fromkeys(ids.values()) if any(r[0] == place for r in rows)
        ],
        settings=[],
        charts=[chart],
        command=shlex.join(["unbounded", "report", *(str(one.directory) for one in found)]),
        experiment="",
        versions=[],
        code=[],
    )


def _name(results: Results) -> str:
    return str(results.directory)


def _differences(data: Data) -> list[list[object]]:
    """A row for each learner and case that both runs have played."""
    run = pl.col("cell").str.head(1)
    by = ["learner", *data.case]
    halves = [data.last.filter(run == str(k)).select(*by, "replicate", "value") for k in (0, 1)]
    both = halves[0].join(halves[1], on=[*by, "replicate"], suffix="_other", nulls_equal=True)
    rows: list[list[object]] = []
    for key, part in both.sort(by).group_by(by, maintain_order=True):
        case = dict(zip(by, key, strict=True))
        learner = case.pop("learner")
        a, b = part["value"].to_numpy(), part["value_other"].to_numpy()
        mean, low, high = mean_interval(b - a)
        words = ", ".join(
            value if name in ("adversary", "world") else f"{name} = {value}"
            for name, value in data.keys(case).items()
        )
        rows.append(
            [learner, number(mean), [number(low), number(high)], number(float(a.mean())),
             number(float(b.mean())), part.height, words]
        )  # fmt: skip
    return rows


def _answer(rows: Sequence[Sequence[object]], names: Sequence[str]) -> str:
    if not rows:
        return ""
    less = sum(1 for row in rows if _end(row, 1) < 0.0)
    more = sum(1 for row in rows if _end(row, 0) > 0.0)
    same = sum(1 for row in rows if row[1] == 0.0 and _end(row, 0) == _end(row, 1) == 0.0)
    rest = len(rows) - less - more - same
    parts = [f"less regret in {thousands(less)}", f"more in {thousands(more)}"]
    if same:
        parts.append(f"exactly the same in {thousands(same)}")
    if rest:
        parts.append(f"a difference that the replicates do not show in {thousands(rest)}")
    return (
        f"Of {thousands(len(rows))} cases that both runs have, {names[1]} has "
        f"{', '.join(parts[:-1])} and {parts[-1]}."
    )


def _end(row: Sequence[object], which: int) -> float:
    ends = row[2]
    assert isinstance(ends, list)
    value = ends[which]
    return float("nan") if value is None else float(value)


def _warnings(first: Results, second: Results) -> list[str]:
    if first.experiment.seed == second.experiment.seed:
        return []
    return [
        f"The seeds are {first.experiment.seed} and {second.experiment.seed}: replicates of the "
        "two runs did not meet the same losses, and the intervals are wider than they could be."
    ]
