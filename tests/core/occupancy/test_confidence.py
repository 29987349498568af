"""Confidence sets: counts, epochs and boxes."""

import math

import numpy as np
import pytest

from occupancy_facades import ConfidenceSet, check_boxes, known
from occupancy_reference import boxes_as_arrays
from slow_cost_scb_rl import kl_end
from unbounded import worlds
from unbounded.core.occupancy.confidence import (
    JIN,
    PAPER,
    count,
    first_upper,
    largest_mean,
    log_term,
    narrow,
    rebuild,
    renew,
    told_support,
)
from unbounded.core.occupancy.layout import PAIR, TRIPLE, Layers
from unbounded.core.occupancy.reach import within_reach


def width(M, N, ln_, c1, c2):
    """Of one pair's box: the formula of the paper, written out."""
    n = max(1, N - 1)
    return c1 * np.sqrt(M / N * ln_ / n) + c2 * ln_ / n


@pytest.mark.parametrize(("constants", "c1", "c2"), [(PAPER, 4, 28 / 3), (JIN, 2, 14 / 3)])
def test_boxes_follow_the_formula(constants, c1, c2):
    rng = np.random.default_rng(0)
    layers = Layers([3, 2, 4], n_actions=2)
    sets = ConfidenceSet(layers, episodes=500, delta=0.2, constants=constants, nested=False)
    sizes, lay = [1, *layers.sizes], layers.table
    inside = []
    for low, high in ((1, 4), (300, 600), (2_000, 200_000)):
        for h in range(layers.horizon):
            for s in range(sizes[h]):
                for a in range(layers.n_actions if h else 1):
                    N = int(rng.integers(low, high))
                    p = layers.index(h, s, a)
                    sets.N[p] = N
                    start = lay[TRIPLE, h] + p - lay[PAIR, h]
                    m = sizes[h] * (layers.n_actions if h else 1)
                    shares = rng.dirichlet(np.full(sizes[h + 1], 2.0))
                    sets.M[start : lay[TRIPLE, h + 1] : m] = rng.multinomial(N, shares)
        sets.refresh()
        ln_ = np.log(500 * 9 * 2 / 0.2)
        assert sets.log_term == log_term(layers, 500, 0.2) == pytest.approx(ln_, rel=1e-15)
        Ms, lows, highs = (boxes_as_arrays(layers, x) for x in (sets.M, sets.lo, sets.hi))
        for M, lo, hi in zip(Ms, lows, highs, strict=True):
            for s, a in np.ndindex(M.shape[:2]):
                N = M[s, a].sum()
                eps = width(M[s, a], N, ln_, c1, c2)
                assert np.allclose(lo[s, a], np.maximum(M[s, a] / N - eps, 0), rtol=1e-14, atol=0)
                assert np.allclose(hi[s, a], np.minimum(M[s, a] / N + eps, 1), rtol=1e-14, atol=0)
        inside.append(np.mean((sets.lo > 0) & (sets.hi < 1)))
    assert inside[0] == 0  # after one to three visits
    assert inside[2] > 0.8  # so that a wrong constant is seen


def test_epochs_start_when_visits_double_and_at_every_first_visit():
    layers = Layers([1], n_actions=1)
    sets = ConfidenceSet(layers, episodes=100, delta=0.1)
    starts = [t for t in range(1, 33) if sets.observe([0], [0])]
    assert starts == [1, 2, 4, 8, 16, 32]
    layers = Layers([2, 2], n_actions=2)
    sets = ConfidenceSet(layers, episodes=100, delta=0.1)
    for _ in range(3):
        sets.observe([0, 0], [0, 0])
    assert sets.observe([0, 1], [0, 0])  # a first visit in the last layer


def test_counts_follow_the_trajectory():
    layers = Layers([2, 3], n_actions=2)
    sets = ConfidenceSet(layers, episodes=100, delta=0.1)
    sets.observe([1, 2], [0, 1])
    sets.observe([1, 0], [0, 1])
    initial, (inner,) = layers.unpack_transitions(sets.M)
    assert initial.tolist() == [0, 2]
    assert inner[1, 0].tolist() == [1, 0, 1]
    assert sets.M.sum() == 4
    assert sets.N[layers.index(0, 0)] == 2
    assert sets.N[layers.index(2, 2, 1)] == 1


def test_e13_boxes_are_nested_and_never_empty():
    rng = np.random.default_rng(1)
    mdp = worlds.dirichlet([2, 3, 2], 2, rng)
    sets = ConfidenceSet(mdp.layers, 2000, 0.1)
    lo, hi = sets.lo.copy(), sets.hi.copy()
    for _ in range(2000):
        states, actions, s = [], [], None
        for h in range(3):
            p = mdp.initial if h == 0 else mdp.transitions[h - 1][s, actions[-1]]
            s = int(rng.choice(len(p), p=p))
            states.append(s)
            actions.append(int(rng.integers(2)))
        if sets.observe(states, actions):
            assert np.all(sets.lo >= lo)
            assert np.all(sets.hi <= hi)
            lo, hi = sets.lo.copy(), sets.hi.copy()
            check_boxes(mdp.layers, lo, hi)
    assert sets.contains(mdp.P)
    assert np.mean(hi - lo < 1) > 0.2  # it has learned something


def test_e13_an_empty_intersection_falls_back_to_the_new_box():
    layers = Layers([2], n_actions=1)
    sets = ConfidenceSet(layers, episodes=10, delta=0.5, constants=(1e-3, 1e-3))
    sets.N[0], sets.M[:] = 1000, [1000, 0]
    sets.refresh()
    assert sets.lo[0] > 0.99
    sets.N[0], sets.M[:] = 2000, [1000, 1000]  # contradicts the first box
    sets.refresh()
    assert sets.hi[0] < 0.6
    assert sets.lo[0] == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    ("before", "kept"),
    [
        (([0.0, 0.0, 0.0], [1.0, 1.0, 1.0]), True),
        (([0.25, 0.0, 0.3], [0.5, 0.36, 1.0]), True),  # sides of the old box and of the new
        (([0.45, 0.0, 0.0], [1.0, 1.0, 1.0]), False),  # no P(0) is in both
        (([0.0, 0.0, 0.0], [1.0, 0.3, 0.25]), False),  # together the upper ends are below one
        (([0.39, 0.3, 0.32], [1.0, 1.0, 1.0]), False),  # together the lower ends are above one
    ],
)
def test_e13_boxes_are_intersected_unless_nothing_is_left(before, kept):
    layers = Layers([3], n_actions=1)
    sets = ConfidenceSet(layers, episodes=10, delta=0.5, constants=(1.0, 1.0))
    sets.N[0], sets.M[:] = 300, [100, 102, 98]
    sets.nested = False
    sets.refresh()
    new = sets.lo.copy(), sets.hi.copy()
    assert np.all(np.abs(new[0] - 0.25) < 0.03)
    assert np.all(np.abs(new[1] - 0.41) < 0.03)
    sets.nested = True
    sets.lo[:], sets.hi[:] = before
    sets.refresh()
    assert np.array_equal(sets.lo, np.maximum(new[0], before[0]) if kept else new[0])
    assert np.array_equal(sets.hi, np.minimum(new[1], before[1]) if kept else new[1])
    check_boxes(layers, sets.lo, sets.hi)


def test_e22_no_visits_means_the_whole_simplex():
    sets = ConfidenceSet(Layers([2, 3], 2), 100, 0.1)
    sets.refresh()
    assert not sets.lo.any()
    assert np.all(sets.hi == 1)


def test_wrong_arguments_are_rejected():
    layers = Layers([2], 2)
    with pytest.raises(ValueError, match="delta must be in"):
        ConfidenceSet(layers, 10, 1.5)
    with pytest.raises(ValueError, match="episodes must be"):
        ConfidenceSet(layers, 0, 0.5)
    with pytest.raises(ValueError, match="constants must be positive"):
        ConfidenceSet(layers, 10, 0.5, constants=(1.0, 0.0))
    sets = ConfidenceSet(layers, 10, 0.5)
    for states, actions in (([2], [0]), ([0], [-1]), ([0.5], [0]), ([0, 0], [0])):
        with pytest.raises(ValueError, match="must"):
            sets.observe(states, actions)
    assert not sets.N.any()  # nothing was counted
    with pytest.raises(ValueError, match="0 <= lo <= hi <= 1"):
        check_boxes(layers, [0.5, 0.0], [0.4, 1.0])


def test_known_transitions_are_boxes_of_no_width():
    mdp = worlds.dirichlet([2, 3], 2, np.random.default_rng(0))
    lo, hi = known(mdp)
    assert np.array_equal(lo, mdp.P)
    assert np.array_equal(hi, mdp.P)
    assert lo is not hi


def test_a_set_contains_what_lies_in_every_box_up_to_rounding():
    layers = Layers([2], n_actions=1)
    sets = ConfidenceSet(layers, episodes=10, delta=0.5, constants=(1e-3, 1e-3))
    sets.N[0], sets.M[:] = 1000, [250, 750]
    sets.refresh()
    assert sets.contains([0.25, 0.75])
    assert sets.contains([sets.hi[0] + 1e-13, sets.lo[1]])
    assert not sets.contains([sets.hi[0] + 1e-11, sets.lo[1]])
    assert not sets.contains([0.25, sets.lo[1] - 1e-11])


def test_boxes_that_hold_no_distribution_are_rejected():
    layers = Layers([2, 2], n_actions=1)
    with pytest.raises(ValueError, match=r"layer 1, pair 1 holds no distribution: sum\(lo\) = 0.2"):
        check_boxes(layers, [0.0, 0.0, 0.0, 0.1, 0.0, 0.1], [1.0, 1.0, 1.0, 0.4, 1.0, 0.5])
    with pytest.raises(ValueError, match=r"layer 0, pair 0 holds no distribution: sum\(lo\) = 1.2"):
        check_boxes(layers, [0.6, 0.6, 0.0, 0.0, 0.0, 0.0], np.ones(6))


def test_a_support_leaves_every_pair_a_next_state():
    assert first_upper(Layers([3], n_actions=1), [True, False, True]).tolist() == [1.0, 0.0, 1.0]
    with pytest.raises(ValueError, match="next state; pair 0 of layer 0 has none"):
        first_upper(Layers([2], n_actions=1), [False, False])
    assert told_support(Layers([1, 2], n_actions=1), None).size == 0
    ends = told_support(Layers([1, 2, 2], n_actions=1, ends=True), None)
    assert ends.tolist()[-4:] == [1.0, 0.0, 1.0, 1.0]  # nothing leads away from the end


def test_states_within_reach_of_a_support():
    layers = Layers([2, 2], n_actions=1)
    possible = layers.pack_transitions([1.0, 0.0], [[[[1.0, 1.0]], [[0.0, 1.0]]]])
    assert within_reach(layers, possible) == [1, 2]
    assert within_reach(layers, np.empty(0)) == [2, 2]


def test_boxes_of_pairs_that_doubled_are_those_of_the_divergence():
    """One pair at a time, when its own visits have doubled; the others keep theirs."""
    layers = Layers([2, 3], n_actions=2)
    lay, rng, log_term, width = layers.table, np.random.default_rng(3), 3.0, 0.7
    support = np.ones(layers.n_transitions, bool)
    support[lay[TRIPLE, 1]] = False
    N, made_from = np.zeros((2, layers.n_pairs))
    M, lo, hi = (
        np.zeros(layers.n_transitions),
        np.zeros(layers.n_transitions),
        first_upper(layers, support),
    )
    changes = whole = 0
    for _ in range(400):
        states, actions = rng.integers([2, 3]), rng.integers([2, 2])
        count(lay, states, actions, N, M, made_from)
        due, before = np.maximum(1.0, 2.0 * made_from) <= N, (lo.copy(), hi.copy())
        changed = narrow(lay, states, actions, N, made_from, M, log_term, width, lo, hi)
        assert changed == (np.any(lo != before[0]) or np.any(hi != before[1]))
        changes += changed
        assert np.all(np.maximum(1.0, 2.0 * made_from) + (N == 0) > N)
        for h in range(layers.horizon):
            m = lay[PAIR, h + 1] - lay[PAIR, h]
            for i in range(m):
                k = slice(lay[TRIPLE, h] + i, lay[TRIPLE, h + 1], m)
                low, high, n = before[0][k], before[1][k], N[lay[PAIR, h] + i]
                k_th = 1 + np.log2(max(n, 1))
                level = width * (log_term + np.log(k_th * (k_th + 1))) / max(n, 1)
                if due[lay[PAIR, h] + i] and level <= 1.0:
                    ends = np.array([[kl_end(P, level, e) for P in M[k] / n] for e in (0.0, 1.0)])
                    possible = (high > 0.0) | (M[k] > 0.0)
                    low, high = np.maximum(ends[0], low), np.minimum(ends[1], high) * possible
                    high = np.where(possible & (before[1][k] == 0.0), ends[1], high)
                whole += bool(due[lay[PAIR, h] + i] and level > 1.0)
                assert lo[k] == pytest.approx(low, abs=1e-12)
                assert hi[k] == pytest.approx(high, abs=1e-12)
    assert 10 < changes < 60
    assert whole > 5


def test_renewed_boxes_are_those_of_rebuild_or_of_pairs_that_doubled():
    layers = Layers([2, 3], n_actions=2)
    lay, rng = layers.table, np.random.default_rng(5)
    support = np.ones(layers.n_transitions, bool)
    support[lay[TRIPLE, 1]] = False
    first = first_upper(layers, support)
    N, M = np.zeros(layers.n_pairs), np.zeros(layers.n_transitions)
    made_from = {growth: np.zeros(layers.n_pairs) for growth in (1.0, 2.0)}
    boxes = {growth: (np.zeros_like(first), first.copy()) for growth in (1.0, 2.0, "all")}
    differ = 0
    for t in range(300):
        count(lay, rng.integers([2, 3]), rng.integers([2, 2]), N, M, np.zeros_like(N))
        if t % 3:
            continue
        rebuild(lay, N, M, 5.0, 0.2, 0.5, True, *boxes["all"])
        for growth in (1.0, 2.0):
            before = [b.copy() for b in boxes[growth]]
            due = (made_from[growth] != N) & (growth * made_from[growth] <= N)
            changed = renew(lay, N, made_from[growth], M, 5.0, 0.2, 0.5, growth, *boxes[growth])
            assert changed == any(
                np.any(a != b) for a, b in zip(before, boxes[growth], strict=True)
            )
            assert np.array_equal(made_from[growth][due], N[due])
            assert np.all((2.0 * made_from[growth] > N) | (N == 0.0))
        assert np.array_equal(boxes[1.0], boxes["all"])  # to the last bit
        differ += not np.array_equal(boxes[2.0], boxes["all"])
    assert differ > 50  # the control


def by_plain_bisection(P_bar, level):
    if P_bar >= 1.0:
        return 1.0
    lower, upper = P_bar, 1.0
    for _ in range(60):
        p = 0.5 * (lower + upper)
        kl = (1.0 - P_bar) * math.log((1.0 - P_bar) / (1.0 - p)) if p < 1.0 else math.inf
        if P_bar > 0.0:
            kl -= P_bar * math.log(p / P_bar)
        lower, upper = (p, upper) if kl <= level else (lower, p)
    return upper


def test_where_newton_decides_bisection_gives_the_same_bits():
    rng = np.random.default_rng(3)
    for _ in range(2000):
        N = 2 ** int(rng.integers(0, 30))
        M = int(rng.integers(0, N + 1)) if rng.random() < 0.7 else min(N, int(rng.integers(0, 4)))
        level = rng.uniform(0.01, 40.0) / N
        for P_bar, at in (
            (M / N, level),
            (1.0 - M / N, level),
            (rng.random(), 10.0 ** -rng.random()),
        ):
            assert largest_mean(P_bar, at) == by_plain_bisection(P_bar, at)
    far = [
        largest_mean(P_bar, 10.0 ** rng.uniform(-18, 3)) for P_bar in 10.0 ** -np.arange(0, 300.0)
    ]
    assert np.all((np.array(far) >= 10.0 ** -np.arange(0, 300.0)) & (np.array(far) <= 1.0))
