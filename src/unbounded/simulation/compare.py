"""Several learners against one adversary, with the same seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self

import numpy as np
from numpy.typing import NDArray

from unbounded.learners.arguments import in_our_words
from unbounded.learners.bandit import Learner
from unbounded.learners.seeds import Seed, root_of
from unbounded.results import Played, Results
from unbounded.results.summary import paired
from unbounded.simulation.adversary import Adversary, MDPAdversary, PythonMDPAdversary
from unbounded.simulation.bandit import Simulation, simulate
from unbounded.simulation.bandit_loops import PythonAdversary
from unbounded.simulation.sleeping import PythonAvailability
from unbounded.validation import checked_count, shown

if TYPE_CHECKING:  # a bandit should not wait for the MDPs
    from unbounded.core.occupancy.mdp import LayeredMDP
    from unbounded.learners.mdp import MDPLearner
    from unbounded.simulation.mdp import MDPSimulation

if TYPE_CHECKING:  # which has defaults from Python 3.13 on
    from typing_extensions import TypeVar

    P = TypeVar("P", bound=Played, default=Played)
else:
    from typing import TypeVar

    P = TypeVar("P")


class Comparison(Results, Mapping[str, P], Generic[P]):
    """What `compare` returns: for each name a simulation, all with the same seeds.

    A mapping in the order in which the learners were given. The first is what the others are
    compared with in `summary`.

    Examples
    --------
    >>> from unbounded import SCB, Uniform, compare
    >>> from unbounded.adversaries import StochasticGap
    >>> learners = {"SCB": SCB(5), "guess": Uniform(5)}
    >>> comparison = compare(learners, StochasticGap(gap=0.3), rounds=500, replicates=4, seed=1)
    >>> list(comparison), comparison["SCB"].regret.shape[0], comparison.paired
    (['SCB', 'guess'], 4, True)
    """

    def __init__(self, results: Mapping[str, P]) -> None:
        self._results = dict(results)

    def __getitem__(self, name: str) -> P:
        try:
            return self._results[name]
        except KeyError:
            listed = ", ".join(self._results)
            raise KeyError(f"there is no {name!r}: there are {listed}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    __repr__ = Results.__repr__

    @property
    def paired(self) -> bool:
        """Whether all learners met the same losses, as far as those of the best arm or policy show.

        That is so unless the adversary looked at what they play.
        """
        return paired(self._results)

    def difference(self, learner: str, other: str) -> NDArray[np.float64]:
        """Relative regret of one learner minus that of another, replicate by replicate.

        Returns
        -------
        array, shape (replicates, checkpoints)

        Examples
        --------
        >>> from unbounded import SCB, Uniform, compare
        >>> from unbounded.adversaries import StochasticGap
        >>> learners = {"SCB": SCB(5), "guess": Uniform(5)}
        >>> both = compare(learners, StochasticGap(gap=0.5), rounds=900, replicates=4, seed=1)
        >>> bool((both.difference("SCB", "guess")[:, -1] < 0.0).all())
        True
        """
        column = f"relative_{self[learner].shown.column}"
        return self[learner].columns()[column] - self[other].columns()[column]

    def _named(self) -> Mapping[str, Played]:
        return self._results

    @classmethod
    def _of(cls, named: Mapping[str, Any]) -> Self:
        return cls(named)


@in_our_words
def compare(
    learners: Mapping[str, Learner],
    adversary: Adversary | PythonAdversary,
    rounds: int,
    replicates: int = 10,
    seed: Seed = None,
    *,
    first_replicate: int = 0,
    checkpoints: Sequence[int] | int = 60,
    pseudo_regret: bool = True,
    comparators: Sequence[int] | None = None,
    dynamic: bool = False,
    switches: int | None = None,
    available: Adversary | PythonAvailability | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison[Simulation]:
    """Play several learners against the same adversary, with the same seeds.

    Replicate r has the same losses for every learner, unless the adversary looks at what they
    play, so that learners can be compared replicate by replicate.

    Parameters
    ----------
    learners : mapping of str to Learner
        By the names that tables and charts should give them.
    adversary, rounds, replicates, seed
        As for `simulate`.
    first_replicate, checkpoints, pseudo_regret, comparators, dynamic, switches, available, workers
        As for `simulate`.
    progress : callable, optional
        ``progress(done, total)`` after each replicate of each learner.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from unbounded import SCB, TsallisINF, compare
    >>> from unbounded.adversaries import StochasticGap
    >>> millions = StochasticGap(gap=0.3, scale=1e6)
    >>> learners = {"SCB": SCB(5), "told [0, 1]": TsallisINF(5)}
    >>> comparison = compare(learners, millions, rounds=1000, replicates=5, seed=1)
    >>> comparison.to_frame().columns[:6]
    ['learner', 'adversary', 'replicate', 'round', 'regret', 'relative_regret']
    """
    _check_names(learners, Learner, "Learner")
    arms = {name: learner.n_arms for name, learner in learners.items()}
    if len(set(arms.values())) > 1:
        raise ValueError(f"the learners must have the same number of arms, got {shown(arms)}")
    root = root_of(seed)
    replicates = checked_count("replicates", replicates)

    def one(learner: Learner, progress: Callable[[int, int], None] | None) -> Simulation:
        return simulate(
            learner, adversary, rounds, replicates, root, first_replicate=first_replicate,
            checkpoints=checkpoints, pseudo_regret=pseudo_regret, comparators=comparators,
            dynamic=dynamic, switches=switches, available=available, workers=workers,
            progress=progress,
        )  # fmt: skip

    return Comparison(_each(learners, one, replicates, progress))


@in_our_words
def compare_mdp(
    learners: Mapping[str, MDPLearner],
    mdp: LayeredMDP,
    adversary: MDPAdversary | PythonMDPAdversary,
    episodes: int | None = None,
    replicates: int = 10,
    seed: Seed = None,
    *,
    first_replicate: int = 0,
    checkpoints: Sequence[int] | int = 20,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison[MDPSimulation]:
    """Play several learners on the same MDP against the same adversary, with the same seeds.

    Parameters
    ----------
    learners : mapping of str to MDPLearner
        By the names that tables and charts should give them.
    mdp, adversary
        As for `simulate_mdp`.
    episodes : int, optional
        How long; as many as the learners were made for by default.
    replicates, seed, first_replicate, checkpoints, workers
        As for `simulate_mdp`.
    progress : callable, optional
        ``progress(done, total)`` after each replicate of each learner.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import numpy as np
    >>> from unbounded import OREPS, UniformPolicy, compare_mdp, worlds
    >>> from unbounded.adversaries.mdps import Stochastic
    >>> mdp = worlds.dirichlet([1, 2], 2, seed=0)
    >>> learners = {
    ...     "knows P": OREPS([1, 2], 2, 200, transitions=mdp.P, loss_range=(-1, 1)),
    ...     "guess": UniformPolicy([1, 2], 2),
    ... }
    >>> comparison = compare_mdp(learners, mdp, Stochastic(), replicates=3, seed=1)
    >>> comparison.summary().lines[1].replicates
    3
    """
    from unbounded.learners.mdp import MDPLearner
    from unbounded.simulation.mdp import simulate_mdp

    _check_names(learners, MDPLearner, "MDPLearner")
    root = root_of(seed)
    replicates = checked_count("replicates", replicates)
    if episodes is None:
        made_for = {name: learner.made_for for name, learner in learners.items()}
        wanted = {count for count in made_for.values() if count is not None}
        if len(wanted) != 1:
            raise ValueError(f"say episodes=: the learners were made for {shown(made_for)}")
        [episodes] = wanted

    def one(learner: MDPLearner, progress: Callable[[int, int], None] | None) -> MDPSimulation:
        return simulate_mdp(
            learner, mdp, adversary, episodes, replicates, root, first_replicate=first_replicate,
            checkpoints=checkpoints, workers=workers, progress=progress,
        )  # fmt: skip

    return Comparison(_each(learners, one, replicates, progress))


L = TypeVar("L")


def _each(
    learners: Mapping[str, L],
    one: Callable[[L, Callable[[int, int], None] | None], P],
    replicates: int,
    progress: Callable[[int, int], None] | None,
) -> dict[str, P]:
    """Return the results of all learners; an error says whose it is."""
    results: dict[str, P] = {}
    total = replicates * len(learners)

    def report(done: int, _: int) -> None:
        assert progress is not None
        progress(replicates * len(results) + done, total)

    for name, learner in learners.items():
        try:
            results[name] = one(learner, report if progress is not None else None)
        except Exception as error:
            error.add_note(f"while {name!r} was played")
            raise
    return results


def _check_names(learners: Mapping[str, Any], kind: type, what: str) -> None:
    if not isinstance(learners, Mapping) or not learners:
        raise TypeError(
            f"learners must be a dict of names and learners, such as {{'SCB': SCB(10)}}, "
            f"not {shown(learners)}"
        )
    for name, learner in learners.items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"the name of a learner must be text, not {shown(name)}")
        if not isinstance(learner, kind):
            raise TypeError(f"{name!r} must be a {what}, not {shown(learner)}")
