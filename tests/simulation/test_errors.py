"""What a compiled adversary raises ends the play, as it does when it is interpreted."""

import sys

import numpy as np
import pytest

from unbounded import SCB, UniformPolicy, settings, simulate, simulate_mdp, worlds
from unbounded.extend import Adversary, MDPAdversary
from unbounded.simulation.adversary import adversary_errors


def fill(params, state, t, last_arm, q, out):
    if t == 50:
        raise ValueError("there is no round 50")
    out[:] = 1.0


def entry(params, state, t, k):
    if t == 50:
        raise ValueError("there is no round 50")
    return 1.0


def fill_pairs(params, t, q, lay, out):
    if t == 50:
        raise ValueError("there is no round 50")
    out[:] = 0.0


Raising = type("Raising", (Adversary,), {"fill": fill, "entry": entry})
RaisingEpisodes = type("RaisingEpisodes", (MDPAdversary,), {"fill": fill_pairs})


@pytest.mark.parametrize("jit", ["always", "never"])
@pytest.mark.parametrize("options", [{}, {"comparators": [0]}])
def test_an_error_of_an_adversary_ends_the_play(monkeypatch, jit, options):
    monkeypatch.setattr(settings, "jit", jit)
    before = sys.unraisablehook
    with pytest.raises(ValueError, match="there is no round 50"):
        simulate(SCB(3), Raising(), rounds=100, replicates=2, **options)
    assert sys.unraisablehook is before
    assert simulate(SCB(3), Raising(), rounds=49, **options).regret.size > 0


@pytest.mark.parametrize("jit", ["always", "never"])
def test_an_error_of_an_adversary_of_mdps_ends_the_play(monkeypatch, jit):
    monkeypatch.setattr(settings, "jit", jit)
    mdp = worlds.dirichlet([2, 3], 2, np.random.default_rng(0))
    with pytest.raises(ValueError, match="there is no round 50"):
        simulate_mdp(UniformPolicy([2, 3], 2), mdp, RaisingEpisodes(), 100)


def test_errors_of_others_are_said_as_before(monkeypatch):
    heard = []
    monkeypatch.setattr(sys, "unraisablehook", lambda error: heard.append(str(error.exc_value)))

    class Dying:
        def __del__(self):
            raise ValueError("at the end")

    with adversary_errors():
        Dying()
    assert heard == ["at the end"]
