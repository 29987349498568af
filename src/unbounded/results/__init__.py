"""What a result offers beside its arrays: a line, a summary, a frame, a chart, a file.

How that is done stands in `summary`, `tables` and `drawing`, which are imported when they are
wanted, and by their names as text: the experiment runner keys its results by a hash of all that the
simulators import, and no number depends on how it is shown.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from unbounded.learners.seeds import CHOICES, replicate_seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from unbounded.results.summary import Summary


class Shown(NamedTuple):
    """Which regret is shown, what it is called, and what it is relative to."""

    column: str
    name: str
    unit: str


BANDITS = Shown("regret", "regret", "range")
"""Of bandits the realized regret, over the range of the losses."""

MDPS = Shown("pseudo_regret", "pseudo-regret", "Σℓ∞")
"""Of MDPs the expected one, which is exact and less noisy."""


class Results(ABC):
    """Base of `Simulation`, `MDPSimulation` and `Comparison`."""

    @abstractmethod
    def _named(self) -> Mapping[str, Played]:
        """Return the learners by the names they go by."""

    def __repr__(self) -> str:
        return str(_later("summary").one_line(type(self).__name__, self._named()))

    def _repr_html_(self) -> str:
        """For notebooks: the line and the summary."""
        return str(_later("summary").html(type(self).__name__, self._named()))

    def summary(self) -> Summary:
        """Summarize the regret at the end; of a comparison also against the first learner.

        Returns
        -------
        Summary
            Prints as a table; ``lines`` are the numbers.

        Examples
        --------
        >>> from unbounded import Uniform, simulate
        >>> result = simulate(Uniform(2), lambda t, arm, q, rng: [0.0, 1.0], 100, 4, seed=1)
        >>> [line] = result.summary().lines
        >>> line.learner, line.replicates, line.relative - result.regret[:, -1].mean()
        ('Uniform', 4, np.float64(0.0))
        """
        summary: Summary = _later("summary").summary(self._named())
        return summary

    def to_frame(self, library: Literal["polars", "pandas"] = "polars") -> Any:
        """Return a row for each learner, replicate and checkpoint.

        Columns have the names and the meaning of those of experiments.

        Parameters
        ----------
        library : {"polars", "pandas"}
            Whose frame it is.

        Examples
        --------
        >>> from unbounded import Uniform, simulate
        >>> result = simulate(Uniform(2), lambda t, arm, q, rng: [0.0, 1.0], 100, 4, seed=1)
        >>> result.to_frame().select("learner", "replicate", "round").row(-1)
        ('Uniform', 3, 100)
        """
        return _later("tables").frame(self._named(), library)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        relative: bool = True,
        log: bool | None = None,
        interval: bool = True,
        what: Literal["regret", "dynamic", "switching", "best"] = "regret",
    ) -> Axes:
        """Plot mean regret over time, one line for each learner, with a 95% interval of the mean.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to; by default in a figure of its own.
        relative : bool
            Whether to divide by the range of the losses so far (of MDPs, by the sum over layers of
            the largest absolute loss so far).
        log : bool, optional
            Whether axes are logarithmic; by default if that shows most of the curves.
        interval : bool
            Whether to draw the intervals: Student's, over replicates, for each round by itself.
        what : {"regret", "dynamic", "switching", "best"}
            Regret; dynamic regret; regret against the best sequence with few switches; the
            probability of the arm that is best at the moment. All but the first are of bandits, and
            must have been followed by ``simulate(..., dynamic=True, switches=...)``.

        Returns
        -------
        matplotlib Axes

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> from unbounded import Uniform, simulate
        >>> result = simulate(Uniform(2), lambda t, arm, q, rng: [0.0, 1.0], 100, 4, seed=1)
        >>> result.plot().get_ylabel()
        'regret / range'
        """
        axes: Axes = _later("plot").drawn(
            self._named(), ax, relative=relative, log=log, interval=interval, what=what
        )
        return axes

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a Parquet file, whole or not at all.

        Others can read it as a table: it has the columns of `to_frame`, and behind them what
        `load` needs.

        Examples
        --------
        >>> import tempfile
        >>> from unbounded import Simulation, Uniform, simulate
        >>> result = simulate(Uniform(2), lambda t, arm, q, rng: [0.0, 1.0], 100, 4, seed=1)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     result.save(f"{directory}/uniform.parquet")
        ...     again = Simulation.load(f"{directory}/uniform.parquet")
        >>> bool((again.regret == result.regret).all())
        True
        """
        _later("tables").save(path, type(self).__name__, self._named())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load what `save` has written, bit for bit; raise ValueError for a damaged file."""
        return cls._of(_later("tables").load(path, cls.__name__))

    @classmethod
    @abstractmethod
    def _of(cls, named: Mapping[str, Any]) -> Self:
        """Return the inverse of `_named`."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Played(Results):
    """Base of the results of one learner."""

    shown: ClassVar[Shown]
    length: ClassVar[str]  # what rounds are called

    learner: str
    adversary: str
    checkpoints: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    clipped: NDArray[np.int64]
    # Sums times a unit, so that none overflows.
    _paid: NDArray[np.float64]
    _best: NDArray[np.float64]
    _expected: NDArray[np.float64]
    _unit: NDArray[np.float64]
    _root: SeedSequence
    _first: int

    @property
    def regret(self) -> NDArray[np.float64]:
        """Realized regret, what was paid minus the losses of the best fixed arm or policy."""
        with np.errstate(over="ignore"):
            return (self._paid - self._best) / self._unit

    @property
    def pseudo_regret(self) -> NDArray[np.float64]:
        """The same with <q_t, l_t> for what was paid; it is exact, and less noisy."""
        with np.errstate(over="ignore"):
            return (self._expected - self._best) / self._unit

    def _regret_over(self, size: NDArray[np.float64], pseudo: bool) -> NDArray[np.float64]:
        """Return regret divided by a size in the same unit: finite at every scale."""
        regret = (self._expected if pseudo else self._paid) - self._best
        return over(regret, size)

    @abstractmethod
    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns of frames, each of shape (replicates, checkpoints)."""

    def met(self) -> NDArray[np.float64]:
        """Return what the best fixed arm or policy lost: equal where losses are."""
        with np.errstate(over="ignore"):
            return self._best / self._unit

    def seed(self, replicate: int) -> SeedSequence:
        """Return the seed with which a learner repeats this row of the arrays bit for bit."""
        return replicate_seed(self._root, self._first + replicate, CHOICES)

    def _named(self) -> Mapping[str, Played]:
        return {self.learner: self}

    @classmethod
    def _of(cls, named: Mapping[str, Any]) -> Self:
        [one] = named.values()
        result: Self = one
        return result


def _later(name: str) -> Any:
    return import_module(f"unbounded.results.{name}")


def over(regret: NDArray[np.float64], size: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return regret divided by a size in the same unit, 0 where that is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(size > 0.0, regret / size, 0.0)


def name_of(adversary: object) -> str:
    """Return what to call an adversary: its class, or the name of a function."""
    return str(getattr(adversary, "__name__", type(adversary).__name__))
