"""Every algorithm's probabilities, replayed by an independent slow implementation."""

from __future__ import annotations

import numpy as np
import pytest

from slow import twin_of
from unbounded import AdaFTRL, AdaHedge

ROUNDS = 150


def losses_of(kind: str, n: int, seed: int = 12) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if kind == "in [0, 1]":
        losses = rng.uniform(size=(ROUNDS, n))
        losses[:, 2] *= 0.4
        return losses
    losses = rng.normal(size=(ROUNDS, n))
    losses[:, 1] -= 0.7
    losses[ROUNDS // 3 :] *= 3.7
    losses[:4] = 0.0
    return losses


@pytest.mark.parametrize(
    ("kind", "n"),
    [
        ("in [0, 1]", 6), ("of both signs", 3),
        pytest.param("in [0, 1]", 3, marks=pytest.mark.long),
        pytest.param("of both signs", 6, marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_probabilities_agree_with_the_slow_implementation(every_example, kind, n):
    # Rounding errors grow on the way, because estimates divide by probabilities: 1e-16 may become
    # 1e-9 within a few hundred rounds, in either implementation.
    losses = losses_of(kind, n)
    example = every_example
    learner = example.make(n, seed=4)
    slow = twin_of(example.cls)(n, **example.settings)
    expected = next(slow)
    for t, row in enumerate(losses):
        np.testing.assert_allclose(
            learner.probabilities(), expected, rtol=0.0, atol=1e-9, err_msg=f"round {t + 1}"
        )
        choice = learner.ask()
        example.tell(learner, choice, row)
        expected = slow.send((choice.arm, row))
    np.testing.assert_allclose(learner.probabilities(), expected, rtol=0.0, atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("seed", [3, 5])
@pytest.mark.parametrize("kind", ["in [0, 1]", "of both signs"])
def test_probabilities_agree_as_well_as_the_recursion_allows(example, kind, seed):
    """Losses that were not chosen: some of them amplify rounding beyond 1e-9.

    By how much, three slow players tell whose losses are off by 1e-14, relatively.
    """
    n = 4
    losses = losses_of(kind, n, seed)
    noise = np.random.default_rng(seed).uniform(-1e-14, 1e-14, size=(3, *losses.shape))
    learner = example.make(n, seed=4)
    slow = [twin_of(example.cls)(n, **example.settings) for _ in range(4)]
    expected, *others = [next(player) for player in slow]
    sensitivity = 0.0
    for t, row in enumerate(losses):
        sensitivity = max(sensitivity, *(np.abs(other - expected).max() for other in others))
        np.testing.assert_allclose(
            learner.probabilities(), expected, rtol=0.0, atol=1e-12 + 10.0 * sensitivity,
            err_msg=f"round {t + 1}",
        )  # fmt: skip
        choice = learner.ask()
        example.tell(learner, choice, row)
        expected = slow[0].send((choice.arm, row))
        others = [
            player.send((choice.arm, row * (1.0 + noise[i, t])))
            for i, player in enumerate(slow[1:])
        ]


def test_ada_ftrl_is_ada_hedge_with_the_right_strength():
    n = 5
    hedge, ftrl = AdaHedge(n, seed=0), AdaFTRL(n, strength=1.0 / np.log(n), seed=0)
    for row in losses_of("of both signs", n):
        for learner in (hedge, ftrl):
            learner.tell(learner.ask(), losses=row)
        np.testing.assert_allclose(ftrl.probabilities(), hedge.probabilities(), atol=1e-9)


def test_a_missing_twin_is_asked_for():
    class Newcomer:
        pass

    Newcomer.__module__ = "unbounded.bandits.newcomer"
    with pytest.raises(LookupError, match=r"write tests/slow/newcomer\.py"):
        twin_of(Newcomer)
