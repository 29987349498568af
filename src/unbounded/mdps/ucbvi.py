"""UCBVI-CH: optimism with Hoeffding bonuses on all the visits (Azar, Osband & Munos 2017).

    Q = min(B, r + P V + c B L/sqrt(N)),   V = max Q,   L = ln(5 S A K/delta),   c = 7,

where B bounds the total reward of an episode; pairs never visited keep Q = B. It is planned again
when some pair's visits reach a power of two, not after every episode, so that there are few
distinct policies.
"""

from __future__ import annotations

import math

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, Layers, horizon
from unbounded.jit.kernel import kernel, subroutine
from unbounded.learners.spec import MDPSpec
from unbounded.mdps.steps import optimism
from unbounded.mdps.steps.optimism import Bonus, Model, Optimistic
from unbounded.validation import checked_option

_PAPER = 7.0  # c of the paper


def hoeffding_bonus(
    layers: Layers, episodes: int, delta: float, constant: float = _PAPER, B: float = 1.0
) -> Bonus:
    """c B L/sqrt(N) with L = ln(5 S A K/delta)."""
    log_term = math.log(5 * sum(layers.sizes) * layers.n_actions * episodes / delta)
    return Bonus(constant, 0.0, 0.0, log_term, B)


def chosen_bonus(
    layers: Layers, constants: str, bonus: float, episodes: int, delta: float, total: float = 1.0
) -> Bonus:
    """Return the bonus that the arguments of a learner ask for."""
    paper = checked_option("constants", constants, ("practical", "paper")) == 1
    return hoeffding_bonus(layers, episodes, delta, _PAPER if paper else bonus, total)


@subroutine
def observe(
    lay: Integers, model: Model, states: Integers, actions: Integers, rewards: Vector
) -> bool:
    """Count one episode; True if some pair renewed its model."""
    renewed = False
    for h in range(1, horizon(lay) + 1):
        visits = optimism.count_visit(lay, model, h, states, actions, rewards[h - 1])
        if visits > 0:
            renewed = True
            i = states[h - 1] * lay[ACTIONS, h] + actions[h - 1]
            optimism.renew(lay, model, h, i, float(visits))
    return renewed


@subroutine
def plan(lay: Integers, bonus: Bonus, model: Model, layer: int, target: int) -> None:
    """Optimistic values and greedy actions; ``layer`` and ``target`` as for `mvp.plan`."""
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
    mean, _ = optimism.next_value(lay, model, h, i)
    b = bonus.c1 * bonus.B * bonus.log_term / math.sqrt(model.N[p])
    return min(bonus.B, model.reward[p] + mean + b)


Params, State = Bonus, optimism.State
update = optimism.update_by(observe, plan)


class UCBVI(Optimistic):
    """Upper confidence bounds on values: stochastic rewards, unknown transitions.

    Parameters
    ----------
    total, constants, bonus : see `MVP`

    Examples
    --------
    >>> learner = UCBVI(layers=[1, 2], n_actions=2, episodes=100, seed=0)
    >>> for _ in range(60):  # action 1 earns the reward
    ...     plan = learner.ask()
    ...     actions = [plan.act(0, 0), plan.act(1, 0)]
    ...     learner.tell(plan, [0, 0], actions, rewards=[0.0, actions[1]])
    >>> learner.policy().tables[1][0].tolist()
    [0.0, 1.0]
    """

    spec = MDPSpec.of(__name__, reference="Azar, Osband & Munos 2017", **optimism.CLAIMS)
    _chosen_bonus = staticmethod(chosen_bonus)
