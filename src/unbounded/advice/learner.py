"""What learners with advice share: checking advice, mixing it, and remembering it until the tell.

An algorithm here has weights for experts, by FTRL with the Shannon entropy on their cumulative
estimates L. It samples from the mixture q_k = sum_j w_j xi_jk of what the experts recommend, and
its ``update`` learns from the column xi_jk of the arm that was played. Mixing is NumPy's work in
Python, in an order of summation that does not depend on memory; the rest are kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.random import PCG64
from numpy.typing import ArrayLike, NDArray

from unbounded.core.arrays import Vector
from unbounded.core.simplex.sampling import LANES, Law, blend, draw
from unbounded.jit.interpreter import interpreted
from unbounded.jit.kernel import kernel
from unbounded.learners import persistence as documents
from unbounded.learners.available import mask_of
from unbounded.learners.bandit import Choice, Learner
from unbounded.validation import ArgumentTypeError, ArgumentValueError, shown

__all__ = ["AdvisedLearner", "Expert"]

Expert: TypeAlias = Callable[[Any], Any]
"""A function from a context to an arm, to a distribution over the arms, or to None: no advice."""

SILENT = -1.0  # in a column: this expert had no advice
_SUM = 1e-5  # by which a distribution may miss one: some models compute in float32


@kernel
def draw_mixture(q: Vector, lanes: Vector, word: int) -> tuple[int, float]:
    """Draw an arm from the mixture ``q``; ``lanes`` is scratch."""
    law = Law(q, lanes, lanes)
    blend(law, 1.0, 0.0)
    return draw(law, word)


@kernel
def implicit(iota: float, A: int, t: float) -> float:
    """Return gamma_t = sqrt(iota / (A_t t)) / 2, at most 1; eta_t is twice that over C_t."""
    return min(1.0, 0.5 * math.sqrt(iota / (A * t)))


@kernel
def learn_column(L: Vector, xi: Vector, l: float, l_hat: float) -> None:
    """Add xi_jk l_hat to the cumulative loss of each expert, and ``l``, what was paid, to those
    without advice."""
    for j in range(L.size):
        L[j] += l if xi[j] < 0.0 else xi[j] * l_hat


@kernel
def rescale(L: Vector, factor: float) -> None:
    """Multiply the cumulative losses by a power of two, often 1."""
    if factor != 1.0:
        for j in range(L.size):
            L[j] *= factor


class Advice:
    """Legal advice for one round: of each expert one arm (-1: none), or a distribution each."""

    def __init__(self, n_arms: int, *, picks: Any = None, law: Any = None) -> None:
        self._n = n_arms
        self._picks = picks  # (n_experts,)
        self._law = law  # (n_arms, n_experts); columns are zero where an expert has no advice
        silent = law.sum(axis=0) == 0.0 if picks is None else picks < 0
        self.silent: NDArray[np.bool_] = silent

    def breadth(self) -> int:
        """Return how many arms are recommended by anybody, at least 1."""
        if self._picks is not None:
            recommended = np.bincount(self._picks[~self.silent], minlength=self._n) > 0
        else:
            recommended = self._law.any(axis=1)
        return max(1, int(recommended.sum()))

    def mixture(self, weights: Vector) -> Vector:
        """Return sum_j w_j xi_j for weights that are 0 where an expert is silent."""
        if self._picks is not None:
            heard = ~self.silent
            q = np.bincount(self._picks[heard], weights=weights[heard], minlength=self._n)
        else:
            q = (self._law * weights).sum(axis=1)  # no BLAS: always in the same order
        found: Vector = q / q.sum()
        return found

    def expected(self, losses: Vector) -> Vector:
        """Return <xi_j, losses> of each expert; of a silent one, any number."""
        found: Vector = losses[self._picks] if self._law is None else losses @ self._law
        return found

    def column(self, arm: int) -> Vector:
        """Return xi_jk for the arm k that is played, and SILENT where there is no advice."""
        if self._picks is not None:
            column = (self._picks == arm).astype(np.float64)
        else:
            column = self._law[arm].copy()
        column[self.silent] = SILENT
        found: Vector = column
        return found


def checked_advice(
    advice: Any, context: object, n_experts: int, n_arms: int, available: NDArray[np.bool_] | None
) -> Advice:
    """Return advice in one form, restricted to the arms that are available; or a clear error."""
    given = _array_of(advice, context, n_experts, n_arms)
    if given.ndim == 1:
        return Advice(n_arms, picks=_checked_picks(given, n_arms, available))
    return Advice(n_arms, law=_checked_laws(given, available))


def _array_of(advice: Any, context: object, n_experts: int, n_arms: int) -> NDArray[Any]:
    """Return a vector of arms, or a row for each expert; the entries may still be wrong."""
    given = (
        advice.tolist() if isinstance(advice, np.ndarray) and advice.dtype.kind == "O" else advice
    )
    if not isinstance(given, np.ndarray):
        if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
            raise ArgumentTypeError("advice", f"must be a sequence, got {shown(advice)}")
        given = [one(context) if callable(one) else one for one in given]
        if len(given) != n_experts:
            raise ArgumentValueError(
                "advice", f"must have one entry for each of {n_experts} experts, got {len(given)}"
            )
        given = _as_array(given, n_arms)
    if given.shape not in ((n_experts,), (n_experts, n_arms)):
        raise ArgumentValueError(
            "advice",
            f"must be an arm or a distribution over {n_arms} arms for each of {n_experts} experts, "
            f"of shape ({n_experts},) or ({n_experts}, {n_arms}), got shape {given.shape}",
        )
    return given


def _as_array(given: list[Any], n_arms: int) -> NDArray[Any]:
    """Return arms as a vector (-1 for None), and anything else as rows."""
    if all(one is None or _is_arm(one) for one in given):
        for j, one in enumerate(given):
            if one is not None and not 0 <= one < n_arms:
                raise _no_arm(j, one, n_arms)
        picks = np.array([-1 if one is None else int(one) for one in given], dtype=np.int64)
        return picks.astype(object) if None in given else picks
    rows = np.zeros((len(given), n_arms))
    for j, one in enumerate(given):
        if one is None:
            continue
        if _is_arm(one):
            if not 0 <= int(one) < n_arms:
                raise _no_arm(j, one, n_arms)
            rows[j, int(one)] = 1.0
            continue
        try:
            row = np.asarray(one, dtype=np.float64)
        except (TypeError, ValueError):
            row = np.empty(0)
        if row.shape != (n_arms,):
            raise ArgumentValueError(
                f"advice[{j}]", f"must be an arm or {n_arms} probabilities, got {shown(one)}"
            )
        rows[j] = row
    return rows


def _is_arm(one: object) -> bool:
    return isinstance(one, (int, np.integer)) and not isinstance(one, bool)


def _no_arm(j: int, arm: object, n_arms: int) -> ArgumentValueError:
    return ArgumentValueError(
        f"advice[{j}]", f"must be an arm in 0 .. {n_arms - 1}, got {shown(arm)}"
    )


def _checked_picks(
    given: NDArray[Any], n_arms: int, available: NDArray[np.bool_] | None
) -> NDArray[np.int64]:
    if given.dtype == object:  # of `_as_array`, with None as -1; an array of a user's is not
        if not all(_is_arm(one) for one in given):
            raise ArgumentTypeError("advice", f"must be arms or distributions, got {shown(given)}")
        picks = given.astype(np.int64)
        wrong = (picks < -1) | (picks >= n_arms)
    elif given.dtype.kind in "iu":
        picks = given.astype(np.int64)
        wrong = (picks < 0) | (picks >= n_arms)
    else:
        raise ArgumentTypeError(
            "advice", f"must be integers, the arms, or rows of probabilities, got {shown(given)}"
        )
    for j in np.flatnonzero(wrong)[:1]:
        raise _no_arm(int(j), given[j], n_arms)
    if available is not None:
        picks[~available[picks]] = -1  # also of -1 itself, whatever the last arm is
    return picks


def _checked_laws(given: NDArray[Any], available: NDArray[np.bool_] | None) -> Vector:
    """Return distributions, a column per expert; a column of zeros is no advice."""
    if given.dtype.kind not in "iuf":
        raise ArgumentTypeError("advice", f"must be probabilities, got an array of {given.dtype}")
    law = np.array(given.T, dtype=np.float64, order="C")
    with np.errstate(over="ignore", invalid="ignore"):  # of what is no distribution
        total = law.sum(axis=0)
    legal = (np.abs(total - 1.0) <= _SUM) | (total == 0.0)  # nan is not
    if not (legal.all() and law.min() >= 0.0):
        legal &= law.min(axis=0) >= 0.0
        j = int(np.flatnonzero(~legal)[0])
        raise ArgumentValueError(
            f"advice[{j}]",
            f"must be probabilities that add up to 1 (or all zeros: no advice), got "
            f"{shown(given[j])}, of sum {total[j]:g}",
        )
    if available is not None:
        law[~available] = 0.0
        total = law.sum(axis=0)
    total[total == 0.0] = 1.0
    law /= total
    return law


class AdvisedLearner(Learner):
    """Base of the learners with advice: `ask` takes what each expert recommends.

    Examples
    --------
    >>> from unbounded import CostExp4
    >>> learner = CostExp4(n_arms=3, n_experts=2, seed=0)
    >>> choice = learner.ask(advice=[0, 2])
    >>> learner.tell(choice, loss=1.5)
    >>> learner.weights().round(2).tolist()
    [0.5, 0.5]
    """

    _shared: ClassVar[Mapping[str, str]] = {
        **Learner._shared,
        "n_experts": "int\n    The number of experts.",
    }

    def _start(self, *arguments: Any, **named: Any) -> None:
        super()._start(*arguments, **named)
        self._columns: dict[int, Vector] = {}  # of the outstanding tickets: the advice on the arm

    # eta_t, in the unit of the cumulative losses, for the largest number of arms that were
    # recommended in one round; 0 while nothing is known.
    _rate: Callable[[int], float]

    # ------------------------------------------------------------------ playing

    def ask(
        self,
        advice: ArrayLike | Sequence[Any] | None = None,
        *,
        context: object = None,
        available: ArrayLike | None = None,
    ) -> Choice:
        """Choose an arm, following the experts in proportion to their weights.

        Parameters
        ----------
        advice : array_like of shape (n_experts,) or (n_experts, n_arms)
            What each expert recommends: an arm, or a distribution over the arms. An expert
            without advice in this round (None in a list, a row of zeros) is charged what is
            paid. A list may mix all of these, and functions, which are called with ``context``.
        context : object, optional
            What functions among the ``advice`` are called with.
        available : array_like, optional
            The arms that can be played now, as a mask or as indices. Advice is restricted to
            these; an expert who recommends none of them is without advice. If nobody has advice,
            an available arm is drawn uniformly.

        Returns
        -------
        Choice
            It goes back with the loss. The learner remembers the advice until then: a number per
            expert and outstanding ticket.
        """
        mask = self._mask(available)
        given = self._checked_advice(advice, context, mask)
        with self._lock:
            self._draw_words()
            breadth = self._breadth(given)
            q = self._mixture(given, mask, breadth)
            self._buffer[self.spec.packing.slot("A")] = breadth
            self._buffer[self.spec.packing.place("q", self._buffer)] = q
            choice = super().ask()
            self._columns[choice.id] = given.column(choice.arm)
        return choice

    def _checked_advice(
        self, advice: Any, context: object, mask: NDArray[np.bool_] | None
    ) -> Advice:
        if advice is None:
            raise ArgumentTypeError(
                "advice", f"is needed: {self.spec.name} follows experts, ask(advice=...)"
            )
        return checked_advice(advice, context, self.n_experts, self.n_arms, mask)

    def _mask(self, available: ArrayLike | None) -> NDArray[np.bool_] | None:
        """Return which arms can be played, or None if all can."""
        if available is None:
            return None
        return mask_of(available, self.n_arms, self._arm_names) > 0.0

    def _side(self, available: ArrayLike) -> Vector | None:
        mask = mask_of(available, self.n_arms, self._arm_names)
        return None if mask.all() else mask

    def _breadth(self, given: Advice) -> int:
        return max(int(self._scalar("A")), given.breadth())

    def _plain_advice(
        self, advice: Any, context: object = None, available: ArrayLike | None = None
    ) -> list[Any]:
        """Return advice as JSON that `ask` takes, or raise its error."""
        found: Any = None
        if advice is not None:  # read once: it may be a generator, or functions that draw
            given = _array_of(advice, context, self.n_experts, self.n_arms)
            found = given.tolist()
            if given.dtype.kind == "O":
                found = [None if one == SILENT else one for one in found]
        self._checked_advice(found, None, self._mask(available))
        return list(found)

    def _mixture(self, given: Advice, mask: NDArray[np.bool_] | None, breadth: int) -> Vector:
        if given.silent.all():
            alike: Vector = np.ones(self.n_arms) if mask is None else mask.astype(np.float64)
            return alike / alike.sum()
        return given.mixture(self._weights(given.silent, breadth))

    def _weights(self, silent: NDArray[np.bool_], breadth: int) -> Vector:
        """Return weights of the experts that are not silent, in proportion, the largest one 1."""
        L = self._state().L
        excess = L - L[~silent].min()
        excess[silent] = math.inf
        eta = self._rate(breadth)
        with np.errstate(under="ignore", over="ignore"):
            return np.asarray(np.exp(-eta * excess) if eta > 0.0 else 1.0 - silent)

    def tell(self, choice: Choice, loss: float | None = None, **feedback: Any) -> None:
        """Report the loss of a choice; late and out of order is fine.

        Parameters
        ----------
        choice : Choice
            What `ask` returned.
        loss, reward : float
            One of the two, any finite number.
        """
        with self._lock:
            number, _ = self._held(choice)
            column = self._columns.get(number)
            self._buffer[self.spec.packing.place("xi", self._buffer)] = (
                SILENT if column is None else column  # of an ask that was interrupted
            )
            super().tell(choice, loss, **feedback)
            self._columns.pop(number, None)

    def _drop(self, number: int) -> None:
        super()._drop(number)
        self._columns.pop(number, None)

    def _warm_up(self) -> None:
        self._use_compiled()
        self.tell(self.ask(np.zeros(self.n_experts, dtype=np.int64)), max(0.0, self._least))
        _ = self.scale

    # ------------------------------------------------------------------ looking

    @property
    def n_experts(self) -> int:
        """The number of experts."""
        return int(self._params.experts)

    def weights(self) -> Vector:
        """Return the weights of the experts now, an array of shape (n_experts,)."""
        nobody = np.zeros(self.n_experts, dtype=bool)
        weights = self._weights(nobody, int(self._scalar("A")))
        found: Vector = weights / weights.sum()
        return found

    def probabilities(
        self,
        advice: ArrayLike | Sequence[Any] | None = None,
        *,
        context: object = None,
        available: ArrayLike | None = None,
        named: bool = False,
    ) -> Any:
        """Return the distribution that `ask` with these arguments samples from.

        With ``named``, a dict from the names of the arms.
        """
        mask = self._mask(available)
        given = self._checked_advice(advice, context, mask)
        q = self._mixture(given, mask, self._breadth(given))
        return dict(zip(self.arm_names, q.tolist(), strict=True)) if named else q

    # ------------------------------------------------------------------ keeping

    def _kept(self, record: tuple[Any, ...]) -> list[Any]:
        column = self._columns.get(record[3])
        kept = np.full(self.n_experts, SILENT) if column is None else column
        return [*super()._kept(record), documents.encoded(kept)]

    def _record_of(self, number: int, kept: list[Any]) -> tuple[Any, ...]:
        *record, text = kept
        column = documents.decoded(text)
        legal = ((column >= 0.0) & (column <= 1.0 + _SUM)) | (column == SILENT)
        if column.shape != (self.n_experts,) or not legal.all():
            raise ValueError(f"choice {number} remembers other advice")
        self._columns[number] = column
        return super()._record_of(number, record)

    @classmethod
    def _fewest_entries(cls, settings: Mapping[str, Any]) -> int:
        experts = documents.whole_number(settings["n_experts"], 2**48)
        return super()._fewest_entries(settings) + 2 * experts

    def _distribution_now(self) -> Vector:
        return self.weights()

    def _renew_stream(self, bits: PCG64) -> None:
        super()._renew_stream(bits)
        self._columns.clear()


def plain_rate(rate: Any) -> Callable[..., float]:
    """Return a kernel ``rate(params, state)`` as Python runs it."""
    return interpreted(rate)


def scratch(n: int, experts: int) -> tuple[Vector, Vector, Vector]:
    """Return scratch vectors: for the mixture, its partial sums, and a column of advice."""
    return np.zeros(n), np.zeros(LANES), np.zeros(experts)
