"""The sections of a report: charts, and where their numbers come from; and two runs compared."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from unbounded.experiments import experiment
from unbounded.experiments.progress import span_of
from unbounded.report import comparisons, curves
from unbounded.report.comparisons import answer, ranking
from unbounded.report.data import Data, prepared
from unbounded.report.labels import (
    Known,
    Variant,
    brief,
    cited,
    learner_names,
    settings_of,
    thousands,
)
from unbounded.report.model import Chart, Column, Panel, Report, Section, number
from unbounded.report.source import Results
from unbounded.report.verdicts import verdict
from unbounded.results.intervals import mean_interval
from unbounded.results.summary import NEGATIVE

_MOST_LINES = 12  # of warnings of one kind
_MOST_ROWS = 2000  # of a comparison


def assembled(found: Sequence[Results], directory: Path, *, compare: bool = False) -> Report:
    """Return a report with a section for each experiment, after one that compares two."""
    names = [learner_names(_learners(one), one.plan.known("learners")) for one in found]
    labels = list(dict.fromkeys(label for own in names for label in own.values()))
    place = {label: i for i, label in enumerate(labels)}
    sections = [
        _section(results, {variant: place[label] for variant, label in own.items()}, own, labels)
        for results, own in zip(found, names, strict=True)
    ]
    if compare:
        every = {variant: place[label] for own in names for variant, label in own.items()}
        for results, section in zip(found, sections, strict=True):
            section.title += f" ({results.directory})"
        sections.insert(0, _versus(found, every))
    for i, section in enumerate(sections):  # two experiments may have one name
        if any(section.id == before.id for before in sections[:i]):
            section.id = f"{section.id}-{i + 1}"
    several = f"{directory.resolve().name}: {len(sections)} experiments"
    title = sections[0].title if len(sections) == 1 or compare else several
    return Report(title, labels, _looks(len(labels), sections), sections)


def _looks(count: int, sections: Sequence[Section]) -> list[int]:
    """For each learner the first look that none has which it shares a section with."""
    looks: list[int] = []
    for i in range(count):
        beside = {j for section in sections if i in section.learners for j in section.learners}
        taken = {looks[j] for j in beside if j < i}
        looks.append(next(look for look in itertools.count() if look not in taken))
    return looks


def _learners(results: Results) -> list[Variant]:
    kinds = results.frame.select(pl.col("learner", "learner_settings").cast(pl.String))
    return [(name, text or "") for name, text in kinds.unique(maintain_order=True).iter_rows()]


def _section(
    results: Results,
    ids: Mapping[Variant, int],
    names: Mapping[Variant, str],
    labels: Sequence[str],
) -> Section:
    e, frame = results.experiment, results.frame
    own = _learners(results)
    data = prepared(frame, ids, e.replicates, results.plan.foreign)
    drawn = charts(data, e.views) if frame.height else []
    first = ranking(data) if frame.height else ""
    said = [verdict(data, drawn, e.views, e.title, labels), answer(data, first, labels)]
    if isinstance(first, Chart) and e.views and "ranking" not in e.views:
        drawn.insert(0, first)  # a page begins with what it says
    for chart in drawn:
        if chart.view in _OF_REGRET and any(value < 0.0 for value in _shown(chart)):
            chart.note += f" {NEGATIVE}"
    settings = [_described(variant, names[variant], data.known("learners")) for variant in own]
    for variant, name in zip(data.adversaries, data.names["adversary"], strict=True):
        settings.append(_described(variant, name, data.known("adversaries")))
    for variant, name in zip(data.worlds, data.names["world"], strict=True):
        settings.append(_described(variant, name, data.known("worlds")))
    return Section(
        id=re.sub(r"[^A-Za-z0-9_-]", "-", e.name),
        title=e.title or e.name,
        answer=" ".join(filter(None, said if e.views else said[::-1])),
        claim=[" ".join(part.split()) for part in re.split(r"\n\s*\n", e.claim) if part.strip()],
        facts=_facts(results),
        warnings=_warnings(results),
        learners=[ids[variant] for variant in own],
        settings=settings,
        charts=drawn,
        command=shlex.join(
            ["unbounded", "run", str(results.file), "--out", str(results.directory)]
        ),
        experiment=results.text,
        versions=sorted(set(frame["versions"].cast(pl.String).unique().to_list())),
        code=_code(frame),
    )  # fmt: skip


_OF_REGRET = ("ranking", "heatmap", "time", "arms", "rounds", "states", "actions", "scale", "shift")


def _shown(chart: Chart) -> Iterator[float]:
    """Yield the means that a chart shows."""
    for panel in chart.panels:
        for values in [*(one.mean for one in panel.series), *panel.heat]:
            yield from (value for value in values if value is not None)


def _facts(results: Results) -> list[list[str]]:
    e, frame = results.experiment, results.frame
    once = frame.unique(["cell", "replicate"])
    facts = [
        ["name", e.name],
        ["cells", thousands(frame["cell"].n_unique())],
        ["replicates", f"{thousands(e.replicates)} of each cell, {thousands(once.height)} in all"],
        ["rows", thousands(frame.height)],
        ["seed", str(e.seed)],
        ["computing time", span_of(float(once["seconds"].sum()))],
    ]
    if frame.height:
        times = frame["finished"].dt.strftime("%Y-%m-%d %H:%M")
        facts.append(["finished", f"{times.min()!s} to {times.max()!s} UTC"])
    return facts


def _warnings(results: Results) -> list[str]:
    warnings = []
    if results.missing:
        count = sum(lacking for _, lacking in results.missing)
        total = results.experiment.replicates
        warnings.append(
            f"Unfinished: {thousands(count)} replicates of {thousands(len(results.missing))} cells "
            "are missing. The command below runs them."
        )
        lines = [f"{label}: {lacking} of {total} missing" for label, lacking in results.missing]
        warnings += _some(lines)
    if results.other_code:
        warnings.append(
            f"The rows of {thousands(results.other_code)} cells were made by other code, with "
            "other versions or for other checkpoints than `unbounded run` would use where this "
            "page was made."
        )
    warnings += _some([f"Failed: {failure.label}: {failure.error}" for failure in results.failures])
    warnings += _some([f"Not used: {path}: {reason}" for path, reason in results.set_aside])
    return warnings


def _some(lines: list[str]) -> list[str]:
    more = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], f"and {more} more"] if more > 0 else lines


def _described(variant: Variant, name: str, known: Known) -> list[str]:
    """Return the name on the page, all settings, the reference."""
    settings = ", ".join(f"{key}={brief(value)}" for key, value in settings_of(variant[1]).items())
    if variant[0] not in known:
        return [name, settings, ""]
    one = known[variant[0]]
    return [name, settings, "; ".join(filter(None, [cited(one.reference), one.origin]))]


def _code(frame: pl.DataFrame) -> list[list[str]]:
    """Return the hashes of the sources, and what they are the sources of."""
    columns = [pl.col(name).cast(pl.String) for name in ("code", "learner", "adversary")]
    return [list(row) for row in frame.select(columns).unique(maintain_order=True).iter_rows()]


VIEWS: Mapping[str, Callable[[Data], Chart | str]] = {
    name: next(getattr(module, name) for module in (curves, comparisons) if name in vars(module))
    for name in experiment.VIEWS
}
"""Each makes a chart, or says what it would need: the function of that name."""

_REPLICATES_FOR_TAILS = 100


def charts(data: Data, wanted: Sequence[str] = ()) -> list[Chart]:
    """The wanted views in their order; without any, those that the data have something for."""
    if wanted:
        return [_asked_for(data, view) for view in wanted]
    chosen = dict(VIEWS)
    if data.count("rounds") < 2:
        del chosen["rounds"]  # the curve over time says it
    if data.replicates < _REPLICATES_FOR_TAILS:
        del chosen["quantiles"]
    made = [make(data) for make in chosen.values()]
    return [chart for chart in made if isinstance(chart, Chart)]


def _asked_for(data: Data, view: str) -> Chart:
    chart = VIEWS[view](data)
    if isinstance(chart, Chart):
        return chart
    return Chart(view, view.capitalize(), f"This view {chart}.", "none")


# ------------------------------------------------------------------ two runs side by side


def _versus(found: Sequence[Results], ids: Mapping[Variant, int]) -> Section:
    """Return a section on the second of two runs against the first."""
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
    replicates = min(results.experiment.replicates for results in found)
    foreign = {**first.plan.foreign, **second.plan.foreign}
    data = prepared(together, ids, replicates, foreign)
    rows = _differences(data)
    names = [str(results.directory) for results in found]
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
        answer=_compared(rows, names),
        warnings=_other_seeds(first, second),
        learners=[
            place for place in dict.fromkeys(ids.values()) if any(r[0] == place for r in rows)
        ],
        charts=[chart],
        command=shlex.join(["unbounded", "report", *(str(one.directory) for one in found)]),
    )


def _differences(data: Data) -> list[list[object]]:
    """Return a row for each learner and case that both runs have played."""
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


def _compared(rows: Sequence[Sequence[object]], names: Sequence[str]) -> str:
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
        parts.append(f"no statistically significant difference in {thousands(rest)}")
    return (
        f"Of {thousands(len(rows))} cases that both runs have, {names[1]} has "
        f"{', '.join(parts[:-1])} and {parts[-1]}."
    )


def _end(row: Sequence[object], which: int) -> float:
    ends = row[2]
    assert isinstance(ends, list)
    value = ends[which]
    return float("nan") if value is None else float(value)


def _other_seeds(first: Results, second: Results) -> list[str]:
    if first.experiment.seed == second.experiment.seed:
        return []
    return [
        f"The seeds are {first.experiment.seed} and {second.experiment.seed}: replicates of the "
        "two runs did not meet the same losses, and the intervals are wider than they could be."
    ]
