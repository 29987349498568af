"""Four HTTP servers on loopback, of different and changing speed, and clients that measure them."""

from __future__ import annotations

import asyncio
import math
import multiprocessing
import random
import time
from collections.abc import Callable
from typing import Any

MEDIANS = ((0.012, 0.036), (0.016, 0.016), (0.020, 0.020), (0.028, 0.028))  # before, after; seconds
CHANGE = 0.6  # of the time: then the fastest server becomes the slowest
SPREAD = 0.4  # of the logarithms
TIMEOUT = 0.5  # seconds, after which a client gives up


async def _serve(began: float, duration: float, ports: Any) -> None:
    rng = random.Random(1)

    def handler(medians: tuple[float, float]) -> Callable[..., Any]:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while line := await reader.readline():
                while (await reader.readline()).strip():
                    pass
                per_mille = float(line.split()[1][1:])  # GET /10: of a thousand requests, 10 hang
                late = time.monotonic() - began > CHANGE * duration
                delay = medians[late] * math.exp(rng.gauss(0.0, SPREAD))
                await asyncio.sleep(60.0 if rng.random() < per_mille / 1000.0 else delay)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

        return handle

    servers = [await asyncio.start_server(handler(both), "127.0.0.1", 0) for both in MEDIANS]
    ports.send([server.sockets[0].getsockname()[1] for server in servers])
    await asyncio.sleep(3600.0)


def _run_servers(began: float, duration: float, ports: Any) -> None:
    asyncio.run(_serve(began, duration, ports))


class Servers:
    """The four servers, in a process of their own, as a context."""

    def __init__(self, duration: float) -> None:
        self.duration = duration

    def __enter__(self) -> Servers:
        context = multiprocessing.get_context("spawn")
        receive, send = context.Pipe(duplex=False)
        self.began = time.monotonic() + 1.0
        arguments = (self.began, self.duration, send)
        self._process = context.Process(target=_run_servers, args=arguments, daemon=True)
        self._process.start()
        self.ports = receive.recv()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join()


class Client:
    """Connections to the servers, kept open."""

    def __init__(self, ports: list[int]) -> None:
        self._ports = ports
        self._open: dict[int, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}

    async def get(self, server: int, per_mille: int) -> float:
        """How many seconds a request takes; TIMEOUT if it hangs."""
        if server not in self._open:
            address = ("127.0.0.1", self._ports[server])
            self._open[server] = await asyncio.open_connection(*address)
        reader, writer = self._open[server]
        began = time.perf_counter()
        writer.write(f"GET /{per_mille} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        try:
            async with asyncio.timeout(TIMEOUT):
                await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(2)
        except TimeoutError:
            writer.close()
            del self._open[server]
            return TIMEOUT
        return time.perf_counter() - began

    def close(self) -> None:
        for _, writer in self._open.values():
            writer.close()
