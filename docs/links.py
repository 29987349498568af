"""Links of a built site that lead nowhere: `python docs/links.py out/site`. No network is used."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Where a page can be linked to, and what it links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids |= {given[name] or "" for name in ("id", "name") if name in given}
        self.links |= {given[name] or "" for name in ("href", "src") if name in given}


def broken(site: Path) -> list[str]:
    """One sentence for every link from one file of the site to what is not there.

    >>> import tempfile
    >>> site = Path(tempfile.mkdtemp())
    >>> _ = (site / "a.html").write_text('<a id="x" href="#x">x</a> <a href="b.html#y">y</a>')
    >>> _ = (site / "b.html").write_text('<img src="c.png"> <a href="https://example.org">e</a>')
    >>> broken(site)
    ['a.html: b.html#y has no such anchor', 'b.html: c.png is not there']
    """
    pages = {path.resolve(): Page(path.read_text("utf-8")) for path in site.rglob("*.html")}
    found = []
    for path, page in sorted(pages.items()):
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            where = f"{path.relative_to(site.resolve())}: {link}"
            if not target.exists():
                found.append(f"{where} is not there")
                continue
            anchor = unquote(parts.fragment)
            if anchor and target in pages and anchor not in pages[target].ids:
                found.append(f"{where} has no such anchor")
    return found


if __name__ == "__main__":
    wrong = broken(Path(sys.argv[1]))
    print("\n".join(wrong) or "every link of the site leads somewhere")
    sys.exit(bool(wrong))
