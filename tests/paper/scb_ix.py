"""Algorithm 2, SCB-IX."""

from itertools import count

import numpy as np

from slow.formulas import softmax


def scb_ix(n):
    """Yield q_t; receive (k_t, its loss)."""
    C = 0.0
    L = np.zeros(n)  # sum of the estimates
    nlogn = n * np.log(n)
    for t in count(1):  # line 1
        root = np.sqrt(np.log(n) / (n * t))
        if C > 0:
            eta = root / C  # line 8
            p = softmax(-eta * L)  # line 2
        else:
            p = np.full(n, 1 / n)  # E4
        beta = np.sqrt(nlogn / (nlogn + t))  # line 8; E9
        gamma = root / 2  # line 8; E7
        q = (1 - beta) * p + beta / n  # line 3
        k, loss = yield q  # line 4
        clipped = max(-C, min(C, loss))  # line 5
        L[k] += (clipped + C) / (q[k] + gamma)  # line 6
        if abs(loss) > C:  # line 7; E1
            C = 2 * abs(loss)
