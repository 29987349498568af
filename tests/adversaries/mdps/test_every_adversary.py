"""What must hold for every adversary of MDPs; a new class is tested as it is."""

from __future__ import annotations

import hashlib
import inspect
import os
import subprocess
import sys

import numpy as np
import pytest
from numba import njit

from loss_helpers import WORLDS, filled, some_q
from paces import assert_same, each_way
from unbounded import UniformPolicy, simulate_mdp
from unbounded import adversaries as for_bandits
from unbounded.adversaries import mdps
from unbounded.adversaries.mdps import adversaries
from unbounded.testing import check_adversary

T, KEY = 40, 2**53 - 11
MDP = WORLDS["dirichlet"]


DEFAULTS = {name: cls for name, cls in adversaries().items() if name != "MDPReplay"}  # needs losses


@pytest.fixture(params=DEFAULTS)
def cls(request):
    return DEFAULTS[request.param]


def played(adversary, seed=0, order=range(1, T + 1), key=KEY):
    """Losses against random q, of the episodes in a given order."""
    out = np.full((T, MDP.layers.n_pairs), np.nan)
    for t in order:
        out[t - 1] = filled(adversary, MDP, T, t, some_q(MDP, 1000 * seed + t), key)
    return out


def test_names_can_be_imported():
    assert mdps.Switch is adversaries()["Switch"]
    assert for_bandits.Switch is not mdps.Switch
    assert set(adversaries()) < set(mdps.__all__)
    assert set(for_bandits.bandits.adversaries()) < set(for_bandits.__all__)


def test_it_keeps_the_contract(cls):
    check_adversary(cls())


def test_losses_are_finite_and_bounded(cls):
    losses = played(cls())
    assert np.isfinite(losses).all()
    assert np.abs(losses).max() <= cls().largest
    assert not losses[:, 0].any()


def test_losses_are_a_function_of_key_and_episode(cls):
    losses = played(cls())
    assert np.array_equal(losses, played(cls(), order=range(T, 0, -1)))
    assert np.array_equal(losses, played(cls(), key=KEY - 1)) != cls.draws


def test_only_who_looks_depends_on_the_learner(cls):
    assert np.array_equal(played(cls()), played(cls(), seed=1)) != cls.looks


@pytest.mark.parametrize("k", [-900, -1, 7, 900])
def test_a_power_of_two_multiplies_exactly(cls, k):
    assert np.array_equal(played(cls(scale=2.0**k)), np.ldexp(played(cls()), k))
    assert np.array_equal(played(cls(scale=-(2.0**k))), -np.ldexp(played(cls()), k))


def test_the_pointer_is_fill(cls):
    adversary = cls(scale=3.7)
    for mdp in WORLDS.values():
        q, out = some_q(mdp, 3), np.full(mdp.layers.n_pairs, np.nan)
        for t in (1, T // 2, T // 2 + 1, T):
            _call(adversary.filler()(), adversary.begin(mdp, T, KEY), t, q, mdp.layers.table, out)
            assert np.array_equal(out, filled(adversary, mdp, T, t, q, KEY))


@njit
def _call(losses, params, t, q, lay, out):
    losses(params, t, q, lay, out)


def test_the_scale_must_leave_losses_finite(cls):
    largest = np.finfo(float).max / cls().largest
    assert np.isfinite(played(cls(scale=largest))).all()
    for scale in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="times scale, must be finite"):
            cls(scale=scale)


def test_settings_are_documented_and_shown(cls):
    parameters = inspect.signature(cls).parameters
    documented = cls.__doc__.partition("Examples")
    for name in parameters.keys() - {"scale"}:  # which `MDPAdversary` documents
        assert f"{name} :" in documented[0] or f"{name}, " in documented[0], name
    assert ">>> " in documented[2]
    defaults = ", ".join(f"{name}={p.default!r}" for name, p in parameters.items())
    assert repr(cls()) == f"{cls.__name__}({defaults})"


def fingerprint():
    """Of losses by every pointer, called from Python."""
    digest = hashlib.sha256()
    q, out = some_q(MDP, 3), np.empty(MDP.layers.n_pairs)
    for cls in DEFAULTS.values():
        for t in (1, 3, T):
            run = cls.filler()() if os.environ.get("NUMBA_DISABLE_JIT") else cls.fill
            run(cls(scale=3.7).begin(MDP, T, KEY), t, q, MDP.layers.table, out)
            digest.update(out.tobytes())
    return digest.hexdigest()


def test_without_compiler_losses_are_the_same():
    program = (
        f"import importlib.util as u; s = u.spec_from_file_location('it', {__file__!r}); "
        "m = u.module_from_spec(s); s.loader.exec_module(m); print(m.fingerprint())"
    )
    paths = os.pathsep.join(sys.path)
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == fingerprint()


def test_a_simulation_against_it_is_the_same_interpreted(cls, monkeypatch):
    learner = UniformPolicy(MDP.layers.sizes, MDP.layers.n_actions)
    assert_same(each_way(monkeypatch, lambda: simulate_mdp(learner, MDP, cls(), 50, 2, 1)))
