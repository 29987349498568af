"""What a public class or function says of itself: its settings, what they mean, its reference.

Names, options and defaults are those of the signature; the numpydoc docstring is for people.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from numpy.typing import ArrayLike

import unbounded
from unbounded.validation import Nested

REQUIRED = inspect.Parameter.empty
"""The default of a parameter that has none."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a registered class."""

    name: str
    annotation: Any  # as in the signature; ``Any`` where that says nothing
    default: Any  # ``REQUIRED`` if there is none
    text: str  # what the docstring says of its type
    description: str  # ... and of its meaning
    options: tuple[str, ...]  # the valid values, if the annotation is a ``Literal``
    depth: int  # how deep the lists of *one* value nest: 0 for a number, 2 for a matrix


_SEED = Parameter("seed", int, 0, "int", "Of the world; the same in every replicate.", (), 0)


@dataclass(frozen=True)
class Registered:
    """A class, or a function that builds an MDP, that an experiment can name."""

    name: str  # what experiments call it
    cls: Any  # makes one from its settings
    summary: str  # the docstring's first sentence
    reference: str  # where it was published, if anywhere
    parameters: Mapping[str, Parameter]  # those that an experiment may set
    module: str  # where it is defined
    package: str = ""  # where it comes from, if it is not of this package

    @property
    def origin(self) -> str:
        """Where it comes from, for people, if it is not of this package."""
        return f"{self.module} of {self.package}" if self.package else ""

    @property
    def defaults(self) -> dict[str, Any]:
        """The settings that need not be given."""
        every = {name: parameter.default for name, parameter in self.parameters.items()}
        return {name: value for name, value in every.items() if value is not REQUIRED}


def registered(cls: Any, reserved: tuple[str, ...]) -> Registered:
    """Return a class or a builder, with the settings that are not ``reserved``."""
    doc = inspect.getdoc(cls) or ""
    documented: dict[str, tuple[str, str]] = {}
    for one in reversed(getattr(cls, "__mro__", (cls,))):  # what its base documents in its place
        for name, entry in _documented_parameters(one).items():
            elsewhere = re.search(r"see `(\w+)`", entry[0])
            if elsewhere is None:
                documented[name] = entry
            elif name not in documented:
                other = getattr(unbounded, elsewhere[1], None)
                documented[name] = _documented_parameters(other).get(name, entry)
    try:
        made = cls if inspect.isfunction(cls) else cls.__init__
        hints = get_type_hints(made, include_extras=True)
    except Exception:  # somebody's annotations may mean nothing at run time
        hints = {}
    spec = getattr(cls, "spec", cls)
    signature = inspect.signature(cls).parameters
    optional = "episodes" in signature and signature["episodes"].default is not REQUIRED
    optional = optional and not getattr(spec, "told_episodes", True)
    # Those for a state, or what rates may be tuned for: not those of the run.
    own = ("episodes",) if getattr(spec, "per_state", False) or optional else ()
    parameters = {}
    for name, parameter in signature.items():
        if name in reserved and name not in own:
            continue
        text, description = documented.get(name, ("", ""))
        annotation = hints.get(name, Any)
        annotated = "" if annotation is Any else inspect.formatannotation(annotation)
        depth = _lists_in(parameter.default) if annotation is Any else _nesting(annotation)
        parameters[name] = Parameter(
            name, annotation, parameter.default, text or annotated, description,
            _options(annotation), depth,
        )  # fmt: skip
    if "rng" in reserved:  # a builder of MDPs
        seed = signature["seed"].default if "seed" in signature else REQUIRED
        if "rng" in signature or ("seed" in signature and seed in (None, REQUIRED)):
            parameters["seed"] = _SEED
    return Registered(
        name=cls.__name__,
        cls=cls,
        summary=doc.partition("\n\n")[0].replace("\n", " "),
        reference=getattr(spec, "reference", ""),
        parameters=MappingProxyType(parameters),
        module=cls.__module__,
    )


def _options(annotation: Any) -> tuple[str, ...]:
    """Return the values of a ``Literal``, also of one that may be None."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(one for part in get_args(annotation) for one in _options(part))


def _lists_in(value: Any) -> int:
    """Return how deep the lists of a default nest, of an argument that has no annotation."""
    return 1 + max(map(_lists_in, value), default=0) if isinstance(value, list | tuple) else 0


def _nesting(annotation: Any) -> int:
    """Return how deep lists of one value nest: from list[float] 1, from `Nested` its depth."""
    parts = get_args(annotation)
    if get_origin(annotation) is Annotated:
        return next((one.depth for one in parts[1:] if isinstance(one, Nested)), _nesting(parts[0]))
    if annotation == ArrayLike:
        return 1
    if get_origin(annotation) in (Union, UnionType):
        return min(_nesting(part) for part in parts if part is not NoneType)
    if get_origin(annotation) not in (list, tuple, Sequence):
        return 0
    return 1 + max(map(_nesting, parts), default=0)


def _documented_parameters(cls: Any) -> dict[str, tuple[str, str]]:
    """name -> (type, description), from the section "Parameters" of a docstring."""
    doc = inspect.getdoc(cls) or ""
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
