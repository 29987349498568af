"""What the case studies share: intervals, tables, figures."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

OURS, TUNED, OTHER = "#0072B2", "#D55E00", "#999999"  # safe for color-blind eyes
plt.rcParams["svg.hashsalt"] = "unbounded"  # the same figure is the same file
_BEGAN = time.perf_counter()


def data_file(package: str, *path: str) -> Path:
    """A file of an installed package, which is not imported: that can take seconds."""
    spec = find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        raise SystemExit(f"the data are those of {package}: pip install 'unbounded[examples]'")
    return Path(spec.submodule_search_locations[0], *path)


def interval(samples: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """The mean, and half the width of its 95% confidence interval."""
    values = np.asarray(samples, dtype=float)
    return float(values.mean()), float(1.96 * values.std(ddof=1) / np.sqrt(values.size))


def said(samples: Sequence[float] | np.ndarray, form: str = ",.1f") -> str:
    """Mean ± half width, as text."""
    mean, half = interval(samples)
    return f"{mean:{form}} ± {half:{form}}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; numbers to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def bars(
    axes: plt.Axes, samples: Mapping[str, np.ndarray], ours: Sequence[str], tuned: Sequence[str]
) -> None:
    """One bar with its interval for each name, best (least) first."""
    names = sorted(samples, key=lambda name: -np.mean(samples[name]))
    for y, name in enumerate(names):
        mean, half = interval(samples[name])
        color = OURS if name in ours else TUNED if name in tuned else OTHER
        axes.barh(y, mean, xerr=half, color=color, height=0.7, error_kw={"lw": 1.0})
    axes.set_yticks(range(len(names)), names)
    axes.spines[["top", "right"]].set_visible(False)


def command(name: str) -> argparse.ArgumentParser:
    """The options that every case study has."""
    parser = argparse.ArgumentParser(description=f"Writes {name}.svg and {name}.md.")
    parser.add_argument("--into", type=Path, default=Path("out"), help="a directory")
    return parser


def finish(name: str, figure: Figure, text: str, directory: Path) -> None:
    """Write the figure and the table, and show the table."""
    directory.mkdir(parents=True, exist_ok=True)
    figure.savefig(directory / f"{name}.svg", metadata={"Date": None})
    (directory / f"{name}.md").write_text(text + "\n", encoding="utf-8")
    print(text)
    seconds = time.perf_counter() - _BEGAN
    print(f"\n{directory / name}.svg and .md written; {seconds:.0f} seconds")
