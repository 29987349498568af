"""MDPs from arrays and files: what they mean, what is refused, and the bits that come back."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from occupancy_facades import regret
from unbounded import LayeredMDP
from unbounded.core.occupancy.mdp import Markov, best_policy, occupancy

CHAIN = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.25, 0.75]]])


def test_one_table_or_one_per_step_are_the_same():
    one = LayeredMDP.from_arrays(CHAIN, [0.25, 0.75], horizon=4)
    for P in (np.array([CHAIN] * 3), [CHAIN] * 3, [CHAIN.tolist()] * 3, CHAIN[None].repeat(3, 0)):
        for horizon in (None, 4):
            other = LayeredMDP.from_arrays(P, [0.25, 0.75], horizon)
            assert other.layers == one.layers
            assert np.array_equal(other.P, one.P)
    assert one.layers.sizes == (2, 2, 2, 2)
    assert all(np.array_equal(step, CHAIN) for step in one.transitions)
    assert LayeredMDP.from_arrays(CHAIN.tolist(), [0, 1], 1).layers.sizes == (2,)


def test_layers_of_different_sizes_and_numbers_of_actions():
    mdp = LayeredMDP.from_arrays([np.full((1, 3, 2), 0.5), np.full((2, 2, 4), 0.25)], [1.0])
    assert mdp.layers.sizes == (1, 2, 4)
    assert [table.tolist() for table in mdp.allowed[:2]] == [
        [[True] * 3],
        [[True, True, False]] * 2,
    ]
    assert mdp.layers.n_forbidden == 2


def test_what_is_not_allowed_may_have_any_row():
    allowed = np.array([[True, False], [True, True]])
    for row in ([0.0, 0.0], [7.0, np.nan], [1.0, 0.0]):
        P = CHAIN.copy()
        P[0, 1] = row
        mdp = LayeredMDP.from_arrays(P, [1.0, 0.0], 3, allowed=allowed)
        assert mdp.transitions[0][0].tolist() == [[0.5, 0.5], [0.5, 0.5]]  # as one that is allowed


def test_the_end_is_absorbing_and_free():
    ends = np.array([[0.0, 0.5], [0.0, 1.0]])
    mdp = LayeredMDP.from_arrays(CHAIN * (1 - ends)[:, :, None], [1.0, 0.0], 3, ends=ends)
    assert mdp.layers.sizes == (2, 3, 3)
    assert mdp.transitions[0][0, 1].tolist() == [0.5, 0.0, 0.5]
    assert mdp.transitions[1][2].tolist() == [[0.0, 0.0, 1.0]] * 2
    assert mdp.allowed[1].tolist() == [[True, True], [True, True], [True, False]]
    losses = np.zeros(mdp.layers.n_pairs)
    losses[mdp.layers.free] = -100.0  # whatever is said of it
    even = [Markov.uniform(mdp.layers)]
    assert regret(mdp, even, losses[None]).tolist() == [0.0]


def test_states_in_which_an_episode_is_over():
    over = np.array([False, True])
    mdp = LayeredMDP.from_arrays(CHAIN, [1.0, 0.0], 3, ends=over)
    same = LayeredMDP.from_arrays(
        np.where(over, 0.0, CHAIN), [1.0, 0.0], 3, ends=CHAIN[:, :, over].sum(axis=2)
    )
    assert mdp.layers == same.layers
    assert np.array_equal(mdp.P, same.P)


def arguments(rng, n, A, H, sparse):
    """Random tables with early ends, zero rows and states that nothing reaches."""
    whole = rng.dirichlet(np.full(n + 1, 0.4), size=(H - 1, n, A))
    if sparse:  # deterministic, or over at once
        whole = np.eye(n + 1)[rng.integers(n + 1, size=(H - 1, n, A))]
        whole[0] = np.eye(n + 1)[n] if rng.random() < 0.3 else whole[0]
    allowed = rng.random((H, n, A)) < 0.6
    allowed[..., 0] |= ~allowed.any(axis=-1)
    whole[~allowed[:-1]] = 0.0
    return whole[..., :-1], rng.dirichlet(np.ones(n)), whole[..., -1], allowed


def brute_force(P, initial, ends, allowed, losses):
    """The least loss of any deterministic policy, by trying all of them; without any layers."""
    H, n, _ = allowed.shape
    places = [(h, s) for h in range(H) for s in range(n)]
    best = np.inf
    for actions in itertools.product(*(np.flatnonzero(allowed[h, s]) for h, s in places)):
        policy, mass, total = dict(zip(places, actions, strict=True)), initial, 0.0
        for h in range(H):
            total += sum(mass[s] * losses[h, s, policy[h, s]] for s in range(n))
            if h < H - 1:
                mass = sum(mass[s] * P[h, s, policy[h, s]] for s in range(n))
        best = min(best, total)
    return best


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32), n=st.integers(1, 2), A=st.integers(1, 3), H=st.integers(1, 3),
    sparse=st.booleans(),
)  # fmt: skip
def test_the_best_policy_is_the_best_of_all_that_are_allowed(seed, n, A, H, sparse):
    rng = np.random.default_rng(seed)
    if H == 1:
        P, initial, ends, allowed = np.full((n, A, n), 1 / n), np.full(n, 1 / n), None, None
        mdp = LayeredMDP.from_arrays(P, initial, 1)
        allowed = np.ones((1, n, A), bool)
    else:
        P, initial, ends, allowed = arguments(rng, n, A, H, sparse)
        mdp = LayeredMDP.from_arrays(P, initial, H, ends=ends, allowed=allowed)
    losses = rng.normal(size=(H, n, A))
    flat = mdp.layers.pack_pairs(
        [
            np.concatenate([table, np.zeros((size - n, A))])
            for table, size in zip(losses, mdp.layers.sizes, strict=True)
        ]
    )
    value, policy = best_policy(mdp, flat)
    assert value == pytest.approx(brute_force(P, initial, ends, allowed, losses), abs=1e-12)
    assert not np.any(policy.pi[list(mdp.layers.forbidden)])
    assert occupancy(mdp, policy) @ flat == pytest.approx(value, abs=1e-12)
    for table in mdp.layers.unpack_pairs(occupancy(mdp, Markov.uniform(mdp.layers))):
        assert table.sum() == pytest.approx(1.0, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), sparse=st.booleans())
def test_a_file_brings_back_the_same_bits(tmp_path_factory, seed, sparse):
    rng = np.random.default_rng(seed)
    n, A, H = rng.integers(1, 4), rng.integers(1, 4), rng.integers(2, 5)
    P, initial, ends, allowed = arguments(rng, n, A, H, sparse)
    mdp = LayeredMDP.from_arrays(P, initial, H, ends=ends, allowed=allowed)
    path = tmp_path_factory.mktemp("npz") / "mdp.other"  # the name is taken as it is
    mdp.save(path)
    again = LayeredMDP.load(path)
    assert again.layers == mdp.layers
    assert np.array_equal(again.P, mdp.P)
    np.savez(path.with_suffix(".npz"), P=P, initial=initial, ends=ends, allowed=allowed)
    plain = LayeredMDP.load(path.with_suffix(".npz"))
    assert plain.layers == mdp.layers
    assert np.allclose(plain.P, mdp.P, rtol=0, atol=1e-15)


def test_a_single_layer_comes_back_too(tmp_path):
    for allowed in (None, [[True, False], [True, True]]):
        mdp = LayeredMDP.from_arrays(CHAIN, [0.5, 0.5], 1, allowed=allowed)
        mdp.save(tmp_path / "one.npz")
        assert LayeredMDP.load(tmp_path / "one.npz").layers == mdp.layers


ROW = CHAIN.copy()
ROW[1, 0] = [0.0, 0.5]
NO = np.zeros((2, 2))
MANY = np.full((16, 2, 16), 1.0 / 16.0)


@pytest.mark.parametrize(
    ("P", "initial", "more", "said"),
    [
        (CHAIN[0], [1, 0], {"horizon": 2}, r"P must have shape .* got shape \(2, 2\)"),
        (CHAIN[:, :, :1], [1, 0], {"horizon": 2}, r"P must have shape .* got shape \(2, 2, 1\)"),
        (CHAIN, [1, 0, 0], {"horizon": 2}, "initial has 3 states, and P has 2"),
        (CHAIN, [1, 0], {}, "horizon is needed where one table serves every step"),
        (CHAIN, [1, 0], {"horizon": 10**8}, "horizon must be at most 1,000,000"),
        (MANY, MANY[0, 0], {"horizon": 10**6}, "more than .* take a shorter horizon"),
        (CHAIN, [1, 0], {"horizon": 0}, "horizon must be at least 1"),
        ([CHAIN] * 2, [1, 0], {"horizon": 2}, "P has 2 tables, and horizon = 2 needs 1"),
        ([], [1, 0], {}, "P is empty|P must have shape"),
        ([CHAIN, np.full((3, 2, 2), 0.5)], [1, 0], {}, r"P\[1\] must .* got \(3, 2, 2\)"),
        (CHAIN, [[1, 0]], {"horizon": 2}, r"initial must be a non-empty vector"),
        (CHAIN, [0.5, 0.6], {"horizon": 2}, "initial sums to 1.1"),
        (ROW, [1, 0], {"horizon": 2}, r"P\[1, 0\] sums to 0.5; .* ends=, .* by allowed="),
        ([ROW], [1, 0], {}, r"P\[0\]\[1, 0\] sums to 0.5"),
        (-CHAIN, [1, 0], {"horizon": 2}, "a probability cannot be negative"),
        (CHAIN * np.nan, [1, 0], {"horizon": 2}, "P has entries that are not finite"),
        (CHAIN, [1, 0], {"horizon": 2, "ends": NO + 0.5}, r"P\[0, 0\] sums to 1.5"),
        (CHAIN, [1, 0], {"horizon": 2, "ends": NO - 1.0}, "ends must be probabilities, got -1"),
        (CHAIN, [1, 0], {"horizon": 2, "ends": NO[0]}, "must be a boolean for each of the 2"),
        (CHAIN, [1, 0], {"horizon": 2, "ends": [True, False]}, r"initial\[0\] is 1, and by ends"),
        (CHAIN, [1, 0], {"horizon": 2, "ends": np.zeros((2, 3))}, r"ends must have the shape of P"),
        (CHAIN, [1, 0], {"horizon": 2, "allowed": NO}, r"allowed\[0\] leaves state 0 no action"),
        (CHAIN, [1, 0], {"horizon": 2, "allowed": NO + 2}, "must be made of True and False"),
        (CHAIN, [1, 0], {"horizon": 2, "allowed": [NO + 1] * 3}, "allowed has 3 tables"),
        (CHAIN, [1, 0], {"horizon": 2, "allowed": np.ones((2, 3))}, "allowed must have shape"),
    ],
)  # fmt: skip
def test_errors_are_a_sentence(P, initial, more, said):
    with pytest.raises(ValueError, match=said) as caught:
        LayeredMDP.from_arrays(P, initial, **more)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("P", ["abc", object(), [["a"]]])
def test_what_is_no_array(P):
    with pytest.raises(TypeError, match="must be an array of numbers"):
        LayeredMDP.from_arrays(P, [1.0], 2)


def test_files_that_hold_something_else(tmp_path):
    path = tmp_path / "mdp.npz"
    with pytest.raises(FileNotFoundError):
        LayeredMDP.load(path)
    path.write_bytes(b"no arrays at all")
    with pytest.raises(ValueError, match=r"is not a file of arrays .* LayeredMDP.save"):
        LayeredMDP.load(path)
    np.save(tmp_path / "one.npy", CHAIN)
    with pytest.raises(ValueError, match="is not a file of arrays"):
        LayeredMDP.load(tmp_path / "one.npy")
    start = {"initial": [1.0, 0.0], "horizon": 3}
    np.savez(path, P=np.array([object()]), **start)
    with pytest.raises(ValueError, match="is not a file of arrays"):
        LayeredMDP.load(path)
    for arrays, said in [
        ({**start}, "has no array 'P'; it has horizon, initial"),
        ({**start, "P": CHAIN, "rewards": CHAIN}, "has an array 'rewards', which means nothing"),
        ({**start, "P_1": CHAIN, "P_3": CHAIN}, "either P, or P_1, P_2, ... in a row"),
        ({**start, "P": CHAIN, "P_1": CHAIN}, "either P, or P_1, P_2, ... in a row"),
        ({**start, "P": ROW}, r"mdp.npz: P\[1, 0\] sums to 0.5"),
        ({**start, "P": CHAIN, "horizon": 2.5}, "horizon must be an integer"),
    ]:
        np.savez(path, **arrays)
        with pytest.raises(ValueError, match=said):
            LayeredMDP.load(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="is not a file of arrays"):
        LayeredMDP.load(path)


def test_an_end_that_is_left_is_rejected():
    P = np.full((2, 2, 2), 0.5)
    with pytest.raises(ValueError, match="leads away from the end"):
        LayeredMDP([1.0, 0.0], [P, P], ends=True)
