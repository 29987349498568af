"""Experiments for the tests of the report, and its numbers again from the Parquet files.

The second part knows nothing of `unbounded.report`: polars opens the files, the rest is NumPy.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

SIZES = {
    "name": "sizes",
    "learners": [
        {"name": "SCB", "profile": ["paper", "practical"]},
        {"name": "TsallisINF"},
        {"name": "Uniform"},
    ],
    "adversaries": [
        {"name": "StochasticGap", "gap": 0.3, "scale": [1e-6, 1.0], "shift": 0.0},
        {"name": "StochasticGap", "gap": 0.3, "shift": 5.0},
        {"name": "SpikeLeastLikely"},
    ],
    "arms": [3, 8],
    "rounds": [300, 1200],
    "replicates": 6,
    "checkpoints": 7,
    "seed": 3,
}
TAILS = {
    "name": "tails",
    "learners": [{"name": "SCB"}, {"name": "Exp3IX"}],
    "adversaries": [{"name": "StochasticGap", "gap": 0.3}],
    "arms": 3,
    "rounds": 400,
    "replicates": 150,
    "checkpoints": [100, 200, 400],
    "seed": 4,
}
LEARNERS = {  # the names that the page should give them
    "SCB profile=paper": ("SCB", {"profile": "paper"}),
    "SCB": ("SCB", {"profile": "practical"}),
    "TsallisINF": ("TsallisINF", {}),
    "Uniform": ("Uniform", {}),
    "Exp3IX": ("Exp3IX", {}),
}
ADVERSARIES = {  # of the sizes; there is one in the tails
    "StochasticGap scale=1, shift=0": ("StochasticGap", {"scale": 1.0, "shift": 0.0}),
    "StochasticGap scale=1e-6": ("StochasticGap", {"scale": 1e-6}),
    "StochasticGap shift=5": ("StochasticGap", {"shift": 5.0}),
    "SpikeLeastLikely": ("SpikeLeastLikely", {}),
}


def keep(document: dict[str, Any], out: Path) -> None:
    """Leave what a run of an experiment begins with."""
    from unbounded.experiments import Store, config, grid

    e = config.experiment(document)
    Store(out).keep_experiment(config.dumps(e), grid.encoded(grid.plan_of(e, grid.cells(e))))


def embedded(page: Path) -> dict[str, Any]:
    """The numbers in a page."""
    text = page.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', text)
    assert found
    return json.loads(found[1])


class Stored:
    """The rows of a directory of results."""

    def __init__(self, directory: Path) -> None:
        frame = pl.read_parquet(list((directory / "results").glob("*.parquet")))
        texts = pl.col("learner", "learner_settings", "adversary", "adversary_settings")
        self.columns = {
            s.name: s.to_numpy() for s in frame.with_columns(texts.cast(pl.String)).iter_columns()
        }
        for what in ("learner", "adversary"):
            settings = self.columns[f"{what}_settings"]
            self.columns[f"{what}_settings"] = np.array([json.loads(text) for text in settings])

    def rows(self, learner: str, keys: dict[str, str], **equal: Any) -> dict[str, np.ndarray]:
        """Those of one learner and one case, by replicate and then by round."""
        c = self.columns
        chosen = self._is("learner", *LEARNERS[learner])
        if "adversary" in keys:
            name = keys["adversary"]
            chosen &= self._is("adversary", *ADVERSARIES.get(name, (name, {})))
        for symbol, column in (("n", "arms"), ("T", "rounds")):
            if symbol in keys:
                chosen &= c[column] == int(keys[symbol].replace(",", ""))
        for column, value in equal.items():
            chosen &= c[column] == value
        found = {name: values[chosen] for name, values in c.items()}
        order = np.lexsort((found["round"], found["replicate"]))
        return {name: values[order] for name, values in found.items()}

    def _is(self, what: str, name: str, settings: dict[str, Any]) -> np.ndarray:
        pairs = zip(self.columns[what], self.columns[f"{what}_settings"], strict=True)
        return np.array(
            [a == name and all(own[k] == v for k, v in settings.items()) for a, own in pairs]
        )


def quantile(values: np.ndarray, p: float) -> float:
    """Linear between order statistics."""
    ordered = sorted(values)
    place = p * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def statistics(values: np.ndarray) -> dict[str, float]:
    """What a curve shows of the replicates."""
    return {
        "mean": sum(values) / len(values),
        "median": quantile(values, 0.5),
        "low": quantile(values, 0.1),
        "high": quantile(values, 0.9),
    }


def slope(x: np.ndarray, y: np.ndarray) -> float:
    """By least squares."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


CLOSE = {"rel": 1e-7, "abs": 1e-12}  # the page keeps 8 digits
VIEWS = {
    "sizes": ["ranking", "time", "rounds", "arms", "scale", "shift", "slopes", "thresholds",
              "heatmap", "bounds", "paired"],
    "tails": ["ranking", "time", "slopes", "quantiles", "thresholds", "bounds", "paired"],
}  # fmt: skip


class Page:
    """A report's numbers beside its rows."""

    def __init__(self, out: Path) -> None:
        self.data = embedded(out / "report.html")
        self.names = self.data["learners"]
        charts = [section["charts"] for section in self.data["sections"]]
        self.charts = {
            name: {chart["view"]: chart for chart in one}
            for name, one in zip(VIEWS, charts, strict=True)
        }
        self.rows = {name: Stored(out / name) for name in VIEWS}

    def curves(self, name: str, view: str) -> Iterator[tuple[Any, Any, str, Any]]:
        """Each panel's keys with each of its curves and the rows that belong to it."""
        for panel in self.charts[name][view]["panels"]:
            for series in panel["series"]:
                learner = self.names[series["learner"]]
                yield panel["keys"], series, learner, panel


def check(series: dict[str, Any], i: int, values: np.ndarray) -> None:
    """The i-th point of a curve has the statistics of these values."""
    for name, value in statistics(values).items():
        assert series[name][i] == pytest.approx(value, **CLOSE)
    assert series["replicates"] == len(values)


BANDITS_ONLY = ("relative_dynamic_regret", "relative_switching_regret", "dynamic_pseudo_regret",
                "best_probability")  # fmt: skip
MDP_LEARNERS = {("SCBRL", '{"profile":"practical"}'): 0, ("UOBREPS", "{}"): 1}


def mdp_rows() -> pl.DataFrame:
    """Of two learners in worlds of S = 4, 8 (A = 2) and A = 4 (S = 4), two worlds of each size."""
    rng = np.random.default_rng(5)
    rows = []
    for learner, settings in MDP_LEARNERS:
        for S, A, world in itertools.product((4, 8), (2, 4), (1, 2)):
            if (S, A) == (8, 4):
                continue
            for replicate, t in itertools.product(range(5), (10, 100)):
                rows.append(
                    {"cell": f"{learner}-{S}-{A}-{world}", "learner": learner,
                     "learner_settings": settings, "adversary": "Stochastic",
                     "adversary_settings": "{}", "world": "dirichlet",
                     "world_settings": json.dumps({"sizes": [S], "n_actions": A, "seed": world}),
                     "states": S, "actions": A, "horizon": 2, "arms": None, "rounds": 100,
                     "replicate": replicate, "round": t,
                     "relative_regret": rng.gamma(4.0),  # realized: not what is shown
                     "relative_pseudo_regret": rng.gamma(4.0) * S * math.sqrt(A * t),
                     "low": -1.0, "high": 1.0, "threshold": None, **dict.fromkeys(BANDITS_ONLY),
                     "explored": t // 2 if learner == "SCBRL" else None,
                     "reach": rng.random() if learner == "SCBRL" and t == 100 else None}
                )  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"arms": pl.Int64, "threshold": pl.Float64})


def mdp_values(learner: int, **equal: Any) -> dict[str, np.ndarray]:
    """The columns of `mdp_rows` of one learner, where some columns have these values."""
    rows = {name: np.array(v) for name, v in mdp_rows().to_dict(as_series=False).items()}
    keep = rows["learner"] == [name for name, _ in MDP_LEARNERS][learner]
    for name, value in equal.items():
        keep &= rows[name] == value
    return {name: values[keep] for name, values in rows.items()}
