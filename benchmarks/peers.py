"""Learners beside those of River, pymab and SMPyBandits, and beside their authors' own code.

    python benchmarks/peers.py --bandits-lab DIRECTORY --umab DIRECTORY   # docs/results/peers.md

SMPyBandits: ``pip install --no-deps SMPyBandits``; its ``Policies`` package does not import with
current SciPy, so that the single files are loaded from its directory. The directories are copies of
the authors' code, see peers_authors.py. What the page says of a peer that is not there is kept.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from peers_authors import ahb_section, umab_g_section

from unbounded import Exp3Auer, TsallisINF

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "peers.md"
N, ROUNDS, GAMMA = 4, 300, 0.1


def gains(rounds: int, n: int = N) -> np.ndarray:
    rng = np.random.default_rng(5)
    values = rng.uniform(size=(rounds, n))
    values[:, 1] = 0.5 + 0.5 * values[:, 1]
    return values


def river() -> Any:
    from river import bandit

    policy = bandit.Exp3(gamma=GAMMA, seed=1)

    def probabilities() -> np.ndarray:
        policy.pull(range(N))  # computes them; the arm that it draws is not played
        return np.array([policy._probabilities[k] for k in range(N)])

    return probabilities, lambda arm, gain: policy.update(arm, gain)


def pymab() -> Any:
    from pymab.policies import EXP3Policy

    policy = EXP3Policy(n_arms=N, gamma=GAMMA)
    rng = np.random.default_rng(0)

    def probabilities() -> np.ndarray:
        policy.select_action(rng=rng)  # notes the probabilities; the arm is not played
        return np.array(policy.action_probabilities())

    return probabilities, lambda arm, gain: policy.update(action=arm, reward=float(gain))


def smpybandits(name: str, **settings: Any) -> Any:
    spec = importlib.util.find_spec("SMPyBandits")
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError("SMPyBandits")
    directory = str(Path(spec.submodule_search_locations[0]) / "Policies")
    if directory not in sys.path:
        sys.path.append(directory)
    policy = getattr(importlib.import_module(name), name)(N, **settings)
    policy.startGame()
    return lambda: np.array(policy.trusts), policy.getReward


def exp3_difference(peer: Callable[[], Any]) -> float:
    """The largest difference of a probability from ours over the rounds, with our arms."""
    probabilities, update = peer()
    ours = Exp3Auer(N, gamma=GAMMA, seed=3)
    largest = 0.0
    for row in gains(ROUNDS):
        largest = max(largest, np.abs(ours.probabilities() - probabilities()).max())
        choice = ours.ask()
        ours.tell(choice, float(1.0 - row[choice]))
        update(choice.arm, row[choice.arm])
    return float(largest)


def tsallis_weights(L: np.ndarray, eta: float) -> np.ndarray:
    """4 / (eta (L - x))^2 with sum 1, by bisection."""
    theta = eta * (L - L.min())
    low, high = -2.0 * math.sqrt(L.size), -2.0
    for _ in range(200):
        x = 0.5 * (low + high)
        low, high = (low, x) if (4.0 / (theta - x) ** 2).sum() > 1.0 else (x, high)
    p = 4.0 / (theta - x) ** 2
    return p / p.sum()


def tsallis_check() -> np.ndarray:
    """SMPyBandits' weights and ours, each beside the exact solution of its own equation.

    Returns two rows (theirs, ours): the share of rounds with a weight wrong by more than 0.1, the
    share with the largest weight on another arm, and the largest error.
    """
    probabilities, update = smpybandits("TsallisInf")
    policy = update.__self__
    ours = TsallisINF(N, seed=3)
    rng, values = np.random.default_rng(7), gains(1000)
    found = np.zeros((2, 3))
    L = np.zeros(N)

    def note(row: int, weights: np.ndarray, exact: np.ndarray) -> None:
        error = np.abs(weights - exact).max()
        found[row, 0] += (error > 0.1) / len(values)
        found[row, 1] += (weights.argmax() != exact.argmax()) / len(values)
        found[row, 2] = max(found[row, 2], error)

    for t, row in enumerate(values, 1):
        arm = int(rng.choice(N, p=probabilities()))
        update(arm, row[arm])
        note(0, policy.weights, tsallis_weights(policy.cumulative_losses, 2.0 * policy.eta))
        p = ours.probabilities()
        note(1, p, tsallis_weights(L, 2.0 / math.sqrt(t)))
        choice = ours.ask()
        ours.tell(choice, float(1.0 - row[choice]))
        L[choice.arm] += (1.0 - row[choice.arm]) / p[choice.arm]
    return found


def river_faults() -> list[str]:
    from river import bandit, preprocessing

    def outcome(play: Callable[[], Any]) -> str:
        try:
            return str(play())
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    def overflow() -> str:
        policy = bandit.Exp3(gamma=0.5, seed=0)
        for t in range(1, 10_001):
            try:
                policy.update(policy.pull(range(2)), 1.0)
            except (ValueError, OverflowError) as error:
                return f"{type(error).__name__} in round {t}: {error}"
        return "no error in 10,000 rounds"

    def burn_in() -> str:
        policy = bandit.Exp3(gamma=0.5, burn_in=1, seed=0)
        policy.update(policy.pull(range(2)), 1.0)
        return "no error"

    def scaler() -> str:
        weights = []
        for reward_scaler in (None, preprocessing.TargetMinMaxScaler(None)):
            policy = bandit.Exp3(gamma=0.5, reward_scaler=reward_scaler, seed=0)
            for t in range(50):
                policy.update(policy.pull(range(2)), 0.2 + 0.1 * (t % 2))
            weights.append(dict(policy._weights))
        return "weights do not change with it" if weights[0] == weights[1] else "used"

    return [
        f"| River | gains of 1 for ever, gamma = 0.5, two arms | {outcome(overflow)} |",
        f"| River | `burn_in=1` | {outcome(burn_in)} |",
        f"| River | `reward_scaler` | {outcome(scaler)} |",
    ]


def version(name: str) -> str:
    return importlib.metadata.version(name)


def exp3_section(old: list[str]) -> list[str]:
    lines = ["| package | largest difference of a probability from `Exp3Auer` |", "|---|---|"]
    for name, label, peer in (
        ("river", "bandit.Exp3", river),
        ("pymab", "EXP3Policy", pymab),
        ("SMPyBandits", "Exp3", lambda: smpybandits("Exp3", gamma=GAMMA)),
    ):
        try:
            lines.append(f"| {name} {version(name)} `{label}` | {exp3_difference(peer):.0e} |")
        except ModuleNotFoundError as missing:
            before = [line for line in old if line.startswith(f"| {name} ")]
            lines += before or [f"| {name} `{label}` | not installed |"]
            print(f"{name}: not installed ({missing}), its row is kept", file=sys.stderr)
    return [
        *lines, "",
        "Losses and arms are the same for all. All three have Auer's update right, and so have we.",
        "What differs is around it:", "",
        "- River and SMPyBandits keep weights, not their logarithms; River's overflow (below).",
        "- SMPyBandits plays the first n rounds as a permutation of the arms, but still divides by",
        "  the probability that it would have drawn with: the first estimates are biased.",
        "- pymab rejects gains outside [0, 1]; River and SMPyBandits take them as they are. With",
        "  `loss_range` we clip, and count what was clipped.", "",
    ]  # fmt: skip


def tsallis_section() -> list[str]:
    theirs, ours = tsallis_check()
    return [
        "Only SMPyBandits has it. In 1,000 rounds of each one's own play (the same losses, but its",
        "own arms), against the exact solution of *its own* equation (its cumulative losses, its",
        "rate), found by bisection:", "",
        "| | SMPyBandits `TsallisInf` | `TsallisINF` |", "|---|---|---|",
        f"| rounds with a weight wrong by more than 0.1 | {theirs[0]:.1%} | {ours[0]:.1%} |",
        f"| rounds with the largest weight on another arm | {theirs[1]:.1%} | {ours[1]:.1%} |",
        f"| largest error of a weight | {theirs[2]:.2g} | {ours[2]:.0e} |", "",
        "It is SMPyBandits that is wrong, for two reasons. It finds the normalizer x by",
        "minimizing (sum - 1)^2 over the whole line; the weights are even in L - x, so that",
        "there are false minima with x above min L. And it calls Exp3's update first, which",
        "changes the weight of the arm before the loss is divided by it. Its rate, 1/sqrt(t)",
        "in (eta (L - x))^-2, is the paper's 2/sqrt(t) in 4 (eta (L - x))^-2, one round late.", "",
    ]  # fmt: skip


def sections(text: str) -> dict[str, list[str]]:
    """The parts of a page, by title."""
    parts: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("## "):
            parts[line] = []
        elif parts:
            parts[[*parts][-1]].append(line)
    return parts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bandits-lab", type=Path, default=Path("bandits_lab"))
    parser.add_argument("--umab", type=Path, default=Path("umab"))
    args = parser.parse_args()
    old = sections(PAGE.read_text(encoding="utf-8") if PAGE.exists() else "")
    exp3 = f"## Exp3 (Auer's form, gamma = {GAMMA}, {N} arms, {ROUNDS} rounds)"
    makers: dict[str, Callable[[], list[str]]] = {
        exp3: lambda: exp3_section(old.get(exp3, [])),
        "## Tsallis-INF": tsallis_section,
        "## AHB, beside its authors' code": lambda: ahb_section(args.bandits_lab),
        "## UMAB-G, beside its authors' code": lambda: umab_g_section(args.umab),
        "## Exp3-IX": lambda: [
            "None of the three has it. `Exp3IX` is compared with a slow implementation written",
            "from the formulas (`tests/bandits/test_slow_twins.py`).", "",
        ],
        "## Bugs met on the way": lambda: [
            "| package | what | outcome |", "|---|---|---|", *river_faults(), "",
        ],
    }  # fmt: skip
    lines = [
        "# Beside other packages", "",
        "Made by `python benchmarks/peers.py`. Where probabilities are compared, both learners are",
        "given the same losses of the same arms, those that ours drew.", "",
    ]  # fmt: skip
    for title, make in makers.items():
        lines += [title, ""]
        try:
            lines += make()
        except ModuleNotFoundError as missing:
            lines += old.get(title, ["", "Not there when this page was made.", ""])[1:]
            print(f"{title[3:]}: {missing}; kept as it was", file=sys.stderr)
    PAGE.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
