"""The bases of adversaries, and adversaries in Python of MDPs."""

import numpy as np
import pytest

from unbounded import worlds
from unbounded.adversaries import Adversary
from unbounded.simulation.adversary import MDPAdversary, PythonPlay, fill_python

MDP = worlds.dirichlet([2, 3], 2, np.random.default_rng(0))


class Tall(MDPAdversary):
    """Losses up to ``height``."""

    def __init__(self, height=1.0, *, scale=1.0):
        self.height = height
        self._hidden = "not a setting"
        super().__init__(scale=scale)

    @property
    def largest(self):
        return self.height

    def params(self, mdp, episodes):
        return self.height, mdp.layers.n_pairs


def test_params_begin_with_scale_episodes_and_key():
    assert Tall(3.0, scale=0.5).begin(MDP, 100, 12345).tolist() == [0.5, 100, 12345, 3.0, 11]
    assert MDPAdversary().begin(MDP, 7, 2**53 - 1).tolist() == [1.0, 7, 2**53 - 1]


def test_the_largest_loss_must_be_finite():
    most = np.finfo(float).max
    assert Tall(1.0, scale=-most).scale == -most
    for height, scale in ((2.0, most), (2.0, -most), (1.0, np.inf), (1.0, np.nan)):
        with pytest.raises(ValueError, match=f"the largest loss, {height:g} times scale, must be"):
            Tall(height, scale=scale)


def test_settings_are_shown():
    assert repr(Tall(3.0)) == "Tall(height=3.0, scale=1.0)"
    assert repr(Adversary(shift=2)) == "Adversary(scale=1.0, shift=2.0)"


def python_losses(returned, t=1):
    """What `fill_python` writes, and what the adversary was given."""
    given = []

    def adversary(*seen):
        given.extend(seen)
        return returned

    last = np.array([1, 2]), np.array([0, 1])
    play = PythonPlay(adversary, MDP.layers, np.random.default_rng(0), *last)
    out, q = np.full(11, np.nan), np.arange(11.0)
    fill_python(play, t, q, MDP.layers.table, out)
    for seen in (*given[2], *(given[1] or ())):
        seen[:] = -1  # copies: nobody minds
    assert q.tolist() == list(range(11))
    assert play.states.tolist() == [1, 2]
    assert play.actions.tolist() == [0, 1]
    return out, given


def test_losses_of_an_adversary_in_python():
    losses = [[[1, 2], [3, 4]], np.arange(5.0, 11.0).reshape(3, 2)]
    assert python_losses(losses)[0].tolist() == list(range(11))


def test_what_an_adversary_in_python_sees():
    zeros = [np.zeros((2, 2)), np.zeros((3, 2))]
    _, (t, last, q, _) = python_losses(zeros)
    assert (t, last) == (1, None)
    assert [table.shape for table in q] == [(2, 2), (3, 2)]
    _, (t, last, _, _) = python_losses(zeros, t=2)
    assert (t, len(last)) == (2, 2)


@pytest.mark.parametrize("wrong", [None, 1.0, [np.zeros((2, 2))], ["a", "b"]])
def test_losses_in_python_have_the_shapes_of_the_layers(wrong):
    with pytest.raises(ValueError, match=r"per layer, of shapes \[\(2, 2\), \(3, 2\)\].* t = 4"):
        python_losses(wrong, t=4)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_losses_in_python_are_finite(value):
    losses = [np.zeros((2, 2)), np.zeros((3, 2))]
    losses[1][2, 0] = value
    with pytest.raises(ValueError, match=r"finite losses, got .* in layer 1 at t = 4"):
        python_losses(losses, t=4)


@pytest.mark.parametrize("base", [Adversary, MDPAdversary])
@pytest.mark.parametrize("name", ["begin", "params", "looks"])
def test_a_setting_cannot_shadow_a_method_or_an_attribute(base, name):
    namespace = {}
    exec(f"def __init__(self, {name}=1.0): self.{name} = {name}", namespace)
    with pytest.raises(TypeError, match=f"{name} cannot be a setting of Mine"):
        type("Mine", (base,), {"__init__": namespace["__init__"]})


def test_a_field_of_a_dataclass_cannot_shadow_a_method_either():
    with pytest.raises(TypeError, match="begin cannot be a setting of Mine"):
        type("Mine", (Adversary,), {"__annotations__": {"begin": "float"}, "begin": 1.0})


def test_other_settings_and_attributes_are_allowed():
    class Mine(Adversary):
        looks: bool = True
        other = 3.0

        def __init__(self, start=0.5, *, scale=1.0):
            super().__init__(scale=scale)
            self.start = start

    class Narrower(Mine):
        def __init__(self, start=0.25):
            super().__init__(start, scale=2.0)

    assert repr(Narrower()) == "Narrower(start=0.25, scale=2.0, shift=0.0)"
