"""What learners of costs, losses with a known lower bound, share."""

from __future__ import annotations

from collections.abc import Callable


class Costs:
    """A learner whose state counts losses below ``lower``."""

    _scalar: Callable[[str], float]

    @property
    def below(self) -> int:
        """Return the number of losses below ``lower``, which were taken as ``lower``."""
        return int(self._scalar("below"))
