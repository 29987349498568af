"""MVP: optimism with doubling batches and Bernstein bonuses (Zhang, Chen, Lee & Du 2023).

A pair (s, a) renews its model when its visits reach 1, 2, 4, ...: the new model is made of the
visits since the last renewal. After an episode with a renewal, backwards over layers,

    Q = min(B, r + P V + c1 sqrt(Var_P(V) ln_/N) + c2 sqrt(Var(r) ln_/N) + c3 B ln_/N),   V = max Q,

where B bounds the total reward of an episode; pairs never visited keep Q = B. The paper's constants
are c1 = 460/9, c2 = 2 sqrt(2), c3 = 544/9 and ln_ = ln(200 S A H^2 K^2/delta) with S the states of
a layer.

The bonus is reconstructed from the paper's prose.
"""

from __future__ import annotations

import math

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, TRIPLE, Layers, horizon
from unbounded.jit.kernel import kernel, subroutine
from unbounded.learners.spec import MDPSpec
from unbounded.mdps.steps import optimism
from unbounded.mdps.steps.optimism import Bonus, Model, Optimistic
from unbounded.validation import checked_option


def paper_bonus(layers: Layers, episodes: int, delta: float, B: float = 1.0) -> Bonus:
    """Bonus with MVP's constants; ``episodes`` is rounded up to a power of two."""
    K = 1 << max(0, math.ceil(math.log2(episodes)))
    log_term = math.log(200 * max(layers.sizes) * layers.n_actions * layers.horizon**2 / delta)
    return Bonus(460 / 9, 2 * math.sqrt(2), 544 / 9, log_term + 2 * math.log(K), B)


def practical_bonus(
    layers: Layers, episodes: int, delta: float, constant: float = 0.3, B: float = 1.0
) -> Bonus:
    """Return the same schedule with small constants and ln(2 S A K/delta)."""
    log_term = math.log(2 * sum(layers.sizes) * layers.n_actions * episodes / delta)
    return Bonus(constant, constant, constant, log_term, B)


def chosen_bonus(
    layers: Layers, constants: str, bonus: float, episodes: int, delta: float, total: float = 1.0
) -> Bonus:
    """Return the bonus that the arguments of a learner ask for."""
    if checked_option("constants", constants, ("practical", "paper")) == 1:
        return paper_bonus(layers, episodes, delta, total)
    return practical_bonus(layers, episodes, delta, bonus, total)


@subroutine
def observe(
    lay: Integers, model: Model, states: Integers, actions: Integers, rewards: Vector
) -> bool:
    """Count one episode; True if some pair renewed its model."""
    renewed = False
    for h in range(1, horizon(lay) + 1):
        visits = optimism.count_visit(lay, model, h, states, actions, rewards[h - 1])
        if visits == 0:
            continue
        renewed = True
        i = states[h - 1] * lay[ACTIONS, h] + actions[h - 1]
        optimism.renew(lay, model, h, i, float(max(1, visits // 2)))  # since the last renewal
        model.theta[lay[PAIR, h] + i] = 0.0  # the next batch begins
        model.square[lay[PAIR, h] + i] = 0.0
        if h < horizon(lay):
            m = lay[SIZE, h] * lay[ACTIONS, h]
            for j in range(lay[SIZE, h + 1]):
                model.M[lay[TRIPLE, h] + j * m + i] = 0.0
    return renewed


@subroutine
def plan(lay: Integers, bonus: Bonus, model: Model, layer: int, target: int) -> None:
    """Optimistic values and greedy actions.

    With ``layer`` in 1..H the reward is 1 in state ``target`` of that layer and known. With
    ``layer = 0`` the model's rewards are sought.
    """
    for h in range(horizon(lay), 0, -1):
        if 0 < layer <= h:
            optimism.know_target(lay, model, h, layer, target)
            continue
        for i in range(lay[SIZE, h] * lay[ACTIONS, h]):
            model.Q[lay[PAIR, h] + i] = _optimistic(lay, bonus, model, h, i)
        optimism.act_greedily(lay, model, h)


@kernel
def _optimistic(lay: Integers, bonus: Bonus, model: Model, h: int, i: int) -> float:
    p = lay[PAIR, h] + i
    if model.N[p] <= 0.0:
        return bonus.B
    mean, square = optimism.next_value(lay, model, h, i)
    L = bonus.log_term / model.N[p]
    variance = max(0.0, square - mean * mean)
    b = bonus.c1 * math.sqrt(variance * L) + bonus.c2 * math.sqrt(model.spread[p] * L)
    b += bonus.c3 * bonus.B * L
    return min(bonus.B, model.reward[p] + mean + b)


Params, State = Bonus, optimism.State
update = optimism.update_by(observe, plan)


class MVP(Optimistic):
    """Monotonic value propagation: stochastic rewards, unknown transitions (Zhang et al. 2023).

    Parameters
    ----------
    total : float, default 1
        Bound on the total reward of an episode; rewards (= minus losses) are at least 0.
    constants : {"practical", "paper"}
    bonus : float, default 0.3
        Constant of the practical bonuses.

    Examples
    --------
    >>> learner = MVP(layers=[1, 2], n_actions=2, episodes=100, seed=0)
    >>> for _ in range(50):  # action 1 earns the reward
    ...     plan = learner.ask()
    ...     actions = [plan.act(0, 0), plan.act(1, 0)]
    ...     learner.tell(plan, [0, 0], actions, rewards=[0.0, actions[1]])
    >>> learner.policy().tables[1][0].tolist()
    [0.0, 1.0]
    """

    spec = MDPSpec.of(
        __name__, reference="Zhang, Chen, Lee & Du 2023, arXiv 2307.13586", **optimism.CLAIMS
    )
    _chosen_bonus = staticmethod(chosen_bonus)
