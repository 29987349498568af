"""What people try first: other libraries' names, generators as seeds, logged data."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

from slow.formulas import mixed, tsallis
from unbounded import (
    SCB,
    SCBRL,
    AdaHedge,
    CostExp4,
    CostSCB,
    CostSCBIX,
    EpsilonGreedy,
    Exp3P,
    Exp3S,
    PythonLearner,
    PythonMDPLearner,
    TsallisINF,
    UniformPolicy,
    compare,
    compare_mdp,
    recommend,
    simulate,
    simulate_mdp,
    worlds,
)
from unbounded.adversaries import Switch
from unbounded.adversaries.mdps import Stochastic
from unbounded.learners.seeds import root_of
from unbounded.testing import check_learner, check_mdp_learner

MDP = worlds.dirichlet([1, 2], 2, seed=0)
GUESS = UniformPolicy([1, 2], 2)

NAMES = {
    "fit": ("learn_from", "tell"),
    "predict": ("probabilities", "policy"),
    "pull": ("ask", "plan.act"),
    "update": ("tell.choice", "tell.plan"),
    "reset": ("clone", "clone"),
}


@pytest.mark.parametrize(("name", "here"), NAMES.items())
@pytest.mark.parametrize("k", [0, 1], ids=["SCB", "SCBRL"])
def test_names_of_other_libraries_say_what_it_is_called_here(k, name, here):
    learner = (SCB(2), SCBRL([1], 2))[k]
    with pytest.raises(AttributeError, match=rf"{name}.*: .*{here[k]}") as caught:
        getattr(learner, name)
    assert caught.value.name == name
    assert not hasattr(learner, name)
    said = [word for word in ("learn_from", "probabilities", "policy") if word in str(caught.value)]
    assert all(hasattr(learner, word) for word in said)  # what it recommends is there
    with pytest.raises(AttributeError, match=r"no attribute 'xyz'$"):  # the control
        learner.xyz  # noqa: B018


class Mine(PythonLearner):
    def distribution(self):
        return np.full(self.n_arms, 1.0 / self.n_arms)

    def update(self, arm, probability, loss):
        pass


def test_so_do_arguments():
    with pytest.raises(TypeError, match="takes n_arms=, not arms=, which takes their names too"):
        SCB(arms=["a", "b"])
    for call, given, here in (
        (SCB, {"n_arms": 2, "random_state": 1}, "seed"),
        (Mine, {"n_arms": 2, "random_state": 1}, "seed"),
        (SCB, {"k": 3}, "n_arms"),
        (SCB, {"n_actions": 3}, "n_arms"),
        (SCBRL, {"sizes": [1], "n_actions": 2}, "layers"),
        (simulate, {"learner": SCB(2), "adversary": Switch(), "n_rounds": 9}, "rounds"),
        (compare, {"learners": {}, "adversary": Switch(), "T": 9}, "rounds"),
        (simulate_mdp, {"n_episodes": 9}, "episodes"),
        (compare_mdp, {"random_state": 9}, "seed"),
        (recommend, {"rewards": True}, "reward"),
        (worlds.dirichlet, {"sizes": [2], "n_actions": 2, "rng": None}, "seed"),
    ):
        wrong = [*given][-1] if call is not SCBRL else "sizes"
        with pytest.raises(TypeError, match=rf"takes {here}=, not {wrong}="):
            call(**given)
        with pytest.raises(TypeError, match="unexpected keyword argument 'bananas'"):  # the control
            call(**{name: one for name, one in given.items() if name != wrong}, bananas=1)


class Even(PythonMDPLearner):
    def __init__(self, layers, n_actions, *, sets=False, seed=None):
        super().__init__(layers, n_actions, seed=seed)
        if sets:
            self.n_actions = n_actions

    def policy(self):
        return [np.full((n, self.n_actions), 1.0 / self.n_actions) for n in self.layers.sizes]

    def update(self, states, actions, losses):
        pass


def test_the_number_of_actions_is_that_of_the_layers_unless_a_class_sets_it():
    with pytest.raises(AttributeError, match=r"'n_actions': self\.layers\.n_actions"):
        Even([1, 2], 2)
    assert Even([1, 2], 2, sets=True).ask().policy[1].tolist() == [[0.5, 0.5]] * 2


@pytest.mark.parametrize(
    ("play", "words"),
    [
        (lambda: simulate(SCB, Switch(), 9), "learner must be a Learner, as SCB.* not <class"),
        (lambda: simulate(SCBRL([1], 2), Switch(), 9), "learner must be a Learner.* not SCBRL"),
        (lambda: simulate(SCB(2), Switch, 9), r"adversary must be an object, as Switch\(\)"),
        (lambda: simulate(SCB(2), np.ones((9, 2)), 9), r"adversary .* take Replay\(losses\); got"),
        (lambda: simulate_mdp(SCB(2), MDP, Stochastic(), 9), "learner must be an MDPLearner"),
        (lambda: simulate_mdp(GUESS, MDP, Stochastic, 9), r"as Stochastic\(\)"),
        (lambda: simulate_mdp(GUESS, MDP, np.ones((9, 2)), 9), r"take MDPReplay\(losses\); got"),
        (lambda: simulate_mdp(GUESS, MDP.P, Stochastic(), 9), "mdp must be .*from_arrays"),
        (lambda: SCBRL.for_mdp(MDP.P), "mdp must be .*from_arrays"),
        (lambda: check_learner(UniformPolicy), "cls .* check_mdp_learner"),
        (lambda: check_learner(SCB(2)), "cls must be a class"),
        (lambda: check_mdp_learner(SCB), "cls .* check_learner"),
    ],
)
def test_what_is_in_the_wrong_place_is_named_on_one_line(play, words):
    with pytest.raises(TypeError, match=words) as caught:
        play()
    assert "\n" not in str(caught.value)


def test_a_generator_is_a_seed():
    first, second = (SCB(5, seed=np.random.default_rng(3)) for _ in range(2))
    assert [first.ask().arm for _ in range(9)] == [second.ask().arm for _ in range(9)]
    rng = np.random.default_rng(3)
    one, two = SCB(50, seed=rng), SCB(50, seed=rng)  # drawn from it, one after the other
    assert [one.ask().arm for _ in range(9)] != [two.ask().arm for _ in range(9)]
    assert one.clone().ask().arm == SCB(50, seed=np.random.default_rng(3)).ask().arm
    results = [simulate(SCB(3), Switch(), 50, seed=np.random.default_rng(7)) for _ in range(2)]
    assert (results[0].regret == results[1].regret).all()
    assert root_of(rng).entropy != root_of(rng).entropy
    with pytest.raises(TypeError, match=r"seed .* got '3'"):
        SCB(3, seed="3")
    with pytest.raises(TypeError, match=r"seed .* RandomState"):
        SCB(3, seed=np.random.RandomState(3))


@pytest.mark.parametrize("seed", [4, np.random.SeedSequence(4), np.int64(4)])
@pytest.mark.parametrize("build", [worlds.dirichlet, worlds.hard_to_reach])
def test_environments_take_every_kind_of_seed(build, seed):
    as_numpy = build([2, 3], 2, np.random.default_rng(4)).P
    assert np.array_equal(build([2, 3], 2, seed=seed).P, as_numpy)
    assert not np.array_equal(build([2, 3], 2).P, build([2, 3], 2, seed=None).P)
    assert worlds.combination_lock(4, 3, seed=seed).P.tolist() == (
        worlds.combination_lock(4, 3, np.random.default_rng(4)).P.tolist()
    )
    with pytest.raises(TypeError, match="seed"):
        build([2, 3], 2, seed=1.5)


# ---------------------------------------------------------------------- learn_from


def logged(T, seed=0):
    """Rounds of a policy that changes, with losses of any size and sign."""
    rng = np.random.default_rng(seed)
    policy = rng.dirichlet([2.0, 2.0, 2.0], size=T)
    arms = np.array([rng.choice(3, p=row) for row in policy])
    losses = 1e4 * (rng.normal(size=T) + 0.5 * arms)
    return arms, policy[np.arange(T), arms], losses


def scb_of(arms, p, losses):
    """SCB's distribution after these rounds, from the formulas of its practical profile."""
    L, seen = np.zeros(3), []
    for arm, chance, loss in zip(arms, p, losses, strict=True):
        if seen:
            L[arm] += (min(max(seen), max(min(seen), loss)) - min(seen)) / chance
        seen.append(loss)
    t = len(seen) + 1
    width = max(seen) - min(seen)
    gamma = 0.5 * 3 / (2.0 * 3 + math.sqrt(3 * t))
    return mixed(tsallis(L, 2.0 / (width * math.sqrt(t))), gamma)


def test_a_warm_start_is_what_the_formulas_say():
    arms, p, losses = logged(80)
    learner = SCB(3, seed=0)
    for one in zip(arms, p, losses, strict=True):
        learner.learn_from(*one)
    np.testing.assert_allclose(learner.probabilities(), scb_of(arms, p, losses), atol=1e-10)
    wrong = scb_of(arms, np.full(80, 1 / 3), losses)  # the control: other propensities
    assert abs(learner.probabilities() - wrong).max() > 1e-3
    assert (learner.rounds, len(learner.outstanding)) == (80, 0)
    assert SCB.load(learner.save()).ask().arm == learner.ask().arm


def test_a_whole_log_is_learned_as_its_rounds_are():
    arms, p, losses = logged(30)
    one_by_one = SCB(3, seed=0)
    for one in zip(arms, p, losses, strict=True):
        one_by_one.learn_from(*one)
    table = {"arm": arms, "probability": p, "loss": losses}
    rewards = {"arm": arms, "probability": p, "reward": -losses}
    records = pd.DataFrame(table).to_records(index=False)
    for frame in (records, table, pd.DataFrame(table), pl.DataFrame(table), pl.DataFrame(rewards)):
        learner = SCB(3, seed=0)
        learner.learn_from(frame)
        assert learner.save() == one_by_one.save()


def test_the_warm_start_of_a_play_is_that_play():
    """Of an on-policy log: the same state as of the learner that made it."""
    for make in (lambda: SCB(3, seed=1), lambda: CostSCB(3, seed=1), lambda: CostSCBIX(3, seed=1)):
        player, reader = make(), make()
        for t in range(60):
            choice = player.ask()
            player.tell(choice, float(t % 7))
            reader.learn_from(choice.arm, choice.probability, float(t % 7))
        assert np.array_equal(player.probabilities(), reader.probabilities())


@pytest.mark.parametrize(
    "make",
    [
        lambda: SCB(3, mixing=1.0, seed=0), lambda: TsallisINF(3, seed=0),
        lambda: Exp3S(3, rounds=2000, seed=0),
        lambda: Exp3P(3, rounds=2000, form="audibert", seed=0),
    ],
    ids=["SCB", "TsallisINF", "Exp3S", "Exp3P"],
)  # fmt: skip
def test_tiny_probabilities_of_a_log_leave_a_learner_that_can_play_and_be_saved(make):
    rng, learner, plain = np.random.default_rng(4), make(), make()
    for t in range(90):
        arm, loss = int(rng.integers(3)), float(rng.random())
        learner.learn_from(arm, [1e-12, 0.25, 1.0][t % 3], loss)
        plain.learn_from(arm, [1e-6, 0.25, 1.0][t % 3], loss)
        assert learner.probabilities().sum() == pytest.approx(1.0, abs=1e-9)
    assert learner.save() == plain.save()  # they count as 1e-6
    assert type(learner).load(learner.save()).ask().arm == learner.ask().arm


def test_what_cannot_be_learned_from_is_rejected_before_anything_changes():
    learner = SCB(3, seed=0)
    before = learner.save()
    table = {"arm": [0, 1], "probability": [0.5, 0.5], "loss": [1.0, 2.0]}
    for given, error in (
        ((3, 0.5, 1.0), "arm"),
        ((0, 0.0, 1.0), "probability"),
        ((0, 1.5, 1.0), "probability"),
        ((0, 0.5, math.nan), "loss"),
        ((0,), "probability"),
        (({**table, "arm": [0, 7]},), "arm"),
        (({**table, "probability": [0.5, 0.0]},), "probability"),
        (({**table, "loss": [0.5, math.nan]},), "loss"),
        (({"arm": [0], "p": [1.0], "loss": [1.0]},), "no column 'probability'.* 'p'"),
        (([1, 2],), "frame of polars or pandas"),
        ((table, 0.5, 1.0), "columns"),
    ):
        with pytest.raises((ValueError, TypeError), match=error):
            learner.learn_from(*given)
        assert learner.save() == before
    with pytest.raises(TypeError, match="all arms"):
        AdaHedge(3).learn_from(0, 0.5, 1.0)
    with pytest.raises(TypeError, match="advice of each round"):
        CostExp4(3, 2).learn_from(0, 0.5, 1.0)
    greedy = EpsilonGreedy(3, seed=0)
    greedy.learn_from(1, 0.5, reward=3.0)
    assert greedy.rounds == 1
