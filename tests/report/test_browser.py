"""The page in a real browser: headless Chromium, driven by its own driver.

Without a browser these tests are skipped; with UNBOUNDED_REQUIRE_BROWSER=1 that is a failure.
"""

from __future__ import annotations

import csv
import io
from time import sleep
from xml.etree import ElementTree

import pytest

pytest.importorskip("polars")

import report_helpers as helpers
from unbounded.report import contents, page

OUTSIDE = """
    return [...document.querySelectorAll('.plot > svg text')].filter((t) => {
        const a = t.getBoundingClientRect(), b = t.closest('svg').getBoundingClientRect();
        return a.left < b.left - 1 || a.right > b.right + 1 || a.bottom > b.bottom + 1;
    }).map((t) => t.textContent)
"""
OVERLAPPING = """
    const found = [];
    for (const s of document.querySelectorAll('.plot > svg')) {
        const texts = [...s.querySelectorAll(':scope > text')];
        const boxes = texts.map((t) => t.getBoundingClientRect());
        boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b, j) => {
            const beside = a.left >= b.right - 1 || b.left >= a.right - 1;
            const apart = a.top >= b.bottom - 3 || b.top >= a.bottom - 3;
            if (!beside && !apart) found.push(texts[i].textContent, texts[i + 1 + j].textContent);
        }));
    }
    return found
"""


def chart(view: str, section: str = "sizes") -> str:
    return f'#{section} figure[data-view="{view}"]'


def test_every_chart_is_drawn_without_a_complaint(opened, reported):
    for section, charts in zip(
        ("sizes", "tails"), helpers.embedded(reported / "report.html")["sections"], strict=True
    ):
        for one in charts["charts"]:
            here = chart(one["view"], section)
            learners = {s["learner"] for panel in one["panels"] for s in panel.get("series", [])}
            if one["kind"] == "lines":
                assert opened.count(f"{here} path.curve") == len(learners), one["view"]
                assert opened.count(f"{here} polygon.band") == len(learners)
            elif one["kind"] == "dots":
                assert opened.count(f"{here} g.learner") == len(learners)
            else:
                assert opened.count(f"{here} tbody tr") > 0, one["view"]
    assert opened.count(f"{chart('time')} path.bound") > 0
    assert "NaN" not in opened.run("return document.body.innerHTML")
    assert opened.complaints() == []
    kinds = {url.partition(":")[0] for url in opened.requests()}
    assert "file" in kinds
    assert not kinds & {"http", "https", "ws", "wss", "ftp"}


def test_hover_tells_the_right_numbers(opened, reported):
    found = helpers.embedded(reported / "report.html")
    curves = found["sections"][1]["charts"][1]["panels"][0]["series"]
    here = chart("time", "tails")
    assert opened.count(f"{here} .tip:not([hidden])") == 0
    opened.hover(f"{here} .plot > svg", 0.9, 0.3)
    assert opened.texts(f"{here} .tip div") == ["round t = 400"]
    rows = opened.run(
        "return [...document.querySelectorAll(arguments[0])]"
        ".map((r) => [...r.cells].map((c) => c.textContent))", f"{here} .tip tr",
    )  # fmt: skip
    said = {row[0]: float(row[1].replace(",", "").replace("−", "-")) for row in rows}
    expected = {found["learners"][s["learner"]]: s["mean"][-1] for s in curves}
    assert said == pytest.approx(expected, rel=1e-3)
    assert opened.count(f"{here} .tip tr.near") == 1
    opened.hover("#tails h2", 0.5, 0.5)
    assert opened.count(f"{here} .tip:not([hidden])") == 0
    opened.press(f"{here} .plot > svg", "\ue014")  # the right arrow: the first checkpoint
    assert opened.texts(f"{here} .tip div") == ["round t = 100"]


def test_learners_are_hidden_and_shown_everywhere(opened):
    def shown(learner):
        return {
            view: opened.count(f'{chart(view)} [data-learner="{learner}"]') > 0
            for view in ("time", "arms", "slopes", "thresholds", "heatmap", "bounds", "paired")
        }

    button = '#sizes .legend button[data-learner="1"]'
    assert all(shown(1).values())
    opened.click(button)
    assert not any(shown(1).values())
    assert all(shown(2).values())
    assert opened.count('#tails figure [data-learner="1"]') == 0  # it is the same learner there
    assert opened.run(f"return document.querySelector('{button}').ariaPressed") == "false"
    opened.press(button, "\ue007")  # Enter
    assert all(shown(1).values())
    opened.click("#sizes .legend .every")
    assert opened.count("#sizes figure g.learner") == 0
    opened.click("#sizes .legend .every")
    assert all(shown(1).values())
    assert opened.complaints() == []


def test_choices(opened, reported):
    time = chart("time")
    before = opened.run("return document.querySelector(arguments[0]).innerHTML", f"{time} .plot")
    opened.run(
        "const s = document.querySelector(arguments[0]); s.value = 'SpikeLeastLikely';"
        "s.dispatchEvent(new Event('change'))", f"{time} select",
    )  # fmt: skip
    after = opened.run("return document.querySelector(arguments[0]).innerHTML", f"{time} .plot")
    assert "SpikeLeastLikely" in after
    assert before != after
    for option in ("median", "bands", "bounds"):
        opened.run(
            "[...document.querySelectorAll('#sizes .options button')]"
            ".find((b) => b.textContent === arguments[0]).click()", option,
        )  # fmt: skip
    assert opened.count(f"{time} polygon.band") == opened.count(f"{time} path.bound") == 0
    opened.click(f"{time} .controls button")  # to the other kind of axis, and back
    opened.click(f"{time} .controls button")
    opened.click(f"{time} summary")
    for _ in range(200):  # the table is filled by an event, which comes after the click
        cells = opened.texts(f"{time} details tbody td")
        if cells:
            break
        sleep(0.05)
    assert len(cells) == 4 * 7 * 6
    assert opened.complaints() == []


def test_tables_are_sorted_by_their_heads(opened):
    here = chart("paired")

    def column():
        texts = opened.texts(f"{here} tbody tr td:nth-child(2)")
        return [float(text.replace("−", "-")) for text in texts]

    opened.click(f"{here} thead th:nth-child(2) button")
    assert column() == sorted(column())
    opened.click(f"{here} thead th:nth-child(2) button")
    assert column() == sorted(column(), reverse=True)
    assert opened.count(f'{here} th[aria-sort="descending"]') == 1
    down = column()
    opened.run(
        "const s = [...document.querySelectorAll(arguments[0])].at(-1); s.value = 3;"
        "s.dispatchEvent(new Event('change'))", f"{here} select",
    )  # fmt: skip
    assert column() != down
    assert (
        opened.texts(f"{here} tbody th") == ["TsallisINF", "SCB", "SCB profile=paper"]
        or len(opened.texts(f"{here} tbody th")) == 3
    )


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [380, 1200])
def test_nothing_sticks_out(browser, reported, width, dark):
    browser.open(reported / "report.html", width=width, dark=dark)
    assert browser.run("return document.documentElement.scrollWidth") <= width
    paper, ink = browser.run(
        "const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]"
    )
    light = [sum(map(int, c[c.index("(") + 1 : -1].split(",")[:3])) for c in (paper, ink)]
    assert (light[0] < light[1]) == dark
    assert browser.run(OUTSIDE) == []
    assert browser.run(OVERLAPPING) == []
    for place in (0.2, 0.9):
        browser.hover(f"{chart('arms')} .plot > svg", place, 0.5)
        assert browser.run(
            "const tip = document.querySelector(arguments[0]), b = tip.getBoundingClientRect();"
            "return [b.left >= 0, b.right <= innerWidth, tip.scrollWidth <= tip.clientWidth]",
            f"{chart('arms')} .tip",
        ) == [True] * 3  # fmt: skip
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.complaints() == []


@pytest.mark.parametrize("y", [
    [1.0, 1.0 + 1e-15, 1.0], [1e-300, 1.0, 1e300], [-1e300, 0.0, 1e300], [None, None, None],
    [-1.0, -2.0, -3.0], [0.0, 0.0, 0.0],
])  # fmt: skip
def test_numbers_of_any_size(browser, reported, tmp_path, y):
    made = contents(reported)
    for shown in made.sections[0].charts:
        for series in (series for panel in shown.panels for series in panel.series):
            if shown.kind == "lines":
                series.x = [1e-307, 1.0, 1e307] if shown.x.scale == "log" else [0.0, 1.0, 2.0]
                series.mean = series.median = series.low = series.high = y
            else:
                series.mean, series.low, series.high = y[:1], y[1:2], y[2:]
        for panel in shown.panels:
            panel.bounds = []
            panel.heat = [[y[k % 3] for k, _ in enumerate(row)] for row in panel.heat]
    (tmp_path / "page.html").write_text(page.html(made), encoding="utf-8")
    browser.open(tmp_path / "page.html")
    assert browser.complaints() == []
    assert "NaN" not in browser.run("return document.body.innerHTML")
    assert "Infinity" not in browser.run("return document.querySelector('main').innerHTML")


def test_text_is_text(browser, reported, tmp_path):
    act = "document.title='broken'"
    evil = f'<img src=x onerror="{act}"></script><script>{act}</script>'
    made = contents(reported)
    made.learners[0] = made.sections[0].title = made.sections[0].charts[0].title = evil
    for panel in made.sections[0].charts[0].panels:
        panel.keys["adversary"] = evil
    made.title = "whole"
    (tmp_path / "page.html").write_text(page.html(made), encoding="utf-8")
    browser.open(tmp_path / "page.html")
    assert browser.run("return document.title") == "whole"
    assert browser.count("img") == 0
    assert evil in browser.texts("#sizes .legend button")[0]
    assert browser.complaints() == []


SAVED = """
    const [selector, done] = arguments, made = URL.createObjectURL;
    URL.createObjectURL = (blob) => { blob.text().then(done); return made.call(URL, blob); };
    HTMLAnchorElement.prototype.click = () => {}; // nothing is written to a disk
    document.querySelector(selector).click();
    URL.createObjectURL = made;
"""


def test_charts_give_their_numbers_and_their_drawing_away(opened, reported):
    opened.driver.set_script_timeout(30)
    found = helpers.embedded(reported / "report.html")
    series = found["sections"][1]["charts"][1]["panels"][0]["series"]
    text = opened.driver.execute_async_script(SAVED, f'{chart("time", "tails")} [data-save="csv"]')
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == sum(len(s["x"]) for s in series)
    assert float(rows[-1]["mean"]) == series[-1]["mean"][-1]
    assert rows[0]["learner"] == found["learners"][series[0]["learner"]]
    assert (rows[0]["T"], rows[0]["n"]) == ("400", "3")
    heat = opened.driver.execute_async_script(SAVED, f'{chart("heatmap")} [data-save="csv"]')
    assert heat.count("\n") == 1 + len(found["sections"][0]["learners"])
    drawing = opened.driver.execute_async_script(SAVED, f'{chart("time")} [data-save="svg"]')
    root = ElementTree.fromstring(drawing)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "var(" not in drawing  # it stands without the page's style
    assert opened.complaints() == []


def test_names_stand_at_the_ends_of_curves(browser, reported):
    names = f"{chart('time')} .plot > svg > text.name"
    browser.open(reported / "report.html", width=1200)
    found = browser.run(
        "return [...document.querySelectorAll(arguments[0])].map((t) => t.firstChild.data)", names
    )
    assert sorted(found) == ["SCB", "SCB profile=pap…", "TsallisINF", "Uniform"]
    browser.open(reported / "report.html", width=380)  # no room
    assert browser.texts(names) == []


def test_tips_stay_in_the_window(browser, reported):
    browser.open(reported / "report.html")
    here = f"{chart('time')} .plot > svg"
    browser.hover(here, 0.5, 0.5)
    browser.run(
        "const b = document.querySelector(arguments[0]).getBoundingClientRect();"
        "scrollBy(0, b.top - innerHeight + 60)",
        here,
    )  # only its upper edge is seen
    box = browser.run(
        "const b = document.querySelector(arguments[0]).getBoundingClientRect();"
        "return [b.left, b.top, b.width]", here,
    )  # fmt: skip
    move = {"type": "mouseMoved", "x": box[0] + 0.6 * box[2], "y": box[1] + 30}
    browser.driver.execute_cdp_cmd("Input.dispatchMouseEvent", move)
    top, bottom = browser.run(
        "const b = document.querySelector(arguments[0]).getBoundingClientRect();"
        "return [b.top, b.bottom - innerHeight]", f"{chart('time')} .tip",
    )  # fmt: skip
    assert top >= 0
    assert bottom <= 1


def test_time_begins_where_curves_part(browser, reported, tmp_path):
    made = contents(reported)
    shown = next(one for one in made.sections[0].charts if one.view == "time")
    for panel in shown.panels:
        panel.bounds = []
        for k, series in enumerate(panel.series):
            series.x = [1.0, 10.0, 100.0, 1000.0, 10000.0]
            series.mean = series.median = [-1.0, -1.0, -1.0 + k, 2.0 * k, 3.0 * k]
            series.low = series.high = series.mean
    (tmp_path / "page.html").write_text(page.html(made), encoding="utf-8")
    browser.open(tmp_path / "page.html")
    labels = f"{chart('time')} .plot > svg > text"
    assert "Before 100 the curves differ" in browser.texts(f"{chart('time')} .plot")[0]
    assert "10" not in browser.texts(labels)
    browser.click(f"{chart('time')} button.link")
    assert "10" in browser.texts(labels)
    assert browser.complaints() == []
