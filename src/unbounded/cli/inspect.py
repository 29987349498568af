"""Commands of ``unbounded`` that inspect what is there, and run nothing."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from unbounded.io import printable

if TYPE_CHECKING:
    from rich.console import Console

    from unbounded.experiments import Store
    from unbounded.experiments.registered import Registered


def show(directory: Path, *, cells: bool = False, save: Path | None = None) -> int:
    """Show the regret at the last round, learners against adversaries.

    Parameters
    ----------
    directory
        As given to ``run`` as ``--out``.
    cells
        One line for each cell instead, with its regret as it is too.
    save
        A file to write all rows to: .csv or .parquet.
    """
    import polars as pl
    from rich.console import Console

    from unbounded import experiments
    from unbounded.experiments.store import in_order, write_whole
    from unbounded.report.pivot import cell_table, means, pivots, print_pivots

    store = experiments.Store(directory)
    plan = store.plan()
    e, everything = plan.experiment, store.read()
    frame = in_order(everything, plan.cells, e.replicates)
    console = Console(highlight=False)
    found = means(frame, e)
    if cells:
        console.print(cell_table(e, plan.cells, found))
    else:
        print_pivots(console, pivots(plan, found))
    for failure in store.failures():
        say(console, f"failed: {failure.label}: {failure.error}")
    say_set_aside(console, store)
    others = everything.filter(~pl.col("cell").is_in(frame["cell"].unique().implode())).height
    if others:
        say(console, f"{others} rows of other settings or of other code are not shown")
    if save is not None:
        content = io.BytesIO()
        if save.suffix == ".csv":
            frame.write_csv(content)
        elif save.suffix == ".parquet":
            frame.write_parquet(content)
        else:
            raise experiments.ConfigError(f"--save takes a .csv or a .parquet file, not {save}")
        write_whole(save, content.getvalue())
    return 0


def report(
    directory: Path,
    other: Path | None = None,
    *,
    output: Path | None = None,
    figures: bool = True,
    latex: bool = False,
) -> int:
    """Make one self-contained page, figures for print, and LaTeX tables, of what is stored.

    Parameters
    ----------
    directory
        As given to ``run`` as ``--out``, or a directory of several such.
    other
        Another run of the same or a similar experiment, to be compared with the first.
    output
        The page: DIRECTORY/report.html by default, OTHER/versus.html for two. Figures go into a
        directory beside it.
    figures
        Whether to write figures (SVG and PDF) too.
    latex
        Whether to write the tables for LaTeX (booktabs) too.
    """
    from unbounded.report import report as written_report

    written = written_report(directory, other, output=output, figures=figures, latex=latex)
    if written.figures:
        print(f"{len(written.figures)} figures: {written.figures[0].parent}")
    if written.without_figures:
        print(written.without_figures)
    if written.tables:
        print(f"{len(written.tables)} tables: {written.tables[0].parent}")
    print(f"The page: {written.page}")
    return 0


def watch(directory: Path, *, port: int = 0) -> int:
    """Show the report in a browser on this machine while the experiment runs.

    Parameters
    ----------
    directory
        As given to ``run`` as ``--out``; it need not exist yet.
    port
        Of the loopback interface; by default one that is free.
    """
    from unbounded.report import watch as served

    served(directory, port=port, ready=lambda address: print(f"Open {address}", flush=True))
    print("Nothing is missing any more.")
    return 0


def inspect(
    file: str, *, name: str | None = None, schema: str = "unbounded", html: Path | None = None
) -> int:
    """Look at a durable learner, which may be in use: its state, its arms, losses over time.

    Parameters
    ----------
    file
        As given to ``Durable``: a path, or a ``postgresql://`` address.
    name
        Of the learner in the database.
    schema
        Where its tables are.
    html
        A page to write, like a report's.
    """
    from rich.console import Console

    from unbounded.experiments.store import write_whole
    from unbounded.report.live import lines, live_report, look
    from unbounded.report.page import html as drawn

    seen = look(file, name, schema)
    console = Console(highlight=False, soft_wrap=True)
    for line in lines(seen):
        say(console, line)
    if html is not None:
        write_whole(html, drawn(live_report(seen)).encode(errors="backslashreplace"))
        say(console, f"The page: {html}")
    return 0


def say(console: Console, line: str, *, style: str | None = None) -> None:
    """Print a line in which there may be text from files."""
    console.print(printable(line), markup=False, style=style)


def say_set_aside(console: Console, store: Store) -> None:
    """Name the files that were not what they should be."""
    for path, reason in store.set_aside:
        say(console, f"not used: {path}: {reason}")


def list_names(name: str | None = None) -> int:
    """List the algorithms, adversaries and worlds that an experiment can name.

    Parameters
    ----------
    name
        One of them, to see what its settings mean. Bandits and MDPs may both have it. It may be
        package.module:Name.
    """
    from rich.console import Console

    from unbounded.experiments import ConfigError
    from unbounded.experiments.names import FAMILIES, broken, known, nearest, title
    from unbounded.experiments.plugins import ForeignError

    console = Console(highlight=False, soft_wrap=True)
    families = {
        title(kind, field): known(kind, field) for kind in FAMILIES for field in FAMILIES[kind]
    }
    if name is not None:
        found, errors = [], []
        for heading, family in families.items():
            try:
                found.append((heading, family.find(name)))
            except ForeignError as error:  # of one family, it is none of the others
                errors.append(str(error))
        entries = [(heading, entry) for heading, entry in found if entry is not None]
        if not entries and errors:
            raise ConfigError(errors[0])
        if not entries:
            names = [one for family in families.values() for one in family]
            raise ConfigError(f"there is no {name!r}; {nearest(name, names)}")
        for heading, entry in entries:
            _describe(console, entry, heading, whole=True)
        return 0
    for heading, family in families.items():
        console.print(heading, style="bold")
        for entry in family.values():
            _describe(console, entry, heading, whole=False)
        console.print()
    for line in broken():
        say(console, line)
    return 0


def _describe(console: Console, entry: Registered, heading: str, *, whole: bool) -> None:
    """One thing that an experiment can name; ``whole`` says what its settings mean too."""
    from unbounded.experiments.registered import REQUIRED

    reference = f" [{entry.reference}]" if entry.reference else ""
    family = f" ({heading})" if whole else ""
    family += f" (of {entry.package})" if entry.package else ""
    say(console, f"{entry.name}{family}: {entry.summary}{reference}")
    for parameter in entry.parameters.values():
        required = parameter.default is REQUIRED
        default = "required" if required else f"default {parameter.default!r}"
        text = f"{parameter.text}; " if parameter.text else ""
        line = f"    {parameter.name} : {text}{default}"
        say(console, line, style=None if whole else "dim")
        if whole and parameter.description:
            say(console, f"        {parameter.description}")
