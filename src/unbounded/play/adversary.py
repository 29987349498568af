"""What an adversary is, and how the simulator calls one.

An adversary's file has a kernel ``fill(params, state, t, last_arm, q, out)`` that writes the
losses of round t (t = 1, 2, ...) into ``out``. It may look at everything up to and including
q_t, but never at the arm of round t: ``last_arm`` is that of round t - 1 (-1 at t = 1).

An adversary that looks at nothing may also have a kernel ``entry(params, state, t, k)`` that
returns the loss of one arm, the same as ``fill`` would write, and changes nothing. With it, a
simulation need not touch every arm in every round.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numba import types

from unbounded._jit import kernel, pointer
from unbounded.core.arrays import (
    Vector,
)

_V = types.float64[::1]
_ENTRY = types.float64(_V, _V, types.int64, types.int64)
_FILL_ROWS = types.void(_V, _V, types.int64, types.int64, _V, types.float64[:, ::1])


class Adversary:
    """Base of the adversaries.

    Parameters
    ----------
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.
    """

    fill: ClassVar[Callable[..., None]]
    entry: ClassVar[Callable[..., float] | None] = None
    reference: ClassVar[str] = ""
    """Where it was published, if it was."""
    looks: ClassVar[bool] = False
    """Whether ``fill`` uses ``q`` or ``last_arm``; if not, many rounds are filled at once."""

    def __init__(self, *, scale: float = 1.0, shift: float = 0.0) -> None:
        for name, value in (("scale", scale), ("shift", shift)):
            if not math.isfinite(value):
                raise ValueError(f"{name} must be finite, got {value!r}")
        self.scale = float(scale)
        self.shift = float(shift)

    def params(self, n: int, rounds: int) -> Any:
        """What ``fill`` gets as ``params``, for ``n`` arms and ``rounds`` rounds."""
        return ()

    def state(self, n: int, rounds: int, key: int) -> Any:
        """What ``fill`` gets as ``state`` and may change; ``key`` is random, below 2^53."""
        return (key,)

    def begin(self, n: int, rounds: int, key: int) -> tuple[Vector, Vector]:
        """Both, as the arrays that `rows` takes."""
        params = np.concatenate([(self.scale, self.shift), self.params(n, rounds)])
        return params, np.array(self.state(n, rounds, key), dtype=np.float64)

    @classmethod
    @cache
    def rows(cls) -> Any:
        """A compiled pointer that fills several rows of losses."""
        fill = kernel(cls.fill) if not hasattr(cls.fill, "py_func") else cls.fill

        def fill_rows(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
            scale, shift = params[0], params[1]
            for row in range(out.shape[0]):
                fill(params[2:], state, t + row, last_arm, q, out[row])
                if scale != 1.0 or shift != 0.0:
                    for k in range(out.shape[1]):
                        out[row, k] = scale * out[row, k] + shift

        fill_rows.__module__ = cls.__module__
        fill_rows.__qualname__ = f"{cls.__qualname__}.fill_rows"
        return pointer(fill_rows, _FILL_ROWS)

    @classmethod
    @cache
    def loss_of(cls) -> Any:
        """A compiled pointer to the loss of one arm."""
        if cls.entry is None:
            raise TypeError(
                f"{cls.__name__} cannot tell the loss of one arm (it has no kernel `entry`): "
                "simulate against all arms, without comparators="
            )
        entry = kernel(cls.entry) if not hasattr(cls.entry, "py_func") else cls.entry

        def loss_of(params: Any, state: Any, t: int, k: int) -> float:
            loss = entry(params[2:], state, t, k)
            scale, shift = params[0], params[1]
            return scale * loss + shift if scale != 1.0 or shift != 0.0 else loss

        loss_of.__module__ = cls.__module__
        loss_of.__qualname__ = f"{cls.__qualname__}.loss_of"
        return pointer(loss_of, _ENTRY)

    def __repr__(self) -> str:
        settings = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if k[0] != "_")
        return f"{type(self).__name__}({settings})"
