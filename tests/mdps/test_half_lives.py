"""Learners for MDPs with a half-life: units, blocks, saving, and what forgetting is for."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from mdp_play import params_of, play, state_of
from tiers import first_only
from unbounded import SCBRL, CostSCBRL, simulate_mdp, worlds
from unbounded.adversaries.mdps import MDPReplay
from unbounded.core.occupancy.mdp import best_policy
from unbounded.mdps import discounted_scb_rl
from unbounded.mdps.steps.costs import rounded_up

MDP = worlds.dirichlet([2, 3, 2], 2, np.random.default_rng(0))
LAYERS = MDP.layers


def make(seed=1, **settings):
    return CostSCBRL(LAYERS.sizes, LAYERS.n_actions, seed=seed, **settings)


def signed(seed=1, episodes=200, **settings):
    return SCBRL(LAYERS.sizes, LAYERS.n_actions, episodes, seed=seed, **settings)


BOTH = pytest.mark.parametrize("make", [make, signed], ids=["CostSCBRL", "SCBRL"])


def losses_of(T, seed, exponents=()):
    """Costs in [0, 1), multiplied by 2^k from episode t on for each (t, k)."""
    rows = np.random.default_rng(seed).random((T, LAYERS.n_pairs))
    for t, k in exponents:
        rows[t:] = np.ldexp(rows[t:], k)
    return rows


@BOTH
@pytest.mark.parametrize("k", first_only([-900, 900]))
def test_a_power_of_two_changes_nothing_where_the_scale_falls_and_rises(k, make):
    rows = losses_of(90, 2, ((30, -30), (60, 40)))
    rows[20:26] = 0.0
    plain, scaled, other = (
        play(make(half_life=8), MDP, losses, seed=3)[0]
        for losses in (rows, np.ldexp(rows, k), 3.0 * rows)
    )
    assert np.array_equal(plain, scaled)
    assert not np.array_equal(plain, other)  # the control: 3 rounds


def test_a_scale_that_falls_is_followed():
    """Small losses count again after two blocks; without a half-life they never do."""
    for h in (8, None):
        rows = np.ldexp(losses_of(60, 2, ((30, -30),)), 30)
        other = np.where(rows < 1.0, 1.0 - rows, rows)
        ours, theirs = (play(make(half_life=h), MDP, some, seed=3)[0] for some in (rows, other))
        assert (np.abs(ours - theirs).max() > 0.01) == (h is not None)
    for h, followed in ((8, True), (40, False)):  # not before a block has ended
        learner = signed(half_life=h)
        play(learner, MDP, rows, seed=3)
        assert np.abs(state_of(learner).play.estimates.L_hat).max() < 2.0**10
        assert (state_of(learner).play.estimates.unit < 2) == followed


def test_any_finite_losses_and_long_silence():
    """Of either sign, too."""
    rows = losses_of(140, 5)
    for t, k in ((0, 1000), (20, -1060), (40, 1020), (60, -1000), (130, 0)):
        rows[t:] = np.ldexp(losses_of(140, 5)[t:], k)
    rows[80:130] = 0.0
    policies, _ = play(signed(half_life=3), MDP, rows * np.tile([1.0, -1.0], 70)[:, None], seed=6)
    assert np.all(np.isfinite(policies))
    learner = make(half_life=3)
    policies, _ = play(learner, MDP, rows, seed=6)
    assert np.all(np.isfinite(policies))
    assert learner.certificate.unsolved == 0
    assert state_of(learner).fading.quiet == 0
    assert np.all(learner.thresholds < 1.0)  # of the last ten episodes alone
    again = CostSCBRL.load(learner.save())
    assert again.save() == learner.save()
    learner = make(half_life=3)
    play(learner, MDP, rows[:120], seed=6)
    assert state_of(learner).fading.quiet > 8  # sums are not halved to nothing
    assert state_of(learner).estimates.w.min() > 1e-6


@BOTH
@pytest.mark.parametrize("told", [26, 30])
def test_saved_in_the_middle_of_a_block_and_at_its_end(told, make):
    rows = losses_of(60, 7, ((20, -20),))
    learner = make(half_life=10)
    play(learner, MDP, rows[:told], seed=8)
    again = type(learner).load(learner.save())
    ours, theirs = (play(one, MDP, rows[told:], seed=9)[0] for one in (learner, again))
    assert np.array_equal(ours, theirs)


def test_forged_weights_are_rejected():
    learner = make(half_life=10)
    play(learner, MDP, losses_of(26, 7), seed=8)
    fading = state_of(learner).fading
    for wrong in (fading.memory._replace(pos=1), fading.memory._replace(N=100.0)):
        broken = CostSCBRL.load(learner.save())
        state = state_of(broken)
        broken.spec.packing.python.pack(
            broken._buffer, state._replace(fading=fading._replace(memory=wrong))
        )
        with pytest.raises(ValueError, match=r"no such weights|another round"):
            CostSCBRL.load(broken.save())


def test_weights_after_many_half_lives_are_those_after_few():
    """Nothing drifts, and nothing overflows."""
    rows = losses_of(40, 4)
    few, many = make(half_life=1), make(half_life=1)
    play(few, MDP, rows, seed=5)
    play(many, MDP, np.tile(rows, (27, 1)), seed=5)  # 1080 half-lives: 2^1080 is no float
    for one in (few, many):
        memory = state_of(one).fading.memory
        assert memory.pos == 0
        assert memory.g == 1.0
        assert pytest.approx(2.0, rel=1e-9) == memory.N
        assert np.all(np.isfinite(state_of(one).estimates.w))


@pytest.mark.parametrize(
    ("settings", "error"),
    [({"half_life": 0}, "half_life"), ({"half_life": 2, "outliers": 2}, "half_life must exceed")],
)
def test_wrong_half_lives(settings, error):
    with pytest.raises(ValueError, match=error):
        make(**settings)


def test_half_lives_are_for_the_practical_scb_rl():
    for settings in ({"profile": "paper"}, {"reading": {"clip": "scale"}}):
        with pytest.raises(ValueError, match="half_life is for the practical profile"):
            signed(half_life=10, **settings)


def test_scb_rl_with_a_long_half_life_plays_as_without():
    """Up to what is forgotten; 20 episodes are another half-life."""
    rows = losses_of(80, 3) - 0.5
    plain, long, short = (
        play(signed(half_life=h), MDP, rows, seed=4)[0] for h in (None, 2**30, 20)
    )
    assert np.abs(plain - long).max() < 1e-4
    assert np.abs(plain - short).max() > 0.05


def test_scb_rl_has_the_range_of_two_blocks_and_fades():
    learner, h = signed(half_life=20), 20
    _, told = play(learner, MDP, losses_of(50, 3, ((20, -2),)), seed=4)
    seen = np.array([episode[3] for episode in told])
    assert learner.thresholds == pytest.approx(np.ptp(seen[20:], axis=0), rel=1e-12)
    assert np.all(np.ptp(seen, axis=0) > 1.01 * learner.thresholds)  # the control
    params, state = params_of(learner), state_of(learner)
    plain = discounted_scb_rl.practical_scb_rl.State(*state[:11])
    before, w = state.play.estimates.L_hat.copy(), state.play.estimates.w.copy()
    for _ in range(h):
        plain = plain._replace(play=discounted_scb_rl.forget(params, plain, state.fading)[0])
    assert plain.play.estimates.L_hat == pytest.approx(0.5 * before, rel=1e-12)
    least = plain.play.C / plain.rates.play.eta
    assert plain.play.estimates.w == pytest.approx(np.maximum(least, 0.5 * w), rel=1e-12)
    assert np.any(plain.play.estimates.w > 1.1 * least)


def test_repr_and_settings():
    assert make(half_life=np.int64(7)).settings["half_life"] == 7
    assert "half_life=7" in repr(make(half_life=7))
    assert make().settings["half_life"] is None


# ---------------------------------------------------------------------- what is proved


@pytest.mark.parametrize("outliers", [0, 2])
def test_overshoot_of_a_block_is_the_sum_of_its_largest_losses(outliers):
    """Lemma 8; thresholds of the block before alone are no such thresholds."""
    h, m, over = 25, outliers + 1, []
    learner = make(half_life=h, outliers=outliers)
    rows = losses_of(200, 3, ((100, 3),))
    _, told = play(
        learner, MDP, rows, seed=4,
        before=lambda one, plan, s, a, seen: over.append(np.maximum(seen - one.thresholds, 0.0)),
    )  # fmt: skip
    blocks = np.array([episode[3] for episode in told]).reshape(-1, h, 3)
    most = np.sort(blocks, axis=1)[:, ::-1][:, :m].sum(axis=1)
    assert np.all(np.reshape(over, blocks.shape).sum(axis=1) <= most * (1.0 + 1e-12))
    before = np.sort(blocks[:-1], axis=1)[:, ::-1][:, m - 1 : m]
    assert np.any(np.maximum(blocks[1:] - before, 0.0).sum(axis=1) > 2.0 * most[1:])  # the control


def test_the_proof_adds_up_to_the_constants_of_theorem_o4():
    """Step (7) of Section 8, with N_T for T: penalty, bias, stability and union over pairs."""
    for h, T in ((10, 95), (100, 60), (100, 1234), (1000, 5000)):
        decay, N, total, largest = 2.0 ** (-1.0 / h), 0.0, 0.0, 0.0
        for t in range(T):
            g = 2.0 ** (t % h / h)
            N = decay * N + 1.0
            root = np.sqrt(rounded_up(g * g * N)) / g
            total = decay * total + 1.0 / root  # sum of b_t / root_t
            largest = max(decay * largest, root)
        assert largest == pytest.approx(root, rel=1e-12)  # weights do not fall
        assert 2.9 < (2.0 * root + total) / np.sqrt(N) <= 4.24
        assert total <= 2.0 * np.sqrt(N)
        assert total > 0.9 * np.sqrt(N)


# ---------------------------------------------------------------------- what it is for


def dynamic_regret(learner, switches, T, seed):
    """Regret against the best policy of each segment; costs are 0.2 or 0.8 likely to be 1."""
    rng = np.random.default_rng(seed)
    means = rng.choice([0.2, 0.8], LAYERS.n_pairs - 1)
    cuts = np.linspace(0, T, switches + 2).astype(int)
    flips = np.searchsorted(cuts[1:-1], np.arange(T), side="right") % 2 == 1
    rows = (rng.random((T, means.size)) < np.where(flips[:, None], 1.0 - means, means)) * 1.0
    played = simulate_mdp(learner, MDP, MDPReplay(rows), T, 1, seed=seed, checkpoints=[T])
    sums = [np.concatenate([[0.0], rows[a:b].sum(axis=0)]) for a, b in pairwise(cuts)]
    best = sum(best_policy(MDP, segment)[0] for segment in sums)
    paid = played.pseudo_regret[0, -1] + best_policy(MDP, np.sum(sums, axis=0))[0]
    return paid - best


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "figures"),
    [(make, (491, 1517, 298, 156)), (partial(signed, episodes=6000), (717, 1321, 587, 363))],
    ids=["CostSCBRL", "SCBRL"],
)
def test_forgetting_follows_a_best_policy_that_changes(make, figures):
    """The price is paid where nothing changes."""
    with_it, without, price, none = (
        np.mean([dynamic_regret(make(half_life=h), changes, 6000, seed) for seed in range(3)])
        for changes in (2, 0)
        for h in (200, None)
    )
    assert with_it < 0.6 * without
    assert none < price < 2.5 * none
    assert [with_it, without, price, none] == pytest.approx(figures, rel=0.05)
