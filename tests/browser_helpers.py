"""Headless Chromium, driven by its own driver: for the tests of the report, and for the site.

Without a browser tests are skipped; with UNBOUNDED_REQUIRE_BROWSER=1 that is a failure.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",
)  # fmt: skip


def missing(what: str) -> None:
    if os.environ.get("UNBOUNDED_REQUIRE_BROWSER"):
        pytest.fail(f"{what} is missing, and UNBOUNDED_REQUIRE_BROWSER is set")
    pytest.skip(
        f"{what} is missing: apt-get install chromium chromium-driver; pip install selenium"
    )


class Browser:
    """What the tests do with a page."""

    def __init__(self, driver) -> None:
        self.driver = driver
        self.run = driver.execute_script

    def open(self, path: Path, *, width: int = 1200, dark: bool = False) -> None:
        """Show a report, and wait until it is drawn."""
        self.show_page(path, width=width, dark=dark)
        assert self.run("return document.documentElement.dataset.ready") == "true"

    def show_page(self, path: Path, *, width: int = 1200, dark: bool = False) -> None:
        self.driver.get_log("browser"), self.driver.get_log("performance")  # forget the last page
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get(path.resolve().as_uri())

    def count(self, selector: str) -> int:
        return self.run("return document.querySelectorAll(arguments[0]).length", selector)

    def texts(self, selector: str) -> list[str]:
        return self.run(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)",
            selector,
        )

    def complaints(self) -> list[str]:
        said = [entry["message"] for entry in self.driver.get_log("browser")]
        return [one for one in said if not one.startswith("chrome:")]  # of the browser's own pages

    def requests(self) -> list[str]:
        events = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        sent = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
        return [event["request"]["url"] for event in sent]

    def show(self, selector: str) -> None:
        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)

    def click(self, selector: str) -> None:
        self.show(selector)
        self.driver.find_element("css selector", selector).click()

    def press(self, selector: str, *keys: str) -> None:
        self.driver.find_element("css selector", selector).send_keys(*keys)

    def hover(self, selector: str, x: float, y: float) -> None:
        """Move the pointer to a place of an element, as shares of its width and height."""
        self.show(selector)
        box = self.run(
            "const b = document.querySelector(arguments[0]).getBoundingClientRect();"
            "return [b.left, b.top, b.width, b.height]", selector,
        )  # fmt: skip
        place = {"x": box[0] + x * box[2], "y": box[1] + y * box[3]}
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", **place})

    def violations(self) -> list[str]:
        """What axe-core finds wrong with the page for those who cannot see it or use no pointer."""
        self.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        self.run((files("axe_playwright_python") / "axe.min.js").read_text("utf-8"))
        found: dict[str, Any] = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, {resultTypes: ['violations'], preload: false}).then(done)"
        )
        assert found["passes"], "axe-core has looked at nothing"
        return [
            f"{wrong['id']}: {wrong['help']}: {node['html'][:120]}"
            for wrong in found["violations"]
            for node in wrong["nodes"]
        ]


@contextmanager
def started(directory: Path) -> Iterator[Browser]:
    """A browser with a profile of its own in a directory."""
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        missing("selenium")
    names = ("chromium", "chromium-browser", "google-chrome")
    binary = next(filter(None, map(shutil.which, names)), None)
    program = shutil.which("chromedriver")
    if not binary or not program:
        missing("Chromium" if not binary else "chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={directory}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = Service(program)  # downloads nothing
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_script_timeout(120)
    try:
        yield Browser(driver)
    finally:
        driver.quit()
