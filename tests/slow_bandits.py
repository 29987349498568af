"""Every bandit algorithm once more: slow, plain, and written from the formulas.

Each is a generator: it yields the distribution of the coming round and is sent (arm, losses). None
of the package's code is used; roots are found by bisection down to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

Player = Generator[np.ndarray, tuple[int, np.ndarray], None]


def bisect(increasing, low: float, high: float) -> float:
    """A root of an increasing function in [low, high]."""
    for _ in range(300):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if increasing(middle) < 0.0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def softmax(values: np.ndarray) -> np.ndarray:
    weights = np.exp(values - values.max())
    return weights / weights.sum()


def tsallis(L: np.ndarray, eta: float) -> np.ndarray:
    """argmin <L, p> - 4 sum sqrt(p) / eta over the simplex."""
    theta = eta * (L - L.min())
    n = L.size
    x = bisect(lambda x: (4.0 / (theta - x) ** 2).sum() - 1.0, -2.0 * math.sqrt(n), -2.0)
    p = 4.0 / (theta - x) ** 2
    return p / p.sum()


def log_barrier(L: np.ndarray, eta: float) -> np.ndarray:
    """argmin <L, p> - sum ln(p) / eta over the simplex."""
    theta = eta * (L - L.min())
    x = bisect(lambda x: (1.0 / (theta - x)).sum() - 1.0, -float(L.size), -1.0)
    p = 1.0 / (theta - x)
    return p / p.sum()


def mixed(p: np.ndarray, share: float) -> np.ndarray:
    return (1.0 - share) * p + share / p.size


def unit(loss: float, loss_range=(0.0, 1.0)) -> float:
    low, high = loss_range
    return min(1.0, max(0.0, (loss - low) / (high - low)))


def uniform(n: int) -> Player:
    while True:
        yield np.full(n, 1.0 / n)


def epsilon_greedy(n: int, epsilon: float | None = None) -> Player:
    told: list[list[float]] = [[] for _ in range(n)]
    t = 1
    while True:
        unpulled = np.array([not losses for losses in told])
        if unpulled.any():
            q = unpulled / unpulled.sum()
        else:
            greedy = np.eye(n)[np.argmin([np.mean(losses) for losses in told])]
            q = mixed(greedy, epsilon or min(1.0, (n / t) ** (1.0 / 3.0)))
        arm, losses = yield q
        told[arm].append(losses[arm])
        t += 1


def ucb1(n: int) -> Player:
    gains: list[list[float]] = [[] for _ in range(n)]
    t = 0
    while True:
        if t < n:
            arm = t
        else:
            arm = int(
                np.argmax([np.mean(g) + math.sqrt(2.0 * math.log(t) / len(g)) for g in gains])
            )
        arm, losses = yield np.eye(n)[arm]
        gains[arm].append(1.0 - unit(losses[arm]))
        t += 1


def exp3(n: int, rounds: int | None = None) -> Player:
    L, t = np.zeros(n), 1
    while True:
        eta = (
            math.sqrt(2 * math.log(n) / (n * rounds)) if rounds else math.sqrt(math.log(n) / n / t)
        )
        p = softmax(-eta * L)
        arm, losses = yield p
        L[arm] += unit(losses[arm]) / p[arm]
        t += 1


def exp3_auer(n: int, rounds: int | None = None, gamma: float | None = None) -> Player:
    if gamma is None:
        gamma = min(1.0, math.sqrt(n * math.log(n) / ((math.e - 1.0) * rounds)))
    w = np.ones(n)
    while True:
        p = (1.0 - gamma) * w / w.sum() + gamma / n
        arm, losses = yield p
        w[arm] *= math.exp(gamma * (1.0 - unit(losses[arm])) / p[arm] / n)


def exp3_p(n: int, rounds: int, form: str, delta: float = 0.05) -> Player:
    T, G = rounds, np.zeros(n)
    if form == "auer":
        alpha = 2.0 * math.sqrt(math.log(n * T / delta))
        gamma = min(3 / 5, 2.0 * math.sqrt(3 / 5 * n * math.log(n) / T))
        w = np.full(n, math.exp(alpha * gamma / 3.0 * math.sqrt(T / n)))
        while True:
            p = (1.0 - gamma) * w / w.sum() + gamma / n
            arm, losses = yield p
            x_hat = np.eye(n)[arm] * (1.0 - unit(losses[arm])) / p[arm]
            w *= np.exp(gamma / (3.0 * n) * (x_hat + alpha / (p * math.sqrt(n * T))))
    if form == "bubeck":
        b = min(1.0, math.sqrt(math.log(n / delta) / (n * T)))
        eta = 0.95 * math.sqrt(math.log(n) / (n * T))
        gamma = min(1.0, 1.05 * math.sqrt(n * math.log(n) / T))
        while True:
            p = mixed(softmax(eta * G), gamma)
            arm, losses = yield p
            G += (np.eye(n)[arm] * (1.0 - unit(losses[arm])) + b) / p
    gamma = min(2 / 3, 2.0 * math.sqrt(n * math.log(3 * n) / T))
    eta = 2.0 * math.sqrt(math.log(3 * n) / (n * T))
    b = math.sqrt(math.log(3 * n) / (2 * n * T))
    while True:
        p = mixed(softmax(eta * G), gamma)
        arm, losses = yield p
        G[arm] -= math.log(1.0 - b * (1.0 - unit(losses[arm])) / p[arm]) / b


def exp3_ix(n: int, rounds: int | None = None, delta: float | None = None) -> Player:
    L, t = np.zeros(n), 1
    while True:
        if rounds is None:
            eta = math.sqrt(math.log(n) / (n * t))
        elif delta is None:
            eta = math.sqrt(2.0 * math.log(n) / (n * rounds))
        else:
            eta = math.sqrt((math.log(n) + math.log((n + 1) / delta)) / (n * rounds))
        p = softmax(-eta * L)
        arm, losses = yield p
        L[arm] += unit(losses[arm]) / (p[arm] + eta / 2.0)
        t += 1


def inf(n: int, rounds: int) -> Player:
    eta, gamma = math.sqrt(5.0 * rounds), min(0.5, math.sqrt(3.0 * n / rounds))
    V = np.zeros(n)

    def psi(x: np.ndarray) -> np.ndarray:
        return (eta / -x) ** 2 + gamma / n

    while True:
        low, high = eta, 2.0 * eta * math.sqrt(n)  # C - max V
        C = V.max() + bisect(lambda c: 1.0 - psi(V - V.max() - c).sum(), low, high)
        p = psi(V - C)
        p /= p.sum()
        arm, losses = yield p
        V[arm] += (1.0 - unit(losses[arm])) / p[arm]


def tsallis_inf(n: int) -> Player:
    L, t = np.zeros(n), 1
    while True:
        p = tsallis(L, 2.0 / math.sqrt(t))
        arm, losses = yield p
        L[arm] += unit(losses[arm]) / p[arm]
        t += 1


def tsallis_inf_rv(n: int) -> Player:
    L, t = np.zeros(n), 1
    while True:
        eta = 4.0 / math.sqrt(t)
        w = tsallis(L, eta)
        arm, losses = yield w
        B = 0.5 * (w >= eta**2)
        played = np.eye(n)[arm]
        L += played * (unit(losses[arm]) - B) / w + B
        t += 1


def doubling_tsallis_inf(n: int) -> Player:
    R, L, t = 0.0, np.zeros(n), 1
    while True:
        p = tsallis(L, 2.0 / math.sqrt(t))
        arm, losses = yield p
        loss = losses[arm]
        if abs(loss) > R:
            R, L, t = 2.0 * abs(loss), np.zeros(n), 1
        elif R > 0.0:
            L[arm] += (loss + R) / (2.0 * R) / p[arm]
            t += 1


def ahb(n: int, gamma_const: float = 2.5) -> Player:
    C = 0.0
    for arm in range(n):
        arm, losses = yield np.eye(n)[arm]
        C -= losses[arm] / n
    Y, S, q, t = np.zeros(n), 0.0, np.full(n, 1.0 / n), n + 1
    while True:
        p = mixed(q, min(0.5, math.sqrt(gamma_const * n * math.log(n) / t)))
        arm, losses = yield p
        y_hat = np.eye(n)[arm] * (-losses[arm] - C) / p[arm] + C
        if S == 0.0:
            gap = -q @ y_hat + y_hat.max()
        else:
            eta = math.log(n) / S
            top = y_hat.max()
            gap = -q @ y_hat + top + math.log(q @ np.exp(eta * (y_hat - top))) / eta
        S += max(0.0, gap)
        Y += y_hat
        q = softmax(math.log(n) / S * Y) if S > 0.0 else q
        t += 1


def sf_mab(n: int, exploration: str = "fixed") -> Player:
    L, M, Gam, gamma, t = np.zeros(n), 0.0, 0.0, 0.5, 1
    while True:
        eta = n / (1.0 + M)
        p = log_barrier(L, eta)
        q = mixed(p, gamma)
        arm, losses = yield q
        l_hat = np.eye(n)[arm] * losses[arm] / q[arm]
        # sup_r <l_hat, p - r> - Breg(r, p) / eta: its maximiser is a log-barrier solution
        r = log_barrier(l_hat + 1.0 / (eta * p), eta)
        M += l_hat @ (p - r) - (r / p - 1.0 - np.log(r / p)).sum() / eta
        Gam += gamma * abs(losses[arm]) / ((1.0 - gamma) * p[arm] + gamma / n)
        gamma = n / (2.0 * n + Gam) if exploration == "adaptive" else min(0.5, math.sqrt(n / t))
        L += l_hat
        t += 1


def umab_nn(n: int) -> Player:
    L, told = np.zeros(n), [0.0]
    while True:
        weight = math.sqrt(max(told) ** 2 + sum(x * x for x in told) / n) / 4.0
        p = log_barrier(L, 1.0 / weight) if weight > 0.0 else np.full(n, 1.0 / n)
        arm, losses = yield p
        loss = max(0.0, losses[arm])
        told.append(loss)
        L[arm] += loss / p[arm]


def umab_g(n: int, exploration: str = "adaptive", rounds: int = 0) -> Player:
    L, C, Q, weight = np.zeros(n), 1.0, 0.0, 0.5
    G = float(n * rounds) if exploration == "fixed" else 0.0
    while True:
        p = log_barrier(L, 1.0 / weight)
        rho = 2.0 * n**2 + math.sqrt(G)
        lifted = p < 1.0 / rho
        q = p + lifted / rho
        q[p.argmax()] -= lifted.sum() / rho
        arm, losses = yield q
        clipped = max(losses[arm], -2.0 * C)
        C = max(C, -clipped)
        l_hat = clipped / q[arm]
        L[arm] += l_hat
        Q += clipped**2
        weight = math.sqrt(C**2 + Q / n) / 4.0
        if exploration != "fixed":
            G += 2.0 * abs(l_hat * (q[arm] - p[arm]) * rho)
        if exploration == "capped":
            G = min(G, n * rounds)


def banker(n: int, rounds: int) -> Player:
    """In the vault's own terms, mirror descent from the point where the last round ended."""
    kept, B = [], 1.0
    gradient = np.full(n, -1.0 * n)  # of Psi = -sum ln x at z_s, up to a constant
    before = 0.0
    uniform_gradient = np.full(n, -1.0 * n)
    while True:
        D = B**2 + sum(x * x for x in kept)
        sigma = 1.0 / (
            math.sqrt(math.log(3.0 + D / B**2) / (3.0 + D)) * math.sqrt(n * math.log(rounds))
        )
        sigma = max(sigma, 2.0 * B)
        # withdraw all that is saved, and the rest from the uniform point
        gradient = (before * gradient + (sigma - before) * uniform_gradient) / sigma
        x = log_barrier(-gradient, 1.0)
        arm, losses = yield x
        loss = losses[arm]
        if not (abs(loss) > B or loss < -sigma / 2.0):
            gradient = gradient - np.eye(n)[arm] * loss / x[arm] / sigma
            kept.append(loss)
        B = max(B, 2.0 * abs(loss))
        before = sigma


def uni_inf(n: int, rounds: int) -> Player:
    L, S = np.zeros(n), 4.0
    while True:
        x = log_barrier(L, 1.0 / S)
        arm, losses = yield x
        C = S / (4.0 * (1.0 - x[arm]))
        if abs(losses[arm]) < C:
            L[arm] += losses[arm] / x[arm]
        clipped = min(C, max(-C, losses[arm]))
        S = math.sqrt(S**2 + clipped**2 * (1.0 - x[arm]) ** 2 / (n * math.log(rounds)))


def scb(
    n: int,
    clip: str = "scale",
    threshold: str = "lazy",
    rate: float = 1.0,
    mixing: float = 1.0,
    ablation: bool = False,
) -> Player:
    L, C, told, t = np.zeros(n), 0.0, [], 1
    while True:
        width = 2.0 * C if clip != "range" else (max(told) - min(told) if told else 0.0)
        p = tsallis(L, rate / (width * math.sqrt(t))) if width > 0.0 else np.full(n, 1.0 / n)
        q = mixed(p, mixing * n / (2.0 * n + math.sqrt(n * t)) if width > 0.0 else 0.0)
        arm, losses = yield q
        loss = losses[arm]
        if clip != "range":
            L[arm] += ((min(C, max(-C, loss)) if clip == "scale" else loss) + C) / q[arm]
            if abs(loss) > C or (threshold == "largest" and 2.0 * abs(loss) > C):
                C = 2.0 * abs(loss)
        elif told:
            L[arm] += (min(max(told), max(min(told), loss)) - min(told)) / q[arm]
        told.append(loss)
        t += 1


def scb_ix(
    n: int,
    clip: str = "scale",
    threshold: str = "lazy",
    delta: float | None = None,
    beta_cap: float | None = None,
    mixing: float = 1.0,
    ablation: bool = False,
) -> Player:
    iota = math.log(n) if delta is None else math.log(n / delta)
    cap = beta_cap or (0.5 if clip == "range" else 1.0)
    L, C, told, t = np.zeros(n), 0.0, [], 1
    while True:
        width = 2.0 * C if clip != "range" else (max(told) - min(told) if told else 0.0)
        eta = 2.0 / width * math.sqrt(iota / (n * t)) if width > 0.0 else 0.0
        q = mixed(softmax(-eta * L), mixing * min(cap, math.sqrt(n * iota / (n * iota + t))))
        gamma = 0.5 * math.sqrt(iota / (n * t))
        arm, losses = yield q
        loss = losses[arm]
        if clip != "range":
            l_c = min(C, max(-C, loss)) if clip == "scale" else loss
            L[arm] += (l_c + C) / (q[arm] + gamma)
            if abs(loss) > C or (threshold == "largest" and 2.0 * abs(loss) > C):
                C = 2.0 * abs(loss)
        elif told:
            L[arm] += (min(max(told), max(min(told), loss)) - min(told)) / (q[arm] + gamma)
        told.append(loss)
        t += 1


SLOW = {
    "AHB": ahb,
    "Banker": banker,
    "DoublingTsallisINF": doubling_tsallis_inf,
    "EpsilonGreedy": epsilon_greedy,
    "Exp3": exp3,
    "Exp3Auer": exp3_auer,
    "Exp3IX": exp3_ix,
    "Exp3P": exp3_p,
    "INF": inf,
    "SCB": scb,
    "SCBIX": scb_ix,
    "SFMAB": sf_mab,
    "TsallisINF": tsallis_inf,
    "TsallisINFRV": tsallis_inf_rv,
    "UCB1": ucb1,
    "UMABG": umab_g,
    "UMABNN": umab_nn,
    "UniINF": uni_inf,
    "Uniform": uniform,
}
