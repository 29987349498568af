"""Three models as experts on streams that River bundles, beside River's own bandits.

    python benchmarks/advice.py [--seeds 20]            # docs/guide/advice.md has the table

A decision has a cost: Phishing, to let a phishing site through costs 50 and to block another 5;
TrumpApproval, to publish one of 33 values costs its distance from the true approval, in 0.001
percentage points; Agrawal with a drift in the middle, 20,000 and 1,000. The models learn from every
label, so that all bandits have the same ones; bandits learn from the cost of their own decision.
`CostExp4` follows models' decisions; River's policies without a context choose among the models,
and its LinUCB among the decisions, by the features. Printed is the mean cost of a decision, with
its standard error over the seeds, which seed the bandits only.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from river import (
    bandit,
    datasets,
    linear_model,
    naive_bayes,
    neighbors,
    optim,
    preprocessing,
    tree,
)

from unbounded import CostExp4, CostSCBIX


class Stream(NamedTuple):
    """What the models recommended, and what every decision would have cost."""

    features: list[dict[str, float]]
    advice: np.ndarray  # (rounds, models): their decisions
    costs: np.ndarray  # (rounds, decisions)


def classified(rows: Any, missed: float, false_alarm: float) -> Stream:
    """Let three classifiers recommend whatever costs less by their probabilities."""
    models: list[Any] = [
        preprocessing.StandardScaler() | linear_model.LogisticRegression(optim.SGD(0.1)),
        naive_bayes.GaussianNB(),
        tree.HoeffdingAdaptiveTreeClassifier(seed=0),
    ]
    features, advice, costs = [], [], []
    for x, y in rows:
        chances = [model.predict_proba_one(x).get(True, 0.5) for model in models]
        advice.append([int(p * missed > (1.0 - p) * false_alarm) for p in chances])
        costs.append([missed * bool(y), false_alarm * (not y)])
        features.append(x)
        for model in models:
            model.learn_one(x, bool(y))
    return Stream(features, np.array(advice), np.array(costs))


def predicted(rows: Any, grid: np.ndarray, unit: float) -> Stream:
    """Let three regressions recommend the value of the grid that is nearest to theirs."""
    models: list[Any] = [
        preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1),
        preprocessing.StandardScaler() | neighbors.KNNRegressor(),
        tree.HoeffdingAdaptiveTreeRegressor(seed=0),
    ]
    features, advice, costs = [], [], []
    for x, y in rows:
        x = {name: value for name, value in x.items() if isinstance(value, (int, float))}
        advice.append([int(np.abs(grid - model.predict_one(x)).argmin()) for model in models])
        costs.append(unit * np.abs(grid - y))
        features.append(x)
        for model in models:
            model.learn_one(x, y)
    return Stream(features, np.array(advice), np.array(costs))


def agrawal() -> Iterator[Any]:
    """Return loans, the rule of which changes in the middle."""
    first, second = (datasets.synth.Agrawal(rule, seed=rule) for rule in (0, 3))
    for x, y in [*islice(first, 3000), *islice(second, 3000)]:
        yield {name: float(value) for name, value in x.items()}, bool(y)


STREAMS: dict[str, Callable[[], Stream]] = {
    "Phishing": lambda: classified(datasets.Phishing(), 50.0, 5.0),
    "TrumpApproval": lambda: predicted(datasets.TrumpApproval(), np.linspace(36, 44, 33), 1000.0),
    "Agrawal": lambda: classified(agrawal(), 20_000.0, 1_000.0),
}


def follow(learner: Any, stream: Stream) -> float:
    """Return the mean cost of a learner that follows the models' decisions."""
    paid = 0.0
    for advice, costs in zip(stream.advice, stream.costs, strict=True):
        choice = learner.ask(advice)
        cost = float(costs[choice.arm])
        learner.tell(choice, cost)
        paid += cost
    return paid / len(stream.costs)


def choose_a_model(learner: Any, stream: Stream) -> float:
    """Return the mean cost of a bandit whose arms are the models."""
    paid = 0.0
    for advice, costs in zip(stream.advice, stream.costs, strict=True):
        choice = learner.ask()
        cost = float(costs[advice[choice.arm]])
        learner.tell(choice, cost)
        paid += cost
    return paid / len(stream.costs)


def river_model(policy: Any, stream: Stream) -> float:
    """Return the mean cost of a policy of River whose arms are the models."""
    paid = 0.0
    for advice, costs in zip(stream.advice, stream.costs, strict=True):
        arm = policy.pull(range(stream.advice.shape[1]))
        cost = float(costs[advice[arm]])
        policy.update(arm, -cost)
        paid += cost
    return paid / len(stream.costs)


def river_linear(policy: Any, stream: Stream) -> float:
    """Return the mean cost of a contextual policy of River whose arms are the decisions."""
    paid = 0.0
    for x, costs in zip(stream.features, stream.costs, strict=True):
        arm = policy.pull(range(len(costs)), context=x)
        policy.update(arm, x, -float(costs[arm]))
        paid += float(costs[arm])
    return paid / len(stream.costs)


def rows_of(stream: Stream, seeds: int) -> Iterator[tuple[str, list[float]]]:
    """Yield what each way to decide cost."""
    n, N = stream.costs.shape[1], stream.advice.shape[1]
    rounds = np.arange(len(stream.costs))
    for j in range(N):
        yield f"model {j + 1} alone", [float(stream.costs[rounds, stream.advice[:, j]].mean())]
    yield "the best decision, always the same", [float(stream.costs.mean(axis=0).min())]
    made: dict[str, Callable[[int], float]] = {
        "CostExp4": lambda s: follow(CostExp4(n, N, seed=s), stream),
        "CostExp4(half_life=500)": lambda s: follow(CostExp4(n, N, half_life=500, seed=s), stream),
        "CostSCBIX, arms are models": lambda s: choose_a_model(CostSCBIX(N, seed=s), stream),
        "River EpsilonGreedy(0.1), models": lambda s: river_model(
            bandit.EpsilonGreedy(0.1, seed=s), stream
        ),
        "River UCB(1), models": lambda s: river_model(bandit.UCB(1.0, seed=s), stream),
        "River Exp3(0.1), models": lambda s: river_model(bandit.Exp3(0.1, seed=s), stream),
    }
    for name, play in made.items():
        try:
            yield name, [play(seed) for seed in range(seeds)]
        except (ArithmeticError, IndexError, ValueError) as error:
            yield f"{name}: {type(error).__name__}", [float("nan")]
    few = min(seeds, 3)  # it is slow, and draws only at the beginning
    yield (
        "River LinUCBDisjoint(1), features",
        [river_linear(bandit.LinUCBDisjoint(alpha=1.0, seed=seed), stream) for seed in range(few)],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    for name, make in STREAMS.items():
        stream = make()
        print(f"\n{name}: {len(stream.costs):,} decisions among {stream.costs.shape[1]}")
        for row, costs in rows_of(stream, given.seeds):
            error = np.std(costs) / len(costs) ** 0.5
            print(f"  {row:<36}{np.mean(costs):>10.2f} ± {error:.2f}", flush=True)


if __name__ == "__main__":
    main()
