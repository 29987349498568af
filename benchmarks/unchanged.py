"""Whether everything still plays as it did: fingerprints of fixed plays, bit for bit.

`record` plays every learner, adversary, world and solver of the `unbounded` that is importable from
fixed seeds and writes a hash of every array to a file; `compare` says where two such files differ.
Record before and after a change that must not change the play:

    PYTHONPATH=OLD/src python benchmarks/unchanged.py record old.json
    PYTHONPATH=NEW/src python benchmarks/unchanged.py record new.json
    python benchmarks/unchanged.py compare old.json new.json

Names that differ between checkouts are dealt with in one section below; the keys of the records are
the older names. Hashes are of exact bytes: record both files on one machine, with equal versions of
Python, NumPy and Numba (they are written down, and `compare` says so if they differ). With compiled
kernels in the cache a recording takes a few minutes of one core.

The keys that begin with "short/" are plays of a few rounds, in `unchanged_cases.py`, which reach
every line of every kernel. ``record --interpreted`` plays these, without compiling anything; they
are the same bits as compiled. ``coverage`` plays them, too, and fails if a line of a kernel is not
reached and not listed there with a reason. ``--only`` plays a part.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import os
import platform
import sys
import time
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

if {"--interpreted", "coverage"} & {*sys.argv[1:]} and __name__ == "__main__":
    os.environ |= {"NUMBA_DISABLE_JIT": "1", "UNBOUNDED_JIT": "never"}  # before the package is read

import llvmlite.binding as llvm
import numba
import numpy as np
import unchanged_cases as short
import unchanged_coverage as lines
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

# ---------------------------------------------------------------------- names: before and after


def _module(*names: str) -> Any:
    """The first of these modules that exists."""
    for name in names:
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if not f"{name}.".startswith(f"{error.name}."):
                raise  # the module is there, but imports another one that is not
    raise ModuleNotFoundError(f"none of {', '.join(names)} exists")


unbounded = _module("unbounded")
bandits = _module("unbounded.bandits")
mdps = _module("unbounded.mdps")
worlds = _module("unbounded.worlds")
adversaries = _module("unbounded.adversaries")
_policies = _module(
    "unbounded.core.occupancy.policies", "unbounded.core.policies", "unbounded.core.occupancy.mdp"
)
_confidence = _module("unbounded.core.occupancy.confidence", "unbounded.core.confidence")

FOLDERS = ("core", "bandits", "mdps", "adversaries", "learners", "simulation", "play")  # of kernels

Markov, Mixture = _policies.Markov, _policies.Mixture
occupancy, best_policy = _policies.occupancy, _policies.best_policy
PAPER, JIN = _confidence.PAPER, _confidence.JIN


def _facades() -> dict[str, Any]:
    """Classes around the solvers: among the tests, formerly beside the kernels."""
    tests = Path(unbounded.__file__).resolve().parents[2] / "tests"
    if (tests / "occupancy_facades.py").exists():
        sys.path.insert(0, str(tests))
        return vars(_module("occupancy_facades"))
    upper = _module("unbounded.core.occupancy.upper", "unbounded.core.upper_occupancy")
    ftrl = _module(
        "unbounded.core.occupancy.solver.ftrl",
        "unbounded.core.occupancy.ftrl",
        "unbounded.core.occupancy_ftrl",
    )
    kl = _module(
        "unbounded.core.occupancy.solver.kl",
        "unbounded.core.occupancy.kl",
        "unbounded.core.occupancy_kl",
    )
    mdp = _module("unbounded.core.occupancy.mdp")
    return vars(_confidence) | vars(upper) | vars(ftrl) | vars(kl) | vars(mdp)


ConfidenceSet, upper_occupancy, greedy_transitions, OccupancyFTRL, OccupancyKL, simulate_episode = (
    _facades()[name]
    for name in (
        "ConfidenceSet", "upper_occupancy", "greedy_transitions", "OccupancyFTRL", "OccupancyKL",
        "simulate_episode",
    )
)  # fmt: skip

# What no play brings about is reached by calls of these, with arguments that no play has: where it
# is today, and after a move where it is then.
INTERNAL: dict[str, tuple[str, ...]] = {
    "Library": ("mdps.steps.explorers", "mdps.explorers"),
    "draw_policy": ("mdps.steps.explorers:draw", "mdps.explorers:draw"),
    "Law": ("core.simplex.sampling",),
    "draw_arm": ("core.simplex.sampling:draw",),
    "signed_arms": ("core.simplex.signed_arms:",),
    "shannon_arms": ("core.simplex.shannon_arms:",),
    "mixability_gap": (
        "bandits.baselines.ahb:_mixability_gap", "bandits.ahb:_mixability_gap",
    ),
    "solve": ("core.occupancy.solver.ftrl", "core.occupancy.ftrl"),
    "new_memory": ("core.occupancy.solver.ftrl", "core.occupancy.ftrl"),
    "kl_step": ("core.occupancy.solver.kl", "core.occupancy.kl"),
    "uniform_base": ("core.occupancy.solver.kl", "core.occupancy.kl"),
    "ascend": ("core.occupancy.solver.kl:_ascend", "core.occupancy.kl:_ascend"),
    "signed_picture": ("core.simplex.signed_picture:",),
    "ftrl": ("core.occupancy.solver.ftrl:", "core.occupancy.ftrl:"),
    "sparse": ("core.occupancy.solver.sparse:", "core.occupancy.successors:"),
    "conjugate_direction": (
        "core.occupancy.solver.linear_algebra", "core.occupancy.conjugate:direction",
    ),
    "work": ("core.occupancy.solver.work:", "core.occupancy.work:"),
}  # fmt: skip


def internal(name: str) -> Any:
    """One of these; after a colon is its name there, if that is another one, or nothing for all."""
    places = {f"unbounded.{place.partition(':')[0]}": place for place in INTERNAL[name]}
    module = _module(*places)
    place = places[module.__name__]
    return module if place.endswith(":") else getattr(module, place.partition(":")[2] or name)


_FACTORS = {
    "eta_factor": "rate",
    "gamma_factor": "implicit",
    "beta_factor": "mixing",
    "xi_factor": "exploration",
    "width_factor": "width",
    "allow_no_exploration": "ablation",
}
_RENAMED: dict[str, dict[str, str]] = {  # settings of a class: the older name, the newer name
    "AHB": {"gamma_const": "exploration"},
    "CostSCB": {"late": "delayed"},
    "CostSCBRL": {"centre": "center"},
    "OREPS": _FACTORS,
    "SCBRL": _FACTORS | {"centre": "center"},
    "UOBREPS": _FACTORS,
}


_GROUPS = {  # of SCBRL's settings, formerly arguments of their own
    "constants": (
        "rate", "mixing", "implicit", "exploration", "width", "bonus", "early_stop", "share_counts",
        "skip", "exploration_cap", "few", "center", "renewal", "kappa",
    ),
    "reading": ("literal", "clip", "threshold", "estimator", "tight", "ablation"),
    "known": ("transitions", "support", "allowed", "ends"),
}  # fmt: skip


def _newer(cls: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as the class takes them, which may be given by their older names."""
    taken, newer = inspect.signature(cls).parameters, _RENAMED.get(cls.__name__, {})
    out = {k if k in taken else newer.get(k, k): value for k, value in settings.items()}
    if out.get("profile") == "theory" and "'theory'" not in str(inspect.signature(cls)):
        out["profile"] = "paper"  # the word for what is published
    if out.get("delayed") == "proved":  # formerly late="proved"
        out["delayed"] = "adaptive"
    for group, names in _GROUPS.items() if "constants" in taken and "reading" in taken else ():
        found = {name: out.pop(name) for name in names if name in out}
        if found:
            out[group] = found
    return out


def make(cls: Any, *arguments: Any, **settings: Any) -> Any:
    """An instance; settings may be given by their older names."""
    ucbvi = cls.__name__ == "MVP" and settings.get("explorer") == "ucbvi"
    if ucbvi and hasattr(unbounded, "UCBVI"):  # formerly a setting of MVP
        cls = unbounded.UCBVI
        settings = {name: value for name, value in settings.items() if name != "explorer"}
    return cls(*arguments, **_newer(cls, settings))


def older_names(cls: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by their older names."""
    older = {new: old for old, new in _RENAMED.get(cls.__name__, {}).items()}
    return {older.get(name, name): value for name, value in settings.items()}


def all_mdp_learners() -> dict[str, Any]:
    """Every learner for MDPs by its older name."""
    older = {"PolicyOptimization": "PolicyOptimisation"}
    return {older.get(name, name): cls for name, cls in mdps.algorithms().items()}


def mdp_learners() -> dict[str, Any]:
    """The same without UCBVI, which is played as MVP's explorer."""
    return {name: cls for name, cls in all_mdp_learners().items() if name != "UCBVI"}


def mdp_adversary(kind: str, scale: float = 1.0) -> Any:
    """A compiled adversary for MDPs: of a class of its own, formerly of one class for all kinds."""
    try:
        classes = _module("unbounded.adversaries.mdps").adversaries()
    except (ModuleNotFoundError, AttributeError):
        return unbounded.MDPAdversary(kind, scale=scale)
    return classes["".join(word.capitalize() for word in kind.split())](scale=scale)


def expected_and_realised(result: Any) -> tuple[Any, Any]:
    """The two regrets of a simulated MDP, formerly ``regret`` and ``realised``."""
    if hasattr(result, "realised"):
        return result.regret, result.realised
    return result.pseudo_regret, result.regret


def outstanding_plan(learner: Any) -> Any:
    """The plan that is outstanding: the only one of a mapping, formerly the plan itself."""
    plans = learner.outstanding
    if isinstance(plans, Mapping):
        (plan,) = plans.values()
        return plan
    return plans


# ---------------------------------------------------------------------- what is played

SEED = 7
EVERY = 20  # rounds, or episodes, between two looks at what takes long to look at
ROUNDS, MIDDLE, LATE = 400, 200, 3
ARMS = (1, 2, 5, 20, 70)  # 20 fill whole vectors; with 70, many learners are lazy
EPISODES, SAVES, FORGET = 300, (40, 180), 150
SIMULATED = 400  # episodes
SOLVES = 20

KINDS = (
    "stochastic", "small gap", "switch", "growth", "growth switch", "negative", "alternating",
    "good spike", "bad spike", "lure", "quiet lure", "punish", "hide",
)  # fmt: skip

TRUE = "true"  # in settings: the world's own transitions
LEARNERS: dict[str, list[dict[str, Any]]] = {  # for MDPs; a class that is not here plays by default
    "SCBRL": [
        {},
        {"profile": "theory"},
        {"clip": "scale"},
        {"clip": "scale", "threshold": "largest"},
        {"estimator": "ftrl_only"},
        {"explorer": "ucbvi"},
        {"explorer": "ucbvi", "bonus": "paper"},
        {"explorer": "oracle", "transitions": TRUE},
        {"profile": "theory", "explorer": "oracle", "transitions": TRUE},
        {"literal": True},
        {"tight": True},
        {"skip": 0.0},
        {"early_stop": 0},
        {"early_stop": 3, "exploration_cap": 0.2},
        {"share_counts": False},
        {"beta_factor": 0.0, "allow_no_exploration": True},
        {"beta_factor": 0.0, "clip": "scale"},
        {"eta_factor": 2.0, "gamma_factor": 0.5, "beta_factor": 0.3, "xi_factor": 0.05},
        {"width_factor": 0.01, "kappa": 0.1, "tolerance": 1e-5, "delta": 0.2},
    ],
    "UOBREPS": [
        {},
        {"loss_range": (-2.0, 3.0)},
        {"eta_factor": 3.0, "gamma_factor": 0.3, "width_factor": 0.02, "tolerance": 1e-6},
    ],
    "OREPS": [
        {"transitions": TRUE},
        {"transitions": TRUE, "loss_range": (-2.0, 3.0), "eta_factor": 2.0, "tolerance": 1e-6},
    ],
    "RFELP": [
        {},
        {"early_stop": 5},
        {"share_counts": False},
        {"constants": "paper"},
        {"explorer": "ucbvi"},
        {"explorer": "ucbvi", "constants": "paper"},
        {"bonus": 0.05, "delta": 0.3},
    ],
    "MVP": [
        {},
        {"constants": "paper"},
        {"explorer": "ucbvi"},
        {"explorer": "ucbvi", "constants": "paper"},
        {"bonus": 0.05, "total": 2.0},
    ],
    "ExploreThenCommit": [{}, {"explore": 50}],
    "IndependentSCB": [{}, {"clip": "range"}],
}  # fmt: skip
PER_STATE = 15  # episodes for each state, of a learner that is told that number

Fields = dict[str, Any]
Case = tuple[str, Callable[[], Fields]]  # its key, and how to play it
Maker = Callable[[], Any]  # of a learner or an adversary, which is made when it is played
Vector = NDArray[np.float64]


def written(name: str, settings: Mapping[str, Any]) -> str:
    """A learner and its settings, as in a key."""
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in settings.items())})"


def mixed_losses(shape: Sequence[int], rng: Generator, most: float = np.inf) -> Vector:
    """Losses, shape (time, ...): zeros, ties, small ones, signs, heavy tails, at last huge ones."""
    means = rng.random(shape[1:])
    plain = 0.5 * means + 0.5 * rng.random(shape)
    normal = means + rng.normal(size=shape)
    heavy = np.sign(normal) * 10.0 ** rng.uniform(-3, 4, size=shape)
    huge = normal * 10.0 ** rng.uniform(0, 100, size=shape)
    some = rng.random(shape) < 0.1
    share = (np.arange(shape[0]) / shape[0]).reshape(-1, *(1 for _ in means.shape))
    losses = np.select(
        [share < 0.03, share < 0.1, share < 0.5, share < 0.65, share < 0.8, share < 0.9],
        [0.0 * plain, 1e-3 * np.round(4.0 * plain), plain, np.where(some, 0.0, 3.0 * normal),
         np.where(some, 0.0, heavy), np.round(2.0 * plain)],
        huge,
    )  # fmt: skip
    return np.asarray(np.clip(losses, -most, most))


# ---------------------------------------------------------------------- bandits


def bandit_cases() -> Iterator[Case]:
    """Every bandit learner by ask and tell, and in simulations."""
    for name, cls in bandits.algorithms().items():
        examples = [*cls.spec.examples, *([{"gamma_const": 0.5}] if name == "AHB" else [])]
        for settings in examples:
            learner = written(name, older_names(cls, settings))
            for n in ARMS:
                player = partial(make, cls, n, seed=SEED, **settings)
                yield f"bandit/{learner}/{n} arms", partial(play_bandit, player)
            for n in (5, 70):
                yield (
                    f"simulate/{learner} Switch()/{n} arms",
                    partial(play_simulation, partial(make, cls, n, **settings), adversaries.Switch),
                )


def play_bandit(maker: Maker) -> Fields:
    """Ask and tell; from the middle on also with a copy that was saved and loaded."""
    learner = maker()
    spec, n = learner.spec, learner.n_arms
    losses = mixed_losses((ROUNDS, n), default_rng([SEED, n]), spec.largest_loss)
    players = {"played": learner}
    late: dict[str, list[Any]] = {}
    seen: Fields = defaultdict(list)
    for t, row in enumerate(losses):
        if t == MIDDLE and spec.delayed:
            late["played"] = [learner.ask() for _ in range(LATE)]
        choices = {name: player.ask() for name, player in players.items()}
        if t == MIDDLE:
            twin = players["loaded"] = type(learner).load(learner.save())
            choices["loaded"] = twin.outstanding[choices["played"].id]
            late["loaded"] = [twin.outstanding[choice.id] for choice in late.get("played", [])]
        for name, player in players.items():
            choice = choices[name]
            seen[f"{name}: arms"].append(choice.arm)
            seen[f"{name}: chances"].append(choice.probability)
            _tell(player, choice, row, as_reward=t % 7 == 3)
            if t == MIDDLE + 10 and late.get(name):
                player.forget(late[name][0])
                for choice in reversed(late[name][1:]):
                    _tell(player, choice, row)
            if (t + 1) % EVERY == 0:
                seen[f"{name}: probabilities"].append(player.probabilities())
                seen[f"{name}: scale"].append(player.scale)
                seen[f"{name}: clipped"].append(player.clipped)
                seen[f"{name}: rounds"].append(player.rounds)
    return seen


def _tell(learner: Any, choice: Any, row: Vector, as_reward: bool = False) -> None:
    if learner.spec.feedback == "full":
        learner.tell(choice, losses=row)
    elif as_reward:
        learner.tell(choice, reward=-float(row[choice.arm]))
    else:
        learner.tell(choice, float(row[choice.arm]))


def adversary_cases() -> Iterator[Case]:
    """Every adversary for bandits against three learners."""
    n = 6
    scb = partial(unbounded.SCB, n)
    learners = {
        "SCB()": scb,
        "Uniform()": partial(unbounded.Uniform, n),
        "EpsilonGreedy()": partial(unbounded.EpsilonGreedy, n),
    }
    opponents: dict[str, Maker] = {"a function in Python": lambda: _python_adversary}
    moved = {"scale": 3.0, "shift": -2.0}
    for name in adversaries.__all__:
        cls = getattr(adversaries, name)
        if not isinstance(cls, type) or not issubclass(cls, adversaries.Adversary):
            continue
        if name in ("Adversary", "Program"):  # programs follow below
            continue
        given = [mixed_losses((100, n), default_rng([SEED, 100, n]))] if name == "Replay" else []
        opponents[name] = partial(cls, *given)
        opponents[f"{name} scale=3 shift=-2"] = partial(cls, *given, **moved)
    opponents["StochasticGap scale=1e305"] = partial(adversaries.StochasticGap, scale=1e305)
    for name, (program, _) in adversaries.worst_cases().items():
        again = partial(adversaries.Program, program.phases)
        opponents[f"Program {name}"] = again
        opponents[f"Program {name} scale=3 shift=-2"] = partial(again, **moved)
    for opponent, against in opponents.items():
        for learner, player in learners.items():
            yield (
                f"adversary/{opponent}/{learner}",
                partial(play_simulation, player, against, rounds=600),
            )
        yield (
            f"adversary/{opponent}/SCB() comparators=[0, 1]",
            partial(play_comparators, scb, against),
        )


def _python_adversary(t: int, last_arm: int, q: Vector, rng: Generator) -> Vector:
    losses = rng.normal(size=q.size) * (1.0 + t % 10) + q
    losses[last_arm] += 0.5
    return losses


def play_simulation(
    player: Maker, against: Maker, rounds: int = 300, comparators: list[int] | None = None
) -> Fields:
    """A simulation, and all that it says."""
    result = unbounded.simulate(
        player(), against(), rounds, replicates=2, seed=SEED, checkpoints=5, workers=1,
        comparators=comparators,
    )  # fmt: skip
    names = ("checkpoints", "regret", "pseudo_regret", "low", "high", "clipped", "threshold")
    return {name: getattr(result, name) for name in names}


def play_comparators(player: Maker, against: Maker, rounds: int = 600) -> Fields:
    """A simulation that follows two arms; not every adversary can be asked for the loss of one."""
    try:
        fields = play_simulation(player, against, rounds, comparators=[0, 1])
    except TypeError:
        return {"possible": False}
    return {"possible": True, **fields}


# ---------------------------------------------------------------------- MDPs


def small_worlds() -> dict[str, Any]:
    """Worlds of all builders, made anew from fixed generators."""
    rng = default_rng([SEED, 3])
    chain = rng.dirichlet(np.ones(3), size=(3, 2))
    return {
        "dirichlet": worlds.dirichlet([2, 3, 2], 2, default_rng([SEED, 0])),
        "dirichlet, larger": worlds.dirichlet([3, 7, 4], 3, default_rng([SEED, 1]), 0.3),
        "dirichlet, one layer": worlds.dirichlet([3], 3, default_rng([SEED, 2])),
        "lock": worlds.combination_lock(4, 2, default_rng([SEED, 4])),
        "lock that slips": worlds.combination_lock(5, 3, default_rng([SEED, 5]), slip=0.1),
        "hard to reach": worlds.hard_to_reach([2, 2, 3], 2, default_rng([SEED, 6]), reach=0.01),
        "time expansion": worlds.time_expansion(chain, [0.5, 0.3, 0.2], horizon=3),
    }


def world_cases() -> Iterator[Case]:
    """Transitions of every world, and what follows from them."""
    for name, mdp in small_worlds().items():
        yield f"world/{name}", partial(look_at_world, mdp)


def look_at_world(mdp: Any) -> Fields:
    """Transitions, the occupancy measure of uniform play, a best policy."""
    losses = default_rng([SEED, 8]).normal(size=mdp.layers.n_pairs)
    value, policy = best_policy(mdp, losses)
    return {
        "P": mdp.P,
        "initial": mdp.initial,
        "transitions": flat(mdp.transitions),
        "occupancy": occupancy(mdp, Markov.uniform(mdp.layers)),
        "best value": value,
        "best policy": flat(policy.tables),
    }


def make_mdp_learner(cls: Any, mdp: Any, episodes: int, settings: Mapping[str, Any]) -> Any:
    """A learner for a world."""
    given = {name: mdp.P if value is TRUE else value for name, value in settings.items()}
    if "episodes" in inspect.signature(cls).parameters:
        given["episodes"] = PER_STATE if cls.spec.per_state else episodes
    return make(cls, mdp.layers.sizes, mdp.layers.n_actions, **given, seed=SEED)


def mdp_cases() -> Iterator[Case]:
    """Every learner for MDPs in every world by ask and tell."""
    everything = small_worlds()
    for name, cls in mdp_learners().items():
        for settings in LEARNERS.get(name, [{}]):
            for world, mdp in everything.items():
                player = partial(make_mdp_learner, cls, mdp, EPISODES, settings)
                yield f"mdp/{written(name, settings)}/{world}", partial(play_mdp, player, mdp)


def play_mdp(maker: Maker, mdp: Any) -> Fields:
    """Ask, act and tell; also with copies that were saved, a plan outstanding, and loaded."""
    learner = maker()
    layers, rewarded = mdp.layers, type(learner).__name__ in ("MVP", "UCBVI")
    rng = default_rng([SEED, 9])
    feedback = []
    for h, size in enumerate(layers.sizes):
        shape = (EPISODES, size, layers.n_actions)
        if rewarded:  # at least 0, and in an episode at most 1
            feedback.append(rng.random(shape) * rng.random(shape[1:]) / layers.horizon)
        else:
            feedback.append(4.0**h * mixed_losses(shape, rng))
    draws = rng.random((EPISODES, layers.horizon))
    tables = mdp.initial, mdp.transitions
    players = {"played": learner}
    seen: Fields = defaultdict(list)
    for t in range(EPISODES):
        if t == FORGET:
            for player in players.values():
                player.forget(player.ask())
        plans = {name: player.ask() for name, player in players.items()}
        if t in SAVES:
            twin = players[f"loaded at {t}"] = type(learner).load(learner.save())
            plans[f"loaded at {t}"] = outstanding_plan(twin)
        for name, player in players.items():
            plan = plans[name]
            states, actions = walk(*tables, draws[t], plan.act)
            steps = zip(states, actions, strict=True)
            values: Any = [feedback[h][t, s, a] for h, (s, a) in enumerate(steps)]
            if getattr(player.spec, "feedback", "bandit") == "full":
                values = [table[t] for table in feedback]
            player.tell(plan, states, actions, **{"rewards" if rewarded else "losses": values})
            seen[f"{name}: plans"].append(flat(plan.policy))
            seen[f"{name}: actions"].append(actions)
            if (t + 1) % EVERY == 0:
                for what, value in look_at_mdp_learner(player).items():
                    seen[f"{name}: {what}"].append(value)
    seen["made for"] = -1 if learner.made_for is None else learner.made_for
    if type(learner).__name__ in ("RFELP", "SCBRL"):
        mixtures = (getattr(learner, "explorers", None) or learner.policies)()
        seen["found: states"] = np.array(sorted(mixtures), dtype=np.int64)
        parts = [mixtures[state] for state in sorted(mixtures)]
        seen["found: weights"] = flat([mixture.weights for mixture in parts])
        seen["found: policies"] = flat(
            [table for mixture in parts for policy in mixture.policies for table in policy.tables]
        )
    return seen


def walk(
    initial: Vector, transitions: Sequence[Vector], draws: Vector, act: Callable[[int, int], int]
) -> tuple[list[int], list[int]]:
    """States by uniform numbers, actions as the plan says."""
    states: list[int] = []
    actions: list[int] = []
    P = initial
    for h, draw in enumerate(draws):
        if h > 0:
            P = transitions[h - 1][states[-1], actions[-1]]
        states.append(min(int(np.searchsorted(np.cumsum(P), draw, side="right")), P.size - 1))
        actions.append(act(h, states[-1]))
    return states, actions


def look_at_mdp_learner(learner: Any) -> Fields:
    """What a learner says of itself; not all say the same."""
    fields = {
        "policy": flat(learner.policy().tables),
        "certificate": [float(x) for x in learner.certificate],
        "clipped": learner.clipped,
        "told": learner.episodes_told,
    }
    if hasattr(learner, "thresholds"):
        fields["thresholds"] = learner.thresholds
    if hasattr(learner, "occupancy"):
        fields["occupancy"] = learner.occupancy()
    if hasattr(learner, "phase"):
        fields["exploring"] = learner.phase == "exploring"
    if hasattr(learner, "done"):
        fields["done"] = learner.done
    return fields


def flat(tables: Sequence[Any]) -> Vector:
    """Tables one after another."""
    return np.concatenate([np.empty(0), *(np.ravel(table) for table in tables)])


def mdp_simulation_cases() -> Iterator[Case]:
    """Every adversary for MDPs against some learners, some adversaries against every learner."""
    classes, everything = mdp_learners(), small_worlds()

    def player(world: str, name: str, settings: Mapping[str, Any]) -> Maker:
        cls, mdp = classes[name], everything[world]
        return partial(make_mdp_learner, cls, mdp, SIMULATED, settings)

    def case(
        world: str, name: str, settings: Mapping[str, Any], kind: str, scale: float = 1.0
    ) -> Case:
        opponent = kind if scale == 1.0 else f"{kind} scale={scale:g}"
        return (
            f"simulate_mdp/{opponent}/{written(name, settings)}/{world}",
            partial(
                play_mdp_simulation,
                player(world, name, settings),
                everything[world],
                partial(mdp_adversary, kind, scale),
            ),
        )

    some: dict[str, dict[str, Any]] = {
        "UniformPolicy": {}, "SCBRL": {}, "UOBREPS": {}, "OREPS": {"transitions": TRUE},
    }  # fmt: skip
    for kind in KINDS:
        for name, settings in some.items():
            yield case("dirichlet", name, settings, kind)
        yield case("dirichlet", "SCBRL", {}, kind, scale=1e300)
        yield case("lock", "SCBRL", {}, kind)
        yield case("lock that slips", "UniformPolicy", {}, kind)
    for name in classes:
        for settings in LEARNERS.get(name, [{}]):
            for kind in ("stochastic", "negative"):
                if kind == "negative" or settings or name not in some:
                    yield case("dirichlet, larger", name, settings, kind)
    for name, settings in some.items():
        yield (
            f"simulate_mdp/a function in Python/{written(name, settings)}/dirichlet",
            partial(
                play_mdp_simulation,
                player("dirichlet", name, settings),
                everything["dirichlet"],
                lambda: _python_mdp_adversary,
            ),
        )


def _python_mdp_adversary(
    t: int, last: tuple[Any, Any] | None, q: list[Vector], rng: Generator
) -> list[Vector]:
    losses = [table + rng.normal(size=table.shape) * (1.0 + t % 10) for table in q]
    if last is not None:
        for h, (s, a) in enumerate(zip(*last, strict=True)):
            losses[h][s, a] += 0.5
    return losses


def play_mdp_simulation(
    player: Maker, mdp: Any, against: Maker, episodes: int = SIMULATED
) -> Fields:
    """A simulation of an MDP, and all that it says."""
    result = unbounded.simulate_mdp(
        player(), mdp, against(), episodes, replicates=2, seed=SEED, checkpoints=5, workers=1
    )
    expected, realised = expected_and_realised(result)
    names = (
        "checkpoints", "low", "high", "clipped", "explored", "solves", "fallbacks", "unsolved",
        "worst_gap", "reach",
    )  # fmt: skip
    fields = {name: getattr(result, name) for name in names}
    return {"expected": expected, "realised": realised, **fields}


# ---------------------------------------------------------------------- programs over occupancy


def solver_cases() -> Iterator[Case]:
    """Solvers and bounds over boxes around the transitions of every world."""
    for world, mdp in small_worlds().items():
        for width in (0.0, 0.02, 0.3, 1.0):
            where = f"{world}/width {width:g}"
            for name, method in (("ftrl", OccupancyFTRL), ("kl", OccupancyKL)):
                for spread in (1, 5):
                    yield (
                        f"solver/{name}/{where}/spread {spread}",
                        partial(solve_sequence, method, mdp, width, spread),
                    )
            yield f"solver/bounds/{where}", partial(bound_occupancy, mdp, width)
        yield f"solver/confidence/{world}", partial(observe_episodes, mdp)


def boxes(mdp: Any, width: float, rng: Generator) -> tuple[Vector, Vector]:
    """Boxes that hold the world's transitions, at most so wide on either side; 1: all there is."""
    if width == 1.0:
        return np.zeros_like(mdp.P), np.ones_like(mdp.P)
    below, above = width * rng.random((2, mdp.P.size)) * rng.integers(0, 2, size=(2, mdp.P.size))
    return np.maximum(mdp.P - below, 0.0), np.minimum(mdp.P + above, 1.0)


def solve_sequence(
    method: Any,
    mdp: Any,
    width: float,
    spread: float,
    solves: int = SOLVES,
    weighted: float | None = None,
    possible: bool = False,
) -> Fields:
    """A sequence of solves; weights jump on the way, and the boxes change.

    Losses and weights are spread over so many decades up and down, or weights over others. Boxes
    may hold only what is possible.
    """
    rng, layers = default_rng([SEED, 10]), mdp.layers
    decades = spread if weighted is None else weighted
    lo, hi = boxes(mdp, width, rng)
    solver = method(layers, lo, hi * (mdp.P > 0.0) if possible else hi)
    ftrl = method is OccupancyFTRL
    losses, weights = (
        np.zeros(layers.n_pairs),
        10.0 ** rng.uniform(-decades, decades, size=layers.horizon),
    )
    zeros = np.zeros(layers.n_pairs)
    seen: Fields = defaultdict(list)
    if ftrl:  # no scale is known yet
        seen["q without weights"] = solver.solve(losses, np.zeros(layers.horizon)).q
    for t in range(solves):
        fresh = rng.exponential(size=layers.n_pairs) * (rng.random(layers.n_pairs) < 0.4)
        fresh *= 10.0 ** rng.uniform(-spread, spread, size=layers.n_pairs)
        fresh[0] = 0.0
        losses = losses + fresh if ftrl else fresh
        if t == solves // 2:
            weights[rng.integers(layers.horizon)] *= 16.0
        if t == 3 * solves // 4:
            solver.set_boxes(*boxes(mdp, 0.1, rng))
        solution = (solver.solve if ftrl else solver.step)(losses, weights)
        proof = solution.certificate
        for name in ("v", "theta", "transitions"):
            seen[name].append(getattr(solution, name))
        for name in ("q", "pi"):  # of a solve that found nothing, they may be uninitialised memory
            seen[name].append(getattr(solution, name) if np.isfinite(proof.gap) else zeros)
        seen["certificate"].append([proof.gap, proof.relative_gap, float(proof.solved)])
        seen["steps"].append([proof.newton_steps, proof.interior_iterations])
        seen["method"].append(("closed form", "warm", "cold", "fallback").index(proof.method))
    return seen


def bound_occupancy(mdp: Any, width: float) -> Fields:
    """Upper bounds of random policies, and greedy transitions."""
    rng, layers = default_rng([SEED, 11]), mdp.layers
    lo, hi = boxes(mdp, width, rng)
    even = np.ones(layers.n_actions)
    one, other = (
        Markov.from_tables(layers, [rng.dirichlet(even, n) for n in layers.sizes]) for _ in range(2)
    )
    visited = [int(rng.integers(n)) for n in layers.sizes]
    return {
        "policy": upper_occupancy(one, lo, hi),
        "visited": upper_occupancy(one, lo, hi, states=visited),
        "mixture": upper_occupancy(Mixture([0.25, 0.75], [one, other]), lo, hi),
        "greedy": greedy_transitions(layers, lo, hi, rng.normal(size=layers.n_states)),
        "ties": greedy_transitions(layers, lo, hi, rng.integers(0, 2, size=layers.n_states)),
    }


def observe_episodes(mdp: Any, episodes: int = 200) -> Fields:
    """Counts and boxes after episodes of uniform play, with both kinds of constants."""
    rng, layers = default_rng([SEED, 12]), mdp.layers
    sets = {
        "paper": ConfidenceSet(layers, 10_000, 0.05, constants=PAPER),
        "jin": ConfidenceSet(layers, 10_000, 0.05, constants=JIN, nested=False),
        "narrow": ConfidenceSet(layers, 10_000, 0.05, constants=(0.01, 0.01)),
    }
    epochs: Fields = defaultdict(list)
    for _ in range(episodes):
        states, actions = walk(
            mdp.initial, mdp.transitions, rng.random(layers.horizon),
            lambda h, s: int(rng.integers(layers.n_actions)),
        )  # fmt: skip
        for name, confidence in sets.items():
            epochs[f"{name}: begun"].append(confidence.observe(states, actions))
    for name, confidence in sets.items():
        for what in ("lo", "hi", "N", "M", "epoch"):
            epochs[f"{name}: {what}"] = getattr(confidence, what)
    return epochs


# ---------------------------------------------------------------------- short plays


def short_cases() -> Iterator[Case]:
    """Plays of a few rounds or episodes that reach every line, as `unchanged_cases` says."""
    yield from short_bandit_cases()
    yield from short_mdp_cases()
    yield from short_simulation_cases()
    yield from short_mdp_simulation_cases()
    yield from short_solver_cases()


def short_bandit_cases() -> Iterator[Case]:
    """Every bandit learner with few and with many arms, on losses of every size."""
    classes = bandits.algorithms()
    rows = [
        (name, settings, n, losses, short.ROUNDS["few" if n in short.FEW else "many"])
        for name in classes
        for settings in short.BANDITS.get(name, [{}])
        for n, losses in (
            *((n, short.STREAMS[0]) for n in (*short.FEW, *short.MANY)),
            *((short.FEW[-1], losses) for losses in short.STREAMS[1:]),
            *((short.MANY[-1], losses) for losses in short.STREAMS[1:]),
        )
    ]
    for name, settings, n, losses, rounds in [*rows, *short.MORE_BANDITS]:
        player = partial(make, classes[name], n, seed=SEED, **settings)
        yield (
            f"short/bandit/{written(name, settings)}/{n} arms, {rounds} {losses}",
            partial(play_short_bandit, player, losses, rounds),
        )


def stream(kind: str, shape: Sequence[int], most: float = np.inf) -> Vector:
    """Losses, shape (time, ...): of every size from 2^-1070 to 2^1020."""
    rng = default_rng([SEED, 20, *shape])
    if kind == "mixed":
        return mixed_losses(shape, rng, most)
    signs, numbers = rng.choice([-1.0, 1.0], size=shape), rng.random(shape)
    share = (np.arange(shape[0]) / shape[0]).reshape(-1, *(1 for _ in shape[1:]))
    largest = float(np.finfo(np.float64).max)
    losses = {
        "plain": lambda: numbers * rng.random(shape[1:]),
        "zeros": lambda: np.zeros(shape),
        "rising": lambda: np.ldexp(0.5 + 0.5 * numbers, (2090 * share - 1069).astype(int)),
        "falling": lambda: signs * np.ldexp(numbers, (1020 - 2090 * share).astype(int)),
        "tiny": lambda: signs * np.ldexp(numbers, -1060),
        "largest": lambda: signs * rng.choice([0.0, 1.0, largest], size=shape),
        "hostile": lambda: (
            signs
            * rng.choice(
                [0.0, 5e-324, 1e-310, 1e-200, 1e-3, 1.0, 1e100, 1e300, largest], size=shape
            )
        ),
    }[kind]()
    return np.asarray(np.clip(losses, -min(most, largest), min(most, largest)))


def play_short_bandit(maker: Maker, kind: str, rounds: int) -> Fields:
    """Ask and tell, for a while with several asks outstanding."""
    learner = maker()
    spec = learner.spec
    losses = stream(kind, (rounds, learner.n_arms), spec.largest_loss)
    seen: Fields = defaultdict(list)
    waiting: list[tuple[Any, Vector]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of losses that are far from the others
        for t, row in enumerate(losses):
            waiting.append((learner.ask(), row))
            seen["arms"].append(waiting[-1][0].arm)
            seen["chances"].append(waiting[-1][0].probability)
            if spec.delayed and t % 10 in (5, 6):
                continue
            for choice, told in waiting:
                _tell(learner, choice, told)
            waiting.clear()
            if t % 5 == 0 or t + 1 == rounds:
                seen["probabilities"].append(learner.probabilities())
                seen["scale"].append(learner.scale)
                seen["clipped"].append(learner.clipped)
    return seen


def short_worlds() -> dict[str, Any]:
    """The small ones, and some in which little is possible."""
    rng = default_rng([SEED, 21])
    few = [
        rng.dirichlet(np.ones(24), size=(n, 2)) * (rng.random((n, 2, 24)).argsort(-1) < 2)
        for n in (4, 24)
    ]
    few = [one / one.sum(axis=-1, keepdims=True) for one in few]
    chain = rng.dirichlet(np.ones(3), size=(3, 3))
    ends = np.where(rng.random((3, 3)) < 0.4, 0.3, 0.0)
    allowed = rng.random((3, 3)) < 0.7
    allowed[:, 0] = True
    mdp = unbounded.LayeredMDP
    return {
        **small_worlds(),
        "few successors": mdp([1.0, 0.0, 0.0, 0.0], few),
        "ends": mdp.from_arrays(
            chain * (1.0 - ends[..., None]), [0.2, 0.3, 0.5], 3, allowed=allowed, ends=ends
        ),
        "one state": mdp([1.0], [np.ones((1, 2, 1))]),
        "lock of three": worlds.combination_lock(3, 3, default_rng([SEED, 26])),
        "tiny": worlds.dirichlet([1, 2], 2, default_rng([SEED, 24])),
        "few of twenty": mdp([1.0], [np.eye(20)[[[3, 8]]] * 0.75 + np.eye(20)[[[5, 3]]] * 0.25]),
    }


def short_mdp_cases() -> Iterator[Case]:
    """Every learner for MDPs, on losses of every size."""
    classes, everything = all_mdp_learners(), short_worlds()
    rows = [
        (name, settings, world, losses, short.EPISODES)
        for name in classes
        for settings in short.MDPS.get(name, [{}])
        for losses, world in short.MDP_STREAMS.items()
    ]
    for name, settings, world, losses, episodes in [*rows, *short.MORE_MDPS]:
        mdp = everything[world]
        player = partial(make_short_learner, classes[name], mdp, episodes, settings)
        yield (
            f"short/mdp/{written(name, settings)}/{world}, {episodes} {losses}",
            partial(play_short_mdp, player, mdp, losses, episodes),
        )


def make_short_learner(cls: Any, mdp: Any, episodes: int, settings: Mapping[str, Any]) -> Any:
    """A learner for a world, told of it what its settings say."""
    known, told = inspect.signature(cls).parameters, dict(settings)
    hidden = [table > 0.0 for table in (mdp.initial, *mdp.transitions)]
    hidden[-1][..., :-1], hidden[-1][..., -1] = False, True
    of_world = {
        short.TRUE: mdp.P,
        short.POSSIBLE: mdp.P > 0.0,
        short.LIKELY: mdp.P > 0.3,
        short.HIDDEN: mdp.layers.pack_transitions(hidden[0], hidden[1:]) > 0.0,
    }
    for name, value in told.items():
        if isinstance(value, str) and value in of_world:
            told[name] = of_world[value]
    if "episodes" in known:
        told.setdefault("episodes", PER_STATE if cls.spec.per_state else episodes)
    if "allowed" in known or "known" in known:  # SCBRL takes them as known=
        told |= {"allowed": mdp.allowed, "ends": mdp.layers.ends}
    return make(cls, mdp.layers.sizes, mdp.layers.n_actions, **told, seed=SEED)


def play_short_mdp(maker: Maker, mdp: Any, kind: str, episodes: int) -> Fields:
    """Ask, act and tell."""
    learner, layers = maker(), mdp.layers
    rewarded = type(learner).__name__ in ("MVP", "UCBVI")
    full = getattr(learner.spec, "feedback", "bandit") == "full"
    draws = default_rng([SEED, 22]).random((episodes, layers.horizon))
    feedback = [
        default_rng([SEED, 23, h]).random((episodes, n, layers.n_actions)) / layers.horizon
        if rewarded
        else stream(kind, (episodes, n, layers.n_actions, h + 1))[..., -1]
        for h, n in enumerate(layers.sizes)
    ]
    seen: Fields = defaultdict(list)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for t in range(episodes):
            plan = learner.ask()
            states, actions = walk(mdp.initial, mdp.transitions, draws[t], plan.act)
            steps = enumerate(zip(states, actions, strict=True))
            values: Any = [feedback[h][t, s, a] for h, (s, a) in steps]
            if layers.ends:  # the end is free
                values = [
                    0.0 if h > 0 and s == n - 1 else value
                    for h, (s, n, value) in enumerate(
                        zip(states, layers.sizes, values, strict=True)
                    )
                ]
            if full:
                values = [table[t] for table in feedback]
            learner.tell(plan, states, actions, **{"rewards" if rewarded else "losses": values})
            seen["actions"].append(actions)
            if t % 5 == 0 or t + 1 == episodes:
                seen["plans"].append(flat(plan.policy))
                for what, value in look_at_mdp_learner(learner).items():
                    seen[what].append(value)
    return seen


def short_simulation_cases() -> Iterator[Case]:
    """Simulations of a few rounds: every adversary and every learner."""
    worst = {f"Program {name}": one for name, (one, _) in adversaries.worst_cases().items()}
    found = [*adversary_classes(), *worst]
    rows: list[tuple[str, dict[str, Any], str, int]] = [
        *((name, {}, learner, n) for name in found for learner, n in short.AGAINST),
        *((name, settings, "Uniform", 6) for name, settings in short.ADVERSARIES),
        *((name, {}, learner, n) for name, learner, n in short.MORE_AGAINST),
        *(("Switch", {}, learner, 7) for learner in bandits.algorithms()),
    ]
    for name, settings, learner, n in rows:
        player = partial(make, bandits.algorithms()[learner], n, **first_settings(learner))
        if name in worst:
            against = partial(adversaries.Program, worst[name].phases)
        else:
            given = [stream("plain", (10, n))] if name == "Replay" else []
            against = partial(getattr(adversaries, name), *given, **settings)
        key = f"short/simulate/{written(name, settings)}/{learner}, {n} arms"
        yield key, partial(play_simulation, player, against, rounds=short.SIMULATED)
        if learner == "Uniform":
            again = partial(play_comparators, player, against, rounds=short.SIMULATED)
            yield f"{key}, comparators=[0, 1]", again
    for name, player in {"SCB": partial(unbounded.SCB, 6), "in Python": PythonBandit}.items():
        for opponent, against in {
            "a function in Python": lambda: _python_adversary,
            "Chaser": adversaries.Chaser,
            "StochasticGap": adversaries.StochasticGap,
        }.items():
            if (name, opponent) != ("SCB", "Chaser"):
                play = partial(play_simulation, player, against, rounds=short.SIMULATED)
                yield f"short/simulate/{opponent}/{name}", play


def adversary_classes() -> list[str]:
    """Names of the adversaries for bandits, but for programs."""
    return [
        name
        for name in adversaries.__all__
        if isinstance(getattr(adversaries, name), type)
        and issubclass(getattr(adversaries, name), adversaries.Adversary)
        and name not in ("Adversary", "Program")
    ]


def first_settings(learner: str) -> dict[str, Any]:
    """Settings with which a learner is simulated."""
    return ({**short.BANDITS, **short.MDPS}.get(learner) or [{}])[0]


class PythonBandit(unbounded.PythonLearner):  # type: ignore[misc]  # of a module that is found late
    """A learner in Python."""

    def __init__(self, n_arms: int = 6, *, seed: Any = None) -> None:
        super().__init__(n_arms, seed=seed)
        self.L = np.zeros(n_arms)

    def distribution(self) -> Vector:
        """Even, and more for the smallest loss."""
        return np.asarray(0.5 / self.n_arms + 0.5 * (np.arange(self.n_arms) == self.L.argmin()))

    def update(self, arm: int, probability: float, loss: float) -> None:
        """Estimate it."""
        self.L[arm] += loss / probability


class PythonPolicy(unbounded.PythonMDPLearner):  # type: ignore[misc]  # likewise
    """A learner for MDPs in Python."""

    def policy(self) -> list[Vector]:
        """Even actions."""
        A = self.layers.n_actions
        return [np.full((n, A), 1.0 / A) for n in self.layers.sizes]

    def update(self, states: Any, actions: Any, losses: Any) -> None:
        """Learn nothing."""


def short_mdp_simulation_cases() -> Iterator[Case]:
    """Simulations of a few episodes: every adversary and every learner."""
    classes, everything = all_mdp_learners(), short_worlds()
    rows: list[tuple[str, float, str, dict[str, Any], str]] = [
        *((kind, 1.0, name, {}, world) for kind in KINDS for name, world in short.SIMULATIONS),
        *(("negative", 0.25, name, first_settings(name), "dirichlet") for name in classes),
        *short.MORE_SIMULATIONS,
    ]
    for kind, scale, name, settings, world in rows:
        mdp = everything[world]
        maker = partial(make_short_learner, classes[name], mdp, short.SIMULATED, settings)
        yield (
            f"short/simulate_mdp/{kind} scale={scale:g}/{written(name, settings)}/{world}",
            partial(play_or_refuse, maker, mdp, partial(mdp_adversary, kind, scale)),
        )
    mdp = everything["dirichlet"]
    for name in ("SCBRL", "in Python"):
        player = partial(make_short_learner, classes.get(name), mdp, short.SIMULATED, {})
        if name == "in Python":
            player = partial(PythonPolicy, mdp.layers.sizes, mdp.layers.n_actions)
        for opponent, against in {
            "a function in Python": lambda: _python_mdp_adversary,
            "switch": partial(mdp_adversary, "switch"),
        }.items():
            play = partial(play_or_refuse, player, mdp, against)
            yield f"short/simulate_mdp/{opponent}/{name}/dirichlet", play
    mdp = everything["ends"]
    pairs = mdp.layers.n_actions * (mdp.layers.n_states - mdp.layers.horizon)  # without the end
    replay = _module("unbounded.adversaries.mdps").MDPReplay
    yield (
        "short/simulate_mdp/replay/SCBRL()/ends",
        partial(
            play_or_refuse,
            partial(make_short_learner, classes["SCBRL"], mdp, short.SIMULATED, {}),
            mdp,
            partial(replay, stream("plain", (5, pairs)), repeat=True),
        ),
    )


def play_or_refuse(player: Maker, mdp: Any, against: Maker) -> Fields:
    """A simulation of an MDP, which the learner may refuse: not all take every loss."""
    try:
        return {"possible": True, **play_mdp_simulation(player, mdp, against, short.SIMULATED)}
    except ValueError:
        return {"possible": False}


def short_solver_cases() -> Iterator[Case]:
    """Programs over occupancy measures that are easy, hard, and hopeless; bounds, confidence."""
    everything, methods = short_worlds(), {"ftrl": OccupancyFTRL, "kl": OccupancyKL}
    for method, world, width, *numbers in short.SOLVES:
        yield (
            f"short/solver/{method}/{world}/width {width:g}/{numbers}",
            partial(solve_sequence, methods[method], everything[world], width, *numbers),
        )
    for world in short.BOUNDS:
        yield f"short/solver/bounds/{world}", partial(bound_occupancy, everything[world], 0.3)
        yield f"short/solver/confidence/{world}", partial(observe_episodes, everything[world], 30)
    yield "short/internal", call_internals
    yield "short/internal/no goal", partial(ascend_for_ever, everything["dirichlet"])
    yield "short/internal/no gap", spoil_picture


def call_internals() -> Fields:
    """Kernels with arguments that no play has: probabilities that sum to less than 1."""
    mdp = small_worlds()["dirichlet"]
    most = 2**64 - 1
    words = np.full(2 * mdp.layers.horizon, most, np.uint64)
    states, actions = simulate_episode(mdp, np.full(mdp.layers.n_pairs, 0.25), words)
    library = internal("Library")(2, np.zeros(8), np.array([0.5, 0.25]), np.zeros(2))
    few = internal("Law")(np.array([0.5, 0.25, 0.0]), np.zeros(8), np.zeros(32))
    return {
        "states": states,
        "actions": actions,
        "policy": internal("draw_policy")(library, 0.9),
        "arm": internal("draw_arm")(few, np.uint64(most))[0],
        "gap": internal("mixability_gap")(0.0, 1e6, 1.0),
        **solve_nothing(mdp),
        **solve_poorly(mdp),
        **mend_lists(),
        **move_many_arms(),
    }


def solve_poorly(mdp: Any) -> Fields:
    """The last resort for programs that are not solved, of one that is."""
    layers, work = mdp.layers, internal("work")
    lay, room = layers.table, np.zeros(work.work_size(mdp.layers.table))
    lo, hi = boxes(mdp, 0.3, default_rng(SEED))
    L, weights = default_rng(SEED).random(layers.n_pairs), np.ones(layers.horizon)
    q, pi = np.zeros(layers.n_pairs), np.array(layers.even)
    memory = internal("new_memory")(layers)
    internal("solve")(lay, lo, hi, 1, L, weights, 1e-8, memory, room, q, pi)
    found = last_resort(lay, lo, hi, memory, q, pi, work.carve(lay, room))
    return {"last resort": found, "pi of it": pi}


def last_resort(
    lay: Any, lo: Vector, hi: Vector, memory: Any, q: Vector, pi: Vector, W: Any
) -> Any:
    """The gap and the iterations of the last resort, which formerly took no `Progress`."""
    ftrl = internal("ftrl")
    if not hasattr(ftrl, "Progress"):
        return ftrl._last_resort(lay, lo, hi, 1e-8, np.inf, pi, W)
    none = ftrl.Progress(np.inf, 0, 0, 0, 0)
    found = ftrl._last_resort(lay, lo, hi, 1e-8, none, memory, q.copy(), pi.copy(), W)
    return found.gap, found.iterations


def ascend_for_ever(mdp: Any) -> Fields:
    """Mirror descent of which no gap is small enough."""
    layers, work = mdp.layers, internal("work")
    lay, room = layers.table, np.zeros(work.work_size(mdp.layers.table))
    lo, hi = boxes(mdp, 0.3, default_rng(SEED))
    L, weights = default_rng(SEED).random(layers.n_pairs), np.ones(layers.horizon)
    ln_q, ln_P = internal("uniform_base")(layers)
    v, theta, base = np.zeros(layers.n_states), np.zeros(layers.n_pairs), ln_P.copy()
    pi = np.array(layers.even)
    internal("kl_step")(lay, lo, hi, L, weights, 1e-8, ln_q, ln_P, v, theta, room, pi)
    given = lay, lo, hi, -1.0, 60, base, v, theta, work.carve(lay, room)
    return {"ascent": internal("ascend")(*given), "v": v, "pi": pi}


def spoil_picture() -> Fields:
    """Many arms whose picture has no gap: the search for their normaliser gets nowhere."""
    signed, picture = internal("signed_arms"), internal("signed_picture")
    q, arms = np.empty(150), signed.new_arms(150)
    arms.M[:] = default_rng(SEED).random(150)
    arms = signed.solve(arms, 10.0, 0.1)
    arms.picture[picture.GAP] = 0.0
    signed.fill(signed.solve(arms, 11.0, 0.1), q)
    return {"law": q}


def mend_lists() -> Fields:
    """Lists of transitions that do not sum to 1, or cannot; a gradient of 0."""
    mdp = short_worlds()["few of twenty"]
    lay, work, sparse = mdp.layers.table, internal("work"), internal("sparse")
    repair = sparse.repair if hasattr(sparse, "repair") else sparse.mend
    out: Fields = {}
    for name, most in (("mended", 1.0), ("empty", 0.3)):
        hi = most * (mdp.P > 0.0)
        few = sparse.listed(lay, hi, work.carve(lay, np.zeros(work.work_size(lay))))
        low, high = np.zeros(few.to.size), np.full(few.to.size, most)
        few.P[:] = 0.4
        repair(lay, low, high, few)
        out[name] = few.P.copy()
        slope = internal("conjugate_direction")(lay, low, high, 1.0, few)
        out[f"{name}: slope"] = slope
    return out


def move_many_arms() -> Fields:
    """Estimates that move far at once, or of many arms alike."""
    n, beta = 150, 0.1
    q, laws = np.empty(n), []
    signed, shannon = internal("signed_arms"), internal("shannon_arms")
    rng = default_rng([SEED, 25])
    for first, change in ((0.0, -100.0), (-1e6, -400.0), (0.0, -1e30), (0.0, 1e3)):
        arms = signed.new_arms(n)
        arms.M[:] = rng.random(n)
        arms = signed.solve(arms, 10.0, beta)
        for k in range(3):
            arms, _ = signed.add(arms, k, first)
        arms = signed.solve(arms, 10.0, beta)
        for k in range(70):
            arms, _ = signed.add(arms, k if first == 0.0 else k % 3, change)
            arms = signed.solve(arms, 10.0, beta)
        arms, _ = signed.add(
            arms._replace(S=1e6), n - 1, 1.0
        )  # at another rate than was solved for
        signed.fill(signed.solve(arms, 1e6, beta), q)
        laws.append(q.copy())
    arms = shannon.new_arms(n)
    for k in range(1, n):
        shannon.add(arms, k, float(np.log(n)))
    shannon.solve(arms, 1.0, beta)
    shannon.fill(arms, q)
    return {"laws": [*laws, q]}


def solve_nothing(mdp: Any) -> Fields:
    """Programs of which a weight is no number, which stands for any breakdown."""
    layers = mdp.layers
    q, pi = (np.arange(layers.n_pairs) + shift for shift in (0.5, 0.25))
    L, weights = np.arange(layers.n_pairs, dtype=np.float64), np.ones(layers.horizon)
    weights[1] = np.nan
    room = np.zeros(internal("work").work_size(layers.table))
    memory, base = internal("new_memory")(layers), internal("uniform_base")(layers)
    boxes_of = layers.table, *boxes(mdp, 0.3, default_rng(SEED))
    one = internal("solve")(*boxes_of, 1, L, weights, 1e-8, memory, room, q, pi)
    v, theta = np.zeros(layers.n_states), np.zeros(layers.n_pairs)
    two = internal("kl_step")(*boxes_of, L, weights, 1e-8, *base, v, theta, room, pi)
    return {"q": q, "pi": pi, "status": [one.status, two.status]}


# ---------------------------------------------------------------------- records


def cases() -> Iterator[Case]:
    """Everything that is recorded."""
    for part in (
        world_cases, solver_cases, bandit_cases, adversary_cases, mdp_cases, mdp_simulation_cases,
        short_cases,
    ):  # fmt: skip
        yield from part()


def fingerprint(values: Any) -> dict[str, Any]:
    """Hash of an array's bytes, and a few of its numbers to look at."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"not an array of numbers: {values!r}")
    if array.dtype.kind == "f":
        array = array.astype("<f8")
        array[np.isnan(array)] = np.nan  # there are many; one will do
    else:
        array = array.astype("<i8")
    return {
        "sha256": hashlib.sha256(array.tobytes()).hexdigest(),
        "type": str(array.dtype),
        "shape": list(array.shape),
        "first": array.ravel()[:3].tolist(),
        "last": array.ravel()[-6:].tolist(),
    }


def machine() -> dict[str, str]:
    """What bits may depend on beside the library."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "processor": f"{platform.machine()} {llvm.get_host_cpu_name()}",
    }


def record(path: Path, only: str, interpreted: bool = False) -> int:
    """Play everything whose key contains ``only``; returns how many plays failed.

    What is ``interpreted`` is short.
    """
    records, failures = played(only, interpreted)
    document = {"machine": machine(), "only": only, "short": interpreted, "records": records}
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    arrays = sum(len(fields) for fields in records.values())
    print(f"{len(records)} records ({arrays} arrays) in {path}, {failures} failed")
    return failures


def played(only: str, interpreted: bool) -> tuple[dict[str, dict[str, Any]], int]:
    """The fingerprints by key, and how many plays failed."""
    print(f"playing {Path(unbounded.__file__).parent}", flush=True)
    records: dict[str, dict[str, Any]] = {}
    failures = 0
    began = said = time.monotonic()
    for key, play in short_cases() if interpreted else cases():
        if only not in key:
            continue
        if key in records:
            raise KeyError(f"two records have the key {key!r}")
        try:
            with np.errstate(all="ignore"):  # as compiled code, which does not warn
                fields = play()
            records[key] = {name: fingerprint(values) for name, values in fields.items()}
        except Exception as error:  # goes on: the others are of interest too
            failures += 1
            traceback.print_exc()
            print(f"failed: {key}", flush=True)
            records[key] = {"error": {"sha256": f"{type(error).__name__}: {error}"}}
        now = time.monotonic()
        if now - said > 5.0:
            said = now
            print(f"{now - began:6.0f} s {len(records):5d} records, now {key}", flush=True)
    print(f"{time.monotonic() - began:6.0f} s", flush=True)
    return records, failures


def coverage(only: str) -> int:
    """Play what is short, interpreted; returns how many lines were not reached without a reason."""
    found = [*lines.kernels(Path(unbounded.__file__).parent, FOLDERS)]
    with lines.reached(found) as seen:
        _, failures = played(only, interpreted=True)
    wrong = lines.report(found, seen, short.UNREACHED)
    print("\n".join(wrong))
    return failures + len(wrong)


def compare(before: Path, after: Path) -> int:
    """Print what differs; returns how many records do."""
    one, two = (json.loads(path.read_text(encoding="utf-8")) for path in (before, after))
    if one["machine"] != two["machine"]:
        print(f"note: recorded with {one['machine']} and with {two['machine']}")
    keys = [
        key
        for key in sorted({**one["records"], **two["records"]})
        if all(_was_played(key, document) for document in (one, two))
    ]
    different = 0
    for key in keys:
        old, new = one["records"].get(key), two["records"].get(key)
        if old is None or new is None:
            different += 1
            print(f"{key}\n    only in {before if new is None else after}")
            continue
        names = [name for name in sorted({**old, **new}) if not _same(old.get(name), new.get(name))]
        if names:
            different += 1
            print(key)
        for name in names:
            print(f"    {name}")
            for path, fields in ((before, old), (after, new)):
                print(f"        {path}: {_shown(fields.get(name))}")
    print(f"{len(keys)} records, {different or 'none'} differ")
    return different


def _was_played(key: str, document: Mapping[str, Any]) -> bool:
    return document["only"] in key and (key.startswith("short/") or not document.get("short"))


def _same(old: dict[str, Any] | None, new: dict[str, Any] | None) -> bool:
    if old is None or new is None:
        return False
    return all(old.get(part) == new.get(part) for part in ("sha256", "type", "shape"))


def _shown(field: dict[str, Any] | None) -> str:
    if field is None:
        return "nothing"
    if "shape" not in field:
        return str(field["sha256"])
    return (
        f"{field['sha256'][:12]} {field['type']} {field['shape']} first {field['first']} "
        f"last {field['last']}"
    )


def main() -> int:
    """Of the command line; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="play everything, write fingerprints")
    recording.add_argument("out", type=Path)
    recording.add_argument(
        "--interpreted", action="store_true", help="compile nothing; short/ only"
    )
    covering = commands.add_parser("coverage", help="lines of kernels that are never reached")
    for command in (recording, covering):
        command.add_argument("--only", default="", help="only what has this in its key")
    comparing = commands.add_parser("compare", help="say what differs; exit 1 if anything does")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.command == "record":
        return 1 if record(given.out, given.only, given.interpreted) else 0
    if given.command == "coverage":
        return 1 if coverage(given.only) else 0
    return 1 if compare(given.before, given.after) else 0


if __name__ == "__main__":
    sys.exit(main())
