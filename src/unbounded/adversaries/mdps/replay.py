"""Losses of MDPs, replayed from arrays or from a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from unbounded.adversaries._recorded import Recorded, from_file, in_memory
from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, Layers, horizon
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import OWN, SCALE, MDPAdversary
from unbounded.validation import Nested, checked_flag, naming

# Slots of the params: how many numbers a row has, and whether these are without the end. Then rows.
_WIDTH, _ENDLESS, _ROWS = range(OWN, OWN + 3)


@kernel
def _fill(params: Vector, t: int, q: Vector, lay: Integers, out: Vector) -> None:
    width = int(params[_WIDTH])
    k = _ROWS + ((t - 1) % ((params.size - _ROWS) // width)) * width
    out[0] = 0.0
    for h in range(1, horizon(lay) + 1):
        n = lay[SIZE, h]
        if h > 1 and params[_ENDLESS] > 0.0:
            n -= 1
        end = lay[PAIR, h] + n * lay[ACTIONS, h]
        for p in range(lay[PAIR, h], end):
            out[p] = params[SCALE] * params[k]
            k += 1
        for p in range(end, lay[PAIR, h + 1]):
            out[p] = 0.0


class MDPReplay(MDPAdversary):
    """The losses of episode t are entry t of an array.

    Parameters
    ----------
    losses : array_like of shape (T, H, S, A), or a list of H arrays (T, n_h, A)
        Of every state and action in every step of every episode. Or of shape (T, pairs), with the
        pairs of a step after those of the one before, and state by state. The end of episodes that
        end early may be left out. Finite, but for actions that are not allowed. An array that is
        mapped from a file is not read as a whole.
    path : str
        Instead of ``losses``, a file: ``.npy`` with such an array (float64 in C order is mapped,
        and not read as a whole), or ``.parquet`` with one row per episode and one column per pair
        (needs ``polars`` or ``pyarrow``).
    columns : sequence of str
        Which columns of a Parquet file, in the order of the pairs; all by default.
    repeat : bool
        Whether to begin again after the last episode. If not, more episodes are an error.

    Examples
    --------
    >>> import numpy as np
    >>> from unbounded import LayeredMDP, UniformPolicy, simulate_mdp
    >>> from unbounded.adversaries.mdps import MDPReplay
    >>> mdp = LayeredMDP.from_arrays(np.full((2, 2, 2), 0.5), [0.5, 0.5], horizon=3)
    >>> losses = np.random.default_rng(0).random((100, 3, 2, 2))
    >>> result = simulate_mdp(UniformPolicy.for_mdp(mdp), mdp, MDPReplay(losses), 100, seed=0)
    >>> bool(result.high.max() == losses.max())
    True
    """

    fill = _fill
    draws = False

    def __init__(
        self,
        losses: Annotated[ArrayLike | Sequence[ArrayLike] | None, Nested(4)] = None,
        *,
        path: str | None = None,
        columns: Sequence[str] | None = None,
        repeat: bool = False,
        scale: float = 1.0,
    ) -> None:
        if (losses is None) == (path is None):
            raise TypeError("MDPReplay needs losses, or the path of a file")
        self._repeat = checked_flag("repeat", repeat)
        self._sizes: list[int] | None = None  # states of each layer, if tables were given
        self._given = "losses" if path is None else "path"
        with naming(self._given):
            if path is not None:
                self.path = path
                self._recorded = from_file(path, columns, (".npy", ".parquet"))
            elif isinstance(losses, list | tuple) and any(
                isinstance(x, np.ndarray) for x in losses
            ):
                self._recorded = self._joined(losses)
            elif losses is not None:
                wanted = "(T, H, S, A) or (T, pairs), or be a list of H arrays (T, n_h, A)"
                self._recorded = in_memory(losses, (2, 4), wanted)
            shape = self._recorded.shape
            if len(shape) not in (2, 4):
                raise ValueError(f"losses must have shape (T, H, S, A) or (T, pairs), got {shape}")
            if len(shape) == 4:
                self._sizes = [shape[2]] * shape[1]
        super().__init__(scale=scale)

    def _joined(self, losses: Sequence[Any]) -> Recorded:
        """Return tables of each layer as rows."""
        tables = [np.asarray(table, np.float64) for table in losses]
        if len({(table.shape[0], table.shape[-1]) for table in tables}) > 1 or any(
            table.ndim != 3 for table in tables
        ):
            raise ValueError(
                "losses of several layers must have shapes (T, n_h, A), with one T and one A; got "
                f"{[table.shape for table in tables]}"
            )
        self._sizes = [table.shape[1] for table in tables]
        return in_memory(np.concatenate(tables, axis=1).reshape(len(tables[0]), -1), (2,), "")

    @property
    def largest(self) -> float:
        return self._recorded.largest

    def fits(self, mdp: LayeredMDP, episodes: int) -> None:
        with naming(self._given):
            self._endless(mdp.layers)
            self._recorded.check_count(episodes, "episodes", self._repeat)

    def _endless(self, layers: Layers) -> bool:
        """Return whether the rows leave out the end; an error if they are for something else."""
        with_end = list(layers.sizes)
        without = [with_end[0], *(n - 1 for n in with_end[1:])]
        shape, A = self._recorded.shape, layers.n_actions
        for endless, sizes in ((False, with_end), (True, without))[: 1 + layers.ends]:
            right = self._sizes in (None, sizes) and (len(shape) == 2 or shape[3] == A)
            if right and self._recorded.width == A * sum(sizes):
                self._check_finite(layers, sizes)
                return endless
        wanted = without if layers.ends else with_end
        given = f"shape {shape}" if self._sizes is None else f"{self._sizes} states in {shape}"
        raise ValueError(
            f"{self._recorded.name} must have losses of {wanted} states with {A} actions, "
            f"{A * sum(wanted)} in each episode; got {given}"
        )

    def _check_finite(self, layers: Layers, sizes: list[int]) -> None:
        tables = zip(layers.allowed, sizes, strict=True)
        legal = np.concatenate([table[:n].ravel() for table, n in tables])
        first = np.cumsum([0, *sizes]) * layers.n_actions

        def place(t: int, k: int) -> str:
            h = int(np.searchsorted(first, k, side="right")) - 1
            s, a = divmod(k - int(first[h]), layers.n_actions)
            return f"episode {t}, layer {h}, state {s}, action {a}"

        self._recorded.check_finite(place, np.flatnonzero(~legal))

    def begin(self, mdp: LayeredMDP, episodes: int, key: int) -> Vector:
        self.fits(mdp, episodes)
        numbers = (self.scale, episodes, key, self._recorded.width, self._endless(mdp.layers))
        return self._recorded.params(numbers)
