"""Metrics: what the journal says, in every process, read by Prometheus' own parser."""

import asyncio
import json
import random
import re
from datetime import timedelta
from pathlib import Path

import pytest
from postgres_server import missing

from unbounded import SCB, SCBIX, CostSCB, UniformPolicy
from unbounded.durable import BusyError, Durable
from unbounded.durable.store import Store

pytest.importorskip("prometheus_client", reason="needs pip install 'unbounded[service]'")
from prometheus_client.parser import text_string_to_metric_families

from unbounded.metrics import asgi, exposition

DASHBOARD = Path(__file__).parents[2] / "examples" / "grafana.json"
NAMES = ['eu "1"', "us\\2", "two\nlines", "größer {x=1}"]
STORAGES = [
    "sqlite",
    pytest.param("postgres", marks=pytest.mark.skipif(missing(), reason="no PostgreSQL")),
]


@pytest.fixture
def opened(request, tmp_path):
    """Open the learner again and again, as workers do."""
    found = []

    def again(learner=None, arms=None, **options):
        if request.param == "sqlite":
            found.append(Durable(tmp_path / "arms.db", learner, arms=arms))
        else:
            url = request.getfixturevalue("database").url()
            place = {"name": request.node.name, "timeout": 20.0}
            found.append(Durable(url, learner, arms=arms, **place, **options))
        return found[-1]

    again.kind = request.param
    yield again
    for one in found:
        one.close()


def parsed(text):
    """Values by name and labels."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found, name, arm=None, **labels):
    labels |= {"learner": "default"} | ({} if arm is None else {"arm": arm})
    return found[(f"unbounded_{name}", *sorted(labels.items()))]


def play(workers, rounds, seed):
    rng = random.Random(seed)
    for t in range(rounds):
        choice = rng.choice(workers).ask()
        what = rng.random()
        if what < 0.8:
            rng.choice(workers).tell(
                choice, loss=rng.expovariate(1.0) * 2.0 ** rng.randrange(-9, 9)
            )
        elif what < 0.9:
            rng.choice(workers).forget(choice)
        if t % 50 == 49:
            rng.choice(workers).expire(timedelta(0), loss=30.0)


@pytest.mark.parametrize("opened", STORAGES, indirect=True)
def test_counters_are_those_of_the_journal_in_every_process(opened):
    workers = [opened(CostSCB(n_arms=4, half_life=100, cap=100.0, seed=0), NAMES)]
    workers += [opened() for _ in range(3)]
    play(workers, 120, seed=1)
    workers[2].add_arm("new")
    workers[1].retire_arm(NAMES[1])
    play(workers, 70, seed=2)
    texts = {exposition(worker) for worker in workers}
    assert len(texts) == 1
    found = parsed(texts.pop())
    log = list(workers[0].log().iter_rows(named=True))
    for arm in [*NAMES, "new"]:
        of_arm = [row for row in log if row["name"] == arm]
        count = {s: sum(row["status"] == s for row in of_arm) for s in
                 ("told", "expired", "forgotten", "waiting")}  # fmt: skip
        assert value(found, "asks_total", arm) == len(of_arm) > 5
        assert value(found, "tells_total", arm) == count["told"]
        assert value(found, "expired_total", arm) == count["expired"]
        assert value(found, "forgotten_total", arm) == count["forgotten"]
        ended = sorted((row for row in of_arm if row["loss"] is not None),
                       key=lambda row: row["told_as"])  # fmt: skip
        losses = [row["loss"] for row in ended]
        assert value(found, "loss_count", arm) == len(losses)
        assert value(found, "loss_sum", arm) == sum(losses)
        for q in ("0.5", "0.9", "0.99"):
            least = value(found, "loss", arm, quantile=q)
            below = sum(loss <= least for loss in losses) / len(losses)
            assert below >= float(q) > sum(loss < least for loss in losses) / len(losses)
    status = workers[0].status()
    assert (
        value(found, "outstanding")
        == status.outstanding
        == 20 - sum(row["status"] != "waiting" for row in log[-20:])
    )
    assert value(found, "epoch") == 2
    assert value(found, "scale") == status.scale
    assert value(found, "clipped_total") == status.clipped
    assert value(found, "half_life_rounds") == 100
    total = sum(value(found, "probability", arm) for arm in status.arms)
    assert abs(total - 1.0) < 1e-12
    assert ("unbounded_probability", ("arm", NAMES[1]), ("learner", "default")) not in found

    before = value(found, "asks_total", "new")
    assert workers[0].prune(timedelta(0)) > 100  # counters go on
    workers[0].close()
    again = parsed(exposition(opened()))
    assert value(again, "asks_total", "new") == before


@pytest.mark.skipif(missing(), reason="no PostgreSQL")
@pytest.mark.parametrize("opened", ["postgres"], indirect=True)
def test_counters_of_asks_that_wait_for_no_turn(opened):
    first = opened(SCB(n_arms=2, seed=0), staleness=4)
    second = opened(staleness=4)
    play([first, second], 60, seed=3)
    assert exposition(first) == exposition(second)
    found = parsed(exposition(first))
    assert value(found, "asks_total", "0") + value(found, "asks_total", "1") == 60


def test_a_scrape_does_not_replay_the_journal(tmp_path, monkeypatch):
    rows, read = Store.rows, [0]

    def counted(self, first, most=1000):
        found = rows(self, first, most)
        read[0] += len(found)
        return found

    arms = Durable(tmp_path / "arms.db", SCB(n_arms=3, seed=0))
    for _ in range(2000):
        arms.tell(arms.ask(), loss=1.0)
    monkeypatch.setattr(Store, "rows", counted)
    exposition(arms)
    assert read[0] <= 1  # the last row, to see that it is still there
    for _ in range(5):
        arms.tell(arms.ask(), loss=1.0)
    with Durable(tmp_path / "arms.db") as other:
        read[0] = 0
        assert value(parsed(exposition(other)), "tells_total", "0") > 0
        assert read[0] <= 1001
        read[0] = 0
        exposition(arms)
        assert read[0] <= 1
    arms.log()  # the control: this does read it all
    assert read[0] > 4000
    arms.close()


def test_verify_replays_the_counters_too(tmp_path):
    with Durable(tmp_path / "arms.db", SCBIX(n_arms=2, seed=0)) as arms:
        play([arms], 30, seed=4)
        replica = arms._session.read(lambda replica: replica)
        snapshot = replica.snapshot("")
        same, other = (type(replica).of(snapshot, SCBIX) for _ in range(2))
        counts = other.counters.arms["1"]
        other.counters.arms["1"] = counts._replace(told=counts.told + 1)
        assert replica.equals(same)
        assert not replica.equals(other)


def test_sums_of_huge_losses_stay_finite(tmp_path):
    with Durable(tmp_path / "arms.db", SCB(n_arms=1, seed=0)) as arms:
        for loss in (1.7e308, 1.7e308, -1.7e308, -1.7e308, -1.7e308):
            arms.tell(arms.ask(), loss=loss)
        found = parsed(exposition(arms))
        assert abs(value(found, "loss_sum", "0")) < float("inf")


def test_learners_in_memory_and_several_at_once(tmp_path):
    learner, mdp = SCB(n_arms=2, seed=0), UniformPolicy([1, 2], 2, seed=0)
    learner.tell(learner.ask(), loss=3.0)
    learner.ask()
    plan = mdp.ask()
    mdp.tell(plan, states=[0, 1], actions=[0, 0], losses=[1.0, 2.0])
    with Durable(tmp_path / "plans.db", UniformPolicy([1, 2], 2, seed=0)) as plans:
        plans.tell(plans.ask(), states=[0, 1], actions=[0, 0], losses=[1.0, 2.0])
        found = parsed(exposition({"a": learner, "b": mdp, "c": plans}))
    told = {labels[-1][1]: got for (name, *labels), got in found.items() if "tells" in name}
    assert told == {"a": 1.0, "b": 1.0, "c": 1.0}
    assert found["unbounded_outstanding", ("learner", "a")] == 1.0
    assert found["unbounded_loss_sum", ("arm", ""), ("learner", "c")] == 3.0
    with pytest.raises(TypeError, match="learner"):
        exposition(3)


def named_by(text):
    return set(re.findall(r"unbounded_\w+", text))


def test_the_dashboard_names_only_metrics_that_exist(tmp_path):
    with Durable(tmp_path / "arms.db", SCB(n_arms=2, seed=0)) as arms:
        arms.tell(arms.ask(), loss=1.0)
        there = {name for name, *_ in parsed(exposition(arms))}
    dashboard = DASHBOARD.read_text()
    asked = {t["expr"] for panel in json.loads(dashboard)["panels"] for t in panel["targets"]}
    assert len(asked) >= 10
    assert named_by(dashboard) <= there
    assert there <= named_by(dashboard)  # and shows them all
    assert not named_by(dashboard.replace("unbounded_asks", "unbounded_ask")) <= there


def request(app):
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(app({"type": "http"}, None, send))
    return sent[0]["status"], dict(sent[0]["headers"])[b"content-type"], sent[1]["body"].decode()


def test_the_application_answers(tmp_path, monkeypatch):
    with Durable(tmp_path / "arms.db", SCB(n_arms=2, seed=0)) as arms:
        app = asgi(arms)
        status, kind, text = request(app)
        assert status == 200
        assert kind.startswith(b"text/plain; version=")
        assert text == exposition(arms)

        def busy(self):
            raise BusyError("arms.db was in use")

        monkeypatch.setattr(Durable, "status", busy)
        assert request(app)[::2] == (503, "arms.db was in use")
