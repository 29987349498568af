"""Results in words: one line, and a table of what was reached at the end, also for LaTeX."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbounded.io import printable
from unbounded.results import Played
from unbounded.results.intervals import mean_interval, standard_error

NEGATIVE = (
    "Negative regret: the learner paid less than the best fixed arm or policy, as it can where the "
    "best one changes over time."
)
_MOST = 4  # learners that one line names
_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "√": r"$\surd$", "·": r"$\cdot$", "×": r"$\times$", "±": r"$\pm$", "−": r"$-$", "–": "--",
    "δ": r"$\delta$", "Σ": r"$\Sigma$", "ℓ": r"$\ell$", "∞": r"$\infty$", "≤": r"$\le$",
    **{character: f"\\{character}" for character in "{}$&#%_"},
}  # fmt: skip
_CAPTION = "caption-side: top; text-align: left; white-space: nowrap; padding: 0.2em 0.8em"


class Line(NamedTuple):
    """One learner at the last round.

    Attributes
    ----------
    learner : str
    replicates : int
    regret : float
        The mean; of MDPs, of the expected regret.
    relative, error : float
        The mean of what each replicate's regret is relative to its losses, and the standard error
        of that mean (nan for one replicate).
    difference, low, high : float
        The mean of the relative regret minus that of the first learner, replicate by replicate,
        and its 95% interval; nan for the first itself.
    better : int
        In how many replicates it was below that of the first learner.
    """

    learner: str
    replicates: int
    regret: float
    relative: float
    error: float
    difference: float
    low: float
    high: float
    better: int


@dataclass(frozen=True)
class Summary:
    """The regret of some learners at the last round; prints as a table.

    Attributes
    ----------
    title : str
    name, unit : str
        Which regret it is, and what it is relative to.
    lines : tuple of Line
        One for each learner.

    Examples
    --------
    >>> from unbounded import SCB, Uniform, compare
    >>> def losses(t, arm, q, rng):
    ...     return [0.0, 1.0, 1.0]
    >>> print(compare({"SCB": SCB(3), "guess": Uniform(3)}, losses, 300, 5, seed=1).summary())
    against losses, 300 rounds, 5 replicates
    learner  regret  regret / range  ± s.e.  minus SCB  95% interval  better
    SCB      28      28              3.271
    guess    201.8   201.8           5.389   173.8      [161, 186.6]  0 of 5
    """

    title: str
    name: str
    unit: str
    lines: tuple[Line, ...]

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    def __repr__(self) -> str:
        rows = self._texts()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        notes = [NEGATIVE] if any(line.relative < 0.0 for line in self.lines) else []
        return "\n".join(map(printable, [self.title, *lines, *notes]))

    def to_latex(self, caption: str | None = None, label: str = "tab:regret") -> str:
        r"""Return the table for LaTeX, in the style of the package booktabs.

        Parameters
        ----------
        caption : str, optional
            LaTeX; by default the title and what the columns are. Names of learners and of the
            adversary are escaped.
        label : str
            For ``\ref``.

        Examples
        --------
        >>> from unbounded import Uniform, simulate
        >>> result = simulate(Uniform(2), lambda t, arm, q, rng: [0.0, 1.0], 100, 4, seed=1)
        >>> print(result.summary().to_latex(label="tab:first").splitlines()[3])
          \label{tab:first}
        """
        columns = f"Mean {self.name} {self.title}, relative to {self.unit} with its standard error"
        if len(self.lines) > 1:
            columns += (
                f"; the difference to {self.lines[0].learner} replicate by replicate with its 95% "
                "interval, and the replicates in which it is below 0"
            )
        return latex_table(self._texts(), caption or f"{escaped(columns)}.", label)

    def _texts(self) -> list[list[str]]:
        head = ["learner", self.name, f"{self.name} / {self.unit}", "± s.e."]
        several = len(self.lines) > 1
        if several:
            head += [f"minus {self.lines[0].learner}", "95% interval", "better"]
        rows = [head]
        for k, line in enumerate(self.lines):
            row = [line.learner, *map(_short, (line.regret, line.relative, line.error))]
            if several:
                there = k > 0
                interval = f"[{_short(line.low)}, {_short(line.high)}]"
                row += [_short(line.difference) if there else "", interval if there else ""]
                row += [f"{line.better} of {line.replicates}" if there else ""]
            rows.append(row)
        return rows

    def _repr_html_(self) -> str:
        return self.html("")

    def html(self, kind: str) -> str:
        """Return a table for notebooks; ``kind`` is what to call the results."""
        head, *rows = self._texts()
        title = f"<b>{escape(kind)}</b> {escape(self.title)}"
        parts = [f"<caption style='{_CAPTION}'>{title}</caption>", _html_row("th", head)]
        parts += [_html_row("td", row) for row in rows]
        return f"<table>{''.join(parts)}</table>"


def summary(named: Mapping[str, Played]) -> Summary:
    """Of results that have their rounds and replicates in common."""
    first = next(iter(named.values()))
    lines = tuple(_line(name, one, first) for name, one in named.items())
    return Summary(_title(named), first.shown.name, first.shown.unit, lines)


def _line(name: str, one: Played, first: Played) -> Line:
    columns, others = one.columns(), first.columns()
    relative = f"relative_{one.shown.column}"
    own, less = columns[relative][:, -1], others[relative][:, -1]
    regret = _mean(columns[one.shown.column][:, -1])
    error = standard_error(own) if own.size > 1 else math.nan
    if one is first:
        nan = math.nan
        return Line(name, own.size, regret, float(own.mean()), error, nan, nan, nan, 0)
    difference, low, high = mean_interval(own - less)
    if own.size == 1:
        low = high = math.nan
    better = int((own < less).sum())
    return Line(name, own.size, regret, float(own.mean()), error, difference, low, high, better)


def _mean(values: NDArray[np.float64]) -> float:
    with np.errstate(over="ignore", invalid="ignore"):  # of losses near the largest float
        return float(values.mean())


def paired(named: Mapping[str, Played]) -> bool:
    """Return whether no replicate shows that the losses depended on the learner."""
    first, *others = (one.met() for one in named.values())
    return all(np.array_equal(first, other) for other in others)


def _title(named: Mapping[str, Played]) -> str:
    first = next(iter(named.values()))
    rounds, replicates = int(first.checkpoints[-1]), first.clipped.shape[0]
    many = "replicate" if replicates == 1 else "replicates"
    title = f"against {first.adversary}, {rounds} {first.length}, {replicates} {many}"
    return title if paired(named) else f"{title}, losses that depend on the learner"


def one_line(kind: str, named: Mapping[str, Played]) -> str:
    """Show all in one line, whatever the arrays hold."""
    found = summary(named)
    parts = []
    for line in found.lines[:_MOST]:
        error = "" if math.isnan(line.error) else f" ± {line.error:.2g}"
        parts.append(f"{_flat(line.learner)} {_short(line.relative)}{error}")
    if len(found.lines) > _MOST:
        parts.append(f"and {len(found.lines) - _MOST} more")
    return f"<{kind} {_flat(found.title)}: {found.name} / {found.unit} {', '.join(parts)}>"


def html(kind: str, named: Mapping[str, Played]) -> str:
    """Return the kind and the summary."""
    return summary(named).html(kind)


def _html_row(tag: str, texts: list[str]) -> str:
    style = "padding: 0.2em 0.8em; white-space: nowrap; text-align:"
    aligned = ["left", *["right"] * (len(texts) - 1)]
    cells = [
        f"<{tag} style='{style} {side}'>{escape(text)}</{tag}>"
        for side, text in zip(aligned, texts, strict=True)
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _flat(text: str) -> str:
    return printable(" ".join(text.split()))


def _short(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4g}"


def escaped(text: str) -> str:
    r"""Escape text for LaTeX: what is special there, and the symbols of our tables.

    Examples
    --------
    >>> from unbounded.results.summary import escaped
    >>> print(escaped("my_arm & 50%"))
    my\_arm \& 50\%
    """
    return "".join(_SPECIAL.get(character, character) for character in " ".join(text.split()))


def latex_table(rows: Sequence[Sequence[str]], caption: str, label: str, columns: str = "") -> str:
    """Return a ``table`` environment; ``rows`` are plain text, the first of them the head.

    ``caption`` is LaTeX. ``columns`` are those of ``tabular``: by default the first is aligned at
    the left and the others at the right.
    """
    head, *body = [" & ".join(map(escaped, row)) + r" \\" for row in rows]
    lines = [
        r"\begin{table}", r"  \centering", rf"  \caption{{{caption}}}", rf"  \label{{{label}}}",
        rf"  \begin{{tabular}}{{{columns or 'l' + 'r' * (len(rows[0]) - 1)}}}",
        r"    \toprule", f"    {head}", r"    \midrule", *(f"    {row}" for row in body),
        r"    \bottomrule", r"  \end{tabular}", r"\end{table}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"
