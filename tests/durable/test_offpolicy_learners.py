"""Off-policy estimates of learners, against what they are estimates of."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unbounded import AdaINF, CostSCB
from unbounded.durable import Durable, FewSamplesWarning, estimate_learners

N, T = 3, 600
LOGGED = np.array([0.5, 0.3, 0.2])


def log_of(seed: int, *, every: int = 150) -> tuple[dict, np.ndarray]:
    """A log, and all losses: the best arm changes ``every`` so many rounds."""
    rng = np.random.default_rng(seed)
    losses = 5.0 + rng.normal(size=(T, N))
    losses[np.arange(T), np.arange(T) // every % N] -= 2.0
    arms = rng.choice(N, size=T, p=LOGGED)
    return {
        "arm": arms, "probability": LOGGED[arms], "loss": losses[np.arange(T), arms],
    }, losses  # fmt: skip


def candidates() -> dict:
    return {h: AdaINF(N, half_life=h, seed=0) for h in (None, 40)}


def truth(log: dict, losses: np.ndarray) -> dict:
    """What it would have paid on average, each learner fed with the same rounds."""
    found = {}
    for name, learner in candidates().items():
        paid = 0.0
        for t in range(T):
            paid += float(learner.probabilities() @ losses[t])
            learner.learn_from(
                int(log["arm"][t]), float(log["probability"][t]), float(log["loss"][t])
            )
        found[name] = paid / T
    return found


def test_intervals_cover_what_would_have_been_paid():
    covered, naive = [], []
    for seed in range(25):
        log, losses = log_of(seed)
        paid, found = truth(log, losses), estimate_learners(log, candidates())
        covered += [one.low < paid[name] < one.high for name, one in found.items()]
        change, one = paid[40] - paid[None], found[40]
        covered.append(one.change_low < change < one.change_high)
        error = log["loss"].std() / math.sqrt(T)  # the control: the mean of the log is another one
        naive += [abs(log["loss"].mean() - each) < 2.0 * error for each in paid.values()]
    assert np.mean(covered) > 0.85
    assert np.mean(naive) < 0.5


def test_the_right_half_life_is_found():
    found = estimate_learners(log_of(1)[0], candidates())
    assert found[40].change_high < 0.0
    assert found[None].change == found[None].change_low == 0.0
    still = estimate_learners(log_of(1, every=T)[0], candidates())  # the control: nothing changes
    assert still[40].change > 0.0


def test_powers_of_two_change_the_unit_only():
    log, _ = log_of(2)
    usual, scaled = (
        estimate_learners({**log, "loss": log["loss"] * by}, candidates()) for by in (1.0, 2.0**900)
    )
    assert scaled[40].loss == 2.0**900 * usual[40].loss
    assert scaled[40].change_high == 2.0**900 * usual[40].change_high


def test_a_durable_log(tmp_path):
    rng, arms = np.random.default_rng(0), Durable(tmp_path / "arms.db", CostSCB(2, seed=0))
    tickets = [arms.ask() for _ in range(3)]
    for _ in range(200):
        tickets.append(arms.ask())
        ticket = tickets.pop(0)
        arms.tell(ticket.id, loss=float(rng.random()) + ticket.arm)
    found = estimate_learners(arms.log(), {"a": AdaINF(2, seed=0), "b": AdaINF(2, seed=1)})
    arms.close()
    assert found["a"].loss == found["b"].loss
    assert 0.4 < found["a"].loss < 1.2


def test_what_is_rejected():
    log, _ = log_of(0)
    with pytest.raises(ValueError, match="learners"):
        estimate_learners(log, {})
    with pytest.raises(TypeError, match="learners"):
        estimate_learners(log, {"a": 3})
    with pytest.raises(ValueError, match="two losses"):
        estimate_learners({**log, "loss": np.full(T, np.nan)}, candidates())
    with pytest.raises(ValueError, match="finite"):
        estimate_learners({**log, "loss": np.full(T, np.inf)}, candidates())
    short = {key: values[:20] for key, values in log.items()}
    with pytest.warns(FewSamplesWarning, match="None"):
        estimate_learners(short, {None: AdaINF(N, seed=0)})
