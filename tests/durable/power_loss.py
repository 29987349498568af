"""A disk that loses power: what a process wrote, as strace saw it, and what is left of it.

What was written before the last sync of its file is there. Of what was written after it, any 512
bytes may be there or not, in any order. A file that was made or removed is so for certain after the
next sync of its directory.
"""

from __future__ import annotations

import random
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

SECTOR = 512
FOLDER = "."
CALLS = "openat,write,pwrite64,ftruncate,fsync,fdatasync,unlink"
_LINE = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\) += (\d+)", re.DOTALL)
_BYTES = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


@dataclass
class Event:
    """One call: what it did to which file of the directory, or an acknowledgement."""

    kind: str
    name: str = ""
    data: bytes = b""
    offset: int = 0


def trace(command: list[str], folder: Path, env: dict[str, str]) -> list[Event]:
    """Run a command, and say in order what it did in ``folder`` and printed."""
    log = folder.parent / "trace.txt"
    options = ["-f", "-y", "-xx", "-s", "1000000", "-e", f"trace={CALLS}", "-o", str(log)]
    subprocess.run(["strace", *options, *command], check=True, env=env, stdout=subprocess.DEVNULL)
    events = []
    for line in log.read_text().splitlines():
        found = _LINE.match(line)
        if found is None:
            continue
        call, arguments, result = found.groups()
        texts = [bytes.fromhex(text.replace("\\x", "")) for text in _BYTES.findall(arguments)]
        paths = [bytes.fromhex(p.replace("\\x", "")) for p in re.findall(r"<([^>]*)>", arguments)]
        path = Path((texts[0] if call == "unlink" else (paths or [b""])[0]).decode(errors="ignore"))
        if call == "write" and arguments.startswith("1<"):
            events.append(Event("said", data=texts[0]))
        elif path == folder and call in ("fsync", "fdatasync"):
            events.append(Event("sync", FOLDER))
        elif path.parent != folder or path.name.endswith("-shm"):
            continue
        elif call == "pwrite64":
            events.append(Event("write", path.name, texts[0], int(arguments.rsplit(", ", 1)[1])))
            assert int(result) == len(texts[0])
        elif call == "ftruncate":
            events.append(Event("cut", path.name, offset=int(arguments.rsplit(", ", 1)[1])))
        elif call in ("fsync", "fdatasync"):
            events.append(Event("sync", path.name))
        elif call == "unlink":
            events.append(Event("remove", path.name))
        else:
            assert call == "openat", f"{call} is not simulated: {line[:200]}"
    return events


@dataclass
class File:
    """What the disk has for certain of a file, and what it was given since."""

    safe: bytearray = field(default_factory=bytearray)
    pending: list[Event] = field(default_factory=list)

    def sync(self) -> None:
        for event in self.pending:
            if event.kind == "cut":
                del self.safe[event.offset :]
            else:
                put(self.safe, event.offset, event.data)
        self.pending.clear()

    def left(self, rng: random.Random) -> bytearray:
        """What is left of it after a failure."""
        content, share = bytearray(self.safe), rng.choice([0.0, 0.5, 0.9, 1.0])
        for event in self.pending:
            if event.kind == "cut":
                if rng.random() < share:
                    del content[event.offset :]
                continue
            for begin in range(0, len(event.data), SECTOR):
                if rng.random() < share:
                    put(content, event.offset + begin, event.data[begin : begin + SECTOR])
        return content


def put(content: bytearray, offset: int, data: bytes) -> None:
    content.extend(bytes(max(0, offset + len(data) - len(content))))
    content[offset : offset + len(data)] = data


def disk_after(events: list[Event], rng: random.Random) -> dict[str, bytearray]:
    """The files of a disk that lost power after these events."""
    names: dict[str, list[File | None]] = {}  # what a name may lead to; the last one is the newest
    for event in events:
        if event.kind == "said":
            continue
        if event.name == FOLDER:
            names = {name: files[-1:] for name, files in names.items()}
            continue
        files = names.setdefault(event.name, [None])
        if event.kind == "remove":
            files.append(None)
            continue
        if files[-1] is None:
            files.append(File())
        file = files[-1]
        assert file is not None
        if event.kind == "sync":
            file.sync()
        else:
            file.pending.append(event)
    chosen = {name: rng.choice(files) for name, files in names.items()}
    return {name: file.left(rng) for name, file in chosen.items() if file is not None}
