"""Threads that share a learner: saves, tells and interrupts while others play."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from unbounded import SCB


def test_a_learner_may_be_saved_while_others_play():
    """What is saved is of one moment: as many asks as tells, forgotten and outstanding ones."""
    learner, done = SCB(4, seed=0), threading.Event()

    def work() -> None:
        while not done.is_set():
            choice = learner.ask()
            learner.tell(choice, float(choice.arm))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(50):
            restored = SCB.load(learner.save())
            late = list(restored.outstanding.values())
            assert restored.ask().id == restored.rounds + len(late)
            for choice in late:
                restored.tell(choice, 1.0)
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_a_save_during_a_tell_has_the_choice():
    """Another thread's, or a signal handler's: the choice is outstanding there, or learned."""
    learner = SCB(4, seed=0)
    saved = []

    def save_first(*arguments):
        saved.append(learner.save())
        compiled(*arguments)
        saved.append(learner.save())

    compiled, learner._tell = learner._tell, save_first
    choice = learner.ask()
    learner.tell(choice, 1.0)
    before, after = map(SCB.load, saved)
    assert (before.rounds, list(before.outstanding)) == (0, [choice.id])
    assert (after.rounds, list(after.outstanding)) == (1, [])
    before.tell(choice, 1.0)
    assert before.save() == after.save() == learner.save()


@pytest.mark.parametrize("early", [True, False])
def test_an_interrupt_after_other_tells_were_learned(early):
    """A handler tells another choice, and then raises: neither is learned twice."""
    learner = SCB(4, seed=0)
    first, second = learner.ask(), learner.ask()

    def interrupted(*arguments):
        learner._tell = compiled
        if not early:
            compiled(*arguments)
        learner.tell(second, 2.0)
        raise KeyboardInterrupt

    compiled, learner._tell = learner._tell, interrupted
    with pytest.raises(KeyboardInterrupt):
        learner.tell(first, 1.0)
    assert list(learner.outstanding) == ([first.id] if early else [])
    assert learner.rounds == (1 if early else 2)
    assert SCB.load(learner.save()).save() == learner.save()


def test_a_choice_that_threads_tell_at_once_is_told_once():
    learner, workers = SCB(4, seed=0), 4
    start = threading.Barrier(workers)

    def work(choice):
        start.wait()
        try:
            learner.tell(choice, 1.0)
        except ValueError as error:
            return str(error)
        return "told"

    with ThreadPoolExecutor(workers) as pool:
        for rounds in range(1, 100):
            said = sorted(pool.map(work, [learner.ask()] * workers))
            assert said[-1] == "told"
            assert all("not outstanding" in words for words in said[:-1])
            assert learner.rounds == rounds
    assert SCB.load(learner.save()).save() == learner.save()


def test_outstanding_choices_are_a_snapshot():
    learner, done = SCB(4, seed=0), threading.Event()

    def work():
        while not done.is_set():
            learner.tell(learner.ask(), 1.0)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(300):
            assert len(list(learner.outstanding.values())) <= 3
            assert all(number == choice.id for number, choice in learner.outstanding.items())
            repr(learner.outstanding)
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_threads_may_share_a_learner():
    """Calls are carried out one at a time: no ticket is lost, doubled or mixed up."""
    learner = SCB(8, seed=0)
    rounds, workers = 400, 8
    start = threading.Barrier(workers)

    def work(_: int) -> list[int]:
        start.wait()
        ids = []
        for i in range(rounds):
            choice = learner.ask()
            ids.append(choice.id)
            if i % 10 == 0:
                learner.forget(choice)
            else:
                learner.tell(choice, float(choice.arm))
        return ids

    with ThreadPoolExecutor(workers) as pool:
        ids = [i for part in pool.map(work, range(workers)) for i in part]
    assert sorted(ids) == list(range(rounds * workers))
    assert learner.rounds == workers * rounds * 9 // 10
    assert not learner.outstanding
    assert learner.probabilities().sum() == pytest.approx(1.0)
    assert learner.probabilities().argmax() == 0
