"""SCB-RL where it departs from the paper's text: docs/theory/errata.md."""

import math

import numpy as np
import pytest

from mdp_play import grouped, params_of, play, random_losses, state_of, tell_firsts
from unbounded import SCB, SCBIX, SCBRL, worlds
from unbounded.core.clipping import RANGE
from unbounded.core.occupancy.confidence import JIN, PAPER
from unbounded.core.occupancy.layout import PAIR

MDP = worlds.dirichlet([2, 3, 2], 2, np.random.default_rng(0))
LAYERS = MDP.layers


def make(T=300, seed=1, **settings):
    return SCBRL(LAYERS.sizes, LAYERS.n_actions, T, seed=seed, **grouped(settings))


@pytest.mark.parametrize("profile", ["practical", "paper"])
@pytest.mark.parametrize("clip", ["range", "scale"])
def test_e29_one_common_factor_changes_nothing(profile, clip):
    """Whole runs, bit for bit, under powers of two."""
    losses = random_losses(LAYERS, 300, seed=2)
    losses[:20] = 0.0  # thresholds are 0 at first
    width = 0.1 if profile == "paper" else None  # at the paper's width nothing binds so soon
    reference = make(profile=profile, clip=clip, width=width)
    policies, _ = play(reference, MDP, losses, seed=3)
    assert reference.phase == "playing"
    assert reference.certificate.newton_steps > 0
    for k in (-300, -101, -7, 13, 300):
        learner = make(profile=profile, clip=clip, width=width)
        scaled, _ = play(learner, MDP, np.ldexp(losses, k), seed=3)
        assert np.array_equal(scaled, policies), k
        assert np.array_equal(learner.thresholds, np.ldexp(reference.thresholds, k))
        assert learner.certificate == reference.certificate


def test_e29_a_factor_for_one_layer_alone_changes_the_problem():
    """Layers share one minimisation, as soon as the confidence set couples them."""
    losses = random_losses(LAYERS, 600, seed=2)
    runs = []
    for factor in (1.0, 8.0):
        learner = make(T=600, width=0.02)
        scaled = losses.copy()
        scaled[:, LAYERS.table[PAIR, 3] : LAYERS.table[PAIR, 4]] *= factor
        runs.append(play(learner, MDP, scaled, seed=3)[0])
        assert learner.certificate.newton_steps > 0
    assert not np.allclose(*runs, atol=1e-3)


@pytest.mark.parametrize("T", [100, 400])
def test_e18_exploration_is_part_of_t(T):
    for cap in (0.5, 0.2):
        learner = make(T=T, profile="paper", exploration_cap=cap)
        N = learner.explored.per_state
        assert min(math.ceil(math.sqrt(14 * T)), math.floor(cap * T / 7)) == N
        assert learner.explored.capped == (math.ceil(math.sqrt(14 * T)) > N)
        play(learner, MDP, random_losses(LAYERS, T, seed=8), seed=9)
        assert learner.episodes_told == T  # it was made for that many, exploration included
        assert learner.episodes_explored == 7 * N <= cap * T
        assert learner.phase == "playing"
    assert 7 * math.ceil(math.sqrt(14 * 100)) > 100  # what is printed would not fit


@pytest.mark.parametrize("settings", [{}, {"profile": "paper"}, {"literal": True}])
def test_e21_thresholds_and_certificates(settings):
    """C <= 2 l_inf,h (the lemma on ERROR prints 4) and l+ <= 3 l_inf,h."""
    losses = random_losses(LAYERS, 1000, seed=10)
    losses[500:] *= 1000.0
    learner = make(T=1000, **settings)
    largest = np.zeros(3)
    furthest = np.zeros(3)

    def before(learner, plan, states, actions, seen):
        windows = state_of(learner).windows
        l_plus = np.ldexp(windows.l_plus, windows.e_before.astype(int))
        assert np.all(l_plus <= 3 * largest * (1 + 1e-12))
        np.maximum(furthest, l_plus / np.maximum(largest, 1e-300), out=furthest)
        np.maximum(largest, np.abs(seen), out=largest)

    play(learner, MDP, losses, seed=11, before=before)
    for h in range(3):
        seen = losses[:, LAYERS.table[PAIR, h + 1] : LAYERS.table[PAIR, h + 2]]
        limit = np.ptp(seen) if params_of(learner).clip == RANGE else 2 * np.abs(seen).max()
        assert 0 < learner.thresholds[h] <= limit
    if learner.settings["reading"]["clip"] == "scale":
        assert furthest.max() > 2.0  # 2 l_inf, as printed elsewhere, is not enough (E32)
    certificate = learner.certificate
    assert certificate.solves > 100
    assert certificate.unsolved == 0
    assert certificate.worst_gap <= 1.1e-8
    assert np.all(state_of(learner).play.estimates.w > 0)


def test_e21_the_radius_is_twice_that_of_jin_et_al():
    assert PAPER == (4.0, 28 / 3)
    assert np.array_equal(PAPER, 2 * np.array(JIN))
    for profile, width in (("paper", None), ("practical", 0.3), ("practical", None)):
        p = params_of(make(profile=profile, width=width)).play
        factor = width or {"paper": 1.0, "practical": 0.2}[profile]
        assert tuple(p.width) == pytest.approx((4 * factor, 28 / 3 * factor), rel=1e-15)


@pytest.mark.parametrize("literal", [False, True])
def test_e28_what_exploration_saw(literal):
    """Thresholds and counts are kept by default; printed, they start at 0 after exploration."""
    learner = make(T=200, profile="paper", literal=literal)
    C, episodes = np.zeros(3), 0

    def before(learner, plan, states, actions, seen):
        nonlocal C, episodes
        assert learner.thresholds == pytest.approx(C, rel=1e-15)
        assert state_of(learner).play.boxes.N[0] == episodes
        assert state_of(learner).play.boxes.M[:2].sum() == episodes
        if learner.phase == "playing" or not literal:
            C = np.where(np.abs(seen) > C, 2 * np.abs(seen), C)
            episodes += 1

    play(learner, MDP, random_losses(LAYERS, 200, seed=12), seed=13, before=before)
    spent = learner.episodes_explored
    assert 0 < spent < 200
    assert episodes == (200 - spent if literal else 200)


def test_e28_boxes_and_weights_begin_with_what_was_seen():
    first = {}

    def before(learner, plan, states, actions, seen):
        if learner.phase == "playing" and literal not in first:
            state = state_of(learner).play
            first[literal] = (
                np.mean(state.boxes.hi - state.boxes.lo),
                np.ldexp(state.estimates.w, state.estimates.unit).max(),
            )

    for literal in (False, True):
        learner = make(T=600, literal=literal, few=False, early_stop=16, exploration=0.3,
                       exploration_cap=0.5)  # fmt: skip
        play(learner, MDP, random_losses(LAYERS, 600, seed=12), seed=13, before=before)
    assert first[True] == (1.0, 0.0)
    assert first[False][0] < 0.99
    assert first[False][1] > 0.0


def test_e3_absolute_values():
    """A threshold follows |l|: a large negative loss raises it as a positive one does."""
    for sign in (1.0, -1.0):
        learner = make(clip="scale")
        tell_firsts(learner, [sign * 5.0, 0.0, sign])
        assert learner.thresholds.tolist() == [10.0, 0.0, 2.0]


def test_e23_what_is_clipped_exceeds_the_threshold_of_its_layer():
    """l' is not zero only if |l| > C_{t,h}: 1[C < |l|], and no band."""
    learner, errors = make(clip="scale"), []

    def before(learner, plan, states, actions, seen):
        C = learner.thresholds
        error = seen - np.clip(seen, -C, C)
        assert np.array_equal(error != 0.0, np.abs(seen) > C)
        errors.append((learner.clipped, np.count_nonzero(error)))

    losses = random_losses(LAYERS, 300, seed=40) * 1.02 ** np.arange(300)[:, None]
    play(learner, MDP, losses, seed=41, before=before)
    told, counts = zip(*errors, strict=True)
    assert list(told) == np.cumsum([0, *counts])[:-1].tolist()
    assert learner.clipped == sum(counts) > 20


def test_e23_inequalities_of_its_proof():
    """For 0 < X < 1: (1 - c)^X <= 1 - c X <= exp(-c X), so the printed product has it reversed;
    an outlier that is first seen in episode m was missed in the m - 1 episodes before."""
    for c in (0.01, 0.3, 0.9):
        for X in (0.01, 0.5, 0.99):
            assert (1 - c) ** X < 1 - c * X < math.exp(-c * X)
    reach = np.array([0.5, 0.2, 0.4])
    first_at = [np.prod(1 - reach[:m]) * reach[m] for m in range(3)]
    missed_before = [np.prod(1 - reach[:m]) for m in range(3)]  # m - 1 of them, counted from 1
    assert np.all(np.array(first_at) <= missed_before)
    assert missed_before[1] > np.prod(1 - reach[:2])  # a product to m would be too small


def test_e31_it_needs_t_and_delta():
    """SCB and SCB-IX need neither."""
    assert SCBRL([2, 3], 2).made_for is None  # T doubles: test_scb_rl_anytime.py
    assert repr(params_of(make(T=300))) != repr(params_of(make(T=301)))
    assert repr(params_of(make(delta=0.05)).blocks) != repr(params_of(make(delta=0.06)).blocks)
    for cls in (SCB, SCBIX):
        assert "rounds" not in cls(2).settings
    learner = make(T=8, few=False)
    play(learner, MDP, random_losses(LAYERS, 8, seed=14), seed=15)
    with pytest.warns(UserWarning, match="its rates and its guarantee are for that many"):
        learner.ask()


def test_e35_there_must_be_a_main_phase():
    for T in (1, 7):
        with pytest.raises(ValueError, match="episodes must exceed the 7 states"):
            make(T=T)
    learner = make(T=8, few=False)
    play(learner, MDP, random_losses(LAYERS, 8, seed=14), seed=15)
    assert learner.episodes_explored == 7
    assert learner.phase == "playing"
    oracle = make(T=2, explorer="oracle", transitions=MDP.P)  # which explores nothing
    assert oracle.phase == "playing"


def test_e35_the_solution_is_an_occupancy_measure_of_its_own_kernel():
    """P^ is the kernel that q~ induces: each layer has mass one, and its policy is q(s, a)/q(s)."""
    learner = make(T=400)
    play(learner, MDP, random_losses(LAYERS, 400, seed=16), seed=17)
    tables = LAYERS.unpack_pairs(learner.occupancy())
    for q, pi in zip(tables, learner.policy().tables, strict=True):
        assert q.sum() == pytest.approx(1.0, abs=1e-9)
        assert pi == pytest.approx(q / q.sum(axis=1, keepdims=True), abs=1e-9)


def test_e24_tight_exploration():
    tight, usual = (make(T=10_000, profile="paper", tight=t).explored for t in (True, False))
    assert tight.per_state == math.ceil(math.sqrt(3 * 2 * 10_000))  # the widest layer
    assert usual.per_state == min(math.ceil(math.sqrt(7 * 2 * 10_000)), 5000 // 7)


@pytest.mark.parametrize("threshold", ["lazy", "largest"])
def test_e1_the_rule_of_the_threshold(threshold):
    learner = make(clip="scale", threshold=threshold)
    _, told = play(learner, MDP, random_losses(LAYERS, 300, seed=36), seed=37)
    C, clipped = np.zeros(3), 0
    for _, _, _, seen in told:
        clipped += np.sum(np.abs(seen) > C)
        grows = np.abs(seen) > C if threshold == "lazy" else 2 * np.abs(seen) > C
        C = np.where(grows, 2 * np.abs(seen), C)
    assert np.allclose(learner.thresholds, C, rtol=1e-15)
    assert learner.clipped == clipped
