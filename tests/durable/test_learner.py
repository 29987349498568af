"""A durable learner: one order for all, each loss once, the same choice for the same key."""

import asyncio
import copy
import linecache
import os
import threading
import warnings
from datetime import timedelta

import numpy as np
import pytest

from unbounded import (
    AHB,
    APOMVP,
    SCB,
    UOBREPS,
    AdaHedge,
    CostSCB,
    IndependentSCB,
    UniformPolicy,
)
from unbounded.durable import Durable, DurableError, session, store
from unbounded.durable.replica import Replica
from unbounded.learners.available import distinct

LOSSES = [3.0, 1.0, 2.0]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "arms.db"


def made(path, **options):
    return Durable(path, SCB(n_arms=3, profile="paper", seed=0), arms=["a", "b", "c"], **options)


def same_bits(one, other):
    """Whether two learners know the same, tickets apart."""
    return one._buffer.tobytes() == other._buffer.tobytes() and one._bits.state == other._bits.state


def test_many_handles_play_as_one_learner_in_one_process(path):
    handles = [made(path)] + [Durable(path) for _ in range(3)]
    alone, rng = SCB(n_arms=3, profile="paper", seed=0), np.random.default_rng(1)
    waiting = []
    for _ in range(300):
        handle = handles[rng.integers(4)]
        if waiting and rng.random() < 0.5:
            ticket, expected = waiting.pop(rng.integers(len(waiting)))
            loss = LOSSES[ticket.arm] * rng.standard_exponential()
            assert handle.tell(ticket.id, loss=loss)
            alone.tell(expected, loss)
        else:
            ticket, expected = handle.ask(), alone.ask()
            assert (ticket.arm, ticket.probability) == (expected.arm, expected.probability)
            assert ticket.name == "abc"[ticket.arm]
            assert LOSSES[ticket] == LOSSES[ticket.arm]
            waiting.append((ticket, expected))
    for handle in handles:
        assert same_bits(handle.learner(), type(alone).load(alone.save()))
        assert handle.outstanding() == sorted(ticket.id for ticket, _ in waiting)
        assert handle.verify() == 300


def test_what_a_handle_has_learned_is_not_read_again(path):
    arms = made(path)
    arms.tell(arms.ask().id, loss=1.0)
    replica = arms._session._replica
    assert replica is not None
    arms.tell(arms.ask().id, loss=1.0)
    assert arms._session._replica is replica
    arms.close()


def test_a_file_that_is_closed_goes_on_where_it_was(path):
    alone = SCB(n_arms=3, profile="paper", seed=0)
    for i in range(1200):  # across a snapshot, closed and not closed
        if i % 400 == 0:
            arms = made(path)
        choice, expected = arms.ask(), alone.ask()
        assert choice.arm == expected.arm
        arms.tell(choice.id, loss=LOSSES[choice.arm])
        alone.tell(expected, LOSSES[expected.arm])
        if i == 399:
            arms.close()
    with Durable(path) as arms:
        assert arms.verify() == 2400
        assert same_bits(arms.learner(), type(alone).load(alone.save()))


def test_a_key_gives_the_same_choice_in_any_process_told_or_not(path):
    arms, other = made(path), Durable(path)
    first = arms.ask(key="request")
    assert other.ask(key="request") == arms.ask(key="request") == first
    assert arms.ask(key="another").id != first.id
    assert other.tell(first.id, loss=1.0)
    assert arms.ask(key="request") == first
    assert arms.status().rows == 3  # two asks and a tell
    assert Durable(path).ask(key="request") == first


@pytest.mark.parametrize("key", ["", "x" * 501, 7, "\ud800", "a\0b"])
def test_a_key_that_is_none_is_rejected(path, key):
    arms = made(path)
    with pytest.raises(ValueError, match="key must be a text"):
        arms.ask(key=key)
    assert arms.status().rows == 0


def test_a_loss_is_learned_once(path):
    arms, other = made(path), Durable(path)
    choice = arms.ask()
    assert other.tell(choice.id, loss=1.0) is True
    with pytest.raises(ValueError, match="was told or has expired before: tell it once"):
        arms.tell(choice.id, loss=1.0)
    assert arms.tell(choice.id, loss=5.0, repeated="ignore") is False
    assert arms.status().rounds == 1
    assert arms.status().scale == 2.0


@pytest.mark.parametrize("change", [1, 1 << 20, -1])
def test_an_id_that_was_never_given_is_rejected_and_never_ignored(path, change):
    arms = made(path)
    choice = arms.ask()
    for repeated in ("raise", "ignore"):
        with pytest.raises(ValueError, match="has issued no ticket"):
            arms.tell(choice.id + change, loss=1.0, repeated=repeated)
    assert arms.status().rounds == 0
    assert arms.tell(choice.id, loss=1.0)


def test_the_id_of_a_lost_ask_is_not_given_to_the_next(path, tmp_path):
    arms = made(path)
    arms.ask()
    arms.backup(tmp_path / "backup.db")
    lost = arms.ask()
    arms.close()
    os.replace(tmp_path / "backup.db", path)
    arms = Durable(path)
    again = arms.ask()
    assert again.id >> 20 == lost.id >> 20  # the second row, as it was
    with pytest.raises(ValueError, match="has issued no ticket"):
        arms.tell(lost.id, loss=1.0)


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({}, TypeError, "needs loss or reward"),
        ({"loss": 1.0, "reward": 1.0}, TypeError, "needs loss or reward"),
        ({"losses": [1.0, 2.0, 3.0]}, TypeError, "needs loss or reward"),
        ({"loss": float("nan")}, ValueError, "finite"),
        ({"loss": "much"}, TypeError, "loss"),
        ({"loss": 1.0, "repeated": "maybe"}, ValueError, "repeated"),
    ],
)
def test_what_cannot_be_told_changes_nothing(path, given, error, match):
    arms = made(path)
    choice = arms.ask()
    before = arms.learner().save()
    with pytest.raises(error, match=match):
        arms.tell(choice.id, **given)
    assert arms.status().rows == 1
    assert arms.learner()._buffer.tobytes() == SCB.load(before)._buffer.tobytes()
    assert arms.tell(choice, reward=-2.0)
    assert arms.log()["loss"].to_list() == [2.0]


def test_minus_zero_is_told_as_zero_so_that_the_file_has_the_same_bits(path):
    arms = made(path)
    arms.tell(arms.ask().id, loss=-0.0)
    arms.tell(arms.ask().id, reward=0.0)
    assert np.signbit(arms.log()["loss"].to_numpy()).tolist() == [False, False]
    assert arms.verify() == 4


def test_waiting_ends_after_a_time_with_a_loss_or_without(path):
    arms = made(path)
    old = [arms.ask() for _ in range(4)]
    arms.tell(old[0].id, loss=1.0)
    assert arms.expire(timedelta(hours=1)) == 0
    arms.forget(old[1].id)
    with pytest.raises(ValueError, match="loss must be finite"):
        arms.expire(timedelta(days=1), loss=float("nan"))  # although nothing is so old
    assert arms.expire(timedelta(0), loss=7.0) == 2
    assert arms.expire(timedelta(0)) == 0
    assert arms.status().rounds == 3
    log = arms.log()
    assert log["status"].to_list() == ["told", "forgotten", "expired", "expired"]
    assert log["loss"].to_list() == [1.0, None, 7.0, 7.0]
    with pytest.raises(ValueError, match="was told or has expired before"):
        arms.tell(old[2].id, loss=1.0)
    with pytest.raises(ValueError, match="was told or has expired before"):
        arms.forget(old[1].id)
    with pytest.raises(TypeError, match="timedelta"):
        arms.expire(5)
    arms.ask()
    assert arms.expire(timedelta(0)) == 1
    assert arms.status().rounds == 3
    assert arms.verify() == arms.status().rows == 10


def test_the_connection_is_used_in_turns_only(path, monkeypatch):
    """Also for the time: a connection to PostgreSQL is for one thread at a time."""
    arms = made(path)
    store, asked = arms._session.store, []

    def now():
        asked.append(arms._session.owner == threading.get_ident())
        return 10**15

    monkeypatch.setattr(store, "now", now)
    arms.tell(arms.ask(), 1.0)
    arms.forget(arms.ask())
    assert arms.expire(timedelta(0)) == 0
    arms.prune(timedelta(0))
    arms.add_arm("new")
    assert len(asked) >= 6
    assert all(asked)


def test_settings_and_names_must_agree(path):
    made(path).close()
    for learner, arms, match in [
        (SCB(n_arms=3, profile="paper", rate=2.0), None, "rate=1.0, and not 2.0"),
        (SCB(n_arms=4, profile="paper"), None, "n_arms=3, and not 4"),
        (SCB(n_arms=3, profile="paper"), ["a", "b", "d"], r"has the arms \['a', 'b', 'c'\]"),
    ]:
        with pytest.raises(ValueError, match=match):
            Durable(path, learner, arms=arms)
    with pytest.raises(DurableError, match=r"cannot be opened with AdaHedge: .*it holds a SCB"):
        Durable(path, AdaHedge(n_arms=3))
    assert Durable(path, SCB(n_arms=3, profile="paper", seed=5)).status().arms == ("a", "b", "c")


def test_a_learner_that_was_asked_may_begin_a_file_and_not_join_one(path):
    learner = SCB(n_arms=3, profile="paper", seed=0)
    waiting = learner.ask()
    with pytest.raises(ValueError, match="outstanding"):
        Durable(path, learner)
    assert not path.exists()
    learner.tell(waiting, 4.0)
    arms = Durable(path, learner)
    assert arms.status().scale == 8.0
    arms.ask()
    with pytest.raises(ValueError, match="was asked before: give a fresh one"):
        Durable(path, learner)


@pytest.mark.parametrize("arms", [["a", "b"], ["a", "a", "b"], ["a", "b", ""], ["a", "b", 3]])
def test_names_that_name_nothing_are_rejected_before_a_file_is_made(path, arms):
    with pytest.raises(ValueError, match="arm"):
        Durable(path, SCB(n_arms=3), arms=arms)
    assert not path.exists()


def test_a_durable_learner_cannot_be_copied_and_a_closed_one_not_used(path):
    arms = made(path)
    for copied in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="open it by its path"):
            copied(arms)
    arms.close()
    arms.close()
    with pytest.raises(DurableError, match="was closed here"):
        arms.ask()


def test_a_rejection_of_the_learner_leaves_it_usable(path):
    arms, other = Durable(path, AHB(n_arms=3, seed=0)), Durable(path)
    choice = arms.ask()
    with pytest.raises(RuntimeError, match="before it can choose again"):
        other.ask()
    other.tell(choice.id, loss=1.0)
    arms.tell(other.ask().id, loss=2.0)
    assert arms.verify() == 4


@pytest.mark.parametrize("way", ["ask", "tell"])
def test_an_interrupt_in_the_middle_of_a_step_leaves_it_as_it_was(path, monkeypatch, way):
    arms = made(path)
    for _ in range(5):
        choice = arms.ask()
        arms.tell(choice.id, loss=LOSSES[choice.arm])
    choice = arms.ask()
    before = arms.learner()
    inner = arms._session._replica.learner
    step = getattr(inner, way)

    def interrupted(*given):
        step(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(inner, way, interrupted, raising=False)
    with pytest.raises(KeyboardInterrupt):
        arms.ask() if way == "ask" else arms.tell(choice.id, loss=9.0)
    assert same_bits(arms.learner(), before)
    assert arms.outstanding() == [choice.id]
    assert arms.tell(choice.id, loss=1.0)
    assert arms.verify() == 12


def test_full_information(path):
    arms, other = Durable(path, AdaHedge(n_arms=2, seed=0)), Durable(path)
    with pytest.raises(TypeError, match="needs losses"):
        arms.tell(arms.ask().id, loss=1.0)
    for ticket in arms.outstanding():
        other.tell(ticket, losses=[1.0, -2.0])
    assert arms.log()["loss"].to_list() == [-1.0]
    assert arms.verify() == 2


def test_plans_of_mdps_are_tickets(path):
    world = {"layers": [1, 2, 2], "n_actions": 3}
    plans, other = Durable(path, IndependentSCB(**world, seed=0)), Durable(path)
    alone = IndependentSCB(**world, seed=0)
    for t in range(45):
        plan, expected = plans.ask(key=str(t)), alone.ask()
        again = other.ask(key=str(t))
        assert again == plan
        states = [0, t % 2, 1]
        actions = [plan.act(h, s) for h, s in enumerate(states)]
        assert actions == [expected.act(h, s) for h, s in enumerate(states)]
        assert actions == [again.act(h, s) for h, s in enumerate(states)]
        losses = [1.0, float(actions[1]), -2.0]
        assert other.tell(plan.id, states=states, actions=actions, losses=losses)
        alone.tell(expected, states, actions, losses)
        assert plans.ask(key=str(t)).act(1, t % 2) == actions[1]
    assert same_bits(plans.learner(), type(alone).load(alone.save()))
    assert plans.verify() == 90
    with pytest.raises(TypeError, match="needs states, actions, and losses or rewards"):
        plans.tell(plans.ask().id, loss=1.0)
    assert plans.expire(timedelta(0)) == 1
    log = plans.log()
    assert log["status"].to_list() == ["told"] * 45 + ["forgotten"]
    assert log["states"][3].to_list() == [0, 1, 1]
    assert log["probability"][0] == pytest.approx((1 / 3) ** 3)
    with pytest.raises(ValueError, match="has no arms to add"):
        plans.add_arm("d")


def test_losses_of_all_pairs_are_kept(path):
    plans, other = Durable(path, APOMVP([1, 2], 2, seed=0)), Durable(path)
    alone, rng = APOMVP([1, 2], 2, seed=0), np.random.default_rng(0)
    for t in range(45):
        plan, expected = plans.ask(), alone.ask()
        states = [0, t % 2]
        actions = [plan.act(h, s) for h, s in enumerate(states)]
        tables = [rng.random((n, 2)) for n in (1, 2)]
        other.tell(plan.id, states=states, actions=actions, losses=tables)
        alone.tell(expected, states, actions, tables)
    assert same_bits(plans.learner(), type(alone).load(alone.save()))
    assert plans.verify() == 90
    log = plans.log()  # has what was paid
    paid = [float(tables[h][states[h], actions[h]]) for h in range(2)]
    assert log["losses"][-1].to_list() == paid
    assert log["loss"][-1] == pytest.approx(sum(paid))
    plan = plans.ask()
    with pytest.raises(ValueError, match="one table per layer"):
        plans.tell(plan.id, states=[0, 0], actions=[0, 0], losses=[0.0, 0.0])
    assert plans.outstanding() == [plan.id]


def test_old_rows_can_be_removed_and_the_rest_still_counts(path):
    arms, other = made(path), Durable(path)
    other.ask(key="first")
    arms.tell(arms.ask(key="first").id, loss=1.0)
    stays = None
    for t in range(40):
        choice = arms.ask(key=str(t))
        if t == 30:
            stays = choice
        else:
            arms.tell(choice.id, loss=float(t % 3))
    gone = arms.ask(key="0")
    assert arms.prune(timedelta(hours=1)) == 0
    assert arms.prune(timedelta(0)) == 62
    assert arms.log()["key"].to_list() == [str(t) for t in range(30, 40)]
    assert other.ask(key="30") == stays  # which knew rows that are gone
    assert other.tell(gone.id, loss=1.0, repeated="ignore") is False
    assert other.tell(stays.id, loss=1.0)
    assert other.ask(key="0").id != gone.id  # its key is forgotten
    assert Durable(path).verify() == 2
    assert arms.prune(timedelta(0)) > 0
    assert arms.log().height == 1


def test_an_episode_of_the_largest_losses_of_both_signs_is_kept(path):
    largest = np.finfo(float).max
    losses = np.zeros(16)
    losses[[0, 8]], losses[[1, 9]] = largest, -largest
    assert np.isnan(quietly(losses.sum))  # the control
    plans = Durable(path, UniformPolicy([1] * 16, 1, seed=0))
    assert plans.tell(plans.ask(), states=[0] * 16, actions=[0] * 16, losses=losses)
    assert plans.tell(plans.ask(), states=[0] * 16, actions=[0] * 16, losses=np.abs(losses))
    assert Durable(path).verify() == 4
    assert plans.log()["loss"].to_list() == [0.0, np.inf]


def quietly(function):
    with np.errstate(all="ignore"):
        return function()


def test_who_opens_a_file_is_not_warned_of_what_others_told(path):
    costs = Durable(path, CostSCB(2, seed=0))
    plans = Durable(path.with_name("plans.db"), UOBREPS([2], 2, 1, loss_range=(0, 1), seed=0))
    with pytest.warns(UserWarning, match="below the lower bound"):
        costs.tell(costs.ask(), -1.0)
    for episode in range(2):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            plan = plans.ask()
        assert len(said) == episode  # the second is one more than it was made for
        plans.tell(plan, states=[0], actions=[plan.act(0, 0)], losses=[0.5])
    for file, one in ((path, costs), (path.with_name("plans.db"), plans)):
        assert Durable(file).verify() == one.verify() > 0


def test_a_warning_names_the_line_that_tells_or_waits(path):
    costs, others = Durable(path, CostSCB(2, seed=0)), Durable(f"{path}2", CostSCB(2, seed=0))

    async def play():
        choices = [await others.aask() for _ in range(3)]
        await others.atell(choices[0], -1.0)
        await others.atell(choices[1], -1.0)

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        costs.tell(costs.ask(), -1.0)
        asyncio.run(play())
    where = [(one.filename, linecache.getline(one.filename, one.lineno).strip()) for one in said]
    assert where == [
        (__file__, "costs.tell(costs.ask(), -1.0)"),
        (__file__, "await others.atell(choices[0], -1.0)"),
    ]


def test_whoever_hears_a_warning_may_call_again(path):
    costs = Durable(path, CostSCB(2, seed=0))
    heard = []

    def hear(message, *_, **__):
        heard.append((str(message), costs.status().rounds, costs.ask().id))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = hear
        costs.tell(costs.ask(), -1.0)
    [(message, rounds, asked)] = heard
    assert "below the lower bound" in message
    assert rounds == 1  # it was learned before
    assert costs.outstanding() == [asked]


def test_a_worker_that_was_idle_while_all_it_knew_was_pruned_goes_on(path):
    arms, idle = made(path), Durable(path)
    assert idle.status().rows == 0
    for _ in range(10):
        arms.tell(arms.ask().id, loss=1.0)
    assert arms.prune(timedelta(0)) == 19
    assert idle.status().rounds == 10
    assert idle.tell(idle.ask().id, loss=1.0)
    assert idle.verify() == 2


def test_the_longest_times_and_waits(path):
    arms = made(path, timeout=1e10)
    arms.tell(arms.ask().id, loss=1.0)
    arms.ask()
    for far in (timedelta.max, timedelta(days=40_000_000)):
        assert arms.expire(far) == arms.prune(far) == 0
    assert arms.prune(timedelta.min) == 2
    assert arms.expire(timedelta.min) == 1
    with pytest.raises(TypeError, match="timedelta"):
        arms.prune(5)


class Name(str):
    """A text that counts how often it is compared."""

    compared = 0
    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)


def test_names_are_not_compared_each_with_each():
    names = [Name(f"arm {k}") for k in range(3000)]
    assert distinct(names) == tuple(names)
    with pytest.raises(ValueError, match="two arms 'arm 7'"):
        distinct([*names, Name("arm 7")])
    assert Name.compared < 30_000


def test_what_snapshots_write_does_not_grow_with_the_square_of_what_is_outstanding(
    path, monkeypatch
):
    """A snapshot has all that is outstanding: the more that is, the rarer they are."""
    monkeypatch.setattr(session, "_EVERY", 10)
    written, whole = [], Replica.snapshot

    def counted(replica, *given):
        written.append(len(replica.waiting))
        return whole(replica, *given)

    monkeypatch.setattr(Replica, "snapshot", counted)
    arms = made(path)
    for _ in range(800):
        arms.ask()
    assert len(written) > 10
    assert sum(written) < 8 * 800  # each tenth row: 32,000
    for ticket in arms.outstanding():
        arms.tell(ticket, loss=1.0)
    assert sum(written) < 16 * 800
    assert Durable(path).verify() == 1600


def test_a_backup_has_its_name_when_it_is_complete(path, tmp_path, monkeypatch):
    arms = made(path)
    arms.tell(arms.ask().id, loss=1.0)
    backup = tmp_path / "backup.db"

    def stopped(*_):
        assert not backup.exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(store.os, "replace", stopped)
    with pytest.raises(KeyboardInterrupt):
        arms.backup(backup)
    monkeypatch.undo()
    assert not list(tmp_path.glob("backup.db*"))
    arms.backup(backup)
    assert [file.name for file in tmp_path.glob("backup.db*")] == ["backup.db"]
    with Durable(backup) as copy:
        assert copy.verify() == 2


@pytest.mark.parametrize("name", ["probabilities", "rounds", "predict", "update"])
def test_what_a_learner_has_or_other_libraries_say_is_told(tmp_path, name):
    with Durable(tmp_path / "arms.db", SCB(2, seed=0)) as arms:
        with pytest.raises(AttributeError, match=rf"'{name}': .*(status|ask)\(\)"):
            getattr(arms, name)
        with pytest.raises(AttributeError, match=r"no attribute 'xyz'$"):  # the control
            arms.xyz  # noqa: B018
        assert arms.outstanding() == []


def test_more_arms_than_the_file_has_are_added(tmp_path):
    path = tmp_path / "arms.db"
    Durable(path, SCB(2, seed=0)).close()
    with pytest.raises(ValueError, match=r"n_arms=2, and not 3: .*add_arm"):
        Durable(path, SCB(3, seed=0))
    with pytest.raises(ValueError, match=r"mixing=.*: say what it has"):  # the control
        Durable(path, SCB(2, seed=0, mixing=0.25))
