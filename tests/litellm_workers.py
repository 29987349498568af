"""LiteLLM's proxy with four workers, which share a learner, under a hundred clients.

    python tests/litellm_workers.py             # makes the environment .venv/litellm-proxy
    python tests/litellm_workers.py --postgres  # the learner is in PostgreSQL
    python tests/litellm_workers.py --seconds=20

While clients ask, all workers are restarted, then killed and started. What each worker
has chosen and learned is compared with the journal. Answers are LiteLLM's `mock_response`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from environments import ROOT, run_in
from litellm_router import VERSION

KEY = "sk-" + secrets.token_hex(32)
CLIENTS, WORKERS, RETRIES, FAILED = 100, 4, 5, 30.0
DELAYS = {"fast": 0.05, "slow": 0.1, "down": 0.0}


def deployments() -> list[Any]:
    found = []
    for name, delay in DELAYS.items():
        answer = "litellm.InternalServerError" if name == "down" else "Hi"
        params = {"model": "gpt-4o-mini", "api_key": "none", "mock_response": answer}
        params["mock_delay"] = delay  # type: ignore[assignment]
        one = {"model_name": "chat", "litellm_params": params, "model_info": {"id": name}}
        found.append(one)
    return found


class Proxy:
    """The proxy of the example; `folder` has the notes of its workers."""

    def __init__(self, folder: Path, routes: str) -> None:
        self.folder, self.seen = folder, set[Path]()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        config = {
            "model_list": deployments(),
            "router_settings": {
                "num_retries": RETRIES, "retry_after": 0, "disable_cooldowns": True,
            },
        }  # fmt: skip
        (folder / "config.yaml").write_text(json.dumps(config))  # JSON is YAML
        environment = os.environ | {
            "CONFIG_FILE_PATH": str(folder / "config.yaml"), "ROUTES": routes,
            "NOTES": str(folder), "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR",
            "LITELLM_MASTER_KEY": KEY,
        }  # fmt: skip
        command = [
            sys.executable, "-m", "gunicorn", "--chdir", str(ROOT / "tests"), "--preload", "-w",
            str(WORKERS), "-k", "uvicorn_worker.UvicornWorker", "-b", f"127.0.0.1:{self.port}",
            "--log-level", "error", "--timeout", "120", "--graceful-timeout", "60",
            "litellm_workers_app:app",
        ]  # fmt: skip
        with (folder / "proxy.log").open("a") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        self.started()

    def started(self) -> None:
        """Wait for new workers."""
        while len(found := set(self.folder.glob("*.notes")) - self.seen) < WORKERS:
            assert self.process.poll() is None, (self.folder / "proxy.log").read_text()[-2000:]
            time.sleep(0.1)
        self.seen |= found
        self.workers = [int(path.stem) for path in found]

    def reload(self) -> None:
        """Stop all workers, after new ones were started."""
        self.process.send_signal(signal.SIGHUP)
        self.started()

    def kill(self) -> None:
        """Kill all workers; they are started again."""
        for worker in self.workers:
            os.kill(worker, signal.SIGKILL)
        self.started()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(120)


async def ask(port: int, going: list[bool], answers: Counter[Any]) -> None:
    import aiohttp

    body = {"model": "chat", "messages": [{"role": "user", "content": "Hello"}]}
    url, timeout = f"http://127.0.0.1:{port}/v1/chat/completions", aiohttp.ClientTimeout(60)
    headers = {"Authorization": f"Bearer {KEY}"}
    async with aiohttp.ClientSession(timeout=timeout, headers=headers) as session:
        while going:
            try:
                async with session.post(url, json=body) as answer:
                    await answer.read()
                    answers[answer.status, answer.headers.get("x-litellm-model-id")] += 1
            except (aiohttp.ClientError, OSError, TimeoutError):
                answers["cut off"] += 1
                await asyncio.sleep(0.05)


async def load(folder: Path, routes: str, seconds: float) -> Counter[Any]:
    """Let clients ask while all workers are restarted, then killed; count their answers."""
    answers: Counter[Any] = Counter()
    proxy = await asyncio.to_thread(Proxy, folder, routes)
    try:
        going = [True]
        clients = [asyncio.create_task(ask(proxy.port, going, answers)) for _ in range(CLIENTS)]
        for restart in (proxy.reload, proxy.kill):
            await asyncio.sleep(seconds)
            await asyncio.to_thread(restart)
        await asyncio.sleep(seconds)
        going.clear()
        await asyncio.gather(*clients)
    finally:
        await asyncio.to_thread(proxy.stop)
    return answers


def check(folder: Path, durable: Any, answers: Counter[Any]) -> str:
    """Compare the notes of the workers, the answers of the clients and the journal."""
    asked: Counter[int] = Counter()
    told: Counter[tuple[int, float]] = Counter()
    killed: set[int] = set()  # what workers without an end had asked
    for path in folder.glob("*.notes"):
        notes = [line.split() for line in path.read_text().splitlines()]
        here = [int(note[1]) for note in notes if note[0] == "asked"]
        asked.update(here)
        told.update((int(note[1]), float(note[2])) for note in notes if note[0] == "told")
        killed.update([] if ["end"] in notes else here)
    log = durable.log()
    journal = {row["id"]: row for row in log.iter_rows(named=True)}
    learned = {n: row["loss"] for n, row in journal.items() if row["status"] == "told"}
    open_ = set(journal) - set(learned)
    assert len(journal) == log.height
    assert set(asked.values()) == set(told.values()) == {1}  # nothing is doubled
    assert set(asked) <= set(journal)  # nothing is lost
    assert all(learned[number] == loss for number, loss in told), "learned is what was told"
    # Only those that were killed left something open, or did not note what they did at the end.
    unnoted = set(journal) - set(asked)
    lost = open_ - killed - unnoted
    assert not lost, f"{len(lost)} of {len(open_)}\n{(folder / 'proxy.log').read_text()[-5000:]}"
    assert len(unnoted) <= CLIENTS
    assert len(open_) <= 2 * CLIENTS
    assert set(learned) - {number for number, _ in told} <= killed | unnoted
    good = sum(count for key, count in answers.items() if key[0] == 200)
    succeeded = sum(loss != FAILED for loss in learned.values())
    assert good <= succeeded + len(open_), (good, succeeded)
    names = Counter(row["name"] for row in journal.values())
    return (
        f"{good} answers, {len(journal)} choices {dict(names)}, {len(learned)} learned; after the "
        f"kill {len(open_)} are open and {len(unnoted)} were not noted"
    )


def doubled(folder: Path, durable: Any, answers: Counter[Any]) -> None:
    """The control: a choice that is not in the journal, and one that was told twice."""
    path = next(path for path in folder.glob("*.notes") if "told" in path.read_text())
    notes = path.read_text()
    twice = next(line for line in notes.splitlines() if line.startswith("told"))
    for wrong in (f"asked {10**12}", twice):
        path.write_text(f"{notes}{wrong}\n")
        try:
            check(folder, durable, answers)
        except AssertionError:
            continue
        raise RuntimeError(f"{wrong} was not noticed")
    path.write_text(notes)


@contextlib.contextmanager
def stored(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    if "--postgres" not in sys.argv:
        yield str(folder), {}
        return
    sys.path.insert(0, str(ROOT / "tests" / "durable"))
    from postgres_server import Server

    with contextlib.closing(Server()) as server:
        yield server.url(), {"name": "chat"}


def main() -> None:
    if "--here" not in sys.argv:
        packages = [f"litellm[proxy]=={VERSION}", "uvicorn-worker", "psycopg[binary]"]
        raise SystemExit(run_in("litellm-proxy", packages, [*sys.argv, "--here"]))
    from unbounded.durable import Durable

    seconds = [float(x.partition("=")[2]) for x in sys.argv if x.startswith("--seconds=")]
    with tempfile.TemporaryDirectory() as name, stored(Path(name)) as (routes, given):
        folder = Path(name)
        start = time.monotonic()
        answers = asyncio.run(load(folder, routes, *(seconds or [30.0])))
        print(f"{WORKERS} workers, {CLIENTS} clients, {time.monotonic() - start:.0f} s:", answers)
        with Durable(routes if given else folder / "chat.db", **given) as durable:
            print(check(folder, durable, answers))
            assert durable.verify() > 0
            doubled(folder, durable, answers)


if __name__ == "__main__":
    main()
