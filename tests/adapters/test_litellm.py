"""The routing strategy on the recorded interface; `tests/litellm_router.py` runs LiteLLM's own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import litellm
import pytest
from litellm import Router

from unbounded import AdaINF, CostSCB
from unbounded.adapters import litellm as adapter
from unbounded.adapters.litellm import ScaleFreeRouting
from unbounded.durable import BusyError, Durable

pytestmark = pytest.mark.skipif(hasattr(litellm, "__file__"), reason="it is LiteLLM itself")
MESSAGES = [{"role": "user", "content": "Hello"}]
KILLED = "litellm.InternalServerError"


@pytest.fixture(autouse=True)
def _no_callbacks():
    litellm.callbacks.clear()  # of pages that were tested before
    yield
    litellm.callbacks.clear()


def deployment(name, answer="Hi you", group="chat", **params):
    params = {"model": "gpt", "mock_response": answer, **params}
    return {"model_name": group, "litellm_params": params, "model_info": {"id": name}}


def routed(models, requests, router=None, group="chat", **given):
    """Play, and return the strategy with what it chose."""
    routing = ScaleFreeRouting(
        Router(models, **(router or {})), **{"failure": 30.0, "seed": 1} | given
    )
    routing.install()
    chosen, choose = [], routing._choose

    def noted(*args):
        ticket, name = choose(*args)
        chosen.append(name)
        return ticket, name

    routing._choose = noted

    async def play():
        for _ in range(requests):
            with contextlib.suppress(litellm.InternalServerError, litellm.Timeout):
                await routing._router.acompletion(group, MESSAGES)

    asyncio.run(play())
    return routing, chosen


def test_every_attempt_is_told_once_and_the_killed_deployment_is_left():
    routing, chosen = routed([deployment("a"), deployment("b", KILLED)], 150)
    learner = routing.learners["chat"]
    assert (learner.rounds, learner.outstanding) == (len(chosen), {})
    assert not routing.outstanding
    assert 150 < len(chosen) < 200
    assert type(learner) is CostSCB
    assert learner.settings["half_life"] == 1000


@pytest.mark.parametrize(
    ("loss", "scale"),
    [
        ("seconds", 4.0),
        ("first_token", 4.0),
        ("seconds_per_token", 2.0),
        ("dollars", 2e-6),
        ({"seconds": 1.0, "dollars": 1e6}, 6.0),
        (lambda kwargs, response, start, end: 7.0, 7.0),
    ],
)
def test_losses(loss, scale):
    routing, _ = routed([deployment("a", seconds=4)], 3, loss=loss)
    assert routing.learners["chat"].scale == scale
    assert routing.learners["chat"].rounds == 3


def test_failures_cost_what_is_stated_and_bad_requests_nothing():
    routing, _ = routed([deployment("a", "litellm.Timeout")], 1, timeout=7.0)
    assert (routing.learners["chat"].scale, routing.learners["chat"].rounds) == (7.0, 3)
    routing, _ = routed([deployment("a", KILLED)], 1)
    assert routing.learners["chat"].scale == 30.0
    with pytest.raises(litellm.BadRequestError):
        routed([deployment("a", "litellm.BadRequestError")], 1)
    bad = litellm.callbacks[-1]
    assert (bad.learners["chat"].rounds, bad.learners["chat"].outstanding) == (0, {})


def raising(*event):
    raise KeyError("usage")


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        ("dollars", "input_cost_per_token"),
        (lambda *event: float("nan"), "nan"),
        (lambda *event: "long", "long"),
        (raising, "KeyError: 'usage'"),
    ],
)
def test_a_loss_that_cannot_be_learned_is_forgotten_and_logged(loss, said, caplog):
    routing, chosen = routed([deployment("a", priced=False)], 3, loss=loss)
    learner = routing.learners["chat"]
    assert (learner.rounds, learner.outstanding, routing.outstanding) == (0, {}, 0)
    assert len(chosen) == 3
    assert [record.name for record in caplog.records] == ["unbounded"] * 3
    assert all(said in record.message and not record.exc_info for record in caplog.records)


def test_a_cooldown_is_a_mask_and_a_new_deployment_an_arm():
    models = [deployment("a", seconds=0.1), deployment("b", seconds=9)]
    routing, _ = routed(models, 50)
    router = routing._router

    async def play(n):
        return [
            (await router.async_get_available_deployment("chat", MESSAGES, request_kwargs={}))[
                "model_info"
            ]["id"]
            for _ in range(n)
        ]

    router.cooling.add("a")
    assert set(asyncio.run(play(20))) == {"b"}
    router.cooling.clear()
    assert Counter(asyncio.run(play(50)))["a"] > 30
    router.model_list.append(deployment("new"))
    assert "new" in asyncio.run(play(50))
    assert routing.learners["chat"].n_arms == 3


def test_a_certain_deployment_is_not_chosen():
    routing, chosen = routed([deployment("a")], 0)
    found = asyncio.run(routing.async_get_available_deployment("a", specific_deployment=True))
    assert (found["model_info"], chosen) == ({"id": "a"}, [])
    assert routing.get_available_deployment("chat")["model_info"]["id"] == "a"


def test_kinds_and_groups_have_learners_of_their_own():
    models = [deployment("a"), deployment("b", group="other")]
    routing, _ = routed(models, 2, kind=lambda request: len(request["messages"]))
    assert list(routing.learners) == ["chat/1"]
    asyncio.run(routing._router.acompletion("other", MESSAGES * 2))
    assert list(routing.learners) == ["chat/1", "other/2"]


def test_powers_of_two_choose_the_same():
    seconds = {"a": 0.3, "b": 0.2, "c": 0.7}
    models = [deployment(name, seconds=value) for name, value in seconds.items()]
    plain = routed(models, 150)[1]
    assert routed(models, 150, loss={"seconds": 2.0**40})[1] == plain
    assert routed(models, 150, loss=lambda *event: 1.0)[1] != plain  # the control


def test_choices_without_an_event_do_not_pile_up(monkeypatch):
    monkeypatch.setattr(adapter, "WAITING", 5)
    routing, _ = routed([deployment("a"), deployment("b")], 1)
    for _ in range(20):
        routing.get_available_deployment("chat")
    learner = routing.learners["chat"]
    assert len(learner.outstanding) == routing.outstanding == 5
    assert learner.rounds == 1


class Slow(dict):
    """Lets other threads work before its first key is used."""

    def __iter__(self):
        first = next(super().__iter__())
        time.sleep(1e-4)
        return iter([first])


def test_threads_choose_and_forget_what_is_too_old(monkeypatch, tmp_path):
    monkeypatch.setattr(adapter, "WAITING", 5)
    monkeypatch.setattr(adapter._Group, "ask", lambda self, healthy: (object(), healthy[0]))
    forgotten = []
    monkeypatch.setattr(adapter._Group, "forget", lambda self, choice: forgotten.append(choice))
    routing, _ = routed([deployment("a")], 0)
    routing._waiting = Slow()
    with ThreadPoolExecutor(8) as pool:
        for made in [pool.submit(routing._choose, "chat", "chat", ["a"]) for _ in range(200)]:
            made.result()
    assert routing.outstanding == 5
    assert len(set(map(id, forgotten))) == len(forgotten) == 195


def test_a_choice_that_was_expired_may_be_too_old(monkeypatch, tmp_path):
    monkeypatch.setattr(adapter, "WAITING", 1)
    routing, _ = routed([deployment("a")], 0, durable=tmp_path)
    routing.get_available_deployment("chat")
    assert routing.learners["chat"].expire(timedelta(0)) == 1
    assert routing.get_available_deployment("chat")["model_info"]["id"] == "a"
    routing.close(timeout=0.0)


def test_workers_share_a_durable(tmp_path):
    models = [deployment("a"), deployment("b", KILLED)]
    told = []
    for given in (models, [*models, deployment("new")]):  # a restart with one more
        workers = [routed(given, 20, durable=tmp_path, group="chat")[0] for _ in range(2)]
        told.append(workers[0].learners["chat"].status().rounds)
        for worker in workers:
            worker.close()
    with Durable(tmp_path / "chat.db") as found:
        status = found.status()
        assert status.arms == ("a", "b", "new")
        assert status.rounds == told[1] > told[0] >= 40
        assert found.outstanding() == []
    with pytest.raises(ValueError, match="half_life"):
        routed(models, 1, durable=tmp_path, settings={"half_life": 77})


class ForgetsWhatItTells(ScaleFreeRouting):
    """A control, for which a choice is no longer outstanding when its tell begins."""

    _telling = property(lambda self: 0, lambda self, value: None)


@pytest.mark.parametrize(("cls", "learned"), [(ScaleFreeRouting, 1), (ForgetsWhatItTells, 0)])
def test_closing_waits_for_what_is_being_told(tmp_path, monkeypatch, cls, learned):
    began, tell = threading.Event(), Durable.tell

    def slow(*args, **kwargs):
        began.set()
        time.sleep(0.2)
        return tell(*args, **kwargs)

    monkeypatch.setattr(Durable, "tell", slow)
    routing = cls(Router([deployment("a")]), failure=30.0, durable=tmp_path)

    async def play():
        chosen = await routing.async_get_available_deployment("chat")
        event = {"litellm_params": {"model_info": chosen["model_info"]}}
        times = datetime(2026, 1, 1), datetime(2026, 1, 2)
        reports = [routing.async_log_success_event(event, None, *times) for _ in range(2)]
        tasks = [asyncio.create_task(report) for report in reports]
        await asyncio.to_thread(began.wait)
        for task in tasks:  # as LiteLLM does with reports that take long
            task.cancel()
        assert routing.outstanding == learned
        await routing.aclose()
        assert routing.outstanding == 0

    asyncio.run(play())
    with Durable(tmp_path / "chat.db") as found:
        assert (found.status().rounds, len(found.outstanding())) == (learned, 1 - learned)


@pytest.mark.parametrize(("busy", "learned"), [(2, 1), (3, 0)])
def test_a_busy_file_is_tried_again(tmp_path, monkeypatch, busy, learned):
    tries, tell = [], Durable.tell

    def sometimes(*args, **kwargs):
        tries.append(args)
        if len(tries) <= busy:
            raise BusyError("busy")
        return tell(*args, **kwargs)

    monkeypatch.setattr(Durable, "tell", sometimes)
    outcome = contextlib.nullcontext() if learned else pytest.raises(BusyError)
    with outcome:
        routed([deployment("a")], 1, durable=tmp_path)
    (routing,) = litellm.callbacks
    assert (routing.outstanding, len(tries)) == (0, 3)
    routing.close()
    with Durable(tmp_path / "chat.db") as found:
        assert (found.status().rounds, len(found.outstanding())) == (learned, 1 - learned)


def test_closing_waits_while_reports_come(tmp_path):
    """And not for a choice of which there is none."""
    routing = ScaleFreeRouting(Router([deployment("a")]), failure=30.0, durable=tmp_path)

    async def play():
        chosen = [await routing.async_get_available_deployment("chat") for _ in range(4)]
        times = datetime(2026, 1, 1), datetime(2026, 1, 2)

        async def report(k):
            await asyncio.sleep(0.2 * k)
            event = {"litellm_params": {"model_info": chosen[k]["model_info"]}}
            await routing.async_log_success_event(event, None, *times)

        tasks = [asyncio.create_task(report(k)) for k in (1, 2, 3)]
        began = time.monotonic()
        await routing.aclose(timeout=0.4)
        assert time.monotonic() - began > 0.9
        assert routing.outstanding == 1
        await asyncio.gather(*tasks)

    asyncio.run(play())
    with Durable(tmp_path / "chat.db") as found:
        assert (found.status().rounds, len(found.outstanding())) == (3, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"loss": "minutes"},
        {"loss": {}},
        {"loss": {"seconds": float("nan")}},
        {"failure": float("inf")},
        {"timeout": "long"},
        {"learner": AdaINF(3)},
    ],
)
def test_what_is_wrong_is_said_at_once(wrong):
    with pytest.raises((ValueError, TypeError)):
        ScaleFreeRouting(Router([deployment("a")]), **{"failure": 1.0} | wrong)


def test_a_learner_without_masks_is_rejected():
    from unbounded import SCB

    with pytest.raises(ValueError, match="available"):
        ScaleFreeRouting(Router([deployment("a")]), failure=1.0, learner=SCB)
