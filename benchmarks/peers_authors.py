"""AHB and UMAB-G beside the experiment code of their authors, on the same losses and arms.

Both are loaded from directories, and nothing of them is kept here:

- AHB: github.com/H2DI/bandits_lab, ``bandits_lab/algorithms/adv_algorithms.py``, at commit 05ef044.
  The newest commit, 401cb64, cannot be run: it calls ``np.softmax``, which NumPy does not have.
- UMAB-G: ``algorithm.py`` and ``probability.py`` of the repository that calls itself "Code for the
  paper 'Improved Algorithms for Adversarial Bandits with Unbounded Losses'". It needs Pandas and
  Matplotlib, for its plots.
"""

from __future__ import annotations

import importlib.util
import math
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np

from unbounded import AHB, UMABG

N, ROUNDS = 4, 1000
_HORIZON = 1200  # written into the authors' UMAB-G


def _load(path: Path, name: str) -> Any:
    if not path.exists():
        raise ModuleNotFoundError(str(path), name=name)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _gains(rounds: int = ROUNDS, n: int = N) -> np.ndarray:
    values = np.random.default_rng(5).uniform(size=(rounds, n))
    values[:, 1] = 0.5 + 0.5 * values[:, 1]
    return values


def _bandits_lab(directory: Path) -> Any:
    """Only the one file; its package imports solvers that AHB does not use."""
    for name in ("authors", "authors.optim_utils"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["authors"].optim_utils = sys.modules["authors.optim_utils"]
    path = directory / "bandits_lab" / "algorithms" / "adv_algorithms.py"
    return _load(path, "authors.adv_algorithms")


def ahb_difference(directory: Path, changes: str) -> float:
    """The largest difference of a probability from ours.

    ``changes``: "none"; "constant", theirs with the paper's sqrt(2.5 n ln n); "all", theirs with
    the paper's t and centre too, and with nothing learnt from the first n rounds.
    """
    theirs = _bandits_lab(directory).AdaHedgeExp3ExtraExp(N)
    ours = AHB(N, seed=3)
    if changes != "none":
        theirs.beta = math.sqrt(2.5 * N * math.log(N))
    largest = 0.0
    with np.errstate(all="ignore"):  # of theirs: the exponential of an infinite rate
        for t, row in enumerate(_gains(), 1):
            p = theirs.choose_p()
            if changes == "all" and t > N:
                gamma = min(0.5, theirs.beta / math.sqrt(t))
                p = (1.0 - gamma) * theirs.last_q + gamma / N
            largest = max(largest, np.abs(ours.probabilities() - p).max())
            choice = ours.ask()
            ours.tell(choice, float(-row[choice]))
            theirs.update(p, choice.arm, row[choice.arm])
            if changes == "all" and t == N:
                theirs.M = np.mean(theirs.individual_rewards)
                theirs.cum_reward_estimates = np.zeros(N)
                theirs.cum_mix_gap, theirs.lr_value, theirs.finite_lr = 0.0, math.inf, False
    return float(largest)


def ahb_negative(directory: Path) -> str:
    """Their probabilities when the gains are all negative."""
    theirs = _bandits_lab(directory).AdaHedgeExp3ExtraExp(N)
    with np.errstate(all="ignore"):
        for t, row in enumerate(_gains() - 2.0, 1):
            p = theirs.choose_p()
            if not np.isfinite(p).all():
                return f"nan from round {t} on"
            arm = min(t - 1, N - 1)
            theirs.update(p, arm, row[arm])
    return "finite"


def _exactly(loss: Any, rate: float) -> np.ndarray:
    """1 / (rate L + x) with sum 1."""
    theta = rate * np.array(loss, dtype=float)
    theta -= theta.min()
    low, high = 1.0, float(theta.size)
    for _ in range(200):
        x = 0.5 * (low + high)
        low, high = (x, high) if (1.0 / (theta + x)).sum() > 1.0 else (low, x)
    p = 1.0 / (theta + x)
    return p / p.sum()


def umab_g_difference(directory: Path, exploration: str, exact: bool) -> tuple[float, float]:
    """The largest difference of a probability from ours, and of the sum of theirs from 1.

    With ``exact``, their normalizer is found by bisection to the last bit, and not to 1e-3.
    """
    probability = _load(directory / "probability.py", "probability")
    algorithm = _load(directory / "algorithm.py", "algorithm")
    name = {"adaptive": "Gbandits_adaptive", "fixed": "Gbandits", "capped": "Gbandits_both"}
    settings = {} if exploration == "adaptive" else {"rounds": _HORIZON}
    ours = UMABG(N, exploration=exploration, seed=3, **settings)
    values = 10.0 * _gains() - 4.0  # of both signs, and larger than the first threshold
    played: list[int] = []

    def distribution(loss: Any, rate: float, rho: float) -> Any:
        p = _exactly(loss, rate)
        q = probability.add_explore(p, rho)
        return q, (np.array(q) - p) * rho

    if exact:
        algorithm.lbdistr = distribution
    algorithm.draw = lambda weights: played[-1]
    theirs = getattr(algorithm, name[exploration])(N, lambda arm, t: values[t, arm])
    largest = off = 0.0
    for row in values:
        p = ours.probabilities()
        choice = ours.ask()
        played.append(choice.arm)
        weights = np.array(next(theirs)[3])
        largest = max(largest, np.abs(p - weights).max())
        off = max(off, abs(weights.sum() - 1.0))
        ours.tell(choice, float(-row[choice]))
    return float(largest), float(off)


def ahb_section(directory: Path) -> list[str]:
    found = {changes: ahb_difference(directory, changes) for changes in ("none", "constant", "all")}
    return [
        "Hadiji & Stoltz's own experiments, `AdaHedgeExp3ExtraExp` in H2DI/bandits_lab at 05ef044;",
        f"{N} arms, {ROUNDS} rounds of gains in [0, 1], and the arms that `AHB` drew.", "",
        "| their code | largest difference of a probability from `AHB` |", "|---|---|",
        f"| as it is | {found['none']:.2g} |",
        f"| with gamma's constant as in the paper | {found['constant']:.2g} |",
        f"| with the paper's t, center and start too | {found['all']:.0e} |", "",
        "So estimates, mixability gap, rate and weights are the same, and what differs is around",
        "them. By the paper (JMLR 24(13), Algorithm 1, (8) and Theorem 7, at alpha = 1/2) ours is",
        "right, and their code does something else, which its theorem covers in part only:", "",
        "- gamma_t = min(1/2, sqrt(10 n ln n / (t - 1))); the paper has sqrt(2.5 n ln n / t), half",
        "  of that. Theorem 7 holds for any non-increasing gamma_t up to 1/2, with a larger bound.",
        "- The center C is the maximum of the first n - 1 payoffs; the paper has the mean of the",
        "  first n. By its Remark 6 any value of the range will do.",
        "- The n-th of the first n pulls is learnt from; in the paper none of them is.",
        "- When every gain is negative, exp(eta y) is 0 at the infinite first rate, and the gap is",
        f"  0 times infinity: {ahb_negative(directory)}.",
        "- At 401cb64, the newest commit, the class cannot be run: it calls `np.softmax`.", "",
    ]  # fmt: skip


def umab_g_section(directory: Path) -> list[str]:
    lines = [
        "Chen & Zhang's own experiments (\"Code for the paper 'Improved Algorithms for Adversarial",
        "Bandits with Unbounded Losses'\"; we know its files `algorithm.py` and `probability.py`,",
        "not the name of the repository). Their functions for UMAB-G as they stand, but for the",
        f"draw; {N} arms, {ROUNDS} rounds of losses in [-6, 4], and the arms that `UMABG` drew.",
        "Their T is fixed at 1200.", "",
        "| their code | `UMABG` | largest difference of a probability | with an exact normalizer |",
        "|---|---|---|---|",
    ]  # fmt: skip
    worst = 0.0
    for exploration, name in (
        ("adaptive", "Gbandits_adaptive"),
        ("fixed", "Gbandits"),
        ("capped", "Gbandits_both"),
    ):
        plain, off = umab_g_difference(directory, exploration, exact=False)
        exact, _ = umab_g_difference(directory, exploration, exact=True)
        worst = max(worst, off)
        lines.append(f'| `{name}` | `"{exploration}"` | {plain:.1g} | {exact:.0e} |')
    return [
        *lines, "",
        "The update is the same. Their normalizer is searched until the weights sum to 1 within",
        f"0.001 (here they were off by up to {worst:.1g}), and they are not divided by their sum",
        "before the loss is divided by one of them; ours is exact.", "",
    ]  # fmt: skip
