"""A report as one HTML page that needs nothing else: no network, no library, no font.

Text is escaped here; numbers travel as JSON and are drawn by the scripts in ``web``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from urllib.parse import quote

import msgspec

from unbounded.experiments.grid import versions
from unbounded.report.model import Chart, Report, Section

# Nothing may be loaded, whatever a name or a claim contains.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


# One function, in this order.
_SCRIPTS = ("basics.js", "curves.js", "tables.js", "saves.js", "page.js")


_REGRET = (
    "Regret is how much more a learner has paid than the best fixed arm (in an MDP, the best fixed "
    "policy) would have paid in the same rounds."
)


def _web(name: str) -> str:
    return (files("unbounded.report") / "web" / name).read_text(encoding="utf-8")


def html(report: Report, *, every: float | None = None, figures: Sequence[str] = ()) -> str:
    """The page; it loads itself again after ``every`` seconds, if that is given, and links to the
    ``figures`` that lie beside it."""
    style = _web("page.css")
    script = "\n".join(['"use strict";', "(() => {", *map(_web, _SCRIPTS), "})();"])
    several = len(report.sections) > 1
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "" if every is None else f'<meta http-equiv="refresh" content="{every:g}">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(report.title)}</title>",
        f"<style>{style}</style></head><body>",
        '<header class="top">',
        f"<h1>{escape(report.title)}</h1>" if several else "",
        _contents(report.sections) if several else "",
        "</header><main>",
        "<noscript><p class=warning>The charts of this page are drawn by its script, which is "
        "switched off.</p></noscript>",
        *(
            _section(section, i, "h2" if several else "h1")
            for i, section in enumerate(report.sections)
        ),
        _figures(figures) if figures else "",
        "</main>",
        f"<footer>Made by {escape(versions())}.</footer>",
        f'<script type="application/json" id="report-data">{embedded(report)}</script>',
        f"<script>{script}</script>",
        "</body></html>\n",
    ]
    return "\n".join(part for part in parts if part)


def embedded(report: Report) -> str:
    """Return the charts as JSON that cannot end the element that it stands in."""
    document = {
        "learners": report.learners,
        "looks": report.looks,
        "links": _addresses(report),
        "sections": [
            {"learners": section.learners, "charts": section.charts} for section in report.sections
        ],
    }
    text = msgspec.json.encode(document).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _addresses(report: Report) -> dict[str, str]:
    """Of what is cited in tables that the scripts write."""
    tables = (c for section in report.sections for c in section.charts if c.kind == "table")
    texts = {
        cell
        for chart in tables
        for panel in chart.panels
        for row in panel.rows
        for cell in row
        if isinstance(cell, str)
    }
    return {piece: to for text in sorted(texts) for piece, to in links(text) if to}


def _contents(sections: Sequence[Section]) -> str:
    entries = (
        f'<li><a href="#{s.id}">{escape(s.title)}</a>'
        + (f"<p>{escape(s.answer)}</p>" if s.answer else "")
        + "</li>"
        for s in sections
    )
    return f'<nav aria-label="Contents"><ol>{"".join(entries)}</ol></nav>'


def _figures(paths: Sequence[str]) -> str:
    """Links to the figures for print, each as SVG and PDF or whatever there is of it."""
    kinds: dict[str, list[str]] = {}
    for path in sorted(paths):
        kinds.setdefault(path.rpartition(".")[0], []).append(path)
    entries = (
        f"<li>{escape(name.rpartition('/')[2])}: "
        + ", ".join(
            f'<a href="{escape(quote(path))}">{escape(path.rpartition(".")[2].upper())}</a>'
            for path in each
        )
        + "</li>"
        for name, each in kinds.items()
    )
    links = f"<ul>{''.join(entries)}</ul>"
    return f"<details><summary>Figures for print</summary>{links}</details>"


def _section(section: Section, i: int, heading: str) -> str:
    anchor = escape(section.id)
    claim = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in section.claim)
    warnings = "".join(f"<li>{escape(line)}</li>" for line in section.warnings)
    return "\n".join(
        [
            f'<section id="{anchor}" class="experiment" data-section="{i}">',
            f"<{heading}>{escape(section.title)}</{heading}>",
            f'<p class="answer">{escape(section.answer)}</p>' if section.answer else "",
            f'<p class="regret">{escape(_REGRET)}</p>' if i == 0 else "",
            f'<div class="claim">{claim}</div>' if claim else "",
            f'<ul class="warning">{warnings}</ul>' if warnings else "",
            '<div class="legend" role="group" aria-label="Learners shown"></div>',
            '<div class="charts">',
            *(
                _chart(chart, i, j, alone)
                for j, (chart, alone) in enumerate(
                    zip(section.charts, _alone(section.charts), strict=True)
                )
            ),
            "</div>",
            _origin(section),
            "</section>",
        ]
    )


def _alone(charts: Sequence[Chart]) -> list[bool]:
    """Which charts have a row of the page to themselves: tables, and what has no neighbor."""
    tables = [chart.kind in ("heat", "table", "paired") for chart in charts]
    alone, at = list(tables), 0
    while at < len(charts):
        pair = not tables[at] and at + 1 < len(charts) and not tables[at + 1]
        alone[at] = not pair
        at += 2 if pair else 1
    return alone


def _chart(chart: Chart, i: int, j: int, alone: bool) -> str:
    wide = " wide" if alone else ""
    name = f"chart-{i}-{j}"
    return (
        f'<figure class="chart{wide}" id="{name}" data-view="{escape(chart.view)}" '
        f'data-chart="{j}" aria-labelledby="{name}-title">'
        f'<figcaption><h3 id="{name}-title">{escape(chart.title)}</h3>'
        f"<p>{escape(chart.note)}</p></figcaption>"
        '<div class="controls"></div><div class="plot"></div></figure>'
    )


def _origin(section: Section) -> str:
    """Return where the numbers come from."""
    facts = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in section.facts)
    text = f"<pre>{escape(section.experiment)}</pre>"
    opened = f"<details><summary>The experiment</summary>{text}</details>"
    experiment = opened if section.experiment else ""
    made = "".join(f"<dt>versions</dt><dd>{escape(text)}</dd>" for text in section.versions)
    return "\n".join(
        [
            '<div class="origin"><h3>Where the numbers come from</h3>',
            f"<pre>{escape(section.command)}</pre>",
            f"<dl>{facts}{made}</dl>",
            experiment,
            _details(
                "Learners and adversaries, with all settings",
                ["name on this page", "settings", "reference"],
                section.settings,
            ),
            _details("Hashes of the code", ["code", "learner", "adversary"], section.code),
            "</div>",
        ]
    )


def _linked(text: str) -> str:
    return "".join(
        f'<a href="{escape(address)}">{escape(piece)}</a>' if address else escape(piece)
        for piece, address in links(text)
    )


def _details(title: str, head: Iterable[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table to open; nothing if it has no rows."""
    if not rows:
        return ""
    return f"<details><summary>{title}</summary>\n{_table(head, rows)}\n</details>"


def _table(head: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{escape(text)}</th>' for text in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{_linked(text)}</td>" for text in row) + "</tr>" for row in rows
    )
    return (
        '<div class="scroll" tabindex="0"><table class="plain">'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


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
    """Return the pieces of a reference in their order, each with its address, or with nothing."""
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
