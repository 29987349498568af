"""Run the routing strategy under LiteLLM's own Router, in an environment of its own.

    python tests/litellm_router.py          # makes the environment .venv/litellm, and runs there
    python tests/litellm_router.py --here   # in this environment

LiteLLM's pins exclude those of other packages. Answers are LiteLLM's `mock_response`: nothing goes
over a network. Each check has a control that must fail.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

from environments import run_in
from upstream import reports

ROOT = Path(__file__).resolve().parents[1]
VERSION = "1.106.2"
PAGES = (ROOT / "docs" / "guide" / "routing.md",)
MESSAGES = [{"role": "user", "content": "Hello"}]


def in_its_environment() -> int:
    """Make the environment, and run this program there."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it is fetched
    return run_in("litellm", [f"litellm=={VERSION}"], [__file__, "--here"])


def deployment(name: str, answer: str = "Hi", group: str = "chat", **params: Any) -> dict[str, Any]:
    params = {"model": "gpt-4o-mini", "api_key": "none", "mock_response": answer, **params}
    return {"model_name": group, "litellm_params": params, "model_info": {"id": name}}


KILLED = "litellm.InternalServerError"
LIMITED = "litellm.RateLimitError"


class Watched:
    """A Router with the strategy; what was chosen, and how often each choice was told."""

    def __init__(self, deployments: list[Any], *, cls: Any = None, router: Any = None,
                 **given: Any) -> None:  # fmt: skip
        from litellm import Router

        from unbounded.adapters.litellm import ScaleFreeRouting

        quiet = {"retry_after": 0, "disable_cooldowns": True, **(router or {})}
        self.router = Router(model_list=deployments, **quiet)
        given = {"failure": 30.0, "seed": 1, **given}
        self.routing = (cls or ScaleFreeRouting)(self.router, **given).install()
        self.chosen: list[str] = []
        choose = self.routing._choose

        def noted(*args: Any) -> Any:
            ticket, chosen = choose(*args)
            self.chosen.append(chosen)
            return ticket, chosen

        self.routing._choose = noted

    async def ask(self, group: str = "chat", **given: Any) -> Any:
        try:
            return await self.router.acompletion(model=group, messages=MESSAGES, **given)
        except Exception as error:  # the caller looks at it
            return error

    async def settled(self) -> int:
        """Return how many choices are still waiting, when LiteLLM has reported all it reports."""
        for _ in range(100):
            if not self.routing.outstanding:
                break
            await asyncio.sleep(0.02)
        return self.routing.outstanding

    def rounds(self, group: str = "chat") -> int:
        return self.routing.learners[group].rounds


async def every_choice_is_told_once() -> str:
    from unbounded.adapters.litellm import ScaleFreeRouting

    three = [deployment("a", mock_delay=0.02), deployment("b"), deployment("killed", KILLED)]
    here = Watched(three, router={"num_retries": 5})
    for _ in range(15):
        await asyncio.gather(*(here.ask() for _ in range(10)))
        assert await here.settled() == 0
    counts = Counter(here.chosen)
    assert sum(counts.values()) >= 150, counts
    assert here.rounds() == len(here.chosen)
    assert not here.routing.learners["chat"].outstanding
    assert counts["killed"] < 40 < counts["b"], counts

    class Deaf(ScaleFreeRouting):  # the control: successes do not arrive
        async def async_log_success_event(self, *args: Any, **kwargs: Any) -> None: ...

    control = Watched(three, cls=Deaf)
    await asyncio.gather(*(control.ask() for _ in range(10)))
    assert await control.settled() > 0
    return f"{len(here.chosen)} choices, {dict(counts)}"


async def a_failure_costs_what_was_stated() -> str:
    """With a cheap failure, the killed deployment is what one should choose."""
    losses = {}
    for failure in (30.0, 0.0):
        two = [deployment("good", mock_delay=0.01), deployment("killed", KILLED)]
        here = Watched(two, router={"num_retries": 0}, failure=failure)
        for _ in range(20):
            await asyncio.gather(*(here.ask() for _ in range(5)))
            await here.settled()
        losses[failure] = Counter(here.chosen)["killed"]
    assert losses[30.0] < 40 < losses[0.0], losses
    return f"killed deployment chosen {losses[30.0]} times of 100, {losses[0.0]} if failing is free"


async def a_cooldown_is_a_mask() -> str:
    cooling = {"disable_cooldowns": False, "cooldown_time": 60, "num_retries": 3}
    three = [deployment("a"), deployment("b"), deployment("limited", LIMITED)]
    here = Watched(three, router=cooling)
    for _ in range(60):
        await here.ask()
    assert await here.settled() == 0
    assert Counter(here.chosen)["limited"] <= 2, Counter(here.chosen)  # LiteLLM cools it down
    assert here.routing.learners["chat"].n_arms == 3
    control = Watched(three, router={"num_retries": 3})  # without cooldowns it is explored
    for _ in range(60):
        await control.ask()
    assert await control.settled() == 0
    assert Counter(control.chosen)["limited"] > 2, Counter(control.chosen)
    return f"{Counter(here.chosen)['limited']} and {Counter(control.chosen)['limited']} choices"


async def streams_are_told_when_they_end() -> str:
    seen: list[Any] = []

    def loss(kwargs: Any, response: Any, start: Any, end: Any) -> float:
        seen.append(kwargs.get("stream"))
        return float((end - start).total_seconds())

    here = Watched([deployment("a", "one two three"), deployment("b", "one two")], loss=loss)
    stream = await here.ask(stream=True)
    assert not seen  # it goes on
    async for _ in stream:
        pass
    assert await here.settled() == 0
    assert seen == [True], seen
    assert here.rounds() == 1
    for measure in ("first_token", "seconds_per_token", "dollars"):
        other = Watched([deployment("a", "one two three")], loss=measure)
        async for _ in await other.ask(stream=True):
            pass
        await other.ask()
        assert await other.settled() == 0
        assert other.rounds() == 2, measure
    return "told after its end"


async def dollars_are_those_of_the_price_map() -> str:
    import litellm

    two = [deployment("cheap"), deployment("dear", model="gpt-4o")]
    here = Watched(two, loss="dollars")
    for _ in range(60):
        await here.ask()
        await here.settled()
    price = litellm.model_cost["gpt-4o"]
    largest = 10 * price["input_cost_per_token"] + 20 * price["output_cost_per_token"]
    learner = here.routing.learners["chat"]
    assert abs(learner.scale / largest - 1.0) < 1e-9, (learner.scale, largest)
    assert learner.probabilities().argmax() == 0
    both = Watched(two, loss={"seconds": 0.0, "dollars": 50.0})
    for _ in range(60):
        await both.ask()
        await both.settled()
    assert abs(both.routing.learners["chat"].scale / (50.0 * largest) - 1.0) < 1e-9
    return f"scale {learner.scale:g} dollars"


async def a_loss_that_cannot_be_learned_is_forgotten() -> str:
    def broken(kwargs: Any, *_: Any) -> float:
        if kwargs["litellm_params"]["model_info"]["id"] == "raises":
            raise KeyError("usage")
        return math.nan if kwargs["litellm_params"]["model_info"]["id"] == "nan" else 1.0

    logged: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = logged.append  # type: ignore[method-assign]
    names = ("unbounded", "LiteLLM", "LiteLLM Router")
    for name in names:
        logging.getLogger(name).addHandler(handler)
    here = Watched([deployment(name) for name in ("raises", "nan", "good")], loss=broken)
    for _ in range(30):
        assert (await here.ask()).choices[0].message.content == "Hi"
        assert await here.settled() == 0
    for name in names:
        logging.getLogger(name).removeHandler(handler)
    counts = Counter(here.chosen)
    assert min(counts.values()) > 0, counts
    assert here.rounds() == counts["good"]
    assert not here.routing.learners["chat"].outstanding
    said = [record for record in logged if record.levelno >= logging.ERROR]
    assert Counter(record.name for record in said) == {"unbounded": 30 - counts["good"]}, said
    return f"{len(said)} of 30 are logged: {said[0].getMessage()}"


async def timeouts_and_bad_requests() -> str:
    here = Watched([deployment("a")], timeout=7.0, router={"num_retries": 2})
    await here.ask(mock_timeout=True, timeout=0.01)
    assert await here.settled() == 0
    learner = here.routing.learners["chat"]
    assert learner.rounds == 3, learner.rounds  # each retry is told
    assert learner.scale == 7.0, learner.scale
    bad = Watched([deployment("a", "litellm.ContextWindowExceededError")])
    assert isinstance(await bad.ask(), Exception)
    assert await bad.settled() == 0
    assert bad.rounds() == 0
    assert not bad.routing.learners["chat"].outstanding
    return "told 7.0 three times, and forgotten"


async def fallbacks_are_choices_of_their_own_group() -> str:
    models = [
        deployment("a", KILLED), deployment("b", KILLED), deployment("c", group="other"),
    ]  # fmt: skip
    here = Watched(models, router={"num_retries": 1, "fallbacks": [{"chat": ["other"]}]})
    for _ in range(20):
        answer = await here.ask()
        assert answer.choices[0].message.content == "Hi"
    assert await here.settled() == 0
    assert (here.rounds(), here.rounds("other")) == (40, 20)
    return "40 and 20"


async def attempts_of_a_proxy_share_a_logging_object() -> str:
    """LiteLLM's proxy makes one for a request: it reports the first failure alone as an event."""
    import datetime

    from litellm.utils import Rules, function_setup

    from unbounded.adapters.litellm import ScaleFreeRouting

    class EventsOnly(ScaleFreeRouting):
        async def async_post_call_failure_deployment_hook(self, *a: Any, **k: Any) -> None: ...

    left = []
    for cls in (ScaleFreeRouting, EventsOnly):
        two = [deployment("a", KILLED), deployment("b", KILLED)]
        here = Watched(two, router={"num_retries": 3}, cls=cls)
        logging, _ = function_setup(
            "acompletion", Rules(), datetime.datetime.now(), model="chat", messages=MESSAGES,
            litellm_call_id="one",
        )  # fmt: skip
        await here.ask(litellm_logging_obj=logging)
        left.append(await here.settled())
        assert len(here.chosen) == 4, here.chosen
    assert left[0] == 0, left
    assert left[1] > 0, left
    return f"4 attempts; without the hook {left[1]} would wait for ever"


async def routers_are_told_their_own() -> str:
    first, second = Watched([deployment("a")]), Watched([deployment("b")])
    await first.ask()
    await first.ask()
    await second.ask()
    assert await first.settled() + await second.settled() == 0
    assert (first.rounds(), second.rounds()) == (2, 1)
    return "2 and 1"


async def kinds_have_learners_of_their_own() -> str:
    def kind(request: Any) -> str:
        return "long" if len(request["messages"][-1]["content"]) > 20 else "short"

    here = Watched([deployment("a"), deployment("b")], kind=kind)
    await here.ask()
    await here.router.acompletion("chat", [{"role": "user", "content": "Hello " * 10}])
    assert await here.settled() == 0
    assert sorted(here.routing.learners) == ["chat/long", "chat/short"]
    here.router.add_deployment(_added(deployment("new")))
    for _ in range(40):
        await here.ask()
        await here.settled()
    assert here.routing.learners["chat/short"].n_arms == 3
    assert "new" in here.chosen
    return "and a new deployment is an arm"


def _added(one: dict[str, Any]) -> Any:
    from litellm.types.router import Deployment

    return Deployment(**one)


def synchronous_calls() -> str:
    import litellm

    here = Watched([deployment("a"), deployment("b", KILLED)], router={"num_retries": 3})
    for _ in range(20):
        with contextlib.suppress(litellm.InternalServerError):  # four retries of the killed one
            here.router.completion(model="chat", messages=MESSAGES)
    here.routing.close()
    assert not here.routing.outstanding
    assert here.rounds() == len(here.chosen) >= 20
    return f"{len(here.chosen)} choices"


async def powers_of_two_choose_the_same() -> str:
    losses = {"a": 0.3, "b": 0.2, "c": 0.7}

    async def chosen(factor: float, more: float = 0.0) -> list[str]:
        def loss(kwargs: Any, *_: Any) -> float:
            return factor * (losses[kwargs["litellm_params"]["model_info"]["id"]] + more)

        here = Watched([deployment(name) for name in losses], loss=loss, seed=3)
        for _ in range(60):
            await here.ask()
            await here.settled()
        return here.chosen

    plain = await chosen(1.0)
    assert await chosen(2.0**40) == plain
    assert await chosen(1.0, more=5.0) != plain  # the control
    return "60 choices at 2^40"


def the_replayed_trace() -> str:
    """The trace of examples/routing.py: LiteLLM's own policies, and ours in every unit."""
    import litellm
    import routing_policies as policies
    import routing_replay as routing
    from routing_record import FAST

    from unbounded.adapters.litellm import ScaleFreeRouting

    draw = routing.replicate(routing.recorded(), seed=0, rounds=1000)

    class Chosen(int):
        info: Any

    class Adapter(policies.LowestLatency):
        def __init__(self, unit: float, more: float = 0.0) -> None:
            super().__init__(routing.N, seed=0)
            models = [deployment(str(k)) for k in range(routing.N)]

            def loss(kwargs: Any, response: Any, start: Any, end: Any) -> float:
                return unit * ((end - start).total_seconds() + more)

            router = litellm.Router(model_list=models, disable_cooldowns=True)
            failure = unit * (routing.FAILURE + more)
            self.handler = ScaleFreeRouting(router, failure=failure, loss=loss, seed=0)

        def ask(self, present: Any) -> int:
            found = self.handler.async_get_available_deployment("chat", policies.MESSAGES)
            info = policies.finish(found)["model_info"]
            chosen = Chosen(info["id"])
            chosen.info = info
            return chosen

        def tell(self, arm: Any, wait: float, answered: Any) -> None:
            start = policies.MIDNIGHT + timedelta(seconds=answered.began)
            end = start + timedelta(seconds=answered.seconds)
            event = {"litellm_params": {"model_info": arm.info}}
            if answered.ok:
                self.handler.log_success_event(event, self.response, start, end)
            else:
                event["exception"] = self.failures[answered.timeout]
                self.handler.log_failure_event(event, None, start, end)

    def chosen(policy: Any) -> list[int]:
        found: list[int] = routing.replay(policy, draw, draw.costs()).tolist()
        return found

    plain = chosen(Adapter(1.0))
    assert chosen(Adapter(2.0**40)) == chosen(Adapter(2.0**-30)) == plain
    assert chosen(Adapter(1.0, more=5.0)) != plain  # the control
    said = [f"ours {Counter(plain)[FAST]} of 1,000 to the fast server"]
    for name, make in routing.THEIRS.items():
        first = chosen(make(0))
        assert chosen(make(0)) == first, name
        assert chosen(make(1)) != first, name
        said.append(f"{name} {Counter(first)[FAST]}")
    return ", ".join(said)


async def workers_share_a_durable() -> str:
    from unbounded.durable import Durable

    tell = Durable.tell

    def slow(*args: Any, **given: Any) -> bool:
        time.sleep(0.02)
        return tell(*args, **given)

    Durable.tell = slow  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as folder:
        made = [deployment("a", mock_delay=0.01), deployment("b"), deployment("killed", KILLED)]
        told = 0
        for start in range(2):  # the second is a restart, with one more deployment
            models = [*made, deployment("new")] if start else made
            workers = [Watched(models, durable=folder, router={"num_retries": 4}) for _ in range(2)]
            await asyncio.gather(*(workers[k % 2].ask() for k in range(40)))
            for worker in workers:
                await worker.routing.aclose()
                assert not worker.routing.outstanding
                told += len(worker.chosen)
        with Durable(Path(folder) / "chat.db") as found:
            assert found.status().rounds == told
            assert found.outstanding() == []
            assert found.status().arms == ("a", "b", "killed", "new")
            assert found.verify() > told
        try:
            other = Watched(made, durable=folder, settings={"half_life": 77})
            answer = await other.ask()
        except ValueError as error:
            answer = error
        assert "half_life" in str(answer), answer
    Durable.tell = tell  # type: ignore[method-assign]
    return f"{told} choices of four workers"


def pages() -> str:
    """The examples of the adapter and of the guide, under LiteLLM itself."""
    import doctest

    from unbounded.adapters import litellm

    results = [doctest.testmod(litellm)]
    results += [doctest.testfile(str(page), module_relative=False) for page in PAGES]
    assert all(one.attempted > 3 and one.failed == 0 for one in results), results
    return f"{sum(one.attempted for one in results)} lines"


def the_report_of_a_bug() -> str:
    """The program of docs/develop/upstream.md prints what the page says."""
    code, expected = reports()["LiteLLM"]

    def said(program: str) -> str:
        command = [sys.executable, "-c", program]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    for _ in range(3):  # on a busy machine the first answer may take longer
        if (found := said(code)) == expected:
            break
    assert found == expected, found
    assert said(code.replace("mock_timeout=True", "mock_timeout=False")) != expected  # the control
    return "as on the page"


CHECKS = (
    every_choice_is_told_once,
    a_failure_costs_what_was_stated,
    a_cooldown_is_a_mask,
    streams_are_told_when_they_end,
    dollars_are_those_of_the_price_map,
    a_loss_that_cannot_be_learned_is_forgotten,
    timeouts_and_bad_requests,
    fallbacks_are_choices_of_their_own_group,
    attempts_of_a_proxy_share_a_logging_object,
    routers_are_told_their_own,
    kinds_have_learners_of_their_own,
    synchronous_calls,
    powers_of_two_choose_the_same,
    the_replayed_trace,
    workers_share_a_durable,
    the_report_of_a_bug,
    pages,
)


def main() -> None:
    if "--here" not in sys.argv:
        raise SystemExit(in_its_environment())
    from importlib.metadata import version

    import litellm

    litellm.suppress_debug_info = True
    sys.path.insert(0, str(ROOT / "examples"))
    print(f"LiteLLM {version('litellm')}")
    for check in CHECKS:
        litellm.callbacks.clear()
        start = time.monotonic()
        found = check()
        said = asyncio.run(found) if asyncio.iscoroutine(found) else found
        print(f"  {check.__name__}: {said} ({time.monotonic() - start:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
