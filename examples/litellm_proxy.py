"""LiteLLM's proxy, whose workers learn together where to send requests.

    pip install 'litellm[proxy]==1.106.2' uvicorn-worker '.[litellm]'
    CONFIG_FILE_PATH=config.yaml ROUTES=/var/lib/routes LITELLM_MASTER_KEY=sk-... \
        gunicorn --chdir examples -w 4 -k uvicorn_worker.UvicornWorker litellm_proxy:app

The configuration is LiteLLM's. ROUTES is a directory, or the postgresql:// address of a database.
"""

import contextlib
import os
from collections.abc import AsyncIterator
from typing import Any

from litellm.proxy import proxy_server

from unbounded.adapters.litellm import ScaleFreeRouting

app = proxy_server.app
started = app.router.lifespan_context


@contextlib.asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[Any]:
    async with started(app) as state:
        routing = ScaleFreeRouting(
            proxy_server.llm_router, failure=30.0, durable=os.environ["ROUTES"]
        ).install()
        yield state
        await routing.aclose()


app.router.lifespan_context = lifespan
