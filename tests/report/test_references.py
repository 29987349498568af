"""References as links: what has an address that is certain."""

from __future__ import annotations

import pytest

pytest.importorskip("polars")

from unbounded.experiments.names import known
from unbounded.report.page import links


def linked(text: str) -> dict[str, str]:
    return {piece: address for piece, address in links(text) if address}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Zhang 2023, arXiv 2307.13586", {"arXiv 2307.13586": "https://arxiv.org/abs/2307.13586"}),
        ("as arXiv:1912.01192.", {"arXiv:1912.01192": "https://arxiv.org/abs/1912.01192"}),
        ("doi:10.1000/a-b_1.", {"doi:10.1000/a-b_1": "https://doi.org/10.1000/a-b_1"}),
        ("(see https://example.org/a.pdf), p. 3",
         {"https://example.org/a.pdf": "https://example.org/a.pdf"}),
        ("docs/theory/one-sided.md", {}),
        ("Wang, Chen & Zhang 2024; Chen & Zhang 20241; arXiv 12.3; javascript:alert(1)", {}),
        ("", {}),
    ],
)  # fmt: skip
def test_links(text, expected):
    assert linked(text) == expected
    assert "".join(piece for piece, _ in links(text)) == text


@pytest.mark.parametrize("kind", ["bandits", "MDPs"])
def test_learners_of_the_paper_have_links(kind):
    for name, registered in known(kind, "learners").items():
        cites = "Chen & Zhang 20" in registered.reference
        assert bool(linked(registered.reference)) >= cites, name
    assert any(linked(one.reference) for one in known(kind, "learners").values())
    assert not all(linked(one.reference) for one in known(kind, "learners").values())
