"""What an experiment can name, with what settings: learners, adversaries, worlds.

Everything is read off the public classes and functions: the signature, the numpydoc docstring,
and ``reference``. `known` is the one place where a name is looked up; a name may mean one thing
for bandits and another for MDPs.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

import numpy as np

from unbounded.play.told import arguments_for

if TYPE_CHECKING:
    from unbounded.core.occupancy.mdp import LayeredMDP
    from unbounded.play.mdp_learner import MDPLearner

Kind = Literal["bandits", "MDPs"]
Field = Literal["learners", "adversaries", "worlds"]

FAMILIES: Mapping[Kind, tuple[Field, ...]] = MappingProxyType(
    {"bandits": ("learners", "adversaries"), "MDPs": ("learners", "adversaries", "worlds")}
)
"""What the experiments of each kind list by name."""

TRUE = "true"
"""As a learner's ``loss_range``: it is told that of the losses it will meet."""

REQUIRED = inspect.Parameter.empty
"""The default of a parameter that has none."""

SET_ABOVE: Mapping[str, str] = MappingProxyType(
    {
        "n_arms": "arms",
        "seed": "seed",
        "layers": "worlds",
        "n_actions": "worlds",
        "transitions": "worlds",
        "allowed": "worlds",
        "ends": "worlds",
        "episodes": "episodes",
    }
)
"""What a learner is not told by its own settings, and the key of an experiment that says it."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a registered class.

    Attributes
    ----------
    name : str
    annotation : type
        As in the signature; ``Any`` where that says nothing.
    default : object
        ``REQUIRED`` if there is none.
    text, description : str
        What the docstring says of its type, and of its meaning.
    options : tuple of str
        The valid values, if the docstring lists them: ``{"scale", "range"}``.
    depth : int
        How deep the lists of *one* value nest: 0 for a number, 1 for a pair, 2 for a matrix.
    """

    name: str
    annotation: Any
    default: Any
    text: str
    description: str
    options: tuple[str, ...]
    depth: int


_SEED = Parameter("seed", int, 0, "int", "Of the world; the same in every replicate.", (), 0)


@dataclass(frozen=True)
class Registered:
    """A class, or a function that builds a world, that an experiment can name.

    Attributes
    ----------
    name : str
        Its name.
    cls : type or function
    summary, reference : str
        The docstring's first sentence; where it was published, if anywhere.
    parameters : mapping of str to Parameter
        Those that an experiment may set.
    """

    name: str
    cls: Any
    summary: str
    reference: str
    parameters: Mapping[str, Parameter]

    @property
    def defaults(self) -> dict[str, Any]:
        """The settings that need not be given."""
        every = {name: parameter.default for name, parameter in self.parameters.items()}
        return {name: value for name, value in every.items() if value is not REQUIRED}


@cache
def known(kind: Kind, field: Field) -> Mapping[str, Registered]:
    """What experiments of a kind can name in a field, by name.

    Examples
    --------
    >>> from unbounded.lab.names import known
    >>> known("bandits", "learners")["SCB"].parameters["clip"].options
    ('range', 'scale', 'none')
    >>> known("bandits", "adversaries")["StochasticGap"].parameters["gap"].default
    0.1
    >>> list(known("MDPs", "worlds")["combination_lock"].parameters)
    ['horizon', 'n_actions', 'slip', 'seed']
    """
    module, function = _LISTED[kind, field]
    found = getattr(import_module(module), function)() if function else _functions(module)
    reserved = {"learners": tuple(SET_ABOVE), "adversaries": (), "worlds": ("rng",)}[field]
    return MappingProxyType({name: _registered(found[name], reserved) for name in sorted(found)})


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


def title(kind: Kind, field: Field) -> str:
    """What to call a field where both kinds are listed.

    Examples
    --------
    >>> from unbounded.lab.names import title
    >>> title("MDPs", "adversaries")
    'adversaries for MDPs'
    """
    return field if kind == "bandits" or field == "worlds" else f"{field} for {kind}"


def world(name: str, settings: Mapping[str, Any]) -> LayeredMDP:
    """The world that an experiment names.

    Examples
    --------
    >>> from unbounded.lab.names import world
    >>> world("dirichlet", {"sizes": [2, 3], "n_actions": 2, "seed": 5})
    LayeredMDP(sizes=(2, 3), n_actions=2)
    """
    builder, given = known("MDPs", "worlds")[name], dict(settings)
    if "seed" in builder.parameters:
        given["rng"] = np.random.default_rng(given.pop("seed", 0))
    mdp: LayeredMDP = builder.cls(**given)
    return mdp


def mdp_learner(
    name: str, settings: Mapping[str, Any], mdp: LayeredMDP, episodes: int, *, start: bool = True
) -> MDPLearner:
    """The learner that an experiment names, for a world and a number of episodes.

    With ``start=False`` its arguments are checked and no more: nothing is compiled for it.

    Examples
    --------
    >>> from unbounded.lab.names import mdp_learner, world
    >>> lock = world("combination_lock", {"horizon": 2, "n_actions": 2})
    >>> mdp_learner("SCBRL", {"clip": "scale"}, lock, 100).phase
    'exploring'
    """
    learner = known("MDPs", "learners")[name]
    told = None if "episodes" in learner.parameters else episodes  # its own, or those of the run
    given = arguments_for(learner.cls, mdp, told, settings)
    cls = learner.cls if start else type(name, (learner.cls,), {"_start": lambda *_: None})
    made: MDPLearner = cls(**given, seed=0)
    return made


def without_true(settings: Mapping[str, Any], told: Any = (0.0, 1.0)) -> dict[str, Any]:
    """``settings`` with ``told`` for a ``loss_range`` that is to be the true one."""
    if settings.get("loss_range") == TRUE:
        return {**settings, "loss_range": told}
    return dict(settings)


def nearest(word: Any, valid: Iterable[str]) -> str:
    """The end of a sentence about a wrong ``word``: what is valid, and the most similar of it.

    Examples
    --------
    >>> from unbounded.lab.names import nearest
    >>> nearest("rage", ["scale", "range"])
    "the nearest valid one is 'range' (valid: scale, range)"
    """
    names = list(valid)
    if not names:
        return "it has no settings"

    def likeness(name: str) -> float:
        return difflib.SequenceMatcher(None, str(word)[:200].lower(), name.lower()).ratio()

    listed = f"(valid: {', '.join(names)})"
    if word is None:
        return listed
    return f"the nearest valid one is {max(names, key=likeness)!r} {listed}"


def _registered(cls: Any, reserved: tuple[str, ...]) -> Registered:
    """A class or a builder, with the settings that are not ``reserved``."""
    doc = inspect.getdoc(cls) or ""
    documented = _documented_parameters(doc)
    hints = get_type_hints(cls if inspect.isfunction(cls) else cls.__init__)
    spec = getattr(cls, "spec", cls)
    signature = inspect.signature(cls).parameters
    optional = "episodes" in signature and signature["episodes"].default is not REQUIRED
    # Those for a state, or what rates may be tuned for: not those of the run.
    own = ("episodes",) if getattr(spec, "per_state", False) or optional else ()
    parameters = {}
    for name, parameter in signature.items():
        if name in reserved and name not in own:
            continue
        text, description = documented.get(name, ("", ""))
        parameters[name] = Parameter(
            name=name,
            annotation=hints.get(name, Any),
            default=parameter.default,
            text=text,
            description=description,
            options=tuple(re.findall(r'"([^"]*)"', text)) if text.startswith("{") else (),
            depth=_depth(text),
        )
    if "rng" in reserved and "rng" in signature:  # where the builder has a generator
        parameters["seed"] = _SEED
    return Registered(
        name=cls.__name__,
        cls=cls,
        summary=doc.partition("\n\n")[0].replace("\n", " "),
        reference=getattr(spec, "reference", ""),
        parameters=MappingProxyType(parameters),
    )


def _depth(text: str) -> int:
    """From "(float, float)" 1, from "array_like of shape (rounds, n_arms)" 2, otherwise 0."""
    shape = re.search(r"of shape \(([^)]*)\)", text)
    if shape:
        return len([axis for axis in shape[1].split(",") if axis.strip()])
    return int(text.startswith(("(", "sequence", "list", "tuple")))


def _documented_parameters(doc: str) -> dict[str, tuple[str, str]]:
    """name -> (type, description), from a numpydoc section "Parameters"."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}\n|\Z)", doc, re.M | re.S)
    found: dict[str, tuple[str, str]] = {}
    if not section:
        return found
    entries = re.finditer(
        r"^(\S[^\n:]*?) *: *([^\n]*)\n((?:[ \t]+[^\n]*\n?|\n)*)", section[1], re.M
    )
    for names, text, body in (entry.groups() for entry in entries):
        for name in names.split(","):
            found[name.strip()] = (text.strip(), " ".join(body.split()))
    return found
