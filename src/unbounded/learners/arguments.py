"""The arguments of a learner's constructor: noted, kept as settings, and given again."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache, wraps
from inspect import Parameter, Signature, cleandoc, formatannotation, signature
from numbers import Real
from operator import index
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, TypeVar, cast

import numpy as np

from unbounded.learners.available import distinct
from unbounded.learners.tickets import Issuer
from unbounded.validation import ArgumentTypeError, shown

if TYPE_CHECKING:
    from unbounded.core.occupancy.mdp import LayeredMDP


# What other libraries call it, and what it is called here.
_LOGS = ("fit", "partial_fit", "train")
_TELLS = ("update", "observe", "learn", "add", "learn_one")
_ASKS = (
    "predict", "pull", "select", "select_arm", "select_action", "choose", "act", "get_action",
    "step", "sample", "play",
)  # fmt: skip
_SHOWS = ("predict_proba", "best_arm")
_ARGUMENTS = {
    **dict.fromkeys(("random_state", "rng", "random_seed"), ("seed",)),
    **dict.fromkeys(("k", "K", "arms", "num_arms", "n_bandits", "n_choices"), ("n_arms",)),
    **dict.fromkeys(("num_actions", "actions", "n_actions"), ("n_actions", "n_arms")),
    **dict.fromkeys(("T", "n_rounds", "n_steps"), ("rounds", "episodes")),
    **dict.fromkeys(("n_replicates", "n_runs", "runs", "repeats"), ("replicates",)),
    **dict.fromkeys(("sizes", "n_states"), ("layers",)),
    "horizon": ("rounds", "layers"),
    "n_episodes": ("episodes",),
    "n_jobs": ("workers",),
    "rewards": ("reward",),
}
F = TypeVar("F", bound=Callable[..., Any])


class Elsewhere:
    """The name of a method of other libraries, which is not there and says what to call instead."""

    def __init__(self, name: str, instead: str) -> None:
        self._name, self._instead = name, instead

    def __get__(self, instance: object, owner: type) -> Any:
        said = f"{owner.__name__!r} object has no attribute {self._name!r}: {self._instead}"
        raise AttributeError(said, name=self._name, obj=instance)


def name_elsewhere(cls: type, plays: str, log: str = "", shows: str = "") -> None:
    """Let a class say how it ``plays`` where the methods of other libraries are looked for."""
    for names, more in ((_LOGS, log), (_TELLS, ""), (_ASKS, shows), (_SHOWS, shows)):
        for name in names:  # `__getattr__` would make every access slower
            setattr(cls, name, Elsewhere(name, plays + more))


def reject_other_names(called: str, takes: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise if an argument was ``given`` by the name that it has in other libraries."""
    for name in given.keys() - takes.keys():
        here = next((one for one in _ARGUMENTS.get(name, ()) if one in takes), None)
        if here is not None:
            also = ", which takes their names too" if name == "arms" else ""
            raise TypeError(f"{called}() takes {here}=, not {name}={also}")


def in_our_words(function: F) -> F:
    """Let a function say what an argument of another library is called here."""
    takes = signature(function).parameters

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        reject_other_names(function.__name__, takes, kwargs)
        return function(*args, **kwargs)

    return cast(F, called)


class Repeatable(ABC):
    """What says by which arguments it was made; `sklearn.base.clone` takes it, too."""

    @abstractmethod
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments that make an equal fresh one, the seed included.

        Parameters
        ----------
        deep : bool
            Of no effect: no argument has parameters of its own.
        """

    def clone(self) -> Self:
        """Return a fresh one, made by the same arguments."""
        return type(self)(**self.get_params())

    def __sklearn_clone__(self) -> Self:
        return self.clone()


def with_number(learner: Any, takes: Signature, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Let a learner know the names that are given as ``n_arms``, and return the arguments with
    their number instead.
    """
    if list(takes.parameters)[1:2] != ["n_arms"]:
        return args, kwargs
    given = args[0] if args else kwargs.get("n_arms")
    if isinstance(given, np.ndarray) and given.ndim == 1:
        given = given.tolist()
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        return args, kwargs
    if given and not any(isinstance(name, str) for name in given):
        said = f"must be a number of arms, or names of arms (text), not {shown(given)}"
        raise ArgumentTypeError("n_arms", said)
    names = distinct(given)
    learner._identity = Issuer.of("", names)
    if args:
        return (len(names), *args[1:]), kwargs
    return args, {**kwargs, "n_arms": len(names)}


def note_arguments(learner: Any, init: Signature, args: Any, kwargs: Any) -> None:
    """Let a learner know the arguments of its constructor, and which differ from their defaults."""
    bound = init.bind(learner, *args, **kwargs)
    bound.apply_defaults()
    given = dict(list(bound.arguments.items())[1:])
    given.pop("seed", None)
    learner._arguments = given
    learner._named = tuple(n for n in given if _differs(given[n], init.parameters[n].default))


@lru_cache(maxsize=256)
def real_arguments(init: Any) -> frozenset[str]:
    """Return the constructor's arguments whose annotation is ``float``, or has it among others."""
    annotations = {n: formatannotation(p.annotation) for n, p in signature(init).parameters.items()}
    return frozenset(n for n, text in annotations.items() if "float" in re.split(r"[\s|']+", text))


def _differs(value: Any, default: Any) -> bool:
    same = value is default or (type(value) is type(default) and np.array_equal(value, default))
    return not same


def with_sections(doc: str, parameters: str, example: str) -> str:
    """Return a docstring with these parameters before its own, and with this example, if any."""
    doc, title = cleandoc(doc), "Parameters\n----------\n"
    if parameters and title in doc:
        doc = doc.replace(title, f"{title}{parameters}\n", 1)
    elif parameters:
        found = [doc.find(f"\n{section}\n---") for section in ("Attributes", "Notes", "Examples")]
        before = min((at for at in found if at >= 0), default=len(doc))
        doc = f"{doc[:before].rstrip()}\n\n{title}{parameters}\n{doc[before:]}".rstrip()
    return f"{doc}\n\nExamples\n--------\n{example}" if example else doc


def noting(init: Any) -> Any:
    """Return a constructor that notes its arguments, if it is that of the algorithm's own class."""
    takes = signature(init)

    @wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 # it is one
        own: Any = next((c for c in type(self).__mro__ if "spec" in vars(c)), None)
        if own is not None and own.__init__ is __init__:
            reject_other_names(type(self).__name__, takes.parameters, kwargs)
            args, kwargs = with_number(self, takes, args, kwargs)
            with suppress(TypeError):  # which Python says better
                note_arguments(self, takes, args, kwargs)
        init(self, *args, **kwargs)

    return __init__


def plain(value: Any, *, real: bool = False) -> Any:
    """Return a setting as `save` has it: JSON knows neither tuples nor NumPy's numbers.

    A number is a float where it may be ``real``.
    """
    if value is None or type(value) in {bool, str}:
        return value
    if isinstance(value, np.floating) or (real and isinstance(value, Real)):
        return float(value)
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, SupportsIndex):
        return index(value)
    return float(value) if isinstance(value, Real | Decimal) else value


def check_mdp(mdp: object) -> None:
    """Reject what is no `LayeredMDP`, as an array of transitions."""
    if not hasattr(mdp, "layers"):
        must = "must be a LayeredMDP, which LayeredMDP.from_arrays makes of arrays"
        raise ArgumentTypeError("mdp", f"{must}; got {shown(mdp)}")


def arguments_for(
    cls: type, mdp: LayeredMDP, episodes: SupportsIndex | None, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """``settings`` of a class of learners, with what an MDP adds to them; or a clear error."""
    check_mdp(mdp)
    layers, taken = mdp.layers, signature(cls).parameters
    given: dict[str, Any] = {"layers": list(layers.sizes), "n_actions": layers.n_actions}
    allowed = [table.tolist() for table in layers.allowed] if layers.n_forbidden else None
    if "known" in taken:
        known: dict[str, Any] = {"allowed": allowed, "ends": layers.ends}
        if settings.get("explorer") == "oracle":
            known["transitions"] = mdp.P
        given["known"] = known | dict(settings.get("known") or {})
        settings = {name: value for name, value in settings.items() if name != "known"}
    for name, value in {"allowed": allowed, "ends": layers.ends}.items():
        if name in taken:
            given[name] = value
        elif value and "known" not in taken:
            raise TypeError(
                f"{cls.__name__} takes no {name}=, and cannot play where episodes end early or "
                "where some actions are not allowed: choose one that takes allowed= and ends=, "
                "as CostSCBRL does; a class of yours takes both and passes them on"
            )
    if episodes is not None and "episodes" in taken:
        given["episodes"] = episodes
    if "transitions" in taken and (
        taken["transitions"].default is Parameter.empty or settings.get("explorer") == "oracle"
    ):
        given["transitions"] = mdp.P
    return {**given, **settings}
