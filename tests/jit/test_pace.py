"""Simulations: interpreted while they are short, compiled where that pays, the same in any case."""

import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import mdp_examples
from bandit_examples import EXAMPLES as BANDITS
from paces import assert_same, each_way, forget
from unbounded import SCB, Uniform, UniformPolicy, settings, simulate, simulate_mdp
from unbounded.adversaries import Adversary, Growth, StochasticGap
from unbounded.adversaries.mdps import Negative
from unbounded.jit.code import Code
from unbounded.jit.pace import Pace
from unbounded.simulation import bandit_loops


@pytest.mark.parametrize("n", [3, 70])
@pytest.mark.parametrize("bandit", BANDITS)
def test_bandits(bandit, n, monkeypatch):
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


@pytest.mark.parametrize("player", mdp_examples.EXAMPLES)
def test_mdps(player, monkeypatch):
    learner, mdp = player.make(), mdp_examples.MDP
    results = each_way(
        monkeypatch, lambda: simulate_mdp(learner, mdp, Negative(scale=0.25), 60, 2, 1)
    )
    assert_same(results)


def test_an_mdp_against_python(monkeypatch):
    def losses(t, last, q, rng):
        return [rng.random(table.shape) for table in q]

    learner, mdp = UniformPolicy([2, 3], 2), mdp_examples.MDP
    assert_same(each_way(monkeypatch, lambda: simulate_mdp(learner, mdp, losses, 60, 2, 1)))


# ------------------------------------------------------------------ the choice


class Given(Code):
    """Code that is compiled at once and would take so long."""

    def __init__(self, seconds, *, kept=False):
        super().__init__("it", [], lambda: None)
        self.__dict__["seconds"] = seconds
        self.kept, self.compilations = kept, 0

    def load(self):
        self._ready = self.kept

    def compile(self):
        self.compilations += 1
        self._ready = True


def play(pace, rounds, seconds):
    """Play rounds that take so long each; how many of them were interpreted."""
    played = interpreted = 0
    while played < rounds:
        if pace.compiled:
            return interpreted
        some = min(pace.rounds, rounds - played)
        with pace.interpreting(some):
            end = time.thread_time() + some * seconds
            while time.thread_time() < end:
                pass
        played += some
        interpreted += some
    return interpreted


@pytest.fixture
def auto(monkeypatch):
    monkeypatch.setattr(settings, "jit", "auto")


def test_what_is_short_is_interpreted(auto):
    code = Given(seconds=10.0)
    assert play(Pace([code], 20), 20, 1e-3) == 20
    assert code.compilations == 0


def test_what_is_long_is_compiled_soon(auto):
    code = Given(seconds=10.0)
    assert play(Pace([code], 100_000), 100_000, 1e-3) <= 100
    assert code.compilations == 1


def test_a_slow_first_round_is_no_reason_to_compile(auto):
    """It may have loaded something."""
    code = Given(seconds=10.0)
    pace = Pace([code], 1000)
    assert play(pace, 4, 0.02) == 4
    assert play(pace, 996, 1e-5) == 996
    assert code.compilations == 0


def test_what_is_kept_is_used(auto):
    code = Given(seconds=10.0, kept=True)
    assert play(Pace([code], 20), 20, 1e-3) == 0
    assert code.compilations == 0


def test_many_short_ones_are_a_long_one(auto):
    code = Given(seconds=0.1)
    interpreted = [play(Pace([code], 20), 20, 1e-3) for _ in range(20)]
    assert interpreted[:3] == [20, 20, 20]
    assert interpreted[-1] == 0
    assert code.compilations == 1


def test_rounds_that_become_slower(auto):
    """Where the first episodes are quick: what the last ones took decides."""
    code, slow = Given(seconds=1.0), 0
    pace = Pace([code], 300)
    with pace.interpreting(100):
        pass
    assert not pace.compiled
    while not pace.compiled:
        slow += 1
        with pace.interpreting(1):
            time.sleep(0.0)
            end = time.thread_time() + 0.02
            while time.thread_time() < end:
                pass
    assert slow == 1


@pytest.mark.parametrize(("jit", "interpreted"), [("always", 0), ("never", 100)])
def test_the_user_may_choose(monkeypatch, jit, interpreted):
    monkeypatch.setattr(settings, "jit", jit)
    code = Given(seconds=1e-3)
    assert play(Pace([code], 100), 100, 1e-4) == interpreted
    assert code.compilations == (jit == "always")


def test_of_threads_one_compiles(auto):
    code = Given(seconds=0.01)
    pace = Pace([code], 100_000)
    threads = [threading.Thread(target=play, args=(pace, 25_000, 1e-4)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert code.compilations == 1


def test_what_others_wrote_is_compiled_first(monkeypatch):
    """It may count on integers that wrap around."""

    class Wraps(Adversary):
        def fill(params, state, t, last_arm, q, out):  # noqa: N805 - a kernel, not a method
            word = t * 6364136223846793005
            for k in range(out.size):
                word = word * 6364136223846793005 + 1442695040888963407
                out[k] = 1.0 if word < 0 else 0.0

    monkeypatch.setattr(settings, "jit", "auto")
    forget(monkeypatch)
    result = simulate(Uniform(2), Wraps(), 20, seed=0)
    assert all(code._ready for code in bandit_loops._codes.values())
    assert result.high[0, -1] == 1.0  # Python's integers are never negative here


def test_short_simulations_compile_nothing(tmp_path):
    """Of any learner; in a process of its own, where nothing has been compiled."""
    script = """
        import numpy as np
        from bandit_examples import EXAMPLES as BANDITS
        from mdp_examples import EXAMPLES as MDPS, MDP
        from unbounded import simulate, simulate_mdp, _jit_cache
        from unbounded.adversaries import StochasticGap
        from unbounded.adversaries.mdps import Negative
        def refuse(kept, signature, target):
            if not getattr(_jit_cache._here, "only_kept", False):
                raise AssertionError(f"{kept.ours.qualname} would be compiled")
            raise _jit_cache.NotKeptError(kept.ours.qualname)
        _jit_cache.Kept.load_overload = refuse
        for example in BANDITS:
            simulate(example.values[0].make(5), StochasticGap(), 30, seed=1)
        for example in MDPS:
            simulate_mdp(example.values[0].make(), MDP, Negative(scale=0.25), 30, seed=1)
        simulate(BANDITS[0].values[0].make(2), lambda t, arm, q, rng: rng.random(2), 20)
        print("played")
    """
    paths = [os.path.dirname(os.path.dirname(__file__)), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script)],
        env=os.environ
        | {"UNBOUNDED_CACHE_DIR": str(tmp_path), "UNBOUNDED_JIT": "auto"}
        | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "played\n"


def test_the_estimate_grows_with_the_code():
    assert bandit_loops.code_of(SCB(3)).seconds > bandit_loops.code_of(Uniform(3)).seconds + 2.0


def test_a_long_simulation_says_that_it_compiles(monkeypatch, capsys):
    monkeypatch.setattr(settings, "jit", "always")
    monkeypatch.setattr("unbounded.jit.code._SAID", 0.0)
    monkeypatch.setattr(Code, "load", lambda self: None)  # as if nothing were kept
    forget(monkeypatch)
    simulate(Uniform(2), StochasticGap(), 10, seed=0)
    said = capsys.readouterr().err
    assert "compiling simulations of Uniform, about" in said
    assert "compiling StochasticGap, about" in said
