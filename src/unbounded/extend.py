"""What compiled learners and adversaries of your own are written with.

For an algorithm in plain Python, `unbounded.PythonLearner` is enough. A compiled one is a file like
those of the package: ``Params`` and ``State``, NamedTuples; ``init``; the kernels ``distribution``,
``act``, ``update`` and ``scale``; and a class below `Learner` with ``spec = BanditSpec.of(__name__,
...)`` whose constructor ends with ``self._start(Params(...), seed)`` (`MDPLearner`,
`MDPSpec` and ``self._begin(layers, Params(...), seed)`` for MDPs). All that such a file
needs has a name here, and these names stay; what is not here or in ``unbounded`` may change.

=====================  ==========================================================================
kernels                `kernel` is compiled into its callers, `subroutine` is called; `assign` is
                       ``out[:] = values`` for whole vectors
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
"""

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
    clip_each,
    empty_windows,
    rescale,
    scale_of,
    to_unit,
    unit_factor,
)
from unbounded.core.occupancy.layout import (
    ACTIONS,
    PAIR,
    SIZE,
    STATE,
    TRIPLE,
    Layers,
    backward_induction,
    condition,
    horizon,
    roll_forward,
)
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.core.occupancy.policies import Markov
from unbounded.core.random import stream_of, uniform_at, word_at
from unbounded.core.scaled import LARGEST
from unbounded.core.simplex.ftrl import (
    Anchor,
    log_barrier_mixed,
    shannon_mixed,
    tsallis_cold,
    tsallis_mixed,
    tsallis_moved,
)
from unbounded.core.simplex.sampling import Law, fill, make_uniform, new_law, put_all_on, uniform
from unbounded.core.simplex.sampling import blend as mix
from unbounded.core.simplex.sampling import draw as sample
from unbounded.jit.kernel import assign
from unbounded.jit.kernel import counting_kernel as kernel
from unbounded.jit.kernel import counting_subroutine as subroutine
from unbounded.learners.bandit import Learner
from unbounded.learners.mdp import MDPLearner, checked_layers
from unbounded.learners.mdp_steps import markov_act, markov_distribution
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
