"""O-REPS (Zimin & Neu 2013): known transitions and a known range of the losses.

FTRL on pairs with lhat = l/q; the steps are those of `uob_reps_ex` with boxes that hold only the
true transitions (so that u = q), windows that are told, and no explorers. On a fixed set that is
cut out by equations, FTRL and the paper's mirror descent are the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from unbounded._arguments import checked_count, checked_positive
from unbounded.core.clipping import RANGE
from unbounded.core.occupancy import programs
from unbounded.mdps import mvp, uob_reps_ex
from unbounded.mdps.rf_elp import Search
from unbounded.mdps.uob_reps import checked_ranges
from unbounded.play.learner import Seed
from unbounded.play.mdp_learner import MDPLearner, MDPSpec, checked_layers

_NO_GAMMA = 1e-200  # an occupancy may underflow to zero


class OREPS(MDPLearner):
    """O-REPS for bandit feedback.

    Parameters
    ----------
    layers : sequence of int
    n_actions : int
    episodes : int
    transitions : array_like, shape (n_transitions,)
        The true ones, flat: `LayeredMDP.P`.
    loss_range : (low, high) or sequence of H such pairs
    eta_factor : float, default 1
        Multiplies sqrt(H ln(S A/H)/(T S A)).
    tolerance : float, default 1e-8
    seed : int or SeedSequence, optional

    Examples
    --------
    >>> from unbounded.core.occupancy.mdp import LayeredMDP
    >>> mdp = LayeredMDP([1.0], [[[[0.9, 0.1], [0.2, 0.8]]]])
    >>> learner = OREPS([1, 2], 2, 100, transitions=mdp.P, seed=0)
    >>> learner.policy().tables[0].round(3).tolist()  # the most even occupancy
    [[0.476, 0.524]]
    """

    spec = MDPSpec(
        name="OREPS",
        reference="Zimin & Neu 2013",
        State=uob_reps_ex.State,
        sizes=uob_reps_ex.sizes,
        init=uob_reps_ex.init,
        choose=uob_reps_ex.choose,
        learn=uob_reps_ex.learn,
        expected=uob_reps_ex.expected,
        program=programs.ftrl,
    )

    def __init__(
        self,
        layers: Sequence[int],
        n_actions: int,
        episodes: int,
        *,
        transitions: npt.ArrayLike,
        loss_range: npt.ArrayLike = (0.0, 1.0),
        eta_factor: float = 1.0,
        tolerance: float = 1e-8,
        seed: Seed = None,
    ) -> None:
        settings = {k: v for k, v in locals().items() if k not in ("self", "seed", "__class__")}
        shape = checked_layers(layers, n_actions)
        T = checked_count("episodes", episodes)
        checked_positive("eta_factor", eta_factor)
        checked_positive("tolerance", tolerance)
        self._ranges = checked_ranges(loss_range, shape)
        self._P = shape.checked_transitions(transitions)
        settings |= {
            "layers": list(shape.sizes),
            "loss_range": self._ranges.tolist(),
            "transitions": self._P.tolist(),
        }
        H, S, A = shape.horizon, sum(shape.sizes), shape.n_actions
        eta = eta_factor * math.sqrt(H * max(math.log(S * A / H), 1e-3) / (T * S * A))
        params = uob_reps_ex.Params(
            # w_h = W_h/(2 eta) in uob_reps_ex, R_h/eta here
            eta=0.5 * eta, gamma=_NO_GAMMA, beta=0.0, kappa=1e-3, skip=0.0,
            tolerance=float(tolerance), c1=1.0, c2=1.0, log_term=1.0, clip=RANGE, rule=0,
            mixture=False, keep_counts=False, learn_thresholds=False, known=True, fixed=True,
            search=Search(1, 0, True), bonus=mvp.practical_bonus(shape, 1, 0.5),
        )  # fmt: skip
        self._start(shape, params, settings, seed)

    def _prepare(self, state: uob_reps_ex.State) -> None:
        state.lo[:] = state.hi[:] = self._P
        state.low[:], state.high[:] = self._ranges.T
        mantissa, exponent = np.frexp(state.high - state.low)
        state.W[:], state.e[:] = mantissa, exponent
        uob_reps_ex.begin(self.layers.table, self._params, state, self.spec.program())
