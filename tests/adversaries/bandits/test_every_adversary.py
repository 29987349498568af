"""What must hold for every adversary of bandits; a new class is tested as it is."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from numba import njit

from loss_helpers import losses_of
from paces import assert_same, each_way
from unbounded import Uniform, simulate
from unbounded.adversaries import Phase
from unbounded.adversaries.bandits import adversaries
from unbounded.testing import check_adversary

# Settings of those that cannot do without, or would do nothing here.
NEEDED = {
    "MovesAway": {"window": 3, "share": 0.5},  # those that move it at random
    "Program": {"phases": [Phase(noise=0.5, reaction=1, spike_rate=0.2)]},
    "Replay": {"losses": np.random.default_rng(3).normal(size=(7, 4))},
}
ROUNDS, KEY = 400, 2**53 - 11


@pytest.fixture(params=adversaries())
def make(request):
    cls = adversaries()[request.param]
    return lambda **settings: cls(**NEEDED.get(request.param, {}), **settings)


def played(adversary, seed=0, order=None, key=KEY):
    """Losses against random q and arms, of the rounds in a given order."""
    rng = np.random.default_rng(seed)
    params, state = adversary.begin(4, ROUNDS, key)
    rounds = range(1, ROUNDS + 1) if order is None else order
    out = np.full((ROUNDS, 4), np.nan)
    last = -1
    for t in rounds:
        type(adversary).fill(params[2:], state, t, last, rng.dirichlet(np.ones(4)), out[t - 1])
        last = int(rng.integers(4))
    return out


@pytest.mark.parametrize("name", sorted({*adversaries()} - {"Replay"}))  # that has its own arms
def test_it_keeps_the_contract(name):
    check_adversary(adversaries()[name](**NEEDED.get(name, {})))


def test_losses_are_finite_and_those_of_the_key(make):
    losses = played(make())
    assert np.isfinite(losses).all()
    assert np.array_equal(losses, played(make()))


def test_who_does_not_look_writes_the_same_in_any_order_against_anybody(make):
    losses = played(make())
    same = np.array_equal(losses, played(make(), seed=1, order=range(ROUNDS, 0, -1)))
    assert same != make().looks


def test_scale_and_shift(make):
    """Through the compiled pointer, as the simulator gets them."""
    q = np.array([0.1, 0.2, 0.3, 0.4])
    plain = losses_of(make(), rounds=ROUNDS, q=q)
    for adversary, expected in (
        (make(), plain),
        (make(scale=-8.0, shift=3.0), -8.0 * plain + 3.0),
    ):
        params, state = adversary.begin(4, ROUNDS, 17)
        out = np.empty((ROUNDS, 4))
        rows = 1 if adversary.looks else 7  # at once
        for t in range(1, ROUNDS + 1, rows):
            last_arm = -1 if t == 1 else 0
            _call(adversary.rows()(), params, state, t, last_arm, q, out[t - 1 : t - 1 + rows])
        assert np.array_equal(out, expected)


@njit
def _call(rows, params, state, t, last_arm, q, out):
    rows(params, state, t, last_arm, q, out)


def test_an_entry_is_what_fill_writes(make):
    cls = type(make())
    if cls.entry is None:
        with pytest.raises(TypeError, match="cannot tell the loss of one arm"):
            cls.loss_of()
        return
    params, state = make().begin(4, ROUNDS, KEY)
    entries = [[cls.entry(params[2:], state, t, k) for k in range(4)] for t in range(1, ROUNDS + 1)]
    assert np.array_equal(entries, played(make()))


def test_expected_losses_are_the_means(make):
    cls = type(make())
    if cls.expected is None:
        return
    total, squares, many = np.zeros(4), np.zeros(4), 20
    q, out, means = np.full(4, 0.25), np.empty(4), np.empty(4)
    for key in range(many):
        params, state = make().begin(4, ROUNDS, key)
        last, rng = -1, np.random.default_rng(key)
        for t in range(1, ROUNDS + 1):
            cls.fill(params[2:], state, t, last, q, out)
            size = cls.expected(params[2:], state, t, means)
            difference = (out - means) / size
            total += difference
            squares += difference * difference
            last = int(rng.integers(4))
    error = np.sqrt(squares)
    assert (np.abs(total) < 4.0 * error).all()
    assert (np.abs(total + 0.5 * np.sqrt(squares * many * ROUNDS)) > 4.0 * error).all()  # control


def test_settings_are_documented_and_shown(make):
    cls = type(make())
    names = set(inspect.signature(cls).parameters)
    documented = cls.__doc__.partition("Parameters")[2]
    for name in names - {"scale", "shift"}:  # which `Adversary` documents
        assert f"{name} :" in documented or f"{name}, " in documented, name
    shown = repr(make(scale=2.0))
    assert shown.startswith(f"{cls.__name__}(")
    assert shown.endswith("scale=2.0, shift=0.0)")


def test_scale_and_shift_must_be_finite(make):
    for name in ("scale", "shift"):
        with pytest.raises(ValueError, match=f"{name} must be finite"):
            make(**{name: np.inf})


def test_a_simulation_against_it_is_the_same_interpreted(make, monkeypatch):
    assert_same(each_way(monkeypatch, lambda: simulate(Uniform(4), make(), 50, 2, 1)))
