"""Half-lives from their definitions (docs/theory/forgetting.md): no recursion, no units."""

from __future__ import annotations

import math


def top(values: list[float], m: int) -> float:
    """The m-th largest of some numbers >= 0; 0 if there are fewer."""
    return sorted(values, reverse=True)[m - 1] if len(values) >= m else 0.0


def two_blocks(told: list[float], h: int, m: int) -> float:
    """The m-th largest number of this block or of the last one, whichever is larger."""
    block = len(told) // h
    now, before = told[block * h :], told[max(0, block - 1) * h :]
    return max(top(now, m), top(before[:h], m) if block else 0.0)


class Clock:
    """Weights 2^(time / h) of rounds, and thresholds of two blocks of raw losses."""

    def __init__(self, h: int) -> None:
        self.h, self.told, self.times, self.U = h, [], [0.0], 0.0

    def tell(self, x: float) -> None:
        self.told.append(x)
        self.times.append(self.times[-1] + 1.0)

    def threshold(self, m: int, follow: bool = True) -> float:
        """C of the next round; time jumps where it has fallen more than 16-fold."""
        C = two_blocks(self.told, self.h, m)
        if C > self.U:
            self.U = C
        elif follow and 0.0 < C < self.U / 16.0:
            self.times[-1] += self.h * math.ceil(math.log2(self.U / C))
            self.U = C
        return C

    def weights(self) -> list[float]:
        """Weights of all rounds over that of the next one, which is the last."""
        return [2.0 ** ((time - self.times[-1]) / self.h) for time in self.times]

    def rounds(self) -> float:
        """The number of rounds, each weighted by its age alone."""
        return sum(2.0 ** (-age / self.h) for age in range(len(self.times)))


class TimedClock(Clock):
    """The same where a half-life is a time: a round has the weight of its tick.

    A block that ends with fewer than m losses above 0 goes on.
    """

    ticks: list[int]  # of all the rounds there will be

    def __init__(self, h: int) -> None:
        super().__init__(h)
        self.shift, self.m = 0.0, 1
        self.now, self.before = [], []
        self.times = [float(self.ticks[0])]

    def tell(self, x: float) -> None:
        self.told.append(x)
        self.now.append(x)
        tick, then = self.ticks[len(self.told) - 1], self.ticks[len(self.told)]
        if then // self.h > tick // self.h and top(self.now, self.m) > 0.0:
            self.now, self.before = [], self.now
        self.times.append(then + self.shift)

    def threshold(self, m: int, follow: bool = True) -> float:
        self.m = m
        C = max(top(self.now, m), top(self.before, m))
        if C > self.U:
            self.U = C
        elif follow and 0.0 < C < self.U / 16.0:
            self.shift += self.h * math.ceil(math.log2(self.U / C))
            self.times[-1] = self.ticks[len(self.told)] + self.shift
            self.U = C
        return C
