"""A service that chooses a server for each request and learns from how long they took.

    gunicorn --chdir examples -w 4 -k uvicorn_worker.UvicornWorker service:app

    curl -X POST localhost:8000/choose -H 'Idempotency-Key: 42'
    curl -X POST 'localhost:8000/choose?available=eu-1&available=us-1'
    curl -X POST localhost:8000/outcome --json '{"id": 1812309, "loss": 0.31}'
    curl localhost:8000/metrics

All workers share one learner. A client that does not know whether its call came through makes it
again: the key gives the same choice, and a loss is learned once.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Annotated, Any

from fastapi import FastAPI, Header, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

import unbounded
from unbounded import metrics
from unbounded.durable import BusyError, Durable, DurableError

FAILED = 30.0  # seconds that a request without an answer counts for
PATH = os.environ.get("ARMS_DB", "arms.db")
SERVERS = os.environ.get("SERVERS", "eu-1,eu-2,us-1").split(",")
best = unbounded.recommend(lower=0.0, changing=True, delayed=True)


def opened() -> Durable:
    """Open the file, or make it; servers that it does not have become arms."""
    try:
        arms = Durable(PATH)
    except DurableError:  # there is none, or this raises too
        arms = Durable(PATH, best.learner(n_arms=len(SERVERS)), arms=SERVERS)
    for new in set(SERVERS) - set(arms.status().arms):
        with contextlib.suppress(ValueError):  # another worker was faster
            arms.add_arm(new)
    return arms


@contextlib.asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async def give_up() -> None:
        while True:
            await asyncio.sleep(30.0)
            with contextlib.suppress(BusyError):
                await asyncio.to_thread(arms.expire, timedelta(minutes=5), loss=FAILED)

    task = asyncio.create_task(give_up())
    yield
    task.cancel()
    arms.close()


def rejected(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"error": str(error)}, 503 if isinstance(error, BusyError) else 400)


arms = opened()
errors = dict.fromkeys((BusyError, ValueError, TypeError), rejected)
app = FastAPI(lifespan=lifespan, exception_handlers=errors)
app.mount("/metrics", metrics.asgi(arms))


class Outcome(BaseModel, strict=True):
    id: int
    loss: float | None  # seconds; null: it failed


@app.post("/choose")
async def choose(
    idempotency_key: Annotated[str | None, Header()] = None,
    available: Annotated[list[str] | None, Query()] = None,
) -> dict[str, Any]:
    choice = await arms.aask(key=idempotency_key, available=available)
    return {"id": choice.id, "server": choice.name}


@app.post("/outcome")
async def outcome(told: Outcome) -> dict[str, bool]:
    loss = FAILED if told.loss is None else told.loss
    return {"learned": await arms.atell(told.id, loss=loss, repeated="ignore")}
