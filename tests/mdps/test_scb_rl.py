"""SCB-RL: its phases, scale-freeness, special cases, invariants, options."""

import math
from dataclasses import replace

import numpy as np
import pytest

from mdp_play import (
    Onlooker,
    grouped,
    params_of,
    play,
    random_losses,
    rates_of,
    reach,
    reached,
    state_of,
)
from unbounded import SCBRL, simulate_mdp, worlds
from unbounded.adversaries.mdps import QuietLure
from unbounded.core.occupancy.mdp import LayeredMDP, Markov, Mixture
from unbounded.mdps import mvp, rf_elp, ucbvi
from unbounded.mdps.steps import profiles

MDP = worlds.dirichlet([2, 3, 2], 2, np.random.default_rng(0))
LAYERS = MDP.layers


def make(T=300, seed=1, **settings):
    return SCBRL(LAYERS.sizes, LAYERS.n_actions, T, seed=seed, **grouped(settings))


@pytest.mark.parametrize("clip", ["range", "scale"])
def test_one_state_is_the_shannon_bandit(clip):
    """H = 1, one state: exponential weights with the same eta, gamma, beta and clipping."""
    T, A = 400, 4
    mdp = LayeredMDP([1.0], [], n_actions=A)
    learner = SCBRL(
        [1], A, T, reading={"clip": clip}, constants={"skip": 0.0, "center": 0.0},
        tolerance=1e-12, seed=0,
    )  # fmt: skip
    losses = random_losses(mdp.layers, T, seed=1, shift=3.0)
    rate = math.sqrt(math.log(A * T / 0.05) / (A * T))
    eta, gamma, beta = 0.5 * rate, 0.3 * rate, math.sqrt(A / T)
    L, C, low, high = np.zeros(A), 0.0, np.inf, -np.inf
    worst = 0.0

    def before(learner, plan, states, actions, seen):
        nonlocal C, low, high, worst
        W = 2 * C if clip == "scale" else max(high - low, 0.0)
        p = np.full(A, 1 / A)
        if W > 0:
            p = np.exp(-(L - L.min()) * 2 * eta / W)
            p /= p.sum()
        loss, a = float(seen[0]), int(actions[0])
        if learner.phase == "playing":
            worst = max(worst, np.max(np.abs(learner.policy().tables[0][0] - p)))
            q = (1 - beta) * p[a] + beta / A
            l_plus = np.clip(loss, -C, C) + C if clip == "scale" else np.clip(loss, low, high) - low
            L[a] += l_plus / (q + gamma)
        C = 2 * abs(loss) if abs(loss) > C else C
        low, high = min(low, loss), max(high, loss)

    play(learner, mdp, losses, seed=2, before=before)
    assert learner.phase == "playing"
    assert worst <= 1e-6
    assert learner.policy().tables[0].max() > 0.3  # it did learn something


def test_first_it_explores_and_then_it_plays():
    """Lines 1 to 3: RF-ELP's episodes are those of an RFELP by itself, then FTRL's policies."""
    learner = make(T=400, few=False, early_stop=16, exploration_cap=0.5)
    exploration = []

    def before(learner, plan, states, actions, seen):
        exploration.append(learner.phase == "exploring")
        if exploration[-1]:
            assert plan.component is not None
            assert learner.certificate.solves == 0
            assert learner.episodes_explored == learner.episodes_told
        elif plan.component is None:
            assert all(map(np.array_equal, plan.policy, learner.policy().tables))

    play(learner, MDP, random_losses(LAYERS, 400, seed=4), seed=5, before=before)
    spent = learner.episodes_explored
    assert exploration == [True] * spent + [False] * (400 - spent)
    assert learner.explored == (spent, learner.explored.per_state, learner.explored.capped)
    assert len(learner.explorers()) == 7
    assert learner.certificate.solves > 1


def test_the_exploration_is_that_of_rf_elp():
    learner = make(T=400, few=False, early_stop=16, exploration_cap=0.5)
    p = params_of(learner).search
    seeker = rf_elp.RFELP(LAYERS.sizes, 2, p.goal.N, early_stop=p.m, bonus=0.3, seed=9)
    assert repr(params_of(seeker)) == repr(p)
    _, told = play(learner, MDP, random_losses(LAYERS, 400, seed=4), seed=5)
    for component, states, actions, seen in told[: learner.episodes_explored]:
        plan = seeker.ask()
        assert plan.component == component
        seeker.tell(plan, states, actions, seen)
    assert seeker.done
    for state, mixture in learner.explorers().items():
        other = seeker.explorers()[state]
        assert mixture.weights.tolist() == other.weights.tolist()
        for a, b in zip(mixture.policies, other.policies, strict=True):
            assert np.array_equal(a.pi, b.pi)


@pytest.mark.parametrize("settings", [{}, {"few": False, "exploration": 0.3}, {"profile": "paper"}])
def test_the_version_changes_with_what_is_played(settings):
    """The simulator computes the occupancy measure again only then."""
    learner, onlooker = make(T=200, **settings), Onlooker(MDP)
    seen = {}
    changes = {"exploring": 0, "playing": 0}
    last = None

    def before(learner, plan, states, actions, losses):
        nonlocal last
        version, q = state_of(learner).version, onlooker(learner)
        if version in seen:
            assert np.array_equal(q, seen[version])
        seen[version] = q
        changes[learner.phase] += last is not None and not np.array_equal(q, last)
        last = q

    play(learner, MDP, random_losses(LAYERS, 200, seed=6), seed=7, before=before)
    assert changes["exploring"] >= 5 or not settings
    assert changes["playing"] > 10


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_learns_at_any_scale(scale):
    """The better action of each state is found."""
    mdp = worlds.dirichlet([2, 2], 2, np.random.default_rng(14))
    learner = SCBRL([2, 2], 2, 3000, seed=15)
    rng = np.random.default_rng(16)
    losses = rng.random((3000, mdp.layers.n_pairs)) * scale
    losses[:, 1::2] += scale  # action 0 is worse
    play(learner, mdp, losses, seed=17)
    assert all(table[:, 1].min() > 0.8 for table in learner.policy().tables)


@pytest.mark.parametrize("sizes", [[1], [3], [1, 1, 1], [1, 2]])
@pytest.mark.parametrize("n_actions", [1, 2])
def test_small_shapes(sizes, n_actions):
    mdp = worlds.dirichlet(sizes, n_actions, np.random.default_rng(18))
    for settings in ({}, {"profile": "paper"}):
        learner = SCBRL(sizes, n_actions, 60, seed=19, **grouped(settings))
        play(learner, mdp, random_losses(mdp.layers, 60, seed=20), seed=21)
        assert learner.phase == "playing"
        assert learner.certificate.unsolved == 0
        assert np.all(np.isfinite(learner.policy().pi))


def test_unreachable_states():
    mdp = LayeredMDP([1.0, 0.0], [[[[1, 0, 0], [0.5, 0.5, 0]], [[0, 0, 1], [0, 0, 1]]]])
    learner = SCBRL([2, 3], 2, 400, seed=22)
    play(learner, mdp, random_losses(mdp.layers, 400, seed=23), seed=24)
    assert learner.phase == "playing"
    assert learner.certificate.unsolved == 0


@pytest.mark.parametrize("clip", ["range", "scale"])
def test_extreme_losses(clip):
    """Any finite float64: the largest, the smallest, both signs, jumps between them."""
    mdp = worlds.dirichlet([2, 2], 2, np.random.default_rng(25))
    rng = np.random.default_rng(26)
    sizes = np.array([0.0, 5e-324, 1e-300, 1.0, 1e300, np.finfo(float).max])
    learner = SCBRL([2, 2], 2, 200, reading={"clip": clip}, seed=27)
    losses = rng.choice(sizes, (200, 9)) * rng.choice([-1.0, 1.0], (200, 9))
    play(learner, mdp, losses, seed=28)
    assert np.all(np.isfinite(learner.policy().pi))
    assert learner.certificate.unsolved == 0


def test_range_clipping_counts_what_was_outside():
    learner = make()
    _, told = play(learner, MDP, random_losses(LAYERS, 300, seed=36), seed=37)
    low, high, clipped = np.full(3, np.inf), np.full(3, -np.inf), 0
    for t, (_, _, _, seen) in enumerate(told):
        clipped += np.sum((seen < low) | (seen > high)) if t else 0
        low, high = np.minimum(low, seen), np.maximum(high, seen)
    assert learner.clipped == clipped
    assert learner.thresholds == pytest.approx(high - low, rel=1e-14)


def test_who_explores():
    learner = make(T=1000, explorer="ucbvi")
    play(learner, MDP, random_losses(LAYERS, 1000, seed=38), seed=39)
    assert learner.phase == "playing"
    N = learner.explored.per_state
    assert state_of(learner).rates.goal.bonus == ucbvi.hoeffding_bonus(LAYERS, N, 0.05 / 7, 0.3)
    papers = params_of(make(explorer="ucbvi", bonus="paper")).search
    assert (papers.explorer, papers.goal.bonus.c1) == (rf_elp.UCBVI, 7.0)
    papers = params_of(make(bonus="paper")).search
    assert (papers.explorer, papers.goal.bonus.c1) == (rf_elp.MVP, pytest.approx(460 / 9))
    goal = params_of(make()).search.goal
    assert goal.bonus == mvp.practical_bonus(LAYERS, goal.N, 0.05 / 7, 0.3)  # E33


def test_the_oracle_reaches_every_state_as_often_as_possible():
    mdp = worlds.dirichlet([2, 3, 2], 3, np.random.default_rng(6))
    learner = SCBRL([2, 3, 2], 3, 50, explorer="oracle", known={"transitions": mdp.P}, seed=0)
    assert learner.phase == "playing"
    assert learner.episodes_explored == 0
    assert reached(mdp, learner.explorers()) == pytest.approx(reach(mdp), abs=1e-12)


def test_ablation_and_policies_are_what_they_say():
    learner = make(mixing=0.0, ablation=True)
    assert rates_of(learner).beta == 0.0
    _, told = play(learner, MDP, random_losses(LAYERS, 300, seed=31), seed=32)
    assert all(component is None for component, *_ in told[learner.episodes_explored :])
    assert all(isinstance(m, Mixture) for m in learner.explorers().values())
    assert isinstance(learner.policy(), Markov)


def test_exploration_policies_are_needed():
    """Range clipping: a lure at the layer's minimum has estimates 0 and locks the learner in; only
    the explorers see what happens elsewhere."""
    lock = worlds.combination_lock(3, 2, np.random.default_rng(1))
    without = SCBRL(lock.layers.sizes, 2, 20_000, **grouped({"mixing": 0.0, "ablation": True}))
    regret = {}
    for name, learner in (("without", without), ("with", SCBRL(lock.layers.sizes, 2, 20_000))):
        result = simulate_mdp(
            learner, lock, QuietLure(), replicates=12, seed=9, checkpoints=[20_000]
        )
        regret[name] = result.minimax_regret(pseudo=True)[:, -1]
    # Without, a run is saved only if it happens to be at the right place when the first pay comes.
    assert regret["with"].mean() < 0.5 * regret["without"].mean()
    assert np.mean(regret["without"] > 1.0) > 0.7


def test_a_library_that_grew_is_used_in_the_main_phase():
    mdp = worlds.dirichlet([3, 3], 4, np.random.default_rng(7))
    settings = {"share_counts": False, "bonus": 0.05, "early_stop": 0, "exploration": 3.0}
    learner = SCBRL([3, 3], 4, 3000, seed=3, **grouped(settings))
    losses = random_losses(mdp.layers, 3000, seed=1)
    _, told = play(learner, mdp, losses, seed=2)
    library = state_of(learner).search.library
    assert library.size > 32
    later = [k for k, *_ in told[learner.episodes_explored :] if k is not None]
    assert max(later) >= 32
    copy = SCBRL.load(learner.save())
    assert np.array_equal(state_of(copy).search.library.choice, library.choice)
    result = simulate_mdp(learner, mdp, QuietLure(), seed=4, checkpoints=[3000])
    assert result.explored[0] == learner.explored.per_state * 6
    assert result.unsolved[0] == 0


def test_a_saved_learner_keeps_the_constants_of_its_profile(monkeypatch):
    first = make()
    saved = first.save()
    other = replace(profiles.PRACTICAL, rate=7.0, skip=3.0, bonus="paper")
    monkeypatch.setitem(profiles.PROFILES, "practical", other)
    restored = SCBRL.load(saved)
    assert repr(params_of(restored)) == repr(params_of(first))
    assert restored.settings == first.settings
    assert repr(params_of(make())) != repr(params_of(first))


def test_numpy_scalars_can_be_saved():
    learner = SCBRL(
        np.array([2, 3]), np.int64(2), np.int32(100), np.float32(0.25),
        reading={"literal": np.bool_(True)},
        constants={"early_stop": np.int64(3), "skip": np.float64(0.5)},
    )  # fmt: skip
    assert SCBRL.load(learner.save()).settings == learner.settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"episodes": 7}, "episodes must exceed the 7 states"),
        ({"delta": 1.0}, "delta"),
        ({"clip": "none"}, "clip must be one of"),
        ({"profile": "best"}, "profile must be one of"),
        ({"mixing": 0.0}, "needs exploration"),
        ({"explorer": "oracle"}, "needs transitions"),
        ({"explorer": "me"}, "explorer must be one of 'mvp', 'ucbvi', 'oracle'"),
        ({"estimator": "best"}, "estimator must be one of"),
        ({"threshold": "best"}, "threshold must be one of"),
        ({"transitions": [1.0]}, "explorer='oracle'"),
        ({"implicit": -1.0}, "implicit"),
        ({"early_stop": -1}, "early_stop"),
        ({"exploration_cap": 1.0}, "exploration_cap"),
        ({"kappa": 0.0}, "kappa"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"n_actions": 0}, "n_actions"),
        ({"layers": []}, "at least one layer"),
        ({"explorer": "oracle", "transitions": np.full(26, np.nan)}, "not finite"),
        ({"explorer": "oracle", "transitions": np.zeros(26)}, "transitions of layer 0"),
    ],
)
def test_bad_settings(settings, message):
    arguments = {"layers": [2, 3, 2], "n_actions": 2, "episodes": 100} | settings
    with pytest.raises(ValueError, match=message):
        SCBRL(**grouped(arguments))


@pytest.mark.parametrize("name", ["literal", "tight", "share_counts", "ablation"])
def test_flags_are_true_or_false(name):
    with pytest.raises(TypeError, match=f"{name} must be True or False"):
        make(**{name: "no"})
