"""Tables for LaTeX, in the style of the package booktabs."""

from __future__ import annotations

from collections.abc import Sequence

_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "√": r"$\surd$", "·": r"$\cdot$", "×": r"$\times$", "±": r"$\pm$", "−": r"$-$", "–": "--",
    "δ": r"$\delta$", "Σ": r"$\Sigma$", "ℓ": r"$\ell$", "∞": r"$\infty$", "≤": r"$\le$",
    **{character: f"\\{character}" for character in "{}$&#%_"},
}  # fmt: skip


def escaped(text: str) -> str:
    r"""Escape text for LaTeX: what is special there, and the symbols of our tables.

    Examples
    --------
    >>> from unbounded.results.latex import escaped
    >>> print(escaped("my_arm & 50%"))
    my\_arm \& 50\%
    """
    return "".join(_SPECIAL.get(character, character) for character in " ".join(text.split()))


def table(rows: Sequence[Sequence[str]], caption: str, label: str, columns: str = "") -> str:
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
