"""Masks in a durable learner: names, keys, replay, the log and estimates from it."""

import asyncio

import numpy as np
import pytest

from unbounded import SCB, SCBRL, AdaINF, CostSCB, CostSCBIX
from unbounded.durable import Durable, estimate

NAMES = ["a", "b", "c", "d"]


def some_of(rng):
    return sorted(rng.choice(NAMES, size=rng.integers(1, 5), replace=False).tolist())


@pytest.mark.parametrize("cls", [CostSCB, CostSCBIX, AdaINF])
@pytest.mark.parametrize("half_life", [None, 20])
def test_several_handles_play_as_one_learner_in_memory(tmp_path, cls, half_life):
    path = tmp_path / "arms.db"
    alone = cls(4, half_life=half_life, seed=0)
    handles = [Durable(path, cls(4, half_life=half_life, seed=0), arms=NAMES), Durable(path)]
    rng, waiting = np.random.default_rng(1), []
    for t in range(120):
        some = some_of(rng) if t % 3 else None
        given = some if t % 2 or some is None else [name in some for name in NAMES]
        ticket = handles[t % 2].ask(key=f"{t}", available=given)
        mask = None if some is None else [name in some for name in NAMES]
        expected = alone.ask(available=mask)
        assert (ticket.arm, ticket.probability) == (expected.arm, expected.probability)
        assert some is None or ticket.name in some
        assert handles[0].ask(key=f"{t}") == ticket
        waiting.append((ticket, expected))
        if t % 4 == 3:  # delayed, in another order
            for ticket, expected in reversed(waiting):
                loss = float(rng.random())
                handles[t % 3 == 0].tell(ticket.id, loss=loss)
                alone.tell(expected, loss)
            waiting.clear()
    handles[1].close()
    with Durable(path) as arms:
        assert arms.verify() == 240
        assert np.array_equal(arms.learner().probabilities(), alone.probabilities())


def test_the_log_has_the_arms_and_the_probability_among_them(tmp_path):
    with Durable(tmp_path / "arms.db", CostSCB(4, seed=0), arms=NAMES) as arms:
        for some in (None, ["b", "d"], NAMES, [2]):
            choice = arms.ask(available=some)
            arms.tell(choice.id, loss=1.0)
        log = arms.log()
    assert log["available"].to_list() == [None, ["b", "d"], None, ["c"]]
    assert log["probability"][1] == pytest.approx(0.5, abs=0.2)
    assert log["probability"][3] == 1.0


@pytest.mark.parametrize(
    "available", [[], ["e"], ["a", "a"], [4], [True], "a", [0.5, 0.5, 0.0, 0.0]]
)
def test_a_mask_that_makes_no_sense_is_rejected_and_nothing_is_written(tmp_path, available):
    with Durable(tmp_path / "arms.db", CostSCB(4, seed=0), arms=NAMES) as arms:
        arms.tell(arms.ask(), loss=1.0)
        before = arms.status()
        with pytest.raises(ValueError, match="available"):
            arms.ask(available=available)
        assert arms.status() == before
        assert arms.verify() == 2


def test_learners_without_a_rule_say_so(tmp_path):
    for i, learner in enumerate((SCB(4, seed=0), SCBRL([1, 2], 2, seed=0))):
        with (
            Durable(tmp_path / f"{i}.db", learner) as arms,
            pytest.raises(TypeError, match="available"),
        ):
            arms.ask(available=[0])


def test_asyncio_takes_masks_too(tmp_path):
    with Durable(tmp_path / "arms.db", CostSCB(4, seed=0), arms=NAMES) as arms:
        assert asyncio.run(arms.aask(available=["c"])).name == "c"


def logged(path, *, rounds=3000):
    """A learner that explores, of four arms with the means 0.2 to 0.8; "a" sleeps half the time."""
    rng = np.random.default_rng(0)
    with Durable(path, CostSCB(4, rate=0.05, seed=0), arms=NAMES) as arms:
        for _ in range(rounds):
            choice = arms.ask(available=NAMES if rng.random() < 0.5 else NAMES[1:])
            mean = 0.2 + 0.2 * choice.arm
            arms.tell(choice.id, loss=float(rng.random() < mean))
        return arms.log()


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return logged(tmp_path_factory.mktemp("log") / "arms.db", rounds=1500)


@pytest.mark.parametrize("method", ["dr", "ips"])
@pytest.mark.parametrize(
    ("policy", "loss", "share"),
    [("b", 0.4, 1.0), ("a", 0.2, 0.5), ({"a": 0.5, "d": 0.5}, 0.65, 1.0)],
)
def test_a_policy_is_restricted_to_the_arms_that_were_available(log, policy, loss, share, method):
    # Half a and half d: 0.5 where both were there, 0.8 where only d was.
    found = estimate(log, policy, method=method, weights="even", level=0.999)
    assert found.low < loss < found.high
    assert found.high - found.low < 0.3
    assert found.rounds == pytest.approx(share * log.height, rel=0.1)
    assert found.rounds + found.missing == log.height


def test_a_log_that_does_not_say_who_slept_gives_a_wrong_estimate(log):  # the control
    found = estimate(log.drop("available"), {"a": 0.5, "d": 0.5}, method="ips", level=0.999)
    assert not found.low < 0.65 < found.high
