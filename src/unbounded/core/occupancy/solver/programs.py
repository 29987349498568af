"""Offer the occupancy programs as values: kernels call them, and do not copy them."""

from __future__ import annotations

from typing import get_type_hints

from numba import types

from unbounded.core.occupancy.solver.ftrl import WarmStart, solve
from unbounded.core.occupancy.solver.kl import kl_step
from unbounded.core.occupancy.solver.outcome import Outcome
from unbounded.jit.kernel import Pointer

_T = types.int64[:, ::1]
_V = types.float64[::1]
_F = types.float64
_I = types.int64
_OUTCOME = types.NamedTuple(
    [{float: _F, int: _I}[kind] for kind in get_type_hints(Outcome).values()], Outcome
)
_WARM_START = types.NamedTuple([types.int64[::1], _V, _V, _V, _V], WarmStart)
FTRL_TYPE = _OUTCOME(_T, _V, _V, _I, _V, _V, _F, _WARM_START, _V, _V, _V)
MIRROR_TYPE = _OUTCOME(_T, _V, _V, _V, _V, _F, _V, _V, _V, _V, _V, _V)


ftrl = Pointer(solve, FTRL_TYPE)
mirror = Pointer(kl_step, MIRROR_TYPE)
