"""Build confidence sets of transitions: counts, epochs by doubling, Bernstein boxes.

With N visits of a pair and M of a triple, ``P_bar = M/max(1, N)`` and ``ln_ = ln(T S A/delta)``,
the set of an epoch is the product over pairs of

    { P : sum P = 1, lo <= P <= hi },   lo, hi = P_bar -+ eps clipped to [0, 1],
    eps = c1 sqrt(P_bar ln_/max(1, N - 1)) + c2 ln_/max(1, N - 1),

and the whole simplex while N = 0 (erratum E22: P_bar = 0 is no distribution). The paper's constants
are (4, 28/3), those of Jin et al. (2020) half as large. Learnable are the transitions out of
layers 0..H-1, with the distribution of the first state (layer 0) among them (E19).

A new epoch starts after an episode in which some visited pair has doubled its visits since the
epoch began; every first visit does. FTRL needs *nested* sets (E13): boxes are intersected with
the previous ones, and a pair whose intersection is empty falls back to its new box.

`CostSCBRL` has boxes of the KL divergence instead, of ``N kl(P_bar, P) <= level``, each made when
its own pair has doubled its visits: `narrow`. No probability is spent on other times.

**Support.** Counts alone prove no transition impossible: eps > 0. So hi = 0 means that
the support is *known*, and it stays in every epoch, unless the transition is seen all the same.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, TRIPLE, Layers, horizon
from unbounded.jit.kernel import kernel, subroutine


class Bernstein(NamedTuple):
    """Hold the constants of the width ``c1 sqrt(P_bar ln_/n) + c2 ln_/n``."""

    c1: float
    c2: float


PAPER = Bernstein(4.0, 28.0 / 3.0)
JIN = Bernstein(2.0, 14.0 / 3.0)


def log_term(layers: Layers, episodes: int, delta: float) -> float:
    """Return ``ln(T S A/delta)``, where s_0 is not counted in S."""
    return math.log(episodes * sum(layers.sizes) * layers.n_actions / delta)


def first_upper(layers: Layers, support: npt.ArrayLike | None) -> Vector:
    """Return hi before any visit: 1 where a transition is possible, everywhere by default."""
    if support is None:
        return np.ones(layers.n_transitions)
    given = np.asarray(support)
    if given.dtype != np.bool_ or given.shape != (layers.n_transitions,):
        raise ValueError(
            f"support must be {layers.n_transitions} values True or False, as LayeredMDP.P > 0; "
            f"got shape {given.shape} of type {given.dtype}"
        )
    lay = layers.table
    for h in range(layers.horizon):
        rows = given[lay[TRIPLE, h] : lay[TRIPLE, h + 1]].reshape(int(lay[SIZE, h + 1]), -1)
        none = ~rows.any(axis=0)
        if np.any(none):
            raise ValueError(
                "support must leave every pair a next state; "
                f"pair {int(np.argmax(none))} of layer {h} has none"
            )
    return given.astype(np.float64)


def told_support(layers: Layers, support: npt.ArrayLike | None) -> Vector:
    """Return hi before any visit, as `first_upper`; empty if every transition is possible.

    Where episodes may end early, it is known that nothing leads away from the end.
    """
    if support is None and not layers.ends:
        return np.empty(0)
    first = first_upper(layers, support)
    lay = layers.table
    for h in range(2, layers.horizon if layers.ends else 0):
        rows = first[lay[TRIPLE, h] : lay[TRIPLE, h + 1]].reshape(int(lay[SIZE, h + 1]), -1)
        rows[:-1, -layers.n_actions :] = 0.0
        rows[-1, -layers.n_actions :] = 1.0
    return first


# Kernels


@subroutine
def count(
    lay: Integers, states: Integers, actions: Integers, N: Vector, M: Vector, N_before: Vector
) -> bool:
    """Count one episode's visits; True if some visited pair has doubled (a new epoch is due)."""
    H = horizon(lay)
    due = False
    i = 0
    for h in range(H + 1):
        p = lay[PAIR, h] + i
        N[p] += 1.0
        if N[p] >= max(1.0, 2.0 * N_before[p]):
            due = True
        if h < H:
            s = states[h]
            M[lay[TRIPLE, h] + s * lay[SIZE, h] * lay[ACTIONS, h] + i] += 1.0
            i = s * lay[ACTIONS, h + 1] + actions[h]
    return due


@subroutine
def rebuild(
    lay: Integers, N: Vector, M: Vector, ln_: float, c1: float, c2: float, nested: bool, lo: Vector,
    hi: Vector,
) -> None:  # fmt: skip
    """Rebuild the boxes from counts, in place; intersect them with the last ones if ``nested``."""
    for h in range(horizon(lay)):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        n = lay[SIZE, h + 1]
        for i in range(m):
            _rebuild_pair(
                m, n, lay[TRIPLE, h] + i, N[lay[PAIR, h] + i], M, ln_, c1, c2, nested, lo, hi
            )


@subroutine
def renew(
    lay: Integers, N: Vector, N_before: Vector, M: Vector, ln_: float, c1: float, c2: float,
    growth: float, lo: Vector, hi: Vector,
) -> bool:  # fmt: skip
    """Rebuild the boxes, nested, of pairs whose visits have grown; return whether any box changed.

    Their visits have changed and are ``growth >= 1`` times ``N_before``, of which the box was made.

    With ``growth = 1`` these are the boxes of `rebuild`, as a box stays if its counts do.
    """
    changed = False
    for h in range(horizon(lay)):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        for i in range(m):
            p = lay[PAIR, h] + i
            if N[p] == N_before[p] or N[p] < growth * N_before[p]:
                continue
            N_before[p] = N[p]
            if _rebuild_pair(
                m, lay[SIZE, h + 1], lay[TRIPLE, h] + i, N[p], M, ln_, c1, c2, True, lo, hi
            ):
                changed = True
    for p in range(lay[PAIR, horizon(lay)], N.size):  # nothing follows: these have no box
        if N[p] >= growth * N_before[p]:
            N_before[p] = N[p]
    return changed


@subroutine
def narrow(
    lay: Integers, states: Integers, actions: Integers, N: Vector, N_before: Vector, M: Vector,
    log_term: float, width: float, lo: Vector, hi: Vector,
) -> bool:  # fmt: skip
    """Rebuild the boxes, nested, of visited pairs that have doubled; return whether any changed.

    These are the boxes of the KL divergence: ``N kl(P_bar, P) <= width (log_term + ln(k (k + 1)))``
    after N = 2^(k - 1) visits of a pair; whole simplices while the right side exceeds N.
    ``N_before`` has the visits that each pair's own box was made from.
    """
    changed = False
    i = 0
    for h in range(horizon(lay) + 1):
        p = lay[PAIR, h] + i
        if N[p] >= max(1.0, 2.0 * N_before[p]):
            N_before[p] = N[p]
            k = float(math.frexp(N[p])[1])
            ln_ = log_term + math.log(k * (k + 1.0))
            if h < horizon(lay) and N[p] >= width * ln_:
                m = lay[SIZE, h] * lay[ACTIONS, h]
                n = lay[SIZE, h + 1]
                first = lay[TRIPLE, h] + i
                if _rebuild_pair(m, n, first, N[p], M, ln_, 0.0, width, True, lo, hi):
                    changed = True
        if h < horizon(lay):
            i = states[h] * lay[ACTIONS, h + 1] + actions[h]
    return changed


@subroutine
def _rebuild_pair(
    m: int, n: int, start: int, count: float, M: Vector, ln_: float, c1: float, c2: float,
    nested: bool, lo: Vector, hi: Vector,
) -> bool:  # fmt: skip
    """Rebuild the box of the pair of triples ``start``, ``start + m``, ...; whether it changed."""
    keep = nested
    changed = False
    unseen = _interval(count, 0.0, ln_, c1, c2, 1.0)  # the same for all that were not seen
    for j in range(n):
        if M[start + j * m] > 0.0 and hi[start + j * m] <= 0.0:
            hi[start + j * m] = 1.0  # thought impossible, and seen
            changed = True
    if nested:  # is the intersection empty?
        lowest = highest = 0.0
        for j in range(n):
            k = start + j * m
            a, b = unseen
            if M[k] > 0.0 or hi[k] <= 0.0:
                a, b = _interval(count, M[k], ln_, c1, c2, hi[k])
            a = max(a, lo[k])
            b = min(b, hi[k])
            lowest += a
            highest += b
            if a > b:
                keep = False
        if lowest > 1.0 or highest < 1.0:
            keep = False
    for j in range(n):
        k = start + j * m
        a, b = unseen
        if M[k] > 0.0 or hi[k] <= 0.0:
            a, b = _interval(count, M[k], ln_, c1, c2, hi[k])
        a = max(a, lo[k]) if keep else a
        b = min(b, hi[k]) if keep else b
        if a != lo[k] or b != hi[k]:
            changed = True
            lo[k] = a
            hi[k] = b
    return changed


@subroutine
def _interval(
    N: float, M: float, ln_: float, c1: float, c2: float, before: float
) -> tuple[float, float]:
    if before <= 0.0 and M <= 0.0:
        return 0.0, 0.0  # known to be impossible
    if N <= 0.0:
        return 0.0, 1.0
    P_bar = M / N
    if c1 == 0.0:
        level = c2 * ln_ / N
        return 1.0 - largest_mean(1.0 - P_bar, level), largest_mean(P_bar, level)
    d = max(1.0, N - 1.0)
    eps = c1 * math.sqrt(P_bar * ln_ / d) + c2 * ln_ / d
    return max(0.0, P_bar - eps), min(1.0, P_bar + eps)


@subroutine
def largest_mean(P_bar: float, level: float) -> float:
    """Return the largest p >= P_bar with kl(P_bar, p) <= level, rounded up.

    By bisection, so that it is the same in every neighborhood of a root; but where Newton's method
    says on which side of the root a point is, the divergence is not computed.
    """
    if P_bar >= 1.0:
        return 1.0
    near, far = _about(P_bar, level)
    lower = P_bar
    upper = 1.0
    for _ in range(60):
        p = 0.5 * (lower + upper)
        if not lower < p < upper:
            break  # nothing changes any more
        if p < near or (p <= far and _divergence(P_bar, p) <= level):
            lower = p
        else:
            upper = p
    return upper


@kernel
def _divergence(P_bar: float, p: float) -> float:
    kl = (1.0 - P_bar) * math.log((1.0 - P_bar) / (1.0 - p)) if p < 1.0 else math.inf
    if P_bar > 0.0:
        kl -= P_bar * math.log(p / P_bar)
    return kl


@kernel
def _about(P_bar: float, level: float) -> tuple[float, float]:
    """Return bounds of the largest p with kl(P_bar, p) <= level, far wider than rounding errors."""
    p = P_bar + math.sqrt(0.5 * level)  # by Pinsker's inequality not below it
    rest = level - (P_bar * math.log(P_bar) if P_bar > 0.0 else 0.0)
    p = min(p, 1.0 - (1.0 - P_bar) * math.exp(-rest / (1.0 - P_bar)))
    for _ in range(9):  # convex, hence from the right
        if not P_bar < p < 1.0:
            break
        slope = (p - P_bar) / (p * (1.0 - p))
        step = (_divergence(P_bar, p) - level) / slope
        p -= step
        width = (1e-12 + 1e-13 * level) / slope
        if abs(step) < 0.1 * width:
            return p - width, p + width
    return P_bar, 1.0


@kernel
def box_sums(m: int, n: int, k: int, lo: Vector, hi: Vector) -> tuple[float, float]:
    """Sum lo and hi over the n entries of the pair whose first is ``k``."""
    low = high = 0.0
    for j in range(n):
        low += lo[k + j * m]
        high += hi[k + j * m]
    return low, high


@subroutine
def interior(lay: Integers, lo: Vector, hi: Vector, P: Vector) -> None:
    """Set P = lo + t (hi - lo) with sum one: the middle of every box."""
    for h in range(horizon(lay)):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        n = lay[SIZE, h + 1]
        for i in range(m):
            k = lay[TRIPLE, h] + i
            low, high = box_sums(m, n, k, lo, hi)
            t = (1.0 - low) / (high - low) if high > low else 0.0
            t = min(max(t, 0.0), 1.0)
            for j in range(n):
                P[k + j * m] = lo[k + j * m] + t * (hi[k + j * m] - lo[k + j * m])
