"""Clients of examples/service.py, workers that are killed meanwhile, and what must be true then.

    python tests/durable/service_load.py DIRECTORY CLIENTS WORKERS SECONDS

A client makes each call again, on a new connection, until it is answered: as people's clients do.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from unbounded.durable import Durable

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


class Client:
    """HTTP/1.1 over one connection at a time."""

    def __init__(self, port: int) -> None:
        self.port, self.again = port, 0
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, key: str, body: dict[str, Any]) -> dict[str, Any]:
        while True:
            try:
                status, answer = await asyncio.wait_for(self._once(path, key, body), 20.0)
                if status == 200:
                    return answer
                assert status == 503, answer
            except (OSError, EOFError, TimeoutError, ValueError):
                if self.streams is not None:
                    self.streams[1].close()
                self.streams = None
            self.again += 1
            await asyncio.sleep(0.02)

    async def _once(self, path: str, key: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: {key}\r\n"
        head += "Content-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length:")[2].partition("\r\n")[0])
        return int(head.split()[1]), json.loads(await reader.readexactly(length))


async def play(port: int, clients: int, until: float, told: dict[str, Any]) -> int:
    async def one(number: int) -> int:
        client, rng, i = Client(port), random.Random(number), 0
        while time.monotonic() < until:
            key, loss = f"{number}-{i}", rng.expovariate(1.0)
            choice = await client.post("/choose", key, {})
            answer = await client.post("/outcome", key, {"id": choice["id"], "loss": loss})
            told[key] = [choice["id"], loss, answer["learned"]]
            i += 1
        return client.again

    return sum(await asyncio.gather(*(one(number) for number in range(clients))))


async def load(directory: Path, clients: int, workers: int, seconds: float) -> dict[str, int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = directory / "arms.db"
    command = [
        sys.executable, "-m", "gunicorn", "--chdir", str(EXAMPLES), "-w", str(workers),
        "-k", "uvicorn_worker.UvicornWorker", "-b", f"127.0.0.1:{port}", "--log-level", "error",
        "--timeout", "120", "service:app",
    ]  # fmt: skip
    environment = os.environ | {"ARMS_DB": str(path), "UNBOUNDED_JIT": "never"}
    with (
        open(directory / "service.log", "w") as log,
        subprocess.Popen(command, env=environment, stdout=log, stderr=log) as server,
    ):
        try:
            told: dict[str, Any] = {}
            first = Client(port)
            choice = await first.post("/choose", "first", {})  # it is up
            await first.post("/outcome", "first", {"id": choice["id"], "loss": 1.0})
            playing = asyncio.create_task(play(port, clients, time.monotonic() + seconds, told))
            for how in (signal.SIGKILL, signal.SIGTERM):
                await asyncio.sleep(seconds / 3)
                random.choice(psutil.Process(server.pid).children()).send_signal(how)
            again = await playing
        finally:
            server.terminate()
    with Durable(path) as arms:
        log_of = {row["key"]: row for row in arms.log().iter_rows(named=True)}
        assert len(log_of) == arms.log().height
        for key, (number, loss, _) in told.items():
            row = log_of[key]
            assert [row["id"], row["loss"], row["status"]] == [number, loss, "told"]
        settled = [row for row in log_of.values() if row["status"] == "told"]
        rows = arms.verify()
        assert rows == len(log_of) + len(settled)
        assert len(settled) == len(told) + 1  # every client has finished what it began
        repeated = sum(not learned for _, _, learned in told.values())
        return {"told": len(told), "calls again": again, "answers repeated": repeated, "rows": rows}


if __name__ == "__main__":
    root, clients, workers, seconds = sys.argv[1:]
    print(json.dumps(asyncio.run(load(Path(root), int(clients), int(workers), float(seconds)))))
