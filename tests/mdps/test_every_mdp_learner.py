"""What must hold for every MDP learner; a new file in ``unbounded/mdps`` is tested as it is."""

import numpy as np
import pytest

from loss_helpers import filled
from mdp_examples import EPISODES, EXAMPLES, MDP, SEEKERS
from mdp_play import Onlooker, paid, play, told_of, walk, walk_of
from tiers import chosen, first_only, tiered
from unbounded import simulate_mdp
from unbounded.adversaries.mdps import Negative, Punish
from unbounded.core.occupancy.layout import backward_induction
from unbounded.core.occupancy.mdp import Markov, occupancy
from unbounded.learners.seeds import replicate_key, root_of
from unbounded.simulation.episode import EXPECTED, PAID, UNIT, new_book, tally
from unbounded.testing import check_mdp_learner

LAYERS = MDP.layers
SCALE_FREE = chosen(tiered(EXAMPLES), lambda example: example.spec.scale_free)
NOT_SCALE_FREE = chosen(tiered(EXAMPLES), lambda example: not example.spec.scale_free)


@pytest.fixture(params=tiered(EXAMPLES))
def example(request):
    return request.param


@pytest.mark.parametrize("every_example", EXAMPLES)
def test_every_example_keeps_the_contract(every_example):
    check_mdp_learner(every_example.cls, MDP, **every_example.given)


def test_policies_are_distributions(example):
    learner = example.make()
    policies, _ = play(learner, MDP, example.losses(), seed=2)
    for pi in [*policies, learner.policy().pi]:
        assert pi[0] == 1.0
        for table in LAYERS.unpack_pairs(pi):
            assert np.all(table >= 0.0)
            assert table.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    assert learner.episodes_told == EPISODES


def test_same_seed_same_play(example):
    runs = [play(example.make(seed), MDP, example.losses(), seed=2) for seed in (3, 3, 4)]
    (one, told), (again, told_again), (_, told_other) = runs
    assert np.array_equal(one, again)
    actions = [np.array([episode[2] for episode in t]) for t in (told, told_again, told_other)]
    assert np.array_equal(actions[0], actions[1])
    if np.any((one > 0.0) & (one < 1.0)):  # else nothing is drawn
        assert not np.array_equal(actions[0], actions[2])


def asked_for(learner, component, states, actions):
    """A plan of this component that takes these actions; others are forgotten."""
    while True:
        plan = learner.ask()
        visited = zip(plan.policy, states, actions, strict=True)
        chances = [table[s, a] for table, s, a in visited]
        if min(chances) > 0.0 and plan.component == component:
            return plan
        learner.forget(plan)


def test_looking_and_forgetting_change_nothing_that_is_learned(example):
    plain, looked = example.make(), example.make()
    losses, onlooker = example.losses(episodes=40), Onlooker(MDP)
    rng = np.random.default_rng(5)
    for row in losses:
        plan = plain.ask()
        states, actions = walk(MDP, plan, rng.random(2))
        seen = told_of(plain, row, states, actions)
        plain.tell(plan, states, actions, seen)
        for look in (looked.policy, looked.explorers, looked.save, looked.__repr__):
            look()
        onlooker(looked)
        looked.forget(looked.ask())
        looked.tell(asked_for(looked, plan.component, states, actions), states, actions, seen)
    assert np.array_equal(onlooker(plain), onlooker(looked))
    assert np.array_equal(plain.policy().pi, looked.policy().pi)
    assert looked.certificate == plain.certificate
    assert looked.clipped == plain.clipped
    assert looked.episodes_told == plain.episodes_told == 40


def test_what_adversaries_see_is_the_mean_of_what_is_played(example):
    """Plans are asked for and forgotten many times; q_t is the mean of their occupancies."""
    learner, onlooker = example.make(), Onlooker(MDP)
    for row in np.array_split(example.losses(), 3):
        play(learner, MDP, row, seed=7)
        if learner.episodes_told == EPISODES and learner.made_for == EPISODES:
            break  # it would warn
        known, drawn = {}, []
        for _ in range(300):
            plan = learner.ask()
            pi = LAYERS.pack_pairs(plan.policy, first=1.0)
            if pi.tobytes() not in known:
                known[pi.tobytes()] = occupancy(MDP, Markov(LAYERS, pi))
            drawn.append(known[pi.tobytes()])
            learner.forget(plan)
        error = np.std(drawn, axis=0) / np.sqrt(len(drawn))
        assert np.all(np.abs(np.mean(drawn, axis=0) - onlooker(learner)) <= 5 * error + 1e-12)


@pytest.mark.parametrize("make", first_only([Punish, Negative]))
def test_a_replicate_is_repeated_by_ask_and_tell_bit_for_bit(example, make):
    """Expected, paid and best loss after every episode; `Punish` looks at q_t."""
    adversary = make(scale=0.25)  # of -1 .. 0 for those who want rewards
    if example.spec.name in SEEKERS:
        adversary = Negative(scale=0.25)
    result = simulate_mdp(
        example.make(), MDP, adversary, EPISODES, replicates=2, seed=5,
        checkpoints=range(1, EPISODES + 1),
    )  # fmt: skip
    lay, value, pi = LAYERS.table, np.empty(LAYERS.n_states), np.empty(LAYERS.n_pairs)
    learner, onlooker, book = example.make(result.seed(1)), Onlooker(MDP), new_book(LAYERS)
    key = replicate_key(root_of(5), 1)
    for t in range(1, EPISODES + 1):
        q = onlooker(learner)
        row = filled(adversary, MDP, EPISODES, t, q, key)
        tally(lay, row, q, book)
        plan = learner.ask()
        states, actions = walk_of(MDP, plan, key, t)
        seen = paid(LAYERS, row, states, actions)
        unit = book.sums[UNIT]
        for loss in seen:
            book.sums[PAID] += loss * unit
        learner.tell(plan, states, actions, told_of(learner, row, states, actions))
        best = backward_induction(lay, MDP.P, book.cumulative, value, pi)
        assert result.regret[1, t - 1] == (book.sums[PAID] - best) / unit
        assert result.pseudo_regret[1, t - 1] == (book.sums[EXPECTED] - best) / unit
        assert result.clipped[1, t - 1] == learner.clipped
    assert np.array_equal(result.low[1, -1], book.low)
    assert np.array_equal(result.high[1, -1], book.high)
    assert result.explored[1] == learner.episodes_explored
    certificate = learner.certificate
    assert result.solves[1] == certificate.solves
    assert result.worst_gap[1] == certificate.worst_gap


def test_workers_and_checkpoints_do_not_matter(example):
    learner, adversary = example.make(), Negative(scale=0.25)
    many, one = (
        simulate_mdp(
            learner, MDP, adversary, EPISODES, replicates=3, seed=6, workers=k, checkpoints=points
        )
        for k, points in ((3, [7, 50, EPISODES]), (1, [EPISODES]))
    )
    for name in ("regret", "pseudo_regret", "clipped"):
        assert np.array_equal(getattr(many, name)[:, -1], getattr(one, name)[:, -1])


@pytest.mark.parametrize("at", first_only([100, 0, 11]))
def test_save_and_load_in_the_middle_equals_uninterrupted(example, at):
    """With a plan outstanding, which both the restored and the saved learner take."""
    losses = example.losses()
    whole, saved = example.make(), example.make()
    policies, told = play(whole, MDP, losses, seed=30)
    play(saved, MDP, losses[:at], seed=30)
    plan = saved.ask()
    restored = type(saved).load(saved.save())
    assert list(restored.outstanding) == [plan.id]
    assert restored.outstanding[plan.id].component == plan.component
    for learner in (restored, saved):
        for t in range(at, EPISODES):
            plan = next(iter(learner.outstanding.values())) if t == at else learner.ask()
            assert np.array_equal(LAYERS.pack_pairs(plan.policy, first=1.0), policies[t])
            component, states, actions, seen = told[t]
            assert plan.component == component
            assert [plan.act(h, int(s)) for h, s in enumerate(states)] == actions.tolist()
            learner.tell(plan, states, actions, seen)
        assert np.array_equal(learner.policy().pi, whole.policy().pi)
        assert learner.certificate == whole.certificate
        assert learner.clipped == whole.clipped
        assert learner.episodes_told == EPISODES


@pytest.mark.parametrize("example", SCALE_FREE)
def test_powers_of_two_change_nothing_where_scale_freeness_is_claimed(example):
    losses = example.losses()
    losses[:20] = np.where(np.arange(20)[:, None] < 5, 0.0, losses[:20])  # an all-zero start
    learner = example.make()
    policies, told = play(learner, MDP, losses, seed=8)
    for k in (-900, -7, 64, 900):
        scaled = example.make()
        scaled_policies, scaled_told = play(scaled, MDP, np.ldexp(losses, k), seed=8)
        assert np.array_equal(policies, scaled_policies), k
        assert np.array_equal([e[2] for e in told], [e[2] for e in scaled_told]), k
        assert scaled.clipped == learner.clipped
        assert scaled.certificate == learner.certificate


@pytest.mark.parametrize("example", SCALE_FREE)
def test_powers_of_two_change_nothing_among_the_least_floats_either(example):
    """Losses that are a few times 5e-324, and the same losses times 2^k."""
    losses = 5e-324 * np.round(40.0 * example.losses())
    losses[EPISODES // 2 :] = np.ldexp(losses[EPISODES // 2 :], 60)
    learner = example.make()
    policies, _ = play(learner, MDP, losses, seed=8)
    for k in (7, 1000):
        scaled = example.make()
        scaled_policies, _ = play(scaled, MDP, np.ldexp(losses, k), seed=8)
        assert np.array_equal(policies, scaled_policies), k
        assert scaled.certificate == learner.certificate


# Losses do not matter to them at all, or not so soon; nor with the constants of a paper.
IGNORE_LOSSES = {"UniformPolicy", "RFELP", "UCBVI"}


@pytest.mark.parametrize("example", NOT_SCALE_FREE)
def test_scale_matters_where_scale_freeness_is_not_claimed(example):
    losses = example.losses()
    policies, _ = play(example.make(), MDP, losses, seed=8)
    others, _ = play(example.make(), MDP, example.losses(seed=2), seed=8)
    ignored = np.array_equal(policies, others)
    slow = example.settings.get("constants") == "paper"
    assert ignored == (slow or example.spec.name in IGNORE_LOSSES)
    if ignored:
        return
    scaled, _ = play(example.make(), MDP, np.ldexp(losses, -10), seed=8)
    assert not np.allclose(policies, scaled, atol=1e-3)


def test_any_finite_loss_is_legal(example):
    largest = 1.0 / LAYERS.horizon if example.spec.name in SEEKERS else np.finfo(float).max
    sizes = np.array([0.0, 5e-324, 1e-310, 1e-200, 0.25, min(1e300, largest), largest])
    signs = [-1.0] if example.spec.name in SEEKERS else [-1.0, 1.0]
    rng = np.random.default_rng(26)
    shape = (EPISODES, LAYERS.n_pairs)
    learner = example.make()
    policies, _ = play(learner, MDP, rng.choice(sizes, shape) * rng.choice(signs, shape), seed=28)
    assert np.all(np.isfinite(policies))
    assert np.all(np.isfinite(learner.policy().pi))
    assert learner.certificate.unsolved == 0


def test_the_simulator_at_the_ends_of_float64(example):
    largest = 1.0 / LAYERS.horizon if example.spec.name in SEEKERS else np.finfo(float).max
    for scale in (1e-300, largest):
        result = simulate_mdp(example.make(), MDP, Negative(scale=scale), EPISODES, seed=13)
        for pseudo in (False, True):
            assert np.all(np.isfinite(result.relative_regret(pseudo=pseudo)))
            assert np.all(np.isfinite(result.minimax_regret(pseudo=pseudo)))
        assert np.any(result.low[:, -1] < -0.5 * scale)
