"""The tables of a report for LaTeX: the ranking, learners against adversaries, slopes, bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from unbounded.experiments.store import write_whole, writing
from unbounded.report.model import Chart, Panel, Report
from unbounded.results.summary import escaped, latex_table

MOST_PANELS = 6  # tables of a chart; the page has the others


def write(report: Report, directory: Path) -> list[Path]:
    """Write a file for each chart that is a table, or a dot for each learner; their paths."""
    written = []
    for section in report.sections:
        for chart in section.charts:
            if chart.kind not in ("dots", "heat", "table"):
                continue
            with writing(directory):
                directory.mkdir(parents=True, exist_ok=True)
            path = directory / f"{section.id}-{chart.view}.tex"
            text = "\n".join(_tables(report.learners, chart, section.title, path.stem))
            write_whole(path, f"% \\usepackage{{booktabs}}\n{text}".encode())
            written.append(path)
    return written


def _tables(learners: Sequence[str], chart: Chart, title: str, stem: str) -> Iterator[str]:
    rest = (panel for panel in chart.panels if panel is not chart.panels[chart.start])
    for k, panel in enumerate([chart.panels[chart.start], *rest][:MOST_PANELS]):
        case = ", ".join(f"{name}: {value}" for name, value in panel.keys.items())
        words = f"{title}: {chart.title}" + (f" ({case})" if case else "")
        caption = escaped(
            f"{words.rstrip('.')}. {chart.note.replace(' Stronger color is worse.', '')}"
        )
        kinds = "".join(
            "l" if column.kind in ("learner", "text") else "r" for column in chart.columns
        )
        rows = _rows(learners, chart, panel)
        yield latex_table(rows, caption, f"tab:{stem}" + (f"-{k + 1}" if k else ""), kinds)


def _rows(learners: Sequence[str], chart: Chart, panel: Panel) -> list[list[str]]:
    if chart.kind == "heat":
        cells = zip(panel.learners, panel.heat, strict=True)
        return [["learner", *panel.columns], *([learners[i], *map(_text, row)] for i, row in cells)]
    if chart.kind == "dots":
        assert chart.x is not None
        dots = [
            [learners[one.learner], _text(one.mean[0]), _text([one.low[0], one.high[0]])]
            for one in panel.series
        ]
        against = [[column] for column in panel.columns] or [[] for _ in dots]
        head = ["learner", chart.x.label, chart.band, *(["against"] if panel.columns else [])]
        return [head, *(dot + name for dot, name in zip(dots, against, strict=True))]
    named = [column.kind == "learner" for column in chart.columns]
    return [
        [column.label for column in chart.columns],
        *(
            [learners[v] if name else _text(v) for v, name in zip(row, named, strict=True)]
            for row in panel.rows
        ),
    ]


def _text(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, float):
        return f"{value:.3g}".replace("-", "−")
    return "–" if value is None else str(value)
