"""Requests to an ASGI application without a server."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
from pathlib import Path
from typing import Any
from unittest import mock

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "service.py"


def service(path: Path) -> Any:
    """The module of the example service, with the file at ``path``."""
    spec = importlib.util.spec_from_file_location("example_service", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(os.environ, ARMS_DB=str(path)):
        spec.loader.exec_module(module)
    return module


def post(app: Any, path: str, body: bytes, key: bytes | None = None) -> tuple[int, Any]:
    """The status and the answer to one request."""
    headers = [] if key is None else [(b"idempotency-key", key)]
    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(),
        "headers": headers, "query_string": b"", "http_version": "1.1", "scheme": "http",
        "root_path": "", "server": ("localhost", 80), "client": ("localhost", 1),
        "asgi": {"version": "3.0"},
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], json.loads(b"".join(one.get("body", b"") for one in sent[1:]))
