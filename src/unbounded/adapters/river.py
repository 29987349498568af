"""A learner as a bandit policy of River: `pip install "unbounded[river]"`."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from river import bandit, base, metrics, proba

from unbounded.adapters import checked_bandit
from unbounded.bandits.cost_scb import CostSCB
from unbounded.bandits.scb import SCB
from unbounded.learners.bandit import Learner
from unbounded.learners.by_arm import ByArm
from unbounded.validation import checked_loss, shown


class ScaleFree(bandit.base.Policy):
    """Any learner of this package as a policy of River.

    Parameters
    ----------
    learner : type
        The learner's class.
    settings : mapping, optional
        Its settings; the number of arms and the seed apart, which it gets from River.
    reward_obj : statistic, metric or distribution, optional
        What River keeps for each arm, `river.stats.Mean` by default. What is learned in a round is
        its value after that round alone: the reward itself, as with a distribution, or for
        `river.metrics.MAE` the absolute error. Metrics of which less is better are losses.
    burn_in : int
        How often each arm is pulled first. Burn-in rewards are kept in River's statistics; a
        learner weighs each reward by the probability with which it chose the arm, and these it did
        not choose.
    seed : int, optional
        For the choices.

    Notes
    -----
    Arms are those of the first pull, in whatever order later pulls name them. A reward goes to the
    newest pull of its arm that has none yet; pulls without a reward are no harm.

    Examples
    --------
    >>> from unbounded.adapters.river import ScaleFree
    >>> policy = ScaleFree(seed=0)
    >>> for _ in range(1000):
    ...     arm = policy.pull(["a", "b", "c"])
    ...     policy.update(arm, {"a": -5e8, "b": 5e8, "c": 0.0}[arm])
    >>> policy.ranking[0], policy._counts["b"] > 800
    ('b', True)
    """

    def __init__(
        self,
        learner: type[Learner] = SCB,
        settings: Mapping[str, Any] | None = None,
        reward_obj: Any = None,
        burn_in: int = 0,
        seed: int | None = None,
    ) -> None:
        checked_bandit(learner)
        super().__init__(reward_obj=reward_obj, burn_in=burn_in)
        self.learner = learner
        self.settings = settings
        self.seed = seed
        self._arms: list[Hashable] = []
        self._index: dict[Hashable, int] = {}
        self._playing: ByArm | None = None

    def _pull(self, arm_ids: Sequence[Any]) -> Any:
        playing = self._playing_with(arm_ids)
        return self._arms[playing.ask().arm]

    def _playing_with(self, arm_ids: Sequence[Any]) -> ByArm:
        """Return the learner, made when the arms are known."""
        arms = list(arm_ids)
        if self._playing is None:
            if not arms:
                raise ValueError("there are no arms to pull: give a list of them")
            if len(set(arms)) != len(arms):
                raise ValueError(f"arms must differ from one another, got {shown(arms)}")
            settings = dict(self.settings or {})
            learner = self.learner(n_arms=len(arms), seed=self.seed, **settings)
            self._playing, self._arms = ByArm(learner, newest=True), arms
            self._index = {arm: index for index, arm in enumerate(arms)}
        elif arms != self._arms and (len(arms) != len(self._arms) or set(arms) != set(self._arms)):
            raise ValueError(
                f"the arms were {shown(self._arms)} and are now {shown(arms)}: clone() the policy "
                "to begin again with other arms"
            )
        return self._playing

    def update(self, arm_id: Any, *reward_args: Any, **reward_kwargs: Any) -> None:
        """Report the reward of an arm.

        Parameters
        ----------
        arm_id
            The arm.
        reward_args, reward_kwargs
            What ``reward_obj.update`` takes: a reward, or for metrics a truth and a prediction.
        """
        loss = self._loss(reward_args, reward_kwargs)
        if self._playing is not None and arm_id in self._index:
            self._playing.tell(self._index[arm_id], loss)  # first: it may reject
        super().update(arm_id, *reward_args, **reward_kwargs)

    def _loss(self, reward_args: Any, reward_kwargs: Any) -> float:
        alone = self.reward_obj.clone()
        try:
            alone.update(*reward_args, **reward_kwargs)
        except (TypeError, ValueError, ArithmeticError) as error:
            what = f"{type(alone).__name__} takes no {shown(reward_args or reward_kwargs)}"
            raise TypeError(f"{what}: {error}") from error
        only = reward_args[0] if isinstance(alone, proba.base.Distribution) else alone.get()
        value = checked_loss("reward", only)
        less_is_better = isinstance(alone, metrics.base.Metric) and not alone.bigger_is_better
        return value if less_is_better else -value

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments that it was made by; `clone` is River's."""
        return dict(self._get_params())

    def __sklearn_clone__(self) -> Any:
        return self.clone()

    def __repr__(self) -> str:
        # River's table of arms needs an arm.
        return super().__repr__() if self._rewards else base.Base.__repr__(self)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"seed": 1}
        yield {"learner": CostSCB, "settings": {"outliers": "sqrt"}, "seed": 1}
