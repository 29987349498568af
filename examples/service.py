"""A service that chooses a server for each request and learns from how long they took.

    gunicorn --chdir examples -w 4 -k uvicorn_worker.UvicornWorker service:app

    curl -X POST localhost:8000/choose -H 'Idempotency-Key: 42'
    curl -X POST localhost:8000/outcome -d '{"id": 1812309, "loss": 0.31}'

All workers share one learner. A client that does not know whether its call came through makes it
again: the key gives the same choice, and a loss is learned once.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from unbounded import SCB
from unbounded.durable import BusyError, Durable

SERVERS = ["eu-1", "eu-2", "us-1"]
arms = Durable(os.environ.get("ARMS_DB", "arms.db"), SCB(n_arms=len(SERVERS)), arms=SERVERS)


async def choose(request: Request) -> JSONResponse:
    choice = await arms.aask(key=request.headers.get("idempotency-key"))
    return JSONResponse({"id": choice.id, "server": choice.name})


async def outcome(request: Request) -> JSONResponse:
    told = await request.json()
    learned = await arms.atell(told["id"], loss=told["loss"], repeated="ignore")
    return JSONResponse({"learned": learned})


def refused(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"error": str(error)}, 503 if isinstance(error, BusyError) else 400)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async def give_up() -> None:
        while True:
            await asyncio.sleep(30.0)
            await asyncio.to_thread(arms.expire, timedelta(minutes=5), loss=30.0)  # a timeout

    task = asyncio.create_task(give_up())
    yield
    task.cancel()
    arms.close()


routes = [Route(f"/{f.__name__}", f, methods=["POST"]) for f in (choose, outcome)]
errors = dict.fromkeys((BusyError, ValueError, TypeError, KeyError, RecursionError), refused)
app = Starlette(routes=routes, exception_handlers=errors, lifespan=lifespan)
