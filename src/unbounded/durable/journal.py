"""What the file of a durable learner holds: the rows of its journal, and snapshots."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

ASK, TELL, EXPIRE, ARMS = range(4)
"""What a row of the journal says.

EXPIRE has a loss or none. ARMS begins an epoch: with one more arm, ``name``, or without that one if
``arm`` says where it was.
"""


class Row(NamedTuple):
    """One event of the journal, in the order in which all processes see them."""

    n: int
    kind: int
    choice: int | None  # the id of the ask that is told or expired
    at: int  # microseconds since 1970
    key: str | None = None
    epoch: int | None = None
    arm: int | None = None
    name: str | None = None
    probability: float | None = None
    loss: float | None = None
    scale: float | None = None
    clipped: int | None = None
    payload: bytes | None = None
    digest: bytes = b""

    @property
    def text(self) -> str:
        """All but the payload and the digest, as text, in which -0.0 and 0.0 differ."""
        return "|".join(map(str, self[:-2]))

    def digest_after(self, chain: bytes) -> bytes:
        """Return the digest of this row, if ``chain`` is that of the row before it."""
        return hashlib.blake2b(
            chain + (self.payload or b"") + self.text.encode(), digest_size=16
        ).digest()


class Snapshot(NamedTuple):
    """Everything that is known after row ``n``, whose digest is ``chain``."""

    n: int
    chain: bytes
    text: str
