"""A new epoch: the same algorithm with other arms, that begins at the scale of the old one.

The rule: the learner of the next epoch is a fresh one of the same settings, with the new number of
arms. It keeps the clipping window (or the ceiling of one-sided losses) that the old one had, and
nothing else: all arms are equal again, and its random numbers follow from those of the old one.
What is proved of a fresh learner holds for it, with the larger of the old scale and the new losses
for the scale. An algorithm that has a scale of another kind, and learns it, cannot do that.
"""

from __future__ import annotations

from typing import Any

from numpy.random import SeedSequence

from unbounded.core.ceiling import Ceiling
from unbounded.core.clipping import Window
from unbounded.core.discounting import Blocks
from unbounded.learners.bandit import Learner
from unbounded.learners.base import AskTell


def next_learner(old: AskTell[Any], n_arms: int, epoch: int) -> Learner:
    """Return the learner of the next epoch, or a ValueError if the algorithm cannot keep its scale.

    Examples
    --------
    >>> from unbounded import SCB
    >>> from unbounded.durable.epochs import next_learner
    >>> learner = SCB(n_arms=2, seed=0)
    >>> learner.tell(learner.ask(), 3e6)
    >>> after = next_learner(learner, n_arms=3, epoch=1)
    >>> after.scale == learner.scale, after.rounds, after.n_arms
    (True, 0, 3)
    """
    if not isinstance(old, Learner):
        raise ValueError(f"{old.spec.name} has no arms to add or to retire")
    stream = old._bits.state["state"]
    seed = SeedSequence([stream["state"], stream["inc"], epoch])
    new = type(old)(**{**old.settings, "n_arms": n_arms}, seed=seed)
    if new.scale == old.scale:  # it was given the range, or has seen nothing
        return new
    state = new._state()
    for field, value in old._state()._asdict().items():
        if isinstance(value, Window):
            state = state._replace(**{field: value})
        elif isinstance(value, Ceiling):
            getattr(state, field).largest[:] = value.largest
            state = state._replace(**{field: value})
        elif isinstance(value, Blocks):
            getattr(state, field).now[:] = value.now
            getattr(state, field).before[:] = value.before
            state = state._replace(**{field: value})
    new.spec.packing.python.pack(new._buffer, state)
    try:
        new = type(old).load(new.save())  # which lets no state in that cannot be
    except ValueError:
        kept = False
    else:
        kept = new.scale == old.scale
    if not kept:
        raise ValueError(
            f"{old.spec.name} with these settings cannot begin again at the scale of {old.scale:g} "
            "that it has learned: begin a new file with the new arms, or use SCB or SCBIX"
        )
    return new
