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
from typing import Any, Literal, NamedTuple

from unbounded.bandits import ada_inf, algorithms, cost_scb, cost_scb_ix, scb, scb_ix
from unbounded.bandits.baselines import exp3_s

__all__ = ["DELTA", "Bound", "Losses", "bound_of"]


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


def bound_of(learner: str, settings: Mapping[str, Any]) -> Bound | None:
    """Return the bound of a learner with these settings, if one with constants is known.

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
    """
    make, unset = _BOUNDS.get(learner), object()
    if make is None:
        return None
    usual = _defaults(learner)
    return make({k: value for k, value in settings.items() if value != usual.get(k, unset)})


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


def _cost_scb(given: dict[str, Any]) -> Bound:
    loss_range, outliers = _lower(given), given.get("outliers", 0)
    rate, nu = given.get("rate", 2.0), given.get("implicit", 1.0)
    by_scale = given.get("tune") == "scale"

    def of(n: int, T: int, delta: float) -> float:
        m = cost_scb.growing_rank(n, T) if outliers == "sqrt" else outliers + 1
        form = cost_scb.scale_bound if by_scale else cost_scb.paid_bound
        return form(n, T, m, rate, nu)

    text = f"{4.0 / rate + rate:.3g} M √(nT) + ..."
    theorem = "O1" if by_scale else "O3"
    return Bound(
        text, f"docs/theory/one-sided.md, Theorem {theorem}", of, "above", False, loss_range
    )


def _cost_scb_ix(given: dict[str, Any]) -> Bound:
    loss_range, m, tuned = _lower(given), given.get("outliers", 0) + 1, given.get("delta")

    def of(n: int, T: int, delta: float) -> float:
        if tuned is None:
            return cost_scb_ix.bound(n, T, delta, m)
        return cost_scb_ix.bound_for_delta(n, T, tuned, m) if delta >= tuned else math.nan

    text = "4 M √(nT ln n) + M √(nT/ln n) ln(2/δ) + ..."
    if tuned is not None:
        text = f"4 M √(nT ln(n/{tuned:g})) + ..."
    return Bound(text, "docs/theory/one-sided.md, Theorem O5", of, "above", True, loss_range)


def _ada_inf(given: dict[str, Any]) -> Bound:
    a, robust = given.get("exploration"), given.get("robust", True)
    trim = given.get("trim", 0)
    leading = 2.0 * a + 2.0 * math.hypot(1.0, 1.0 / a) if a else 1.0 + 2.0 * math.sqrt(5.0)
    if trim > 0:
        leading += (trim + 1.0) / (a or 0.5)
    return Bound(
        f"{leading:.3g} R √(nT) + ...",
        "docs/theory/ada-inf.md, Theorem 1",
        lambda n, T, delta: ada_inf.bound(n, T, a, robust, trim),
    )


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
    "INF": _simple("INF", "8 √(nT)", "Audibert & Bubeck 2010, Theorem 11"),
    "TsallisINF": _simple("TsallisINF", "4 √(nT) + 1", _ZIMMERT),
    "TsallisINFRV": _simple(
        "TsallisINFRV", "2 √(nT) + 14 n ln T + 16", f"{_ZIMMERT}, by its proof (it prints 10)"
    ),
}
