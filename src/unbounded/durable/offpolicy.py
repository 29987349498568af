"""What another policy would have lost, estimated from the log of a learner.

At each ask the log has the probability of what was chosen, so a loss divided by it is an unbiased
estimate of a whole round, whatever the learner did before. With m_t a prediction and h_t a weight,
both made of what was known at ask t, and pi the policy,

    Gamma_t = sum_a pi(a) m_t(a) + pi(A_t) / p_t(A_t) (Y_t - m_t(A_t))
    V       = sum_t h_t Gamma_t / sum_t h_t,   error^2 = sum_t h_t^2 (Gamma_t - V)^2 / (sum_t h_t)^2

is doubly robust (m_t the mean loss of the arm so far) or by inverse propensities alone (m_t = 0).

*Which interval, and why.* The rounds of a log are not independent: what was lost decides what is
chosen next, and the mean of an arm's own losses is a wrong estimate (with losses that drift, very
wrong). But Gamma_t, less its mean, are martingale differences, and the interval is that of their
central limit theorem: V and the estimated error, with Student's quantile for the effective number
of samples. It needs probabilities that do not vanish too fast, and the warning says when they have.
Dividing by an estimated error makes it free of the scale of the losses; confidence sequences would
hold with few samples and at all times, but need a bound of the losses, which nobody here knows.

*Of what.* ``weights="even"``, h_t = 1, is for the plain average over the rounds of the log, and
assumes nothing of how losses change. ``weights="stable"`` is for arms whose mean losses stay the
same: then any h_t will do, and h_t = (sum_a pi(a)^2 / p_t(a))^(-1/2) keeps the variance of the
terms the same, which the theorem likes, and is shorter where probabilities were small at times
(Hadad, Hirshberg, Zhan, Wager & Athey 2021). The p_t of arms that were not chosen are not in the
log: that of the last time at which the arm was chosen, which is known at t, takes their place. With
losses that drift, this is the average over other rounds, and no interval for the plain one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from unbounded import frames
from unbounded.core.arrays import Vector
from unbounded.results.intervals import student
from unbounded.validation import checked_option, checked_within, shown, warn

if TYPE_CHECKING:
    import polars as pl

FEW = 50.0  # effective samples below which an interval is not to be trusted
_METHODS = ("dr", "ips")
_WEIGHTS = ("even", "stable")


class FewSamplesWarning(UserWarning):
    """A log says too little about a policy for an interval to be trusted."""


@dataclass(frozen=True)
class Estimate:
    """The mean loss per round of a policy, with an interval; what `estimate` returns.

    Parameters
    ----------
    loss, low, high : float
        The estimate and its interval.
    effective : float
        To how many rounds of the policy itself the log amounts.
    rounds, missing : int
        Rounds that were used, and rounds that were left out: without a loss, or without an arm of
        the policy.

    Examples
    --------
    >>> from unbounded.durable import Estimate
    >>> seen = Estimate(loss=2.0, low=1.5, high=2.5, effective=800.0, rounds=1000, missing=3)
    >>> seen.high < 3.0  # the policy costs less than 3 per round
    True
    >>> seen.reward, seen.reward_interval
    (-2.0, (-2.5, -1.5))
    """

    loss: float
    low: float
    high: float
    effective: float
    rounds: int
    missing: int

    @property
    def reward(self) -> float:
        """The mean reward."""
        return -self.loss

    @property
    def reward_interval(self) -> tuple[float, float]:
        """The interval of the mean reward: ``(-high, -low)``."""
        return -self.high, -self.low


def estimate(
    log: Any,
    policy: str
    | int
    | Mapping[str, float]
    | Mapping[int, float]
    | Callable[[Mapping[str, Any]], Any],
    *,
    method: Literal["dr", "ips"] = "dr",
    weights: Literal["even", "stable"] = "even",
    level: float = 0.95,
) -> Estimate:
    """Estimate the mean loss of a policy from the log of a bandit.

    Parameters
    ----------
    log : frame
        What `Durable.log` returned, or a part of its rows in their order. If arms were added or
        retired, the last epoch in it is used. Or any frame of polars or pandas, or a dict of
        arrays, with a row for each round: ``arm`` (names or numbers), ``probability`` (that of the
        arm when it was chosen) and ``loss`` or ``reward`` (missing where it never came).
    policy : str, int, mapping or callable
        An arm, or the probabilities of several; or a function that returns either for the context
        of a request. Rounds without a context are left out then.
    method : {"dr", "ips"}
        Doubly robust, or by inverse propensities alone.
    weights : {"even", "stable"}
        Whether all rounds count alike, or those more in which the policy's arms were likely, for
        arms whose mean losses do not change.
    level : float
        Of the interval.

    Returns
    -------
    Estimate

    Notes
    -----
    Where some arms were not available, the policy is restricted to those that were; rounds in which
    none of its arms was are left out.

    Rounds whose loss never came are left out; if whether it came has to do with the loss, the
    estimate is wrong, and `Durable.expire` with a loss is the remedy. A `FewSamplesWarning` says
    when the log has too little of the policy.

    Examples
    --------
    >>> import tempfile
    >>> from unbounded import SCB
    >>> from unbounded.durable import Durable, estimate
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     learner = SCB(n_arms=2, profile="paper", seed=0)  # explores more
    ...     arms = Durable(f"{directory}/arms.db", learner, arms=["old", "new"])
    ...     for t in range(600):
    ...         choice = arms.ask()
    ...         _ = arms.tell(choice.id, loss=5.0 + choice.arm + 0.1 * (t % 3))
    ...     found = estimate(arms.log(), "new")
    ...     arms.close()
    >>> found.low < 6.1 < found.high
    True

    Of any log:

    >>> clicks = {"arm": ["a", "b"] * 200, "probability": [0.5] * 400, "reward": [1.0, 3.0] * 200}
    >>> round(estimate(clicks, {"a": 0.5, "b": 0.5}).reward, 6)
    2.0
    """
    checked_option("method", method, _METHODS)
    checked_option("weights", weights, _WEIGHTS)
    level = checked_within("level", level, 0.5, 0.9999)
    names, table = table_of(log)
    known = set(names) - {None}
    if callable(policy):
        if table.context is None:
            raise ValueError("a policy of contexts needs a log with the column 'context'")
        shares = [{} if one is None else _shares(policy(one), known) for one in table.context]
    else:
        shares = [_shares(policy, known)] * len(names)
    told = np.flatnonzero(~np.isnan(table.loss))
    given = table.available
    shares = [_restricted(*pair) for pair in zip(shares, given, strict=True)]
    told = told[[len(shares[t]) > 0 for t in told]]  # else the policy says nothing
    if told.size < 2:
        raise ValueError("the log has fewer than two losses: there is nothing to estimate from")
    losses = table.loss[told]
    if not np.isfinite(losses).all():
        raise ValueError("the losses of a log must be finite")
    unit = float(np.abs(losses).max()) or 1.0  # squares must not overflow
    rounds = _Rounds(
        [names[t] for t in told],
        table.probability[told].tolist(),
        (losses / unit).tolist(),
        table.asked[told].tolist(),
        table.told[told].tolist(),
        [shares[t] for t in told],
    )
    gamma, ratio, h = _scores(rounds, predicts=method == "dr", even=weights == "even")
    total = float(h.sum())
    value = float(h @ gamma) / total
    error = math.sqrt(float((h * h) @ (gamma - value) ** 2)) / total
    weight = h * ratio
    squares = float(weight @ weight)
    effective = float(weight.sum()) ** 2 / squares if squares > 0.0 else 0.0
    if effective < FEW:
        warn(
            f"the log amounts to {effective:.0f} rounds of {shown(policy)}: the interval is not to "
            "be trusted; let it play more of it, or ask for a policy nearer to what was played",
            FewSamplesWarning,
        )
    half = student(max(effective - 1.0, 1.0), level) * error
    low, high = (value - half) * unit, (value + half) * unit
    return Estimate(value * unit, low, high, effective, told.size, len(names) - told.size)


def by_context(log: pl.DataFrame, *names: str) -> dict[Hashable, pl.DataFrame]:
    """Return the parts of a log by what the contexts of the requests have under these names.

    Parameters
    ----------
    log : polars.DataFrame
        What `Durable.log` returned.
    *names : str
        Names in the contexts. With several, the parts are found by tuples of values. A value is
        None where a context lacks it, or is missing.

    Examples
    --------
    >>> import polars as pl
    >>> from unbounded.durable import by_context
    >>> log = pl.DataFrame({"context": ['{"region": "eu"}', '{"region": "us"}'], "loss": [1, 2]})
    >>> by_context(log, "region")["us"]["loss"].to_list()
    [2]
    """
    frames.check_has(log, "context")
    rows: dict[Hashable, list[int]] = {}
    for t, context in enumerate(frames.mappings(log, "context")):
        values = tuple((context or {}).get(name) for name in names)
        rows.setdefault(values[0] if len(names) == 1 else values, []).append(t)
    return {values: log[some] for values, some in rows.items()}


class _Table(NamedTuple):
    probability: Vector
    loss: Vector  # NaN where it never came
    asked: Vector  # numbers of the asks and the tells, in their order
    told: Vector
    available: list[Any]  # the arms that were, or None for all
    context: list[Any] | None  # of each request, None where there is none


def table_of(log: Any, key: str = "name") -> tuple[list[Any], _Table]:
    """Return the arms, by name if they have any or by number, and the other columns of a log, of
    its last epoch."""
    there = frames.columns_of(log)
    key = key if key in there else "arm"
    frames.check_has(log, key)
    names = frames.labels(log, key)
    p, loss = frames.propensities(log), frames.losses(log)
    asked: Vector = np.arange(0.0, 2.0 * len(names), 2.0)
    told = asked + 1.0  # each loss before the next choice
    if "asked_as" in there and "told_as" in there:
        asked, told = frames.numbers(log, "asked_as"), frames.numbers(log, "told_as")
    available: list[Any] = [None] * len(names)
    if "available" in there:
        available = frames.lists(log, "available")
    context = frames.mappings(log, "context") if "context" in there else None
    sizes = {len(names), p.size, loss.size, asked.size, told.size, len(available)}
    if len(sizes | {len(names if context is None else context)}) > 1:
        raise ValueError("the columns of a log must be of one length")
    if "epoch" in there and names:
        epoch = frames.numbers(log, "epoch")
        last = np.flatnonzero(epoch == epoch.max())
        names = [names[t] for t in last]
        available = [available[t] for t in last]
        context = None if context is None else [context[t] for t in last]
        p, loss, asked, told = p[last], loss[last], asked[last], told[last]
    return names, _Table(p, loss, asked, told, available, context)


class _Rounds(NamedTuple):
    names: list[Any]
    p: list[float]
    losses: list[float]
    asked: list[float]
    told: list[float]
    shares: list[dict[Any, float]]  # of the policy, among the arms that were available


def _shares(policy: Any, known: set[Any]) -> dict[Any, float]:
    if not isinstance(policy, str | int | Mapping):
        raise TypeError(
            "policy must be the name of an arm or a dict of probabilities by name, as "
            f'{{"a": 0.5, "b": 0.5}}, got {shown(policy)}'
        )
    shares = dict(policy) if isinstance(policy, Mapping) else {policy: 1.0}
    shares = {name: float(share) for name, share in shares.items() if share != 0.0}
    for name, share in shares.items():
        if name not in known:
            raise ValueError(f"{name!r} was never played: the log says nothing about it")
        if not 0.0 < share <= 1.0:
            raise ValueError(f"the probability of {name!r} must be in [0, 1], got {share!r}")
    if abs(sum(shares.values()) - 1.0) > 1e-9:
        raise ValueError(f"the probabilities of a policy must sum to 1, got {shown(policy)}")
    return shares


def _scores(rounds: _Rounds, *, predicts: bool, even: bool) -> tuple[Vector, Vector, Vector]:
    """Gamma_t, pi(A_t) / p_t(A_t) and h_t of each round.

    Events are taken in their order: a loss counts from its tell on, a probability from its ask.
    """
    T = len(rounds.p)
    gamma, ratio, h = np.zeros(T), np.zeros(T), np.ones(T)
    events = sorted(
        [(n, t, True) for t, n in enumerate(rounds.asked)]
        + [(n, t, False) for t, n in enumerate(rounds.told)]
    )
    shares = {name: None for one in rounds.shares for name in one}  # in one order
    last = dict.fromkeys(shares, 1.0 / len(set(rounds.names)))  # the p when it was last chosen
    past = dict.fromkeys([*shares, None], (0.0, 0))  # sum and number of losses; None: of all arms
    m = dict.fromkeys(shares, 0.0)
    for _, t, asks in events:
        name = rounds.names[t]
        if asks:
            pi = rounds.shares[t]
            spread = sum(part**2 / last[a] for a, part in pi.items())
            h[t] = 1.0 if even else 1.0 / math.sqrt(spread)
            gamma[t] = sum(part * m[a] for a, part in pi.items())
            if name in pi:
                ratio[t] = pi[name] / rounds.p[t]
                gamma[t] += ratio[t] * (rounds.losses[t] - m[name])
                last[name] = rounds.p[t]
        elif predicts:
            for a in (name, None):
                if a in past:
                    total, count = past[a]
                    past[a] = (total + rounds.losses[t], count + 1)
            for a in shares:  # an arm that was not told yet is taken for an average one
                total, count = past[a] if past[a][1] else past[None]
                m[a] = total / count
    return gamma, ratio, h


def _restricted(shares: dict[Any, float], available: Any) -> dict[Any, float]:
    """Return the policy among the available arms."""
    if available is None:
        return shares
    some = {name: share for name, share in shares.items() if name in available}
    total = sum(some.values())
    return {name: share / total for name, share in some.items()}
