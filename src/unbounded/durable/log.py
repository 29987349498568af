"""The journal as a table: one row for each ask, with what became of it; and for other programs.

Parquet needs no more than ``durable.log().write_parquet("log.parquet")``. `vw_lines` and
`open_bandit_feedback` are two formats in which bandit logs are evaluated elsewhere; both have only
what was told.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from unbounded.core.occupancy.layout import PAIR, Layers
from unbounded.durable.errors import DurableError
from unbounded.durable.feedback import episode_of
from unbounded.durable.replica import id_of
from unbounded.durable.rows import ARMS, ASK, TELL, Row
from unbounded.durable.session import Session
from unbounded.learners.bandit import Learner

try:
    import polars as pl
except ImportError as error:
    raise DurableError(f"{error.name} is missing: pip install 'unbounded[experiments]'") from error

_TIME = pl.Datetime("us", "UTC")
COLUMNS: dict[str, Any] = {
    "id": pl.Int64,
    "time": _TIME,
    "key": pl.String,
    "epoch": pl.Int64,
    "arm": pl.Int64,
    "name": pl.String,
    "probability": pl.Float64,
    "loss": pl.Float64,
    "scale": pl.Float64,
    "clipped": pl.Int64,
    "status": pl.String,
    "told": _TIME,
    "asked_as": pl.Int64,
    "told_as": pl.Int64,
    "available": pl.List(pl.String),
    "context": pl.String,
}
"""The columns of a bandit's log. ``clipped`` counts, as an episode may have several; ``available``
is null where all arms were, ``context`` where none is stored."""
EPISODES: dict[str, Any] = {
    "states": pl.List(pl.Int64),
    "actions": pl.List(pl.Int64),
    "losses": pl.List(pl.Float64),
    "chances": pl.List(pl.Float64),
}
"""What the log of a learner for MDPs has besides."""


def log(session: Session, learner: Any, end: int | None = None) -> pl.DataFrame:
    """Return the log of a snapshot of the file; every row of the journal is checked.

    ``learner`` is the one of the file, at any moment. With an ``end``, only of the asks before that
    row, none of which is outstanding.
    """
    rows: dict[int, dict[str, Any]] = {}
    plans: dict[int, bytes] = {}
    layers = None if isinstance(learner, Learner) else learner.layers
    first, last = session.look(lambda: (session.store.snapshot("first"), session.store.last))
    until = last if end is None else end - 1
    contexts = {context.n: context.text for context in session.contexts(until)}
    settled = 0
    for row in session.rows(first.n, first.chain, last):
        if row.n > until and settled == len(rows):
            break
        if row.kind == ASK and row.n > until:
            continue
        if row.kind == ASK:
            rows[id_of(row)] = _asked(row) | {"context": contexts.get(row.n)}
            if layers is not None and row.payload is not None:
                plans[id_of(row)] = row.payload
            elif row.payload is not None:
                rows[id_of(row)]["available"] = json.loads(row.payload).get("available")
        elif row.kind != ARMS and row.choice in rows:
            settled += 1
            rows[row.choice].update(_settled(row))
            if layers is not None and row.payload is not None:
                rows[row.choice].update(_episode(learner, plans[row.choice], row.payload))
            plans.pop(row.choice, None)
    schema = COLUMNS if layers is None else COLUMNS | EPISODES
    columns = {name: [row.get(name) for row in rows.values()] for name in schema}
    return pl.DataFrame(columns, schema=schema)


def _asked(row: Row) -> dict[str, Any]:
    return {
        "id": id_of(row),
        "time": row.at,
        "key": row.key,
        "epoch": row.epoch,
        "arm": row.arm,
        "name": row.name,
        "probability": row.probability,
        "status": "waiting",
        "asked_as": row.n,
    }


def _settled(row: Row) -> dict[str, Any]:
    booked = "forgotten" if row.loss is None else "expired"
    return {
        "loss": row.loss,
        "scale": row.scale,
        "clipped": row.clipped,
        "status": "told" if row.kind == TELL else booked,
        "told": row.at,
        "told_as": row.n,
    }


def _episode(learner: Any, plan: bytes, told: bytes) -> dict[str, Any]:
    states, actions, losses = episode_of(learner, told)
    layers: Layers = learner.layers
    pi = np.frombuffer(plan, "<f8", offset=8 * (1 + layers.horizon))
    first = layers.table[PAIR, 1:-1]
    chances = pi[first + np.array(states) * layers.n_actions + np.array(actions)]
    return {
        "states": states,
        "actions": actions,
        "losses": losses,
        "chances": chances.tolist(),
        "probability": float(np.prod(chances)),
    }


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
    """Return a log in the format ``bandit_feedback`` of the Open Bandit Pipeline.

    A dict of arrays; that package, which is for older versions of Python, is not tested with.
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
    if log["arm"].null_count():
        raise ValueError("only the log of a bandit can be written so: this one has no arms")
    if "epoch" in log.columns:
        log = log.filter(pl.col("epoch") == pl.col("epoch").max())
    return log.filter(pl.col("loss").is_not_null())
