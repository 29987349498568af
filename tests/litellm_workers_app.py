"""The proxy of examples/litellm_proxy.py, whose workers note what they choose and learn."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

from litellm_proxy import app

from unbounded.adapters.litellm import ScaleFreeRouting, _Group

choose, tell, started = ScaleFreeRouting._choose, _Group.tell, app.router.lifespan_context
notes = -1


def note(*said: Any) -> None:
    os.write(notes, (" ".join(map(str, said)) + "\n").encode())


def chosen(self: ScaleFreeRouting, *args: Any) -> tuple[str, str]:
    ticket, name = choose(self, *args)
    note("asked", int(self._waiting[ticket][1].id))
    return ticket, name


def told(self: _Group, choice: Any, loss: float) -> None:
    tell(self, choice, loss)
    note("told", int(choice.id), repr(loss))


@contextlib.asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[Any]:
    global notes
    async with started(app) as state:
        path = Path(os.environ["NOTES"]) / f"{os.getpid()}.notes"
        notes = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        yield state
    note("end")


ScaleFreeRouting._choose, _Group.tell = chosen, told  # type: ignore[method-assign]
app.router.lifespan_context = lifespan
