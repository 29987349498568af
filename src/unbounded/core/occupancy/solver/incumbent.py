"""The best certified point so far, which every solver keeps in the same place."""

from __future__ import annotations

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.solver.certificate import certify
from unbounded.core.occupancy.solver.work import KL, SLACK, Work
from unbounded.jit.kernel import assign, kernel


@kernel
def offer(
    lay: Integers, v: Vector, theta: Vector, given: bool, best: float, W: Work
) -> tuple[float, float, float]:
    """Certify the dual point (v, theta) with W.P, and keep it if its gap is below ``best``.

    W.bound and W.slack belong to the point; ``given`` as for `certify`, of W.pi_out. Returns the
    best gap, this one and its slack part. The best point is in W.best_v, best_theta, best_P,
    best_q, best_pi and W.parts.
    """
    kl, slack = certify(
        lay, W.L, W.w, v, W.P, W.bound, W.slack, given, W.pi_out, W.q_out, W.mass, W.ln_x, W.begin,
        W.to,
    )  # fmt: skip
    gap = kl + slack
    if gap < best:
        best = gap
        W.parts[KL] = kl
        W.parts[SLACK] = slack
        assign(W.best_v, v)
        assign(W.best_theta, theta)
        assign(W.best_P, W.P)
        assign(W.best_q, W.q_out)
        assign(W.best_pi, W.pi_out)
    return best, gap, slack


@kernel
def offer_kept(lay: Integers, pi: Vector, best: float, W: Work) -> float:
    """Certify the policy ``pi`` of an earlier solve against the best dual point; the best gap.

    For a solve that fails: what was found may be poorer than what there is. W.P, W.bound and
    W.slack belong to the best point.
    """
    assign(W.pi_out, pi)
    return offer(lay, W.best_v, W.best_theta, True, best, W)[0]
