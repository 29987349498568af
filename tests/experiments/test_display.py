"""What is shown of a run."""

from __future__ import annotations

import io

import pytest

pytest.importorskip("rich")
pytest.importorskip("polars")

from rich.console import Console

import experiment_helpers as helpers
from unbounded.experiments import config, grid, task
from unbounded.experiments.progress import Display, Progress, headline, render, span_of
from unbounded.experiments.task import Span, Warmed

PLAN = grid.cells(config.experiment(helpers.PAIR))
WHOLE = [Span(i, 0, 12) for i in range(len(PLAN))]


def progress_in_the_middle() -> Progress:
    progress = Progress(PLAN, WHOLE, WHOLE)
    progress.workers = 2
    first, second = (Span(0, 0, 5), PLAN[0].settings), (Span(1, 0, 12), PLAN[1].settings)
    progress.started_work([first, second])
    progress.stopped_work([first])
    outcome = task.run([first])[0]
    progress.finished(outcome._replace(seconds=300.0), PLAN[0].settings)
    progress.finished(task.failed(Span(2, 0, 12), "ValueError: no"), PLAN[2].settings)
    return progress


def text_of(terminal: bool) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=120, color_system=None)
    with Display(console) as display:
        display(progress_in_the_middle())
        display(progress_in_the_middle())  # too soon: not shown again
    return file.getvalue()


def test_a_line_in_a_log() -> None:
    first, result = text_of(terminal=False).splitlines()
    assert first.startswith("5/144 done, 12 running, 12 failed, at least ")
    assert first.endswith(" left")
    regret = task.run([(Span(0, 0, 5), PLAN[0].settings)])[0].columns["relative_regret"]
    assert result == f"{PLAN[0].label}: {regret[:, -1].mean():.4g} regret / range"


def test_what_is_compiled_is_named_and_not_counted_as_known() -> None:
    progress = Progress(PLAN, WHOLE, WHOLE)
    progress.compiling = ["SCB", "AHB"]
    text = headline(progress).plain
    assert " at least " in text
    assert text.endswith(", being compiled or measured: SCB, AHB")
    for cell in PLAN:
        progress.measured(cell.settings, Warmed(1e-3, 0.5))
    progress.compiling = []
    assert " at least " not in headline(progress).plain
    total = 1e-3 * sum(12 * cell.settings.rounds for cell in PLAN)
    assert progress.seconds_left() == pytest.approx(total)
    assert progress.compile_seconds == 0.5 * len(PLAN)


def test_a_table_on_a_terminal() -> None:
    text = text_of(terminal=True)
    assert "5/144 done, 12 running, 12 failed" in text
    row = next(line for line in text.splitlines() if PLAN[1].label in line)
    assert row.removeprefix(PLAN[1].label).split()[:3] == ["0/12", "12", "0"]


def test_a_cell_with_failures() -> None:
    progress = Progress(PLAN, WHOLE, [Span(0, 0, 12)])
    ran, failed, runs = Span(0, 0, 4), Span(0, 4, 3), Span(0, 7, 5)
    settings = PLAN[0].settings
    progress.started_work([(span, settings) for span in (ran, failed, runs)])
    progress.stopped_work([(ran, settings), (failed, settings)])
    progress.finished(task.run([(ran, settings)])[0], settings)
    progress.finished(task.failed(failed, "ValueError: no"), settings)
    console = Console(file=io.StringIO(), width=120)
    console.print(render(progress))
    row, _ = [line for line in console.file.getvalue().splitlines() if PLAN[0].label in line]
    assert row.removeprefix(PLAN[0].label).split()[:3] == ["4/12", "5", "3"]


def test_many_running_cells_are_cut() -> None:
    plan = PLAN * 3
    whole = [Span(i, 0, 1) for i in range(len(plan))]
    progress = Progress(plan, whole, whole)
    progress.started_work([(Span(i, 0, 1), cell.settings) for i, cell in enumerate(plan)])
    console = Console(file=io.StringIO(), width=120)
    console.print(render(progress))
    text = console.file.getvalue()
    assert text.count("0/1 ") == 12
    assert "and 24 more cells" in text


def test_time_left_follows_what_was_measured() -> None:
    progress = progress_in_the_middle()
    settings = PLAN[0].settings
    assert progress.rate((settings.learner, settings.adversary, settings.arms)) == pytest.approx(
        300.0 / (5 * settings.rounds)
    )
    assert progress.seconds_left_of(0) == pytest.approx(7 * 60.0)
    assert progress.seconds_left() > 7 * 60.0 / 2


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (59.6, "1 min 0 s"), (3599, "59 min 59 s"), (90_061, "25 h 1 min")],
)
def test_spans_of_time(seconds: float, text: str) -> None:
    assert span_of(seconds) == text
