"""Ask/tell learners: the interactive face of the compiled steps."""

from __future__ import annotations

import base64
import json
import math
import os
import secrets
import tempfile
import threading
from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self, SupportsIndex

import numpy as np
from numpy.random import PCG64, SeedSequence
from numpy.typing import ArrayLike

from unbounded.core.lanes import Vector
from unbounded.spec import WORDS, BanditSpec

Seed = int | SeedSequence | None

_FORMAT = "unbounded.learner"
_VERSION = 1
_CHOICES = 0x5CB  # the branch of a seed's tree that learners draw from


class Choice:
    """A ticket for one decision: what was chosen, with what probability.

    It can be used as an index: ``servers[choice]``.
    """

    __slots__ = ("_learner", "_memo", "arm", "id", "probability")

    def __init__(self, arm: int, probability: float, memo: float, number: int, learner: str):
        self.arm = arm
        self.probability = probability
        self.id = number
        self._memo = memo
        self._learner = learner

    def __index__(self) -> int:
        return self.arm

    def __repr__(self) -> str:
        return f"Choice(arm={self.arm}, probability={self.probability:.4g}, id={self.id})"


class Learner:
    """Base of every bandit learner: ask for an arm, tell its loss.

    Calls from several threads are safe: they are carried out one at a time.
    """

    spec: ClassVar[BanditSpec]

    def __init__(self, *, seed: Seed = None, **settings: Any) -> None:
        raise TypeError("Learner is the base of the learners: make an SCB, for example")

    def _start(self, params: Any, settings: Mapping[str, Any], seed: Seed) -> None:
        self._params = params
        self._settings = dict(settings)
        self._entries = self.spec.entries
        self._ask, self._tell = self._entries.ask, self._entries.tell
        self._buffer = self._entries.new_buffer(params)
        self._bits = bit_generator(seed)
        self._words_left = 0
        self._delayed = self.spec.delayed
        self._outstanding: dict[int, Choice] = {}
        self._name = secrets.token_hex(8)
        self._lock = threading.Lock()
        self._acquire, self._release = self._lock.acquire, self._lock.release

    # ------------------------------------------------------------------ playing

    def ask(self) -> Choice:
        """Choose an arm.

        Returns
        -------
        Choice
            The ticket to give back with the loss. Several may be outstanding, unless the
            algorithm says otherwise.
        """
        self._acquire()  # half the price of `with self._lock`, and this is the hot path
        try:
            if self._outstanding and not self._delayed:
                raise RuntimeError(
                    f"{self.spec.name} needs the loss of {next(iter(self._outstanding.values()))} "
                    "before it can choose again: tell() or forget() it first"
                )
            if not self._words_left:
                self._entries.words(self._buffer)[:] = self._bits.random_raw(WORDS)
                self._words_left = WORDS
            self._words_left -= 1
            arm, probability, memo, number = self._ask(self._buffer)
            choice = Choice(arm, probability, memo, number, self._name)
            self._outstanding[number] = choice
            return choice
        finally:
            self._release()

    def tell(
        self,
        choice: Choice,
        loss: float | None = None,
        *,
        reward: float | None = None,
        losses: ArrayLike | None = None,
    ) -> None:
        """Report the loss of a choice; late and out of order is fine.

        Parameters
        ----------
        choice : Choice
            What `ask` returned.
        loss : float
            Any finite number; lower is better.
        reward : float
            Instead of ``loss``: higher is better.
        losses : array_like of shape (n_arms,)
            Instead of ``loss``, for full-information learners: the losses of all the arms.
        """
        value: Any
        if self.spec.feedback == "full":
            value = self._checked_losses(loss, reward, losses)
        else:
            if losses is not None:
                raise TypeError(
                    f"{self.spec.name} learns from the loss of the arm that was played: "
                    "pass loss= or reward=, not losses="
                )
            if reward is not None:
                if loss is not None:
                    raise TypeError("pass either loss or reward, not both")
                value = -self._checked("reward", reward)
            else:
                value = self._checked("loss", loss)
        self._acquire()
        try:
            self._known(choice)
            del self._outstanding[choice.id]
            self._tell(self._buffer, choice.arm, choice._memo, value)
        finally:
            self._release()

    def forget(self, choice: Choice) -> None:
        """Drop a choice whose loss will never be known; nothing is learned from it."""
        with self._lock:
            self._known(choice)
            del self._outstanding[choice.id]

    def _known(self, choice: Choice) -> None:
        if not isinstance(choice, Choice):
            raise TypeError(
                f"choice must be what ask() returned, not {choice!r}; for a ticket's number use "
                "learner.outstanding[number]"
            )
        if self._outstanding.get(choice.id) is choice:
            return
        if choice._learner != self._name:
            raise ValueError(
                f"{choice!r} was issued by another learner; tell it to the learner that was asked"
            )
        if choice.id not in self._outstanding:
            raise ValueError(
                f"{choice!r} is not outstanding: it was told or forgotten before; "
                "ask() again for a new choice"
            )

    def _checked(self, name: str, value: object) -> float:
        if type(value) is float and abs(value) <= self.spec.largest_loss and value - value == 0.0:
            return value
        if value is None:
            raise TypeError("tell() needs loss= or reward=")
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
            raise TypeError(f"{name} must be a real number, not {value!r}; pass float({name})")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise ValueError(
                f"{name} must be finite, got {value!r}; if there is no {name}, "
                "forget() the choice instead"
            )
        if abs(number) > self.spec.largest_loss:
            raise ValueError(
                f"{self.spec.name} squares its losses and takes at most "
                f"{self.spec.largest_loss:g}, got {value!r}; rescale, or use SCB"
            )
        return number

    def _checked_losses(self, loss: object, reward: object, losses: ArrayLike | None) -> Vector:
        if losses is None or loss is not None or reward is not None:
            raise TypeError(f"{self.spec.name} learns from all the losses: pass losses=vector")
        vector = np.array(losses)
        if vector.shape != (self.n_arms,):
            raise ValueError(
                f"losses must have shape ({self.n_arms},), got {vector.shape}: one for each arm"
            )
        if vector.dtype.kind not in "iuf":
            raise TypeError(f"losses must be real numbers, not of type {vector.dtype}")
        for value in vector.tolist():
            self._checked("losses", value)
        return vector.astype(np.float64)

    # ------------------------------------------------------------------ looking

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return int(self._params.n)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The arguments that make an equal fresh learner, the seed apart."""
        return MappingProxyType(self._settings)

    def probabilities(self) -> Vector:
        """The distribution that the next `ask` samples from, an array of shape (n_arms,)."""
        q = np.empty(self.n_arms)
        with self._lock:
            self._entries.look(self._buffer, q)
        return q

    @property
    def rounds(self) -> int:
        """How many losses have been told."""
        return int(self._buffer[self._entries.slot("t")]) - 1

    @property
    def clipped(self) -> int:
        """How many losses were clipped, because they exceeded what had been seen before them
        (or, for a learner with a fixed range, because they were outside it)."""
        return int(self._buffer[self._entries.slot("clipped")])

    @property
    def scale(self) -> float:
        """The scale that the learner now works with: its clipping threshold, or its range."""
        with self._lock:
            return float(self._entries.scale(self._buffer))

    @property
    def outstanding(self) -> Mapping[int, Choice]:
        """The choices whose loss has not been told, by ``choice.id``."""
        return MappingProxyType(self._outstanding)

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._settings.items())
        return f"{self.spec.name}({settings})"

    # ------------------------------------------------------------------ keeping

    def save(self, path: str | os.PathLike[str] | None = None) -> str:
        """Everything that the learner knows, its generator and outstanding choices included.

        Parameters
        ----------
        path : path, optional
            A file to write it to as well, all or nothing.

        Returns
        -------
        str
            JSON, for `load`.
        """
        with self._lock:
            generator = self._bits.state
            assert generator["bit_generator"] == "PCG64"
            document = {
                "format": _FORMAT,
                "version": _VERSION,
                "algorithm": self.spec.name,
                "settings": self._settings,
                "buffer": base64.b64encode(self._buffer.astype("<f8").tobytes()).decode(),
                "generator": {key: str(value) for key, value in generator["state"].items()},
                "words_left": self._words_left,
                "name": self._name,
                "outstanding": [
                    [c.id, c.arm, c.probability, c._memo] for c in self._outstanding.values()
                ],
            }
        text = json.dumps(document)
        if path is not None:
            _write_whole(Path(path), text)
        return text

    @classmethod
    def load(cls, saved: str | os.PathLike[str]) -> Self:
        """Restore a learner from what `save` returned, or from the file that it wrote.

        The restored learner continues exactly where the saved one stood, and takes the choices
        that were outstanding then.
        """
        is_text = isinstance(saved, str) and saved.lstrip().startswith("{")
        text = str(saved) if is_text else Path(saved).read_text()
        try:
            document = json.loads(text)
            if document["format"] != _FORMAT:
                raise ValueError(f"its format is {document['format']!r}")
            if document["version"] != _VERSION:
                raise ValueError(f"its version is {document['version']!r}, not {_VERSION}")
            if document["algorithm"] != cls.spec.name:
                raise ValueError(
                    f"it holds a {document['algorithm']}: use {document['algorithm']}.load"
                )
            learner = cls(**document["settings"], seed=0)
            buffer = np.frombuffer(base64.b64decode(document["buffer"], validate=True), "<f8")
            if not learner._entries.settings_match(buffer, learner._buffer):
                raise ValueError("its state does not fit its settings")
            learner._buffer[:] = buffer
            learner._bits.state = {
                "bit_generator": "PCG64",
                "state": {
                    "state": int(document["generator"]["state"]),
                    "inc": int(document["generator"]["inc"]),
                },
                "has_uint32": 0,
                "uinteger": 0,
            }
            learner._words_left = int(document["words_left"])
            learner._name = str(document["name"])
            for number, arm, probability, memo in document["outstanding"]:
                if not 0 <= arm < learner.n_arms:
                    raise ValueError(f"choice {number} has arm {arm}")
                choice = Choice(int(arm), float(probability), float(memo), number, learner._name)
                learner._outstanding[int(number)] = choice
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"this is not a saved {cls.spec.name}: {error}") from error
        return learner


def bit_generator(seed: Seed) -> PCG64:
    """The generator of a learner's choices.

    It is not ``PCG64(seed)``: an environment that draws its losses from
    ``np.random.default_rng(seed)`` with the learner's seed would otherwise be correlated with the
    choices, and a good arm could look bad.
    """
    root = seed if isinstance(seed, SeedSequence) else SeedSequence(seed)
    return PCG64(SeedSequence(root.entropy, spawn_key=(*root.spawn_key, _CHOICES)))


def checked_arms(n_arms: SupportsIndex) -> int:
    """``n_arms`` as a positive int, or a clear error."""
    if isinstance(n_arms, bool) or not isinstance(n_arms, SupportsIndex):
        raise TypeError(f"n_arms must be a whole number, not {n_arms!r}")
    n = int(n_arms)
    if n < 1:
        raise ValueError(f"n_arms must be at least 1, got {n}")
    return n


def checked_positive(name: str, value: float, *, below: float = math.inf) -> float:
    """``value`` as a finite float in (0, below), or a clear error."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number, not {value!r}")
    if not 0.0 < value < below or math.isinf(value):
        limit = "" if math.isinf(below) else f" and below {below:g}"
        raise ValueError(f"{name} must be above 0{limit}, got {value!r}")
    return float(value)


def checked_range(name: str, value: Sequence[float]) -> tuple[float, float]:
    """``value`` as two finite floats, the first below the second, or a clear error."""
    try:
        low, high = (float(x) for x in value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be two numbers (low, high), not {value!r}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"{name} must be finite with low < high, got {value!r}")
    return low, high


def checked_option(name: str, value: str, options: tuple[str, ...]) -> int:
    """The position of ``value`` among the ``options``, or a clear error."""
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")
    return options.index(value)


def _write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old text or the new one, never a part."""
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, prefix=path.name, delete=False, encoding="utf-8"
    ) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(file.name, path)
