"""UMAB-G: bandit for losses of any sign and size (Chen & Zhang 2023).

FTRL with a log barrier. Only the negative side is clipped, at -2 C, and arms with p_i < 1 / rho are
lifted by 1 / rho at the expense of the likeliest, rho = 2 n^2 + sqrt(G). Adaptive exploration adds
2 |l_hat| c_k to G, where c_k is 1 for a lifted arm, the number of lifted arms for the likeliest,
and 0 otherwise. Written after the code of the authors' experiments, with which it agrees in every
probability but for the precision of the normalizer (docs/results/peers.md); the constants
of the paper's theorem are not quoted. C starts at a number that has the unit of a
loss, so that q_t does change with the scale of the losses.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, SupportsIndex

import numpy as np

from unbounded.core.arrays import Arm, Count, Flags, Round, Size, Vector, require
from unbounded.core.simplex.ftrl import check_lambda, log_barrier
from unbounded.core.simplex.sampling import Law, blend, new_law
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.validation import ArgumentTypeError, checked_count, checked_option, checked_positive

_EXPLORATIONS = ("adaptive", "fixed", "capped")


class Params(NamedTuple):
    n: int
    C_1: float
    G_1: float  # rho = 2 n^2 + sqrt(G): G_1 = n T with fixed exploration, else 0
    G_most: float  # n T with fixed or capped exploration, else inf


class State(NamedTuple):
    t: Round
    clipped: Count
    C: float
    Q: Size  # sum of squared clipped losses
    G: float
    lam: float  # the normalizer of p_t: where the next solve starts
    lifted: Count  # how many arms were lifted in round t
    top: Arm  # the likeliest arm of p_t, which paid for it
    L_hat: Vector  # (n,) cumulative loss estimates
    was_lifted: Flags  # (n,) 1 where arm was lifted in round t
    law: Law  # q_t

    def check(self, params: Params) -> None:
        n = params.n
        require(self.C >= params.C_1, "losses have no such sizes")
        require(params.G_1 <= self.G <= params.G_most, "exploration has no such cost")
        require(self.lifted <= n, "there are no such arms")
        check_lambda(self.lam, n)


def init(params: Params) -> State:
    """Start with p_1 uniform: no arm is below 1 / rho."""
    n = params.n
    return State(
        t=1, clipped=0, C=params.C_1, Q=0.0, G=params.G_1, lam=1.0, lifted=0, top=0,
        L_hat=np.zeros(n), was_lifted=np.zeros(n), law=new_law(n),
    )  # fmt: skip


@kernel
def update(params: Params, state: State, arm: int, q_k: float, loss: float) -> State:
    """Learn from the loss of ``arm``, which was drawn with probability ``q_k``."""
    n, L_hat, q = params.n, state.L_hat, state.law.q
    C, Q, G, lam, lifted, top = state.C, state.Q, state.G, state.lam, state.lifted, state.top
    clipped = loss < -2.0 * C
    l_c = max(loss, -2.0 * C)
    C = max(C, -l_c)
    if n > 1:
        l_hat = l_c / q_k
        L_hat[arm] += l_hat
        Q += l_c * l_c
        moved = lifted if arm == top else state.was_lifted[arm]  # c_k of round t
        G = min(params.G_most, G + 2.0 * abs(l_hat) * moved)
        eta = 4.0 / math.sqrt(C * C + Q / n)
        lam, total = log_barrier(L_hat, eta, lam, q, state.law.room)
        lift = 1.0 / (2.0 * n * n + math.sqrt(G))
        lifted, top = 0, 0
        for i in range(n):
            q[i] /= total
            if q[i] > q[top]:
                top = i
        for i in range(n):
            low = q[i] < lift
            state.was_lifted[i] = low
            lifted += low
        for i in range(n):
            q[i] += lift * state.was_lifted[i]
        q[top] -= lift * lifted  # at most 1 / (2 n), half of its p
        blend(state.law, 1.0, 0.0)
    return State(
        state.t + 1, state.clipped + clipped, C, Q, G, lam, lifted, top,
        L_hat, state.was_lifted, state.law,
    )  # fmt: skip


@kernel
def scale(params: Params, state: State) -> float:
    """Return C_t."""
    return state.C


class UMABG(Learner):
    """Log-barrier bandit for losses of any sign and size.

    Parameters
    ----------
    exploration : {"adaptive", "fixed", "capped"}
        The floor 1 / (2 n^2 + sqrt(G)) on probabilities: G grows with what exploration has cost
        ("adaptive"), is n T ("fixed"), or grows up to n T ("capped").
    rounds : int, optional
        How many rounds will be played, T; needed for "fixed" and "capped".
    first_threshold : float
        C_1: losses below twice its negative are clipped at first.
    """

    spec = BanditSpec.of(
        __name__,
        reference="Chen & Zhang 2023, UMAB-G, after the authors' code",
        guarantee="expected regret of order l_inf sqrt(n T log T)",
        delayed=False,
        largest_loss=1e150,
        examples=(
            {},
            {"exploration": "fixed", "rounds": 2000},
            {"exploration": "capped", "rounds": 2000},
        ),
    )

    def __init__(
        self,
        n_arms: NumberOrNames,
        *,
        exploration: Literal["adaptive", "fixed", "capped"] = "adaptive",
        rounds: SupportsIndex | None = None,
        first_threshold: float = 1.0,
        seed: Seed = None,
    ) -> None:
        n_arms = checked_count("n_arms", n_arms)
        rounds = None if rounds is None else checked_count("rounds", rounds)
        adaptive = checked_option("exploration", exploration, _EXPLORATIONS) == 0
        if adaptive != (rounds is None):
            raise ArgumentTypeError("rounds", "goes with exploration='fixed' or 'capped'")
        first_threshold = checked_positive("first_threshold", first_threshold)
        nT = math.inf if rounds is None else float(n_arms * rounds)
        G_1 = nT if exploration == "fixed" else 0.0
        self._start(Params(n_arms, first_threshold, G_1, nT), seed)
