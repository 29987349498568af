"""Short names for learners, adversaries and worlds: only the settings that tell them apart."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from unbounded.experiments.grid import Described
from unbounded.experiments.names import short
from unbounded.experiments.registered import Registered

_LONGEST = 28  # a value that would make a name hard to read

Variant = tuple[str, str]
"""A name, and all of its settings as JSON."""

Known = Mapping[str, Registered | Described]
"""Labels for the names of one family; others are shown as they are."""


def short_names(variants: Sequence[Variant], known: Known) -> dict[Variant, str]:
    """Names for adversaries or worlds: with the settings that others of the class have otherwise,
    where they are not the default. One that has nothing but defaults is named by them, and numbers
    have three digits, where that tells the names apart.
    """
    rounded, exact = (
        _named(variants, known, _differ, text, default=True) for text in (about, brief)
    )
    names = list(rounded.values())
    return {each: name if names.count(name) == 1 else exact[each] for each, name in rounded.items()}


def _differ(value: Any, alike: list[Any]) -> bool:
    return any(other != value for other in alike)


def learner_names(variants: Sequence[Variant], known: Known) -> dict[Variant, str]:
    """Names for the learners of a section: with all settings that are not the default, so that a
    name means the same everywhere. Only switches that a whole class has on are left out.
    """
    return _named(
        variants,
        known,
        lambda value, alike: not isinstance(value, bool) or _differ(value, alike),
        brief,
        default=False,
    )


def _named(
    variants: Sequence[Variant],
    known: Known,
    wanted: Callable[[Any, list[Any]], bool],
    text_of: Callable[[Any], str],
    *,
    default: bool,
) -> dict[Variant, str]:
    settings = {variant: settings_of(variant[1]) for variant in variants}
    called = _called({name for name, _ in variants})
    names = {}
    for variant, own in settings.items():
        others = [settings[other] for other in settings if other[0] == variant[0]]
        usual = as_stored(known[variant[0]].defaults) if variant[0] in known else {}
        parts: list[str] = []
        usually: list[str] = []
        for key, value in own.items():
            alike = [other.get(key) for other in others]
            if not wanted(value, alike):
                continue
            text = f"{key}={text_of(value)}"
            if len(text) > len(key) + 1 + _LONGEST:  # such as a program: by its number
                distinct = [one for i, one in enumerate(alike) if one not in alike[:i]]
                text = f"{key} {distinct.index(value) + 1}"
            (usually if key in usual and usual[key] == value else parts).append(text)
        shown = parts or (usually if default else [])
        names[variant] = " ".join([called[variant[0]], ", ".join(shown)]).strip()
    return names


def _called(names: set[str]) -> dict[str, str]:
    """The last parts of names from elsewhere, ``package.module:Name``, where that is enough."""
    lasts = [short(name) for name in names]
    return {name: short(name) if lasts.count(short(name)) == 1 else name for name in names}


def as_stored(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as they come back from JSON: it has lists and no tuples."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in settings.items()}


def settings_of(text: str | None) -> dict[str, Any]:
    """Return settings from their JSON."""
    return json.loads(text) if text else {}


def brief(value: Any) -> str:
    """Return a value of a setting, for people."""
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


def about(value: Any) -> str:
    """Return the same, with three digits of each number that is not whole, or is huge."""
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 1e6
        return brief(value if whole else float(f"{value:.3g}"))
    if isinstance(value, list | tuple):
        return f"[{', '.join(about(one) for one in value)}]"
    return brief(value)


_PAGES = {
    "docs/theory/ada-inf.md": "AdaINF: losses of either sign",
    "docs/theory/one-sided-mdp.md": "One-sided clipping in MDPs",
    "docs/theory/one-sided.md": "One-sided clipping: costs",
    "docs/theory/range-clipping.md": "Range clipping",
}


def cited(reference: str) -> str:
    """Return a reference with the titles of our pages in place of their files."""
    for path, title in _PAGES.items():
        reference = reference.replace(path, f"documentation, “{title}”")
    return reference


def thousands(value: float) -> str:
    """Return an integer with separators: ``20,000``."""
    return f"{value:,.0f}"
