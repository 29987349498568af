"""Short names for learners, adversaries and worlds: only the settings that tell them apart."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from unbounded.lab.names import short
from unbounded.lab.registered import Registered

_LONGEST = 28  # a value that would make a name hard to read

Variant = tuple[str, str]
"""A name, and all of its settings as JSON."""

Known = Mapping[str, Registered]
"""What the laboratory knows of the names of one family; others are shown as they are."""


def short_names(variants: Sequence[Variant], known: Known) -> dict[Variant, str]:
    """Names for adversaries or worlds: with the settings that others of the class have otherwise,
    where they are not the default.

    Examples
    --------
    >>> from unbounded.lab.names import known
    >>> from unbounded.report.labels import short_names
    >>> variants = [("StochasticGap", '{"gap":0.2,"scale":1.0}'),
    ...             ("StochasticGap", '{"gap":0.2,"scale":1e6}')]
    >>> short_names(variants, known("bandits", "adversaries")).values()
    dict_values(['StochasticGap', 'StochasticGap scale=1e6'])
    """
    return _named(variants, known, lambda value, alike: any(other != value for other in alike))


def learner_names(variants: Sequence[Variant], known: Known) -> dict[Variant, str]:
    """Names for the learners of a section: with all settings that are not the default, so that a
    name means the same everywhere. Only switches that a whole class has on are left out.

    Examples
    --------
    >>> from unbounded.lab.names import known
    >>> from unbounded.report.labels import learner_names
    >>> variants = [("SCB", '{"profile":"practical"}'), ("Exp3IX", '{"rounds":null}'),
    ...             ("SCB", '{"profile":"paper","rate":2.0}')]
    >>> learner_names(variants, known("bandits", "learners")).values()
    dict_values(['SCB', 'Exp3IX', 'SCB profile=paper, rate=2'])
    """
    return _named(
        variants,
        known,
        lambda value, alike: not isinstance(value, bool) or any(other != value for other in alike),
    )


def _named(
    variants: Sequence[Variant], known: Known, wanted: Callable[[Any, list[Any]], bool]
) -> dict[Variant, str]:
    settings = {variant: settings_of(variant[1]) for variant in variants}
    called = _called({name for name, _ in variants})
    names = {}
    for variant, own in settings.items():
        others = [settings[other] for other in settings if other[0] == variant[0]]
        usual = as_stored(known[variant[0]].defaults) if variant[0] in known else {}
        parts = []
        for key, value in own.items():
            alike = [other.get(key) for other in others]
            if (key in usual and usual[key] == value) or not wanted(value, alike):
                continue
            text = brief(value)
            if len(text) > _LONGEST:  # such as a program: by its number
                distinct = [one for i, one in enumerate(alike) if one not in alike[:i]]
                parts.append(f"{key} {distinct.index(value) + 1}")
            else:
                parts.append(f"{key}={text}")
        names[variant] = " ".join([called[variant[0]], ", ".join(parts)]).strip()
    return names


def _called(names: set[str]) -> dict[str, str]:
    """The last parts of names from elsewhere, ``package.module:Name``, where that is enough."""
    lasts = [short(name) for name in names]
    return {name: short(name) if lasts.count(short(name)) == 1 else name for name in names}


def as_stored(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as they come back from JSON: it has lists and no tuples."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in settings.items()}


def settings_of(text: str | None) -> dict[str, Any]:
    """Settings from their JSON."""
    return json.loads(text) if text else {}


def brief(value: Any) -> str:
    """A value of a setting, for people."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, float):
        short = f"{value:g}"
        if float(short) != value:  # two settings must not get one name
            short = repr(value)
        return short.replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    if isinstance(value, list | tuple):
        return f"[{', '.join(brief(one) for one in value)}]"
    return str(value)


def thousands(value: float) -> str:
    """A whole number with separators: ``20,000``."""
    return f"{value:,.0f}"
