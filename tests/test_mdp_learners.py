"""What holds for every MDP learner: interface, saving, scale-freeness; and the baselines' sums."""

import numpy as np
import pytest

from mdp_play import play, random_losses
from occupancy_reference import Program, clarabel_solve
from unbounded import worlds
from unbounded.core.occupancy.confidence import known
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.core.occupancy.policies import best_policy, occupancy
from unbounded.mdps.baselines import ExploreThenCommit, IndependentSCB, UniformPolicy
from unbounded.mdps.o_reps import OREPS
from unbounded.mdps.scb_rl import SCBRL
from unbounded.mdps.seekers import MVP, RFELP
from unbounded.mdps.uob_reps import UOBREPS

MDP = worlds.dirichlet([2, 3], 2, np.random.default_rng(0))
T = 120

LEARNERS = {
    "SCBRL": lambda seed: SCBRL([2, 3], 2, T, seed=seed),
    "UOBREPS": lambda seed: UOBREPS([2, 3], 2, T, loss_range=(-3, 4), seed=seed),
    "OREPS": lambda seed: OREPS([2, 3], 2, T, transitions=MDP.P, loss_range=(-3, 4), seed=seed),
    "UniformPolicy": lambda seed: UniformPolicy([2, 3], 2, seed=seed),
    "ExploreThenCommit": lambda seed: ExploreThenCommit([2, 3], 2, T, seed=seed),
    "IndependentSCB": lambda seed: IndependentSCB([2, 3], 2, seed=seed),
    "MVP": lambda seed: MVP([2, 3], 2, T, total=2.0, seed=seed),
    "RFELP": lambda seed: RFELP([2, 3], 2, 12, early_stop=4, seed=seed),
}


def losses_for(name, seed=1):
    if name == "MVP":
        return -np.random.default_rng(seed).random((T, MDP.layers.n_pairs))
    return random_losses(MDP.layers, T, seed)


@pytest.fixture(params=LEARNERS)
def name(request):
    return request.param


def test_policies_are_distributions_and_seeds_decide(name):
    runs = [play(LEARNERS[name](seed), MDP, losses_for(name), seed=2)[0] for seed in (3, 3, 4)]
    assert np.array_equal(runs[0], runs[1])
    for pi in runs[0][::20]:
        for table in MDP.layers.unpack_pairs(pi):
            assert np.all(table >= 0)
            assert table.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
        assert pi[0] == 1.0


def test_saving_in_the_middle_changes_nothing(name):
    losses = losses_for(name)
    whole = LEARNERS[name](5)
    policies, told = play(whole, MDP, losses, seed=6)
    part = LEARNERS[name](5)
    play(part, MDP, losses[:60], seed=6)
    rest = type(part).load(part.save())
    for t in range(60, T):
        plan = rest.ask()
        assert np.array_equal(plan._pi, policies[t])
        rest.tell(plan, *told[t][1:])
    assert np.array_equal(rest.policy().pi, whole.policy().pi)


def test_scale_freeness_is_as_claimed(name):
    losses = losses_for(name)
    policies, _ = play(LEARNERS[name](7), MDP, losses, seed=8)
    learner = LEARNERS[name](7)
    if name == "MVP":  # told what a total is, it minds only that
        learner = MVP([2, 3], 2, T, total=np.ldexp(2.0, -20), seed=7)
    scaled, _ = play(learner, MDP, np.ldexp(losses, -20), seed=8)
    claims = learner.spec.scale_free or name in ("RFELP", "ExploreThenCommit", "MVP")
    assert np.array_equal(scaled, policies) == claims


@pytest.mark.parametrize("k", [-1000, 40, 1019])
def test_uob_reps_told_a_scaled_range_plays_the_same(k):
    losses = random_losses(MDP.layers, T, seed=9)
    a = UOBREPS([2, 3], 2, T, loss_range=(-4, 4), seed=10)
    b = UOBREPS([2, 3], 2, T, loss_range=(-4 * 2.0**k, 4 * 2.0**k), seed=10)
    one, _ = play(a, MDP, losses, seed=11)
    two, _ = play(b, MDP, np.ldexp(losses, k), seed=11)
    assert np.array_equal(one, two)
    assert a.clipped == b.clipped
    assert a.certificate.solves == T
    assert a.certificate.unsolved == 0
    assert a.certificate.worst_gap <= 1.1e-8
    assert a.certificate == b.certificate


def test_uob_reps_step_against_clarabel():
    """One episode from the formulas: estimates with u = 1, whole simplices, then the projection."""
    learner = UOBREPS([2, 3], 2, 50, loss_range=[(0, 2), (-1, 3)], tolerance=1e-11, seed=12)
    p, q0, P0 = learner._params, np.exp(learner._state.ln_q), np.exp(learner._state.ln_P)
    plan = learner.ask()
    learner.tell(plan, [1, 2], [0, 1], [1.5, 1.0])
    L = np.zeros(MDP.layers.n_pairs)
    L[MDP.layers.index(1, 1, 0)] = 1.5 / (0.5 + p.gamma)
    L[MDP.layers.index(2, 2, 1)] = 2.0 / (0.5 + p.gamma)
    w = np.array([2.0, 4.0]) / p.eta
    program = Program(MDP.layers, learner._state.lo, learner._state.hi)
    status, _, x = clarabel_solve(program, L, w, entropy_on_triples=(q0, P0))
    assert status == "Solved"
    assert np.allclose(x[: program.n_x], np.exp(learner._state.ln_q)[1:], atol=1e-6)


def test_o_reps_against_clarabel():
    """After some episodes: the FTRL problem with known transitions and lhat = l/q."""
    learner = OREPS([2, 3], 2, 60, transitions=MDP.P, loss_range=(-4, 5), tolerance=1e-12, seed=13)
    L = np.zeros(MDP.layers.n_pairs)

    def before(learner, plan, states, actions, seen):
        q = occupancy(MDP, learner.policy())
        for h in range(2):
            p = MDP.layers.index(h + 1, int(states[h]), int(actions[h]))
            L[p] += (min(max(seen[h], -4), 5) + 4) / q[p]

    play(learner, MDP, random_losses(MDP.layers, 40, seed=14), seed=15, before=before)
    eta = np.sqrt(2 * np.log(10 / 2) / (60 * 10))
    w = np.full(2, 9.0 / eta)
    status, _, x = clarabel_solve(Program(MDP.layers, *known(MDP)), L, w)
    assert status == "Solved"
    assert np.allclose(x[:10], occupancy(MDP, learner.policy())[1:], atol=1e-6)


def test_explore_then_commit_finds_the_best_policy_of_a_stochastic_world():
    losses = np.tile(np.random.default_rng(16).random(MDP.layers.n_pairs), (2000, 1))
    learner = ExploreThenCommit([2, 3], 2, 2000, seed=17)
    play(learner, MDP, losses, seed=18)
    value, _ = best_policy(MDP, losses[0])
    assert occupancy(MDP, learner.policy())[1:] @ losses[0, 1:] <= value + 0.02


def test_independent_scb_is_scb_with_one_state():
    from unbounded import SCB

    mdp = LayeredMDP([1.0], [], n_actions=3)
    learner, bandit = IndependentSCB([1], 3, seed=19), SCB(3, seed=0)
    losses = random_losses(mdp.layers, 100, seed=20)

    def before(learner, plan, states, actions, seen):
        assert plan.policy[0][0] == pytest.approx(bandit.probabilities(), abs=1e-12)
        choice = bandit.ask()
        while choice.arm != actions[0]:  # the bandit must take the same arm
            bandit.forget(choice)
            choice = bandit.ask()
        bandit.tell(choice, float(seen[0]))

    play(learner, mdp, losses, seed=21, before=before)
    assert learner.thresholds[0] == bandit.scale


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: UOBREPS([1], 2, 10, loss_range=(1, 1)), "low < high"),
        (lambda: UOBREPS([1], 2, 10, loss_range=[(0, 1), (0, 1)]), "1 such pairs"),
        (lambda: OREPS([1], 2, 10, transitions=[1.0, 0.0]), "shape"),
        (lambda: ExploreThenCommit([1], 2, 10, explore=0), "explore"),
        (lambda: RFELP([1], 2, 0), "episodes"),
        (lambda: MVP([1], 2, 5, explorer="x"), "explorer must be one of"),
    ],
)
def test_bad_settings(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros(14), r"transitions of layer 0"),
        (np.full(14, np.nan), "not finite"),
        (np.where(np.arange(14) == 3, -MDP.P, MDP.P), "negative"),
        (MDP.P[:-1], "shape"),
    ],
)
def test_o_reps_wants_transitions_that_are_distributions(wrong, message):
    with pytest.raises(ValueError, match=message):
        OREPS([2, 3], 2, T, transitions=wrong)
