"""Failures of the power, simulated: what a disk must keep is kept, and the rest at random."""

import os
import random
import shutil
import sys

import pytest

from durable.power_loss import disk_after, trace
from unbounded import SCB
from unbounded.durable import Durable

# The last word that it says in a turn is what was acknowledged: how many rows.
PLAY = """
import os, sys
from unbounded import SCB
from unbounded.durable import Durable
path, synchronous = sys.argv[1:]
rows = 0
for session in range(4):
    with Durable(path, SCB(n_arms=3, seed=0), synchronous=synchronous) as arms:
        os.write(1, b"%d " % rows)
        arms._session.store._connection.execute("PRAGMA wal_autocheckpoint = 40")
        for t in range(25):
            choice = arms.ask(key=f"{session} {t}")
            rows += 1
            os.write(1, b"%d " % rows)
            arms.tell(choice.id, loss=float(t % 7))
            rows += 1
            os.write(1, b"%d " % rows)
"""


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    if shutil.which("strace") is None:
        pytest.skip("strace is missing")
    found = {}
    for synchronous in ("normal", "full"):
        folder = tmp_path_factory.mktemp(synchronous) / "disk"
        folder.mkdir()
        command = [sys.executable, "-c", PLAY, str(folder / "arms.db"), synchronous]
        found[synchronous] = trace(command, folder, os.environ | {"UNBOUNDED_JIT": "never"})
    return found


def failures(events, folder, rng, times):
    """For failures at random moments after the file was made: acknowledged rows, rows left."""
    begin = next(i for i, event in enumerate(events) if event.kind == "said")
    for number in range(times):
        until = rng.randrange(begin + 1, len(events) + 1)
        said = [event.data for event in events[:until] if event.kind == "said"]
        place = folder / str(number)
        place.mkdir()
        for name, content in disk_after(events[:until], rng).items():
            (place / name).write_bytes(content)
        with Durable(place / "arms.db", SCB(n_arms=3, seed=0)) as arms:
            rows = arms.status().rows
            assert arms.verify() == rows
        yield int(said[-1]), rows
        shutil.rmtree(place)


@pytest.mark.parametrize("times", [40, pytest.param(1000, marks=pytest.mark.long)])
def test_what_was_acknowledged_survives_a_failure_of_the_power(traced, tmp_path, times):
    for acknowledged, rows in failures(traced["full"], tmp_path, random.Random(1), times):
        assert rows in (acknowledged, acknowledged + 1)  # the next call may be on the disk already


@pytest.mark.parametrize("times", [40, pytest.param(1000, marks=pytest.mark.long)])
def test_by_default_the_last_calls_may_be_lost_and_the_file_stays_sound(traced, tmp_path, times):
    lost = 0
    for acknowledged, rows in failures(traced["normal"], tmp_path, random.Random(2), times):
        assert 0 <= rows <= acknowledged + 1
        lost += rows < acknowledged
    assert lost > times / 10  # or the simulated disk would forget nothing
