"""Interpreted, compiled, and changing over in between: the same play to the last bit."""

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import mdp_examples
import unbounded
from bandit_examples import EXAMPLES as BANDITS
from mdp_play import told_of, walk
from unbounded import SCB, CostSCBRL, Uniform, settings
from unbounded.jit import steps as steps_module

ROUNDS, EPISODES = 500, 100
SIZES = (2, 10, 70)


@pytest.fixture
def change_over(monkeypatch):
    """Which steps a learner uses from now on."""

    def choose(learner, compiled):
        monkeypatch.setattr(settings, "jit", "always" if compiled else "never")
        learner._steps._ready = compiled
        if hasattr(learner, "_choose_steps"):
            learner._choose_steps()

    return choose


def losses_of(n):
    rng = np.random.default_rng(1)
    losses = rng.normal(size=(ROUNDS, n)) * 10.0 ** rng.integers(-3, 3, size=(ROUNDS, 1))
    losses[ROUNDS // 2] *= 1e12
    return losses


@pytest.mark.parametrize("bandit", BANDITS)
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


@pytest.mark.parametrize("player", mdp_examples.EXAMPLES)
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
    assert learner._ask is learner._steps.compiled.ask


def test_what_is_returned_is_plain(change_over):
    learner = SCB(3, seed=0)
    change_over(learner, False)
    choice = learner.ask()
    assert type(choice.arm) is int
    assert type(choice.probability) is float
    assert type(learner.scale) is float


def test_an_unknown_word(monkeypatch):
    monkeypatch.setattr(settings, "jit", "sometimes")
    monkeypatch.setattr(steps_module, "_known", {})
    with pytest.raises(ValueError, match=r"settings.jit \(or UNBOUNDED_JIT\) must be one of"):
        Uniform(3)


def run(script, cache, **environment):
    import os

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=os.environ | {"UNBOUNDED_CACHE_DIR": str(cache), "UNBOUNDED_JIT": "auto"} | environment,
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


PLAY_UNTIL_COMPILED = """
    import time
    from unbounded import Uniform, SCB
    learner = Uniform(3, seed=0)
    first = learner._ask == learner._ask_interpreted
    arms, end = [], time.monotonic() + 500
    while learner._ask == learner._ask_interpreted and time.monotonic() < end:
        choice = learner.ask()
        learner.tell(choice, 1.0)
        if len(arms) < 1000:
            arms.append(choice.arm)
    print(first, learner._ask == learner._ask_interpreted, sum(arms))
"""


def test_another_process_compiles_and_the_play_changes_over(tmp_path):
    cold = run(PLAY_UNTIL_COMPILED, tmp_path)
    first, still, total = cold.stdout.split()
    assert (first, still) == ("True", "False")
    warm = run(PLAY_UNTIL_COMPILED, tmp_path)
    assert warm.stdout.split()[:2] == ["False", "False"]  # it is kept, and loaded at once
    assert not cold.stderr
    expected = Uniform(3, seed=0)
    assert int(total) == sum(expected.ask().arm for _ in range(1000))


def test_a_short_play_starts_nothing(tmp_path):
    done = run(
        """
        from unbounded import SCB
        learner = SCB(3, seed=0)
        for _ in range(20):
            learner.tell(learner.ask(), 1.0)
        print(learner._steps._behind)
        """,
        tmp_path,
    )
    assert done.stdout.split() == ["None"]
    assert not list(tmp_path.iterdir())


def test_a_class_that_no_other_process_can_import_is_compiled_here(tmp_path):
    done = run(
        """
        import time
        import unbounded.jit.code as code
        import unbounded.jit.steps as steps
        from unbounded import Uniform
        steps._AHEAD, code._SAID = 0.3, 0.0
        class Mine(Uniform):
            spec = Uniform.spec
        learner, end = Mine(3, seed=0), time.monotonic() + 300
        while learner._ask == learner._ask_interpreted and time.monotonic() < end:
            learner.tell(learner.ask(), 1.0)
        print(learner._ask == learner._ask_interpreted, learner._steps._behind)
        """,
        tmp_path,
    )
    assert done.stdout.split() == ["False", "None"]
    assert "compiling Uniform" in done.stderr


def test_settings_may_be_too_long_for_a_command(tmp_path):
    """A support has an entry per transition; a command may have 128 kB."""
    steps = object.__new__(steps_module.Steps)
    steps._arguments = {"support": [True, False] * 50_000}
    steps.load = lambda: None
    found = tmp_path / "found"
    count = "str(len(json.load(sys.stdin)['support']))"
    code = f"import json, sys; open({str(found)!r}, 'w').write({count})"
    steps._compile_behind([sys.executable, "-c", code])
    assert found.read_text() == "100000"


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
    """Powers with a whole number, or of one, in what is compiled."""
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
