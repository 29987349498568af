"""Advice in a durable learner: replay, keys, the log, and what is raised."""

import numpy as np
import polars as pl
import pytest

from unbounded import CostExp4, CostSCB, SCBExp4
from unbounded.durable import Durable, estimate

NAMES = ["a", "b", "c"]
MADE = [CostExp4(3, 4, seed=0), CostExp4(3, 4, half_life=20, seed=0), SCBExp4(3, 4, seed=0)]


def advised(rng, t):
    if t % 3 == 0:
        return rng.integers(3, size=4)
    if t % 3 == 1:
        return rng.dirichlet(np.ones(3), size=4)
    return [0, None, [0.5, 0.25, 0.25], 2]


@pytest.mark.parametrize("made", MADE, ids=repr)
def test_several_handles_play_as_one_learner_in_memory(tmp_path, made):
    path, alone = tmp_path / "arms.db", made.clone()
    handles = [Durable(path, made, arms=NAMES), Durable(path)]
    rng, waiting = np.random.default_rng(1), []
    for t in range(90):
        advice, some = advised(rng, t), ["a", "c"] if t % 5 == 0 else None
        mask = None if some is None else [True, False, True]
        ticket = handles[t % 2].ask(key=f"{t}", available=some, advice=advice)
        expected = alone.ask(advice, available=mask)
        assert (ticket.arm, ticket.probability) == (expected.arm, expected.probability)
        assert handles[0].ask(key=f"{t}", advice=advice) == ticket
        waiting.append((ticket, expected))
        if t % 4 == 3:  # delayed, in another order
            for ticket, expected in reversed(waiting):
                loss = float(rng.random())
                handles[t % 3 == 0].tell(ticket.id, loss=loss)
                alone.tell(expected, loss)
            waiting.clear()
    assert handles[0].status().probabilities == ()
    handles[0].close()
    handles[1].close()
    with Durable(path) as arms:
        assert arms.verify() == 178
        assert np.array_equal(arms.learner().weights(), alone.weights())


@pytest.mark.parametrize("advice", [None, [0, 1], [0, 1, 3, 0], np.full((4, 3), 0.5), "abcd"])
def test_hostile_advice_writes_nothing(tmp_path, advice):
    with Durable(tmp_path / "arms.db", CostExp4(3, 4, seed=0), arms=NAMES) as arms:
        with pytest.raises((TypeError, ValueError), match="advice"):
            arms.ask(advice=advice)
        assert arms.status().rows == 0
        assert arms.ask(advice=[0, 0, 0, 0]).name == "a"


def test_advice_is_read_once(tmp_path):
    calls = []

    def expert(context):
        calls.append(context)
        return 1

    with Durable(tmp_path / "arms.db", CostExp4(3, 4, seed=0), arms=NAMES) as arms:
        assert arms.ask(advice=[expert, 1, 1, None]).name == "b"
        assert len(calls) == 1  # who draws would say something else the second time
        assert arms.ask(advice=(k for k in [2, 2, 2, 2])).name == "c"


def test_who_follows_nobody_takes_no_advice(tmp_path):
    with Durable(tmp_path / "arms.db", CostSCB(3, seed=0), arms=NAMES) as arms:
        with pytest.raises(TypeError, match="advice"):
            arms.ask(advice=[0, 1, 2])
        assert arms.status().rows == 0


def test_contexts_that_are_kept_elsewhere_join_the_log_by_key(tmp_path):
    """Overall and per context, another policy's cost is estimated; a context that was deleted is
    not known any more."""
    noise, contexts = 0.1 * np.random.default_rng(0).random(600), {}
    with Durable(tmp_path / "arms.db", CostExp4(2, 2, seed=0)) as arms:
        for t in range(600):
            key, region = f"request {t}", ["eu", "us"][t % 2]
            contexts[key] = region
            choice = arms.ask(key=key, advice=[t % 2, [0.5, 0.5]])
            arms.tell(choice.id, loss=1.0 + (choice.arm != t % 2) + noise[t])
        log = arms.log()
    known = pl.DataFrame({"key": list(contexts), "region": list(contexts.values())})
    joined = log.join(known, on="key", how="left")
    eu = estimate(joined.filter(pl.col("region") == "eu"), "0")
    assert eu.low < 1.0 + noise[::2].mean() < eu.high < 1.5
    overall = estimate(joined, {"0": 0.5, "1": 0.5})
    assert overall.low < 1.5 + noise.mean() < overall.high
    left = known.filter(pl.col("region") == "eu")
    assert log.join(left, on="key", how="left")["region"].null_count() == 300
