"""Compiling ahead: what learners need, into the cache, before anybody waits for it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from unbounded import bandits, mdps, settings, worlds
from unbounded.adversaries import bandits as against_bandits
from unbounded.adversaries import mdps as against_mdps
from unbounded.jit.files import cache_directory, lost, why_not_written
from unbounded.jit.schedule import Code, pointed
from unbounded.simulation import bandit_loops, mdp_loops

_FEW, _MANY = 2, 100  # arms: some learners have other code where there are many
_MDP = worlds.dirichlet([1, 2], 2, np.random.default_rng(0))


class Warmed(NamedTuple):
    """What `warm` did.

    Attributes
    ----------
    directory : Path
        Where compiled code is cached.
    seconds : dict of str to float
        What each learner took, or each adversary; those that were kept already included.
    files : int
        How many files were written.
    """

    directory: Path
    seconds: dict[str, float]
    files: int


def warm(
    *names: str, simulate: bool = False, progress: Callable[[str], object] | None = None
) -> Warmed:
    """Compile what learners need, and keep it: for images, clusters and continuous integration.

    Whoever then finds this cache starts at once; see `docs/guide/production.md`.

    Parameters
    ----------
    names : str
        Learners, as ``"SCB"``, with all their variants; all of them by default.
    simulate : bool
        Whether to compile what `simulate` and `simulate_mdp` need too, with all adversaries. What
        ``comparators=`` needs is not included.
    progress : callable, optional
        Called with a line of text after each learner.

    Returns
    -------
    Warmed

    Raises
    ------
    ValueError
        If there is no learner of a name.
    RuntimeError
        If compiled code cannot be kept.

    Examples
    --------
    >>> import unbounded
    >>> unbounded.warm("UCB1", "UCB2", progress=print)
    Traceback (most recent call last):
    ...
    ValueError: there is no learner 'UCB2'; there are AHB, AdaFTRL, ...
    """
    learners: dict[str, Any] = {**bandits.algorithms(), **mdps.algorithms()}
    unknown = [name for name in names if name not in learners]
    if unknown:
        raise ValueError(f"there is no learner {unknown[0]!r}; there are {', '.join(learners)}")
    if numba.config.DISABLE_JIT:
        raise RuntimeError("NUMBA_DISABLE_JIT is set, so that nothing is compiled: unset it")
    directory = cache_directory()
    if directory is None:
        raise RuntimeError(f"compiled code cannot be kept: {why_not_written()}")
    before, seconds = _count(directory), {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "half_life=.* is below")  # nobody plays these
        for name in names or learners:
            seconds[name] = _timed(name, _codes_of(learners[name], simulate), directory, progress)
    if simulate:
        for name, code in _adversaries(names, learners):
            seconds[name] = _timed(name, partial(list, (code,)), directory, progress)
    return Warmed(directory, seconds, _count(directory) - before)


def compilation_status() -> str:
    """Say how kernels are compiled in this process, and where they are cached."""
    directory = cache_directory()
    reason = settings.path_reason()
    lines = [
        f"Numba {numba.__version__}, settings.jit = {settings.chosen_jit()!r}",
        f"path: {settings.compiled_path()}{f' ({reason})' if reason else ''}",
        f"cache: {directory}, {_count(directory)} files" if directory else why_not_written(),
    ]
    return "\n".join(lines)


def _timed(
    name: str,
    codes: Callable[[], list[Code]],
    directory: Path,
    progress: Callable[[str], object] | None,
) -> float:
    had, started = _count(directory), time.perf_counter()
    for code in codes():
        code.compile()
    seconds = time.perf_counter() - started
    if lost():
        raise RuntimeError(f"compiled code cannot be kept: {lost()}")
    if progress is not None:
        how = "" if _count(directory) > had else ", kept from before"
        progress(f"{name}: {seconds:.1f} s{how}")
    return seconds


def _codes_of(cls: Any, simulate: bool) -> Callable[[], list[Code]]:
    def codes() -> list[Code]:
        found: dict[Code, None] = {}  # each once
        for given in cls.spec.examples:
            if cls.__name__ not in bandits.algorithms():
                learner = _example(cls, given)
                found[learner._steps] = None
                for in_python in (False, True) if simulate else ():
                    found[mdp_loops.code_of(learner, _MDP, in_python=in_python)] = None
                continue
            for n in (_FEW, _MANY):
                learner = cls(n, **given, seed=0)
                found[learner._steps] = None
                if learner.spec.update_with is not None:  # masks
                    found[learner._with_side] = None
                if simulate and given is cls.spec.examples[0]:
                    found |= {bandit_loops.code_of(learner): None, bandit_loops.SUMS: None}
        return list(found)

    return codes


def _example(cls: Any, settings: Mapping[str, Any]) -> Any:
    """Make a small MDP learner: what is compiled depends on some settings, not on sizes."""
    return cls.for_mdp(_MDP, **{"episodes": 10, **settings}, seed=0)


def _adversaries(names: tuple[str, ...], learners: dict[str, Any]) -> list[tuple[str, Code]]:
    wanted = names or tuple(learners)
    found: list[tuple[str, Code]] = []
    if any(name in bandits.algorithms() for name in wanted):
        for name, bandit in against_bandits.adversaries().items():
            found.append((name, pointed(bandit.rows(), name)))
    if any(name in mdps.algorithms() for name in wanted):
        for name, mdp in against_mdps.adversaries().items():
            found.append((f"{name} for MDPs", pointed(mdp.filler(), name)))
    return found


def _count(directory: Path) -> int:
    return sum(1 for _ in directory.glob("*.nbc"))
