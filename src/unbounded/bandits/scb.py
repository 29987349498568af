"""SCB: minimax-optimal scale-free bandit (Chen & Zhang 2024, Algorithm 1 and Theorem 1).

FTRL with the 1/2-Tsallis entropy on losses that are clipped to what has been seen so far. The
clipping threshold starts at 0, so the scale of the losses need not be known.
"""

from __future__ import annotations

import math
from typing import NamedTuple, SupportsIndex

import numpy as np

from unbounded._jit import kernel
from unbounded.core import clipping
from unbounded.core.clipping import RANGE, Window
from unbounded.core.ftrl import Anchor, tsallis, tsallis_cold, tsallis_moved
from unbounded.core.lanes import LANES, Vector
from unbounded.core.simplex import fill_uniform, mix, sample
from unbounded.learner import Learner, Seed, checked_arms, checked_option, checked_positive
from unbounded.spec import BanditSpec


class Params(NamedTuple):
    n: int
    clip: int  # SCALE: the paper's; RANGE: docs/range-clipping.md
    rule: int  # LAZY: the pseudo-code's threshold; LARGEST: the prose's (erratum E1)
    rate: float  # c: eta_t = c / (W sqrt(t)); the paper has 1
    mixing: float  # multiplies beta_t; 1 except in ablations


class State(NamedTuple):
    t: int
    clipped: int
    W: float  # width of the clipping window, 2 C_t, in units of 2^e
    e: int
    low: float  # extreme losses seen, for range clipping
    high: float
    x: float  # the normaliser of p_t and its power sums: where the next solve starts
    S2: float
    S3: float
    S4: float
    L_hat: Vector  # (n,) cumulative loss estimates, in units of 2^e
    q: Vector  # (n,) q_t
    lane_sums: Vector  # of q, for sampling
    lanes: Vector  # room for sums


def init(params: Params) -> State:
    """C_1 = 0 and q_1 uniform."""
    n = params.n
    q, lane_sums = np.empty(n), np.zeros(LANES)
    fill_uniform(q, lane_sums)
    empty = clipping.EMPTY
    return State(
        t=1, clipped=0, W=empty.W, e=empty.e, low=empty.low, high=empty.high,
        x=0.0, S2=0.0, S3=0.0, S4=0.0,
        L_hat=np.zeros(n), q=q, lane_sums=lane_sums, lanes=np.zeros(3 * LANES),
    )  # fmt: skip


@kernel
def distribution(params: Params, state: State, q: Vector) -> None:
    """Fill ``q`` with q_t."""
    q[:] = state.q


@kernel
def act(params: Params, state: State, word: int) -> tuple[int, float, float]:
    """Draw k_t from q_t; the memo is q_{t,k}."""
    arm = sample(state.q, state.lane_sums, word)
    return arm, state.q[arm], state.q[arm]


@kernel
def update(params: Params, state: State, arm: int, q_k: float, loss: float) -> State:
    """Learn from the loss of ``arm``, which was drawn with probability ``q_k``."""
    n, t, L_hat = params.n, state.t + 1, state.L_hat
    before = Window(state.W, state.e, state.low, state.high)
    l_plus, clipped, window = clipping.clip(before, params.clip, params.rule, loss)  # lines 5, 7
    L_before = L_hat[arm]
    L_hat[arm] += l_plus / q_k  # line 6
    anchor = Anchor(state.x, state.S2, state.S3, state.S4)
    if n > 1 and window.W > 0.0:
        eta = params.rate / (window.W * math.sqrt(t))  # line 8, in units of 2^-e
        if window.e == before.e and before.W > 0.0:
            anchor = tsallis_moved(anchor, L_before, L_hat[arm])
        else:
            if before.W > 0.0:
                clipping.rescale(L_hat, before.e, window.e)
            anchor = tsallis_cold(L_hat, eta)
        anchor = tsallis(L_hat, eta, anchor, state.q, state.lanes)  # line 2, for the next round
        beta = params.mixing * n / (2.0 * n + math.sqrt(n * t))
        mix(state.q, (1.0 - beta) / anchor.S2, beta / n, state.lane_sums)  # line 3
    return State(
        t, state.clipped + clipped, window.W, window.e, window.low, window.high,
        anchor.x, anchor.S2, anchor.S3, anchor.S4,
        L_hat, state.q, state.lane_sums, state.lanes,
    )  # fmt: skip


@kernel
def scale(params: Params, state: State) -> float:
    """C_t, or the observed range."""
    W = state.W if params.clip == RANGE else 0.5 * state.W
    return math.ldexp(W, state.e)


def scale_bound(n: int, T: int) -> float:
    """Theorem 1 with explicit constants, over l_inf: docs/range-clipping.md, section 7."""
    return 27.0 * math.sqrt(n * T) + 2.0 * n


def range_bound(n: int, T: int, rate: float = 1.0) -> float:
    """The theorem of range clipping, over max - min: docs/range-clipping.md, section 4."""
    x = math.sqrt(T / n)
    growth = rate if rate <= 2.0 else rate * (1.0 + math.log1p(x) / x)
    return (3.0 + 4.0 / rate + growth) * math.sqrt(n * T) + 2.0 * n + 1.0


SPEC = BanditSpec(
    name="SCB",
    reference="Chen & Zhang 2024, Algorithm 1",
    guarantee="expected regret O(l_inf (n + sqrt(n T))), Theorem 1",
    Params=Params,
    State=State,
    init=init,
    distribution=distribution,
    act=act,
    update=update,
    scale=scale,
    scale_free=True,
    bound=scale_bound,
    bound_unit="scale",
    examples=({}, {"clip": "range"}, {"clip": "range", "rate": 2.0}, {"threshold": "largest"}),
)


class SCB(Learner):
    """Scale Clipping Bound: the minimax-optimal bandit for losses of unknown scale.

    Expected regret is O(l_inf (n + sqrt(n T))) for losses of any size l_inf, with neither l_inf
    nor the number of rounds T known.

    Parameters
    ----------
    n_arms : int
        The number of arms.
    clip : {"scale", "range"}
        "scale" is the paper's: losses are clipped to [-C, C], C twice the largest seen. "range"
        clips to the range of the losses seen, so that losses in [1000, 1001] are learned as
        fast as losses in [0, 1]; regret is then O(range * sqrt(n T)).
    threshold : {"lazy", "largest"}
        With ``clip="scale"``: whether C changes only when a loss exceeds it, as in the paper's
        pseudo-code, or is always twice the largest loss, as in its text.
    rate : float
        Multiplies the learning rate; 1 is the paper's.
    seed : int or SeedSequence, optional
        For the choices.

    Examples
    --------
    >>> from unbounded import SCB
    >>> learner = SCB(n_arms=3, seed=0)
    >>> for _ in range(1000):
    ...     choice = learner.ask()
    ...     learner.tell(choice, loss=[5e9, 1e9, 4e9][choice])
    >>> int(learner.probabilities().argmax())
    1
    """

    spec = SPEC

    def __init__(
        self,
        n_arms: SupportsIndex,
        *,
        clip: str = "scale",
        threshold: str = "lazy",
        rate: float = 1.0,
        seed: Seed = None,
    ) -> None:
        params = Params(
            n=checked_arms(n_arms),
            clip=checked_option("clip", clip, ("scale", "range")),
            rule=checked_option("threshold", threshold, ("lazy", "largest")),
            rate=checked_positive("rate", rate),
            mixing=1.0,
        )
        settings = {"n_arms": params.n, "clip": clip, "threshold": threshold, "rate": params.rate}
        self._start(params, settings, seed)
