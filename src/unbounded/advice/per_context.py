"""One learner per kind of request, where the data decide how finely to split.

A *split* is a set of factors of the context: {} has one learner for all requests, {region} one per
region, {region, tier} one per pair. In every round the learner that each split has for this request
recommends its own distribution p_s over the arms, and an arm is drawn from q = sum_s w_s p_s. All
of these learners then learn from the loss, divided by the mixture's probability q_k instead of
their own, so that none must wait to be followed. The weights w are FTRL's with the 1/2-Tsallis
entropy on the estimates y_s = z_{s,k} (l - B) / max(q_k, 1/20), where B is the mean loss so far and
z_s lies halfway between p_s and the arm with the least mean loss in this kind: fine splits are
judged by what they know, too, and not only by what they pay while they learn. Estimates of requests
of other kinds count half. A share 2 / N^(3/4) of the weights is in proportion to the number of
kinds that a split has. No regret bound is known (docs/theory/advice.md).
"""

from __future__ import annotations

import math
import os
import secrets
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

import unbounded.bandits as bandits
from unbounded.bandits.ada_inf import AdaINF
from unbounded.bandits.cost_scb import CostSCB
from unbounded.bandits.cost_scb_ix import CostSCBIX
from unbounded.bandits.scb import SCB
from unbounded.bandits.scb_ix import SCBIX
from unbounded.core.arrays import Matrix, Vector
from unbounded.io import write_atomic
from unbounded.learners import persistence as documents
from unbounded.learners.bandit import Choice, Learner
from unbounded.learners.seeds import Seed, bit_generator
from unbounded.learners.spec import SideAsk
from unbounded.learners.tickets import Issuer
from unbounded.validation import ArgumentTypeError, ArgumentValueError, checked_loss, shown, warn

_ANY_PROBABILITY = (AdaINF, CostSCB, CostSCBIX, SCB, SCBIX)  # divide by what the ask remembers
_MOST_FACTORS = 4  # of which all subsets are tried
_RATE = 4.0  # c
_EXPLORED = 2.0  # times N^(-3/4): the share of the weights that does not follow the losses
_OTHERS = 0.5  # how much losses of other kinds of requests count
_LEAST_PROBABILITY = 0.05  # that weights divide by
_LEAST_UNIT = -1100
_KINDS = (str, int, float, bool, type(None))


class Mixture:
    """The weights of the splits, and what they follow from; all in units of 2^e."""

    def __init__(self, splits: int, decay: float) -> None:
        self.kinds = np.zeros(splits)  # that were seen
        self.rows: dict[tuple[Hashable, ...], int] = {}  # of the finest kinds, in what follows
        self.L = np.zeros((0, splits))
        self.Z = np.zeros(0)  # sums of squares
        self.N = np.zeros(0)  # rounds, weighted
        self.C = 0.0  # the largest |l - B|: in [0.5, 1), or 0
        self.e = 0
        self.B = 0.0  # the mean loss, in the unit of the losses
        self._decay = decay

    def weights(self, kind: tuple[Hashable, ...] | None = None) -> Vector:
        """Return w for requests of a finest kind; those of one that was not seen by default."""
        K = self.kinds.size
        if K == 1 or self.C == 0.0:
            return np.full(K, 1.0 / K)
        L, Z, N = _OTHERS * self.L.sum(axis=0), _OTHERS**2 * self.Z.sum(), _OTHERS * self.N.sum()
        row = self.rows.get(kind) if kind is not None else None
        if row is not None:
            L = L + (1.0 - _OTHERS) * self.L[row]
            Z += (1.0 - _OTHERS**2) * self.Z[row]
            N += (1.0 - _OTHERS) * self.N[row]
        excess = ((L - L.min()) * (_RATE / math.sqrt(self.C * self.C + Z))).tolist()
        x = -2.0 * math.sqrt(K)  # the normalizer is between this and -2; Newton from the left
        for _ in range(100):
            roots = [2.0 / (d - x) for d in excess]
            step = (sum(r * r for r in roots) - 1.0) / sum(r * r * r for r in roots)
            x = min(x - step, -2.0)
            if abs(step) <= 1e-12:
                break
        w = np.array([4.0 / (d - x) ** 2 for d in excess])
        share = min(0.5, _EXPLORED * (N + 1.0) ** -0.75)
        found: Vector = (1.0 - share) * w / w.sum() + share * self.kinds / self.kinds.sum()
        return found

    def learn(
        self, kind: tuple[Hashable, ...], loss: float, columns: Vector, w: Vector, q_k: float
    ) -> None:
        """Learn from a loss; ``columns`` are the z_{s,k}, ``w`` and ``q_k`` those of the ask."""
        row = self.rows.setdefault(kind, len(self.rows))
        if row == self.Z.size:
            self.L = np.vstack([self.L, np.zeros(self.kinds.size)])
            self.Z, self.N = np.append(self.Z, 0.0), np.append(self.N, 0.0)
        if self._decay < 1.0:
            self.L *= self._decay
            self.Z *= self._decay * self._decay
            self.N *= self._decay
        self.N[row] += 1.0
        half = (0.5 * loss - 0.5 * self.B) / float(self.N.sum())  # loss - B may overflow
        self.B = self.B + half + half
        mantissa, exponent = math.frexp(0.5 * loss - 0.5 * self.B)
        if mantissa != 0.0 and (self.C == 0.0 or exponent + 1 > self.e):
            self._rescale(exponent + 1)
        distance = 2.0 * math.ldexp(0.5 * loss - 0.5 * self.B, -self.e)
        y = columns * (distance / max(q_k, _LEAST_PROBABILITY))
        self.L[row] += y
        self.Z[row] += float((w * np.sqrt(w) * (y - distance) ** 2).sum())
        self.C = max(self.C * self._decay, abs(distance))
        fall = math.frexp(self.C)[1]
        if fall < 0:  # it forgets
            self._rescale(self.e + fall)

    def _rescale(self, e: int) -> None:
        """Make 2^e the unit; below the smallest loss all is forgotten."""
        if self.C == 0.0 or e < _LEAST_UNIT:
            self.L[:], self.Z[:], self.C = 0.0, 0.0, 0.0
        self.L = np.ldexp(self.L, self.e - e)
        self.Z = np.ldexp(self.Z, 2 * (self.e - e))
        self.C = math.ldexp(self.C, self.e - e)
        self.e = max(e, _LEAST_UNIT)

    def kept(self) -> list[Any]:
        """Return what it knows, as JSON."""
        numbers = [self.L.tolist(), self.Z.tolist(), self.N.tolist()]
        return [list(self.rows), *numbers, self.C, self.e, self.B]

    def restore(self, kept: list[Any]) -> None:
        """Become what `kept` was taken of, or raise a ValueError."""
        kinds, L, Z, N, C, e, B = kept
        rows = {tuple(kind): row for row, kind in enumerate(kinds)}
        arrays = [np.array(one, dtype=np.float64) for one in (L, Z, N)]
        G = len(rows)
        arrays[0] = arrays[0].reshape(G, self.kinds.size)
        fits = len(kinds) == G and arrays[1].shape == arrays[2].shape == (G,)
        if not fits or not all(np.isfinite(one).all() for one in [*arrays, C, B]):
            raise ValueError("there are no such weights")
        if type(e) is not int or abs(e) > -_LEAST_UNIT or min([*Z, *N, 0.0]) < 0.0:
            raise ValueError("there are no such weights")
        if not (C == 0.0 or 0.5 <= C < 1.0):
            raise ValueError("there is no such unit")
        self.rows, (self.L, self.Z, self.N), self.C, self.e, self.B = rows, arrays, C, e, B


class PerContext:
    """A learner per kind of request, and the data decide how finely to split; no bound is known.

    Which server is best may depend on the region of a request, on its tier, on both, or on
    neither. A learner for each pair learns six times as slowly as one for all, if there are six
    pairs; one for all never finds out. This one has learners for all of these splits, learns in
    all of them from each loss, and follows the split that pays least.

    Parameters
    ----------
    learner : learner
        A fresh one, as in ``AdaINF(n_arms=6)``; each kind of request gets one like it when it is
        first seen. AdaINF, CostSCB, CostSCBIX, SCB or SCBIX.
    factors : sequence of str, optional
        Names of what kinds are made of, as in ``["region", "tier"]``.
    key : callable, optional
        From a context to a mapping from the factors to values: strings, numbers, or None. By
        default the context is such a mapping. Without ``factors``, to one such value.
    splits : sequence of sequences of str, optional
        Which sets of factors to try; by default all subsets of at most four factors. With a
        single one, it is one learner per kind, and no mixture.
    seed : int or SeedSequence, optional
        For the choices.

    Examples
    --------
    >>> from unbounded import AdaINF, PerContext
    >>> servers = PerContext(AdaINF(n_arms=3), ["region", "tier"], seed=0)
    >>> best = {"eu": 0, "us": 2}
    >>> for i in range(4000):
    ...     request = {"region": ["eu", "us"][i % 2], "tier": i % 3}
    ...     choice = servers.ask(request)
    ...     servers.tell(choice, loss=1.0 + (choice.arm != best[request["region"]]))
    >>> weights = servers.weights()
    >>> max(weights, key=weights.get)
    ('region',)
    """

    def __init__(
        self,
        learner: Learner,
        factors: Sequence[str] | None = None,
        *,
        key: Callable[[Any], Any] | None = None,
        splits: Sequence[Sequence[str]] | None = None,
        seed: Seed = None,
    ) -> None:
        if not isinstance(learner, _ANY_PROBABILITY):
            names = ", ".join(cls.__name__ for cls in _ANY_PROBABILITY)
            raise ArgumentTypeError("learner", f"must be one of {names}, got {shown(learner)}")
        if learner.rounds or learner.outstanding:
            raise ArgumentValueError("learner", f"must be fresh, got {learner!r}")
        half_life = learner.settings.get("half_life")
        if not isinstance(half_life, int | None):
            raise ArgumentValueError("learner", f"must have a half_life in rounds, got {learner!r}")
        if factors is None and key is None:
            raise ArgumentTypeError("factors", "or key is needed: what tells requests apart?")
        if key is not None and not callable(key):
            must = f"must be a function of the context, got {shown(key)}: names are the factors"
            raise ArgumentTypeError("key", must)
        self._template = learner
        self._one = factors is None
        self._key = key
        self.factors = _checked_factors(("key",) if factors is None else factors)
        self.splits = _checked_splits(self.factors, splits)
        self._cells: dict[tuple[int, tuple[Any, ...]], Learner] = {}
        self._means: dict[tuple[int, tuple[Any, ...]], Matrix] = {}  # losses of each arm, and means
        self._decay = 1.0 if half_life is None else 2.0 ** (-1.0 / half_life)
        self._mixture = Mixture(len(self.splits), self._decay)
        self._bits = bit_generator(seed)
        self._rng = Generator(self._bits)
        self._records: dict[int, tuple[Any, ...]] = {}  # arm, q_k, cells with tickets, z_{.,k}, w
        self._asked = 0
        self._identity = Issuer.of(secrets.token_hex(8), learner._arm_names)
        self._inherited: dict[int, str] = {}  # who issued the tickets that are not ours
        self._heard: list[tuple[str, type[Warning]]] = []  # warnings of learners
        self._said: set[type[Warning]] = set()
        self._lock = threading.RLock()

    # ------------------------------------------------------------------ playing

    def ask(self, context: Any, *, available: ArrayLike | None = None) -> Choice:
        """Choose an arm for a request.

        Parameters
        ----------
        context : object
            What ``key`` takes, or a mapping from the factors to values.
        available : array_like, optional
            The arms that can be played now, for learners that take it.
        """
        kinds = self._kinds(context)
        with self._lock:
            self._template.probabilities(**_given(available))  # errors, before anything changes
            cells = [self._cell(*kind) for kind in kinds]
            rows = np.array([cell.probabilities(**_given(available)) for cell in cells])
            w = self._mixture.weights(self._finest(kinds))
            q = (w[:, None] * rows).sum(axis=0)
            q /= q.sum()
            arm = _drawn(q, self._rng.random())
            tickets = []
            for cell in cells:
                ticket = cell.ask(**_given(available))
                _, p, info, number = cell._records[ticket.id]
                changed = _with_probability(info, p, float(q[arm]))
                cell._records[number] = (arm, float(q[arm]), changed, number)
                tickets.append(number)
            number = self._asked
            self._asked += 1
            leads = [_lead(self._means[kind], p) for kind, p in zip(kinds, rows, strict=True)]
            z = 0.5 * rows[:, arm] + 0.5 * np.array(leads)[:, arm]
            self._records[number] = (arm, float(q[arm]), kinds, tickets, z, w)
            return Choice(arm, float(q[arm]), number, self._identity)

    def tell(
        self, choice: Choice, loss: float | None = None, *, reward: float | None = None
    ) -> None:
        """Report the loss of a choice; late and out of order is fine.

        Parameters
        ----------
        choice : Choice
            What `ask` returned.
        loss, reward : float
            One of the two, any finite number.
        """
        if (loss is None) == (reward is None):
            raise TypeError("tell() needs loss= or reward=, and not both")
        value = checked_loss("loss", loss) if reward is None else -checked_loss("reward", reward)
        with self._lock:
            number, (arm, q_k, kinds, tickets, columns, w) = self._held(choice)
            for kind, ticket in zip(kinds, tickets, strict=True):
                cell = self._cells[kind]
                cell.tell(cell.outstanding[ticket], value)
                _average(self._means[kind], arm, value, self._decay)
            self._mixture.learn(self._finest(kinds), value, columns, w, q_k)
            del self._records[number]
            heard, self._heard[:] = self._heard[:], []
        for text, category in heard:  # when all have learned: a warning may be an error
            if category not in self._said:
                self._said.add(category)
                warn(text, category)

    def forget(self, choice: Choice) -> None:
        """Drop a choice whose loss will never come; nothing is learned from it."""
        with self._lock:
            number, (_, _, kinds, tickets, _, _) = self._held(choice)
            for kind, ticket in zip(kinds, tickets, strict=True):
                self._cells[kind].forget(self._cells[kind].outstanding[ticket])
            del self._records[number]

    def _held(self, choice: Choice) -> tuple[int, tuple[Any, ...]]:
        issuer = self._inherited.get(choice.id) if isinstance(choice, Choice) else None
        if not isinstance(choice, Choice) or choice._learner not in (self._identity, issuer):
            raise ValueError(f"{shown(choice)} was not issued by this PerContext")
        if choice.id not in self._records:
            raise ValueError(f"{choice!r} is not outstanding: it was told or forgotten before")
        return choice.id, self._records[choice.id]

    def _kinds(self, context: Any) -> list[tuple[int, tuple[Any, ...]]]:
        found = context if self._key is None else self._key(context)
        values = {"key": found} if self._one else found
        if not isinstance(values, Mapping):
            raise ArgumentTypeError(
                "context", f"must have values for {list(self.factors)}, got {shown(found)}"
            )
        for name in self.factors:
            if name not in values:
                raise ArgumentValueError("context", f"has no {name!r}: got {shown(found)}")
            value = values[name]
            if not isinstance(value, _KINDS) or value != value:
                raise ArgumentTypeError(
                    "context", f"must have a string, a number or None for {name!r}, got "
                    f"{shown(value)}"
                )  # fmt: skip
        return [(s, tuple(values[name] for name in split)) for s, split in enumerate(self.splits)]

    def _finest(self, kinds: list[tuple[int, tuple[Any, ...]]]) -> tuple[Any, ...]:
        """Return the values of all factors that any split has."""
        pairs = (zip(self.splits[split], kind, strict=True) for split, kind in kinds)
        return tuple({name: value for pair in pairs for name, value in pair}.values())

    def _cell(self, split: int, kind: tuple[Hashable, ...]) -> Learner:
        cell = self._cells.get((split, kind))
        if cell is None:
            template = self._template
            seed = int(self._rng.integers(2**63))
            given = {**template.get_params(), "seed": seed}
            cell = self._cells[split, kind] = type(template)(**given)
            cell._heard = self._heard
            self._means[split, kind] = np.zeros((2, template.n_arms))
            self._mixture.kinds[split] += 1.0
        return cell

    # ------------------------------------------------------------------ looking

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return self._template.n_arms

    @property
    def rounds(self) -> int:
        """Return the number of losses told."""
        return sum(cell.rounds for (split, _), cell in self._cells.items() if split == 0)

    @property
    def outstanding(self) -> list[int]:
        """Return the numbers of the choices that were not told."""
        return list(self._records)

    def weights(self, context: Any = None) -> dict[tuple[str, ...], float]:
        """Return how far each split is followed for a request, by default for a new kind of one."""
        kind = None if context is None else self._finest(self._kinds(context))
        return dict(zip(self.splits, self._mixture.weights(kind).tolist(), strict=True))

    def probabilities(self, context: Any, *, available: ArrayLike | None = None) -> Vector:
        """Return the distribution that `ask` with these arguments samples from."""
        kinds = self._kinds(context)
        cells = [self._cells.get(kind, self._template) for kind in kinds]
        rows = np.array([cell.probabilities(**_given(available)) for cell in cells])
        w = self._mixture.weights(self._finest(kinds))
        q: Vector = (w[:, None] * rows).sum(axis=0)
        return np.asarray(q / q.sum())

    def __repr__(self) -> str:
        """Return what it is made of, and how much was told."""
        return f"PerContext({self._template!r}, {list(self.factors)}) after {self.rounds} rounds"

    # ------------------------------------------------------------------ keeping

    def save(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return everything that it knows, as JSON for `load`, but not ``key``."""
        with self._lock:
            outstanding = [
                [
                    number,
                    self._inherited.get(number, self._identity),
                    arm,
                    q_k,
                    tickets,
                    columns.tolist(),
                    w.tolist(),
                    [k for _, k in kinds],
                ]
                for number, (arm, q_k, kinds, tickets, columns, w) in self._records.items()
            ]
            fields = {
                "learner": self._template.spec.name, "kept": self._template.save(),
                "factors": None if self._one else self.factors, "splits": self.splits,
                "cells": [
                    [split, kind, one.save(), self._means[split, kind].tolist()]
                    for (split, kind), one in self._cells.items()
                ],
                "mixture": self._mixture.kept(), "asked": self._asked, "outstanding": outstanding,
                "generator": documents.generator_fields(self._bits),
            }  # fmt: skip
            text = documents.written("PerContext", fields)
        if path is not None:
            write_atomic(os.path.realpath(path), text.encode())
        return text

    @classmethod
    def load(
        cls, saved: str | os.PathLike[str], *, key: Callable[[Any], Any] | None = None
    ) -> Self:
        """Restore what `save` returned, or the file that it wrote, with the same ``key``."""
        try:
            fields = documents.read(documents.text_of(saved), "PerContext")
            return cls._restored(fields, key)
        except documents.DAMAGE as error:
            raise ValueError(f"this is not a saved PerContext: {error}") from error

    @classmethod
    def _restored(cls, fields: dict[str, Any], key: Callable[[Any], Any] | None) -> Self:
        made = bandits.algorithms()[fields["learner"]]
        if fields["factors"] is None and key is None:
            raise ValueError("it was made with key=, which is code: pass it to load()")
        splits, template = fields["splits"], made.load(fields["kept"])
        found = cls(template, fields["factors"], key=key, splits=splits)
        documents.restore_generator(found._bits, fields["generator"])
        for split, kind, text, means in fields["cells"]:
            cell = made.load(text)
            fits = cell.settings == template.settings and 0 <= split < len(found.splits)
            if not fits or len(kind) != len(found.splits[split]):
                raise ValueError("it has another learner among its own")
            cell._heard = found._heard
            found._cells[split, tuple(kind)] = cell
            found._means[split, tuple(kind)] = np.array(means, dtype=np.float64)
        for split, _ in found._cells:
            found._mixture.kinds[split] += 1.0
        for one in found._means.values():
            if one.shape != (2, found.n_arms) or not (np.isfinite(one).all() and one[0].min() >= 0):
                raise ValueError("there are no such means")
        found._mixture.restore(fields["mixture"])
        found._asked = documents.whole_number(fields["asked"], 2**53)
        for number, issuer, arm, q_k, tickets, columns, w, keys in fields["outstanding"]:
            documents.whole_number(number, found._asked)
            kinds = [(split, tuple(kind)) for split, kind in enumerate(keys)]
            cells = [found._cells[kind] for kind in kinds]
            for cell, ticket in zip(cells, tickets, strict=True):
                if cell._records[ticket][:2] != (arm, q_k):
                    raise ValueError(f"choice {number} is another one")
            shares = np.array([columns, w], dtype=np.float64)
            if shares.shape != (2, len(cells)) or not ((shares >= 0.0) & (shares <= 1.0)).all():
                raise ValueError(f"choice {number} remembers other weights")
            found._records[number] = (arm, q_k, kinds, tickets, shares[0], shares[1])
            found._inherited[number] = issuer
        used = [
            one
            for _, _, kinds, tickets, _, _ in found._records.values()
            for one in zip(kinds, tickets, strict=True)
        ]
        if len(set(used)) < len(used):
            raise ValueError("two choices have one ticket")
        return found


def _checked_factors(factors: Sequence[str]) -> tuple[str, ...]:
    names = tuple(factors) if not isinstance(factors, str) else ()
    if not names or not all(isinstance(one, str) for one in names) or len(set(names)) < len(names):
        raise ArgumentValueError("factors", f"must be distinct names, got {shown(factors)}")
    return names


def _checked_splits(
    factors: tuple[str, ...], splits: Sequence[Sequence[str]] | None
) -> tuple[tuple[str, ...], ...]:
    if splits is None:
        if len(factors) > _MOST_FACTORS:
            raise ArgumentValueError(
                "factors", f"are {len(factors)}: of more than {_MOST_FACTORS}, say which splits= "
                "to try"
            )  # fmt: skip
        sizes = range(len(factors) + 1)
        return tuple(split for size in sizes for split in combinations(factors, size))
    found = tuple(tuple(split) for split in splits if not isinstance(split, str))
    known = all(set(split) <= set(factors) and len(set(split)) == len(split) for split in found)
    if len(found) < len(splits) or not found or not known or len(set(found)) < len(found):
        raise ArgumentValueError(
            "splits", f"must be distinct sets of {list(factors)}, got {shown(splits)}"
        )
    return found


def _given(available: ArrayLike | None) -> dict[str, Any]:
    return {} if available is None else {"available": available}


def _with_probability(info: Any, p: float, q: float) -> Any:
    """Return what an ask remembers, with the probability ``q`` instead of ``p``."""
    if isinstance(info, SideAsk):
        return info._replace(info=info.info - p + q)
    return info - p + q


def _lead(means: Matrix, p: Vector) -> Vector:
    """Return all probability on the arm with the least mean loss; ``p`` as long as none is known,
    whose arms of probability 0 sleep."""
    known = (means[0] > 0.0) & (p > 0.0)
    if not known.any():
        return p
    found = np.zeros(p.size)
    found[np.where(known, means[1], np.inf).argmin()] = 1.0
    return found


def _average(means: Matrix, arm: int, loss: float, decay: float) -> None:
    """Learn the mean loss of an arm."""
    means[0] *= decay
    means[0, arm] += 1.0
    half = (0.5 * loss - 0.5 * means[1, arm]) / means[0, arm]  # loss - mean may overflow
    means[1, arm] += half
    means[1, arm] += half


def _drawn(q: Vector, u: float) -> int:
    """Return an arm drawn from ``q``, which is positive for it."""
    k = int(np.searchsorted(np.cumsum(q), u, side="right"))
    return k if k < q.size and q[k] > 0.0 else int(np.flatnonzero(q)[-1])
