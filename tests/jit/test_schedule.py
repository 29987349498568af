"""Interpreted, being compiled, compiled: the same play to the last bit, and no first wait."""

import ast
import os
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import mdp_examples
import unbounded
from bandit_examples import EXAMPLES as BANDITS
from mdp_play import told_of, walk
from paces import assert_same, each_way, forget
from unbounded import SCB, CostSCBRL, Uniform, UniformPolicy, settings, simulate, simulate_mdp
from unbounded.adversaries import Adversary, Growth, StochasticGap
from unbounded.adversaries.mdps import Negative
from unbounded.jit import schedule, worker
from unbounded.jit.kernel import NotCachedError
from unbounded.jit.schedule import Code, Pace, said
from unbounded.jit.worker import Worker
from unbounded.simulation import bandit_loops

ROUNDS, EPISODES = 500, 100
SIZES = (2, 10, 70)


@pytest.fixture
def auto(monkeypatch):
    monkeypatch.setattr(settings, "jit", "auto")


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
    monkeypatch.setattr(schedule, "_steps", {})
    with pytest.raises(ValueError, match=r"settings.jit \(or UNBOUNDED_JIT\) must be one of"):
        Uniform(3)


def run(script, cache, **environment):
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
    assert warm.stdout.split()[:2] == ["True", "False"]  # it is cached, and loaded meanwhile
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
        from unbounded.jit import worker
        print(worker._children)
        """,
        tmp_path,
    )
    assert done.stdout.split() == ["{}"]
    assert not list(tmp_path.iterdir())


def test_a_class_that_no_other_process_can_import_is_compiled_here(tmp_path):
    done = run(
        """
        import time
        from unbounded.jit import schedule, worker
        from unbounded import Uniform
        schedule._AHEAD, schedule._SAID = 0.3, 0.0
        class Mine(Uniform):
            spec = Uniform.spec
        learner, end = Mine(3, seed=0), time.monotonic() + 300
        while learner._ask == learner._ask_interpreted and time.monotonic() < end:
            learner.tell(learner.ask(), 1.0)
        print(learner._ask == learner._ask_interpreted, worker._children)
        """,
        tmp_path,
    )
    assert done.stdout.split() == ["False", "{}"]
    assert "compiling Uniform" in done.stderr


def worked(warm_up, program=None, arguments=None):
    """Code that another process compiles, by this program, and is not cached before."""
    code = Code("it", warm_up, 1.0, worker=Worker(SCB, arguments or {}))
    code._worker.can_start = lambda: True
    code.program = program
    return code


@pytest.fixture
def start(monkeypatch, tmp_path):
    """Let a learner's code start its program, and wait for it; the cache is an empty directory."""
    monkeypatch.setenv("UNBOUNDED_CACHE_DIR", str(tmp_path / "cache"))

    def started(code):
        monkeypatch.setattr(worker, "_PROGRAM", code.program)
        code.spend(schedule._BEHIND)
        code._loader.join()
        return worker._children.get(code._worker)

    return started


def go_on(code):
    """Look again, until nothing happens any more."""
    for _ in range(3):
        if code._worker in worker._children:
            worker._children[code._worker].process.wait()
        code._next = 0.0
        code.spend(0.0)
        if code._loader.ident is not None:
            code._loader.join()


def not_cached(times):
    """A warm-up that finds nothing in the cache so many times."""
    missing = [NotCachedError("it")] * times

    def warm_up():
        if missing:
            raise missing.pop()

    return warm_up


def test_settings_may_be_too_long_for_a_command(tmp_path, auto, start):
    """A support has an entry per transition; a command may have 128 kB."""
    found = tmp_path / "found"
    program = f"""
import json, sys
_, arguments = sys.stdin.readline(), json.loads(sys.stdin.readline())
open({str(found)!r}, "w").write(str(len(arguments["support"])))
"""
    code = worked(not_cached(1), program, {"support": [True, False] * 50_000})
    start(code)
    go_on(code)
    assert found.read_text() == "100000"
    assert code._ready


def test_the_current_directory_is_not_imported_from(tmp_path):
    """The other process has the parent's path without its empty entry, and the parent's flags."""
    for name in ("json", "unbounded", "numba", "signal"):
        (tmp_path / f"{name}.py").write_text("open('stolen', 'w')")
    script = """
        import sys, os, subprocess, time
        from unbounded import Uniform
        sys.path.insert(0, "")
        os.chdir(sys.argv[1])
        commands, Popen = [], subprocess.Popen
        subprocess.Popen = lambda command, **kw: commands.append(command) or Popen(command, **kw)
        learner, end = Uniform(3, seed=0), time.monotonic() + 300
        while not learner._steps._ready and time.monotonic() < end:
            learner.tell(learner.ask(), 1.0)
        [command] = commands
        print(learner._steps._ready, os.path.exists("stolen"), *command[1:command.index("-c")])
    """
    done = subprocess.run(
        [
            sys.executable, "-O", "-s", "-W", "ignore::ImportWarning", "-X", "utf8",
            "-X", "int_max_str_digits=0", "-c", textwrap.dedent(script), tmp_path,
        ],
        env=os.environ | {"UNBOUNDED_CACHE_DIR": str(tmp_path / "cache"), "UNBOUNDED_JIT": "auto"},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    compiled, stolen, *flags = done.stdout.split()
    assert (compiled, stolen) == ("True", "False"), done.stderr
    given = {"-P", "-s", "-O", "-Wignore::ImportWarning", "-Xutf8", "-Xint_max_str_digits=0"}
    assert given <= set(flags)


@pytest.mark.parametrize("failure", ["of the other", "no program", "settings", "load", "threads"])
def test_where_the_other_process_fails_this_one_compiles(
    monkeypatch, auto, failure, capfd, caplog, start
):
    """A message says so once; if this one cannot compile either, that raises."""
    warm_up = not_cached(2)
    if failure == "load":
        errors = [ValueError("damaged")]

        def warm_up():
            if errors:
                raise errors.pop()

    code = worked(warm_up, "raise OSError('no memory')")
    if failure == "settings":
        code._worker._arguments = {"seed": object()}
    if failure == "no program":
        monkeypatch.setattr(sys, "executable", "/no/such/program")
    if failure == "threads":
        monkeypatch.setattr(threading.Thread, "start", _no_thread)
    start_now = code.spend if failure == "threads" else lambda _: start(code)
    monkeypatch.setattr(worker, "_PROGRAM", code.program)
    start_now(schedule._BEHIND)
    if failure != "threads":
        go_on(code)
    else:
        worker._children[code._worker].process.wait()
        code._next = 0.0
        code.spend(0.0)
    assert (code._worker, code._ready) == (None, False)
    [said] = caplog.messages
    reasons = {"no program": "No such file", "settings": "JSON", "load": "damaged"}
    assert reasons.get(failure, "exit code 1: OSError: no memory") in said
    assert "unbounded warm" in said
    assert "UNBOUNDED_JIT=never" in said
    code._next = 0.0
    code.spend(schedule._AHEAD)
    assert code._ready
    assert len(caplog.messages) == 1


def _no_thread(self):
    raise RuntimeError("can't start new thread")


WAITS = "import sys, os; print('here', file=sys.stderr, flush=True)\nwhile os.read(0, 1): pass"


def test_of_processes_one_starts_another(tmp_path, auto, start):
    """The others wait until it has ended, and load what it has compiled."""
    code, other = worked(not_cached(1), WAITS), worked(not_cached(0))
    child = start(code)
    assert child.process.poll() is None
    other.spend(schedule._BEHIND)  # as in another process: the lock is that process's, not ours
    assert other._loader.ident is None
    assert not other._ready
    child.process.stdin.close()
    child.process.wait()
    go_on(other)
    assert other._ready
    go_on(code)
    assert code._ready


def test_a_process_that_has_to_wait_starts_none(tmp_path):
    """Six that begin together: one compiles."""
    script = """
        import subprocess, sys, time
        from unbounded import Uniform
        started, Popen = [], subprocess.Popen
        subprocess.Popen = lambda command, **kw: started.append(1) or Popen(command, **kw)
        learner, end = Uniform(3, seed=0), time.monotonic() + 300
        while not learner._steps._ready and time.monotonic() < end:
            learner.tell(learner.ask(), 1.0)
            if learner._steps.spent > 0.3:
                time.sleep(0.01)
        print(len(started), learner._steps._ready)
    """
    environment = os.environ | {"UNBOUNDED_CACHE_DIR": str(tmp_path), "UNBOUNDED_JIT": "auto"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script)],
            env=environment, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(6)
    ]  # fmt: skip
    said = [process.communicate(timeout=600)[0].split() for process in processes]
    assert sorted(said) == [["0", "True"]] * 5 + [["1", "True"]]


@pytest.mark.parametrize("end", ["kill", "exit"])
def test_the_other_process_ends_with_its_parent(tmp_path, end):
    script = f"""
        import os, signal, time
        from unbounded import Uniform
        from unbounded.jit import worker
        worker._PROGRAM = worker._PROGRAM.replace("main(", "import time; import threading\\n"
            "from unbounded.jit import worker\\n"
            "worker.import_module = lambda _: time.sleep(60)\\nmain(", 1)
        learner = Uniform(3, seed=0)
        while not worker._children:
            learner.tell(learner.ask(), 1.0)
        [child] = worker._children.values()
        print(child.process.pid, flush=True)
        time.sleep(3.0)
        {"os.kill(os.getpid(), signal.SIGKILL)" if end == "kill" else ""}
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=os.environ | {"UNBOUNDED_CACHE_DIR": str(tmp_path), "UNBOUNDED_JIT": "auto"},
        stdout=subprocess.PIPE, text=True, timeout=600, check=False,
    )  # fmt: skip
    pid = int(done.stdout)
    patience = time.monotonic() + 20.0
    while _runs(pid) and time.monotonic() < patience:
        time.sleep(0.05)
    assert not _runs(pid)


def _runs(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with suppress(OSError):  # one that nobody waits for is over
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    return True


def test_an_interrupt_is_for_the_parent(tmp_path):
    """Whoever goes on after it finds compiled code."""
    script = """
        import os, signal, time
        from unbounded import Uniform
        from unbounded.jit import worker
        worker._PROGRAM = worker._PROGRAM.replace(
            "sys.path", "import os; os.kill(os.getpid(), signal.SIGINT); sys.path", 1
        )
        learner, end = Uniform(3, seed=0), time.monotonic() + 300
        while not learner._steps._ready and time.monotonic() < end:
            learner.tell(learner.ask(), 1.0)
        print(learner._steps._ready, learner._steps._worker is not None)
    """
    assert run(script, tmp_path).stdout.split() == ["True", "True"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_leaves_the_other_process_to_its_parent(auto, start):
    """No process of the parent is its own, and none of its pipes: the end of the parent ends it."""
    code = worked(not_cached(1), WAITS)
    child = start(code)
    to_parent, from_child = os.pipe()
    forked = os.fork()
    if forked == 0:
        alone = not worker._children and child.process.stdin.closed
        worker._end_children()  # as at exit
        os.write(from_child, b"1" if alone else b"0")
        time.sleep(60.0)
        os._exit(1)
    assert os.read(to_parent, 1) == b"1"
    assert child.process.poll() is None
    child.process.stdin.close()
    child.process.wait(timeout=10.0)  # although the forked process lives
    os.kill(forked, 9)
    os.waitpid(forked, 0)
    go_on(code)
    assert code._ready


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("who", ["ours", "a user's", "Numba's"])
def test_no_fork_while_a_thread_loads(auto, start, who):
    """It holds locks of Numba's: a child would wait for them for ever."""
    loads, loaded = threading.Event(), []

    def warm_up():
        loads.set()
        time.sleep(0.3)
        loaded.append(True)

    def compile_something():
        with schedule.global_compiler_lock:
            warm_up()

    code = worked(warm_up, "")
    thread = threading.Thread(target=compile_something if who == "Numba's" else code.compile)
    if who == "ours":
        code.spend(schedule._BEHIND)
    else:
        thread.start()
    assert loads.wait(10.0)
    forked = os.fork()
    if forked == 0:
        free = []

        def try_locks():
            locks = schedule._lock, schedule.global_compiler_lock._lock
            free.extend(lock.acquire(blocking=False) for lock in locks)

        other = threading.Thread(target=try_locks)
        other.start()
        other.join()
        os._exit(0 if loaded and free == [True, True] else 1)
    assert os.waitpid(forked, 0)[1] == 0
    for one in (thread, code._loader):
        if one.ident is not None:
            one.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_forks_around_the_change_over(tmp_path):
    """None hangs, all change over, and one process compiles for all of them."""
    script = """
        import os, signal, sys, time, warnings
        warnings.simplefilter("error")  # Python warns of a fork beside threads
        from unbounded import Uniform
        def changes_over(seed):
            learner, end = Uniform(3, seed=seed), time.monotonic() + 120
            while not learner._steps._ready and time.monotonic() < end:
                learner.tell(learner.ask(), 1.0)
                time.sleep(0.01 if learner._steps.spent > 0.3 else 0.0)
            return learner._steps._ready
        learner, children, last = Uniform(3, seed=0), [], 0.0
        while not learner._steps._ready:
            learner.tell(learner.ask(), 1.0)
            near = any(name.endswith(".nbc") for name in os.listdir(sys.argv[1]))
            if len(children) < 24 and time.monotonic() > last + (0.02 if near else 0.5):
                children.append(os.fork())
                if not children[-1]:
                    signal.alarm(200)
                    os._exit(0 if changes_over(1) else 1)
                last = time.monotonic()
        print({os.waitpid(child, 0)[1] for child in children})
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), tmp_path],
        env=os.environ | {"UNBOUNDED_CACHE_DIR": str(tmp_path), "UNBOUNDED_JIT": "auto"},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("{0}\n", "")


def test_of_threads_one_starts_another_process(auto, monkeypatch, tmp_path):
    monkeypatch.setenv("UNBOUNDED_CACHE_DIR", str(tmp_path))
    started, go = [], threading.Event()
    code = worked(lambda: None)
    code._load_or_start = lambda: started.append(go.wait(10.0))
    threads = [threading.Thread(target=code.spend, args=(1.0,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    go.set()
    code._loader.join()
    assert started == [True]


def test_an_interrupted_load_is_repeated(auto):
    interrupts = [KeyboardInterrupt()]

    def warm_up():
        if interrupts:
            raise interrupts.pop()

    code = worked(warm_up)
    with pytest.raises(KeyboardInterrupt):
        _ = code.loaded
    assert code.loaded


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


@pytest.mark.parametrize("n", [3, 70])
@pytest.mark.parametrize("bandit", BANDITS)
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


@pytest.mark.parametrize("player", mdp_examples.EXAMPLES)
def test_a_simulation_of_an_mdp(player, monkeypatch):
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
