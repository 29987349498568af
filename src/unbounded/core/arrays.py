"""The arrays that kernels work on."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Integers = NDArray[np.int64]

# Vectors of a state that hold nothing from one step to the next; they are not kept.
Room = Annotated[Vector, "room"]
IntegerRoom = Annotated[Integers, "room"]
