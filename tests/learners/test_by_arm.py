"""Tickets by arm."""

import copy
import random

import pytest

from unbounded import SCB, AdaINF, ByArm, CostSCB, UniformPolicy
from unbounded.bandits import algorithms


def test_a_loss_is_for_the_oldest_or_the_newest_choice_of_its_arm():
    """The same as telling these tickets, by hand."""
    found = []
    for newest in (False, True):
        plain, by_arm = AdaINF(3, seed=1), ByArm(AdaINF(3, seed=1), newest=newest)
        rng, waiting = random.Random(2), []
        for _ in range(400):
            choice = plain.ask()
            assert by_arm.ask().arm == choice.arm
            waiting.append(choice)
            if rng.random() < 0.6:
                arm, loss = rng.choice(waiting).arm, rng.expovariate(1.0)
                of_arm = [one for one in waiting if one.arm == arm]
                ticket = of_arm[-1 if newest else 0]
                waiting.remove(ticket)
                plain.tell(ticket, loss)
                assert by_arm.tell(arm, loss)
        assert [by_arm.waiting(arm) for arm in range(3)] == [
            sum(one.arm == arm for one in waiting) for arm in range(3)
        ]
        assert plain.probabilities().tolist() == by_arm.learner.probabilities().tolist()
        found.append(plain.probabilities().tolist())
    assert found[0] != found[1]  # the control: the order is seen


def test_a_restored_learner_brings_its_queue():
    first = ByArm(SCB(2, seed=0))
    arms = [first.ask().arm for _ in range(20)]
    second = ByArm(SCB.load(first.learner.save()))
    third = copy.deepcopy(first)
    for arm in arms:
        for one in (first, second, third):
            assert one.tell(arm, loss=float(arm))
    assert not second.tell(arms[0], loss=1.0)
    saved = [one.learner.probabilities().tolist() for one in (first, second, third)]
    assert saved[0] == saved[1] == saved[2]


def test_the_oldest_is_forgotten_and_rejected_losses_are_not():
    by_arm = ByArm(CostSCB(1, seed=0), most=3)
    for _ in range(5):
        by_arm.ask()
    assert (by_arm.waiting(0), len(by_arm.learner.outstanding)) == (3, 3)
    with pytest.raises(ValueError, match="nan"):
        by_arm.tell(0, loss=float("nan"))
    assert by_arm.waiting(0) == 3
    assert by_arm.tell(0, reward=-2.0)
    assert by_arm.forget_all() == 2
    assert (by_arm.waiting(0), len(by_arm.learner.outstanding), by_arm.learner.rounds) == (0, 0, 1)


def test_masks_and_learners_without_delay():
    by_arm = ByArm(CostSCB(3, seed=0))
    assert {by_arm.ask(available=[1]).arm for _ in range(9)} == {1}
    name = next(name for name, cls in algorithms().items() if not cls.spec.delayed
                and cls.spec.feedback != "full")  # fmt: skip
    example = next(iter(algorithms()[name].spec.examples))
    alone = ByArm(algorithms()[name](**(example | {"n_arms": 2, "seed": 0})))
    for _ in range(4):
        arm = alone.ask().arm
    assert len(alone.learner.outstanding) == 1
    assert alone.tell(arm, 1.0)


@pytest.mark.parametrize("given", [3, UniformPolicy([1, 2], 2), None])
def test_what_is_no_bandit_is_rejected(given):
    with pytest.raises(TypeError, match="learner"):
        ByArm(given)
    with pytest.raises((TypeError, ValueError), match="arm"):
        ByArm(SCB(2)).tell(-1, 1.0)
