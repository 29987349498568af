"""Ctrl-C anywhere: the learner then saves, loads and goes on, and nothing is lost."""

import copy
import gc
import signal
import sys
import threading
import weakref
from functools import partial

import numpy as np
import pytest

from interrupt_helpers import CHECKED, PACKAGE, interrupted, no_callbacks
from unbounded import AHB, SCB, IndependentSCB, Learner, PythonLearner, Uniform, settings
from unbounded.learners import bandit as module
from unbounded.learners import base


def bandit(seed):
    return SCB(5, seed=seed)


def alone(seed):
    return AHB(3, seed=seed)


def player(seed):
    return IndependentSCB([1, 2], 2, seed=seed)


MADE = [bandit, alone, player]


@pytest.fixture(autouse=True)
def no_patience(monkeypatch):
    """Workers of pytest have a second thread, for which `save` would wait at every interrupt."""
    monkeypatch.setattr(module, "_PATIENCE", 0.0)


class User:
    """Plays on and on, and knows what was told when an interrupt came."""

    def __init__(self, learner):
        self.learner = learner
        self.finished = 0  # tells that returned
        self.ticket = None  # of the tell that has not

    def play(self, rounds=10**9):
        for _ in range(rounds):
            ticket = self.learner.ask()
            self.ticket = ticket
            self.tell(ticket)
            self.ticket = None
            self.finished += 1

    def tell(self, ticket):
        if isinstance(self.learner, IndependentSCB):
            self.learner.tell(ticket, [0, 1], [ticket.act(0, 0), ticket.act(1, 1)], [1.0, -2.0])
        else:
            self.learner.tell(ticket, 1.0 + ticket.arm)

    def told(self):
        learner = self.learner
        return learner.rounds if hasattr(learner, "rounds") else learner.episodes_told

    def verify(self):
        """Nothing is stuck, and what was told is learned or can be told again."""
        learner = self.learner
        learned, ticket = self.told() - self.finished, self.ticket
        waiting = ticket is not None and ticket.id in learner.outstanding  # before it is saved
        copy = type(learner).load(learner.save())
        if ticket is None:
            assert learned in (0, 1)  # the tell had returned, and was not counted yet
        else:
            assert learned + waiting == 1
        for one in (learner, copy):
            for late in list(one.outstanding.values()):
                user = User(one)
                user.tell(late)
            User(one).play(5)
        assert copy.save() == learner.save()


def interrupted_by_trace(user, after):
    assert interrupted(lambda: user.play(1000), after), "no interrupt came"


def interrupted_by_signal(user, seconds):
    old = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with no_callbacks():
            signal.setitimer(signal.ITIMER_REAL, seconds)
            user.play()
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGALRM, old)


def interrupt(made, count, seed):
    rng = np.random.default_rng(seed)
    for i in range(count):
        user = User(made(i))
        user.play(int(rng.integers(3)))
        if i % 4:
            interrupted_by_trace(user, int(rng.integers(400)))
        else:
            interrupted_by_signal(user, float(rng.uniform(1e-5, 3e-3)))
        user.verify()


@pytest.mark.parametrize("made", MADE)
def test_an_interrupt_loses_nothing(made):
    made(0)  # compiled before the first interrupt
    User(made(0)).play(3)
    interrupt(made, 60, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("made", MADE)
def test_a_thousand_interrupts_lose_nothing(made):
    User(made(0)).play(3)
    interrupt(made, 400, seed=2)


def test_every_bytecode_of_a_round_may_be_interrupted():
    """One after the other, over a round of ask and tell that draws new random words as well."""
    for made in MADE:
        User(made(0)).play(3)
        for after in range(0, 10**6, 1 if made is bandit else 3):
            user = User(made(0))
            user.play(256 if made is bandit and after % 7 == 0 else 1)
            done = user.finished
            interrupted_by_trace(user, after)
            user.verify()
            if user.finished > done + 1:
                break


def test_the_interrupts_do_arrive(monkeypatch):
    """The control: a learner whose ticket is taken before its loss is used loses losses."""

    def careless(self, choice, loss):
        number, record = self._held(choice)
        del self._records[number]
        self._tell(self._buffer, record[0], record[2], number, loss)

    monkeypatch.setattr(Learner, "tell", careless)
    careless.__code__ = careless.__code__.replace(co_filename=PACKAGE)  # interrupted too
    lost = 0
    for after in range(150):
        user = User(SCB(5, seed=0))
        user.play(1)
        interrupted_by_trace(user, after)
        try:
            user.verify()
        except AssertionError:
            lost += 1
    assert lost > 0


def test_save_does_not_wait_for_an_ask_that_was_interrupted_in_a_threaded_program():
    learner, done = SCB(3, seed=0), threading.Event()
    idle = threading.Thread(target=done.wait)
    idle.start()
    try:
        learner.forget(learner.ask())
        learner._ask(learner._buffer)  # its ticket reached nobody
        restored = SCB.load(learner.save())
        assert not restored.outstanding
        assert restored.ask().id == learner.ask().id == 2
        assert SCB.load(learner.save()).save() == learner.save()
    finally:
        done.set()
        idle.join()


class Finalized:
    """Runs Python when it dies."""

    def __del__(self):
        pass


def called_at_death(make):
    """Return the names of the Python functions that run when what ``make`` returns dies."""
    ran, callbacks = [], gc.callbacks.copy()

    def note(frame, event, argument):
        if event == "call":
            ran.append(frame.f_code.co_qualname)

    gc.callbacks.clear()  # those of other libraries
    gc.freeze()  # the garbage of other tests is not collected here
    try:
        dying = make()
        gone = weakref.ref(dying)
        sys.setprofile(note)
        del dying
        gc.collect()
    finally:
        sys.setprofile(None)
        gc.unfreeze()
        gc.callbacks.extend(callbacks)
    assert gone() is None
    return ran


@pytest.mark.parametrize("jit", ["always", "never"])
def test_no_python_runs_when_a_learner_dies(jit, monkeypatch):
    """An interrupt that came then would be printed and lost: nobody can catch it there."""
    monkeypatch.setattr(settings, "jit", jit)
    garbage = Finalized()
    garbage.itself = garbage
    del garbage

    def make():
        learner = Uniform(3, seed=0)
        monkeypatch.setattr(learner._steps, "_ready", jit == "always")
        learner._choose_steps()
        learner.tell(learner.ask(), 1.0)
        return learner

    assert called_at_death(make) == []
    assert called_at_death(Finalized) == ["Finalized.__del__"]


def test_learners_that_are_gone_are_not_remembered():
    for _ in range(1_000):
        Uniform(3, seed=0)
    gc.collect()
    for _ in range(base._many_alive + 1):
        Uniform(3, seed=0)
    assert len(base._alive) < 500


class Timeout(Exception):  # noqa: N818 - as handlers of signals raise
    """No error of ours."""


class Counting(PythonLearner):
    """Remembers its losses."""

    def __init__(self, n_arms, *, seed=None):
        super().__init__(n_arms, seed=seed)
        self.losses = []

    def distribution(self):
        return np.full(self.n_arms, 1.0 / self.n_arms)

    def update(self, arm, probability, loss):
        self.losses.append(loss)


@pytest.mark.parametrize("made", [bandit, player])
def test_what_interrupts_load_is_not_taken_for_damage(made):
    user = User(made(0))
    user.play(3)
    load, points = partial(type(user.learner).load, user.learner.save()), 0
    load()
    while interrupted(load, points, Timeout, (f"{PACKAGE}/learners/",), CHECKED):
        points += 1
    assert points > 50


def test_what_interrupts_a_learner_in_python_is_not_taken_for_its_error():
    files, points = (PACKAGE, copy.__file__), 0
    while True:
        learner = Counting(3, seed=0)
        ticket = learner.ask()
        tell = partial(learner.tell, ticket, 1.0)
        if not interrupted(tell, points, Timeout, files, CHECKED):
            break
        assert len(learner.losses) + (ticket.id in learner.outstanding) == 1
        points += 1
    assert points > 20
