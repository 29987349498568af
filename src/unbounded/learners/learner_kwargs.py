"""What a learner is told of the MDP that it is made for."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, SupportsIndex

if TYPE_CHECKING:
    from unbounded.core.occupancy.mdp import LayeredMDP


def arguments_for(
    cls: type, mdp: LayeredMDP, episodes: SupportsIndex | None, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """``settings`` of a class of learners, with what an MDP adds to them; or a clear error."""
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
                "as CostSCBRL does"
            )
    if episodes is not None and "episodes" in taken:
        given["episodes"] = episodes
    if "transitions" in taken and (
        taken["transitions"].default is Parameter.empty or settings.get("explorer") == "oracle"
    ):
        given["transitions"] = mdp.P
    return {**given, **settings}
