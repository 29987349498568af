"""When learners and simulations interpret, load and compile."""

import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from paces import forget, run, worked
from unbounded import Uniform, settings, simulate
from unbounded.adversaries import Adversary, StochasticGap
from unbounded.jit import schedule
from unbounded.jit.cache import NotCachedError
from unbounded.jit.schedule import Code, Pace, said
from unbounded.simulation import bandit_loops


def test_an_unknown_word(monkeypatch):
    monkeypatch.setattr(settings, "jit", "sometimes")
    monkeypatch.setattr(schedule, "_steps", {})
    with pytest.raises(ValueError, match=r"settings.jit \(or UNBOUNDED_JIT\) must be one of"):
        Uniform(3)


class Given(Code):
    """Code that is compiled at once and would take so long."""

    def __init__(self, seconds, *, kept=False):
        super().__init__("it", lambda: None, seconds)
        self.kept, self.compilations = kept, 0

    def load(self):
        self._ready = self.kept

    def compile(self, why=""):
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
        from unbounded import simulate, simulate_mdp
        from unbounded.jit import cache
        from unbounded.adversaries import StochasticGap
        from unbounded.adversaries.mdps import Negative
        def refuse(cached, signature, target):
            if not getattr(cache._here, "cached_only", False):
                raise AssertionError(f"{cached.source.qualname} would be compiled")
            raise cache.NotCachedError(cached.source.qualname)
        cache.Cached.load_overload = refuse
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


def test_a_long_simulation_says_that_it_compiles(monkeypatch, capsys):
    monkeypatch.setattr(settings, "jit", "always")
    monkeypatch.setattr(schedule, "_SAID", 0.0)
    monkeypatch.setattr(Code, "load", lambda self: None)  # as if nothing were kept
    forget(monkeypatch)
    simulate(Uniform(2), StochasticGap(), 10, seed=0)
    said = capsys.readouterr().err
    assert "compiling simulations of Uniform, about" in said
    assert "compiling StochasticGap, about" in said


@pytest.mark.parametrize(("numbers", "loads"), [(10_000, 0), (100_000, 1)])
def test_where_a_round_takes_longer_than_loading(auto, numbers, loads):
    ran = []
    code = Code("it", lambda: ran.append(1), 20.0)
    code.begin(numbers)
    assert (code.ready, len(ran)) == (bool(loads), loads)


def test_a_first_decision_loads_nothing(auto):
    """Loading takes longer than a thousand interpreted rounds."""
    code = worked(lambda: None)
    assert not code.ready
    code.spend(schedule._BEHIND / 2)
    assert not code.ready
    code.spend(schedule._BEHIND)
    code._loader.join()
    assert code.ready


@pytest.mark.parametrize(("numbers", "first"), [(10_000, 0), (10_000_000, 1)])
def test_where_a_round_takes_longer_than_compiling(auto, numbers, first):
    """Nothing is interpreted: one round of a learner of ten million arms would take a minute."""
    code = Given(seconds=2.0)
    code.begin(numbers)
    assert code.compilations == first
    code = Given(seconds=2.0)
    assert Pace([code], 10, numbers=numbers).compiled == bool(first)


def test_a_learner_of_many_arms_compiles_first(tmp_path):
    """And says why."""
    script = """
        from unbounded import Exp3, UniformPolicy
        from unbounded.jit import schedule
        schedule._PER_NUMBER, schedule._SAID = 1e-3, 0.0
        few, many = Exp3(20, seed=0), Exp3(2_000, seed=0)
        print(few._steps is many._steps, many._ask == many._ask_interpreted)
    """
    done = run(script, tmp_path)
    assert done.stdout.split() == ["True", "False"]
    assert "compiling Exp3, about 2 s, once per machine: interpreted, a round over" in done.stderr


# ------------------------------------------------------------------ messages, and one run


def test_waiting_is_said(capsys, monkeypatch):
    with said("compiling", after=0.05):
        time.sleep(0.2)
    assert "unbounded: compiling" in capsys.readouterr().err
    with said("compiling"):
        pass
    monkeypatch.setattr(settings, "messages", False)
    with said("compiling", after=0.0):
        time.sleep(0.05)
    assert not capsys.readouterr().err


def test_what_is_said_of_the_time(capsys, monkeypatch):
    monkeypatch.setattr(schedule, "_SAID", 0.0)
    code = Code("it", lambda: time.sleep(0.05), 7.0)
    code.compile()
    assert not capsys.readouterr().err  # it was cached
    monkeypatch.setattr(code, "load", lambda: None)
    code._ready = False
    code.compile()
    assert "compiling it, about 7 s, once per machine" in capsys.readouterr().err
    monkeypatch.setattr(schedule, "can_cache", lambda: False)
    code._ready = False
    code.compile()
    assert "in each process: nothing is cached" in capsys.readouterr().err


@pytest.mark.parametrize(("jit", "runs"), [("always", 1), ("auto", 1), ("never", 0)])
def test_it_is_ready_after_one_run(monkeypatch, jit, runs):
    """A warm-up asks whether it is ready, and is told to run what it runs."""
    monkeypatch.setattr(settings, "jit", jit)
    ran = []
    code = Code("it", lambda: ran.append(code.ready), 1.0)
    assert code.loaded == bool(runs)
    assert code.loaded == bool(runs)
    assert ran == [False] * runs


def test_what_is_not_cached_is_looked_for_once(monkeypatch):
    monkeypatch.setattr(settings, "jit", "auto")
    ran = []

    def missing():
        ran.append(1)
        raise NotCachedError("it")

    code = Code("it", missing, 1.0)
    assert not code.loaded
    assert not code.loaded
    assert len(ran) == 1
