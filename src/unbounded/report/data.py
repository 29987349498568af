"""One experiment's rows, ready to be grouped, and the panels that charts are put together from."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbounded.bounds import Bound, Losses, bound_of
from unbounded.experiments.grid import Described
from unbounded.experiments.names import Field, Kind, known
from unbounded.experiments.store import SHOWN
from unbounded.report.labels import Known, Variant, settings_of, short_names, thousands
from unbounded.report.model import Line, Panel, Series, numbers

Array = NDArray[Any]
Foreign = Mapping[Field, Mapping[str, Described]]

MOST_POINTS = 40_000  # of curves over time: more would make the page heavy, not clearer
LOW, HIGH = 0.1, 0.9  # the bands

STATISTICS = (
    pl.col("value").mean().alias("mean"),
    pl.col("value").median().alias("median"),
    pl.col("value").quantile(LOW, "linear").alias("low"),
    pl.col("value").quantile(HIGH, "linear").alias("high"),
    pl.len().alias("count"),
)
_LOSSES = (
    pl.col("low_loss").min(),
    pl.col("high_loss").max(),
    pl.col("size").mean(),
    pl.col("inverse_range").mean(),
)


@dataclass(frozen=True)
class Data:
    """Rows with the columns ``learner``, ``adversary`` and ``world`` as positions in lists.

    In ``frame``, ``relative`` is the regret over the range of the losses (in an MDP, the
    pseudo-regret over the sum of the layers' largest losses); ``norm`` is sqrt(n t) (S sqrt(A t)).
    """

    frame: pl.DataFrame
    learners: Mapping[int, Variant]  # by the position in the page's list
    adversaries: Sequence[Variant]
    worlds: Sequence[Variant]
    kind: Kind
    replicates: int  # how many the experiment asks for
    foreign: Foreign = field(default_factory=dict)  # what is not of the package, by field

    def known(self, field: Field) -> Known:
        """Return what is known of the names in a field."""
        return {**known(self.kind, field).ours, **self.foreign.get(field, {})}

    @property
    def mdp(self) -> bool:
        """Whether it is about MDPs."""
        return self.kind == "MDPs"

    @cached_property
    def last(self) -> pl.DataFrame:
        """The rows of the last checkpoint of each cell, with ``value`` = relative / norm."""
        at_end = pl.col("round") == pl.col("round").max().over("cell")
        return self.frame.filter(at_end).with_columns(
            (pl.col("relative") / pl.col("norm")).alias("value")
        )

    @cached_property
    def over_time(self) -> pl.DataFrame:
        """Statistics of relative regret at each checkpoint of each cell, thinned if too many."""
        frame = self.frame.with_columns(pl.col("relative").alias("value"))
        points = self.thinned(frame)
        return points.group_by("learner", *self.case, "round").agg(*STATISTICS, *_LOSSES)

    @cached_property
    def every(self) -> int:
        """One checkpoint in how many is drawn in curves over time."""
        points = self.frame.select("cell", "round").unique().height
        return max(1, math.ceil(points / MOST_POINTS))

    def thinned(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return some of the checkpoints, counted from the last."""
        if self.every == 1:
            return frame
        rank = pl.col("round").rank("dense", descending=True).over("cell")
        return frame.filter((rank - 1) % self.every == 0)

    @property
    def case(self) -> list[str]:
        """What tells the cells of one learner apart."""
        return ["adversary", "world", "rounds"] if self.mdp else ["adversary", "arms", "rounds"]

    @cached_property
    def names(self) -> dict[str, list[str]]:
        """Of the adversaries and worlds."""
        adversaries = short_names(self.adversaries, self.known("adversaries"))
        worlds = short_names(self.worlds, self.known("worlds")) if self.worlds else {}
        return {
            "adversary": [adversaries[variant] for variant in self.adversaries],
            "world": [worlds[variant] for variant in self.worlds],
        }

    def count(self, column: str) -> int:
        """Return how many values a column has."""
        return self.frame[column].drop_nulls().n_unique()

    def keys(self, case: Mapping[str, Any]) -> dict[str, str]:
        """Return a case, for people: ``{"adversary": "Switch", "n": "10"}``."""
        words = {"arms": "n", "rounds": "T", "states": "S", "actions": "A", "world_name": "world"}
        return {
            words.get(column, column): (
                self.names[column][value]
                if column in self.names
                else thousands(value)
                if isinstance(value, int)
                else str(value)
            )
            for column, value in case.items()
        }

    def arrange(self, series: list[Series]) -> None:
        """Put learners in the order of the experiment."""
        ranks = {learner: rank for rank, learner in enumerate(self.learners)}
        series.sort(key=lambda one: ranks[one.learner])

    def grouped(self, by: Sequence[str], rows: pl.DataFrame | None = None) -> pl.DataFrame:
        """Return statistics of ``value`` at the last checkpoint."""
        rows = self.last if rows is None else rows
        return rows.group_by("learner", *by).agg(
            *STATISTICS, *_LOSSES, pl.col("norm").mean(), pl.col("round").max()
        )  # fmt: skip

    @cached_property
    def bounds(self) -> dict[int, Bound]:
        """Of the learners that have one."""
        if self.mdp:
            return {}
        found = {i: bound_of(name, settings_of(text)) for i, (name, text) in self.learners.items()}
        return {i: bound for i, bound in found.items() if bound is not None}

    @property
    def regret(self) -> str:
        """Which regret it is, for people."""
        return SHOWN[self.kind].name

    @property
    def unit(self) -> str:
        """What the regret is divided by, in ``relative``."""
        return SHOWN[self.kind].unit

    @property
    def norm(self) -> str:
        """And in ``value``."""
        return "(Σℓ∞ · S √(AT))" if self.mdp else "(range · √(nT))"


def losses_of(row: Mapping[str, Any]) -> Losses:
    """From a row of statistics."""
    values = (row[name] for name in ("low_loss", "high_loss", "size", "inverse_range"))
    return Losses(*(math.nan if value is None else value for value in values))


def prepared(
    frame: pl.DataFrame,
    learner_ids: Mapping[Variant, int],
    replicates: int,
    foreign: Foreign = MappingProxyType({}),
) -> Data:
    """Return rows as `source.read` gives them, with positions for names."""
    positions, variants = {}, {}
    for what in ("learner", "adversary", "world"):
        pair = [pl.col(what).cast(pl.String), pl.col(f"{what}_settings").cast(pl.String)]
        kinds = frame.select(pair).unique(maintain_order=True).rows()
        variants[what] = [(name, text or "") for name, text in kinds if name is not None]
        numbers: list[int | None]
        if what == "learner":
            numbers = [learner_ids[name, text or ""] for name, text in kinds]
        else:
            numbers = [None if kind[0] is None else i for i, kind in enumerate(kinds)]
        joined = pl.concat_str(pair, separator="\0", ignore_nulls=True)
        texts = ["\0".join(part for part in kind if part is not None) for kind in kinds]
        positions[what] = joined.replace_strict(texts, numbers, return_dtype=pl.Int32)
    width = pl.col("high") / 2.0 - pl.col("low") / 2.0  # halves, because the range may overflow
    largest = pl.max_horizontal(pl.col("low").abs(), pl.col("high").abs())
    kind: Kind = "MDPs" if frame.height and frame["states"].null_count() == 0 else "bandits"
    size, actions = pl.lit(1), pl.col("arms")
    if kind == "MDPs":
        size, actions = pl.col("states"), pl.col("actions")
    slim = frame.select(
        *(expression.alias(what) for what, expression in positions.items()),
        pl.col("world").cast(pl.String).alias("world_name"),
        "cell", "arms", "rounds", "replicate", "round", "threshold",
        "states", "actions", "horizon", "explored", "reach",
        "relative_dynamic_regret", "relative_switching_regret", "dynamic_pseudo_regret",
        "best_probability",
        pl.col(f"relative_{SHOWN[kind].column}").alias("relative"),
        (size * (actions.cast(pl.Float64) * pl.col("round")).sqrt()).alias("norm"),
        pl.col("low").alias("low_loss"),
        pl.col("high").alias("high_loss"),
        pl.when(width > 0.0).then(largest / width / 2.0).alias("size"),
        pl.when(width > 0.0).then(0.5 / width).alias("inverse_range"),
    )  # fmt: skip
    return Data(
        frame=slim,
        learners={learner_ids[variant]: variant for variant in variants["learner"]},
        adversaries=variants["adversary"],
        worlds=variants["world"],
        kind=kind,
        replicates=replicates,
        foreign=foreign,
    )


def by_replicate(rows: pl.DataFrame, column: str, value: str) -> tuple[Array, Array]:
    """What ``column`` contains, and ``value`` by replicate and that; NaN where there is none."""
    kinds, column_of = np.unique(rows[column].to_numpy(), return_inverse=True)
    replicates, row_of = np.unique(rows["replicate"].to_numpy(), return_inverse=True)
    values = np.full((replicates.size, kinds.size), np.nan)
    values[row_of, column_of] = rows[value].to_numpy()
    return kinds, values


MOST_PANELS = 2000  # of a chart; the rest is left out, and the note says so


def cases(table: pl.DataFrame, by: Sequence[str]) -> list[tuple[dict[str, Any], pl.DataFrame]]:
    """Return the parts of a table, in order, with what they have in common."""
    ordered = table.sort([*by, "learner"], maintain_order=True)
    parts = ordered.group_by(list(by), maintain_order=True)
    return [(dict(zip(by, key, strict=True)), part) for key, part in parts][:MOST_PANELS]


def curves(
    data: Data,
    table: pl.DataFrame,
    by: list[str],
    x: str,
    *,
    normalized: bool,
    bounded: bool = True,
    families: Sequence[str] = (),
) -> list[Panel]:
    """Return a panel for each combination of the columns ``by``, with a curve for each learner."""
    ordered = table.sort([*by, "learner", x])
    values = {name: ordered[name].to_list() for name in ordered.columns}
    panels = []
    for start, stop in _runs(values, by, 0, ordered.height)[:MOST_PANELS]:
        case = {name: values[name][start] for name in by}
        series, lines = [], []
        for a, b in _runs(values, ["learner"], start, stop):
            learner = values["learner"][a]
            mean, low, high, median = (
                numbers(values[name][a:b]) for name in ("mean", "low", "high", "median")
            )
            across = values[x][a:b]
            count = max(values["count"][a:b])
            series.append(Series(learner, numbers(across), mean, low, high, median, count))
            bound = data.bounds.get(learner) if bounded else None
            if bound is not None:
                y = []
                for k in range(a, b):
                    row = {name: column[k] for name, column in values.items()}
                    n, T = row["arms"], row.get("round", row["rounds"])
                    value = saying(bound.over_range(n, T, losses_of(row)), T)
                    y.append(value / row["norm"] if normalized else value)
                lines += bound_line(learner, bound.text, across, y)
        family = case.pop("family", None)
        words = data.keys(case)
        if family is not None:
            words = {"adversary": families[family], **words}
        if len({value for one in series for value in one.x}) > 1:  # a curve has two ends
            panels.append(Panel(words, series, lines))
    return panels


def _runs(
    values: Mapping[str, Sequence[Any]], names: Sequence[str], start: int, stop: int
) -> list[tuple[int, int]]:
    """Return where all of the named columns stay the same."""
    columns = [values[name] for name in names]
    changes = (
        k for k in range(start + 1, stop) if any(column[k] != column[k - 1] for column in columns)
    )
    edges = [start, *changes, stop]
    return list(itertools.pairwise(edges)) if stop > start else []


def saying(bound: float, T: int) -> float:
    """Return a bound over the range, or NaN if it says nothing: no regret exceeds T ranges."""
    return bound if bound < T else math.nan


def bound_line(learner: int, text: str, x: Sequence[float], y: Sequence[float]) -> list[Line]:
    """Return a bound where it says something, or nothing."""
    points = [(a, b) for a, b in zip(x, y, strict=True) if not math.isnan(b)]
    return [Line(learner, text, *map(numbers, zip(*points, strict=True)))] if points else []


def largest(panels: Sequence[Panel]) -> int:
    """Return the panel to show first: the first adversary, and the largest of each number."""

    def size(i: int) -> tuple[float, int]:
        texts = [panels[i].keys.get(key, "0").replace(",", "") for key in ("n", "T", "S", "A")]
        return math.prod(1.0 + float(text) for text in texts), -i

    first = {key: panels[0].keys[key] for key in ("adversary", "world") if key in panels[0].keys}
    same = [i for i, p in enumerate(panels) if all(p.keys[k] == v for k, v in first.items())]
    return max(same, key=size)
