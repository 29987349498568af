"""The kernels of `unbounded.extend` check sizes and indices, interpreted and compiled."""

from typing import NamedTuple

import numpy as np
import pytest

from unbounded import extend
from unbounded.extend import Anchor, Law, Layers, Vector, empty_windows, new_law
from unbounded.jit.interpreter import quietly

LAYERS = Layers([2, 3], n_actions=2)
LAY, PAIRS, STATES = LAYERS.table, np.zeros(LAYERS.n_pairs), np.zeros(LAYERS.n_states)
P = np.zeros(LAYERS.n_transitions)
SHORT = np.zeros(1)
START = Anchor(-1.0, 0.0, 0.0, 0.0)
BROKEN = Law(np.full(40, 1 / 40), np.zeros(1), np.zeros(1))
NO_ARMS = Law(np.zeros(0), np.zeros(32), np.zeros(128))
WINDOWS = empty_windows(2)

WRONG = {
    "assign, more values": ("assign", (np.zeros(3), np.ones(500))),
    "assign, fewer values": ("assign", (np.zeros(3), np.ones(2))),
    "fill, a short q": ("fill", (new_law(500), np.zeros(3))),
    "fill, a long q": ("fill", (new_law(3), np.zeros(4))),
    "mix": ("mix", (BROKEN, 1.0, 0.0)),
    "make_uniform": ("make_uniform", (BROKEN,)),
    "put_all_on, past the end": ("put_all_on", (new_law(3), 3)),
    "put_all_on, before the beginning": ("put_all_on", (new_law(3), -1)),
    "sample": ("sample", (BROKEN, 5)),
    "sample, no arms": ("sample", (NO_ARMS, 5)),
    "shannon_mixed": ("shannon_mixed", (np.zeros(500), 1.0, 0.1, new_law(3))),
    "shannon_mixed, fewer": ("shannon_mixed", (np.zeros(2), 1.0, 0.1, new_law(3))),
    "tsallis_cold": ("tsallis_cold", (np.zeros(0), 1.0)),
    "tsallis_mixed": ("tsallis_mixed", (np.zeros(500), 1.0, START, 0.1, new_law(3))),
    "log_barrier_mixed": ("log_barrier_mixed", (np.zeros(500), 1.0, -1.0, new_law(3))),
    "clip_each": ("clip_each", (WINDOWS, extend.RANGE, 0, np.zeros(500))),
    "clip_each, its scratch": (
        "clip_each",
        (empty_windows(3)._replace(l_plus=SHORT), extend.RANGE, 0, np.zeros(3)),
    ),
    "roll_forward, pi": ("roll_forward", (LAY, P, SHORT, STATES, PAIRS)),
    "roll_forward, mass": ("roll_forward", (LAY, P, PAIRS, SHORT, PAIRS)),
    "roll_forward, q": ("roll_forward", (LAY, P, PAIRS, STATES, SHORT)),
    "roll_forward, P": ("roll_forward", (LAY, SHORT, PAIRS, STATES, PAIRS)),
    "condition, q": ("condition", (LAY, SHORT, PAIRS)),
    "condition, pi": ("condition", (LAY, PAIRS, SHORT)),
    "backward_induction, losses": ("backward_induction", (LAY, P, SHORT, STATES, PAIRS)),
    "backward_induction, value": ("backward_induction", (LAY, P, PAIRS, SHORT, PAIRS)),
    "backward_induction, pi": ("backward_induction", (LAY, P, PAIRS, STATES, SHORT)),
    "backward_induction, P": ("backward_induction", (LAY, SHORT, PAIRS, STATES, PAIRS)),
}


@pytest.mark.parametrize("how", ["compiled", "interpreted"])
@pytest.mark.parametrize("case", WRONG)
def test_sizes_and_indices_are_checked(case, how):
    name, arguments = WRONG[case]
    function = getattr(extend, name)
    with pytest.raises(ValueError, match=r"size|entr|arm|windows"):
        (function if how == "compiled" else quietly(function))(*arguments)


@extend.kernel
def copy(out, values):
    extend_assign(out, values)


@extend.subroutine
def copy_twice(out, values):
    copy(out, values)
    extend_assign(values, out)


extend_assign, extend_fill = extend.assign, extend.fill


@extend.kernel
def copy_out(law, q):
    extend_fill(law, q)
    return q[0]


def test_kernels_of_users_are_told_too():
    for kernel in (copy, copy_twice):
        with pytest.raises(ValueError, match="assign"):
            kernel(np.zeros(3), np.ones(1000))
    with pytest.raises(ValueError, match="fill"):
        copy_out(new_law(1000), np.zeros(3))


def test_nothing_was_written_before_an_error():
    out = np.arange(3.0)
    with pytest.raises(ValueError, match="assign"):
        copy(out, np.full(4, 7.0))
    assert out.tolist() == [0.0, 1.0, 2.0]


def test_what_fits_is_done():
    out, law = np.zeros(3), new_law(3)
    copy(out, np.ones(3))
    assert out.tolist() == [1.0, 1.0, 1.0]
    extend.put_all_on(law, 2)
    assert (copy_out(law, out), extend.sample(law, 1)) == (0.0, (2, 1.0))
    policy, mass, q = np.full(LAYERS.n_pairs, 0.5), STATES.copy(), PAIRS.copy()
    extend.condition(LAY, PAIRS, policy)
    extend.roll_forward(LAY, P, policy, mass, q)
    assert extend.backward_induction(LAY, P, PAIRS, mass, policy) == 0.0


class State(NamedTuple):
    pi: Vector


def test_the_steps_for_a_policy_are_checked_too():
    cache = extend.Cache(PAIRS, np.zeros(1), PAIRS, STATES)
    with pytest.raises(ValueError, match="assign"):
        extend.markov_act(LAY, (), State(PAIRS), 5, SHORT)
    with pytest.raises(ValueError, match="n_pairs"):
        extend.markov_distribution(LAY, (), State(SHORT), P, cache, PAIRS)
