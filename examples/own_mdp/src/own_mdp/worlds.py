"""A world of our own: a function that returns an MDP."""

import numpy as np

from unbounded.extend import LayeredMDP


def corridor(length=4, slip=0.1):
    """Two lanes: action 0 stays in the lane, action 1 changes it, and sometimes one slips."""
    stay = np.array([[1.0 - slip, slip], [slip, 1.0 - slip]])
    moves = np.stack([stay, stay[::-1]], axis=1)  # from the lane, by the action, to the lane
    return LayeredMDP([1.0, 0.0], [moves] * (length - 1))
