"""A learner as the agent of mutations in GOLEM: `pip install thegolem`."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from golem.core.optimisers.adaptive.operator_agent import OperatorAgent
from golem.core.optimisers.adaptive.utils import get_callable_name

from unbounded.adapters import checked_bandit
from unbounded.bandits.ada_inf import AdaINF
from unbounded.learners.bandit import Learner
from unbounded.learners.by_arm import ByArm


class ScaleFreeAgent(OperatorAgent):
    """Choose mutations from what they did to the fitness.

    The reward is GOLEM's: by which part of itself the fitness got smaller, and -1 where a mutation
    gave no valid graph. It may be of any size: no transformation, window or decay is needed.

    Parameters
    ----------
    actions : sequence
        The mutations: ``GPAlgorithmParameters.mutation_types``.
    learner : type
        The learner's class.
    settings : mapping, optional
        Its settings; the number of arms and the seed apart. By default a half-life of 30 mutations
        of each kind.
    seed : int, optional
        For the choices.
    enable_logging : bool
        Whether GOLEM's log has what is learned.

    Notes
    -----
    GOLEM reports by the name of the mutation, after a generation, and only of individuals that were
    evaluated. A report is for the newest mutation of its name; what was not reported by the end of
    a generation is forgotten. ``window_size`` must be None, as a window reports again and again.

    Examples
    --------
    >>> from unbounded.adapters.golem import ScaleFreeAgent
    >>> agent = ScaleFreeAgent(["grow", "shrink"], seed=0)  # adaptive_mutation_type=agent
    >>> agent.choose_action(None) in ("grow", "shrink")
    True
    """

    def __init__(
        self,
        actions: Sequence[Any],
        learner: type[Learner] = AdaINF,
        settings: Mapping[str, Any] | None = None,
        seed: int | None = None,
        enable_logging: bool = True,
    ) -> None:
        super().__init__(actions=actions, enable_logging=enable_logging)
        if settings is None:
            settings = {"half_life": 30 * len(actions)}
        self._arms = {get_callable_name(action): arm for arm, action in enumerate(actions)}
        if len(self._arms) < len(actions):
            raise ValueError(f"actions need names of their own, got {list(self._arms)}")
        made = checked_bandit(learner)(n_arms=len(actions), seed=seed, **dict(settings))
        self._by_arm = ByArm(made, newest=True)

    @property
    def learner(self) -> Learner:
        """The learner itself."""
        return self._by_arm.learner

    def choose_action(self, obs: Any) -> Any:
        """Choose a mutation."""
        return self.actions[self._by_arm.ask().arm]

    def choose_nodes(self, graph: Any, num_nodes: int = 1) -> Any:
        """Choose nodes of a graph, all alike."""
        nodes = random.sample(graph.nodes, k=num_nodes)
        return nodes[0] if num_nodes == 1 else nodes

    def partial_fit(self, experience: Any) -> None:
        """Learn from the mutations of a generation."""
        if experience.window_size is not None:
            raise ValueError(
                f"window_size is {experience.window_size}: leave it None, as the learner would be "
                "told every mutation many times"
            )
        graphs, names, rewards = experience.retrieve_experience()
        for name, reward in zip(names, rewards, strict=True):
            if math.isfinite(reward):
                self._by_arm.tell(self._arms[name], reward=float(reward))
        self._by_arm.forget_all()
        self._dbg_log(graphs, names, rewards)

    def get_action_probs(self, obs: Any = None) -> list[float]:
        """Return the distribution of the next choice."""
        return self.learner.probabilities().tolist()

    def get_action_values(self, obs: Any = None) -> list[float]:
        """Return the same: a learner has no other values."""
        return self.get_action_probs()
