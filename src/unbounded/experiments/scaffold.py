"""Small experiments to begin with: what ``unbounded init`` writes."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import Literal, get_args

from unbounded.experiments.files import StoreError, writing

Template = Literal["bandit", "mdp", "own", "tour"]


def write_template(kind: Template, directory: str | os.PathLike[str]) -> list[Path]:
    """Write an experiment into a directory; never over something that is there.

    Parameters
    ----------
    kind : {"bandit", "mdp", "own", "tour"}
        An experiment with bandits, with MDPs, with a learner of one's own, or the tour of three.
    directory : path
        Made if it is not there.

    Returns
    -------
    list of Path
        The files.

    Examples
    --------
    >>> import tempfile
    >>> from unbounded.experiments.scaffold import write_template
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     [path.name for path in write_template("bandit", directory)]
    ['bandit.toml']
    """
    if kind not in get_args(Template):
        listed = ", ".join(get_args(Template))
        raise ValueError(f"there is no template {kind!r}: there are {listed}")
    source = files("unbounded.experiments") / "templates" / kind
    contents = {one.name: one.read_bytes() for one in source.iterdir() if one.is_file()}
    target = Path(directory)
    there = [name for name in sorted(contents) if os.path.lexists(target / name)]
    if there:
        raise StoreError(
            f"{target / there[0]} is there already, and is not written over: give another directory"
        )
    with writing(target):
        target.mkdir(parents=True, exist_ok=True)
        for name in sorted(contents):
            with open(target / name, "xb") as file:
                file.write(contents[name])
    return [target / name for name in sorted(contents)]
