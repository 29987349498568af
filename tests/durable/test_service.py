"""The example service, and under load while its workers are restarted; the image that has it."""

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from unbounded import recommend
from unbounded.durable import Durable

SCRIPT = Path(__file__).with_name("service_load.py")
ROOT = SCRIPT.parents[2]
PAGE = ROOT / "docs" / "guide" / "production.md"
NEEDED = ("fastapi", "prometheus_client", "uvicorn_worker", "gunicorn")
needs_service = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED) or not hasattr(os, "fork"),
    reason="needs pip install 'unbounded[service]', and a system with fork",
)


@needs_service
@pytest.mark.parametrize(
    ("clients", "workers", "seconds"),
    [(10, 2, 4), pytest.param(100, 4, 60, marks=pytest.mark.long)],
)
def test_no_tell_is_lost_or_doubled(tmp_path, clients, workers, seconds):
    command = [sys.executable, str(SCRIPT), str(tmp_path)]
    command += [str(clients), str(workers), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True)
    log = tmp_path / "service.log"
    assert done.returncode == 0, done.stderr + (log.read_text() if log.exists() else "")
    assert json.loads(done.stdout)["told"] > clients


@pytest.fixture
def served(tmp_path):
    pytest.importorskip("fastapi", reason="needs pip install 'unbounded[service]'")
    from durable.asgi import service

    opened = []

    def start(**environment):
        for one in opened:
            one.arms.close()
        opened.append(service(tmp_path / "arms.db", **environment))
        return opened[-1]

    yield start
    opened[-1].arms.close()


def test_what_the_service_answers(served):
    from durable.asgi import answered, post

    module = served()
    app, arms = module.app, module.arms
    assert module.best.name == recommend(lower=0.0, changing=True).name
    status, choice = post(app, "/choose", key=b"1")
    assert (status, post(app, "/choose", key=b"1")) == (200, (200, choice))
    told = json.dumps({"id": choice["id"], "loss": 0.31}).encode()
    assert [post(app, "/outcome", told)[1] for _ in range(2)] == [
        {"learned": True}, {"learned": False},
    ]  # fmt: skip
    asked = [post(app, "/choose", query=b"available=us-1")[1] for _ in range(4)]
    assert {choice["server"] for choice in asked} == {"us-1"}
    before = arms.status().counts["us-1"].loss
    post(app, "/outcome", json.dumps({"id": asked[0]["id"], "loss": None}).encode())
    assert arms.status().counts["us-1"].loss == before + module.FAILED
    for wrong in ({"id": asked[1]["id"]}, {"id": asked[1]["id"], "loss": "1.0"}, {"id": 7}):
        assert post(app, "/outcome", json.dumps(wrong).encode())[0] == 422
    for wrong in (b'{"id": 1, "loss": NaN}', b'{"id": 123, "loss": 1.0}'):
        assert post(app, "/outcome", wrong)[0] == 400
    assert post(app, "/choose", query=b"available=none")[0] == 400
    assert arms.status().rounds == 2
    assert b'unbounded_asks_total{arm="us-1",' in answered(app, "GET", "/metrics/")[1]


def test_a_server_that_is_new_becomes_an_arm_and_one_that_is_gone_remains(served):
    first = served()
    for _ in range(50):
        choice = first.arms.ask()
        first.arms.tell(choice, loss=1.0 + (choice.name != "eu-2"))
    learned = first.arms.status().probabilities[1]
    then = served(SERVERS="eu-2,us-1,ap-1")
    status = then.arms.status()
    assert status.arms == ("eu-1", "eu-2", "us-1", "ap-1")
    assert status.probabilities[1] == pytest.approx(0.75 * learned, rel=0.2)
    assert served(SERVERS="eu-2,us-1,ap-1").arms.status().epoch == status.epoch == 1


def dockerfile():
    """Return the instructions of the page's Dockerfile."""
    block = re.search(r"```dockerfile\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    return [line.partition(" ")[::2] for line in block[1].replace("\\\n", "").splitlines()]


def test_the_image_compiles_what_the_service_plays():
    text = "\n".join(f"{name} {rest}" for name, rest in dockerfile())
    assert f"unbounded.warm('{recommend(lower=0.0, changing=True).name}'" in text
    assert "service:app" in text
    assert (ROOT / "examples" / "service.py").is_file()


@pytest.mark.long
def test_the_instructions_of_the_image_work(tmp_path):
    """RUN and COPY, with the image's paths in a directory and an environment of its own."""
    environment = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    environment["PATH"] = f"{tmp_path / 'venv' / 'bin'}:{os.environ['PATH']}"
    sources = {"unbounded": ROOT, "service.py": ROOT / "examples" / "service.py"}
    inside = lambda text: re.sub(r"(?<![\w.])/(src|opt|app|data)\b", rf"{tmp_path}/\1", text)  # noqa: E731
    ran = []
    for name, rest in dockerfile():
        words = shlex.split(inside(rest))
        if name == "ENV":
            environment.update(word.split("=", 1) for word in words)
        elif name == "COPY":
            target = Path(words[1]) / (words[0] if words[1].endswith("/") else "")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(sources[words[0]])
        elif name == "RUN":
            command = inside(rest)
            if os.getuid() != 0:
                command = re.sub(r"&& chown \S+ \S+", "", command)
            done = subprocess.run(
                command, shell=True, env=environment, cwd=tmp_path, capture_output=True, text=True
            )
            assert done.returncode == 0, (command, done.stdout, done.stderr)
            ran.append(command)
        elif name == "CMD":
            words = json.loads(inside(rest))
            words[words.index("-b") + 1] = f"unix:{tmp_path}/socket"
            check = [*words, "--check-config"]
            done = subprocess.run(check, env=environment, cwd="/", capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
    assert len(ran) == 3
    with Durable(tmp_path / "data" / "arms.db") as arms:  # --check-config has imported the service
        assert arms.status().settings["half_life"] == 1000
