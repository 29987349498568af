"""A teacher of curricula."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from unbounded import AdaHedge, Exp3S
from unbounded.adapters.teacher import Teacher


def taught(worth, rounds, factor=1.0, seed=0):
    teacher, rng = Teacher(len(worth), seed=seed), np.random.default_rng(1)
    tasks = []
    for _ in range(rounds):
        task = teacher.sample()
        teacher.update(task, (worth[task] + rng.normal()) * factor)
        tasks.append(task)
    return teacher, tasks


@pytest.mark.parametrize("power", [-1000, 30, 1000])
def test_powers_of_two_change_nothing(power):
    worth = [0.0, 1.0, -1.0]
    assert taught(worth, 300, 2.0**power)[1] == taught(worth, 300)[1]


def test_thousands_of_tasks():
    worth = np.zeros(2500)
    worth[100:200] = 30.0  # a region of tasks from which one learns
    _, tasks = taught(worth, 60_000)
    late = np.array(tasks[-5_000:])
    assert np.mean((late >= 100) & (late < 200)) > 10 * 100 / 2500


def test_several_tasks_may_be_outstanding():
    teacher = Teacher(2, seed=0)
    tasks = [teacher.sample() for _ in range(10)]
    for task in reversed(tasks):
        teacher.update(task, 1.0)
    assert teacher.learner.rounds == 10
    assert not teacher.learner.outstanding
    with pytest.raises(ValueError, match="not sampled"):
        teacher.update(tasks[0], 1.0)


def test_a_reward_that_is_rejected_can_be_reported_again():
    teacher = Teacher(2, seed=0)
    task = teacher.sample()
    with pytest.raises(ValueError, match="finite"):
        teacher.update(task, float("nan"))
    teacher.update(task, 1.0)
    assert teacher.learner.rounds == 1


def test_a_copy_goes_on_where_it_was():
    teacher, _ = taught([0.0, 1.0], 50)
    task = teacher.sample()
    other = copy.deepcopy(teacher)
    for one in (teacher, other):
        one.update(task, 3.0)
    assert [teacher.sample() for _ in range(50)] == [other.sample() for _ in range(50)]


def test_another_learner_with_settings():
    teacher = Teacher(3, Exp3S, {"rounds": 100, "switches": 4}, seed=0)
    assert repr(teacher) == f"Teacher({teacher.learner!r})"
    assert teacher.learner.settings["switches"] == 4


@pytest.mark.parametrize("index", [1.5, "a", None, -1])
def test_what_is_no_task_is_rejected(index):
    teacher = Teacher(2, seed=0)
    while teacher.sample() != 1:
        pass
    with pytest.raises((TypeError, ValueError), match="index must be"):
        teacher.update(index, 1.0)


def test_rewards_that_never_come_do_not_pile_up():
    teacher = Teacher(2, seed=0)
    for _ in range(5000):
        teacher.sample()
    assert len(teacher.learner.outstanding) == 2000


def test_what_is_no_bandit_is_rejected():
    with pytest.raises(ValueError, match="all arms"):
        Teacher(2, AdaHedge)
