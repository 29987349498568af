"""The tables of the paper's claims, from what `unbounded run experiments/paper` has stored.

    python benchmarks/results.py out/paper              # all of them
    python benchmarks/results.py out/paper theorem-2    # of one experiment

Entries are means with the half width of their 95% interval; regret is divided by range x sqrt(nT),
for MDPs pseudo-regret by sum_h l_inf,h x S sqrt(AT).
"""

import argparse
import json
import math
from pathlib import Path

import numpy as np
import polars as pl

from unbounded.report.source import read
from unbounded.results.intervals import student

SHOWN = (
    "clip", "mixing", "profile", "early_stop", "share_counts", "constants",
    "loss_range", "gap", "scale", "shift", "factor", "pattern", "sign", "phases",
    "sizes", "horizon", "n_actions",
)  # fmt: skip
DEFAULTS = {"mixing": 1.0, "scale": 1.0, "shift": 0.0, "early_stop": None}


def label(name, settings):
    """A name with the settings that tell it from the others."""
    given = json.loads(settings or "{}")
    parts = [
        f"{key}={value}"
        for key, value in given.items()
        if key in SHOWN and value is not None and value != DEFAULTS.get(key, ...)
    ]
    return f"{name} {' '.join(parts)}".strip()


def load(directory):
    """All rows that the report shows, with labels and normalised regret ``x``."""
    rows = read(directory).frame
    for kind in ("learner", "adversary", "world"):
        pair = rows.select(pl.col(kind, f"{kind}_settings").cast(pl.String)).rows()
        names = {p: label(*p) if p[0] else "" for p in set(pair)}
        rows = rows.with_columns(pl.Series(f"{kind}_label", [names[p] for p in pair]))
    n = pl.col("arms").cast(pl.Float64)
    bandits = pl.col("relative_regret") / (n * pl.col("rounds")).sqrt()
    mdps = pl.col("relative_pseudo_regret") / (
        pl.col("states") * (pl.col("actions") * pl.col("rounds")).sqrt()
    )
    return rows.with_columns(x=pl.when(n.is_not_null()).then(bandits).otherwise(mdps))


def mean(values):
    if len(values) == 1:
        return f"{values[0]:.2f}"
    half = student(len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
    return f"{np.mean(values):.2f} ± {half:.2f}"


def table(rows, across, value="x", entry=mean, down=("learner_label",)):
    """Markdown, one line for each combination of ``down``."""
    columns = sorted(rows[across].unique().to_list())
    print(f"| {' | '.join(down)} | " + " | ".join(f"{c}" for c in columns) + " |")
    print("|---" * (len(columns) + len(down)) + "|")
    for key, part in sorted(rows.group_by(*down), key=lambda pair: str(pair[0])):
        entries = []
        for column in columns:
            values = part.filter(pl.col(across) == column)[value].drop_nulls().to_numpy()
            entries.append(entry(values) if len(values) else "")
        print("| " + " | ".join(map(str, key)) + " | " + " | ".join(entries) + " |")
    print()


def tail(rows):
    """Quantiles of SCB-IX against ln(1/delta), and their least-squares slope."""
    deltas = (0.5, 0.1, 0.03, 0.01, 0.003, 0.001)
    print("| learner | " + " | ".join(f"{d:g}" for d in deltas) + " | replicates |")
    print("|---" * (len(deltas) + 2) + "|")
    for (name, adversary), part in sorted(rows.group_by("learner_label", "adversary_label")):
        quantiles = np.quantile(part["x"].to_numpy(), [1 - d for d in deltas])
        entries = " | ".join(f"{q:.2f}" for q in quantiles)
        print(f"| {name}, {adversary} | {entries} | {part.height} |")
    print()


def identical(rows):
    """At which scales the rows are those of scale 1, bit for bit."""
    key = ("learner_label", "replicate", "round")
    scale = pl.col("adversary_settings").cast(pl.String).str.json_path_match("$.scale")
    shift = pl.col("adversary_settings").cast(pl.String).str.json_path_match("$.shift")
    rows = rows.with_columns(scale=scale.cast(pl.Float64), shift=shift.cast(pl.Float64))
    if rows["shift"].null_count():
        rows = rows.with_columns(shift=pl.lit(0.0))
    base = rows.filter(pl.col("scale") == 1.0, pl.col("shift") == 0.0)
    unit = base.select(*key, unit=pl.col("relative_regret"), unit_clipped=pl.col("clipped"))
    both = rows.join(unit, on=key).with_columns(
        same=(pl.col("relative_regret") == pl.col("unit"))
        & (pl.col("clipped") == pl.col("unit_clipped"))
    )
    for name, part in sorted(both.group_by("learner_label")):
        other = part.filter(pl.col("scale") != 1.0)
        bad = sorted({round(math.log2(s)) for s in other.filter(~pl.col("same"))["scale"]})
        shifted = part.filter(pl.col("shift") != 0.0)
        text = f"differs at 2^{bad}" if bad else "all equal"
        if shifted.height:
            text += f"; shifts, {shifted['same'].mean():.0%} equal"
        print(f"- {name[0]}: scales, {text}")
    print()


def show(directory):
    name, every = directory.name, load(directory)
    rows = every.filter(pl.col("round") == pl.col("rounds"))
    print(f"## {name}\n")
    by_adversary = ("learner_label", "adversary_label")
    if name == "theorem-2":
        tail(rows)
    elif name.startswith("remark-1"):
        identical(every)
    elif name in ("theorem-1", "theorem-1-n"):
        for (adversary, T), part in sorted(rows.group_by("adversary_label", "rounds")):
            print(f"{adversary}, T = {T}\n")
            table(part, "arms")
    elif name == "theorem-1-T":
        table(rows, "rounds", down=by_adversary)
    elif name in ("table-1", "ablations"):
        for (n,), part in sorted(rows.group_by("arms")):
            print(f"n = {n}\n")
            table(part, "learner_label", down=("adversary_label",))
    elif name == "lemma-rfelp":
        episodes = pl.col("learner_settings").cast(pl.String).str.json_path_match("$.episodes")
        least = rows.with_columns(N=episodes.cast(pl.Int64))
        table(least, "N", "reach", lambda v: f"{v.min():.2f}", ("world_label", "learner_label"))
    else:
        table(rows, "rounds", down=("world_label", "adversary_label", "learner_label"))
        if rows["explored"].drop_nulls().len():
            print("episodes of exploration\n")
            table(rows, "rounds", "explored", lambda v: f"{v.mean():.0f}",
                  ("world_label", "learner_label"))  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("experiments", nargs="*")
    given = parser.parse_args()
    names = given.experiments or sorted(p.parent.name for p in given.directory.glob("*/results"))
    for name in names:
        show(given.directory / name)


if __name__ == "__main__":
    main()
