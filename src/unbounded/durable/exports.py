"""The log for other programs.

Parquet needs no more than ``durable.log().write_parquet("log.parquet")``. Here are two formats in
which bandit logs are evaluated elsewhere; both have only what was told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import polars as pl


def vw_lines(log: pl.DataFrame) -> Iterator[str]:
    """Lines for Vowpal Wabbit's ``--cb``: action:cost:probability, actions from 1 on.

    There is no context, so each line has the constant only, and the time as its tag.

    Examples
    --------
    >>> import polars as pl
    >>> from unbounded.durable import vw_lines
    >>> log = pl.DataFrame({"id": [7], "arm": [0], "loss": [0.5], "probability": [0.25]})
    >>> list(vw_lines(log))
    ["1:0.5:0.25 '7 |"]
    """
    columns = _told(log).select("id", "arm", "loss", "probability")
    for ticket, arm, loss, probability in columns.iter_rows():
        yield f"{arm + 1}:{loss!r}:{probability!r} '{ticket} |"


def open_bandit_feedback(log: pl.DataFrame) -> dict[str, Any]:
    """Return what the estimators of the Open Bandit Pipeline take as ``bandit_feedback``.

    Its rewards are our losses with the other sign. There is no context: one constant column.

    Examples
    --------
    >>> import polars as pl
    >>> from unbounded.durable import open_bandit_feedback
    >>> log = pl.DataFrame({"arm": [1, 0], "loss": [0.5, 2.0], "probability": [0.25, 0.75]})
    >>> feedback = open_bandit_feedback(log)
    >>> feedback["reward"].tolist(), feedback["n_actions"], feedback["pscore"].tolist()
    ([-0.5, -2.0], 2, [0.25, 0.75])
    """
    told = _told(log)
    action = told["arm"].to_numpy()
    n_actions = int(action.max()) + 1 if action.size else 0
    return {
        "n_rounds": told.height,
        "n_actions": n_actions,
        "context": np.ones((told.height, 1)),
        "action_context": np.eye(n_actions),
        "action": action,
        "position": np.zeros(told.height, dtype=np.int64),
        "reward": -told["loss"].to_numpy(),
        "pscore": told["probability"].to_numpy(),
    }


def _told(log: pl.DataFrame) -> pl.DataFrame:
    """Return what was told, in the last epoch: arms have other numbers before that."""
    import polars as pl

    if log["arm"].null_count():
        raise ValueError("only the log of a bandit can be written so: this one has no arms")
    if "epoch" in log.columns:
        log = log.filter(pl.col("epoch") == pl.col("epoch").max())
    return log.filter(pl.col("loss").is_not_null())
