"""Tickets: what `ask` hands out and `tell` takes back once."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, Sequence, ValuesView
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from unbounded.learners.base import AskTell


class Issuer(str):
    """The identity of a learner whose arms have names: tickets of others need not know of names."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, identity: str, names: Sequence[str] | None) -> str:
        """Return the identity, with the names if there are any."""
        found = str(identity) if names is None else cls(identity)
        if isinstance(found, Issuer) and names is not None:
            found.names = tuple(names)
        return found


def names_of(identity: object) -> tuple[str, ...] | None:
    """Return the names of the arms of a learner, if they have any."""
    return identity.names if isinstance(identity, Issuer) else None


class Ticket:
    """What `ask` hands out, and `tell` takes back once."""

    __slots__ = ("_learner", "id")

    id: int
    _learner: str

    def __eq__(self, other: object) -> bool:
        """Return whether it is the same ticket, perhaps that of a copy or of a restored learner."""
        if not isinstance(other, Ticket):
            return NotImplemented
        return (self.id, self._learner) == (other.id, other._learner)

    def __hash__(self) -> int:
        return hash((self.id, self._learner))


class Choice(Ticket):
    """A ticket for one decision: what was chosen, with what probability.

    It can be used as an index: ``servers[choice]``.

    Examples
    --------
    >>> from unbounded import SCB
    >>> choice = SCB(n_arms=4, seed=0).ask()
    >>> choice
    Choice(arm=0, probability=0.25, id=0)
    >>> ["north", "east", "south", "west"][choice]
    'north'
    """

    __slots__ = ("arm", "probability")

    def __init__(self, arm: int, probability: float, number: int, learner: str) -> None:
        self.arm = arm
        self.probability = probability
        self.id = number
        self._learner = learner

    @property
    def name(self) -> str:
        """The name of the arm, which is its number if the learner has no names."""
        names = names_of(self._learner)
        if names is None:
            return str(self.arm)
        return names[self.arm] if self.arm >= 0 else ""  # of an arm that has gone

    def __index__(self) -> int:
        return self.arm

    def __repr__(self) -> str:
        name = "" if names_of(self._learner) is None else f", name={self.name!r}"
        return f"Choice(arm={self.arm}{name}, probability={self.probability:.4g}, id={self.id})"


T = TypeVar("T", bound=Ticket)


class Outstanding(Mapping[int, T]):
    """A learner's outstanding tickets, made anew from its records."""

    def __init__(self, learner: AskTell[T]) -> None:
        self._learner = learner

    def __getitem__(self, number: int) -> T:
        return self._ticket(number, self._learner._records[number])

    def __iter__(self) -> Iterator[int]:
        return iter(list(self._learner._records))

    # A snapshot, although other threads ask and tell.

    def values(self) -> ValuesView[T]:
        return self._now().values()

    def items(self) -> ItemsView[int, T]:
        return self._now().items()

    def _now(self) -> dict[int, T]:
        records = dict(self._learner._records)
        return {number: self._ticket(number, record) for number, record in records.items()}

    def _ticket(self, number: int, record: tuple[Any, ...]) -> T:
        learner = self._learner
        issuer = learner._inherited.get(number, learner._identity)
        return learner._ticket(number, record, issuer)

    def __len__(self) -> int:
        return len(self._learner._records)

    def __repr__(self) -> str:
        return repr(self._now())
