"""Ask/tell learners: the interactive face of the compiled steps."""

from __future__ import annotations

import base64
import json
import math
import os
import secrets
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import PCG64, SeedSequence
from numpy.typing import ArrayLike

from unbounded.core.arrays import (
    Vector,
)
from unbounded.play.spec import ASKED, DRAWN, BanditSpec

Seed = int | SeedSequence | None

_FORMAT = "unbounded.play.learner"
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

    Threads may share a learner: the compiled steps hold the GIL, so each is one indivisible
    action for other threads, and a lock guards what takes more than one.
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
        self._delayed = self.spec.delayed
        self._outstanding: dict[int, Choice] = {}
        self._name = secrets.token_hex(8)
        self._lock = threading.Lock()
        self._forgotten = 0
        full = self.spec.feedback == "full"
        self._limit = 0.0 if full else min(self.spec.largest_loss, sys.float_info.max)

    # ------------------------------------------------------------------ playing

    def ask(self) -> Choice:
        """Choose an arm.

        Returns
        -------
        Choice
            The ticket to give back with the loss. Several may be outstanding, unless the
            algorithm says otherwise.
        """
        if not self._delayed:
            return self._ask_alone()
        arm, probability, memo, number = self._ask(self._buffer)
        if arm < 0:
            self._draw_words()
            return self.ask()
        choice = Choice(arm, probability, memo, number, self._name)
        self._outstanding[number] = choice
        return choice

    def _draw_words(self) -> None:
        with self._lock:
            if self._buffer[ASKED] == self._buffer[DRAWN]:  # no other thread has done it
                self._entries.draw_words(self._buffer, self._bits)

    def _ask_alone(self) -> Choice:
        with self._lock:
            if self._outstanding:
                raise RuntimeError(
                    f"{self.spec.name} needs the loss of {next(iter(self._outstanding.values()))} "
                    "before it can choose again: tell() or forget() it first"
                )
            if self._buffer[ASKED] == self._buffer[DRAWN]:
                self._entries.draw_words(self._buffer, self._bits)
            arm, probability, memo, number = self._ask(self._buffer)
            choice = self._outstanding[number] = Choice(arm, probability, memo, number, self._name)
            return choice

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
        if type(loss) is float and -self._limit <= loss <= self._limit and reward is losses is None:
            value = loss  # the usual case, at the least cost
        else:
            value = self._checked_feedback(loss, reward, losses)
        self._take(choice)
        self._tell(self._buffer, choice.arm, choice._memo, value)

    def forget(self, choice: Choice) -> None:
        """Drop a choice whose loss will never be known; nothing is learned from it."""
        self._take(choice)
        self._forgotten += 1

    def _take(self, choice: Choice) -> None:
        """Remove a choice from the outstanding ones, or say why it is not among them."""
        if not isinstance(choice, Choice):
            raise TypeError(
                f"choice must be what ask() returned, not {choice!r}; for a ticket's number use "
                "learner.outstanding[number]"
            )
        if choice._learner != self._name:
            raise ValueError(
                f"{choice!r} was issued by another learner; tell it to the learner that was asked"
            )
        if self._outstanding.pop(choice.id, None) is None:
            raise ValueError(
                f"{choice!r} is not outstanding: it was told or forgotten before; "
                "ask() again for a new choice"
            )

    def _checked_feedback(self, loss: object, reward: object, losses: ArrayLike | None) -> Any:
        if self.spec.feedback == "full":
            return self._checked_losses(loss, reward, losses)
        if losses is not None:
            raise TypeError(
                f"{self.spec.name} learns from the loss of the arm that was played: "
                "pass loss= or reward=, not losses="
            )
        if reward is None:
            return self._checked("loss", loss)
        if loss is not None:
            raise TypeError("pass either loss or reward, not both")
        return -self._checked("reward", reward)

    def _checked(self, name: str, value: object) -> float:
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
        buffer, generator, outstanding = self._snapshot()
        document = {
            "format": _FORMAT,
            "version": _VERSION,
            "algorithm": self.spec.name,
            "settings": self._settings,
            "buffer": base64.b64encode(buffer.astype("<f8").tobytes()).decode(),
            "generator": {key: str(value) for key, value in generator["state"].items()},
            "forgotten": self._forgotten,
            "name": self._name,
            "outstanding": [[c.id, c.arm, c.probability, c._memo] for c in outstanding],
        }
        text = json.dumps(document)
        if path is not None:
            _write_whole(Path(path), text)
        return text

    def _snapshot(self) -> tuple[Vector, Any, list[Choice]]:
        while True:
            with self._lock:
                buffer, outstanding = self._buffer.copy(), list(self._outstanding.values())
                generator = self._bits.state
            told = buffer[self._entries.slot("t")] - 1
            if buffer[ASKED] == told + self._forgotten + len(outstanding):
                return buffer, generator, outstanding
            time.sleep(0.0)  # another thread is in the middle of an ask or a tell

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
            learner._forgotten = int(document["forgotten"])
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


def _write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old text or the new one, never a part."""
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, prefix=path.name, delete=False, encoding="utf-8"
    ) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(file.name, path)
