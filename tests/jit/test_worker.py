"""Another process compiles: one per machine, which ends with its parent."""

import os
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from paces import run, worked
from unbounded import Uniform
from unbounded.jit import schedule, worker
from unbounded.jit.cache import NotCachedError

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


@pytest.mark.long
def test_a_process_that_has_to_wait_starts_none(tmp_path):
    """Three that begin together: one compiles."""
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
        for _ in range(3)
    ]  # fmt: skip
    said = [process.communicate(timeout=600)[0].split() for process in processes]
    assert sorted(said) == [["0", "True"]] * 2 + [["1", "True"]]


@pytest.mark.parametrize("end", ["kill", "exit"])
def test_the_other_process_ends_with_its_parent(tmp_path, end):
    script = f"""
        import os, signal, time
        from unbounded import Uniform
        from unbounded.jit import worker
        reached = {str(tmp_path / "reached")!r}
        worker._PROGRAM = worker._PROGRAM.replace("main(", "import time; import threading\\n"
            "from unbounded.jit import worker\\n"
            f"reached = {{reached!r}}\\n"
            "worker.import_module = lambda _: open(reached, 'w').close() or time.sleep(60)\\n"
            "main(", 1)
        learner = Uniform(3, seed=0)
        while not worker._children:
            learner.tell(learner.ask(), 1.0)
        [child] = worker._children.values()
        print(child.process.pid, flush=True)
        while not os.path.exists(reached):
            time.sleep(0.01)
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
            if len(children) < 8 and time.monotonic() > last + (0.02 if near else 0.5):
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
