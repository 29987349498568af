"""The parts of the case studies from which their figures follow."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(autouse=True)
def _examples_can_be_imported(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    for path in EXAMPLES.glob("*.py"):
        sys.modules.pop(path.stem, None)


def test_intervals_and_tables():
    import gallery

    assert gallery.interval([1.0, 3.0]) == pytest.approx((2.0, 1.96))
    assert gallery.said([1.0, 3.0]) == "2.0 ± 2.0"
    assert gallery.table(["a", "b"], [["x", "1"]]) == "| a | b |\n| --- | ---: |\n| x | 1 |"


def test_makespans_of_a_small_shop():
    from operator_selection import Schedule, insert_best, take_any

    durations = np.array([[3.0, 2.0], [2.0, 4.0]])
    machines = np.array([[0, 1], [0, 1]])
    orders = set(itertools.permutations([0, 0, 1, 1]))
    spans = {
        order: Schedule((durations, machines), np.array(order)).objective() for order in orders
    }
    assert spans[0, 0, 1, 1] == 9.0  # machine 0: 0-3, 3-5; machine 1: 3-5, 5-9
    assert min(spans.values()) == 8.0  # the other job first: 0-2, 2-5; 2-6, 6-8
    shop = (np.ones((4, 4)), np.array([np.roll(range(4), k) for k in range(4)]))
    rng = np.random.default_rng(0)
    state = Schedule(shop, np.repeat(np.arange(4), 4))
    repaired = insert_best(take_any(state, rng), rng)
    assert sorted(repaired.order) == sorted(state.order)


def test_the_rule_in_hindsight_is_the_best_rule():
    import order_execution as execution

    rng = np.random.default_rng(0)
    busy = np.arange(402) % 2 == 0  # so that the hour before tells what comes
    price = 1.2 + 0.001 * rng.standard_normal(402).cumsum()
    data = execution.Market(price, np.where(busy, 50.0, 800.0), busy)

    def cost(rule):
        windows = range(len(price) - execution.HOURS)
        return np.mean([sum(execution.episode(data, first, rule)[2]) for first in windows])

    best = cost(execution.hindsight(data))
    for _ in range(100):
        actions = rng.integers(3, size=(execution.HOURS, max(execution.LAYERS)))
        assert cost(lambda hour, s, actions=actions: int(actions[hour, s])) > best


def test_everything_is_sold_and_only_what_is_possible_happens():
    import order_execution as execution

    rng = np.random.default_rng(0)
    prices = np.full(50, 1.0)
    data = execution.Market(prices, np.full(50, 100.0), rng.random(50) < 0.5)
    possible = execution.support()
    sizes = [execution.LAYERS[0]] + [a * 3 * b for a, b in itertools.pairwise(execution.LAYERS)]
    tables = np.split(possible, np.cumsum(sizes)[:-1])
    for first in range(40):
        states, actions, losses = execution.episode(data, first, lambda h, s: int(rng.integers(3)))
        assert sum(np.sqrt(np.array(losses) / 100.0)) == execution.UNITS
        for hour in range(execution.HOURS - 1):
            shape = (execution.LAYERS[hour], 3, execution.LAYERS[hour + 1])
            step = (states[hour], actions[hour], states[hour + 1])
            assert tables[hour + 1].reshape(shape)[step]


def test_servers_answer_by_their_script():
    import asyncio

    from routing_servers import Answer, Client, Servers, State

    states = [State(0.001, price=7), State(60.0, price=8, fails=1.0), State(0.001, hangs=1.0)]

    async def ask(ports):
        patient, impatient = Client(ports, timeout=60.0), Client(ports, timeout=0.05)
        answers = [await patient.get(server) for server in (0, 0, 1, 3)]
        answers.append(await impatient.get(2))
        await patient.close()
        return answers

    with Servers([(0.0, [*states, State(0.001, out=True)])]) as servers:
        *usual, failed, out, late = asyncio.run(ask(servers.ports))
    assert [(answer.price, answer.ok) for answer in usual] == [(7, True)] * 2
    assert all(0.0 < answer.seconds < 60.0 for answer in usual)
    assert (failed.price, failed.ok) == (8, False)
    assert out is None
    assert late == Answer(0.05, 0, ok=False)


class Watch:
    """Sends request t to server t % 6, and notes when it is told of it, at which request."""

    def __init__(self):
        self.t, self.told_at = 0, []

    def ask(self, present):
        self.t += 1
        return Ticket(self.t - 1)

    def tell(self, ticket, loss, answered):
        self.told_at.append((ticket.t, self.t, loss, answered))


class Ticket(int):
    def __new__(cls, t):
        ticket = super().__new__(cls, t % 6)
        ticket.t = t
        return ticket


def test_what_a_request_cost_is_known_when_its_answer_comes():
    import routing_replay as routing

    draw = routing.replicate(routing.recorded(), seed=1, rounds=500)
    watch = Watch()
    arms = routing.replay(watch, draw, draw.costs(50.0))
    assert arms.tolist() == [t % 6 for t in range(500)]
    asked = [told[0] for told in watch.told_at]
    assert asked != sorted(asked)  # answers overtake each other
    for t, now, loss, answered in watch.told_at:
        arm = t % 6
        due = t + draw.seconds[t, arm] / routing.BETWEEN
        assert due <= now < due + 1.0 + 1e-9
        assert loss == draw.costs(50.0)[t, arm]
        assert answered.ok == draw.ok[t, arm]


def test_a_replicate_has_blocks_of_the_same_phase():
    import routing_replay as routing

    trace = routing.recorded()
    draw = routing.replicate(trace, seed=3)
    assert draw.phase.tolist() == trace.phase.tolist()
    rows = [row.tobytes() for row in trace.seconds]
    places = {key: t for t, key in enumerate(zip(trace.phase, rows, strict=True))}
    drawn = zip(draw.phase, (row.tobytes() for row in draw.seconds), strict=True)
    found = [places[key] for key in drawn]  # each is a request of the same phase
    assert np.mean(np.diff(found) == 1) > 0.9  # blocks, not requests
    assert not np.array_equal(draw.seconds, routing.replicate(trace, seed=4).seconds)
    assert (~draw.present).sum() == 1000
    assert draw.seconds.shape == (routing.ROUNDS, routing.N)


def test_powers_of_two_route_the_same():
    import routing_replay as routing

    draw = routing.replicate(routing.recorded(), seed=0, rounds=3000)
    for make in routing.OURS.values():
        plain = routing.replay(make(0), draw, draw.costs())
        for unit in (2.0**-30, 2.0**40):
            assert routing.replay(make(0), draw, unit * draw.costs()).tolist() == plain.tolist()
    make = routing.CAPPED["discounted UCB, cap 0.6 s"]["half-life 300, width 0.003"]
    plain = routing.replay(make(0), draw, draw.costs())  # the control has a cap in seconds
    assert routing.replay(make(0), draw, 2.0**40 * draw.costs()).tolist() != plain.tolist()


def test_recovery_is_half_of_the_last_hundred_requests(monkeypatch):
    import routing

    monkeypatch.setattr(routing, "BACK", (1000,))
    servers = np.full(3000, routing.FAST)
    arms = np.where(np.arange(3000) < 1200, 0, routing.FAST)
    assert routing.recoveries(arms, servers) == [250]
    servers[1100:] = 0  # before it is played again, something else is best
    assert routing.recoveries(arms, servers) == [100]


def test_routing_in_short(tmp_path, capsys):
    import routing

    routing.main(["--quick", "--into", str(tmp_path), "--litellm", str(tmp_path / "none")])
    said = capsys.readouterr().out
    assert "LiteLLM's routers are left out" in said
    waits = {
        line.split("|")[1].strip(): float(line.split("|")[2].split()[0])
        for line in said.partition("a dollar")[0].splitlines()[2:]
        if "±" in line
    }
    assert set(waits) == {routing.ORACLE, *routing.OURS, *routing.FREE, *routing.CAPPED}
    assert min(waits, key=waits.get) == routing.ORACLE
    assert waits[routing.RECOMMENDED] < waits["round-robin"]
    assert (tmp_path / "routing.svg").stat().st_size > 10_000


def test_a_policy_that_breaks_has_infinite_error():
    from model_selection import played
    from river import bandit

    errors = np.tile([[1e9, 2e9]], (200, 1))
    assert played(bandit.Exp3(0.5, seed=0), errors) == np.inf
    assert 1e9 < played(bandit.RandomPolicy(seed=0), errors) < 2e9


def test_a_student_that_walks_to_the_present_learns_from_it():
    import curriculum

    lake = np.zeros(curriculum.SIDE**2, dtype=int)
    lake[-1] = 2
    Q, first = np.zeros((lake.size, 4)), lake.size - 2
    draws = np.zeros((curriculum.STEPS, 2))
    draws[0] = 0.0, 0.6  # at random: to the right
    worth = curriculum.practise.py_func(Q, lake, first, 2.0**20, draws)
    assert worth == Q[first, 2] == 2.0**20 * curriculum.RATE
    assert Q.sum() == worth
    assert [curriculum.moved.py_func(0, action) for action in range(4)] == [0, 50, 1, 0]
    drowned = lake.copy()
    drowned[first] = 1
    assert curriculum.practise.py_func(Q, drowned, first, 1.0, draws) == 0.0
    assert sum(curriculum.lake_of(0) == 2) == 1


def test_running_extremes_tell_shares():
    import curriculum

    told = []

    class Keeps:
        def update(self, index, reward):
            told.append(reward)

    teacher = curriculum.RunningExtremes(Keeps())
    for reward in (4.0, 8.0, 0.0, 2.0):
        teacher.update(0, reward)
    assert told == [0.0, 1.0, 0.0, 0.25]
