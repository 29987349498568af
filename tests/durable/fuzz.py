"""Random calls of several processes, forks, kills and file tricks on one durable learner.

    python tests/durable/fuzz.py DIRECTORY STEPS SEED [forks | checks | marks]

A coordinator sends commands to workers, which are forked from one another and from a nursery that
has never opened the file. It knows what was acknowledged. Whatever happens, the file must open and
verify, and hold every acknowledged tell once. Some calls are requests to examples/service.py. The
last argument takes a protection away, and then a loss must be found.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections import Counter
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__).resolve()
ODD: list[Any] = [
    math.nan, math.nan, math.inf, -math.inf, None, True, "1.0", "", [], [1.0], {}, 10**400,
    -(2**70), "\ud800", "a\0b", "x" * 501,
]  # fmt: skip
ALLOWED = {"DurableError", "BusyError", "ValueError", "TypeError", "RuntimeError", "IndexError"}
BODIES = [
    b"",
    b"[]",
    b"{}",
    b"null",
    b"\xff",
    b'{"id": 1}',
    b'{"id": [], "loss": {}}',
    b"[" * 9999,
]


# ---------------------------------------------------------------------- a worker


class Interrupt(BaseException):
    """What a signal raises in the middle of a command."""


class Worker:
    """Carries out what it is told, on Durables of its own and on those that it has inherited."""

    def __init__(self, address: str, path: str) -> None:
        self.address, self.path = address, path
        self.handles: dict[int, Any] = {}
        self.service: Any = None
        self.socket: Any = None
        self.busy = False
        signal.signal(signal.SIGUSR1, self.interrupt)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        self.connect()

    def interrupt(self, *_: object) -> None:
        if self.busy:
            raise Interrupt

    def connect(self) -> None:
        if self.socket is not None:  # the parent's: its end must be seen when the parent ends
            self.lines.close()
            self.socket.close()
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(self.address)
        self.lines = self.socket.makefile("rb")
        self.say({"pid": os.getpid()})

    def say(self, answer: Any) -> None:
        self.socket.sendall((json.dumps(answer) + "\n").encode())

    def run(self) -> NoReturn:
        while line := self.lines.readline():
            command = json.loads(line)
            if command["do"] == "fork":
                python = command["way"] == "python"
                if (os.fork() if python else ctypes.CDLL(None).fork()) == 0:
                    self.connect()
                continue
            try:
                self.busy = True
                answer = {"is": getattr(self, command["do"])(**command["with"])}
                self.busy = False
            except SystemExit:
                raise
            except BaseException as error:
                self.busy = False
                names = [one.__name__ for one in type(error).__mro__]
                answer = {"error": names, "says": str(error)[:300]}
            self.say(answer)
        os._exit(0)

    # What it can be told.

    def use(self, slot: int, call: str, **given: Any) -> Any:
        """A public call of a Durable, which is opened if need be."""
        from unbounded.durable import Durable

        if slot not in self.handles:
            self.handles[slot] = Durable(self.path, read_only=slot == 3, timeout=20.0)
        if "older_than" in given:
            given["older_than"] = timedelta(seconds=given["older_than"])
        try:
            found = getattr(self.handles[slot], call)(**given)
        except RuntimeError as error:
            if "open it again" in str(error):
                del self.handles[slot]
            raise
        if call == "ask":
            return [found.id, found.name, found.probability]
        return found if isinstance(found, bool | int | list | None) else None

    def end(self, slot: int, way: str) -> None:
        arms = self.handles.pop(slot, None)
        if arms is not None and way == "close":
            arms.close()

    def serve(self) -> None:
        from durable.asgi import service

        if self.service is None:
            self.service = service(Path(self.path))

    def post(self, route: str, body: str, key: str | None) -> Any:
        from durable.asgi import post

        self.serve()
        try:
            name = None if key is None else key.encode("latin-1", "replace")
            return post(self.service.app, route, body.encode("latin-1"), name)
        except RuntimeError as error:
            if "open it again" in str(error):
                self.service = None
            raise

    def read(self, end: str) -> None:
        with contextlib.suppress(FileNotFoundError), open(self.path + end, "rb") as file:
            file.read()

    def leave(self) -> NoReturn:
        sys.exit(0)

    def audit(self) -> Any:
        from unbounded.durable import Durable

        with Durable(self.path, timeout=20.0) as arms:
            arms.verify()
            log = arms.log()
            rows = [list(row) for row in log.select("id", "status", "loss", "key").iter_rows()]
            return {"rows": rows, "outstanding": arms.outstanding()}


def spoil(what: str) -> None:
    """Take a protection away, as a control: the fuzzer must then find the loss."""
    from unbounded.durable import feedback, files, forks, learner, store

    if what == "forks":
        forks._alive = type("Nobody", (list,), {"add": lambda *_: None})()
        files.OFD = store.OFD = False
        files.Files.moved = lambda _: ""
    elif what == "marks":
        files.Files.mark = lambda _: None
    elif what == "checks":
        checked = feedback.checked_feedback

        def trusting(of: Any, given: Any, n_arms: int) -> Any:
            loss = given.get("loss")
            return feedback.Feedback(loss) if type(loss) is float else checked(of, given, n_arms)

        learner.checked_feedback = trusting
        store.Store.append = lambda self, row: self.query(store._INSERT, row)


def nursery(address: str, path: str, control: str) -> NoReturn:
    """A process that has imported everything and opened nothing."""
    import unbounded
    from unbounded import SCB
    from unbounded.durable import Durable, session

    spoil(control)

    warnings.simplefilter("ignore")
    unbounded.settings.jit = "never"
    session._EVERY = 20  # a worker that was forked has less to replay
    for _ in range(2):  # what is loaded here need not be loaded by every worker
        with Durable(path + ".other", SCB(n_arms=3)) as arms:
            arms.tell(arms.ask(), loss=1.0)
            arms.log(), arms.verify(), arms.learner(), arms.status()
    with contextlib.suppress(ImportError):
        import_module("durable.asgi").service(Path(path + ".service")).arms.close()
    Worker(address, path).run()


# ---------------------------------------------------------------------- the coordinator


class Peer:
    """A worker, as the coordinator sees it."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        connection.settimeout(600.0)  # one that hangs is found too
        self.lines = connection.makefile("rb")
        self.pid = self.hear()["pid"]

    def send(self, do: str, **given: Any) -> None:
        self.socket.sendall((json.dumps({"do": do, "with": given}) + "\n").encode())

    def hear(self) -> Any:
        """What it answers; None if it has ended."""
        try:
            line = self.lines.readline()
        except OSError:
            line = b""
        return json.loads(line) if line.endswith(b"\n") else None

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


class Fuzz:
    """Sends commands, and remembers what was acknowledged."""

    def __init__(self, directory: Path, seed: int, control: str = "") -> None:
        self.rng = random.Random(seed)
        self.path = directory / "arms.db"
        self.tricks = ["read"] * 6 + ["link", "move", "swap"] * 2
        if control != "forks":  # which takes the mark away too
            self.tricks.append("lose")
        self.asked: dict[int, str | None] = {}
        self.told: dict[int, float] = {}
        self.tried: dict[int, set[float]] = {}  # what may have been told
        self.gone: set[int] = set()  # forgotten, expired, or told before a restart
        self.keys: dict[str, int] = {}
        self.counts: Counter[str] = Counter()
        self.names = 0
        self.pruned = False
        self.linked = False
        address = str(directory / "socket")
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(address)
        self.listening.listen()
        command = [sys.executable, str(HERE), "nursery", address, str(self.path), control]
        path = os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
        with open(directory / "stderr.txt", "wb") as said:
            environment = os.environ | {"PYTHONPATH": path}
            self.process = subprocess.Popen(command, env=environment, stderr=said)
        self.nursery = self.accept()
        self.peers: list[Peer] = []
        self.born()
        self.peers[0].send("serve")
        assert self.peers[0].hear() == {"is": None}

    def accept(self) -> Peer:
        self.listening.settimeout(60.0)
        return Peer(self.listening.accept()[0])

    def born(self) -> None:
        self.nursery.socket.sendall(b'{"do": "fork", "way": "python"}\n')
        self.peers.append(self.accept())

    # ------------------------------------------------------------------ one step

    def step(self) -> None:
        rng = self.rng
        if not self.peers or (len(self.peers) < 5 and rng.random() < 0.02):
            self.born()
        peer = rng.choice(self.peers)
        chance = rng.random()
        if chance < 0.02:
            self.fork(peer)
        elif chance < 0.035:
            self.end(peer)
        elif chance < 0.06:
            self.trick(peer)
        else:
            how = rng.random()
            self.call(peer, "kill" if how < 0.01 else "interrupt" if how < 0.03 else "")

    def fork(self, peer: Peer) -> None:
        way = "c" if self.rng.random() < 0.2 else "python"
        peer.socket.sendall((json.dumps({"do": "fork", "way": way}) + "\n").encode())
        self.peers.append(self.accept())
        self.counts["forks"] += 1
        while len(self.peers) > 8:
            self.end(self.peers[0])

    def end(self, peer: Peer) -> None:
        self.peers.remove(peer)
        if self.rng.random() < 0.5:
            peer.kill()
            self.counts["kills"] += 1
        else:
            peer.send("leave")
            self.counts["exits"] += 1
        assert peer.hear() is None

    def trick(self, peer: Peer) -> None:
        """What people do to files."""
        kind = self.rng.choice(
            ["read"] * 6 + ["link", "link", "move", "move", "swap", "swap", "lose"]
        )
        self.counts[kind] += 1
        other = self.path.with_name("other.db")
        if kind == "read":
            peer.send("read", end=self.rng.choice(["", "", "-wal", "-shm"]))
            assert peer.hear() == {"is": None}
        elif kind == "link" and self.path.exists():
            os.link(self.path, other)
            self.call(peer, "")
            other.unlink()
        elif kind == "move":
            self.path.rename(other)
            for _ in range(3):
                peer.send("use", slot=0, call="ask")
                assert "error" in peer.hear()
            other.rename(self.path)
        elif kind == "lose":
            self.lose()
        elif kind == "swap":  # a backup takes its place while it is in use
            peer.send("use", slot=0, call="backup", path=str(other))
            if peer.hear() == {"is": None}:
                for end in ("-wal", "-shm"):
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(f"{self.path}{end}")
                other.rename(self.path)

    def lose(self) -> None:
        """Remove the log and the shared memory when all have ended: that is noticed, or no loss."""
        for peer in self.peers:
            peer.kill()
            assert peer.hear() is None
        self.counts["kills"] += len(self.peers)
        self.peers.clear()
        ends = [end for end in ("-wal", "-shm") if os.path.exists(f"{self.path}{end}")]
        for end in ends:
            os.rename(f"{self.path}{end}", f"{self.path}.kept{end}")
        if self.audit(may_be_lost=True):
            self.counts["noticed"] += 1
            for end in ends:
                os.rename(f"{self.path}.kept{end}", f"{self.path}{end}")

    def call(self, peer: Peer, how: str) -> None:
        rng = self.rng
        slot = rng.choice([0, 0, 0, 1, 2, 3])
        waiting = [ticket for ticket in self.asked if ticket not in self.told] or [1 << 20]
        ticket: Any = rng.choice(waiting[-20:] if rng.random() < 0.8 else list(self.asked) or [7])
        loss: Any = rng.expovariate(1.0) * 10.0 ** rng.randrange(-3, 4)
        if rng.random() < 0.15:
            loss = rng.choice(ODD)
        if rng.random() < 0.05:
            ticket = rng.choice([*ODD, ticket + 1, -1, 2**63])
        old_key = rng.choice(list(self.keys) or ["k"])
        key = rng.choice([None, None, f"k{rng.randrange(10**6)}", old_key])
        if rng.random() < 0.02:
            key = rng.choice(ODD)
        ways = rng.random()
        if ways < 0.35:
            self.do(peer, how, "use", slot=slot, call="ask", key=key)
        elif ways < 0.7:
            repeated = rng.choice(["raise", "ignore"])
            name = "loss" if rng.random() < 0.9 else "reward"
            given = {"ticket": ticket, name: loss, "repeated": repeated}
            self.do(peer, how, "use", slot=slot, call="tell", **given)
        elif ways < 0.75:
            key = None if key is None else str(key).encode("latin-1", "replace").decode("latin-1")
            self.do(peer, how, "post", route="/choose", body="", key=key)
        elif ways < 0.82:
            body = json.dumps({"id": ticket, "loss": loss}) if rng.random() < 0.9 else None
            body = body or rng.choice(BODIES).decode("latin-1")
            self.do(peer, how, "post", route="/outcome", body=body, key=None)
        elif ways < 0.84:
            self.do(peer, how, "use", slot=slot, call="forget", ticket=ticket)
        elif ways < 0.85:
            age = rng.choice([0, 3600])
            self.do(peer, how, "use", slot=slot, call="expire", older_than=age, loss=loss)
        elif ways < 0.856:
            self.names += 1
            self.do(peer, how, "use", slot=slot, call="add_arm", name=f"arm {self.names}")
        elif ways < 0.86:
            name = rng.choice(["eu-1", "eu-2", f"arm {self.names}", "none", ""])
            self.do(peer, how, "use", slot=slot, call="retire_arm", name=name)
        elif ways < 0.863:
            self.do(peer, how, "use", slot=slot, call="prune", older_than=rng.choice([0, 3600]))
        elif ways < 0.89:
            self.do(peer, how, "end", slot=slot, way=rng.choice(["close", "drop"]))
        elif ways < 0.895:
            self.do(peer, how, "use", slot=slot, call=rng.choice(["verify", "log"]))
        else:
            call = rng.choice(["status", "outstanding", "learner"])
            self.do(peer, how, "use", slot=slot, call=call)

    def do(self, peer: Peer, how: str, do: str, **given: Any) -> None:
        call = given.get("call", given.get("route", do))
        if do == "post" and how == "interrupt":
            how = ""  # asyncio goes on after such an error without what it was about to do
        peer.send(do, **given)
        if how:
            time.sleep(self.rng.choice([0.0, 0.0, 1e-4, 5e-4, 2e-3]))
            self.counts[f"{how}s"] += 1
        if how == "kill":
            peer.kill()
            self.peers.remove(peer)
        elif how == "interrupt":
            os.kill(peer.pid, signal.SIGUSR1)
        answer = peer.hear()
        assert answer is not None or how == "kill", f"a worker died in {do} {given}"
        self.counts[call] += 1
        self.learn(call, given, answer)

    def learn(self, call: str, given: dict[str, Any], answer: Any) -> None:
        """Remember what was acknowledged, and what may have happened."""
        error = None if answer is None else answer.get("error")
        if error is not None:
            assert ALLOWED & set(error) or "Interrupt" in error, (call, given, answer)
            assert "damaged" not in answer["says"], (call, given, answer)
            self.counts[error[0]] += 1
        unknown = answer is None or (error is not None and "Interrupt" in error)
        found = None if answer is None else answer.get("is")
        ticket: Any = given.get("ticket")
        loss: Any = given.get("loss", given.get("reward"))
        if call.startswith("/"):
            told = json.loads(given["body"]) if given["body"].startswith('{"id": ') else {}
            ticket, loss = told.get("id"), told.get("loss")
            loss = 30.0 if loss is None else loss  # what the example counts a failure as
            if isinstance(found, list):
                assert found[0] in (200, 400, 422), (given, answer)
                found = found[1] if found[0] == 200 else None
        if call in ("ask", "/choose") and found is not None:
            number = found["id"] if isinstance(found, dict) else found[0]
            key = given.get("key")
            if key is not None and not self.pruned and self.keys.setdefault(key, number) != number:
                raise AssertionError(f"{key} gave {self.keys[key]} and {number}")
            self.asked.setdefault(number, key)
        learned = found.get("learned") if isinstance(found, dict) else found
        if call in ("tell", "/outcome") and type(ticket) is int:
            if given.get("reward") is not None and isinstance(loss, int | float):
                loss = -loss
            if learned is True:
                assert isinstance(loss, int | float), (given, answer)
                assert math.isfinite(loss), (given, answer)
                assert ticket not in self.told, f"{ticket} was learned twice"
                self.told[ticket] = float(loss)
            elif unknown and type(loss) in (int, float) and abs(loss) <= sys.float_info.max:
                self.tried.setdefault(ticket, set()).add(float(loss))
        if call in ("forget", "expire", "prune") and (unknown or error is None):
            if call == "forget":
                self.gone.add(ticket)
            elif call == "expire" and given["older_than"] == 0:
                self.gone.update(self.asked)
            elif call == "prune" and given["older_than"] == 0:
                self.pruned = True

    # ------------------------------------------------------------------ what must be true

    def audit(self, *, may_be_lost: bool = False) -> bool:
        """Look whether the file has all that was acknowledged; True if it says that it has not."""
        self.born()
        judge = self.peers.pop()
        judge.send("audit")
        answer = judge.hear()
        assert answer is not None, "the judge died"
        judge.kill()
        if may_be_lost and "write-ahead log is missing" in answer.get("says", ""):
            return True
        assert "error" not in answer, answer
        rows = {row[0]: row for row in answer["is"]["rows"]}
        assert len(rows) == len(answer["is"]["rows"])
        first = min(rows, default=0)
        for ticket in self.asked:
            assert ticket in rows or (self.pruned and ticket < first), f"ask {ticket} is lost"
        for ticket, loss in self.told.items():
            if ticket in rows:
                assert rows[ticket][1:3] == ["told", loss], f"tell {ticket} is lost: {rows[ticket]}"
        for ticket, status, loss, _ in rows.values():
            if status == "told" and ticket not in self.told:
                assert loss in self.tried.get(ticket, ()), f"{ticket} was told by nobody"
            if status in ("expired", "forgotten"):
                assert ticket in self.gone or ticket not in self.asked, f"{ticket} was given up"
        assert set(answer["is"]["outstanding"]) == {
            r[0] for r in rows.values() if r[1] == "waiting"
        }
        self.counts["audits"] += 1
        return False

    def close(self) -> None:
        for peer in [*self.peers, self.nursery]:
            peer.kill()
        self.process.wait()
        self.listening.close()


def fuzz(directory: Path, steps: int, seed: int, control: str = "") -> Counter[str]:
    """Play ``steps`` steps, 2,000 on each file; how often things were done."""
    counts: Counter[str] = Counter()
    while counts["steps"] < steps:
        place = directory / f"{seed}-{counts['steps']}"
        place.mkdir()
        one = Fuzz(place, seed + counts["steps"], control)
        try:
            for number in range(min(2000, steps - counts["steps"])):
                one.step()
                counts["steps"] += 1
                if number % 250 == 249:
                    one.audit()
            while one.peers:
                one.end(one.peers[0])
            one.audit()
        except BaseException:
            print(f"seed {seed}, step {counts['steps']}, {dict(one.counts)}", file=sys.stderr)
            raise
        finally:
            one.close()
        counts += one.counts
        shutil.rmtree(place)
    return counts


if __name__ == "__main__":
    if sys.argv[1] == "nursery":
        nursery(*sys.argv[2:])
    directory, steps, seed, *control = sys.argv[1:]
    print(json.dumps(fuzz(Path(directory), int(steps), int(seed), *control), indent=1))
