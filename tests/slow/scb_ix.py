"""SCB-IX: scale-free bandit with a high-probability bound (Chen & Zhang 2024, Algorithm 2)."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, mixed, restricted, softmax


def play(
    n: int,
    profile: str = "practical",
    clip: str | None = None,
    threshold: str = "lazy",
    delta: float | None = None,
    beta_cap: float | None = None,
    mixing: float | None = None,
    ablation: bool = False,
) -> Player:
    paper = profile == "paper"
    clip = clip or ("scale" if paper else "range")
    mixing = (1.0 if paper else 0.5) if mixing is None else mixing
    iota = math.log(n) if delta is None else math.log(n / delta)
    cap = beta_cap or (0.5 if clip == "range" else 1.0)
    L, C, told, t = np.zeros(n), 0.0, [], 1
    while True:
        width = 2.0 * C if clip != "range" else (max(told) - min(told) if told else 0.0)
        eta = 2.0 / width * math.sqrt(iota / (n * t)) if width > 0.0 else 0.0
        q = mixed(softmax(-eta * L), mixing * min(cap, math.sqrt(n * iota / (n * iota + t))))
        gamma = 0.5 * math.sqrt(iota / (n * t))
        arm, losses, *masks = yield q
        asleep, q = restricted(q, masks)
        loss = losses[arm]
        if clip != "range":
            l_c = min(C, max(-C, loss)) if clip == "scale" else loss
            L += np.where(asleep, l_c + C, np.eye(n)[arm] * (l_c + C) / (q[arm] + gamma))
            if abs(loss) > C or (threshold == "largest" and 2.0 * abs(loss) > C):
                C = 2.0 * abs(loss)
        elif told:
            l_plus = min(max(told), max(min(told), loss)) - min(told)
            L += np.where(asleep, l_plus, np.eye(n)[arm] * l_plus / (q[arm] + gamma))
        told.append(loss)
        t += 1
