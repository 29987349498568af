"""Algorithm 4, SCB-RL."""

from math import ceil, log, sqrt

import numpy as np

from paper.mvp import paper_bonus
from paper.rf_elp import rf_elp
from paper.uob_reps_ex import uob_reps_ex


def scb_rl(sizes, A, T, delta, bonus=None, width=1.0):
    """Yield pi_t; receive (states, actions, losses)."""
    H, S = len(sizes), sum(sizes)
    xi = sqrt(S * A / T)
    beta = min(xi, 0.5)  # E17
    eta = gamma = sqrt(H * log(S * A * T / delta) / (S * A * T))
    N = max(1, min(ceil(xi * T), T // (2 * S)))  # E18
    bonus = bonus or paper_bonus(sizes, A, N, delta / S)  # E33
    C = np.zeros(H + 1)
    explorers = []
    for h in range(1, H + 1):
        for s in range(sizes[h - 1]):  # line 1
            found = yield from rf_elp(sizes, A, h, s, N, bonus)  # line 2
            explorers += [(weight / S, pi) for weight, pi in found]
    rates = eta, gamma, beta
    play = uob_reps_ex(
        sizes, A, T, delta, explorers, rates, width
    )  # line 3
    pi = next(play)  # line 5
    for _ in range(S * N, T):  # line 4
        states, actions, losses = yield pi  # line 6
        clipped = np.clip(losses, -C, C)  # line 7
        l_plus = clipped + C
        C = np.where(abs(losses) > C, 2 * abs(losses), C)  # line 9; E1
        pi = play.send((states, actions, l_plus, C))  # lines 8, 5; E15
