"""Settings of every learner, adversary and world: what counts as a number, and as what number.

A setting reaches kernels through ``Params``. One of another type than its annotation would be
compiled for again; a truth value taken for a number is a mistake that nobody would see.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from types import UnionType
from typing import Any, SupportsIndex, get_args, get_type_hints

import numpy as np
import pytest

import unbounded
from bandit_examples import EXAMPLES as BANDITS
from mdp_examples import EXAMPLES as MDP_LEARNERS
from mdp_examples import MDP
from tiers import tiered
from unbounded import adversaries, simulate, simulate_mdp
from unbounded.adversaries.bandits import adversaries as of_bandits
from unbounded.adversaries.mdps import adversaries as of_mdps
from unbounded.experiments.names import known
from unbounded.mdps.scb_rl import Constants

WHOLE = (int, np.int64, np.uint8, lambda value: np.array(value))
REAL = (
    int, float, np.int64, np.float32, np.float64, np.longdouble, Fraction, Decimal,
    lambda value: np.array(float(value)),
)  # fmt: skip
CANDIDATES = (1, 2, 0, 0.5, 0.25, 0.125)  # exact in every type that holds them at all


def kinds_of(function: Any) -> dict[str, set[Any]]:
    """The types that each parameter's annotation allows, None apart."""
    hints = get_type_hints(function if inspect.isfunction(function) else function.__init__)
    allowed = {}
    for name in inspect.signature(function).parameters:
        hint = hints.get(name)
        union = isinstance(hint, UnionType)
        allowed[name] = (set(get_args(hint)) if union else {hint}) - {type(None)}
    return allowed


def parameters(function: Any, kind: Any) -> list[str]:
    wanted = {int, SupportsIndex} if kind is int else {kind}
    return [name for name, kinds in kinds_of(function).items() if kinds & wanted and name != "seed"]


def legal(make: Any, name: str) -> list[Any]:
    """The first whole one and the first other of the candidates that a setting can be."""
    found = []
    for value in CANDIDATES:
        try:
            make(**{name: value})
        except (TypeError, ValueError):
            continue
        found.append(value)
    whole = [value for value in found if value == int(value)]
    return whole[:1] + [value for value in found if value not in whole][:1]


def leaves(record: Any) -> list[tuple[str, Any, type]]:
    """Name, value and annotation of every field of nested NamedTuples."""
    found = []
    for name, kind in get_type_hints(type(record)).items():
        value = getattr(record, name)
        found += leaves(value) if hasattr(kind, "_fields") else [(name, value, kind)]
    return found


def learner_of(example: Any) -> Any:
    """A function that makes the learner of an example with other settings."""
    made = example.make()
    kept = dict(made.settings)

    def make(**settings: Any) -> Any:
        return example.cls(**{**kept, **settings}, seed=0)

    make.cls, make.what = example.cls, made
    return make


LEARNERS = tiered([*BANDITS, *MDP_LEARNERS])
NEEDED = {
    "Program": {"phases": [{"noise": 0.5}]},
    "Replay": {"losses": [[0.0, 1.0]]},
    "MDPReplay": {"losses": [[0.0, 1.0]]},
}


@pytest.fixture(params=LEARNERS)
def learner(request):
    return learner_of(request.param)


@pytest.fixture(
    params=[*of_bandits().values(), *of_mdps().values()], ids=lambda cls: cls.__module__[22:]
)
def adversary(request):
    cls = request.param

    def make(**settings: Any) -> Any:
        return cls(**{**NEEDED.get(cls.__name__, {}), **settings})

    make.cls, make.what = cls, make()
    return make


def given_in(values: list[Any], types: Any) -> list[tuple[Any, Any]]:
    """Each value as itself and in each type that can hold it."""
    return [(v, kind(v)) for v in values for kind in types if float(kind(v)) == v]


def test_params_have_the_types_of_their_annotations(learner):
    names = [(name, REAL) for name in parameters(learner.cls, float)]
    names += [(name, WHOLE) for name in parameters(learner.cls, int)]
    assert names or len(learner.what.settings) <= 4
    for name, types in names:
        values = [v for v in legal(learner, name) if types is REAL or v == int(v)]
        for value, given in given_in(values, types):
            made = learner(**{name: given})
            plain = learner(**{name: float(value) if types is REAL else int(value)})
            assert made.settings == plain.settings, (name, given)
            for (field, one, kind), (_, other, _) in zip(
                leaves(made._params), leaves(plain._params), strict=True
            ):
                if kind in (int, float, bool):
                    assert type(one) is kind, (name, given, field)
                assert np.array_equal(one, other), (name, given, field)


def test_settings_are_what_json_keeps(learner):
    for name in parameters(learner.cls, float):
        for _, given in given_in(legal(learner, name), REAL):
            assert type(learner(**{name: given}).settings[name]) is float, (name, given)


def test_adversaries_keep_floats_for_floats_and_ints_for_ints(adversary):
    for name in parameters(adversary.cls, float):
        for value, given in given_in(legal(adversary, name), REAL):
            kept = getattr(adversary(**{name: given}), name)
            assert kept == value
            assert type(kept) is float, (name, given)
    for name in parameters(adversary.cls, int):
        for value, given in given_in([1, 2], WHOLE):
            kept = getattr(adversary(**{name: given}), name)
            assert kept == value
            assert type(kept) is int, (name, given)


def refused(make: Any, function: Any) -> None:
    """No truth value and no text is a number, and no fraction a whole one."""
    for name in parameters(function, float):
        for wrong in (True, np.False_, "1", b"1", 1j, [1.0], np.array([1.0]), np.array(True)):
            if isinstance(wrong, str) and str in kinds_of(function)[name]:
                continue
            if np.ndim(wrong) > 0 and Sequence[float] in kinds_of(function)[name]:
                continue
            with pytest.raises(TypeError, match=name):
                make(**{name: wrong})
        for wrong in (np.nan, np.inf, -np.inf, 10**400, -(10**5000), Decimal("sNaN")):
            with pytest.raises(ValueError, match=name):
                make(**{name: wrong})
    for name in parameters(function, int):
        for wrong in (True, np.True_, 1.0, "1", np.array(1.0), np.array([1]), Decimal(1), 1j):
            if isinstance(wrong, str) and str in kinds_of(function)[name]:
                continue
            with pytest.raises(TypeError, match=name):
                make(**{name: wrong})
    for name in parameters(function, bool):
        for wrong in (0, 1, 1.0, "true", np.array(True)):
            with pytest.raises(TypeError, match=name):
                make(**{name: wrong})
    for name in parameters(function, str):
        for wrong in (0, True, "no such option", b"scale", ["scale"]):
            if isinstance(wrong, int) and float in kinds_of(function)[name]:
                continue
            if type(wrong) is int and SupportsIndex in kinds_of(function)[name]:
                continue
            with pytest.raises((TypeError, ValueError), match=name):
                make(**{name: wrong})


def test_learners_reject_what_is_no_number(learner):
    refused(learner, learner.cls)


def test_adversaries_reject_what_is_no_number(adversary):
    refused(adversary, adversary.cls)


@pytest.mark.parametrize("name", known("MDPs", "worlds"))
def test_worlds_reject_what_is_no_number(name):
    builder = known("MDPs", "worlds")[name].cls
    defaults = {
        "sizes": [2, 2], "n_actions": 2, "rng": np.random.default_rng(0), "horizon": 2,
        "transitions": [[[1.0]]], "initial": [1.0],
    }  # fmt: skip
    needed = {
        key: defaults[key] for key in inspect.signature(builder).parameters if key in defaults
    }
    refused(lambda **settings: builder(**{**needed, **settings}), builder)


NO_LAYERS = ([True, 2], [2.5, 2], ["2", 2], [0, 2], [], 3, "22", None, [-1], [[2]], {2: 3})
NO_RANGES = ("01", (False, True), (0, np.inf), (1, 0), (0, "1"), (0, 1, 2), 3, None, "ab", (0, 1j))


def test_layers_and_ranges_are_numbers(learner):
    for name, values in (("layers", NO_LAYERS), ("loss_range", NO_RANGES)):
        for wrong in values if name in learner.what.settings else ():
            with pytest.raises((TypeError, ValueError), match=name):
                learner(**{name: wrong})
    if "loss_range" in learner.what.settings:
        plain = learner(loss_range=(0.0, 2.0)).settings
        for pair in ((0, 2), [np.float32(0.0), Fraction(2)], (Decimal(0), np.array(2.0))):
            assert learner(loss_range=pair).settings == plain


@pytest.mark.parametrize("wrong", [True, np.True_, 1.5, "1", -1, b"1", [True]])
def test_seeds_are_integers(wrong):
    bandit, policy = BANDITS[0].values[0].cls, MDP_LEARNERS[-1].values[0]
    with pytest.raises((TypeError, ValueError), match="seed"):
        bandit(3, seed=wrong)
    for run in (
        lambda: simulate(bandit(3), adversaries.StochasticGap(), 10, seed=wrong),
        lambda: simulate_mdp(policy.make(), MDP, of_mdps()["Stochastic"](), 10, seed=wrong),
    ):
        with pytest.raises((TypeError, ValueError), match="seed"):
            run()


@pytest.mark.parametrize(
    "name", ["rounds", "replicates", "first_replicate", "checkpoints", "workers"]
)
@pytest.mark.parametrize("wrong", [True, 1.0, "1", -1, np.array(True)])
def test_simulations_count_in_integers(name, wrong):
    settings = {"rounds": 10, name: wrong}
    bandit, policy = BANDITS[0].values[0].cls, MDP_LEARNERS[-1].values[0]
    with pytest.raises((TypeError, ValueError), match=name):
        simulate(bandit(3), adversaries.StochasticGap(), **settings)
    settings["episodes"] = settings.pop("rounds")
    with pytest.raises((TypeError, ValueError), match=name.replace("rounds", "episodes")):
        simulate_mdp(policy.make(), MDP, of_mdps()["Stochastic"](), **settings)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: unbounded.LogThompson(2, stream=2**53), r"stream must be below 2\*\*53"),
        (lambda: unbounded.CostSCBRL([1], 2, episodes=2**53), r"episodes must be below 2\*\*53"),
        (lambda: unbounded.RFELP([1], 2, episodes=2**60), r"episodes must be below 2\*\*53"),
        (lambda: Constants(early_stop=10**400), r"early_stop must be below 2\*\*53"),
        (lambda: simulate(unbounded.SCB(2), adversaries.StochasticGap(), 10**20),
         r"rounds must be below 2\*\*53"),
        (lambda: unbounded.RobustUCB(2, rounds=10, moment=1e308), "moment must be in"),
        (lambda: unbounded.HTINF(2, sigma=1e-320), "sigma must be in"),
        (lambda: unbounded.CostSCB(2, rate=1e150), "rate must be in"),
        (lambda: unbounded.CostSCB(2, rate=1e-300), "rate must be in"),
        (lambda: unbounded.SCBRL([1], 2, delta=1e-320), "delta must be in"),
        (lambda: Constants(exploration=1e300), "exploration must be in"),
        (lambda: Constants(exploration=5e-324), "exploration must be in"),
        (lambda: Constants(center=1e150), "center must be in"),
        (lambda: unbounded.CostSCBRL([1], 2, center=2.0), "center must be in"),
    ],
)  # fmt: skip
def test_settings_that_would_overflow_or_could_not_be_kept_are_rejected(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_two_ways_of_giving_the_lower_bound_are_one_too_many():
    with pytest.raises(TypeError, match="lower or best_reward"):
        unbounded.CostSCBRL([1, 2], 2, lower=[0, None], best_reward=[None, 0])


@pytest.mark.parametrize(
    ("cls", "given"),
    [
        (unbounded.CostSCB, {"n_arms": 2, "outliers": 150_000_000}),
        (unbounded.CostSCBIX, {"n_arms": 2, "outliers": 150_000_000}),
        (unbounded.AdaINF, {"n_arms": 2, "trim": 150_000_000}),
        (unbounded.CostSCBRL, {"layers": [1, 1, 1], "n_actions": 2, "outliers": 50_000_000}),
    ],
)
def test_a_forged_file_cannot_ask_for_memory_that_it_does_not_fill(cls, given):
    assert cls._fewest_entries(given) >= 150_000_000
