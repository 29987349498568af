"""What can be named in an experiment, with what settings.

Everything is read off the public classes: the constructor's signature, the numpydoc docstring,
and ``reference``. A new kind of thing, such as MDP worlds, is one more function in `FAMILIES`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, get_type_hints

from unbounded import adversaries as _adversaries
from unbounded.adversaries import Adversary
from unbounded.bandits import algorithms

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
    """A class that an experiment can name.

    Attributes
    ----------
    name : str
        The name of the class.
    cls : type
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
    >>> from unbounded.registry import learners
    >>> learners()["SCB"].parameters["clip"].options
    ('scale', 'range')
    """
    reserved = ("n_arms", "seed")  # the laboratory sets these itself
    return MappingProxyType({name: _describe(cls, reserved) for name, cls in algorithms().items()})


@cache
def adversaries() -> Mapping[str, Registered]:
    """Every adversary, by name.

    Examples
    --------
    >>> from unbounded.registry import adversaries
    >>> adversaries()["StochasticGap"].parameters["gap"].default
    0.1
    """
    public = {name: getattr(_adversaries, name) for name in sorted(_adversaries.__all__)}
    return MappingProxyType(
        {name: _describe(cls, ()) for name, cls in public.items() if cls is not Adversary}
    )


FAMILIES: Mapping[str, Callable[[], Mapping[str, Registered]]] = MappingProxyType(
    {"learners": learners, "adversaries": adversaries}
)
"""Every kind of thing that an experiment names."""


def _describe(cls: Any, reserved: tuple[str, ...]) -> Registered:
    doc = inspect.getdoc(cls) or ""
    documented = _documented_parameters(doc)
    hints = get_type_hints(cls.__init__)
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
