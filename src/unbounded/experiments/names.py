"""What an experiment can name, with what settings: learners, adversaries, worlds.

`known` is the one place where a name is looked up; a name may mean one thing for bandits and
another for MDPs. Names that the package does not have may lead elsewhere:
`unbounded.experiments.plugins`.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from unbounded.experiments.plugins import ForeignError, Place, loaded, offered, package_of, place_of
from unbounded.experiments.registered import Registered, registered
from unbounded.learners.arguments import arguments_for
from unbounded.learners.bandit import Learner
from unbounded.simulation.adversary import Adversary, MDPAdversary

if TYPE_CHECKING:
    from unbounded.core.occupancy.mdp import LayeredMDP
    from unbounded.learners.mdp import MDPLearner

Kind = Literal["bandits", "MDPs"]
Field = Literal["learners", "adversaries", "worlds"]

FAMILIES: Mapping[Kind, tuple[Field, ...]] = MappingProxyType(
    {"bandits": ("learners", "adversaries"), "MDPs": ("learners", "adversaries", "worlds")}
)
"""What the experiments of each kind list by name."""

TRUE = "true"
"""As a learner's ``loss_range``: it is told that of the losses it will meet."""

_OF_WORLDS = ("layers", "n_actions", "transitions", "allowed", "ends")
SET_ABOVE: Mapping[str, str] = MappingProxyType(
    {
        "n_arms": "arms",
        "seed": "seed",
        **dict.fromkeys(_OF_WORLDS, "worlds"),
        "episodes": "episodes",
    }
)
"""What a learner is not told by its own settings, and the key of an experiment that says it."""


class Known(Mapping[str, Registered]):
    """What experiments of a kind can name in a field, by name.

    Those of the package, and those that installed packages offer by entry points; and whatever
    else can be imported, ``package.module:Name``, if it is asked for.
    """

    def __init__(self, kind: Kind, field: Field) -> None:
        self._kind, self._field = kind, field
        self._reserved = {
            "learners": tuple(SET_ABOVE), "adversaries": (), "worlds": ("rng",)
        }[field]  # fmt: skip
        self._foreign: dict[str, tuple[Any, Registered]] = {}

    @property
    def ours(self) -> Mapping[str, Registered]:
        """Those of the package."""
        return _ours(self._kind, self._field, self._reserved)

    def find(self, name: str) -> Registered | None:
        """Return what a name means, if it means anything for this kind; `ForeignError` says why it
        cannot be imported, or is something else."""
        if name in self.ours:
            return self.ours[name]
        place = place_of(self._field, name)
        if place is None:
            return None
        value = loaded(place)
        if self._kind not in _kinds(self._field, value, name):
            return None
        if name not in self._foreign or self._foreign[name][0] is not value:
            found = replace(
                registered(value, self._reserved), name=name, module=place.module,
                package=package_of(place.module),
            )  # fmt: skip
            if self._field == "adversaries" and inspect.isfunction(value):
                found = _function(value, found)
            self._foreign[name] = value, found
        return self._foreign[name][1]

    def __getitem__(self, name: str) -> Registered:
        found = self.find(name)
        if found is None:
            raise KeyError(name)
        return found

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and self.find(name) is not None
        except ForeignError:
            return False

    def __iter__(self) -> Iterator[str]:
        others = {entry.name for entry in offered(self._field)} - self.ours.keys()
        return iter(sorted([*self.ours, *(name for name in others if name in self)]))

    def __len__(self) -> int:
        return len(list(iter(self)))


@cache
def known(kind: Kind, field: Field) -> Known:
    """Return what experiments of a kind can name in a field, by name."""
    return Known(kind, field)


@cache
def _ours(kind: Kind, field: Field, reserved: tuple[str, ...]) -> Mapping[str, Registered]:
    module, function = _LISTED[kind, field]
    found = getattr(import_module(module), function)() if function else _functions(module)
    return MappingProxyType({name: registered(found[name], reserved) for name in sorted(found)})


def _kinds(field: Field, value: Any, name: str) -> tuple[Kind, ...]:
    """For whom somebody's class or function is, or a `ForeignError`."""
    bases: list[tuple[Kind, type]] = []
    what = "a function that returns a LayeredMDP"
    if field == "learners":
        from unbounded.learners.mdp import MDPLearner  # a bandit should not wait for it

        bases = [("bandits", Learner), ("MDPs", MDPLearner)]
        what = "a class below PythonLearner or PythonMDPLearner, or a compiled learner"
    elif field == "adversaries":
        bases = [("bandits", Adversary), ("MDPs", MDPAdversary)]
        what = "a class below Adversary or MDPAdversary, or a function (t, last_arm, q, rng)"
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        if inspect.isfunction(value):
            parameters = inspect.signature(value).parameters.values()
            names = [parameter.name for parameter in parameters if parameter.kind in positional]
            if len(names) == 4:
                told: dict[str, tuple[Kind, ...]] = {"last_arm": ("bandits",), "last": ("MDPs",)}
                return told.get(names[1], ("bandits", "MDPs"))
    elif inspect.isfunction(value) and "t" not in inspect.signature(value).parameters:
        return ("MDPs",)  # and not an adversary, which has the round t
    cls = value if inspect.isclass(value) else object
    found = tuple(kind for kind, base in bases if issubclass(cls, base))
    if not found:
        raise ForeignError(f"{name} is not one of the {field}: it must be {what}")
    return found


def _function(function: Any, found: Registered) -> Registered:
    """An adversary that is a function: its settings are what follows t, last_arm, q and rng."""
    own = list(found.parameters.items())[4:]
    return replace(found, cls=partial(partial, function), parameters=MappingProxyType(dict(own)))


# Imported when they are asked for: a worker that plays bandits need not wait for MDPs.
_LISTED: Mapping[tuple[Kind, Field], tuple[str, str]] = {
    ("bandits", "learners"): ("unbounded.bandits", "algorithms"),
    ("bandits", "adversaries"): ("unbounded.adversaries.bandits", "adversaries"),
    ("MDPs", "learners"): ("unbounded.mdps", "algorithms"),
    ("MDPs", "adversaries"): ("unbounded.adversaries.mdps", "adversaries"),
    ("MDPs", "worlds"): ("unbounded.worlds", ""),  # its own public functions
}


def _functions(module: str) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(import_module(module)).items()
        if inspect.isfunction(value) and value.__module__ == module and not name.startswith("_")
    }


def our_names() -> dict[Field, set[str]]:
    """Return the names of the package itself, by field."""
    found: dict[Field, set[str]] = {field: set() for field in FAMILIES["MDPs"]}
    for kind, fields in FAMILIES.items():
        for field in fields:
            found[field] |= known(kind, field).ours.keys()
    return found


def broken() -> list[str]:
    """Of the names that installed packages offer, those that cannot be used, and why."""
    found = []
    for field in FAMILIES["MDPs"]:
        for entry in offered(field):
            where = f"{entry.name} of the {field} ({entry.value})"
            try:
                ours = any(
                    entry.name in known(kind, field).ours
                    for kind in FAMILIES
                    if field in FAMILIES[kind]
                )
                if ours:
                    found.append(f"{where} is hidden by the package's own; say {entry.value!r}")
                else:
                    _kinds(field, loaded(Place(entry.module, entry.attr)), entry.value)
                    place_of(field, entry.name)
            except ForeignError as error:
                found.append(f"{where} cannot be used: {error}")
    return found


def title(kind: Kind, field: Field) -> str:
    """Name a field where both kinds are listed: "adversaries for MDPs"."""
    return field if kind == "bandits" or field == "worlds" else f"{field} for {kind}"


def world(name: str, settings: Mapping[str, Any]) -> LayeredMDP:
    """Return the world that an experiment names."""
    builder, given = known("MDPs", "worlds")[name], dict(settings)
    if "rng" in inspect.signature(builder.cls).parameters:
        given["rng"] = np.random.default_rng(given.pop("seed", 0))
    elif "seed" in builder.parameters:
        given.setdefault("seed", builder.parameters["seed"].default)
    mdp: LayeredMDP = builder.cls(**given)
    if builder.package and not hasattr(mdp, "layers"):
        raise TypeError(f"{name} must return a LayeredMDP, got {type(mdp).__name__}")
    return mdp


def mdp_learner(
    name: str, settings: Mapping[str, Any], mdp: LayeredMDP, episodes: int, *, start: bool = True
) -> MDPLearner:
    """Return the learner that an experiment names, for an MDP and a number of episodes.

    With ``start=False`` its arguments are checked and no more: nothing is compiled for it.
    """
    learner = known("MDPs", "learners")[name]
    told = None if "episodes" in learner.parameters else episodes  # its own, or those of the run
    given = arguments_for(learner.cls, mdp, told, settings)
    cls = learner.cls
    if not start and not cls.spec.in_python:
        cls = type(cls.__name__, (cls,), {"_start": lambda *_: None})
    made: MDPLearner = cls(**given, seed=0)
    return made


def short(name: str) -> str:
    """Return the last part of a name from elsewhere: "Mine" of "mypackage.module:Mine"."""
    return name.rpartition(":")[2]


def without_true(settings: Mapping[str, Any], told: Any = (0.0, 1.0)) -> dict[str, Any]:
    """Return ``settings`` with ``told`` for a ``loss_range`` that is to be the true one."""
    if settings.get("loss_range") == TRUE:
        return {**settings, "loss_range": told}
    return dict(settings)


def nearest(word: Any, valid: Iterable[str]) -> str:
    """The end of a sentence about a wrong ``word``: what is valid, and the most similar of it."""
    names = list(valid)
    if not names:
        return "it has no settings"

    def likeness(name: str) -> float:
        return difflib.SequenceMatcher(None, str(word)[:200].lower(), name.lower()).ratio()

    listed = f"(valid: {', '.join(names)})"
    if word is None:
        return listed
    return f"the nearest valid one is {max(names, key=likeness)!r} {listed}"
