"""Seeds: one tree, a branch for everybody."""

import itertools
import math

import numpy as np
from numpy.random import PCG64, SeedSequence

from unbounded import SCB, UniformPolicy
from unbounded.learners.seeds import (
    CHOICES,
    OUTSIDE,
    bit_generator,
    replicate_key,
    replicate_seed,
    root_of,
)


def test_a_seed_decides():
    for seed in (0, 7, SeedSequence(7, spawn_key=(3,))):
        a, b = bit_generator(seed), bit_generator(seed)
        assert a.random_raw(5).tolist() == b.random_raw(5).tolist()
    assert bit_generator(0).random_raw() != bit_generator(1).random_raw()
    assert bit_generator(None).random_raw() != bit_generator(None).random_raw()


def test_learners_have_a_branch_of_their_own():
    """Not that of an environment made with the same seed, nor of a sequence spawned from it."""
    ours = bit_generator(3).random_raw(4).tolist()
    assert ours == PCG64(SeedSequence(3, spawn_key=(0x5CB,))).random_raw(4).tolist()
    assert ours != PCG64(3).random_raw(4).tolist()
    for child in SeedSequence(3).spawn(3):
        assert ours != PCG64(child).random_raw(4).tolist()


def test_a_sequence_is_its_own_root():
    root = SeedSequence(5, spawn_key=(1, 2))
    assert root_of(root) is root
    assert root_of(5).entropy == 5
    assert replicate_seed(root, 3, CHOICES).spawn_key == (1, 2, 3, CHOICES)
    assert replicate_seed(root, 3, OUTSIDE).entropy == 5


def test_replicates_and_branches_differ():
    root = root_of(11)
    words = {
        int(PCG64(replicate_seed(root, r, branch)).random_raw())
        for r, branch in itertools.product(range(20), (CHOICES, OUTSIDE))
    }
    assert len(words) == 40


def test_the_key_of_a_replicate():
    root = root_of(11)
    keys = [replicate_key(root, r) for r in range(50)]
    assert len(set(keys)) == 50
    assert all(0 <= key < 2**53 for key in keys)  # exact as a float64
    assert max(keys) > 2**51
    word = SeedSequence(11, spawn_key=(4, 1)).generate_state(1, np.uint64)[0]
    assert keys[4] == int(word) >> 11


def test_choices_are_independent_of_a_generator_with_the_same_seed():
    """An environment seeded like the learner must not be correlated with it."""
    learner, rng = SCB(2, seed=3), np.random.default_rng(3)
    arms = np.array([learner.ask().arm for _ in range(4000)])
    assert abs(np.corrcoef(arms, rng.random(4000))[0, 1]) < 5 / math.sqrt(4000)
    player, rng = UniformPolicy([1], 2, seed=3), np.random.default_rng(3)
    actions = []
    for _ in range(2000):
        plan = player.ask()
        actions.append(plan.act(0, 0))
        player.forget(plan)
    assert abs(np.corrcoef(actions, rng.random(2000))[0, 1]) < 5 / math.sqrt(2000)
