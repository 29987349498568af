"""Policies that choose a server among those present, and are told what a request cost."""

from __future__ import annotations

import math
import os
import random
from collections import deque
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np

from unbounded import Learner


class Answered(NamedTuple):
    """When an answer came, for those who want to know more than what it cost."""

    began: float  # seconds
    seconds: float
    ok: bool
    timeout: bool


class Ours:
    """A learner that is asked for a service among those present."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner

    def ask(self, present: Sequence[bool]) -> Any:
        return self.learner.ask(available=None if all(present) else present)

    def tell(self, choice: Any, wait: float, answered: Answered | None = None) -> None:
        self.learner.tell(choice, wait)


class Averages:
    """Discounted UCB, epsilon-greedy and power of two: averages of waits, which may be cut."""

    def __init__(self, n: int, rng: np.random.Generator, half_life: float = math.inf,
                 cut: float = math.inf, width: float = 0.0, explore: float = 0.0,
                 two: bool = False) -> None:  # fmt: skip
        self.gamma, self.cut, self.width = 2.0 ** (-1.0 / half_life), cut, width
        self.explore, self.two, self.rng = explore, two, rng
        self.weights, self.sums = [0.0] * n, [0.0] * n

    def ask(self, present: Sequence[bool]) -> int:
        there = [k for k, yes in enumerate(present) if yes]
        if self.two:
            there = [there[i] for i in self.rng.choice(len(there), 2, replace=False)]
        for k in there:
            if self.weights[k] < 1e-9:
                return k
        if self.explore and self.rng.random() < self.explore:
            return int(self.rng.choice(there))
        bonus = self.width * math.log(max(sum(self.weights), 2.0))
        return min(
            there,
            key=lambda k: (
                self.sums[k] / self.weights[k]
                - (self.cut * math.sqrt(bonus / self.weights[k]) if bonus else 0.0)
            ),
        )

    def tell(self, arm: int, wait: float, answered: Answered | None = None) -> None:
        for k in range(len(self.sums)):
            self.weights[k] *= self.gamma
            self.sums[k] *= self.gamma
        self.weights[arm] += 1.0
        self.sums[arm] += min(wait, self.cut)


class SlidingWindow(Averages):
    """UCB with the averages of the last plays."""

    def __init__(self, n: int, rng: np.random.Generator, window: int, **given: float) -> None:
        super().__init__(n, rng, **given)
        self.last: deque[tuple[int, float]] = deque()
        self.window = window

    def tell(self, arm: int, wait: float, answered: Answered | None = None) -> None:
        super().tell(arm, wait)
        self.last.append((arm, min(wait, self.cut)))
        if len(self.last) > self.window:
            arm, wait = self.last.popleft()
            self.weights[arm] = round(self.weights[arm] - 1.0)
            self.sums[arm] -= wait


class Thompson:
    """Thompson sampling on discounted logarithms, as `DiscountedThompson`, of those present."""

    def __init__(self, n: int, seed: int, half_life: float) -> None:
        self.gamma, self.rng = 2.0 ** (-1.0 / half_life), random.Random(seed)
        self.weights, self.means, self.squares = [0.0] * n, [0.0] * n, [0.0] * n

    def _drawn(self, k: int) -> float:
        s = self.weights[k]
        freedom = max(s - 3.0, 1.0)
        spread = math.sqrt(self.squares[k] / s / max(s - 3.0, 0.25 * s))
        student = self.rng.gauss(0.0, 1.0) / math.sqrt(
            self.rng.gammavariate(0.5 * freedom, 2.0) / freedom
        )
        return self.means[k] + spread * student

    def ask(self, present: Sequence[bool]) -> int:
        there = [k for k, yes in enumerate(present) if yes]
        new = [k for k in there if self.weights[k] < 1.0]
        return self.rng.choice(new) if new else min(there, key=self._drawn)

    def tell(self, arm: int, wait: float, answered: Answered | None = None) -> None:
        for k in range(len(self.means)):
            self.weights[k] *= self.gamma
            self.squares[k] *= self.gamma
        self.weights[arm] += 1.0
        change = math.log(wait) - self.means[arm]
        self.means[arm] += change / self.weights[arm]
        self.squares[arm] += change * (math.log(wait) - self.means[arm])


class LeastBusyOfTwo:
    """Of two servers at random, the one that is busy with fewer of our requests."""

    def __init__(self, n: int, seed: int) -> None:
        self.rng, self.busy = random.Random(seed), [0] * n

    def ask(self, present: Sequence[bool]) -> int:
        two = self.rng.sample([k for k, yes in enumerate(present) if yes], 2)
        arm = min(two, key=lambda k: self.busy[k])
        self.busy[arm] += 1
        return arm

    def tell(self, arm: int, wait: float, answered: Answered | None = None) -> None:
        self.busy[arm] -= 1


class RoundRobin:
    def __init__(self) -> None:
        self.t = 0

    def ask(self, present: Sequence[bool]) -> int:
        while True:
            self.t += 1
            if present[self.t % len(present)]:
                return self.t % len(present)

    def tell(self, arm: int, wait: float, answered: Answered | None = None) -> None:
        pass


# ---------------------------------------------------------------- LiteLLM, in its own environment

TOKENS = 100  # of every answer
GROUP, MESSAGES = "chat", [{"role": "user", "content": "Hello"}]
MIDNIGHT = datetime(2026, 1, 1)


class LowestLatency:
    """LiteLLM's routing strategy "latency-based-routing" as released, by its own handler."""

    def __init__(self, n: int, seed: int) -> None:
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it is fetched
        import litellm
        from litellm.caching.caching import DualCache
        from litellm.router_strategy.lowest_latency import LowestLatencyLoggingHandler

        random.seed(seed)  # LiteLLM draws from Python's generator
        self.handler = LowestLatencyLoggingHandler(DualCache())
        params = {"model": "gpt-4o-mini"}
        self.deployments = [
            {"model_name": GROUP, "litellm_params": params, "model_info": {"id": str(k)}}
            for k in range(n)
        ]
        usage = litellm.Usage(prompt_tokens=10, completion_tokens=TOKENS, total_tokens=10 + TOKENS)
        self.response = litellm.ModelResponse(usage=usage)
        self.failures = {
            True: litellm.Timeout("it took too long", "gpt-4o-mini", "openai"),
            False: litellm.ServiceUnavailableError("503", "openai", "gpt-4o-mini"),
        }

    def ask(self, present: Sequence[bool]) -> int:
        healthy = [self.deployments[k] for k, yes in enumerate(present) if yes]
        found = self.handler.get_available_deployments(
            GROUP, healthy, messages=MESSAGES, request_kwargs={"metadata": {}}
        )
        return int(found["model_info"]["id"])

    def tell(self, arm: int, wait: float, answered: Answered) -> None:
        start = MIDNIGHT + timedelta(seconds=answered.began)
        end = start + timedelta(seconds=answered.seconds)
        params = {"metadata": {"model_group": GROUP}, "model_info": {"id": str(arm)}}
        event = {"litellm_params": params, "call_type": "acompletion"}
        if answered.ok:
            self.handler.log_success_event(event, self.response, start, end)
        else:
            event["exception"] = self.failures[answered.timeout]
            finish(self.handler.async_log_failure_event(event, None, start, end))


class Adaptive:
    """LiteLLM's adaptive router as released: one of its models is drawn, again if it is absent."""

    def __init__(self, n: int, seed: int, prices: Sequence[int]) -> None:
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        from litellm.router_strategy.adaptive_router.adaptive_router import AdaptiveRouter
        from litellm.router_strategy.adaptive_router.config import ADAPTIVE_ROUTER_CHOSEN_MODEL_KEY
        from litellm.router_strategy.adaptive_router.hooks import AdaptiveRouterPostCallHook
        from litellm.types.router import AdaptiveRouterConfig

        random.seed(seed)
        self.key = ADAPTIVE_ROUTER_CHOSEN_MODEL_KEY
        names = [str(k) for k in range(n)]
        costs = {name: 1e-6 * price / TOKENS for name, price in zip(names, prices, strict=True)}
        config = AdaptiveRouterConfig(available_models=names)
        self.router = AdaptiveRouter("smart", config, {}, costs)
        self.hook = AdaptiveRouterPostCallHook(self.router)

    def ask(self, present: Sequence[bool]) -> int:
        while True:
            chosen = finish(
                self.router.async_pre_routing_hook(
                    model="smart", request_kwargs={"metadata": {}}, messages=MESSAGES
                )
            )
            if present[int(chosen.model)]:
                return int(chosen.model)

    def tell(self, arm: int, wait: float, answered: Answered) -> None:
        start = MIDNIGHT + timedelta(seconds=answered.began)
        end = start + timedelta(seconds=answered.seconds)
        event = {"litellm_params": {"metadata": {self.key: str(arm)}}, "messages": MESSAGES}
        if answered.ok:
            finish(self.hook.async_log_success_event(event, None, start, end))
        else:
            event["response_status"] = 408 if answered.timeout else 503
            finish(self.hook.async_log_failure_event(event, None, start, end))


def finish(work: Any) -> Any:
    """Return the result of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("LiteLLM waits for something")
