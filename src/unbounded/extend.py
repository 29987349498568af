"""What compiled learners and adversaries of your own are written with.

For an algorithm in plain Python, `unbounded.PythonLearner` is enough. A compiled one is a file like
those of the package: ``Params`` and ``State``, NamedTuples; ``init``; the kernels ``distribution``,
``act``, ``update`` and ``scale``; and a class below `Learner` with ``spec = BanditSpec.of(__name__,
...)`` whose constructor ends with ``self._start(Params(...), seed)`` (`MDPLearner`,
`MDPSpec` and ``self._begin(layers, Params(...), seed)`` for MDPs). All that such a file
needs has a name here, and these names stay; what is not here or in ``unbounded`` may change.

=====================  ==========================================================================
kernels                `kernel` is compiled into its callers, `subroutine` is called; `assign` is
                       ``out[:] = values`` for vectors of one size
arrays                 `Vector`, `Matrix`, `Integers`; `Scratch`, `IntScratch` of a state hold
                       nothing from one step to the next; `Count`, `Size`, `Share`, `Distribution`
                       ... say what its fields can hold, which `load` checks
distributions          `Law`, `new_law`; `sample` draws an arm, `fill` copies out, `mix` is
                       ``a q + b`` and must follow whenever ``law.q`` was written to
FTRL                   `shannon_mixed`, `tsallis_mixed` with `Anchor`, `log_barrier_mixed`
clipping               `Window`, `EMPTY`, `clip` and what goes with them; `Windows` of layers;
                       `to_unit` for a known range
MDPs                   `Layers` and the rows of its table; `roll_forward` (occupancy),
                       `backward_induction`, `condition`; `markov_act`, `markov_distribution` for
                       learners that keep one policy in ``state.pi``
random numbers         `stream_of`, `uniform_at`, `word_at`: a function of (key, t, k)
arguments              ``checked_...``: the value as it should be, or a sentence
=====================  ==========================================================================

Examples
--------
>>> from unbounded.extend import kernel, new_law, sample
>>> @kernel
... def two(law, word):
...     return sample(law, word)[0], sample(law, word + (1 << 62))[0]
>>> two(new_law(4), 0)
(0, 1)

Sizes and indices are checked before anything is written, also in compiled code, where Numba itself
would read and write past the end of an array.

>>> import numpy as np
>>> from unbounded.extend import fill
>>> fill(new_law(4), np.empty(3))
Traceback (most recent call last):
ValueError: fill(law, q): q must have one entry for each arm of the law
"""

from typing import Any

from unbounded.core.arrays import (
    Arm,
    Count,
    Counts,
    CountsBelowT,
    Distribution,
    Exponent,
    Flags,
    Integers,
    IntScratch,
    Mantissa,
    Matrix,
    Round,
    Scratch,
    Share,
    Shares,
    Size,
    Sizes,
    Values,
    Vector,
    require,
    require_counts,
    require_distribution,
)
from unbounded.core.clipping import (
    EMPTY,
    NONE,
    RANGE,
    SCALE,
    Window,
    Windows,
    checked_clipping,
    clip,
    empty_windows,
    rescale,
    scale_of,
    to_unit,
    unit_factor,
)
from unbounded.core.clipping import clip_each as _clip_each
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, TRIPLE, Layers, horizon
from unbounded.core.occupancy.layout import backward_induction as _backward_induction
from unbounded.core.occupancy.layout import condition as _condition
from unbounded.core.occupancy.layout import roll_forward as _roll_forward
from unbounded.core.occupancy.mdp import LayeredMDP, Markov
from unbounded.core.random import stream_of, uniform_at, word_at
from unbounded.core.scaled import LARGEST
from unbounded.core.simplex.ftrl import Anchor, tsallis_moved
from unbounded.core.simplex.ftrl import log_barrier_mixed as _log_barrier_mixed
from unbounded.core.simplex.ftrl import shannon_mixed as _shannon_mixed
from unbounded.core.simplex.ftrl import tsallis_cold as _tsallis_cold
from unbounded.core.simplex.ftrl import tsallis_mixed as _tsallis_mixed
from unbounded.core.simplex.sampling import LANES, ROOM, Law, new_law, uniform
from unbounded.core.simplex.sampling import blend as _mix
from unbounded.core.simplex.sampling import draw as _sample
from unbounded.core.simplex.sampling import fill as _fill
from unbounded.core.simplex.sampling import make_uniform as _make_uniform
from unbounded.core.simplex.sampling import put_all_on as _put_all_on
from unbounded.jit.kernel import assign as _assign
from unbounded.jit.kernel import counting_kernel as kernel
from unbounded.jit.kernel import counting_subroutine as subroutine
from unbounded.jit.kernel import kernel as _kernel
from unbounded.jit.kernel import subroutine as _subroutine
from unbounded.learners.bandit import Learner
from unbounded.learners.mdp import MDPLearner, checked_layers
from unbounded.learners.mdp_steps import OWN as _OWN
from unbounded.learners.python.bandit import PythonLearner
from unbounded.learners.python.mdp import PythonMDPLearner
from unbounded.learners.seeds import Seed
from unbounded.learners.spec import BanditSpec, Cache, MDPSpec
from unbounded.simulation.adversary import Adversary, MDPAdversary
from unbounded.validation import (
    checked_at_least,
    checked_count,
    checked_finite,
    checked_flag,
    checked_option,
    checked_positive,
    checked_range,
    checked_share,
    checked_within,
)

__all__ = [
    "ACTIONS", "EMPTY", "LARGEST", "NONE", "PAIR", "RANGE", "SCALE", "SIZE", "STATE", "TRIPLE",
    "Adversary", "Anchor", "Arm", "BanditSpec", "Cache", "Count", "Counts", "CountsBelowT",
    "Distribution", "Exponent", "Flags", "IntScratch", "Integers", "Law", "LayeredMDP", "Layers",
    "Learner", "MDPAdversary", "MDPLearner", "MDPSpec", "Mantissa", "Markov", "Matrix",
    "PythonLearner", "PythonMDPLearner", "Round", "Scratch", "Seed", "Share", "Shares", "Size",
    "Sizes", "Values", "Vector", "Window", "Windows", "assign", "backward_induction",
    "checked_at_least", "checked_clipping", "checked_count", "checked_finite", "checked_flag",
    "checked_layers", "checked_option", "checked_positive", "checked_range", "checked_share",
    "checked_within", "clip", "clip_each", "condition", "empty_windows", "fill", "horizon",
    "kernel", "log_barrier_mixed", "make_uniform", "markov_act", "markov_distribution", "mix",
    "new_law", "put_all_on", "require", "require_counts", "require_distribution", "rescale",
    "roll_forward", "sample", "scale_of", "shannon_mixed", "stream_of", "subroutine", "to_unit",
    "tsallis_cold", "tsallis_mixed", "tsallis_moved", "uniform", "uniform_at", "unit_factor",
    "word_at",
]  # fmt: skip

# The kernels of the package trust the sizes of their arrays; those below are for everybody.


@_kernel
def assign(out: Any, values: Any) -> None:
    """Set ``out[:] = values``, of two vectors of one size and type."""
    if out.size != values.size:
        raise ValueError("assign(out, values): sizes differ; give slices of one size")
    _assign(out, values)


@_kernel
def _check(law: Law) -> None:
    if law.q.size == 0 or law.lane_sums.size < LANES or law.room.size < ROOM:
        raise ValueError("law has arrays of wrong sizes: make it by new_law(n)")


@_kernel
def fill(law: Law, q: Vector) -> None:
    """Fill ``q`` with the probabilities."""
    if q.size != law.q.size:
        raise ValueError("fill(law, q): q must have one entry for each arm of the law")
    _fill(law, q)


@_kernel
def mix(law: Law, a: float, b: float) -> None:
    """Replace q by ``a * q + b``, which must be a distribution."""
    _check(law)
    _mix(law, a, b)


@_kernel
def make_uniform(law: Law) -> None:
    """Make ``law`` the uniform distribution, whatever it held."""
    _check(law)
    _make_uniform(law)


@_kernel
def put_all_on(law: Law, k: int) -> None:
    """Make arm ``k`` certain."""
    _check(law)
    if not 0 <= k < law.q.size:
        raise ValueError("put_all_on(law, k): there is no such arm; they are 0 .. law.q.size - 1")
    _put_all_on(law, k)


@_kernel
def sample(law: Law, word: int) -> tuple[int, float]:
    """Draw an arm by inversion, with the uniform made of ``word``; return it, its probability."""
    _check(law)
    return _sample(law, word)


@_kernel
def _check_losses(L: Vector, law: Law) -> None:
    _check(law)
    if L.size != law.q.size:
        raise ValueError("L must have one entry for each arm of the law")


@_kernel
def shannon_mixed(L: Vector, eta: float, beta: float, law: Law) -> None:
    """Solve FTRL with Shannon entropy, mixed with a share ``beta`` of the uniform distribution."""
    _check_losses(L, law)
    _shannon_mixed(L, eta, beta, law)


@_kernel
def tsallis_cold(L: Vector, eta: float) -> Anchor:
    """Return an anchor that needs no history: the left end of the bracket for x."""
    if L.size == 0:
        raise ValueError("tsallis_cold(L, eta): L must have at least one entry")
    return _tsallis_cold(L, eta)


@_kernel
def tsallis_mixed(L: Vector, eta: float, anchor: Anchor, beta: float, law: Law) -> Anchor:
    """Solve FTRL with 1/2-Tsallis entropy, mixed with a share ``beta`` of the uniform one."""
    _check_losses(L, law)
    return _tsallis_mixed(L, eta, anchor, beta, law)


@_kernel
def log_barrier_mixed(L: Vector, eta: float, lam: float, law: Law) -> float:
    """Solve FTRL with the log barrier; return lambda."""
    _check_losses(L, law)
    return _log_barrier_mixed(L, eta, lam, law)


@_subroutine
def clip_each(windows: Windows, clip: int, rule: int, losses: Vector) -> int:
    """Clip one loss by each window, in place; return how many were clipped."""
    n = min(windows.W.size, windows.e.size, windows.low.size, windows.high.size)
    if losses.size > min(n, windows.l_plus.size, windows.e_before.size):
        raise ValueError("clip_each: more losses than windows; make them by empty_windows(n)")
    return _clip_each(windows, clip, rule, losses)


@_kernel
def _check_sizes(lay: Integers, P: Vector, by_state: Vector, by_pair: Vector, more: Vector) -> None:
    end = lay.shape[1] - 1
    if min(by_pair.size, more.size) < lay[PAIR, end] or by_state.size < lay[STATE, end]:
        raise ValueError("needs vectors of layers.n_states and layers.n_pairs entries")
    if P.size < lay[TRIPLE, end]:
        raise ValueError("needs transitions of layers.n_transitions entries")


@_subroutine
def roll_forward(lay: Integers, P: Vector, pi: Vector, mass: Vector, q: Vector) -> None:
    """Compute the occupancy q(s, a) of the Markov policy ``pi``; ``mass`` gets q(s)."""
    _check_sizes(lay, P, mass, pi, q)
    _roll_forward(lay, P, pi, mass, q)


@_subroutine
def condition(lay: Integers, q: Vector, pi: Vector) -> None:
    """Set pi(a|s) = q(s, a)/q(s), uniform where q(s) = 0."""
    if min(q.size, pi.size) < lay[PAIR, lay.shape[1] - 1]:
        raise ValueError("condition(lay, q, pi): needs vectors of layers.n_pairs entries")
    _condition(lay, q, pi)


@_subroutine
def backward_induction(
    lay: Integers, P: Vector, losses: Vector, value: Vector, pi: Vector
) -> float:
    """Find the least expected loss-to-go ``value`` (states) and a deterministic ``pi`` for it."""
    _check_sizes(lay, P, value, losses, pi)
    return _backward_induction(lay, P, losses, value, pi)


@_kernel
def markov_act(lay: Integers, params: Any, state: Any, word: int, pi: Vector) -> int:
    """Play the policy of the state."""
    assign(pi, state.pi)
    return _OWN


@_kernel
def markov_distribution(
    lay: Integers, params: Any, state: Any, P: Vector, cache: Cache, q: Vector
) -> None:
    """Fill ``q`` with its occupancy under ``P``."""
    roll_forward(lay, P, state.pi, cache.mass, q)
