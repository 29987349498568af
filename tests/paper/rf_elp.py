"""Algorithms 3 and 6, RF-ELP and RF-ELP-ES."""

import numpy as np

from paper.mvp import mvp


def rf_elp(sizes, A, h, s, N, bonus):
    """Yield policies; return a mixture that reaches s of layer h."""
    r = np.eye(sizes[h - 1])[s]  # line 1
    pis = yield from mvp(sizes, A, h, r, N, bonus)  # line 2
    for pi in pis:
        pi[h][s] = 1 / A  # line 3; E33
    return uniform(pis)  # lines 2 and 4; E12


def rf_elp_es(sizes, A, h, s, N, bonus, m):
    """Yield policies; return a mixture that reaches s, and N'."""
    r = np.eye(sizes[h - 1])[s]  # line 1
    pis = yield from mvp(sizes, A, h, r, N, bonus, m)  # line 2; E26
    for pi in pis:
        pi[h][s] = 1 / A  # line 3; E33
    return uniform(pis), len(pis)  # lines 2 and 4; E12


def uniform(pis):
    """Return [(weight, policy)] with equal policies merged."""
    mixture = []
    for pi in pis:
        for i, (weight, other) in enumerate(mixture):
            if all(map(np.array_equal, pi, other)):
                mixture[i] = weight + 1 / len(pis), other
                break
        else:
            mixture.append((1 / len(pis), pi))
    return mixture
