"""The line on which a key stands."""

from __future__ import annotations

from unbounded.experiments.toml_lines import line_of


def test_line_of_every_key() -> None:
    text = 'a = """\nb = 1\n"""\n\n# c = 2\nc = [\n 1,\n]\n[d]\n\ne.f = {g = 1}\n[[h]]\n[[h]]\ni=1'
    places = {
        ("a",): 1, ("b",): None, ("c",): 6, ("c", 0): 6, ("d",): 9, ("d", "e", "f", "g"): 11,
        ("h",): 12, ("h", 1): 13, ("h", 1, "i"): 14, ("h", 0, "i"): None, (): None,
    }  # fmt: skip
    assert {keys: line_of(text, keys) for keys in places} == places


def test_line_of_a_key_below_a_long_matrix() -> None:
    text = "x = [\n" + "[1, 2],\n" * 5000 + "]\ny = 1\n"
    assert line_of(text, ("y",)) == 5003
    assert line_of(text, ("x",)) == 1
