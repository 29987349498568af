"""Where references can be read: a link where the address is certain, text for the rest."""

from __future__ import annotations

import re

_ARXIV = {  # as the bibliography of Chen & Zhang 2024 has them
    "Chen & Zhang 2024": "2403.00930",
    "Chen & Zhang 2023": "2310.01756",
    "Huang, Dai & Huang 2023": "2301.10500",
    "Jin, Jin, Luo, Sra & Yu 2020": "1912.01192",
    "Zhang, Chen, Lee & Du 2023": "2307.13586",
}
_CITED = "|".join(map(re.escape, _ARXIV))
_ADDRESS = re.compile(
    rf"(?<![,&] )(?P<cited>{_CITED})(?!\d)"  # not the end of a longer list of authors
    r"|arXiv[: ](?P<arxiv>\d{4}\.\d{4,5})(?!\d)"
    r"|doi[: ]\s?(?P<doi>10\.\d{4,9}/[^\s,;\]]*[^\s,;.\]])"
    r"|(?P<plain>https?://[^\s,;\]]*[^\s,;.\])])"
)


def links(text: str) -> list[tuple[str, str]]:
    """The pieces of a reference in their order, each with its address, or with nothing.

    Examples
    --------
    >>> from unbounded.report.references import links
    >>> links("Chen & Zhang 2024, Algorithm 1")
    [('Chen & Zhang 2024', 'https://arxiv.org/abs/2403.00930'), (', Algorithm 1', '')]
    >>> links("Auer 2002")
    [('Auer 2002', '')]
    """
    pieces, end = [], 0
    for found in _ADDRESS.finditer(text):
        pieces += [(text[end : found.start()], ""), (found[0], _address(found))]
        end = found.end()
    pieces.append((text[end:], ""))
    return [piece for piece in pieces if piece[0]]


def _address(found: re.Match[str]) -> str:
    if found["plain"]:
        return found["plain"]
    if found["doi"]:
        return f"https://doi.org/{found['doi']}"
    return f"https://arxiv.org/abs/{found['arxiv'] or _ARXIV[found['cited']]}"
