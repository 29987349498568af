"""HTTP servers on loopback whose speed, failures and prices follow a script, and their clients."""

from __future__ import annotations

import asyncio
import bisect
import math
import multiprocessing
import random
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

SPREAD = 0.35  # of the logarithms of the waits
HANG = 60.0  # seconds


class State(NamedTuple):
    """How a server answers."""

    median: float  # seconds
    price: int = 0  # of a request, in millionths of a dollar
    hangs: float = 0.001  # the share of requests that hang
    fails: float = 0.0  # the share of requests answered at once by 503
    out: bool = False  # of rotation: nobody listens


Script = Sequence[tuple[float, Sequence[State]]]  # (since how many seconds, states of all servers)


class Answer(NamedTuple):
    seconds: float
    price: int
    ok: bool


async def _serve(began: float, script: Script, ports: Any) -> None:
    rng = random.Random(1)

    def handler(server: int) -> Callable[..., Any]:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while await reader.readline():
                while (await reader.readline()).strip():
                    pass
                state = states_at(script, time.monotonic() - began)[server]
                if state.out:
                    break
                ok, status = rng.random() >= state.fails, "200 OK"
                if not ok:
                    status = "503 Service Unavailable"
                elif rng.random() < state.hangs:
                    await asyncio.sleep(HANG)
                else:
                    await asyncio.sleep(state.median * math.exp(rng.gauss(0.0, SPREAD)))
                head = f"HTTP/1.1 {status}\r\nX-Price: {state.price}\r\nContent-Length: 0\r\n\r\n"
                writer.write(head.encode())
            writer.close()

        return handle

    async def open_at(server: int, port: int = 0) -> asyncio.Server:
        return await asyncio.start_server(handler(server), "127.0.0.1", port, backlog=1000)

    servers = [await open_at(server) for server in range(len(script[0][1]))]
    numbers = [server.sockets[0].getsockname()[1] for server in servers]
    ports.send(numbers)
    for since, states in script:  # servers leave the rotation, and come back
        await asyncio.sleep(max(0.0, began + since - time.monotonic()))
        for server, state in enumerate(states):
            if state.out and servers[server].is_serving():
                servers[server].close()
            elif not state.out and not servers[server].is_serving():
                servers[server] = await open_at(server, numbers[server])
    await asyncio.sleep(3600.0)


def states_at(script: Script, seconds: float) -> Sequence[State]:
    """Return the states of all servers so many seconds after the beginning."""
    return script[max(0, bisect.bisect_right(script, seconds, key=lambda row: row[0]) - 1)][1]


def _run_servers(began: float, script: Script, ports: Any) -> None:
    asyncio.run(_serve(began, script, ports))


class Servers:
    """The servers, in a process of their own, as a context."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def __enter__(self) -> Servers:
        context = multiprocessing.get_context("spawn")
        receive, send = context.Pipe(duplex=False)
        self.began = time.monotonic() + 1.0
        arguments = (self.began, self.script, send)
        self._process = context.Process(target=_run_servers, args=arguments, daemon=True)
        self._process.start()
        self.ports = receive.recv()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join()


class Client:
    """Connections to the servers, kept open, each for one request at a time."""

    def __init__(self, ports: list[int], timeout: float) -> None:
        self._ports, self._timeout = ports, timeout
        self._idle: list[list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
        self._idle = [[] for _ in ports]

    async def get(self, server: int) -> Answer | None:
        """Return what a server answers, a time-out included; None if it is out of rotation."""
        began, writer = time.perf_counter(), None
        try:
            async with asyncio.timeout(self._timeout):
                if self._idle[server]:
                    reader, writer = self._idle[server].pop()
                else:
                    address = ("127.0.0.1", self._ports[server])
                    reader, writer = await asyncio.open_connection(*address)
                    began = time.perf_counter()  # a new connection is no part of the wait
                writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                head = await reader.readuntil(b"\r\n\r\n")
        except (OSError, asyncio.IncompleteReadError) as error:  # a TimeoutError is an OSError
            if writer is not None:
                writer.close()
            return Answer(self._timeout, 0, ok=False) if isinstance(error, TimeoutError) else None
        seconds = time.perf_counter() - began
        self._idle[server].append((reader, writer))
        price = int(head.partition(b"X-Price: ")[2].split(maxsplit=1)[0])
        return Answer(seconds, price, ok=head.startswith(b"HTTP/1.1 200"))

    async def close(self) -> None:
        for _, writer in (each for connections in self._idle for each in connections):
            writer.close()
            await writer.wait_closed()
