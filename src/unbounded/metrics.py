"""Prometheus metrics of learners: as text, as an ASGI application, as a collector.

The counters of a `Durable` are those of its storage, the same in all workers. A scrape reads the
rows that this process has not seen yet, as its next `ask` would.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from unbounded.durable.errors import BusyError, DurableError
from unbounded.durable.learner import Durable
from unbounded.durable.replica import Replica, Status
from unbounded.learners.bandit import Learner
from unbounded.learners.base import AskTell
from unbounded.validation import shown

try:
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
    from prometheus_client.metrics_core import CounterMetricFamily as Counter
    from prometheus_client.metrics_core import GaugeMetricFamily as Gauge
    from prometheus_client.metrics_core import Metric
    from prometheus_client.metrics_core import SummaryMetricFamily as Summary
    from prometheus_client.registry import Collector
except ImportError as error:
    raise DurableError(f"{error.name} is missing: pip install 'unbounded[service]'") from error

QUANTILES = (0.5, 0.9, 0.99)

Source = Durable[Any] | AskTell[Any]

__all__ = ["LearnerCollector", "asgi", "exposition"]


class LearnerCollector(Collector):
    """The metrics of learners, for a registry of ``prometheus_client``.

    Parameters
    ----------
    learners : Durable, learner or mapping
        One, or several by name: the label ``learner``.

    Notes
    -----
    A learner in memory counts only what it was told: counters by arm and quantiles need a
    `Durable`.

    Examples
    --------
    >>> from prometheus_client import REGISTRY
    >>> from unbounded import SCB
    >>> from unbounded.metrics import LearnerCollector
    >>> collector = LearnerCollector({"replicas": SCB(n_arms=2)})
    >>> REGISTRY.register(collector)
    >>> REGISTRY.get_sample_value("unbounded_probability", {"learner": "replicas", "arm": "0"})
    0.5
    >>> REGISTRY.unregister(collector)
    """

    def __init__(self, learners: Source | Mapping[str, Source]) -> None:
        named = learners if isinstance(learners, Mapping) else {"default": learners}
        for name, learner in named.items():
            if not isinstance(learner, Durable | AskTell):
                raise TypeError(f"{name!r} must be a Durable or a learner, not {shown(learner)}")
        self._learners = dict(named)

    def describe(self) -> list[Metric]:
        """Return the metrics without their values."""
        return list(_families().values())

    def collect(self) -> Iterator[Metric]:
        """Return the metrics as they are now."""
        families = _families()
        for name, learner in self._learners.items():
            _add(families, name, _status(learner))
        return iter(families.values())


def exposition(learners: Source | Mapping[str, Source]) -> str:
    """Return the metrics of learners in Prometheus' text format.

    Parameters
    ----------
    learners : Durable, learner or mapping
        As for `LearnerCollector`.

    Examples
    --------
    >>> from unbounded import SCB
    >>> from unbounded.metrics import exposition
    >>> print(exposition(SCB(n_arms=2)).splitlines()[-1])
    unbounded_epoch{learner="default"} 0.0
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(LearnerCollector(learners))
    return generate_latest(registry).decode()


def asgi(
    learners: Source | Mapping[str, Source],
) -> Callable[[Any, Any, Any], Awaitable[None]]:
    """Return an ASGI application that answers with the metrics: ``app.mount("/metrics", ...)``.

    Parameters
    ----------
    learners : Durable, learner or mapping
        As for `LearnerCollector`.

    Examples
    --------
    >>> from unbounded import SCB
    >>> from unbounded.metrics import asgi
    >>> application = asgi(SCB(n_arms=2))
    """

    async def application(scope: Any, receive: Any, send: Any) -> None:
        try:
            status, text = 200, await asyncio.to_thread(exposition, learners)
        except BusyError as error:
            status, text = 503, str(error)
        kind = CONTENT_TYPE_LATEST if status == 200 else "text/plain; charset=utf-8"
        headers = [(b"content-type", kind.encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": text.encode()})

    return application


def _families() -> dict[str, Any]:
    """Return the metrics by their names without the prefix."""
    arm, learner = ["learner", "arm"], ["learner"]
    families = [
        Counter("unbounded_asks", "Choices made.", labels=arm),
        Counter("unbounded_tells", "Choices whose loss was told.", labels=arm),
        Counter("unbounded_expired", "Choices that expired with a booked loss.", labels=arm),
        Counter("unbounded_forgotten", "Choices ended without a loss.", labels=arm),
        Counter("unbounded_clipped", "Losses clipped, in this epoch.", labels=learner),
        Gauge("unbounded_outstanding", "Choices waiting for their loss.", labels=learner),
        Gauge("unbounded_probability", "Of each arm, at the next ask.", labels=arm),
        Summary(
            "unbounded_loss", "Losses told or booked; quantiles of the newest 1,000.", labels=arm
        ),
        Gauge("unbounded_scale", "Scale of the losses, as learned.", labels=learner),
        Gauge("unbounded_half_life_rounds", "Memory in rounds; +Inf: all.", labels=learner),
        Gauge("unbounded_epoch", "How often arms were added or retired.", labels=learner),
    ]
    return {family.name.removeprefix("unbounded_"): family for family in families}


def _status(learner: Source) -> Status:
    if isinstance(learner, Durable):
        return learner.status()
    names = [str(arm) for arm in range(learner.n_arms)] if isinstance(learner, Learner) else []
    found = Replica(learner, names, 0, b"").status()
    return replace(found, outstanding=len(learner.outstanding))


def _add(families: Mapping[str, Any], name: str, status: Status) -> None:
    """Add the values of one learner."""
    recent: dict[str, list[float]] = {}
    for arm, loss in status.recent:
        recent.setdefault(arm, []).append(loss)
    for arm, counts in status.counts.items():
        labels = [name, arm]
        families["asks"].add_metric(labels, counts.asked)
        families["tells"].add_metric(labels, counts.told)
        families["expired"].add_metric(labels, counts.expired)
        families["forgotten"].add_metric(labels, counts.forgotten)
        families["loss"].add_metric(labels, counts.told + counts.expired, counts.loss)
        losses = sorted(recent.get(arm, ()))
        for q in QUANTILES if losses else ():
            sample = {"learner": name, "arm": arm, "quantile": str(q)}
            value = losses[math.ceil(q * len(losses)) - 1]
            families["loss"].add_sample("unbounded_loss", sample, value)
    if not status.counts:
        families["tells"].add_metric([name, ""], status.rounds)
    for arm, p in zip(status.arms, status.probabilities, strict=False):
        families["probability"].add_metric([name, arm], p)
    families["outstanding"].add_metric([name], status.outstanding)
    families["clipped"].add_metric([name], status.clipped)
    families["epoch"].add_metric([name], status.epoch)
    if status.scale is not None:
        families["scale"].add_metric([name], status.scale)
    half_life = status.settings.get("half_life")
    if half_life != "auto":  # which has several
        rounds = math.inf if half_life is None else half_life
        families["half_life_rounds"].add_metric([name], rounds)
