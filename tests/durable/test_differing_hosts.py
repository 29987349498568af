"""Hosts that differ in how they compute: what the journal says is what counts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from postgres_server import missing

from unbounded import CostSCB
from unbounded.durable import Durable, DurableError

pytestmark = pytest.mark.skipif(missing(), reason="there is no PostgreSQL")
ROOT = Path(__file__).parents[2]
PLAY = """
import json, sys
import numba
from unbounded.durable import Durable

url, staleness, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
arms = Durable(url, name="hosts", staleness=staleness, timeout=60.0)
chosen = {}
for t in range(rounds):
    choice = arms.ask()
    chosen[choice.id] = [choice.arm, choice.probability]
    arms.tell(choice.id, 1.0 + 0.1 * choice.arm + 0.01 * (t % 7))
rows = arms.verify()
arms.close()
print(json.dumps([numba.__version__, chosen, rows]))
"""


def checked(hosts, url, rounds):
    """Play here and on these hosts at the same time; the versions of Numba."""
    learner, chosen, versions = CostSCB(3, seed=0), {}, set()
    for staleness in (16, 0):  # these versions have the same bits, and can take turns
        here = Durable(url, learner, name="hosts", staleness=staleness, timeout=60.0)
        processes = []
        for python, jit in hosts:
            environment = os.environ | {"UNBOUNDED_JIT": jit, "PYTHONPATH": str(ROOT / "src")}
            command = [python, "-W", "ignore", "-c", PLAY, url, str(staleness), str(rounds)]
            processes.append(
                subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
            )
        for _ in range(rounds):
            choice = here.ask()
            chosen[choice.id] = [choice.arm, choice.probability]
            here.tell(choice, 1.0 + 0.1 * choice.arm)
        for process in processes:
            out, _ = process.communicate(timeout=600)
            assert process.returncode == 0
            version, some, _ = json.loads(out)
            chosen |= {int(ticket): pair for ticket, pair in some.items()}
            versions.add(version)
    assert len(chosen) == 2 * (1 + len(hosts)) * rounds
    log = {row["id"]: row for row in here.log().to_dicts()}
    assert {ticket: [row["arm"], row["probability"]] for ticket, row in log.items()} == chosen
    assert {row["status"] for row in log.values()} == {"told"}
    assert here.verify() == 2 * len(chosen)
    return versions


def test_an_interpreted_host_beside_this_one(database):
    checked([(sys.executable, "never")], database.url(), 40)


@pytest.mark.long
def test_a_host_with_another_numba(database, tmp_path):
    sys.path.insert(0, str(ROOT / "tests"))
    from numba_versions import OLDEST, environment_of

    other = environment_of(OLDEST, tmp_path / "other", "postgres,experiments")
    hosts = [(sys.executable, "never"), (other, "always")]
    assert len(checked(hosts, database.url(), 200)) == 2


def test_states_that_differ_in_the_last_digits(database):
    """A snapshot of a host whose bits differ is no damage; those of the same host are checked."""
    from unbounded.durable import session

    arms = Durable(database.url(), CostSCB(3, seed=0), name="digits", staleness=4)
    for _ in range(5):
        arms.tell(arms.ask(), 1.0)
    snapshot = arms._session.read(lambda replica: replica.snapshot(session.versions()))
    text = json.loads(snapshot.text)
    inner = CostSCB.load(text["learner"])
    inner.tell(inner.ask(), 2.0)  # a control that is large: another state altogether
    text["learner"] = inner.save()
    for here in (True, False):
        text["versions"] = session.versions() if here else "numba of another host"
        forged = snapshot._replace(text=json.dumps(text))
        arms._session.store.write(lambda: arms._session.store.keep("latest", forged))  # noqa: B023  # called at once
        if here:
            with pytest.raises(DurableError, match="does not lead"):
                arms.verify()
        else:
            assert arms.verify() == 10
