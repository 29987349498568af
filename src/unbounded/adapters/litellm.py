"""A learner as a routing strategy of LiteLLM's Router: `pip install "unbounded[litellm]"`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import litellm
from litellm.integrations.custom_logger import CustomLogger
from litellm.router import CustomRoutingStrategyBase

from unbounded._recommend import recommend
from unbounded.adapters import checked_bandit
from unbounded.durable import Durable, DurableError
from unbounded.learners.bandit import Learner
from unbounded.validation import checked_loss, checked_option

TICKET = "unbounded_ticket"  # in the model_info of a deployment that was chosen
WAITING = 10_000  # choices of one strategy that may wait for an event; older ones are forgotten


def _seconds(kwargs: Mapping[str, Any], response: Any, start: Any, end: Any) -> float:
    return float((end - start).total_seconds())


def _first_token(kwargs: Mapping[str, Any], response: Any, start: Any, end: Any) -> float:
    return _seconds(kwargs, response, start, kwargs.get("completion_start_time") or end)


def _seconds_per_token(kwargs: Mapping[str, Any], response: Any, start: Any, end: Any) -> float:
    usage = getattr(response, "usage", None)
    tokens = getattr(usage, "completion_tokens", None) or 1
    return _seconds(kwargs, response, start, end) / tokens


def _dollars(kwargs: Mapping[str, Any], response: Any, start: Any, end: Any) -> float:
    if kwargs.get("response_cost") is None:
        raise ValueError(
            f"LiteLLM has no price of {kwargs.get('model')!r}: give the deployment "
            "input_cost_per_token and output_cost_per_token"
        )
    return float(kwargs["response_cost"])


MEASURES: Mapping[str, Callable[..., float]] = {
    "seconds": _seconds,
    "first_token": _first_token,
    "seconds_per_token": _seconds_per_token,
    "dollars": _dollars,
}


def _checked_loss(
    loss: str | Mapping[str, float] | Callable[..., float],
) -> Callable[..., float]:
    """Return the function of an event that is one of the losses, or their weighted sum."""
    if callable(loss):
        return loss
    weights = {loss: 1.0} if isinstance(loss, str) else dict(loss)
    for name, weight in weights.items():
        checked_option("loss", name, tuple(MEASURES))
        checked_loss(f"the weight of {name}", weight)
    if not weights:
        raise ValueError(f"loss must have some of {', '.join(MEASURES)}, got none")

    def weighted(*event: Any) -> float:
        return math.fsum(weight * MEASURES[name](*event) for name, weight in weights.items())

    return weighted


def _checked_class(learner: type[Learner] | None) -> Callable[..., Learner]:
    """Return what makes a learner that takes masks."""
    if learner is None:
        return recommend(lower=0.0, changing=True, delayed=True).learner
    if checked_bandit(learner).spec.update_with is None:
        raise ValueError(
            f"{learner.spec.name} takes no `available`, which cooldowns need: take CostSCB, "
            "CostSCBIX or AdaINF"
        )
    return learner


def _opened(
    where: str | os.PathLike[str], key: str, make: Callable[..., Learner], ids: list[str]
) -> Durable:
    """Open or create the `Durable` of a group."""
    if isinstance(where, str) and "://" in where:
        opened = partial(Durable, where, name=key)
    else:
        opened = partial(Durable, Path(where) / f"{quote(key, safe='')}.db")
    try:
        return opened(make(n_arms=len(ids)), arms=ids)
    except ValueError:  # it may have more arms, or in another order: then only that may differ
        looking = opened()
        names = looking.status().arms
        looking.close()
        return opened(make(n_arms=len(names)), arms=names)


class _Group:
    """One learner, or a `Durable`, and the ids of the deployments that are its arms."""

    def __init__(self, playing: Learner | Durable, ids: list[str]) -> None:
        self.playing = playing
        self.ids = ids
        self._lock = threading.Lock()

    def ask(self, healthy: list[str]) -> tuple[Any, str]:
        """Choose one of the deployments; new ones become arms."""
        with self._lock:
            for new in [name for name in healthy if name not in self.ids]:
                self._add(new)
        if isinstance(self.playing, Durable):
            choice = self.playing.ask(available=healthy)
            return choice, choice.name
        with self._lock:
            kept = self.playing.ask(available=[self.ids.index(name) for name in healthy])
        return kept, self.ids[kept.arm]

    def _add(self, name: str) -> None:
        if isinstance(self.playing, Durable):
            if name not in self.playing.status().arms:
                try:
                    self.playing.add_arm(name)
                except ValueError:  # another worker was faster
                    if name not in self.playing.status().arms:
                        raise
        else:
            self.playing = self.playing.with_arms([*range(len(self.ids)), None])
        self.ids.append(name)

    def tell(self, choice: Any, loss: float) -> None:
        if not isinstance(self.playing, Durable):
            with self._lock:
                self.playing.tell(choice, loss)
            return
        for again in (True, True, False):  # it may be busy, or the connection is broken
            try:
                self.playing.tell(choice, loss, repeated="ignore")
                return
            except DurableError:
                if not again:
                    raise

    def forget(self, choice: Any) -> None:
        with self._lock, contextlib.suppress(ValueError):  # a `Durable` may have expired it
            self.playing.forget(choice)

    def close(self) -> None:
        if isinstance(self.playing, Durable):
            self.playing.close()


def _elsewhere(work: Coroutine[Any, Any, Any]) -> Any:
    """Run it in a thread of its own: this one may have a loop that runs."""
    with ThreadPoolExecutor(1) as other:
        return other.submit(asyncio.run, work).result()


class ScaleFreeRouting(CustomLogger, CustomRoutingStrategyBase):
    """Route the requests of a LiteLLM Router by what earlier ones cost.

    Each model group has a learner of its own, whose arms are the deployments. Those in cooldown,
    and those that the Router filters out for a request, are not available to it.

    Parameters
    ----------
    router : litellm.Router
        The router. `install` makes it use this strategy.
    failure : float
        The loss of a request that fails, in the unit of ``loss``.
    loss : str, mapping or callable
        What a request costs: ``"seconds"``, ``"first_token"`` (seconds until the first token of a
        stream), ``"seconds_per_token"`` or ``"dollars"`` (by LiteLLM's price map). Or a sum of
        them with weights, as ``{"seconds": 1.0, "dollars": 50.0}``, which says that a dollar is
        worth 50 seconds: that exchange rate is yours to state. Or a function of the arguments of
        LiteLLM's events: ``kwargs, response_obj, start_time, end_time``.
    timeout : float, optional
        The loss of a time-out, if it is not ``failure``.
    learner : type, optional
        The learner's class, one that takes ``available``; what ``recommend(lower=0.0,
        changing=True, delayed=True)`` recommends by default.
    settings : mapping, optional
        Its settings; the number of arms and the seed apart.
    kind : callable, optional
        Names the kind of a request, given a mapping with its keyword arguments, ``messages`` and
        ``input``: each kind has a learner of its own.
    durable : path or str, optional
        A directory for one `Durable` of each group, which the workers of a proxy share. Or the
        ``postgresql://`` address of a database.
    seed : int, optional
        For the choices.

    Notes
    -----
    Every attempt of a request, retries and fallbacks included, is a choice, and is told once. A bad
    request (status 400) says nothing about its deployment: its choice is forgotten. So is one whose
    loss is not finite or cannot be computed, which is logged. A choice without any event, as after
    a cancelled request, waits until 10,000 newer ones do; with ``durable``, call `Durable.expire`
    regularly too.

    LiteLLM reports in the background, after an answer was returned. When a worker shuts down,
    ``await routing.aclose()`` waits for reports that are on their way, then closes each `Durable`.

    LiteLLM counts a model without a price as free: give such deployments ``input_cost_per_token``
    and ``output_cost_per_token`` before you route by dollars.

    Synchronous methods of the Router work. With a Redis cache, use the asynchronous ones.

    Examples
    --------
    >>> import asyncio
    >>> from litellm import Router
    >>> from unbounded.adapters.litellm import ScaleFreeRouting
    >>> models = []
    >>> for name in ("here", "there"):
    ...     params = {"model": "gpt-4o-mini", "api_key": "none", "mock_response": name}
    ...     models.append({"model_name": "chat", "litellm_params": params})
    >>> router = Router(model_list=models)
    >>> routing = ScaleFreeRouting(router, failure=30.0, seed=0).install()
    >>> async def ask(question):
    ...     messages = [{"role": "user", "content": question}]
    ...     answer = await router.acompletion(model="chat", messages=messages)
    ...     await asyncio.sleep(0.1)  # LiteLLM reports an answer in the background
    ...     return answer.choices[0].message.content
    >>> asyncio.run(ask("Where are you?")) in ("here", "there")
    True
    >>> routing.learners["chat"].rounds
    1
    """

    def __init__(
        self,
        router: Any,
        *,
        failure: float,
        loss: str | Mapping[str, float] | Callable[..., float] = "seconds",
        timeout: float | None = None,
        learner: type[Learner] | None = None,
        settings: Mapping[str, Any] | None = None,
        kind: Callable[[Mapping[str, Any]], str] | None = None,
        durable: str | os.PathLike[str] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        self._failure = checked_loss("failure", failure)
        self._timeout = self._failure if timeout is None else checked_loss("timeout", timeout)
        self._loss = _checked_loss(loss)
        self._make = partial(_checked_class(learner), **{**(settings or {}), "seed": seed})
        self._router, self._kind, self._durable = router, kind, durable
        self._groups: dict[str, _Group] = {}
        self._opening = threading.Lock()
        self._lock = threading.Lock()  # of the next two
        self._waiting: dict[str, tuple[_Group, Any]] = {}
        self._telling = 0
        self.unbounded_id = uuid4().hex  # LiteLLM takes loggers of equal public fields for one

    @property
    def learners(self) -> dict[str, Any]:
        """The learner, or the `Durable`, of each model group, or of each ``"group/kind"``."""
        return {name: group.playing for name, group in self._groups.items()}

    @property
    def outstanding(self) -> int:
        """The number of choices that were neither told nor forgotten yet."""
        with self._lock:
            return len(self._waiting) + self._telling

    def install(self) -> ScaleFreeRouting:
        """Make the router use this strategy, and LiteLLM report to it; return it."""
        if hasattr(self._router, "set_custom_routing_strategy"):
            self._router.set_custom_routing_strategy(self)
        else:  # from some version after 1.109 on; not tested: none of them could be installed
            self._router.register_plugin(self)
        litellm.callbacks.append(self)
        return self

    async def aclose(self, timeout: float = 5.0) -> None:
        """Wait for what is outstanding, then close each `Durable`.

        Parameters
        ----------
        timeout : float
            How many seconds to wait for LiteLLM's next report. What it has reported is told.
        """
        left = -1
        while left:
            if left != self.outstanding:
                left, end = self.outstanding, time.monotonic() + timeout
            if time.monotonic() > end and not self._telling:
                break
            await asyncio.sleep(0.01)
        for group in list(self._groups.values()):
            group.close()

    def close(self, timeout: float = 5.0) -> None:
        """Do as `aclose`, for the synchronous methods of the Router."""
        _elsewhere(self.aclose(timeout))

    # ------------------------------------------------------------------ choosing

    async def async_get_available_deployment(
        self,
        model: str,
        messages: list[dict[str, str]] | None = None,
        input: str | list[Any] | None = None,
        specific_deployment: bool | None = False,
        request_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Choose a deployment: LiteLLM calls this for every attempt of a request."""
        request = {} if request_kwargs is None else request_kwargs
        found = await self._router.async_get_healthy_deployments(
            model=model,
            request_kwargs=request,
            messages=messages,
            input=input,
            specific_deployment=specific_deployment,
        )
        if isinstance(found, dict):  # a certain deployment was asked for
            return found
        healthy = {one["model_info"]["id"]: one for one in found}
        key = model
        if self._kind is not None:
            key = f"{model}/{self._kind({**request, 'messages': messages, 'input': input})}"
        choose = partial(self._choose, key, model, list(healthy))
        ticket, chosen = choose() if self._durable is None else await asyncio.to_thread(choose)
        deployment = healthy[chosen]
        # The ticket travels in a copy that this attempt alone has: a retry has another.
        return {**deployment, "model_info": {**deployment["model_info"], TICKET: ticket}}

    def get_available_deployment(
        self,
        model: str,
        messages: list[dict[str, str]] | None = None,
        input: str | list[Any] | None = None,
        specific_deployment: bool | None = False,
        request_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Choose a deployment, for the synchronous methods of the Router."""
        chosen = self.async_get_available_deployment(
            model, messages, input, specific_deployment, request_kwargs
        )
        return _elsewhere(chosen)

    def _choose(self, key: str, model: str, healthy: list[str]) -> tuple[str, str]:
        group = self._groups.get(key) or self._opened(key, model, healthy)
        choice, chosen = group.ask(healthy)
        ticket = uuid4().hex
        with self._lock:
            self._waiting[ticket] = group, choice
            full = len(self._waiting) > WAITING
            oldest = self._waiting.pop(next(iter(self._waiting))) if full else None
        if oldest is not None:
            oldest[0].forget(oldest[1])
        return ticket, chosen

    def _opened(self, key: str, model: str, healthy: list[str]) -> _Group:
        with self._opening:
            if key not in self._groups:
                ids = list(dict.fromkeys([*self._router.get_model_ids(model_name=model), *healthy]))
                playing: Learner | Durable = self._make(n_arms=len(ids))
                if self._durable is not None:
                    playing = _opened(self._durable, key, self._make, ids)
                    ids = list(playing.status().arms)
                self._groups[key] = _Group(playing, ids)
            return self._groups[key]

    # ------------------------------------------------------------------ learning

    def _feedback(self, info: Any, loss: Callable[[], float | None]) -> Callable[[], None] | None:
        """Return what is to be done about a choice; None if there is no such choice, or no more."""
        with self._lock:
            found = self._waiting.pop((info or {}).get(TICKET, ""), None)
            if found is None:
                return None
            self._telling += 1

        def work() -> None:
            try:
                self._learn(*found, loss)
            finally:
                with self._lock:
                    self._telling -= 1

        return work

    def _learn(self, group: _Group, choice: Any, loss: Callable[[], float | None]) -> None:
        """Tell a choice, or forget it if its loss says nothing or is none."""
        try:
            cost = loss()
            value = None if cost is None else checked_loss("loss", cost)
        except Exception as error:
            logging.getLogger("unbounded").error(
                "a choice is forgotten, as its loss cannot be learned: %s: %s",
                type(error).__name__,
                error,
            )
            value = None
        if value is None:
            group.forget(choice)
        else:
            group.tell(choice, value)

    def _of_success(self, kwargs: Any, *event: Any) -> Callable[[], None] | None:
        info = kwargs["litellm_params"].get("model_info")
        return self._feedback(info, partial(self._loss, kwargs, *event))

    def _of_failure(self, info: Any, exception: Any) -> Callable[[], None] | None:
        if isinstance(exception, litellm.Timeout):
            return self._feedback(info, lambda: self._timeout)
        if isinstance(exception, litellm.BadRequestError):
            return self._feedback(info, lambda: None)
        return self._feedback(info, lambda: self._failure)

    async def _done(self, work: Callable[[], None] | None) -> None:
        """Work; in another thread, if it may wait for other processes."""
        if work is not None and self._durable is None:
            work()
        elif work is not None:  # shielded: a report that is cancelled is learned all the same
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, work))

    async def async_log_success_event(
        self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Learn from an answer, or from a stream when it has ended."""
        await self._done(self._of_success(kwargs, response_obj, start_time, end_time))

    async def async_log_failure_event(
        self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Learn from a request that failed."""
        info = kwargs["litellm_params"].get("model_info")
        await self._done(self._of_failure(info, kwargs.get("exception")))

    async def async_post_call_failure_deployment_hook(
        self, request_data: Any, exception: Any, call_type: Any, fallback_depth: Any = None
    ) -> None:
        """Learn from an attempt that failed: a proxy reports only the first one as an event."""
        await self._done(self._of_failure(request_data.get("model_info"), exception))

    def log_success_event(
        self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Learn from an answer, in synchronous calls."""
        if work := self._of_success(kwargs, response_obj, start_time, end_time):
            work()

    def log_failure_event(
        self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Learn from a request that failed, in synchronous calls."""
        info = kwargs["litellm_params"].get("model_info")
        if work := self._of_failure(info, kwargs.get("exception")):
            work()
