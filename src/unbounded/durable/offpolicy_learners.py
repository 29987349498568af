"""What learners would have lost that learned from a log, as to choose a half-life by it.

A learner cannot just be played again on a log: it would choose other arms, whose losses nobody
knows. But a round with arm A_t, chosen with probability p_t(A_t), and loss Y_t is an unbiased
estimate of all losses of that round, Y_t / p_t(A_t) for A_t and 0 for the others, and it may be
learned by whoever did not choose it (`learn_from`). So every learner learns the same estimates.
Before that, it would choose with the distribution pi_t, made of earlier rounds only, and

    Gamma_t = m_t + pi_t(A_t) / p_t(A_t) (Y_t - m_t)

is an unbiased estimate of what that costs, <pi_t, losses of round t>, with the mean m_t of the
losses that were told before, as the ratio has the mean 1. Gamma_t less what it estimates are
martingale differences, for two learners' difference in Gamma_t as well: intervals are those of
`offpolicy`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from unbounded.core.arrays import Vector
from unbounded.durable.offpolicy import FEW, FewSamplesWarning, table_of
from unbounded.learners.bandit import Learner
from unbounded.results.intervals import student
from unbounded.validation import checked_within, shown, warn


@dataclass(frozen=True)
class LearnerEstimate:
    """The mean loss per round of a learner that learns from a log, with intervals.

    Parameters
    ----------
    loss, low, high : float
        The estimate and its interval.
    change, change_low, change_high : float
        How much more that is than for the first of the learners; 0 for that one.
    effective : float
        To how many rounds of the learner itself the log amounts.

    Examples
    --------
    >>> from unbounded.durable import LearnerEstimate
    >>> seen = LearnerEstimate(2.0, 1.8, 2.2, -0.5, -0.7, -0.3, 400.0)
    >>> seen.change_high < 0.0  # it costs less than the first one
    True
    """

    loss: float
    low: float
    high: float
    change: float
    change_low: float
    change_high: float
    effective: float


def estimate_learners(
    log: Any, learners: Mapping[Hashable, Learner], *, level: float = 0.95
) -> dict[Hashable, LearnerEstimate]:
    """Estimate what several learners would have lost, as to choose a half-life.

    Parameters
    ----------
    log : frame
        What `Durable.log` returned, or any log with the columns ``arm`` (numbers), ``probability``,
        and ``loss`` or ``reward``. Rounds without a loss are left out.
    learners : mapping
        New learners by a name. The first one is what the others are compared with: what is in use.
        They learn the log, so that the chosen one can go on.
    level : float
        Of each interval. With many learners, take a higher one: the best of many is partly luck.

    Returns
    -------
    dict
        A `LearnerEstimate` for each.

    Notes
    -----
    It is about learners that *learn from this log*. One that chooses for itself sees more of the
    arms that it prefers, and may do better or worse. The losses of a round must not depend on what
    was chosen before. A `FewSamplesWarning` says that a learner would have chosen very differently.

    Examples
    --------
    >>> import numpy as np
    >>> from unbounded import AdaINF
    >>> from unbounded.durable import estimate_learners
    >>> arms = np.random.default_rng(0).integers(2, size=2000)
    >>> best = np.arange(2000) // 500 % 2  # it changes every 500 rounds
    >>> log = {"arm": arms, "probability": np.full(2000, 0.5), "loss": (arms != best) * 1.0}
    >>> learners = {h: AdaINF(2, half_life=h, seed=0) for h in (None, 100)}
    >>> found = estimate_learners(log, learners)
    >>> found[100].change_high < 0.0
    True
    """
    level = checked_within("level", level, 0.5, 0.9999)
    if not learners:
        raise ValueError("learners must have at least one learner, got none")
    for name, learner in learners.items():
        if not isinstance(learner, Learner):
            raise TypeError(f"learners[{name!r}] must be a bandit learner, got {shown(learner)}")
        if learner.spec.elapsed is not None:
            raise TypeError(f"learners[{name!r}] must have its half_life in rounds")
    arms, table = table_of(log, "arm")
    rounds = np.flatnonzero(~np.isnan(table.loss))
    if rounds.size < 2:
        raise ValueError("the log has fewer than two losses: there is nothing to estimate from")
    if any(table.available[t] is not None for t in rounds):
        raise ValueError("the log has rounds in which not all arms were available")
    if not np.isfinite(table.loss[rounds]).all():
        raise ValueError("the losses of a log must be finite")
    unit = float(np.abs(table.loss[rounds]).max()) or 1.0  # squares must not overflow
    events = sorted(
        [(table.asked[t], t, True) for t in rounds] + [(table.told[t], t, False) for t in rounds]
    )
    scores: dict[Hashable, tuple[Vector, Vector]] = {}
    for name, learner in learners.items():
        gamma, ratio, total, count = np.zeros(len(arms)), np.zeros(len(arms)), 0.0, 0
        for _, t, asks in events:
            p, loss = float(table.probability[t]), float(table.loss[t])
            if asks:
                mean = total / count if count else 0.0
                ratio[t] = learner.probabilities()[arms[t]] / p
                gamma[t] = mean + ratio[t] * (loss / unit - mean)
            else:
                learner.learn_from(arms[t], p, loss)
                total, count = total + loss / unit, count + 1
        scores[name] = gamma[rounds], ratio[rounds]
    first = next(iter(scores.values()))[0]
    return {
        name: _estimate(name, gamma, gamma - first, ratio, unit, level)
        for name, (gamma, ratio) in scores.items()
    }


def _estimate(
    name: Hashable, gamma: Vector, change: Vector, ratio: Vector, unit: float, level: float
) -> LearnerEstimate:
    squares = float(ratio @ ratio)
    effective = float(ratio.sum()) ** 2 / squares if squares > 0.0 else 0.0
    if effective < FEW:
        warn(
            f"the log amounts to {effective:.0f} rounds of the learner {name!r}: its intervals are "
            "not to be trusted",
            FewSamplesWarning,
        )
    half = unit * student(max(effective - 1.0, 1.0), level) / math.sqrt(gamma.size)
    loss, more = unit * float(gamma.mean()), unit * float(change.mean())
    far, apart = half * float(gamma.std()), half * float(change.std())
    return LearnerEstimate(
        loss, loss - far, loss + far, more, more - apart, more + apart, effective
    )
