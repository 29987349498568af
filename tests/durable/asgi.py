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


def service(path: Path, **environment: str) -> Any:
    """The module of the example service, with the file at ``path``."""
    spec = importlib.util.spec_from_file_location("example_service", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(os.environ, ARMS_DB=str(path), **environment):
        spec.loader.exec_module(module)
    return module


def post(
    app: Any, path: str, body: bytes = b"", key: bytes | None = None, query: bytes = b""
) -> tuple[int, Any]:
    """The status and the answer to one request."""
    headers = [(b"content-type", b"application/json")]
    headers += [] if key is None else [(b"idempotency-key", key)]
    status, answer = answered(app, "POST", path, body, headers, query)
    return status, json.loads(answer)


def answered(
    app: Any, method: str, path: str, body: bytes = b"", headers: Any = (), query: bytes = b""
) -> tuple[int, bytes]:
    """The status and the body of the answer to one request."""
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(),
        "headers": list(headers), "query_string": query, "http_version": "1.1", "scheme": "http",
        "root_path": "", "server": ("localhost", 80), "client": ("localhost", 1),
        "asgi": {"version": "3.0"},
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], b"".join(one.get("body", b"") for one in sent[1:])
