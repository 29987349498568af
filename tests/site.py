"""The built site, read by Chromium: `python tests/site.py out/site`.

Some of each kind, light and wide, dark and narrow: what axe-core finds, what the console says, and
whether anything is wider than the window.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from browser_helpers import started

PAGES = (
    "index.html", "faq.html", "guide/concepts.html", "guide/which-learner.html",
    "guide/production.html", "notebooks/mdp.html", "notebooks/rewards.html",
    "theory/algorithms.html", "theory/notation.html", "theory/index.html",
    "theory/one-sided.html", "theory/range-clipping.html", "theory/forgetting.html",
    "results/index.html", "results/benchmarks.html", "reference/index.html",
    "reference/bandits.html", "reference/api/unbounded.SCB.html", "develop/index.html",
)  # fmt: skip


def wrong(site: Path) -> list[str]:
    """One line for each thing that is wrong with a page."""
    found = []
    with tempfile.TemporaryDirectory() as profile, started(Path(profile)) as browser:
        for page in PAGES:
            for width, dark in ((1200, False), (400, True)):
                browser.show_page(site / page, width=width, dark=dark)
                said = [*browser.complaints(), *browser.violations()]
                if browser.run("return document.documentElement.scrollWidth") > width:
                    said.append("it is wider than the window")
                found += [f"{page}, {width} px{', dark' * dark}: {each}" for each in said]
    return found


if __name__ == "__main__":
    lines = wrong(Path(sys.argv[1]))
    print("\n".join(lines) or f"{len(PAGES)} pages: nothing is wrong with them")
    sys.exit(bool(lines))
