"""Algorithm 1, SCB."""

from itertools import count

import numpy as np

from slow.formulas import tsallis


def scb(n):
    """Yield q_t; receive (k_t, its loss)."""
    C = 0.0
    L = np.zeros(n)  # sum of the estimates
    for t in count(1):  # line 1
        if C > 0:
            eta = 1 / (2 * C * np.sqrt(t))  # line 8
            p = tsallis(L, eta)  # line 2
        else:
            p = np.full(n, 1 / n)  # E4
        beta = n / (2 * n + np.sqrt(n * t))  # line 8
        q = (1 - beta) * p + beta / n  # line 3
        k, loss = yield q  # line 4
        clipped = max(-C, min(C, loss))  # line 5
        L[k] += (clipped + C) / q[k]  # line 6
        if abs(loss) > C:  # line 7; E1
            C = 2 * abs(loss)
