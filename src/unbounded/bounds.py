"""The theorems' bounds on regret, in the units of the regret of experiments.

Only bounds with explicit constants are here, and only for the settings that they are proved for:
a learner whose theorem says O(...) has none. The experiment runner divides regret by the range
of the losses that occurred; a bound in terms of the largest absolute loss, or of the range that a
learner was given, is converted.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from functools import cache
from operator import index
from typing import Any, Literal, NamedTuple, SupportsIndex

from unbounded.bandits import ada_inf, algorithms, cost_scb, cost_scb_ix, scb, scb_ix
from unbounded.bandits.baselines import exp3_s, fixed_share, restarting_cost_scb
from unbounded.learners.bandit import Learner

__all__ = ["DELTA", "Bound", "Losses", "bound_of", "discounted_bound_of"]


def __dir__() -> list[str]:
    return sorted(__all__)


DELTA = 0.1
"""Where a bound that holds with probability 1 - delta is drawn beside a curve over time."""

_ZIMMERT = "Zimmert & Seldin 2021, Theorem 1"
_Of = Callable[[int, int, float], float]


class Losses(NamedTuple):
    """What a bound needs to know of the losses that occurred in some replicates.

    Attributes
    ----------
    low, high : float
        The extremes over all replicates.
    size : float
        The largest absolute loss over the range of the losses, averaged over replicates.
    inverse_range : float
        1 / range, averaged over replicates.

    Examples
    --------
    >>> from unbounded.bounds import Losses
    >>> Losses(low=0.0, high=10.0, size=1.0, inverse_range=0.1).high
    10.0
    """

    low: float
    high: float
    size: float
    inverse_range: float


class Bound(NamedTuple):
    """A theorem's bound on the regret of one learner with its settings.

    Attributes
    ----------
    text, reference : str
        The formula for people, and where it is proved.
    of : callable
        ``of(n, T, delta)``, in the theorem's own unit.
    unit : {"range", "scale", "given", "above"}
        The range of the losses, the largest absolute loss, the range that the learner was given
        (the bound then holds only for losses inside of it), or how far the losses rise above the
        lower bound that it was given (likewise).
    with_probability : bool
        Whether it holds with probability 1 - delta for realized regret, or for the mean.
    loss_range : (float, float)
        The range that the learner was given; its upper end may be infinite.
    rounds : int or None
        The number of rounds that it was given; the bound holds only then.

    Examples
    --------
    >>> from unbounded.bounds import bound_of
    >>> bound = bound_of("SCB", {})
    >>> bound.unit, round(bound.of(10, 100_000, 0.1))  # 7 sqrt(nT) + 4 n + 1
    ('range', 7041)
    """

    text: str
    reference: str
    of: _Of
    unit: Literal["range", "scale", "given", "above"] = "range"
    with_probability: bool = False
    loss_range: tuple[float, float] = (0.0, 1.0)
    rounds: int | None = None

    def over_range(self, n: int, T: int, losses: Losses, delta: float = DELTA) -> float:
        """Return the bound divided by the range of the losses; NaN where it says nothing."""
        if n < 2 or self.rounds not in (None, T):
            return math.nan
        factor = {"range": 1.0, "scale": losses.size}.get(self.unit)
        if factor is None:
            if losses.low < self.loss_range[0] or losses.high > self.loss_range[1]:
                return math.nan
            high = losses.high if self.unit == "above" else self.loss_range[1]
            factor = (high - self.loss_range[0]) * losses.inverse_range
        return self.of(n, T, delta) * factor


_Make = Callable[[dict[str, Any]], Bound | None]  # from the settings that are not the default
_FORGETTING = "docs/theory/forgetting.md"


def bound_of(learner: Learner | str, settings: Mapping[str, Any] | None = None) -> Bound | None:
    """Return the bound of a learner with these settings, if one with constants is known.

    Parameters
    ----------
    learner : Learner or str
        A learner, or the name of one with its ``settings``.
    settings : mapping, optional
        Those that differ from the defaults. A learner has its own.

    Examples
    --------
    >>> from unbounded.bounds import Losses, bound_of
    >>> bound = bound_of("SCB", {})
    >>> bound.text
    '7 R √(nT) + (4n + 1) R'
    >>> bound.over_range(4, 10_000, Losses(0.0, 5.0, 1.0, 0.2))
    1417.0
    >>> bound_of("SCB", {"profile": "paper", "rate": 3.0}) is None  # for the paper's rate only
    True
    >>> from unbounded import SCB
    >>> bound_of(SCB(n_arms=4)).text == bound.text
    True
    """
    if not isinstance(learner, str):
        if settings is not None:
            raise TypeError(
                f"settings={settings!r} are for the name of a learner: a learner has its own, and "
                "arms and rounds are arguments of the bound's of(n, T, delta)"
            )
        settings = {name: one for name, one in learner.settings.items() if name != "n_arms"}
        learner = type(learner).__name__
    settings = {} if settings is None else settings
    make, given = _BOUNDS.get(learner), _given(learner, settings)
    if make is None:
        return None
    return make(given) if "half_life" not in given else _undiscounted(learner, given)


def discounted_bound_of(
    learner: str, settings: Mapping[str, Any], *, falls: bool = True
) -> Bound | None:
    """Return the bound on the discounted regret of a learner with a ``half_life``, if one is known.

    Discounted regret at T is the sum over rounds of 2^(-(T - t) / half_life) times how much more
    the learner has paid than an arm. docs/theory/forgetting.md, Theorems F1, F4, F5 and F7.

    Parameters
    ----------
    learner : str
        `CostSCB`, `CostSCBIX` or `AdaINF`.
    settings : mapping
        Its settings.
    falls : bool
        Whether the scale of the losses may fall more than 16-fold, which the learner follows. For
        losses with which it never does, False gives a smaller bound.

    Examples
    --------
    >>> from unbounded.bounds import discounted_bound_of
    >>> settings = {"half_life": 1000, "tune": "scale", "implicit": 0.0}
    >>> bound = discounted_bound_of("CostSCB", settings, falls=False)
    >>> bound.text
    '3.4 M √(nh) + ...'
    >>> round(bound.of(10, 100_000, 0.1))
    343
    """
    make, given = _DISCOUNTED.get(learner), _given(learner, settings)
    half_life = given.pop("half_life", None)
    if make is None or not isinstance(half_life, SupportsIndex):
        return None
    return make(given, index(half_life), falls)


def _given(learner: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are not the default."""
    usual, unset = _defaults(learner) if learner in _BOUNDS else {}, object()
    return {k: value for k, value in settings.items() if value != usual.get(k, unset)}


@cache
def _learners() -> Mapping[str, Any]:
    return algorithms()


def _defaults(learner: str) -> dict[str, Any]:
    parameters = inspect.signature(_learners()[learner]).parameters
    return {name: parameter.default for name, parameter in parameters.items()}


def _scb(given: dict[str, Any]) -> Bound | None:
    clip, rate, mixing = _constants("SCB", scb.PROFILES, given)
    if given:
        return None
    if clip == "range" and mixing > 0.0:
        exploring = 2.0 * mixing + 1.0 / mixing
        factor = f"{exploring + 4.0 / rate + rate:.3g}"
        if rate > 2.0:
            factor = f"({exploring + 4.0 / rate:.3g} + {rate:.3g} s)"
        return Bound(
            f"{factor} R √(nT) + ({2.0 / mixing:.3g}n + 1) R",
            "docs/theory/range-clipping.md, Theorem 1",
            lambda n, T, delta: scb.range_bound(n, T, rate, mixing),
        )
    if (clip, rate, mixing) != scb.PAPER:
        return None
    return Bound(
        "27 ℓ∞ √(nT) + 2n ℓ∞",
        "docs/theory/range-clipping.md, section 7; Chen & Zhang 2024, Theorem 1",
        lambda n, T, delta: scb.scale_bound(n, T),
        "scale",
    )


def _scb_ix(given: dict[str, Any]) -> Bound | None:
    clip, mixing = _constants("SCBIX", scb_ix.PROFILES, given)
    if given or clip != "range" or mixing == 0.0:  # for the paper's clipping no constants are known
        return None
    factor = 4.0 / (2.0 - mixing) + 2.5 + 2.0 * mixing
    return Bound(
        f"{factor:.3g} R √(nT ln n) + R √(nT/ln n) ln(3/δ) + ...",
        "docs/theory/range-clipping.md, Theorem 2",
        lambda n, T, delta: scb_ix.range_bound(n, T, delta, mixing),
        with_probability=True,
    )


def _constants(learner: str, profiles: Mapping[str, Any], given: dict[str, Any]) -> Any:
    """Return a profile's constants, with those that were given instead."""
    usual = profiles[given.pop("profile", _defaults(learner)["profile"])]
    return usual._replace(**{name: given.pop(name) for name in usual._fields if name in given})


def _lower(given: dict[str, Any]) -> tuple[float, float]:
    """Return the range that a learner for costs was given."""
    if "best_reward" in given:
        return -float(given.pop("best_reward")), math.inf
    return float(given.pop("lower", 0.0)), math.inf


def _cost_scb(given: dict[str, Any]) -> Bound | None:
    loss_range, outliers, rate, nu, by_scale = _costs(given)
    if given:
        return None

    def of(n: int, T: int, delta: float) -> float:
        m = cost_scb.growing_rank(n, T) if outliers == "sqrt" else outliers + 1
        form = cost_scb.scale_bound if by_scale else cost_scb.paid_bound
        return form(n, T, m, rate, nu)

    text = f"{4.0 / rate + rate:.3g} M √(nT) + ..."
    theorem = "O1" if by_scale else "O3"
    return Bound(
        text, f"docs/theory/one-sided.md, Theorem {theorem}", of, "above", False, loss_range
    )


def _costs(given: dict[str, Any]) -> tuple[tuple[float, float], Any, float, float, bool]:
    """Take the settings of CostSCB: range, outliers, c, nu, and whether the tuning is A."""
    given.pop("delayed", None)
    by_scale = given.pop("tune", "paid") == "scale"
    rate, nu = given.pop("rate", 2.0), given.pop("implicit", 1.0)
    return _lower(given), given.pop("outliers", 0), rate, nu, by_scale


def _cost_scb_ix(given: dict[str, Any]) -> Bound | None:
    loss_range, m = _lower(given), given.pop("outliers", 0) + 1
    tuned = given.pop("delta", None)
    if given:
        return None

    def of(n: int, T: int, delta: float) -> float:
        if tuned is None:
            return cost_scb_ix.bound(n, T, delta, m)
        return cost_scb_ix.bound_for_delta(n, T, tuned, m) if delta >= tuned else math.nan

    text = "4 M √(nT ln n) + M √(nT/ln n) ln(2/δ) + ..."
    if tuned is not None:
        text = f"4 M √(nT ln(n/{tuned:g})) + ..."
    return Bound(text, "docs/theory/one-sided.md, Theorem O5", of, "above", True, loss_range)


def _ada_inf(given: dict[str, Any]) -> Bound | None:
    a, robust = given.pop("exploration", None), given.pop("robust", True)
    trim = given.pop("trim", 0)
    if given:
        return None
    leading = 2.0 * a + 2.0 * math.hypot(1.0, 1.0 / a) if a else 1.0 + 2.0 * math.sqrt(5.0)
    if trim > 0:
        leading += (trim + 1.0) / (a or 0.5)
    return Bound(
        f"{leading:.3g} R √(nT) + ...",
        "docs/theory/ada-inf.md, Theorem 1",
        lambda n, T, delta: ada_inf.bound(n, T, a, robust, trim),
    )


class _Weights(NamedTuple):
    """Sums over T rounds with the weights of a half-life h (docs/theory/forgetting.md)."""

    N: float  # of lambda^(T - t)
    squares: float  # of lambda^(2 (T - t))
    blocks: float  # the weights of the last rounds of blocks, at most: B_T

    @classmethod
    def of(cls, h: int, T: int) -> _Weights:
        x = math.log(2.0) / h
        return cls(
            math.expm1(-x * T) / math.expm1(-x), math.expm1(-2.0 * x * T) / math.expm1(-2.0 * x),
            min(3.0, math.ceil(T / h)),
        )  # fmt: skip


def _undiscounted(learner: str, given: dict[str, Any]) -> Bound | None:
    """Bound regret by discounted regret: F2, part 4, for the interval of all rounds."""
    h = given["half_life"]
    discounted = discounted_bound_of(learner, given)
    if discounted is None or discounted.with_probability:
        return None

    def of(n: int, T: int, delta: float) -> float:
        return (1.0 - math.expm1(-math.log(2.0) / h) * (T - 1.0)) * discounted.of(n, T, delta)

    reference = discounted.reference.replace("Theorem", "F2 (4) and Theorem")
    return discounted._replace(text=f"0.7 T/h ({discounted.text})", reference=reference, of=of)


def _discounted_cost_scb(given: dict[str, Any], h: int, falls: bool) -> Bound | None:
    """Bound tuning A by F1, B by F4; with growing ranks only if no fall is followed."""
    loss_range, outliers, rate, nu, by_scale = _costs(given)
    if given or (outliers == "sqrt" and falls):
        return None

    def of(n: int, T: int, delta: float) -> float:
        sums = _Weights.of(h, T)
        m = min(cost_scb.MOST_RANKS, h, math.ceil(math.sqrt(n * sums.N)))
        m = m if outliers == "sqrt" else outliers + 1
        spent = sums.squares if by_scale else sums.squares + 1.0
        learning = (4.0 / rate + rate) * math.sqrt(n * spent)
        learning += 0.0 if by_scale else 1.0 + 0.5 * math.log(spent)
        bias = 1.39 * nu * n * math.log1p(0.72 * min(T, h) / n)
        if falls:
            return sums.blocks * (learning + m + bias)
        return learning + sums.blocks * m + (max(bias, 2.0 * nu * n) if h < T else bias)

    leading = (3.0 if falls else 1.0) * 0.85 * (4.0 / rate + rate)
    theorem = "F1" if by_scale else "F4"
    return Bound(
        f"{leading:.3g} M √(nh) + ...", f"{_FORGETTING}, Theorem {theorem}", of, "above", False,
        loss_range,
    )  # fmt: skip


def _discounted_cost_scb_ix(given: dict[str, Any], h: int, falls: bool) -> Bound | None:
    """Bound by F5; falls are not followed, so that they do not matter."""
    loss_range, m = _lower(given), given.pop("outliers", 0) + 1
    tuned = given.pop("delta", None)
    if given:
        return None

    def of(n: int, T: int, delta: float) -> float:
        sums = _Weights.of(h, T)
        if tuned is not None and delta < tuned:
            return math.nan
        probability = delta if tuned is None else tuned
        iota, log_2 = math.log(n if tuned is None else n / tuned), math.log(2.0 / probability)
        spread = math.sqrt(n * sums.N / iota) * (log_2 if tuned is None else 0.7)
        return 4.0 * math.sqrt(n * sums.N * iota) + spread + log_2 + sums.blocks * m

    log = "ln n" if tuned is None else f"ln(n/{tuned:g})"
    return Bound(
        f"4.81 M √(nh {log}) + ...", f"{_FORGETTING}, Theorem F5", of, "above", True, loss_range
    )


def _discounted_ada_inf(given: dict[str, Any], h: int, falls: bool) -> Bound | None:
    """Bound by F7 with the best kappa, and the additions for ``robust`` and ``trim``."""
    exploration, robust = given.pop("exploration", None), given.pop("robust", True)
    trim = given.pop("trim", 0)
    if given:
        return None
    center = min(float(h), max(h / 16.0, 32.0))  # the half-life of the center
    often = 3.0 if falls else 1.0

    def of(n: int, T: int, delta: float) -> float:
        a = exploration or ada_inf.usual_exploration(n)
        sums, H = _Weights.of(h, T), 4.0 * (math.sqrt(n) - 1.0)
        root = math.sqrt(n * sums.N)
        reach = root / a + 2.0 * n  # 1 / eps
        S = 0.5 * math.sqrt(reach / (1.0 - n / reach))  # S*: early gaps are H kappa S* at most
        logs = math.log(8.0 * math.sqrt(n) / -math.expm1(-math.log(4.0) / center)) + h / center
        logs += (1.3 if h >= 17 else 1.0 + 5.1 / h) + (9.4 if robust else 0.0)
        squares = (n - math.sqrt(n)) * (sums.squares + 4.0 * a * root)
        squares += 0.92 * H * math.sqrt(reach) * logs
        learning = math.inf
        for j in range(120):
            kappa = 1.1**j
            later = squares / (1.0 - 0.5 / kappa)
            learning = min(
                learning, 4.0 + 2.0 * math.hypot(kappa * H * S + reach, math.sqrt(later))
            )
        clipped = 0.0
        if robust:
            clipped += 1.0 + math.floor(min(ada_inf.MOST_RANKS - 1.0, 0.25 * math.sqrt(sums.N)))
        if trim > 0:
            clipped += (trim + 1.0) * reach
        first = ada_inf.WARM if robust else 1.0
        again = min(often, sums.blocks)
        return first + 2.0 * a * (1.0 - 1.0 / n) * root + again * learning + sums.blocks * clipped

    a = exploration or 0.5
    leading = 2.402 * a + 2.0 * often * math.sqrt(1.4427 / a**2 + 0.7214)
    leading += 3.0 * 1.2012 * (trim + 1.0) / a if trim > 0 else 0.0
    return Bound(f"{leading:.3g} R √(nh) + ...", f"{_FORGETTING}, Theorem F7", of)


def _told(
    given: dict[str, Any], text: str, reference: str, of: _Of, *, with_probability: bool = False
) -> Bound | None:
    """Bound a learner that is given the range, and perhaps the number of rounds."""
    loss_range, rounds = given.pop("loss_range", (0.0, 1.0)), given.pop("rounds", None)
    if given or loss_range == "true":  # the range that the experiment runner gave it is not stored
        return None
    loss_range = float(loss_range[0]), float(loss_range[1])
    return Bound(text, reference, of, "given", with_probability, loss_range, rounds)


def _exp3(given: dict[str, Any]) -> Bound | None:
    reference = "Bubeck & Cesa-Bianchi 2012, Theorem 3.1"
    if given.get("rounds") is None:
        return _told(given, "2 √(nT ln n)", reference, _spec("Exp3"))
    return _told(
        given, "√(2 nT ln n)", reference, lambda n, T, delta: math.sqrt(2.0 * n * T * math.log(n))
    )


def _exp3_s(given: dict[str, Any]) -> Bound | None:
    switches = given.pop("switches", 0)
    text = f"2.63 √(nT ({switches + 1} ln(nT) + e))"
    reference = "Auer et al. 2002, Corollary 8.3"
    return _told(given, text, reference, lambda n, T, delta: exp3_s.bound(n, T, switches))


def _fixed_share(given: dict[str, Any]) -> Bound:
    """Bound fixed share against the best fixed arm."""
    loss_range, window = _lower(given), given["window"]
    m, rate = given.get("outliers", 0) + 1, given.get("rate", 1.0)
    return Bound(
        f"M ⌈T/{window}⌉ ((ln({window} n) + 1.4)/η + {m}) + M ηnT/2",
        "docs/theory/forgetting.md, Theorem F9, summed in fixed_share.py",
        lambda n, T, delta: fixed_share.bound(n, T, window, m=m, rate=rate),
        "above",
        loss_range=loss_range,
    )


def _restarting(given: dict[str, Any]) -> Bound | None:
    """Bound restarts every so many rounds against the best fixed arm."""
    loss_range, every, m = _lower(given), given.get("every"), given.get("outliers", 0) + 1
    if every is None or given.get("detect") is not None:
        return None
    return Bound(
        f"M ⌈T/{every}⌉ (4 √(n ({every} + 1)) + ...)",
        "docs/theory/forgetting.md, Theorem F6",
        lambda n, T, delta: restarting_cost_scb.bound(n, T, every, m=m),
        "above",
        loss_range=loss_range,
    )


def _exp3_ix(given: dict[str, Any]) -> Bound | None:
    def anytime(n: int, T: int, delta: float) -> float:
        root = 2.0 * math.sqrt(n * T / math.log(n))
        return 4.0 * math.sqrt(n * T * math.log(n)) + (root + 1.0) * math.log(2.0 / delta)

    def tuned(n: int, T: int, delta: float) -> float:
        root = math.sqrt(2.0 * n * T / math.log(n))
        spread = (root + 1.0) * math.log(2.0 / delta)
        return 2.0 * math.sqrt(2.0 * n * T * math.log(n)) + spread

    text, of = "2 √(2 nT ln n) + (√(2 nT/ln n) + 1) ln(2/δ)", tuned
    if given.get("rounds") is None:
        text, of = "4 √(nT ln n) + (2 √(nT/ln n) + 1) ln(2/δ)", anytime
    return _told(given, text, "Neu 2015, Theorem 1", of, with_probability=True)


def _exp3_p(given: dict[str, Any]) -> Bound | None:
    """Bound Exp3.P only for the delta that it was given, in the form of Bubeck."""
    own = given.pop("delta", _defaults("Exp3P")["delta"])

    def of(n: int, T: int, delta: float) -> float:
        return math.nan if delta < own else 5.15 * math.sqrt(n * T * math.log(n / own))

    text, reference = f"5.15 √(nT ln(n/{own:g}))", "Bubeck & Cesa-Bianchi 2012, Theorem 3.2"
    return _told(given, text, reference, of, with_probability=True)


def _spec(learner: str) -> _Of:
    """Return the bound that the algorithm's own file states."""
    return lambda n, T, delta: float(_learners()[learner].spec.bound(n, T))


def _plain(
    learner: str, text: str, reference: str, unit: Literal["range", "scale"] = "range"
) -> _Make:
    """Bound a parameter-free learner with its default settings."""
    return lambda given: None if given else Bound(text, reference, _spec(learner), unit)


def _simple(learner: str, text: str, reference: str) -> _Make:
    return lambda given: _told(given, text, reference, _spec(learner))


_DISCOUNTED: Mapping[str, Callable[[dict[str, Any], int, bool], Bound | None]] = {
    "AdaINF": _discounted_ada_inf,
    "CostSCB": _discounted_cost_scb,
    "CostSCBIX": _discounted_cost_scb_ix,
}

_BOUNDS: Mapping[str, _Make] = {
    "AdaINF": _ada_inf,
    "SCB": _scb,
    "SCBIX": _scb_ix,
    "CostSCB": _cost_scb,
    "CostSCBIX": _cost_scb_ix,
    "AHB": _plain(
        "AHB", "9.33 R √(nT ln n) + nR for T ≥ 10 n ln n", "Hadiji & Stoltz 2023, Theorem 7"
    ),
    "AdaHedge": _plain(
        "AdaHedge", "R √(T ln n) + (4/3 ln n + 2) R", "De Rooij et al. 2014, Theorem 8"
    ),
    "AdaFTRL": _plain("AdaFTRL", "1.12 (1 + ln n) R √T", "derived here, see ada_ftrl.py"),
    "SOLOFTRL": _plain("SOLOFTRL", "3.32 ℓ∞ √(T ln n) + 7 ℓ∞", "Orabona & Pal 2018", "scale"),
    "Exp3": _exp3,
    "Exp3Auer": _simple("Exp3Auer", "2.63 √(nT ln n)", "Auer et al. 2002, Corollary 3.2"),
    "Exp3IX": _exp3_ix,
    "Exp3P": _exp3_p,
    "Exp3S": _exp3_s,
    "FixedShare": _fixed_share,
    "RestartingCostSCB": _restarting,
    "INF": _simple("INF", "8 √(nT)", "Audibert & Bubeck 2010, Theorem 11"),
    "TsallisINF": _simple("TsallisINF", "4 √(nT) + 1", _ZIMMERT),
    "TsallisINFRV": _simple(
        "TsallisINFRV", "2 √(nT) + 14 n ln T + 16", f"{_ZIMMERT}, by its proof (it prints 10)"
    ),
}
