"""What is said when one loss spoils the scale that a learner works at."""

from __future__ import annotations

SETTLED = 1000
"""Rounds after which the scale of the losses should be known."""


class ScaleWarning(UserWarning):
    """One loss has made the scale of a learner more than ten times what it was.

    A learner that clips to what it has seen works at the scale of the largest loss for ever: after
    an outlier, losses of the usual size hardly count. Said once per learner, and only after a
    thousand rounds; by `tell`, before the loss is learned, and never by simulations.

    Examples
    --------
    >>> import warnings
    >>> from unbounded import SCB, ScaleWarning
    >>> learner = SCB(n_arms=2, seed=0)
    >>> for t in range(1200):
    ...     learner.tell(learner.ask(), float(t % 2))
    >>> choice = learner.ask()
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     learner.tell(choice, 1e6)
    >>> said[0].category is ScaleWarning
    True
    """
