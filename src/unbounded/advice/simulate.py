"""A driver for learners with advice: an adversary chooses what experts say, and all losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray

from unbounded.advice.learner import AdvisedLearner, checked_advice
from unbounded.learners.seeds import root_of
from unbounded.validation import checked_count, checked_function, checked_losses


class AdviceSimulation(NamedTuple):
    """What happened in each replicate.

    Attributes
    ----------
    regret : array, shape (replicates, n_experts)
        How much more was paid than what each expert recommended, in the mean of its distribution,
        over the rounds in which it had advice.
    paid : array, shape (replicates,)
        The sum of the losses.
    weights : array, shape (replicates, n_experts)
        The weights of the experts after the last round.

    Examples
    --------
    >>> from unbounded import SCBExp4, simulate_advice
    >>> result = simulate_advice(
    ...     SCBExp4(2, 3), lambda t, weights, rng: ([0, 1, t % 2], [-1.0, 1.0]), rounds=10, seed=0
    ... )
    >>> result.regret.shape, result.paid.shape
    ((1, 3), (1,))
    """

    regret: NDArray[np.float64]
    paid: NDArray[np.float64]
    weights: NDArray[np.float64]


def simulate_advice(
    learner: AdvisedLearner,
    adversary: Callable[[int, NDArray[np.float64], Generator], tuple[Any, Any]],
    rounds: int,
    replicates: int = 1,
    seed: int | SeedSequence | None = None,
) -> AdviceSimulation:
    """Play a learner with advice against an adversary.

    Parameters
    ----------
    learner : AdvisedLearner
        Only its settings are used: every replicate starts afresh.
    adversary : callable
        ``advice, losses = adversary(t, weights, rng)``: what the experts recommend in round t, as
        for `ask`, and the losses of all arms. It sees the weights of the experts.
    rounds, replicates : int
        Rounds per replicate; number of independent replicates.
    seed : int or SeedSequence, optional
        Seeds ``rng`` and choices.

    Returns
    -------
    AdviceSimulation

    Examples
    --------
    >>> from unbounded import CostExp4, simulate_advice
    >>> def adversary(t, weights, rng):
    ...     right = rng.integers(3)
    ...     return [right, 0, rng.integers(3)], (np.arange(3) != right) * 50.0
    >>> result = simulate_advice(CostExp4(3, 3), adversary, rounds=1000, seed=0)
    >>> int(result.weights.argmax()), bool(result.regret.max() < 50.0 * 200)
    (0, True)
    """
    rounds, replicates = checked_count("rounds", rounds), checked_count("replicates", replicates)
    checked_function("adversary", adversary, "t", "weights", "rng")
    n, N = learner.n_arms, learner.n_experts
    regret, weights = np.zeros((2, replicates, N))
    paid = np.zeros(replicates)
    for r, root in enumerate(root_of(seed).spawn(replicates)):
        of_choices, of_losses = root.spawn(2)
        rng = np.random.default_rng(of_losses)
        player = type(learner)(**learner.settings, seed=of_choices)
        for t in range(1, rounds + 1):
            given, values = adversary(t, player.weights(), rng)
            losses = checked_losses("losses", values, n, "arm")
            choice = player.ask(given)
            loss = float(losses[choice.arm])
            advice = checked_advice(given, None, N, n, None)
            regret[r] += np.where(advice.silent, 0.0, loss - advice.expected(losses))
            paid[r] += loss
            player.tell(choice, loss)
        weights[r] = player.weights()
    return AdviceSimulation(regret, paid, weights)
