"""What the optimistic learners share, one kernel at a time."""

import numpy as np
import pytest

from unbounded import MVP, UCBVI, MDPAdversary, simulate_mdp, worlds
from unbounded.core.occupancy.layout import PAIR, STATE, Layers
from unbounded.mdps.steps import optimism
from unbounded.mdps.steps.optimism import new_model

LAYERS = Layers([2, 3], 2)
LAY = LAYERS.table


def visit(model, states, actions, rewards):
    states, actions = np.array(states), np.array(actions)
    return [optimism.count_visit(LAY, model, h, states, actions, rewards[h - 1]) for h in (1, 2)]


def test_a_model_is_due_at_powers_of_two():
    model = new_model(LAYERS)
    due = [visit(model, [0, 0], [1, 0], [0.0, 0.0])[0] for _ in range(17)]
    assert due == [1, 2, 0, 4, 0, 0, 0, 8, *[0] * 7, 16, 0]
    assert visit(model, [0, 2], [1, 1], [0.0, 0.0]) == [0, 1]  # each pair counts for itself


def test_visits_rewards_and_next_states_are_counted():
    model = new_model(LAYERS)
    visit(model, [1, 2], [0, 1], [0.5, 0.25])
    visit(model, [1, 0], [0, 1], [0.75, 1.0])
    p = LAYERS.index(1, 1, 0)
    assert (model.N_all[p], model.theta[p]) == (2.0, 1.25)
    assert model.square[p] == 0.25 + 0.5625
    _, (inner,) = LAYERS.unpack_transitions(model.M)
    assert inner[1, 0].tolist() == [1.0, 0.0, 1.0]
    assert model.M.sum() == 2.0  # the first state's distribution is not needed
    assert model.theta[LAYERS.index(2, 0, 1)] == 1.0
    assert model.N_all.sum() == 4.0


def test_a_renewed_model_has_means_and_a_variance():
    model, rewards = new_model(LAYERS), [0.1, 0.7, 0.4, 0.9]
    for r, after in zip(rewards, [0, 2, 2, 1], strict=True):
        visit(model, [1, after], [1, 0], [r, 0.0])
    i = 1 * 2 + 1
    optimism.renew(LAY, model, 1, i, 4.0)
    p = LAY[PAIR, 1] + i
    assert model.N[p] == 4.0
    assert model.reward[p] == pytest.approx(np.mean(rewards), abs=1e-15)
    assert model.spread[p] == pytest.approx(np.var(rewards), abs=1e-15)
    _, (inner,) = LAYERS.unpack_transitions(model.P)
    assert inner[1, 1].tolist() == [0.25, 0.25, 0.5]
    model.V[LAY[STATE, 2] : LAY[STATE, 2] + 3] = [1.0, 2.0, 4.0]
    mean, square = optimism.next_value(LAY, model, 1, i)
    assert (mean, square) == (0.25 + 0.5 + 2.0, 0.25 + 1.0 + 8.0)
    assert optimism.next_value(LAY, model, 2, 0) == (0.0, 0.0)  # after the last layer


def test_a_constant_reward_has_no_spread():
    model = new_model(LAYERS)
    for _ in range(3):
        visit(model, [0, 0], [0, 0], [0.1, 0.1])
    optimism.renew(LAY, model, 1, 0, 3.0)
    assert 0.0 <= model.spread[LAY[PAIR, 1]] < 1e-16  # never negative by rounding


@pytest.mark.parametrize(
    ("Q", "visits", "choice"),
    [
        ([0.3, 0.2, 0.1], [9, 0, 0], 0),
        ([0.1, 0.2, 0.3], [0, 0, 9], 2),
        ([0.3, 0.3, 0.1], [2, 1, 0], 1),  # a tie: the least count
        ([0.3, 0.3, 0.3], [2, 2, 1], 2),
        ([0.3, 0.3, 0.3], [2, 1, 1], 1),  # a tie of counts too: the first
        ([0.3, 0.3, 0.3], [1, 1, 1], 0),
    ],
)
def test_greedy_actions_and_their_ties(Q, visits, choice):
    layers = Layers([2], 3)
    model = new_model(layers)
    at = slice(layers.index(1, 1), layers.index(1, 1) + 3)
    model.Q[at], model.N_all[at] = Q, visits
    optimism.act_greedily(layers.table, model, 1)
    assert model.choice[2] == choice
    assert model.V[2] == max(Q)


def test_the_target_is_known():
    model = new_model(LAYERS)
    model.Q[:] = 7.0
    model.N_all[LAYERS.index(2, 1)] = 5.0  # action 0 of state 1 was played
    optimism.know_target(LAY, model, 2, 2, 1)
    assert model.V[LAY[STATE, 2] :].tolist() == [0.0, 1.0, 0.0]
    assert model.choice[LAY[STATE, 2] :].tolist() == [0.0, 1.0, 0.0]  # all actions tie
    optimism.know_target(LAY, model, 2, 1, 1)  # a target of an earlier layer
    assert not model.V[LAY[STATE, 2] :].any()


def test_forgetting_leaves_no_visits():
    model = new_model(LAYERS)
    for vector in model:
        vector[:] = 3.0
    optimism.forget(model)
    for name in ("N_all", "N", "theta", "square", "reward", "spread", "M", "P"):
        assert not getattr(model, name).any(), name


def test_rewards_are_checked():
    optimism.checked_rewards("MVP", "rewards", np.array([0.5, 0.5]), 1.0)
    optimism.checked_rewards("MVP", "losses", np.array([-0.5, -0.5]), 1.0)
    for name, numbers in (
        ("rewards", [-0.1, 0.5]), ("losses", [0.1, 0.0]), ("rewards", [0.6, 0.6]),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="MVP needs rewards of at least 0 and of at most"):
            optimism.checked_rewards("MVP", name, np.array(numbers), 1.0)


@pytest.mark.parametrize("cls", [MVP, UCBVI])
@pytest.mark.parametrize("in_python", [False, True])
def test_simulations_reject_the_rewards_that_tell_rejects(cls, in_python):
    """Rewards below 0, and of more than ``total`` in an episode."""
    mdp = worlds.dirichlet([1, 2], 2, np.random.default_rng(0))

    class After(MDPAdversary):
        """Fine for four episodes, then a loss of ``scale`` for every pair."""

        def fill(params, t, q, lay, out):  # noqa: N805 - a kernel, not a method
            out[:] = params[0] if t > 4 else -0.25
            out[0] = 0.0

    def after(scale):
        def losses(t, last, q, rng):
            return [np.full(table.shape, scale if t > 4 else -0.25) for table in q]

        return losses if in_python else After(scale=scale)

    for scale, episodes in ((-0.5, 9), (0.25, 4), (-0.75, 4)):
        simulate_mdp(cls([1, 2], 2, 9), mdp, after(scale), episodes, seed=1)
    for scale in (0.25, -0.75):
        learner = cls([1, 2], 2, 9)
        with pytest.raises(ValueError, match=f"{cls.__name__} needs rewards of at least 0") as told:
            learner.tell(learner.ask(), [0, 0], [0, 0], [scale, scale])
        with pytest.raises(ValueError, match=f"{cls.__name__} needs rewards of at least 0") as met:
            simulate_mdp(cls([1, 2], 2, 9), mdp, after(scale), 9, seed=1)
        assert str(met.value) == str(told.value)
