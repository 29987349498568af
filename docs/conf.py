"""The site: `make docs` builds it into out/site. Its pages read well without it too."""

from __future__ import annotations

import itertools
import re
from functools import partial
from html import escape
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docutils.nodes import Element
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

project = "unbounded"
author = "The unbounded developers"
project_copyright = author
version = release = version_of("unbounded")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
]
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 4  # the anchors that GitHub gives to headings
myst_dmath_double_inline = True
exclude_patterns = ["_*"]
nb_execution_in_temp = True  # docs/notebooks are run when the site is built
nb_execution_raise_on_error = True
nb_execution_timeout = 300  # a cell that compiles
nb_output_stderr = "remove"  # what is compiled depends on what is cached

autosummary_context = {  # for _templates/autosummary: a page for each class
    "with_inherited": ["unbounded.Learner", "unbounded.MDPLearner"],
    "without_members": [  # their docstrings have the attributes
        "unbounded.AdviceSimulation", "unbounded.adversaries.Phase", "unbounded.bounds.Bound",
        "unbounded.bounds.Losses",
        "unbounded.durable.Estimate", "unbounded.experiments.Experiment",
        "unbounded.experiments.Job", "unbounded.experiments.Store", "unbounded.report.Written",
    ],
}  # fmt: skip
autodoc_typehints = "none"  # the docstrings give types with shapes
autodoc_mock_imports = ["golem", "litellm", "shinka"]  # their pins exclude those of others
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
default_role = "py:obj"
suppress_warnings = ["ref.python"]  # a name in backticks that several things bear
napoleon_use_rtype = False

html_theme = "furo"
html_title = "unbounded"
html_theme_options = {"top_of_page_buttons": []}
html_copy_source = False
html_math_renderer = "mathml"  # no script, no network, and screen readers read it
templates_path = ["_templates"]  # the sidebar shows one level: at most 20 links
html_static_path = ["_static"]
html_css_files = ["site.css"]
# What screen readers and keyboards need and the theme leaves out.
ACCESSIBLE = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer': '<aside aria-label="This page" class="toc-drawer',
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper ': '<div tabindex="0" class="table-wrapper ',
    '<div class="output text_html">': '<div tabindex="0" class="output text_html">',
    '<div class="pseudocode">': '<div tabindex="0" class="pseudocode">',
    '<th class="head"><p></p></th>': "<td></td>",
}


def _anchors(app: Sphinx, docname: str, source: list[str]) -> None:
    """An HTML anchor of a Markdown page, which GitHub shows too, as a target of the site."""
    source[0] = re.sub(r'^<a id="([\w-]+)"></a>$', r"(\1)=", source[0], flags=re.MULTILINE)


def _code(app: Sphinx, docname: str, source: list[str]) -> None:
    """Code without the empty line that ends an example for doctest."""
    source[0] = re.sub(r"\n\n```$", "\n```", source[0], flags=re.MULTILINE)


def _labelled(found: re.Match[str]) -> str:
    """A table whose cells know the heads of their columns: narrow windows show rows as lists."""
    head, body = found[1], found[2]
    labels = [re.sub(r"<.*?>", "", cell).strip() for cell in re.findall(r"<t[hd].*?</t[hd]>", head)]
    if len(labels) < 3:
        return found[0]

    def row(cells: re.Match[str]) -> str:
        numbers = itertools.count()
        return re.sub(
            r"<td(?=[ >])",
            lambda _: f'<td data-label="{escape(labels[next(numbers) % len(labels)])}"',
            cells[0],
        )

    return head + re.sub(r"<tr.*?</tr>", row, body, flags=re.S)


def _accessible(app: Sphinx, exception: Exception | None) -> None:
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text("utf-8")
        text = re.sub(r"(<thead>.*?</thead>)(.*?</tbody>)", _labelled, text, flags=re.S)
        for old, new in ACCESSIBLE.items():
            text = text.replace(old, new)
        path.write_text(text, "utf-8")


def _formula(translator: HTML5Translator, node: Element) -> None:
    from docutils.nodes import SkipNode
    from latex2mathml.converter import convert

    translator.body.append(convert(node.astext()))
    raise SkipNode


def _display(translator: HTML5Translator, node: Element) -> None:
    from docutils.nodes import SkipNode
    from latex2mathml.converter import convert

    formula = convert(node.astext(), display="block")
    translator.body.append(f'<div class="display" tabindex="0">{formula}</div>')
    raise SkipNode


def _one_level(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Have the theme walk one level for its sidebar: all levels take half a minute."""
    if "toctree" in context:
        context["toctree"] = partial(
            lambda whole, **how: whole(**{**how, "collapse": True, "maxdepth": 1}),
            context["toctree"],
        )


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", _one_level, priority=400)
    app.add_html_math_renderer("mathml", (_formula, None), (_display, None))
    app.connect("build-finished", _accessible)
    app.connect("source-read", _anchors)
    app.connect("source-read", _code)
