"""What can be named in an experiment, with what settings.

Everything is read off the public classes and functions: the signature, the numpydoc docstring,
and ``reference``. A new kind of thing is one more function in `FAMILIES`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np

from unbounded.adversaries import bandits as bandit_adversaries
from unbounded.bandits import algorithms

if TYPE_CHECKING:
    from unbounded.core.occupancy.mdp import LayeredMDP
    from unbounded.play.mdp_learner import MDPLearner

TRUE = "true"
"""As a learner's ``loss_range``: it is told that of the losses it will meet."""

REQUIRED = inspect.Parameter.empty
"""The default of a parameter that has none."""


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


@cache
def learners() -> Mapping[str, Registered]:
    """Every algorithm, by name.

    Examples
    --------
    >>> from unbounded.lab.names import learners
    >>> learners()["SCB"].parameters["clip"].options
    ('scale', 'range', 'none')
    """
    reserved = ("n_arms", "seed")  # the laboratory sets these itself
    return MappingProxyType({name: _describe(cls, reserved) for name, cls in algorithms().items()})


@cache
def adversaries() -> Mapping[str, Registered]:
    """Every adversary, by name.

    Examples
    --------
    >>> from unbounded.lab.names import adversaries
    >>> adversaries()["StochasticGap"].parameters["gap"].default
    0.1
    """
    found = bandit_adversaries.adversaries()
    return MappingProxyType({name: _describe(cls, ()) for name, cls in found.items()})


@cache
def mdp_learners() -> Mapping[str, Registered]:
    """Every algorithm for MDPs, by name.

    Examples
    --------
    >>> from unbounded.lab.names import mdp_learners
    >>> mdp_learners()["SCBRL"].parameters["explorer"].options
    ('mvp', 'ucbvi', 'oracle')
    """
    from unbounded import mdps  # late, as below: bandits need not wait for it

    known = {}
    for name, cls in mdps.algorithms().items():
        length = () if cls.spec.per_state else ("episodes",)
        known[name] = _describe(cls, ("layers", "n_actions", "transitions", "seed", *length))
    return MappingProxyType(known)


@cache
def mdp_adversaries() -> Mapping[str, Registered]:
    """Every adversary for MDPs, by name.

    Examples
    --------
    >>> from unbounded.lab.names import mdp_adversaries
    >>> list(mdp_adversaries()["Switch"].parameters)
    ['at', 'scale']
    """
    from unbounded.adversaries import mdps

    return MappingProxyType({name: _describe(cls, ()) for name, cls in mdps.adversaries().items()})


@cache
def worlds() -> Mapping[str, Registered]:
    """Every builder of `unbounded.worlds`, by name; ``seed`` stands for its generator.

    Examples
    --------
    >>> from unbounded.lab.names import worlds
    >>> list(worlds()["combination_lock"].parameters)
    ['horizon', 'n_actions', 'slip', 'seed']
    """
    from unbounded import worlds as builders

    seed = Parameter("seed", int, 0, "int", "Of the world; the same in every replicate.", (), 0)
    known = {}
    for name, function in sorted(vars(builders).items()):
        if inspect.isfunction(function) and function.__module__ == builders.__name__:
            described = _describe(function, ("rng",))
            if "rng" in inspect.signature(function).parameters:
                parameters = MappingProxyType({**described.parameters, "seed": seed})
                described = replace(described, parameters=parameters)
            known[name] = described
    return MappingProxyType(known)


FAMILIES: Mapping[str, Callable[[], Mapping[str, Registered]]] = MappingProxyType(
    {
        "learners": learners,
        "adversaries": adversaries,
        "learners for MDPs": mdp_learners,
        "adversaries for MDPs": mdp_adversaries,
        "worlds": worlds,
    }
)
"""Every kind of thing that an experiment names."""


def world(name: str, settings: Mapping[str, Any]) -> LayeredMDP:
    """The world that an experiment names.

    Examples
    --------
    >>> from unbounded.lab.names import world
    >>> world("dirichlet", {"sizes": [2, 3], "n_actions": 2, "seed": 5})
    LayeredMDP(sizes=(2, 3), n_actions=2)
    """
    known, given = worlds()[name], dict(settings)
    if "seed" in known.parameters:
        given["rng"] = np.random.default_rng(given.pop("seed", 0))
    mdp: LayeredMDP = known.cls(**given)
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
    known = mdp_learners()[name]
    parameters = inspect.signature(known.cls).parameters
    given = {**settings, "layers": list(mdp.layers.sizes), "n_actions": mdp.layers.n_actions}
    if "episodes" in parameters and "episodes" not in known.parameters:
        given["episodes"] = episodes
    if "transitions" in parameters and (
        parameters["transitions"].default is REQUIRED or settings.get("explorer") == "oracle"
    ):
        given["transitions"] = mdp.P
    cls = known.cls if start else type(name, (known.cls,), {"_start": lambda *_: None})
    learner: MDPLearner = cls(**given, seed=0)
    return learner


def without_true(settings: Mapping[str, Any], told: Any = (0.0, 1.0)) -> dict[str, Any]:
    """``settings`` with ``told`` for a ``loss_range`` that is to be the true one."""
    if settings.get("loss_range") == TRUE:
        return {**settings, "loss_range": told}
    return dict(settings)


def _describe(cls: Any, reserved: tuple[str, ...]) -> Registered:
    doc = inspect.getdoc(cls) or ""
    documented = _documented_parameters(doc)
    hints = get_type_hints(cls if inspect.isfunction(cls) else cls.__init__)
    parameters = {}
    for parameter in inspect.signature(cls).parameters.values():
        if parameter.name in reserved:
            continue
        text, description = documented.get(parameter.name, ("", ""))
        annotation = hints.get(parameter.name, Any)
        parameters[parameter.name] = Parameter(
            name=parameter.name,
            annotation=annotation,
            default=parameter.default,
            text=text,
            description=description,
            options=tuple(re.findall(r'"([^"]*)"', text)) if text.startswith("{") else (),
            depth=_depth(text),
        )
    spec = getattr(cls, "spec", cls)
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
