"""The range of the losses of each layer, as it may be told."""

import numpy as np
import pytest

from unbounded.core.occupancy.layout import Layers
from unbounded.mdps.steps.loss_ranges import checked_ranges

LAYERS = Layers([2, 3], 2)


def test_one_for_all_layers_or_one_for_each():
    assert checked_ranges((-1, 2), LAYERS).tolist() == [[-1.0, 2.0], [-1.0, 2.0]]
    assert checked_ranges([(0, 1), (-5, 5)], LAYERS).tolist() == [[0.0, 1.0], [-5.0, 5.0]]
    one = Layers([2], 2)
    assert checked_ranges((-1, 2), one).tolist() == checked_ranges([(-1, 2)], one).tolist()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ((1, 1), "low < high"),
        ((0, np.inf), "finite low < high"),
        ((-1.7e308, 1.7e308), "finite"),  # its width is not
        ([(0, 1), (2, 1)], "low < high"),
        ([(0, 1)] * 3, r"2 such pairs; got shape \(3, 2\)"),
        (1.0, "must be"),
        ([1, 2, 3], "must be"),
    ],
)
def test_what_is_no_range(wrong, message):
    with pytest.raises(ValueError, match=message):
        checked_ranges(wrong, LAYERS)
