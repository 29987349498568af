"""Interpreted, compiled, or changing over: the same play to the last bit."""

import ast
from pathlib import Path

import numpy as np
import pytest

import mdp_examples
import unbounded
from bandit_examples import EXAMPLES as BANDITS
from mdp_play import told_of, walk
from paces import assert_same, each_way
from tiers import first_only, tiered
from unbounded import SCB, CostSCBRL, UniformPolicy, simulate, simulate_mdp
from unbounded.adversaries import Growth, StochasticGap
from unbounded.adversaries.mdps import Negative
from unbounded.jit.kernel import direct

ROUNDS, EPISODES = 80, 20
SIZES = (3, 70)


def losses_of(n):
    rng = np.random.default_rng(1)
    losses = rng.normal(size=(ROUNDS, n)) * 10.0 ** rng.integers(-3, 3, size=(ROUNDS, 1))
    losses[ROUNDS // 2] *= 1e12
    return losses


@pytest.mark.parametrize("bandit", tiered(BANDITS))
def test_a_bandit_plays_the_same(bandit, change_over):
    for n in SIZES:
        losses = losses_of(n)
        limit = bandit.spec.largest_loss
        losses = np.clip(losses, -limit, limit)
        saves = []
        moments = sorted(np.random.default_rng(n).integers(ROUNDS, size=3).tolist())
        for changes in ([], [0], [0, *moments]):
            learner = bandit.make(n, seed=1)
            compiled = True
            for t, row in enumerate(losses):
                for _ in range(changes.count(t)):
                    compiled = not compiled
                    change_over(learner, compiled)
                bandit.tell(learner, learner.ask(), row)
            saves.append((learner.save(), learner.probabilities().tolist(), learner.scale))
            change_over(learner, True)
        assert saves[0] == saves[1] == saves[2]


@pytest.mark.parametrize("player", tiered(mdp_examples.EXAMPLES))
def test_an_mdp_learner_plays_the_same(player, change_over):
    mdp, losses = mdp_examples.MDP, player.losses(episodes=EPISODES)
    moments = sorted(np.random.default_rng(2).integers(EPISODES, size=3).tolist())
    saves = []
    for changes in ([], [0], [0, *moments]):
        learner, rng = player.make(seed=1), np.random.default_rng(3)
        compiled = True
        for t, row in enumerate(losses):
            for _ in range(changes.count(t)):
                compiled = not compiled
                change_over(learner, compiled)
            plan = learner.ask()
            states, actions = walk(mdp, plan, rng.random(mdp.layers.horizon))
            learner.tell(plan, states, actions, told_of(learner, row, states, actions))
        saves.append(learner.save())
        change_over(learner, True)
    assert saves[0] == saves[1] == saves[2]


def test_the_steps_are_those_that_were_chosen(change_over):
    """The control: different code runs."""
    learner = SCB(3, seed=0)
    change_over(learner, False)
    assert learner._ask == learner._ask_interpreted
    assert learner._look is learner._steps.interpreted.look
    change_over(learner, True)
    assert learner._ask is direct(learner._steps.compiled.ask)


def test_what_is_returned_is_plain(change_over):
    learner = SCB(3, seed=0)
    change_over(learner, False)
    choice = learner.ask()
    assert type(choice.arm) is int
    assert type(choice.probability) is float
    assert type(learner.scale) is float


@pytest.mark.parametrize("seed", range(6, 10))
def test_where_the_interior_point_method_runs(seed, change_over):
    """Of few transitions are possible where episodes may end: most solves are of that method."""
    played = []
    for compiled in (True, False):
        learner, rng = CostSCBRL([1, 2, 3], 3, ends=True, seed=seed), np.random.default_rng(seed)
        change_over(learner, compiled)
        for _ in range(9):
            plan, states = learner.ask(), [0, 0, int(rng.integers(2))]
            actions = [plan.act(h, s) for h, s in enumerate(states)]
            learner.tell(plan, states, actions, np.abs(rng.normal(size=3)))
        played.append(learner.save())
        change_over(learner, True)
    assert played[0] == played[1]


def test_kernels_take_no_powers():
    """Python's x**3 has other bits than the product that a compiler makes of it, and 2.0**x than
    C's exp2. Other powers are C's in both."""
    kernel = "@kernel\ndef f(x, y):\n    return x ** 3 + y ** -2 + 2.0 ** x + x ** y + 2.0 ** -53"
    assert set(_powers(kernel)) == {"x ** 3", "y ** (-2)", "2.0 ** x"}
    assert _powers("def f(x):\n    return x ** 3") == []
    found = {
        str(path): powers
        for path in Path(unbounded.__file__).parent.rglob("*.py")
        if (powers := _powers(path.read_text(encoding="utf-8")))
    }
    assert found == {}


def _powers(source):
    """Powers with an integer, or of one, in what is compiled."""
    found = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        names = {ast.unparse(one).partition("(")[0] for one in function.decorator_list}
        if names & {"kernel", "subroutine"}:
            found += [
                ast.unparse(node)
                for node in ast.walk(function)
                if isinstance(node, ast.BinOp)
                and isinstance(node.op, ast.Pow)
                and _is_number(node.left) != _is_number(node.right)  # both know two numbers
            ]
    return found


def _is_number(node):
    return ast.unparse(node).strip("-()").replace(".", "").isdigit()


# ------------------------------------------------------------------ simulations


@pytest.mark.parametrize("n", first_only([70, 3]))
@pytest.mark.parametrize("bandit", tiered(BANDITS))
def test_a_simulation_of_a_bandit(bandit, n, monkeypatch):
    learner = bandit.make(n)
    assert_same(each_way(monkeypatch, lambda: simulate(learner, Growth(), 60, 2, 1, workers=2)))


@pytest.mark.parametrize("bandit", [one for one in BANDITS if one.id in ("SCB-0", "Exp3-0")])
def test_with_comparators(bandit, monkeypatch):
    learner = bandit.make(70)
    assert_same(
        each_way(
            monkeypatch,
            lambda: simulate(learner, StochasticGap(), 60, 2, 1, comparators=[0, 5]),
        )
    )


def test_against_python(monkeypatch):
    def chase(t, last_arm, q, rng):
        losses = rng.random(3)
        losses[q.argmax()] += 1e200 if t > 30 else 1.0
        return losses

    learner = SCB(3)
    assert_same(each_way(monkeypatch, lambda: simulate(learner, chase, 60, 2, 1)))


@pytest.mark.parametrize("player", tiered(mdp_examples.EXAMPLES))
def test_a_simulation_of_an_mdp(player, monkeypatch):
    learner, mdp = player.make(), mdp_examples.MDP
    results = each_way(
        monkeypatch, lambda: simulate_mdp(learner, mdp, Negative(scale=0.25), EPISODES, 2, 1)
    )
    assert_same(results)


def test_an_mdp_against_python(monkeypatch):
    def losses(t, last, q, rng):
        return [rng.random(table.shape) for table in q]

    learner, mdp = UniformPolicy([2, 3], 2), mdp_examples.MDP
    assert_same(each_way(monkeypatch, lambda: simulate_mdp(learner, mdp, losses, 60, 2, 1)))
