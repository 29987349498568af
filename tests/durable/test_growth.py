"""A long journal opens as a short one does."""

import pytest
from growth import grown
from postgres_server import missing

from unbounded.durable import Durable
from unbounded.durable.rows import Row


@pytest.mark.parametrize("where", ["file", "database"])
def test_what_is_read_to_open_does_not_grow(where, request, tmp_path, monkeypatch):
    if where == "database" and missing():
        pytest.skip("there is no PostgreSQL")
    made, read = Row._make, []
    for rows in (2_000, 20_000):
        if where == "file":
            place = {"path": str(tmp_path / f"{rows}.db")}
        else:
            url = request.getfixturevalue("database").url()
            place = {"path": url, "name": f"grown to {rows}"}
        grown(place, rows)
        count = [0]

        def counting(values, count=count):
            count[0] += 1
            return made(values)

        with monkeypatch.context() as patched:
            patched.setattr(Row, "_make", staticmethod(counting))
            with Durable(**place) as arms:
                assert arms.tell(arms.ask(), 1.0)
                read.append(count[0])
                if rows == 20_000:  # the control: this does read everything
                    assert len(arms.log()) == rows // 2 + 1
                    assert count[0] > rows
    assert 0 < read[1] <= read[0]
