"""One choice for all charts of a section, in Chromium; the heads of the heat map; links."""

from __future__ import annotations

import pytest

pytest.importorskip("polars")

import report_helpers as helpers
from unbounded.report import contents, page

GAPS = ["scale=1e-6", "scale=1, shift=0", "shift=5"]


def chart(view: str) -> str:
    return f'#sizes figure[data-view="{view}"]'


def choose(browser, name: str, value: str) -> None:
    browser.run(
        "const s = document.querySelector(arguments[0]); s.value = arguments[1];"
        "s.dispatchEvent(new Event('change'))", f'#sizes [data-filter="{name}"]', value,
    )  # fmt: skip


def shown(browser, views) -> dict[str, list[str]]:
    """What is chosen in each chart."""
    return {view: browser.run(
        "return [...document.querySelectorAll(arguments[0])].map((s) => s.value)",
        f"{chart(view)} .controls select") for view in views}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "views"),
    [
        ("adversary", "SpikeLeastLikely", ["time", "arms", "rounds", "slopes", "paired"]),
        ("n", "3", ["ranking", "time", "rounds", "scale", "thresholds", "heatmap", "paired"]),
        ("T", "300", ["ranking", "time", "arms", "scale", "thresholds", "heatmap", "paired"]),
    ],
)
def test_one_choice_for_all_charts(opened, name, value, views):
    assert not any(value in values for values in shown(opened, views).values())
    choose(opened, name, value)
    assert all(value in values for values in shown(opened, views).values())
    choose(opened, name, "")  # as chosen below: they stay
    assert all(value in values for values in shown(opened, views).values())
    assert opened.complaints() == []


def test_a_choice_changes_the_numbers(opened, reported):
    heat = next(one for one in helpers.embedded(reported / "report.html")["sections"][0]["charts"]
                if one["view"] == "heatmap")  # fmt: skip
    panels = {(p["keys"]["n"], p["keys"]["T"]): p["heat"] for p in heat["panels"]}

    def first_row():
        return [float(cell) for cell in opened.texts(f"{chart('heatmap')} tbody tr:first-child td")]

    for n, T in (("8", "1,200"), ("3", "1,200"), ("3", "300"), ("8", "300")):
        choose(opened, "n", n)
        choose(opened, "T", T)
        assert first_row() == pytest.approx(panels[n, T][0], rel=5e-3)
    assert len({tuple(rows[0]) for rows in panels.values()}) == 4  # they could be told apart


def test_the_heat_map_keeps_the_column_of_a_chosen_adversary(opened):
    table = f"{chart('heatmap')} table"
    heads = f"{table} thead .what"
    assert opened.texts(f"{table} thead .common") == ["StochasticGap"]
    assert opened.texts(heads) == ["SpikeLeastLikely", *GAPS]
    row = opened.texts(f"{table} tbody tr:first-child td")
    choose(opened, "adversary", "StochasticGap shift=5")
    assert opened.texts(heads) == ["StochasticGap shift=5"]  # alone, with its whole name
    assert opened.texts(f"{table} tbody tr:first-child td") == row[2:3]
    choose(opened, "adversary", "")
    assert opened.texts(f"{table} tbody tr:first-child td") == row
    assert opened.complaints() == []


def test_heads_in_two_rows_sort_their_own_column(opened):
    here = f"{chart('heatmap')}"
    k = 2  # shift=5
    opened.click(f"{here} thead tr:nth-child(2) th:nth-child({k + 1}) button")
    column = [float(v) for v in opened.texts(f"{here} tbody td:nth-child({k + 2})")]
    assert column == sorted(column)
    assert opened.run(
        "return document.querySelector(arguments[0]).textContent",
        f'{here} th[aria-sort="ascending"]',
    ) == GAPS[k]  # fmt: skip
    labels = opened.run(
        "return [...document.querySelectorAll(arguments[0])].map((b) => b.ariaLabel)",
        f"{here} thead tr:nth-child(2) button",
    )
    assert labels == [f"StochasticGap {gap}" for gap in GAPS]


def test_a_label_wider_than_its_axis_stays_inside(browser, reported, tmp_path):
    made = contents(reported)
    made.learners[0] = "a learner, setting=10"  # leaves little for the axis
    (tmp_path / "page.html").write_text(page.html(made), encoding="utf-8")
    browser.open(tmp_path / "page.html", width=400)
    label, room, axis = browser.run(
        "const all = [...document.querySelectorAll(arguments[0] + ' text.axis')];"
        "const one = all.find((t) => t.textContent.includes('worst case'));"
        "const svg = one.closest('svg');"
        "const [a, b] = [one.getBoundingClientRect(), svg.getBoundingClientRect()];"
        "const line = svg.querySelector('.frame').getBoundingClientRect();"
        "return [a.width, b.right - a.right, line.width]", chart("ranking"),
    )  # fmt: skip
    assert label > axis  # else this shows nothing
    assert room >= 2


def test_what_is_cited_is_a_link(opened):
    links = opened.run(
        "return [...document.querySelectorAll(arguments[0])].map((a) => [a.textContent, a.href])",
        f"{chart('bounds')} td a, #sizes .origin td a",
    )
    assert ["Chen & Zhang 2024", "https://arxiv.org/abs/2403.00930"] in links
    rows = opened.texts("#sizes .origin td")
    assert any(text.startswith("Chen & Zhang 2024, Algorithm 1") for text in rows)
    assert not any("Zimmert" in text for text, _ in links)  # nobody has given its address


def test_names_beside_the_heat_map_stay_readable_and_leave_room(browser, reported):
    browser.open(reported / "report.html", width=400)
    widths = browser.run(
        "return [...document.querySelectorAll(arguments[0])].map((t) => t.offsetWidth)",
        f"{chart('heatmap')} tbody th",
    )
    assert all(120 <= width <= 160 for width in widths)


def test_names_that_have_no_room_beside_their_dots_stand_above_them(browser, reported, tmp_path):
    made = contents(reported)
    for i in range(len(made.learners)):  # they differ at their ends
        made.learners[i] = f"a learner with many settings={i}"
    (tmp_path / "page.html").write_text(page.html(made), encoding="utf-8")
    names = f"{chart('ranking')} .plot > svg text.name"
    found = {}
    for width in (400, 1200):
        browser.open(tmp_path / "page.html", width=width)
        found[width] = browser.run(
            "return [...document.querySelectorAll(arguments[0])].map((t) => {"
            "const dot = t.parentElement.querySelector('.point').getBoundingClientRect();"
            "return [t.firstChild.data, t.getBoundingClientRect().bottom <= dot.top + 1]; })",
            names,
        )  # fmt: skip
    assert {name for name, _ in found[400]} == {made.learners[i] for i in range(4)}
    assert all(above for _, above in found[400])
    assert not any(above for _, above in found[1200])
