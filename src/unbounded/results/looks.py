"""What a learner looks like in a notebook, and what it has played as a chart."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from unbounded.learners.bandit import Learner
from unbounded.results.plot import line, own_axes

_MOST = 12  # arms that are shown
_WINDOWS = 60  # of the chart
_BAR = "display: inline-block; height: 0.7em; background: #2b5bc6; width: {:.1f}em"
_CELL = "text-align: {}; padding: 0.1em 0.8em"


def html(learner: Any) -> str:
    """Return a table: settings, what was learned, and the probabilities of the likeliest arms."""
    facts = [f"{learner.clipped:,} clipped", f"{len(learner.outstanding):,} outstanding"]
    rows = ""
    if isinstance(learner, Learner):
        facts = [f"scale {learner.scale:.6g}", *facts]
        try:
            q = learner.probabilities()
        except TypeError:  # one that needs advice
            q = np.empty(0)
        names = learner.arm_names
        likeliest = np.argsort(-q, kind="stable")[:_MOST]
        rows = "".join(_row(names[arm], f"{q[arm]:.4f}", q[arm]) for arm in likeliest.tolist())
        if q.size > _MOST:
            rest = float(q.sum() - q[likeliest].sum())
            rows += _row(f"{q.size - _MOST:,} others", f"{max(rest, 0.0):.4f}", max(rest, 0.0))
        heads = "".join(
            f"<th style='{_CELL.format(side)}'>{head}</th>"
            for head, side in (("arm", "left"), ("probability", "right"), ("", "left"))
        )
        rows = f"<tr>{heads}</tr>{rows}" if q.size else ""
    title = f"<b>{escape(repr(learner))}</b><br>{escape(', '.join(facts))}"
    return f"<table><caption style='text-align: left'>{title}</caption>{rows}</table>"


def _row(arm: str, probability: str, share: float) -> str:
    bar = f"<span style='{_BAR.format(12.0 * share)}'></span>"
    cells = ((escape(arm), "left"), (probability, "right"), (bar, "left"))
    row = "".join(f"<td style='{_CELL.format(side)}'>{text}</td>" for text, side in cells)
    return f"<tr>{row}</tr>"


def drawn(learner: Any, ax: Any) -> Any:
    """Draw what was played: shares of arms over time, or the mean loss of episodes."""
    history = learner.history
    if ax is None:
        ax = own_axes()
    rounds = history["loss"].size
    parts = np.array_split(np.arange(rounds), max(min(_WINDOWS, rounds // 10), 1))
    ends = [int(part[-1]) + 1 for part in parts if part.size]
    if isinstance(learner, Learner):
        names = learner._arm_names or [f"arm {k}" for k in range(learner.n_arms)]
        counts = np.bincount(history["arm"], minlength=learner.n_arms)
        for k, arm in enumerate(np.argsort(-counts, kind="stable")[: min(7, learner.n_arms)]):
            shares = [float((history["arm"][part] == arm).mean()) for part in parts if part.size]
            ax.plot(ends, shares, label=names[arm], **line(k))
        ax.set(xlabel="round", ylabel="share of the rounds", ylim=(0.0, 1.0))
        ax.legend(frameon=False)
    else:
        means = [float(history["loss"][part].mean()) for part in parts if part.size]
        ax.plot(ends, means, **line(0))
        ax.set(xlabel="episode", ylabel="mean loss of an episode")
    ax.set_title(repr(learner), fontsize="medium", loc="left")
    return ax
