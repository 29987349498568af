"""Every entry of docs/theory/errata.md has a test of its name: E7 has a ``test_e7_...``."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
ERRATA = TESTS.parent / "docs" / "theory" / "errata.md"


def entries():
    return re.findall(r"^### ([EO]\d+) ", ERRATA.read_text(encoding="utf-8"), re.M)


def names(text):
    return {
        f"{kind.upper()}{int(number)}"
        for kind, number in re.findall(r"^ *def test_([eo])(\d+)_", text, re.M)
    }


def test_every_erratum_has_a_test_of_its_name():
    tested = set()
    for path in TESTS.rglob("test_*.py"):
        tested |= names(path.read_text(encoding="utf-8"))
    missing = [entry for entry in entries() if entry not in tested]
    assert not missing, f"docs/theory/errata.md has entries without a test: {missing}"
    unknown = tested - set(entries())
    assert not unknown, f"tests bear numbers that docs/theory/errata.md does not have: {unknown}"


def test_the_entries_are_found():
    found = entries()
    assert len(found) == len(set(found)) >= 39
    assert {"E1", "E35", "O1", "O4"} <= set(found)
    assert all(f'<a id="{entry.lower()}"></a>' in ERRATA.read_text() for entry in found)


def test_names_are_read_as_they_are_written():
    text = "def test_e7_first():\n    def test_o2_x(self):\ndef test_e013_():\ndef test_each_1():"
    assert names(text) == {"E7", "O2", "E13"}


def test_comments_refer_to_entries_that_there_are():
    """`erratum E15` in the code and `docs/theory/errata.md#e15` anywhere."""
    known = set(entries())
    for path in (TESTS.parent / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        cited = set(re.findall(r"\b(E[1-9]\d?)\b", text)) | {
            f"E{n}" for n in re.findall(r"errata\.md#e(\d+)", text)
        }
        assert cited <= known, f"{path.name} cites {cited - known}"
