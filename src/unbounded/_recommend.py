"""Which learner to take, and why: docs/guide/which-learner.md as a function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Literal, SupportsIndex, TypeVar, overload

from unbounded import bandits, mdps
from unbounded.core.discounting import MOST_HALF_LIFE
from unbounded.learners.arguments import in_our_words
from unbounded.learners.bandit import Learner
from unbounded.learners.mdp import MDPLearner
from unbounded.validation import checked_count, checked_flag, checked_loss, checked_range

SPOILT = "one outlier sets its scale for ever: clip those that say nothing before you tell them"
COUNTED = "outliers must be their number: add outliers=3, if three are to be expected"
SLOW = "dozens of states take very many episodes: try PolicyOptimization, which has no theorem"
UNPROVED = "the theorem is for profile='paper': no regret bound is known for the default"
WATCHED = "no regret bound is known for it; where losses watch the learner, SCBRL had less regret"
ONE_BY_ONE = "an episode is told before the next one is asked for"
FORGET = ("AdaINF", "CostSCB", "CostSCBIX", "CostSCBRL")  # learners with a half_life
MANY_STATES = 30  # from here on PolicyOptimization had less regret: docs/results/index.md
MANY_ARMS = 1000  # from here on a round should not touch every arm: docs/theory/many-arms.md


L = TypeVar("L", bound=Learner | MDPLearner)


@dataclass(frozen=True, repr=False)
class Recommendation(Generic[L]):
    """A learner to take, and the reasons.

    Attributes
    ----------
    name : str
        The learner's class.
    settings : dict
        What it should be told.
    why : tuple of str
        Reasons, one sentence each.
    caveats : tuple of str
        Where it could be wrong, and which regret bounds are not known.
    reward : bool
        Whether it is for rewards, which are told as ``tell(choice, reward=...)``.

    Examples
    --------
    >>> from unbounded import recommend
    >>> found = recommend(lower=0.0, delayed=True)
    >>> found.name, dict(found.settings)
    ('CostSCB', {'lower': 0.0})
    >>> found.learner(n_arms=3, seed=0).ask().probability
    0.333...
    """

    name: str
    settings: Mapping[str, Any]
    why: tuple[str, ...]
    caveats: tuple[str, ...] = ()
    reward: bool = False

    @property
    def learner(self) -> partial[L]:
        """Make the learner. Call it with the remaining arguments, as ``n_arms`` and ``seed``."""
        found: Mapping[str, Any] = {**bandits.algorithms(), **mdps.algorithms()}
        return partial(found[self.name], **self.settings)

    def __str__(self) -> str:
        sizes = ["layers", "n_actions"] if self.name in mdps.algorithms() else ["n_arms"]
        told = [f"{name}={value!r}" for name, value in self.settings.items()]
        lines = [f"{self.name}({', '.join(sizes + told)})"]
        lines += ["  tell rewards as they are: tell(..., reward=...)"] * self.reward
        lines += [f"  because {reason}" for reason in self.why]
        return "\n".join(lines + [f"  caveat: {warning}" for warning in self.caveats])

    __repr__ = __str__


@overload
def recommend(
    *,
    reward: bool = False,
    lower: float | None = None,
    best_reward: float | None = None,
    range: tuple[float, float] | None = None,
    outliers: bool = False,
    delayed: bool = False,
    high_probability: bool = False,
    all_losses: bool = False,
    n_arms: int | None = None,
    mdp: Literal[False] = False,
    changing: SupportsIndex | bool = False,
) -> Recommendation[Learner]: ...
@overload
def recommend(
    *,
    reward: bool = False,
    lower: float | None = None,
    best_reward: float | None = None,
    range: tuple[float, float] | None = None,
    outliers: bool = False,
    delayed: bool = False,
    high_probability: bool = False,
    all_losses: bool = False,
    mdp: Literal[True],
    n_states: int | None = None,
    changing: SupportsIndex | bool = False,
) -> Recommendation[MDPLearner]: ...
@in_our_words
def recommend(
    *,
    reward: bool = False,
    lower: float | None = None,
    best_reward: float | None = None,
    range: tuple[float, float] | None = None,
    outliers: bool = False,
    delayed: bool = False,
    high_probability: bool = False,
    all_losses: bool = False,
    n_arms: int | None = None,
    mdp: bool = False,
    n_states: int | None = None,
    changing: SupportsIndex | bool = False,
) -> Recommendation[Any]:
    """Say which learner to take, and why, from what is known of the losses or rewards.

    What is not known need not be given: ``recommend()`` assumes nothing.

    Parameters
    ----------
    reward : bool
        Whether larger is better: ``range`` is then of rewards, and the answer speaks of them.
    lower : float, optional
        A lower bound that losses actually approach: 0 for seconds.
    best_reward : float, optional
        Instead of ``lower``, for rewards: the largest one possible. It implies ``reward``.
    range : (float, float), optional
        Between which two numbers every loss lies, if that is certain.
    outliers : bool
        Whether there are huge losses now and then that say *nothing* about their arm.
    delayed : bool
        Whether choices are made while the losses of earlier ones are not known yet.
    high_probability : bool
        Whether regret must be bounded with high probability, not only in expectation.
    all_losses : bool
        Whether the losses of all arms are seen, not only that of the arm that was chosen; with
        ``mdp``, those of all states and actions.
    n_arms : int, optional
        How many arms there are.
    mdp : bool
        Whether choices change a state: an episodic MDP in layers, with unknown transitions.
    n_states : int, optional
        With ``mdp``, how many states there are in all layers.
    changing : bool or int
        Whether the best arm, or the scale of the losses, changes: True, or the number of rounds
        between changes (episodes for MDPs), if it is about known.

    Returns
    -------
    Recommendation
        Name, settings, reasons and caveats; ``print`` shows all four.

    Raises
    ------
    ValueError
        If what is given contradicts itself, or there is no learner for it.

    Examples
    --------
    >>> import unbounded
    >>> print(unbounded.recommend(lower=0.0, outliers=True))
    CostSCB(n_arms, lower=0.0, outliers='sqrt')
      because a lower bound on the losses is known: nothing is spent on finding out the scale
      because outliers='sqrt' works at the scale of the usual losses
      caveat: an arm whose rare huge losses are what is wrong with it is not recognized
    >>> learner = unbounded.recommend(range=(0.0, 1.0)).learner(n_arms=4, seed=0)
    >>> type(learner).__name__
    'TsallisINFRV'
    >>> dict(unbounded.recommend(lower=0.0, changing=20_000, n_arms=10).settings)
    {'lower': 0.0, 'half_life': 3174, 'cap': 100.0}
    """
    flags = {
        "outliers": outliers, "delayed": delayed, "high_probability": high_probability,
        "all_losses": all_losses, "mdp": mdp, "reward": reward,
    }  # fmt: skip
    for name, flag in flags.items():
        checked_flag(name, flag)
    if not isinstance(changing, bool):
        changing = checked_count("changing", changing)
    known: dict[str, float] = {}
    if lower is not None:
        known["lower"] = checked_loss("lower", lower)
    if best_reward is not None:
        known["best_reward"] = checked_loss("best_reward", best_reward)
        reward = True
    if len(known) + (range is not None) > 1:
        raise ValueError("lower, best_reward and range say the same in three ways: give one")
    if reward and lower is not None:
        raise ValueError(
            f"lower={lower!r} is of losses: for rewards say best_reward={0.0 - lower!r}"
        )
    least: dict[str, float] = {}
    if range is not None:
        range = checked_range("range", range)
        least = {"best_reward": range[1]} if reward else {"lower": range[0]}
        range = (0.0 - range[1], 0.0 - range[0]) if reward else range
    found = _found(
        known, least, range, outliers=outliers, delayed=delayed, n_arms=n_arms, mdp=mdp,
        high_probability=high_probability, all_losses=all_losses, changing=changing,
        n_states=n_states,
    )  # fmt: skip
    return _in_rewards(found) if reward else found


_OF_REWARDS = {  # in this order
    "a lower bound on the losses": "the largest possible reward",
    "losses do not come near their lower bound": "rewards do not come near the largest possible",
    "losses far below the others": "rewards far above the others",
    "rare huge losses": "rare hugely negative rewards",
    "huge losses": "hugely negative rewards",
    "losses": "rewards",
}


def _in_rewards(found: Recommendation[Any]) -> Recommendation[Any]:
    """Say the same of rewards."""

    def reworded(text: str) -> str:
        for loss, reward in _OF_REWARDS.items():
            text = text.replace(loss, reward)
        return text

    why, caveats = map(reworded, found.why), map(reworded, found.caveats)
    return replace(found, why=tuple(why), caveats=tuple(caveats), reward=True)


def _found(
    known: Mapping[str, float], least: Mapping[str, float], range: tuple[float, float] | None, *,
    outliers: bool, delayed: bool, high_probability: bool, all_losses: bool, n_arms: int | None,
    mdp: bool, changing: int, n_states: int | None,
) -> Recommendation[Any]:  # fmt: skip
    """Return the learner for losses with these bounds, ``least`` in place of a range."""
    many = n_arms is not None and checked_count("n_arms", n_arms) > MANY_ARMS
    large = n_states is not None and checked_count("n_states", n_states) >= MANY_STATES
    if n_states is not None and not mdp:
        raise ValueError("n_states is for mdp=True: leave it out")
    if mdp:
        if n_arms is not None:
            raise ValueError(
                "mdp=True is for layers of states, where n_arms means nothing: leave it out"
            )
        if all_losses:
            found = _for_all_losses_of_mdps(known or least, outliers, delayed)
        else:
            found = _for_mdps(known or least, outliers, delayed, large)
        found = _unsure(found, high_probability)
        return _forgetting(found, changing, None) if changing else found
    if all_losses and not delayed:
        found = _unsure(_for_all_losses(outliers), high_probability)
        return _forgetting(found, changing, None) if changing else found
    if changing:  # which learners with a known range cannot follow
        known, range = known or least, None
    if high_probability or outliers:
        known = known or least
    delayed_too = (
        ("no regret bound is known for delayed feedback with these settings",) if delayed else ()
    )
    if high_probability:
        found = _sure(known, outliers)
    elif known:
        found = _for_costs(known, outliers)
    elif range is not None:
        found = _for_a_range(range, delayed, many)
    else:
        found = _for_anything(outliers)
    if all_losses:
        delayed_too = (*delayed_too, "what takes the losses of all arms takes none of them delayed")
    found = Recommendation(found.name, found.settings, found.why, found.caveats + delayed_too)
    return _forgetting(found, changing, n_arms) if changing else found


def _forgetting(
    found: Recommendation[Any], changing: int, n_arms: int | None
) -> Recommendation[Any]:
    """Add a half-life, where the learner takes one; ``changing`` is 1 if no number is known."""
    if found.name not in FORGET:
        caveat = "it does not forget: no learner that does is known for these settings"
        return replace(found, caveats=(*found.caveats, caveat))
    settings, n = dict(found.settings), 10 if n_arms is None else n_arms
    h = 1000 if changing is True else round((n * changing * changing) ** (1.0 / 3.0))
    twice = found.name.startswith("CostSCB") and changing is not True
    settings["half_life"] = min(max(2 * h if twice else h, 30 * n), MOST_HALF_LIFE)
    why = (*found.why, "it forgets: half_life is about a tenth of the time between changes")
    caveats = found.caveats
    if changing is True:
        guess = f"half_life={settings['half_life']} is a guess"
        caveats += (f"{guess}: say changing=the number of rounds between changes",)
        if found.name == "AdaINF":
            rare = "if changes may be rare, half_life='auto' has less regret, in six times the time"
            caveats += (rare,)
    elif changing <= settings["half_life"]:
        caveats += ("changes come faster than the best arm can be found: little can be learned",)
    if found.name == "CostSCB" and "outliers" not in settings:
        settings["cap"] = 100.0
        why = (*why, "cap=100 lets time-outs count, as a hundred usual losses at the most")
    if found.name == "CostSCBRL":
        proved = "with a half-life, the theorem is for profile='paper'"
        caveats += ("only losses are forgotten: transitions must stay as they are", proved)
    price = "while nothing changes, forgetting costs: docs/guide/changing.md has figures"
    return Recommendation(found.name, settings, why, (*caveats, price))


def _take(
    name: str, settings: Mapping[str, Any], why: tuple[str, ...], *caveats: str | Literal[False]
) -> Recommendation[Any]:
    return Recommendation(name, dict(settings), why, tuple(one for one in caveats if one))


def _for_mdps(
    known: Mapping[str, float], outliers: bool, delayed: bool, large: bool
) -> Recommendation[Any]:
    state, one_by_one = "choices change a state", delayed and ONE_BY_ONE
    if known:
        least = "a lower bound on the losses is known: no exploration, and any number of episodes"
        counted = outliers and COUNTED
        return _take("CostSCBRL", known, (state, least), SLOW, one_by_one, counted)
    explores = "it explores first; say episodes= if their number is known"
    clip = outliers and "clip what says nothing about its state and action before you tell it"
    why = (state, "nothing is known of the losses")
    if large:
        less = f"from {MANY_STATES} states on it had less regret than SCBRL where nobody watches"
        return _take("PolicyOptimization", {}, (*why, less), WATCHED, clip, one_by_one)
    return _take("SCBRL", {}, why, explores, UNPROVED, SLOW, clip, one_by_one)


def _unsure(found: Recommendation[Any], high_probability: bool) -> Recommendation[Any]:
    """Add that nothing better is known, if regret must be bounded with high probability."""
    caveat = ("no high-probability regret bound is known for these settings",)
    caveats = found.caveats + caveat * high_probability
    return Recommendation(found.name, found.settings, found.why, caveats)


def _for_all_losses_of_mdps(
    _: Mapping[str, float], outliers: bool, delayed: bool
) -> Recommendation[Any]:
    why = (
        "choices change a state",
        "the losses of all states and actions are seen: only where they lead is explored",
        "with these settings it had the least regret against adversaries that watch",
    )
    unproved = "no regret bound is known for these settings, nor for what was reconstructed"
    settings = {"bonus": 0.1, "restart": False}
    return _take("APOMVP", settings, why, unproved, outliers and SPOILT, delayed and ONE_BY_ONE)


def _for_all_losses(outliers: bool) -> Recommendation[Any]:
    why = "the losses of all arms are seen: nothing has to be explored"
    return _take("AdaHedge", {}, (why,), outliers and SPOILT)


def _sure(known: Mapping[str, float], outliers: bool) -> Recommendation[Any]:
    reason = "its realized regret is bounded, not only the mean of it"
    if known:
        why = ("a lower bound on the losses is known: the smaller bound", reason)
        caveat = "SCBIX, which needs no bound, had less regret in most of what was played"
        return _take("CostSCBIX", known, why, caveat, outliers and COUNTED)
    return _take("SCBIX", {}, ("nothing is known of the losses", reason), outliers and SPOILT)


def _for_costs(known: Mapping[str, float], outliers: bool) -> Recommendation[Any]:
    why = "a lower bound on the losses is known: nothing is spent on finding out the scale"
    if not outliers:
        caveat = "if losses do not come near their lower bound, take SCB or AdaINF"
        return _take("CostSCB", known, (why,), caveat)
    usual = "outliers='sqrt' works at the scale of the usual losses"
    caveat = "an arm whose rare huge losses are what is wrong with it is not recognized"
    return _take("CostSCB", {**known, "outliers": "sqrt"}, (why, usual), caveat)


def _for_a_range(known: tuple[float, float], delayed: bool, many: bool) -> Recommendation[Any]:
    why, settings = "the range is known for certain", {"loss_range": known}
    caveat = "losses outside of the range are clipped: look at learner.clipped"
    if delayed or many:
        reason = "it takes feedback delayed" if delayed else "a round does not touch every arm"
        return _take("TsallisINF", settings, (why, reason), caveat)
    reason = "it has the smallest constant that is proved"
    less = "with ten arms and more AdaINF, which is parameter-free, had less regret"
    return _take("TsallisINFRV", settings, (why, reason), caveat, less)


def _for_anything(outliers: bool) -> Recommendation[Any]:
    why = "nothing is known of the losses, and nothing has to be: not scale, not offset"
    # "Catastrophic arm" in docs/results/index.md: six times the regret of the uniform learner.
    rare = (
        "rare huge losses are taken to mean nothing: if they are what is wrong with an arm, "
        "add robust=False"
    )
    if outliers:
        low = "losses far below the others it ignores only if told how many: add trim=3"
        return _take("AdaINF", {}, (why, "huge losses do it no harm"), low, rare)
    return _take("AdaINF", {}, (why, "it had less regret than SCB in most comparisons"), rare)
