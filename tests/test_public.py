"""What `import unbounded` offers."""

from __future__ import annotations

import pytest

import unbounded
from unbounded import bandits, mdps


@pytest.mark.parametrize("name", [*bandits.algorithms(), *mdps.algorithms()])
def test_every_learner_is_public(name: str) -> None:
    assert name in unbounded.__all__, (
        f"{name} was found in its package: import it in unbounded/__init__.py and name it in "
        "__all__, so that people can too"
    )


@pytest.mark.parametrize("name", unbounded.__all__)
def test_what_is_named_is_there(name: str) -> None:
    assert getattr(unbounded, name).__name__ == name


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        unbounded.Nothing  # noqa: B018
