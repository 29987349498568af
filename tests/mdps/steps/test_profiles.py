"""SCB-RL's constants: the rates of the paper, what limits them, what may be given instead."""

import math
from dataclasses import replace

import pytest

from unbounded.core.occupancy.layout import Layers
from unbounded.mdps import mvp, ucbvi
from unbounded.mdps.steps import profiles
from unbounded.mdps.steps.profiles import PAPER, PRACTICAL, Constants, Reading, Span, group, rates

LAYERS = Layers([2, 3, 2], 2)  # S A = 14, H = 3


def of(T, constants=PAPER, cap=0.5, tight=False, delta=0.1, layers=LAYERS):
    constants = replace(constants, exploration_cap=cap)
    return rates(layers, Span(T, T, T, delta), constants, tight, sum(layers.sizes))


def test_rates_are_the_papers_times_the_factors():
    T, delta = 100_000, 0.1
    eta = math.sqrt(3 * math.log(14 * T / delta) / (14 * T))
    theory = of(T)
    assert theory.eta == pytest.approx(eta, rel=1e-14)
    assert theory.gamma == pytest.approx(eta, rel=1e-14)
    assert theory.beta == pytest.approx(math.sqrt(14 / T), rel=1e-14)
    assert math.ceil(math.sqrt(14 * T)) == theory.N
    constants = replace(PAPER, rate=0.5, implicit=0.25, mixing=2.0, exploration=0.125)
    other = of(T, constants)
    assert other.eta == pytest.approx(0.5 * eta, rel=1e-14)
    assert other.gamma == pytest.approx(0.25 * eta, rel=1e-14)
    assert other.beta == pytest.approx(2.0 * math.sqrt(14 / T), rel=1e-14)
    assert math.ceil(0.125 * math.sqrt(14 * T)) == other.N


def test_e17_beta_is_at_most_one_half():
    """The bound has 1/(1 - beta), which the printed "beta >= 1/2" would not keep bounded."""
    for T in (1, 10, 14 * 4 - 1):
        assert math.sqrt(14 / T) > 0.5  # what the rate would be
        assert of(T).beta == 0.5
    assert of(14 * 4 + 1).beta == pytest.approx(math.sqrt(14 / 57))  # below 1/2 by itself
    assert of(10_000, replace(PAPER, mixing=1000.0)).beta == 0.5
    assert of(10_000, replace(PAPER, mixing=0.0)).beta == 0.0


@pytest.mark.parametrize("cap", [0.5, 0.1, 0.9])
def test_e18_exploration_is_part_of_t_and_at_most_a_fraction_of_it(cap):
    S = 7
    for T in (100, 150, 1000):
        found = of(T, cap=cap)
        wanted = math.ceil(math.sqrt(14 * T))
        assert max(1, min(wanted, math.floor(cap * T / S))) == found.N
        assert cap * T >= S * found.N or found.N == 1
        assert found.capped == (wanted > found.N)
    assert S * math.ceil(math.sqrt(14 * 100)) > 100  # uncapped, there would be no time left
    assert of(100, cap=cap).capped
    assert not of(10_000_000, cap=cap).capped  # the cap does not bind for large T
    assert of(8, cap=1e-6).N == 1  # each state takes at least one episode


def test_e24_tight_exploration_is_for_the_widest_layer():
    T = 100_000
    assert math.ceil(math.sqrt(3 * 2 * T)) == of(T, tight=True).N
    assert math.ceil(math.sqrt(7 * 2 * T)) == of(T, tight=False).N
    assert of(T, tight=True)[:3] == of(T, tight=False)[:3]


def test_e30_the_weight_is_a_constant_times_the_allowed_one():
    """eta = gamma and beta <= 1/2: 2 eta/(1 - beta) is at most twice the allowed 2 gamma."""
    for T in (20, 1000, 10**6, 10**9):
        theory = of(T)
        assert theory.eta == theory.gamma
        assert 2 * theory.eta / (1 - theory.beta) <= 2 * (2 * theory.gamma)
    # the remainder, 3/(1 - beta), is smaller in order than the printed 1/(2 gamma)
    assert 3 / (1 - of(10**6).beta) < 0.1 / (2 * of(10**6).gamma)


def test_e31_rates_need_t_and_delta():
    assert of(1000)[:4] != of(2000)[:4]
    one, other = of(1000, delta=0.1), of(1000, delta=0.01)
    assert one.eta < other.eta
    assert one.gamma < other.gamma
    assert (one.beta, one.N) == (other.beta, other.N)


def all_of(profile, layers=LAYERS, **given):
    return profiles.chosen(profile, Constants(**given), Reading(), layers)


def test_the_profiles():
    assert all_of("paper") == (PAPER, Reading(clip="scale"))
    assert all_of("practical") == (replace(PRACTICAL, renewal="epoch"), Reading(clip="range"))
    given = {"rate": 2.0, "share_counts": True, "early_stop": 3, "bonus": 1.5}
    assert all_of("paper", **given).constants == replace(PAPER, **given)
    assert group(Constants, "constants", given) == Constants(**given)
    assert group(Constants, "constants", None) == Constants()


def test_few_needs_what_it_counts_by():
    assert all_of("practical").constants.few
    assert not all_of("practical", early_stop=0).constants.few
    assert not all_of("practical", share_counts=False).constants.few
    literal = profiles.chosen("practical", Constants(), Reading(literal=True), LAYERS)
    assert not literal.constants.few


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rate": 0.0}, "rate must be above 0"),
        ({"implicit": -1.0}, "implicit"),
        ({"exploration": math.inf}, "exploration"),
        ({"width": math.nan}, "width"),
        ({"mixing": -0.5}, "mixing"),
        ({"skip": -0.5}, "skip"),
        ({"bonus": 0.0}, "bonus"),
        ({"bonus": "papers"}, "bonus must be a number above 0 or 'paper'"),
        ({"early_stop": -1}, "early_stop"),
        ({"exploration_cap": 0.0}, "exploration_cap"),
        ({"exploration_cap": 1.0}, "exploration_cap"),
        ({"center": -1.0}, "center"),
    ],
)
def test_what_cannot_be_given(given, message):
    with pytest.raises(ValueError, match=message):
        Constants(**given)


def test_other_mistakes():
    with pytest.raises(ValueError, match="profile must be one of 'paper', 'practical'"):
        all_of("best")
    with pytest.raises(TypeError, match="share_counts must be True or False"):
        Constants(share_counts=1)
    with pytest.raises(TypeError, match="constants has no 'speed'"):
        group(Constants, "constants", {"speed": 1.0})
    with pytest.raises(TypeError, match="reading must be a Reading or a mapping"):
        group(Reading, "reading", "literal")
    none = all_of("paper", mixing=0.0, skip=0.0).constants
    assert (none.mixing, none.skip) == (0.0, 0.0)


def test_the_explorers_bonus():
    def bonus(explorer, c):
        found, constants = of(100_000)._replace(N=300), replace(PAPER, bonus=c)
        span = Span(100_000, 100_000, 100_000, 0.01)
        return profiles.block_rates(LAYERS, span, found, constants, explorer, S=1).goal.bonus

    assert bonus("mvp", "paper") == mvp.paper_bonus(LAYERS, 300, 0.01)
    assert bonus("mvp", 0.4) == mvp.practical_bonus(LAYERS, 300, 0.01, 0.4)
    assert bonus("ucbvi", "paper") == ucbvi.hoeffding_bonus(LAYERS, 300, 0.01)
    assert bonus("ucbvi", 0.4) == ucbvi.hoeffding_bonus(LAYERS, 300, 0.01, 0.4)
    assert bonus("oracle", 0.4) == bonus("mvp", 0.4)


def test_few_explorers_have_a_budget_in_all():
    few = replace(PAPER, few=True, exploration=0.01)
    for T in (100, 10_000, 10**8):
        found = of(T, few, cap=0.1)
        assert found.budget == T // 10
        wanted = math.ceil(0.01 * math.sqrt(14 * T))
        assert wanted == found.N
        assert found.capped == (7 * wanted > found.budget)
    assert of(5, few, cap=0.1).budget == 1
    assert math.ceil(math.sqrt(14 * 100)) > of(100, PAPER, cap=0.1).N  # the control


def test_large_mdps_renew_lazily_in_the_practical_profile_only():
    small, large = Layers([20, 20], 4), Layers([50, 50, 50], 10)
    assert small.n_transitions < profiles.LARGE <= large.n_transitions
    assert all_of("practical", small).constants.renewal == "epoch"
    assert all_of("paper", large).constants.renewal == "epoch"
    lazy, given = all_of("practical", large).constants, all_of("practical", large, skip=0.75)
    assert (lazy.renewal, lazy.skip, given.constants.skip) == ("lazy", 3.0, 0.75)
