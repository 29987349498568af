"""Learners for MDPs in plain Python do what built-in ones do."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest

import unbounded.settings
from saved_helpers import fields_of
from unbounded import LayeredMDP, PythonMDPLearner, UniformPolicy, simulate_mdp, worlds
from unbounded.adversaries.mdps import Punish, Stochastic
from unbounded.core.occupancy.layout import Layers
from unbounded.durable import Durable

SHAPE = [2, 3]


@pytest.fixture(autouse=True)
def _nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unbounded.settings, "jit", "never")


class Cheapest(PythonMDPLearner):
    def __init__(self, layers, n_actions, *, explore=0.2, seed=None):
        super().__init__(layers, n_actions, seed=seed)
        self.explore, self.seen = explore, []
        self.sums = [np.zeros((n, n_actions)) for n in layers]
        self.counts = [np.ones((n, n_actions)) for n in layers]
        self.fail = 0

    def policy(self):
        A = self.layers.n_actions
        means = [S / N for S, N in zip(self.sums, self.counts, strict=True)]
        return [self.explore / A + (1 - self.explore) * np.eye(A)[m.argmin(axis=1)] for m in means]

    def update(self, states, actions, losses):
        self.seen.append([states.tolist(), actions.tolist(), losses.tolist()])
        for h, (s, a, loss) in enumerate(zip(states, actions, losses, strict=True)):
            self.sums[h][s, a] += loss
            self.counts[h][s, a] += 1
        if self.fail == len(self.seen):
            raise ZeroDivisionError("as wanted")


class Even(PythonMDPLearner):
    def policy(self):
        A = self.layers.n_actions
        return [np.full((n, A), 1 / A) for n in self.layers.sizes]

    def update(self, states, actions, losses):
        pass


@pytest.fixture
def mdp():
    return worlds.dirichlet(SHAPE, 2, np.random.default_rng(0))


def play(learner, episodes):
    """States by turns; losses by the action."""
    taken = []
    for t in range(episodes):
        plan = learner.ask()
        states = [t % 2, t % 3]
        actions = [plan.act(h, s) for h, s in enumerate(states)]
        learner.tell(plan, states, actions, [1.0 - a for a in actions])
        taken.append(actions)
    return taken


def test_it_plays_and_learns() -> None:
    learner = Cheapest(SHAPE, 2, seed=1)
    taken = play(learner, 60)
    assert [row[1] for row in learner.seen] == taken
    assert learner.episodes_told == 60
    assert learner.ask().policy[0].tolist() == [[0.1, 0.9], [0.1, 0.9]]
    assert dict(learner.settings) == {"layers": SHAPE, "n_actions": 2, "explore": 0.2}
    assert play(UniformPolicy(SHAPE, 2, seed=3), 40) == play(Even(SHAPE, 2, seed=3), 40)


def test_a_saved_learner_goes_on_bit_for_bit() -> None:
    learner = Cheapest(SHAPE, 2, seed=1)
    play(learner, 20)
    plan = learner.ask()
    twin = Cheapest.load(learner.save())
    other = twin.outstanding[plan.id]
    assert [plan.act(0, s) for s in range(2)] == [other.act(0, s) for s in range(2)]
    learner.forget(plan)
    twin.forget(other)
    third = copy.deepcopy(twin)
    assert play(learner, 30) == play(twin, 30) == play(third, 30)
    assert learner.seen == twin.seen == third.seen


def test_an_error_in_update_leaves_a_learner_that_was_not_told() -> None:
    learner = Cheapest(SHAPE, 2, seed=1)
    play(learner, 3)
    learner.fail = 4
    plan = learner.ask()
    before = fields_of(learner.save())
    actions = [plan.act(0, 0), plan.act(1, 0)]
    with pytest.raises(ZeroDivisionError) as caught:
        learner.tell(plan, [0, 0], actions, [1.0, 1.0])
    assert caught.value.__notes__ == ["This came from Cheapest.update()."]
    assert fields_of(learner.save()) == before
    learner.fail = 0
    learner.tell(plan, [0, 0], actions, [1.0, 1.0])
    assert (learner.episodes_told, len(learner.seen)) == (4, 4)


@pytest.mark.parametrize("adversary", [Stochastic(), Punish()])
def test_regret_is_that_of_an_equal_built_in_learner(mdp, adversary) -> None:
    ours = simulate_mdp(UniformPolicy(SHAPE, 2), mdp, adversary, 40, 2, seed=3)
    theirs = simulate_mdp(Even(SHAPE, 2), mdp, adversary, 40, 2, seed=3, workers=3)
    assert np.array_equal(ours.regret, theirs.regret)
    assert np.array_equal(ours.pseudo_regret, theirs.pseudo_regret)
    other = simulate_mdp(Even(SHAPE, 2), mdp, adversary, 40, 2, seed=4)
    assert not np.array_equal(other.regret, theirs.regret)


def test_regret_is_exact_and_a_simulation_is_repeated_by_ask_and_tell(mdp) -> None:
    """Against brute force over all deterministic policies, with the policies that were played."""
    tables = [np.random.default_rng(5).normal(size=(n, 2)) for n in SHAPE]

    def fixed(t, last, q, rng):
        return tables

    T = 25
    result = simulate_mdp(Cheapest(SHAPE, 2), mdp, fixed, T, 1, seed=9, checkpoints=[T])
    episodes: list[list[list[float]]] = []

    class Noted(Cheapest):
        def update(self, states, actions, losses):
            super().update(states, actions, losses)
            episodes.append(self.seen[-1])

    simulate_mdp(Noted(SHAPE, 2), mdp, fixed, T, 1, seed=9)
    learner, expected, paid = Cheapest(SHAPE, 2, seed=result.seed(0)), 0.0, 0.0
    for states, actions, losses in episodes:
        plan = learner.ask()
        assert [plan.act(h, s) for h, s in enumerate(states)] == actions
        expected += value(mdp, plan.policy, tables)
        paid += sum(losses)
        learner.tell(plan, states, actions, losses)
    every = itertools.product(range(2), repeat=sum(SHAPE))
    best = min(value(mdp, [np.eye(2)[list(a[:2])], np.eye(2)[list(a[2:])]], tables) for a in every)
    assert result.pseudo_regret[0, -1] == pytest.approx(expected - T * best, rel=1e-12)
    assert result.regret[0, -1] == pytest.approx(paid - T * best, rel=1e-12)


def value(mdp, policy, losses):
    """What a policy costs, summed over all paths."""
    total = 0.0
    for s, a, r, b in itertools.product(range(2), range(2), range(3), range(2)):
        chance = mdp.initial[s] * policy[0][s, a] * mdp.transitions[0][s, a, r] * policy[1][r, b]
        total += chance * (losses[0][s, a] + losses[1][r, b])
    return float(total)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([np.full((2, 2), 0.5)], r"Given.policy\(\) must return one table per layer"),
        (7, "must return one table per layer"),
        ([np.full((2, 2), 0.5)] * 2, r"Given.policy\(\)\[1\] must have shape \(3, 2\)"),
        ([np.full((2, 2), 0.5), np.full((3, 2), 0.6)], r"policy\(\)\[1\] must be finite, at least"),
    ],
)
def test_what_is_not_a_policy_is_rejected(policy, message: str) -> None:
    class Given(PythonMDPLearner):
        def policy(self):
            return policy

        def update(self, states, actions, losses):
            pass

    with pytest.raises(ValueError, match=message):
        Given(SHAPE, 2)


def test_it_may_be_durable(tmp_path) -> None:
    with Durable(tmp_path / "learner.db", Cheapest(SHAPE, 2, seed=0)) as durable:
        for _ in range(3):
            plan = durable.ask()
            actions = [plan.act(0, 0), plan.act(1, 1)]
            durable.tell(plan, states=[0, 1], actions=actions, losses=[1.0, 2.0])
        assert durable.verify() > 0


def test_layers_are_those_that_it_was_made_with() -> None:
    assert Even(SHAPE, 2).layers == Layers(SHAPE, 2)
    with pytest.raises(TypeError, match=r"must take \(self, layers, n_actions, \*, ..., seed=None"):
        type("Mine", (PythonMDPLearner,), {"__init__": lambda self, n: None})


class Hindsight(PythonMDPLearner):
    """Sees all losses; in every state the action that was cheapest there so far."""

    feedback = "full"

    def __init__(self, layers, n_actions, *, seed=None):
        super().__init__(layers, n_actions, seed=seed)
        self.sums = [np.zeros((n, n_actions)) for n in layers]

    def policy(self):
        A = self.layers.n_actions
        return [0.5 / A + 0.5 * np.eye(A)[S.argmin(axis=1)] for S in self.sums]

    def update(self, states, actions, losses):
        for S, table in zip(self.sums, losses, strict=True):
            S += table


def test_full_information(mdp):
    """The simulator and ask/tell give the tables; what an update keeps is its own."""
    tables = np.random.default_rng(5).normal(size=(20, sum(SHAPE), 2))

    def losses(t, last, q, rng):
        return [tables[t - 1, :2], tables[t - 1, 2:]]

    met = []

    class Noted(Hindsight):
        def update(self, states, actions, losses):
            super().update(states, actions, losses)
            met.append((states.tolist(), actions.tolist(), [table.copy() for table in losses]))
            losses[0][:] = np.nan

    result = simulate_mdp(Noted(SHAPE, 2), mdp, losses, 20, 1, seed=9)
    learner = Hindsight(SHAPE, 2, seed=result.seed(0))
    for t, (states, actions, told) in enumerate(met, start=1):
        plan = learner.ask()
        assert [plan.act(h, s) for h, s in enumerate(states)] == actions
        assert all(map(np.array_equal, told, losses(t, None, None, None)))
        with pytest.raises(ValueError, match="Hindsight learns from the losses of all states"):
            learner.tell(plan, states, actions, [0.0, 0.0])
        learner.tell(plan, states, actions, told)
    assert np.allclose(np.vstack(learner.sums), tables.sum(axis=0))
    assert Hindsight.load(learner.save()).sums[1].tolist() == learner.sums[1].tolist()
    compiled = simulate_mdp(Hindsight(SHAPE, 2), mdp, Stochastic(), 200, 1, seed=1)
    control = simulate_mdp(Even(SHAPE, 2), mdp, Stochastic(), 200, 1, seed=1)
    assert compiled.pseudo_regret[0, -1] < control.pseudo_regret[0, -1]


class Allowed(PythonMDPLearner):
    """Plays all actions that are allowed alike, or with ``stray`` all."""

    def __init__(self, layers, n_actions, *, stray=0.0, allowed=None, ends=False, seed=None):
        super().__init__(layers, n_actions, allowed=allowed, ends=ends, seed=seed)
        self.stray = stray
        self.visited = []

    def policy(self):
        tables = [legal / legal.sum(axis=1, keepdims=True) for legal in self.layers.allowed]
        return [(1 - self.stray) * table + self.stray / self.layers.n_actions for table in tables]

    def update(self, states, actions, losses):
        self.visited.append([states.tolist(), actions.tolist()])


@pytest.fixture
def narrow():
    """Three steps; action 0 is not allowed in state 1, and action 1 may end the episode."""
    P = [[[0.5, 0.5], [0.2, 0.3]], [[0.0, 1.0], [0.5, 0.0]]]
    allowed, ends = [[True, True], [False, True]], [[0.0, 0.5], [0.0, 0.5]]
    return LayeredMDP.from_arrays(P, [1.0, 0.0], horizon=3, allowed=allowed, ends=ends)


def test_actions_that_are_not_allowed_and_early_ends(narrow) -> None:
    result = simulate_mdp(Allowed.for_mdp(narrow), narrow, Stochastic(), 200, 2, seed=1)
    even = simulate_mdp(UniformPolicy.for_mdp(narrow), narrow, Stochastic(), 200, 2, seed=1)
    assert np.allclose(result.pseudo_regret, even.pseudo_regret)
    learner = Allowed.for_mdp(narrow, seed=0)
    plan = learner.ask()
    assert plan.policy[1].tolist() == [[0.5, 0.5], [0.0, 1.0], [1.0, 0.0]]
    learner.tell(plan, [0], [plan.act(0, 0)], [1.0])  # it ended
    assert len(learner.visited[0][0]) == 3
    again = Allowed.load(learner.save())
    assert (again.layers, again.visited) == (narrow.layers, learner.visited)
    with pytest.raises(ValueError, match=r"policy\(\)\[0\] gives action 0 in state 1 .*allowed"):
        Allowed.for_mdp(narrow, stray=0.1)
    with pytest.raises(TypeError, match=r"Hindsight takes no allowed=.*of yours takes both"):
        Hindsight.for_mdp(narrow)
