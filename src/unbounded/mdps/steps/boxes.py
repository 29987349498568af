"""The confidence set of a learner: counts of transitions, boxes, upper occupancy bounds.

How boxes are made is in `core.occupancy.confidence`; here they are kept, renewed and used.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbounded.core.arrays import Counts, Integers, IntScratch, Scratch, Vector, require_boxes
from unbounded.core.occupancy import confidence
from unbounded.core.occupancy.confidence import Bernstein
from unbounded.core.occupancy.layout import Layers
from unbounded.core.occupancy.upper import scratch, spare_mass, u_everywhere, u_unknown
from unbounded.jit.kernel import assign, kernel, subroutine


class Boxes(NamedTuple):
    """Counts, and the boxes ``lo <= P <= hi`` that were made of them."""

    N: Counts  # pairs: visits
    N_before: Counts  # pairs: visits that the boxes were made from
    M: Counts  # triples: transitions seen
    lo: Vector  # triples
    hi: Vector  # triples
    spare: Vector  # pairs: 1 - sum lo
    values: Scratch  # of the upper occupancy bounds
    order: IntScratch  # likewise

    def check(self) -> None:
        """Reject boxes that hold no distribution."""
        require_boxes(self.lo, self.hi)


def new_boxes(layers: Layers, possible: Vector) -> Boxes:
    """Return whole simplices but for what is not ``possible`` (1 or 0; empty: all is)."""
    X, T = layers.n_pairs, layers.n_transitions
    hi = possible.copy() if possible.size else np.ones(T)
    return _boxes(layers, np.zeros(X), np.zeros(T), np.zeros(T), hi)


def known_boxes(layers: Layers, P: Vector) -> Boxes:
    """Return boxes that hold only the transitions ``P``; nothing is counted."""
    return _boxes(layers, np.zeros(0), np.zeros(0), P.copy(), P.copy())


def _boxes(layers: Layers, N: Vector, M: Vector, lo: Vector, hi: Vector) -> Boxes:
    values, order = scratch(layers)
    spare = np.zeros(layers.n_pairs)
    spare_mass(layers.table, lo, spare)
    return Boxes(N, N.copy(), M, lo, hi, spare, np.zeros_like(values), np.zeros_like(order))


# Kernels


@kernel
def count_episode(lay: Integers, boxes: Boxes, states: Integers, actions: Integers) -> bool:
    """Count an episode; return whether some visited pair has doubled its visits."""
    return confidence.count(lay, states, actions, boxes.N, boxes.M, boxes.N_before)


@subroutine
def renew(lay: Integers, boxes: Boxes, ln_: float, width: Bernstein, growth: float) -> bool:
    """Make nested boxes anew where visits are ``growth`` times what they were made from; return
    whether any changed."""
    changed = confidence.renew(
        lay, boxes.N, boxes.N_before, boxes.M, ln_, width.c1, width.c2, growth, boxes.lo, boxes.hi
    )
    if changed:
        spare_mass(lay, boxes.lo, boxes.spare)
    return changed


@subroutine
def renew_visited(
    lay: Integers, boxes: Boxes, log_term: float, width: float, states: Integers,
    actions: Integers,
) -> bool:  # fmt: skip
    """Make boxes of the KL divergence, for those visited pairs that have doubled their visits."""
    changed = confidence.narrow(
        lay, states, actions, boxes.N, boxes.N_before, boxes.M, log_term, width, boxes.lo, boxes.hi
    )
    if changed:
        spare_mass(lay, boxes.lo, boxes.spare)
    return changed


@subroutine
def rebuild(lay: Integers, boxes: Boxes, ln_: float, width: Bernstein) -> None:
    """Make all boxes anew, not nested."""
    assign(boxes.N_before, boxes.N)
    confidence.rebuild(lay, boxes.N, boxes.M, ln_, width.c1, width.c2, False, boxes.lo, boxes.hi)
    spare_mass(lay, boxes.lo, boxes.spare)


@kernel
def bound_visited(lay: Integers, boxes: Boxes, pi: Vector, states: Integers, u: Vector) -> None:
    """Comp-UOB: fill ``u`` of the visited states, where it is -1, with how often ``pi`` can reach
    them under any transitions in the boxes."""
    u_unknown(lay, boxes.lo, boxes.hi, boxes.spare, pi, states, u, boxes.values, boxes.order)


@kernel
def bound_layers(
    lay: Integers, boxes: Boxes, pi: Vector, wanted: Vector, u: Vector, buffer: Vector
) -> None:
    """Do the same for all states of the layers where ``wanted`` is positive; ``buffer`` is the
    solver's scratch."""
    u_everywhere(
        lay, boxes.lo, boxes.hi, boxes.spare, pi, wanted, u, boxes.values, boxes.order, buffer
    )
