"""Learners and simulations interpreted, compiled, and changing over."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unbounded import SCB, settings
from unbounded.jit import schedule
from unbounded.jit.schedule import Code
from unbounded.jit.worker import Worker
from unbounded.simulation import bandit_loops, mdp_loops, sleeping


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process: nothing is known to be compiled."""
    schedule.pointed.cache_clear()
    for module in (bandit_loops, mdp_loops, sleeping):
        monkeypatch.setattr(module, "_codes", {})
    monkeypatch.setattr(bandit_loops.SUMS, "_ready", False)
    monkeypatch.setattr(bandit_loops.SUMS, "_tried", False)


def each_way(monkeypatch: pytest.MonkeyPatch, simulation: Callable[[], Any]) -> list[Any]:
    """The results compiled, interpreted, and compiled after the first few rounds."""
    ways: list[list[bool]] = []
    compiled = schedule.Pace.compiled.fget

    def noted(self: schedule.Pace) -> bool:
        now: bool = compiled(self)
        if self is not schedule.COMPILED:
            ways[-1].append(now)
        return now

    results = []
    with monkeypatch.context() as patch:
        patch.setattr(schedule.Pace, "compiled", property(noted))
        for jit in ("always", "never", "auto"):
            forget(patch)
            patch.setattr(settings, "jit", jit)
            patch.setattr(Code, "load", lambda self: None)
            patch.setattr(schedule, "_PER_NUMBER", 0.0)  # no learner is large
            for kind in ("SMALL", "BANDIT", "MDP", "SOLVER"):
                patch.setattr(schedule.Seconds, kind, 0.0)
            for code in (bandit_loops.SUMS, bandit_loops.FILLS, mdp_loops.IN_PYTHON):
                patch.setattr(code, "seconds", 0.0)
            ways.append([])
            results.append(simulation())
    schedule.pointed.cache_clear()
    assert all(ways[0])
    assert not any(ways[1])
    assert not ways[2][0]
    assert ways[2][-1]
    return results


def assert_same(results: list[Any]) -> None:
    first = results[0]
    for other in results[1:]:
        for field in fields(first):
            one, two = getattr(first, field.name), getattr(other, field.name)
            if isinstance(one, np.ndarray):
                assert one.tobytes() == two.tobytes(), field.name


def run(script: str, cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program that begins interpreted, with a cache of its own."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=os.environ | {"UNBOUNDED_CACHE_DIR": str(cache), "UNBOUNDED_JIT": "auto"} | environment,
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


def worked(warm_up: Callable[[], Any], program: str = "", arguments: Any = None) -> Any:
    """Code that another process compiles, by this program, and is not cached before."""
    code: Any = Code("it", warm_up, 1.0, worker=Worker(SCB, arguments or {}))
    code._worker.can_start = lambda: True
    code.program = program
    return code
