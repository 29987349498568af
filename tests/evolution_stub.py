"""The parts of the interfaces of ShinkaEvolve 0.0.7 and thegolem 0.5.0 that our adapters use.

Their pins exclude those of other packages: `install` puts these in their place, where they are
missing. `tests/evolution.py` runs the adapters under the libraries themselves.
"""

from __future__ import annotations

import pickle
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np


class BanditBase:
    def __init__(self, n_arms: Any = None, seed: Any = None, arm_names: Any = None) -> None:
        self._arm_names, self._n_arms, self._baseline = list(arm_names), len(arm_names), 0.0

    @property
    def n_arms(self) -> int:
        return self._n_arms

    def set_baseline_score(self, baseline: float) -> None:
        self._baseline = float(baseline)

    def _resolve_arm(self, arm: Any) -> int:
        if isinstance(arm, int):
            return arm
        if arm not in self._arm_names:
            raise ValueError(f"unknown arm name '{arm}'")
        return self._arm_names.index(arm)

    def _resolve_subset(self, subset: Any) -> Any:
        return np.array([self._resolve_arm(one) for one in subset], dtype=np.int64)

    def update_cost(self, arm: Any, cost: float) -> float:
        return 0.0

    def save_state(self, path: Any) -> None:
        Path(path).write_bytes(pickle.dumps(self.get_state()))  # type: ignore[attr-defined]

    def load_state(self, path: Any) -> None:
        self.set_state(pickle.loads(Path(path).read_bytes()))  # type: ignore[attr-defined]


class OperatorAgent:
    def __init__(self, actions: Any, enable_logging: bool = True) -> None:
        self.actions = list(actions)

    def _dbg_log(self, obs: Any, actions: Any, rewards: Any) -> None: ...


def get_callable_name(action: Any) -> str:
    return action if isinstance(action, str) else action.__name__


class ExperienceBuffer:
    def __init__(self, window_size: Any = None) -> None:
        self.window_size, self._steps = window_size, []  # type: ignore[var-annotated]

    def collect_experience(self, obs: Any, action: Any, reward: float) -> None:
        self._steps.append((obs, get_callable_name(action), reward))

    def retrieve_experience(self) -> tuple[list[Any], list[str], list[float]]:
        steps, self._steps = self._steps, []
        return tuple(list(column) for column in zip(*steps, strict=True)) if steps else ([], [], [])  # type: ignore[return-value]


SHINKA = {"shinka": {}, "shinka.llm": {"BanditBase": BanditBase}}
GOLEM: dict[str, dict[str, Any]] = {
    "golem": {}, "golem.core": {}, "golem.core.optimisers": {},
    "golem.core.optimisers.adaptive": {},
    "golem.core.optimisers.adaptive.operator_agent": {"OperatorAgent": OperatorAgent},
    "golem.core.optimisers.adaptive.utils": {"get_callable_name": get_callable_name},
}  # fmt: skip


def install() -> None:
    """Stand in for the libraries, where they are missing."""
    for parts in (SHINKA, GOLEM):
        name = next(iter(parts))
        if name in sys.modules or find_spec(name) is not None:
            continue
        for part, found in parts.items():
            sys.modules[part] = ModuleType(part)
            vars(sys.modules[part]).update(found)
