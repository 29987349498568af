"""Learners and adversaries of users: what runs is what they wrote last, and it is kept if certain.

Every program prints what the code computed, and how many kernels came from the disk.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import unbounded

# A learner whose `scale` tells which `update` ran.
LEARNER = """
from typing import NamedTuple
from unbounded import Learner
from unbounded.jit.kernel import counting_kernel as kernel
from unbounded.learners.spec import BanditSpec
{imports}
class Params(NamedTuple):
    n: int
class State(NamedTuple):
    t: int
    clipped: int
    total: float
def init(params):
    return State(1, 0, 0.0)
@kernel
def distribution(params, state, q):
    q[:] = 1.0 / params.n
@kernel
def act(params, state, word):
    return 0, 1.0 / params.n, 0.0
@kernel
def update(params, state, arm, ask_info, loss):
    return State(state.t + 1, 0, state.total + {step})
@kernel
def scale(params, state):
    return state.total
class Mine(Learner):
    spec = BanditSpec.of(__name__, name="Mine", reference="", guarantee="", scale_free=True)
    def __init__(self, n_arms, *, seed=None):
        self._start(Params(n_arms), seed)
"""
PLAY = """
def play(cls):
    learner = cls(2, seed=0)
    learner.tell(learner.ask(), 1.0)
    hits = sum(sum(e.stats.cache_hits.values()) for e in learner._steps.compiled[:2])
    return learner.scale, hits
"""
ADVERSARY = """
import numpy as np
from unbounded.adversaries import Adversary
from unbounded.jit.kernel import counting_kernel as kernel
{imports}
class Theirs(Adversary):
    def fill(params, state, t, last_arm, q, out):
        out[:] = {step}
"""
MEET = """
@kernel
def meet(fill, params, state, q, out):
    fill(params, state, 1, -1, q, out)
def face(cls):
    out = np.zeros((1, 2))
    rows = cls.rows()()
    meet(rows, *cls().begin(2, 1, 0), np.ones(2), out)
    return float(out[0, 0]), rows.cache_hits
"""
MDP = """
import numpy as np
from typing import NamedTuple
from unbounded import MDPAdversary, MDPLearner, worlds
from unbounded.jit.kernel import counting_kernel as kernel
from unbounded.core.arrays import Vector
from unbounded.core.occupancy.mdp import Markov
from unbounded.learners.spec import MDPSpec
from unbounded.learners.mdp import checked_layers
from unbounded.learners.mdp_steps import entries
class Params(NamedTuple):
    n: int
class State(NamedTuple):
    t: int
    clipped: int
    version: int
    pi: Vector
def init(layers, params):
    return State(1, 0, 0, Markov.uniform(layers).pi)
@kernel
def update(lay, params, state, solver, ask_info, states, actions, losses):
    return State(state.t + 1, {step}, 0, state.pi)
class Mine(MDPLearner):
    spec = MDPSpec.of(__name__, name="Mine", reference="", scale_free=True)
    def __init__(self, layers, n_actions, *, seed=None):
        shape = checked_layers(layers, n_actions)
        self._begin(shape, Params(shape.n_actions), seed)
class Theirs(MDPAdversary):
    def fill(params, t, q, lay, out):
        out[:] = {step}
@kernel
def meet(fill, params, q, lay, out):
    fill(params, 1, q, lay, out)
learner = Mine([1, 2], 2, seed=0)
learner.tell(learner.ask(), [0, 0], [0, 0], [1.0, 1.0])
out, mdp = np.zeros(7), worlds.dirichlet([1, 2], 2, np.random.default_rng(0))
losses = Theirs.filler()()
meet(losses, Theirs().begin(mdp, 1, 0), np.zeros(7), mdp.layers.table, out)
tell = entries(Mine.spec).tell
print(learner.clipped, sum(tell.stats.cache_hits.values()), out[1], losses.cache_hits)
"""


@pytest.fixture
def here(tmp_path):
    """A directory where users write their files, and a cache of their own."""
    return tmp_path


def run(here: Path, program: str, name: str = "main.py") -> list[str]:
    """Run a program as a file of this name; what it prints."""
    (here / name).write_text(program)
    result = subprocess.run(
        [sys.executable, "-B", name],
        cwd=here,
        env=os.environ
        | {
            "PYTHONPATH": str(Path(unbounded.__file__).parents[1]),
            "UNBOUNDED_CACHE_DIR": str(here / "cache"),
        },
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    said = [line for line in result.stderr.splitlines() if not line.startswith("unbounded: ")]
    assert not said  # but that it compiles, and how long it took
    return result.stdout.split()


def learner(step: str, imports: str = "") -> str:
    return LEARNER.format(step=step, imports=imports) + PLAY + "print(*play(Mine))\n"


def adversary(step: str, imports: str = "") -> str:
    return ADVERSARY.format(step=step, imports=imports) + MEET + "print(*face(Theirs))\n"


def test_an_edited_learner_runs_as_it_is_now(here):
    """The same file again, edited and edited back."""
    assert run(here, learner("1.0")) == ["1.0", "0"]
    assert run(here, learner("1.0")) == ["1.0", "2"]
    assert run(here, learner("2.0"))[0] == "2.0"
    assert run(here, learner("1.0")) == ["1.0", "2"]


@pytest.mark.long
def test_an_edited_learner_in_a_simulation(here):
    """Steps that come from the disk and steps that are compiled meet in one loop, as one State."""
    simulated = """
from unbounded import simulate
result = simulate(Mine(2), adversaries.Theirs(), rounds=3, seed=0)
print(result.threshold[0, -1])
"""
    (here / "adversaries.py").write_text(ADVERSARY.format(step="1.0", imports=""))
    mine = LEARNER.format(step="1.0", imports="import adversaries")
    assert run(here, mine + simulated) == ["3.0"]
    for step, expected in (("1.0", "3.0"), ("2.0", "6.0")):  # and in a module of its own
        (here / "mine.py").write_text(LEARNER.format(step=step, imports=""))
        assert run(here, "import adversaries\nfrom mine import Mine" + simulated) == [expected]


def test_two_programs_with_learners_of_one_name(here):
    """Both are Mine of __main__."""
    assert run(here, learner("1.0"), "one.py") == ["1.0", "0"]
    assert run(here, learner("loss * 5"), "two.py")[0] == "5.0"
    assert run(here, learner("1.0"), "one.py") == ["1.0", "2"]
    assert run(here, learner("loss * 5"), "two.py") == ["5.0", "2"]


@pytest.mark.long
def test_two_programs_with_adversaries_of_one_name(here):
    assert run(here, adversary("1.0"), "one.py") == ["1.0", "0"]
    assert run(here, adversary("2.0"), "two.py") == ["2.0", "0"]
    assert run(here, adversary("1.0"), "one.py") == ["1.0", "1"]


def test_an_edited_learner_and_adversary_for_mdps(here):
    assert run(here, MDP.format(step="1")) == ["1", "0", "1.0", "0"]
    assert run(here, MDP.format(step="1")) == ["1", "1", "1.0", "1"]
    assert run(here, MDP.format(step="2"))[::2] == ["2", "2.0"]


HELPERS = """
from unbounded.jit.kernel import counting_kernel as kernel
@kernel
def helper(x):
    return {}
CONSTANT = 10.0
"""


def several(steps: dict[str, str], value: object = "") -> str:
    """A program with an adversary for each step, and what the step needs."""
    parts = [ADVERSARY.format(step="0.0", imports=""), MEET]
    for i, (step, imports) in enumerate(steps.items()):
        parts += [imports.replace("VALUE", str(value)), f"class Theirs{i}(Adversary):"]
        parts += ["    def fill(params, state, t, last_arm, q, out):", f"        out[:] = {step}"]
        parts += [f"print(*face(Theirs{i}))"]
    return "\n".join(parts)


@pytest.mark.long
def test_a_helper_in_another_module(here):
    """It is edited; the file that uses it is not."""
    imports = "from helpers import helper", "import helpers"
    program = several(dict(zip(("helper(1.0)", "helpers.helper(1.0)"), imports, strict=True)))
    results = []
    for body in ("x + 1.0", "x + 1.0", "x + CONSTANT"):
        (here / "helpers.py").write_text(HELPERS.format(body))
        results.append(run(here, program))
    assert results == [["2.0", "0"] * 2, ["2.0", "1"] * 2, ["11.0", "0"] * 2]


CONSTANTS = {
    "C": "C = VALUE",
    "D[1]": "D = np.array([0.0, VALUE])",
    "f()": "from numba.extending import register_jitable\n"
    "@register_jitable\ndef f():\n    return VALUE",
}


def test_a_global_constant(here):
    """A number, an array, a function that Numba knows how to compile."""
    results = [run(here, several(CONSTANTS, value)) for value in (1.0, 1.0, 2.0)]
    assert results == [["1.0", "0"] * 3, ["1.0", "1"] * 3, ["2.0", "0"] * 3]


NOT_HASHED = {
    "f()": "from numba import njit\n@njit\ndef f():\n    return VALUE",
    "g()": "from numba.extending import overload\ndef g():\n    pass\n"
    "@overload(g)\ndef h():\n    return lambda: VALUE",
    "E.A.value": "import enum\nclass E(enum.IntEnum):\n    A = VALUE",
}


def test_what_cannot_be_hashed_is_not_cached(here):
    for value in (1, 1, 2):
        assert run(here, several(NOT_HASHED, value)) == [f"{value}.0", "0"] * 3
    kept = [path.name for path in (here / "cache").glob("*.nbc")]
    assert not [name for name in kept if "Theirs" in name]


# ------------------------------------------------------------------ one process

# Cells of a notebook: compiled under names of their own, run in one namespace.
CELLS = """
import linecache
def cell(source, count=[0]):
    count[0] += 1
    name = f"<ipython-input-{count[0]}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    exec(compile(source, name, "exec"), globals())
"""


def test_a_cell_that_is_run_again(here):
    """Edited, and run in the same namespace: the new class is the new code, the old one the old."""
    one, other = (repr(LEARNER.format(step=step, imports="")) for step in ("1.0", "loss + 1.0"))
    program = CELLS + PLAY + f"""
cell({one})
first = Mine
print(play(Mine)[0])
cell({other})
print(play(Mine)[0], play(first)[0])
cell({one})
print(play(Mine)[0])
"""  # fmt: skip
    assert run(here, program) == ["1.0", "2.0", "1.0", "1.0"]
    assert run(here, program) == ["1.0", "2.0", "1.0", "1.0"]  # and from the disk


KERNELS = """
@subroutine
def inner(x):
    total = 0.0
    for i in range(int(x)):
        total += {0} * np.sin(i * x)
        total = total / (1.0 + abs(total))
    return total + {0}
@kernel
def outer(x):
    return inner(x) + inner(x + 1.0) + inner(x + 2.0)
"""


@pytest.mark.long
def test_two_kernels_of_one_name(here):
    """Machine code has names too, and Numba gives the same in two processes."""
    start = "import numpy as np\nfrom unbounded.jit.kernel import counting_kernel as kernel\n"
    start += "from unbounded.jit.kernel import counting_subroutine as subroutine\n"
    one, other = KERNELS.format(1.0), KERNELS.format(5.0)
    alone = run(here, start + one + "print(outer(0.0))")
    program = start + other + "first = outer\nprint(first(0.0))\n" + one + "print(outer(0.0))"
    different, same = run(here, program)
    assert [same] == alone
    assert different != same
    assert run(here, program) == [different, same]


@pytest.mark.long
def test_two_classes_of_one_name(here):
    """One comes from the disk, the other is compiled."""
    assert run(here, adversary("1.0")) == ["1.0", "0"]
    program = "\n".join(
        [
            ADVERSARY.format(step="2.0", imports=""),
            "first = Theirs",
            ADVERSARY.format(step="1.0", imports=""),
            MEET,
            "print(*face(first), *face(Theirs), *face(first))",
        ]
    )
    assert run(here, program) == ["2.0", "0", "1.0", "1", "2.0", "0"]
    assert run(here, program) == ["2.0", "1", "1.0", "1", "2.0", "1"]


def test_a_class_that_is_given_another_function(here):
    program = ADVERSARY.format(step="1.0", imports="") + MEET + """
print(face(Theirs)[0])
def fill(params, state, t, last_arm, q, out):
    out[:] = 7.0
Theirs.fill = fill
print(face(Theirs)[0])
"""  # fmt: skip
    assert run(here, program) == ["1.0", "7.0"]


def test_modules_that_are_loaded_again(here):
    """A helper that is edited and reloaded is seen by what is defined after that."""
    (here / "helpers.py").write_text(HELPERS.format("x + 1.0"))
    (here / "theirs.py").write_text(ADVERSARY.format(step="helpers.helper(1.0)",
                                                     imports="import helpers"))  # fmt: skip
    start = "import numpy as np\nfrom unbounded.jit.kernel import counting_kernel as kernel\n"
    program = start + MEET + f"""
import importlib, pathlib
import helpers, theirs
print(face(theirs.Theirs)[0])
pathlib.Path("helpers.py").write_text({HELPERS.format("x + 20.0")!r})
importlib.reload(helpers)
importlib.reload(theirs)
print(face(theirs.Theirs)[0])
"""  # fmt: skip
    assert run(here, program) == ["2.0", "21.0"]


@pytest.mark.long
def test_a_constant_is_taken_when_code_is_compiled(here):
    """As Numba says: a later value is for what is defined later, and for the next process."""
    program = "C = {}\n" + ADVERSARY.format(step="C", imports="") + MEET + """
print(face(Theirs)[0])
C = 5.0
print(face(Theirs)[0])
class Theirs(Adversary):
    def fill(params, state, t, last_arm, q, out):
        out[:] = C
print(face(Theirs)[0])
"""  # fmt: skip
    assert run(here, program.replace("{}", "1.0")) == ["1.0", "1.0", "5.0"]
    assert run(here, program.replace("{}", "2.0")) == ["2.0", "2.0", "5.0"]
    assert run(here, program.replace("{}", "1.0")) == ["1.0", "1.0", "5.0"]


def test_ask_info_of_a_user_may_be_anything(here):
    """A saved choice of a learner whose `act` remembers 0 is loaded again."""
    program = """
learner = Mine(2, seed=0)
choice = learner.ask()
again = Mine.load(learner.save())
again.tell(choice, 1.0)
print(again.rounds)
"""
    assert run(here, LEARNER.format(imports="", step="loss") + program) == ["1"]
