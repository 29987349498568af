"""Copies, workers and forks: who has the same future, and who takes which ticket."""

import copy
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from unbounded import SCB, IndependentSCB

WAYS = [
    copy.copy,
    copy.deepcopy,
    lambda learner: pickle.loads(pickle.dumps(learner)),
    lambda learner: type(learner).load(learner.save()),
]


def bandit():
    return SCB(10, seed=0)


def player():
    return IndependentSCB([1, 3], 4, seed=0)


@pytest.fixture(params=[bandit, player])
def learner(request):
    learner = request.param()
    for _ in range(30):
        play(learner)
    return learner


def tell(learner, ticket, loss=1.0):
    if isinstance(learner, SCB):
        learner.tell(ticket, loss * ticket.arm)
    else:
        actions = [ticket.act(0, 0), ticket.act(1, 1)]
        learner.tell(ticket, [0, 1], actions, [loss, -loss * actions[1]])


def play(learner):
    ticket = learner.ask()
    tell(learner, ticket)
    return ticket.arm if isinstance(learner, SCB) else (ticket.act(0, 0), ticket.act(1, 1))


@pytest.mark.parametrize("copied", WAYS)
def test_a_copy_has_the_same_future_and_a_life_of_its_own(learner, copied):
    twin = copied(learner)
    assert type(twin) is type(learner)
    assert twin.save() == learner.save()
    ahead = [play(twin) for _ in range(300)]
    assert learner.save() != twin.save()
    assert [play(learner) for _ in range(300)] == ahead
    assert learner.save() == twin.save()


@pytest.mark.parametrize("copied", WAYS)
def test_tickets_of_before_are_taken_by_each_copy_and_later_ones_by_one(learner, copied):
    before = learner.ask()
    twin = copied(copied(learner))
    for one in (learner, twin):
        tell(one, before)
        with pytest.raises(ValueError, match="told or forgotten before"):
            tell(one, before)
    later, its = learner.ask(), twin.ask()
    assert later.id == its.id
    assert later != its
    for one, other in ((learner, its), (twin, later)):
        with pytest.raises(ValueError, match="issued by another learner"):
            tell(one, other)
        with pytest.raises(ValueError, match="issued by another learner"):
            one.forget(other)
    tell(learner, later)
    tell(twin, its)
    assert learner.save() == twin.save()


def test_a_ticket_survives_pickling(learner):
    ticket = learner.ask()
    again = pickle.loads(pickle.dumps(ticket))
    assert again == ticket
    assert hash(again) == hash(ticket)
    assert ticket != "ticket"
    tell(learner, again)


def test_spawned_learners_know_the_same_and_draw_independently(learner):
    ticket = learner.ask()
    twin = type(learner).load(learner.save())
    workers = [*learner.spawn(3), *learner.spawn(2)]
    assert len({worker.save() for worker in workers}) == 5
    assert [w.save() for w in workers] == [w.save() for w in [*twin.spawn(3), *twin.spawn(2)]]
    for worker in workers:
        assert not worker.outstanding
        with pytest.raises(ValueError, match="another learner"):
            tell(worker, ticket)
    if isinstance(learner, SCB):
        for worker in workers:
            assert np.array_equal(worker.probabilities(), learner.probabilities())
    futures = [[play(worker) for _ in range(40)] for worker in workers]
    assert len(set(map(str, futures))) == 5
    tell(learner, ticket)
    with pytest.raises(ValueError, match="n must be at least 1"):
        learner.spawn(0)


def test_what_a_user_added_goes_along():
    class Tagged(SCB):
        def __init__(self, n_arms, tag="none", **settings):
            super().__init__(n_arms, **settings)
            self.tag = tag

    learner = Tagged(3, tag="mine", seed=0)
    learner.note = ["a"]
    twin = copy.deepcopy(learner)
    assert (twin.tag, twin.note) == ("mine", ["a"])
    assert twin.note is not learner.note
    assert SCB(3).__reduce__()[2] is None


def test_threads_that_spawn_get_different_streams():
    learner = SCB(10, seed=0)
    start = threading.Barrier(4)

    def spawn(_):
        start.wait()
        return learner.spawn(3)

    with ThreadPoolExecutor(4) as pool:
        workers = [worker for part in pool.map(spawn, range(4)) for worker in part]
    assert len({worker.save() for worker in workers}) == 12


def test_spawned_streams_are_not_correlated():
    """Arms of two spawned learners that do not learn agree as often as chance has it."""
    from unbounded import Uniform

    first, second, parent = [*Uniform(10, seed=3).spawn(2), Uniform(10, seed=3)]
    arms = [[one.ask().arm for _ in range(20_000)] for one in (first, second, parent)]
    for a, b in ((0, 1), (0, 2), (1, 2)):
        agree = np.mean(np.equal(arms[a], arms[b]))
        assert abs(agree - 0.1) < 5 * np.sqrt(0.09 / 20_000)
    same = [copy.copy(parent) for _ in range(2)]  # the control: these do agree
    assert [same[0].ask().arm for _ in range(99)] == [same[1].ask().arm for _ in range(99)]


def run(script):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(
    "made",
    [
        "SCB(10, seed=0)",
        pytest.param("AHB(3, seed=0)", marks=pytest.mark.long),
        "UniformPolicy([1], 5, seed=0)",
    ],
)
def test_a_fork_is_noticed(made):
    """The child's learner refuses to play, can be saved and spawned; the parent's goes on."""
    out = run(
        f"""
        import os
        from unbounded import *
        def tell(learner, ticket):
            if isinstance(ticket, Choice):
                learner.tell(ticket, 1.0)
            else:
                learner.tell(ticket, [0], [ticket.act(0, 0)], [1.0])
        learner = {made}
        ticket = learner.ask()
        before = learner.save()
        learner._lock.acquire()  # as another thread may have, when it forks
        children = []
        for i in range(2):
            pid = os.fork()
            if pid == 0:
                def again():
                    learner.forget(ticket)
                    learner.ask()
                for step in (lambda: tell(learner, ticket), again):
                    try:
                        step()
                    except RuntimeError as error:
                        assert "came here by a fork" in str(error), error
                        assert "spawn" in str(error)
                    else:
                        os._exit(1)
                mine = type(learner).load(before)
                assert mine.save() == before
                tell(mine, ticket)
                mine.ask()
                worker = learner.spawn(2)[i]
                tell(worker, worker.ask())
                os._exit(0)
            children.append(pid)
        learner._lock.release()
        print(*(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children))
        tell(learner, ticket)
        tell(learner, learner.ask())
        print("fine")
        """
    )
    assert out == ["0", "0", "fine"]


def test_workers_get_learners():
    """joblib, multiprocessing and concurrent.futures send a learner as a copy."""
    out = run(
        """
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor
        from unbounded import SCB
        from operator import methodcaller
        import warnings

        if __name__ == "__main__":
            learner = SCB(10, seed=0)
            for start in ("spawn", "fork"):
                context = multiprocessing.get_context(start)
                with ProcessPoolExecutor(2, mp_context=context) as pool:
                    arms = list(pool.map(methodcaller("ask"), learner.spawn(4)))
                    print(*(choice.arm for choice in arms))
        """
    )
    expected = [worker.ask().arm for worker in SCB(10, seed=0).spawn(8)]
    assert [int(arm) for arm in out] == expected
