"""The occupancy programs as values: kernels call them, and do not copy them when compiled."""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import types

from unbounded._jit import Compiled
from unbounded.core.occupancy.ftrl import solve
from unbounded.core.occupancy.kl import kl_step

_T = types.int64[:, ::1]
_V = types.float64[::1]
_F = types.float64
FTRL_TYPE = types.boolean(_T, _V, _V, types.int64, _V, _V, _F, _V, _V, _V, _V, _V)
MIRROR_TYPE = types.boolean(_T, _V, _V, _V, _V, _F, _V, _V, _V, _V, _V, _V, _V)


@cache
def ftrl() -> Any:
    """`unbounded.core.occupancy.ftrl.solve`."""
    return _value(solve, FTRL_TYPE)


@cache
def mirror() -> Any:
    """`unbounded.core.occupancy.kl.kl_step`."""
    return _value(kl_step, MIRROR_TYPE)


def _value(step: Any, signature: Any) -> Any:
    return Compiled(step, signature) if hasattr(step, "overloads") else step  # NUMBA_DISABLE_JIT
