"""What a decision costs in LiteLLM's Router: its own strategies beside ours, in turns.

    python benchmarks/litellm_overhead.py [--rounds=3000] [--postgres]  # in .venv/litellm-proxy

In each round every strategy chooses one of six deployments, then learns what an answer took:
microseconds of the process, all its threads together, and by the clock.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "durable")]
DEPLOYMENTS, WARM = 6, 300  # the first rounds do not count
MESSAGES = [{"role": "user", "content": "Hello"}]
START = datetime(2026, 1, 1)


def routers(folder: str, postgres: str | None) -> dict[str, tuple[Any, Any]]:
    """Return each Router, and the handler of its strategy that learns."""
    from litellm import Router

    from unbounded.adapters.litellm import ScaleFreeRouting

    params = {"model": "gpt-4o-mini", "api_key": "none", "mock_response": "Hi"}
    models = [
        {"model_name": "chat", "litellm_params": params, "model_info": {"id": str(k)}}
        for k in range(DEPLOYMENTS)
    ]
    found: dict[str, tuple[Any, Any]] = {"simple-shuffle": (Router(models), None)}
    latency = Router(models, routing_strategy="latency-based-routing")
    found["latency-based-routing"] = latency, latency.lowestlatency_logger
    ours = {"in memory": None, "a file": folder} | ({"PostgreSQL": postgres} if postgres else {})
    for name, durable in ours.items():
        router = Router(models)
        handler = ScaleFreeRouting(router, failure=30.0, durable=durable, seed=0)
        found[f"ScaleFreeRouting, {name}"] = router, handler.install()
    return found


async def measured(found: dict[str, tuple[Any, Any]], rounds: int) -> dict[str, np.ndarray]:
    """Return microseconds, (rounds, 4): choosing and learning, of the process and by the clock."""
    from litellm import ModelResponse
    from litellm.types.utils import Usage

    response = ModelResponse(usage=Usage(completion_tokens=20, total_tokens=30))
    rng, names = random.Random(0), list(found)
    taken = {name: np.zeros((rounds, 4)) for name in names}

    def now() -> np.ndarray:
        return np.array([time.process_time_ns(), time.perf_counter_ns()])

    for t in range(rounds):
        rng.shuffle(names)
        for name in names:
            router, handler = found[name]
            request: dict[str, Any] = {"metadata": {}}
            begin = now()
            chosen = await router.async_get_available_deployment(
                model="chat", messages=MESSAGES, request_kwargs=request
            )
            middle = now()
            info = chosen["model_info"]
            seconds = rng.lognormvariate(0.0, 0.3) * (1 + int(info["id"]))
            event = {
                "litellm_params": {"metadata": {"model_group": "chat"}, "model_info": info},
                "call_type": "acompletion",
            }
            end = START + timedelta(seconds=seconds)
            before = now()
            if handler is not None:
                await handler.async_log_success_event(event, response, START, end)
            taken[name][t] = np.concatenate([middle - begin, now() - before]) / 1e3
    return {name: each[WARM:] for name, each in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3000)
    parser.add_argument("--postgres", action="store_true")
    given = parser.parse_args()
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it is fetched
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        url = None
        if given.postgres:
            from postgres_server import Server

            url = stack.enter_context(contextlib.closing(Server())).url()
        found = routers(folder, url)
        taken = asyncio.run(measured(found, given.rounds))
        for _, handler in found.values():
            if hasattr(handler, "close"):
                handler.close()
    kinds = ("choose, µs of CPU", "choose, µs", "learn, µs of CPU", "learn, µs")
    print("| | " + " | ".join(f"{kind}: p50, p99" for kind in kinds) + " |")
    print("| --- |" + " ---: |" * len(kinds))
    for name, each in taken.items():
        cells = [f"{np.quantile(x, 0.5):,.0f}, {np.quantile(x, 0.99):,.0f}" for x in each.T]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
