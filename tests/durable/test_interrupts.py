"""Interrupts: a signal handler that raises leaves no transaction and no lock behind."""

import contextlib
import os
import random
import signal
import sqlite3
from contextlib import closing

import pytest

import unbounded
from interrupt_helpers import CHECKED, PACKAGE, interrupted, no_callbacks
from unbounded import SCB
from unbounded.durable import Durable

OURS = os.path.join(PACKAGE, "durable"), contextlib.__file__


class Interrupt(BaseException):
    """What the handler raises, as gunicorn's raises SystemExit."""


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(unbounded.settings, "jit", "never")
    with no_callbacks():
        yield tmp_path / "arms.db"


def check_free(path, arms):
    """Others can write at once, and so can the one that was interrupted."""
    with closing(sqlite3.connect(path, timeout=0.0, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
    assert not arms._session.lock.locked()
    assert arms._session.owner == 0
    if arms._session.store._files is not None:
        assert Durable(path, timeout=5.0).status()
        with Durable(path, timeout=5.0) as other:
            other.forget(other.ask())
    arms.status()


def play(arms):
    choice = arms.ask(key=str(random.random()))
    arms.tell(choice.id, loss=1.0)
    arms.status()


@pytest.mark.parametrize("opening", [False, True])
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.long)])
def test_wherever_it_comes_nothing_stays_behind(path, opening, every):
    arms = Durable(path, SCB(n_arms=3, seed=0), timeout=60.0)
    points = 0
    while True:
        if opening:
            arms._session.before_fork()
        if not interrupted(lambda: play(arms), points, Interrupt, OURS, CHECKED):
            break
        check_free(path, arms)
        points += every
    assert points > 100
    for ticket in arms.outstanding():
        arms.tell(ticket, loss=1.0)
    arms.close()
    assert Durable(path).verify() > 0


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no such timers here")
@pytest.mark.parametrize("times", [300, pytest.param(50_000, marks=pytest.mark.long)])
def test_signals_at_random(path, times):
    arms = Durable(path, SCB(n_arms=3, seed=0), timeout=60.0)
    rng, told = random.Random(0), []

    def handler(*_):
        raise Interrupt

    old = signal.signal(signal.SIGALRM, handler)
    try:
        for time in range(times):
            with contextlib.suppress(Interrupt):
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 3e-3))
                try:
                    while True:
                        choice = arms.ask()
                        arms.tell(choice.id, loss=1.0)
                        told.append(choice.id)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0.0)
            if time % 10 == 0:
                check_free(path, arms)
    finally:
        signal.signal(signal.SIGALRM, old)
    log = arms.log()
    status = dict(zip(log["id"], log["status"], strict=True))
    assert all(status[ticket] == "told" for ticket in told)
    assert arms.verify() == arms.status().rows
