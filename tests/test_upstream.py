"""The programs of docs/develop/upstream.md print what the page says."""

from __future__ import annotations

import contextlib
import io

from upstream import reports


def test_the_formula_of_the_weights_overflows():
    code, said = reports()["fms-acceleration-odm"]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {})
    assert printed.getvalue() == said
    with contextlib.redirect_stdout(io.StringIO()) as control:
        exec(code.replace("[2.0, 2.6, 3.3, 4.0]", "[0.0] * 4"), {})
    assert "rewards of 2 to 4: no error\n" in control.getvalue()
