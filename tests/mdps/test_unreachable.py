"""Learners in worlds with states that nothing reaches; and solves that fail, which are said."""

import warnings

import numpy as np
import pytest

from mdp_play import explore, play, random_losses, state_of
from occupancy_facades import ConfidenceSet
from occupancy_reference import objective
from occupancy_worlds import lower_bound, reached, sparse_world
from unbounded import (
    OREPS,
    RFELP,
    SCBRL,
    UOBREPS,
    SolverWarning,
    UniformPolicy,
    simulate_mdp,
    worlds,
)
from unbounded.adversaries.mdps import Stochastic
from unbounded.core.occupancy.solver.ftrl import EXPONENT


def grid(width=4, horizon=6):
    """A deterministic grid whose walls one bumps into, from its corner, unrolled."""
    n = width * width
    P = np.zeros((n, 4, n))
    for s in range(n):
        row, column = divmod(s, width)
        for a, (down, right) in enumerate([(0, 1), (1, 0), (0, -1), (-1, 0)]):
            there = np.clip([row + down, column + right], 0, width - 1)
            P[s, a, there @ [width, 1]] = 1.0
    return worlds.time_expansion(P, np.eye(n)[0], horizon)


GRID = grid()
SIZES = list(GRID.layers.sizes)


def test_o_reps_learns_in_a_grid():
    T = 2000
    ours, even = (
        simulate_mdp(learner, GRID, Stochastic(), T, replicates=2, seed=3)
        for learner in (OREPS(SIZES, 4, T, transitions=GRID.P), UniformPolicy(SIZES, 4))
    )
    assert not ours.unsolved.any()
    assert ours.solves.min() > 0.9 * T
    assert ours.worst_gap.max() <= 1e-8
    assert np.all(ours.pseudo_regret[:, -1] < 0.8 * even.pseudo_regret[:, -1])
    assert np.all(even.pseudo_regret[:, -1] > 0.3 * T)  # there is something to learn


def check_learners(seed, episodes=40):
    """O-REPS, UOB-REPS and SCB-RL in one world, told its support; unreachable states, solves."""
    rng = np.random.default_rng([31, seed])
    mdp = sparse_world(rng, max_horizon=4, max_states=4)
    layers = mdp.layers
    shape, support = (list(layers.sizes), layers.n_actions), mdp.P > 0
    dead = np.concatenate([~alive for alive in reached(layers, mdp.P, mdp.P)])
    T = max(episodes, 2 * layers.n_states)
    losses = random_losses(layers, T, seed=seed)
    learners = [
        OREPS(*shape, T, transitions=mdp.P, loss_range=(-2.0, 3.0), rate=5.0, seed=seed),
        UOBREPS(*shape, T, support=support, loss_range=(-2.0, 3.0), width=0.05, seed=seed),
        SCBRL(
            *shape,
            T,
            seed=seed,
            known={"support": support},
            constants={"width": 0.02, "few": False, "center": 0.0},
        ),
    ]
    solves = 0
    for learner in learners:
        play(learner, mdp, losses, seed=seed)
        tally = learner.certificate
        assert tally.unsolved == 0, (seed, learner, tally)
        assert tally.worst_gap <= 1.1e-8, (seed, learner, tally)
        solves += tally.solves
        for table in learner.policy().tables:
            assert np.allclose(table.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    scb = learners[2]
    assert scb.phase == "playing"
    for (h, s), mixture in scb.explorers().items():
        assert not dead[layers.table[2, h + 1] + s], (seed, h, s)
        assert mixture.policies
    assert len(scb.explorers()) == np.sum(~dead[1:])
    for learner in (learners[0], scb):
        check_last_solve(learner, layers, mdp.P if learner is learners[0] else None, dead)
    return int(dead.sum()), solves


def check_last_solve(learner, layers, P, dead):
    """The q~ of the learner, by a bound that NumPy computes from its dual point."""
    state = state_of(learner) if P is not None else state_of(learner).play
    lo, hi = (P, P) if P is not None else (state.boxes.lo, state.boxes.hi)
    v = np.ldexp(state.solver.memory.v, int(state.solver.memory.head[EXPONENT]))
    L = state.estimates.L_hat - (
        0.0 if P is not None else state.estimates.since
    )  # at the time of the solve
    gap = objective(layers, L, state.estimates.w, state.solver.q) - lower_bound(
        layers, lo, hi, L, state.estimates.w, v
    )
    noise = 1e-11 * (state.estimates.w.max() + np.abs(L).max())
    assert -noise <= gap <= 2e-8 * state.estimates.w.min() + noise
    assert not np.any(np.repeat(dead[1:], layers.n_actions) & (state.solver.q[1:] > 0))


def test_learners_where_not_everything_is_reached():
    found = [check_learners(seed) for seed in range(8)]
    assert min(dead for dead, _ in found) > 0
    assert sum(solves for _, solves in found) > 500


@pytest.mark.long
def test_learners_in_three_hundred_mdps():
    found = [check_learners(seed) for seed in range(300)]
    assert min(dead for dead, _ in found) > 0
    assert sum(solves for _, solves in found) > 20_000


# ---------------------------------------------------------------------- exploration


def test_only_what_can_be_reached_is_explored():
    told = explore(RFELP(SIZES, 4, 3, support=GRID.P > 0, seed=0), GRID)
    alive = np.concatenate(reached(GRID.layers, GRID.P, GRID.P)[1:])
    assert told.episodes_explored == told.made_for == 3 * alive.sum()
    assert len(told.explorers()) == alive.sum()
    library = state_of(told).library
    assert library.weight[: library.size].sum() == pytest.approx(1.0, abs=1e-12)
    blind = RFELP(SIZES, 4, 3, seed=0)  # counts prove nothing
    assert blind.made_for == 3 * alive.size


def test_scb_rl_spends_its_exploration_on_what_can_be_reached():
    alive = np.concatenate(reached(GRID.layers, GRID.P, GRID.P)[1:])
    told, blind = (
        SCBRL(SIZES, 4, 3000, known={"support": s}, profile="paper") for s in (GRID.P > 0, None)
    )
    assert told.explored.per_state == 1500 // alive.sum()
    assert blind.explored.per_state == 1500 // alive.size


def test_an_oracle_has_no_policies_for_what_it_knows_to_be_out_of_reach():
    learner = SCBRL(SIZES, 4, 100, explorer="oracle", known={"transitions": GRID.P}, seed=0)
    alive = np.concatenate(reached(GRID.layers, GRID.P, GRID.P)[1:])
    assert len(learner.explorers()) == state_of(learner).search.library.size == alive.sum()
    assert alive.sum() < alive.size


def test_what_was_told_to_be_impossible_stays_so_until_it_is_seen():
    mdp = worlds.dirichlet([1, 3], 2, np.random.default_rng(0))
    first = mdp.layers.table[4, 1]  # triples of layer 1: next state first, then pairs
    support = np.ones(mdp.layers.n_transitions, bool)
    support[first] = False  # action 0 never leads to state 0
    for nested in (True, False):
        sets = ConfidenceSet(mdp.layers, 1000, 0.1, nested=nested, support=support)
        for state in (1, 2, 1, 1, 2):
            sets.observe([0, state], [0, 0])
        sets.refresh()
        assert sets.hi[first] == 0.0
        assert np.all(np.delete(sets.hi, first) > 0.0)
        sets.observe([0, 0], [0, 0])
        sets.refresh()
        assert sets.hi[first] > 0.0


def told(cls, support):
    return {"known": {"support": support}} if cls is SCBRL else {"support": support}


@pytest.mark.parametrize("cls", [SCBRL, UOBREPS, RFELP])
def test_a_support_that_is_none(cls):
    support = np.ones(10, bool)
    support[[2, 6]] = False
    for wrong, message in (
        (support, "pair 0 of layer 1 has none"),
        (support[:-1], "10 values"),
        (support.astype(float), "True or False"),
    ):
        with pytest.raises(ValueError, match=message):
            cls([2, 2], 2, 50, **told(cls, wrong))


def test_a_told_learner_is_saved_and_loaded():
    mdp = sparse_world(np.random.default_rng(4), max_horizon=3)
    shape = list(mdp.layers.sizes), mdp.layers.n_actions
    for cls in (SCBRL, UOBREPS):
        learner = cls(*shape, 60, **told(cls, mdp.P > 0), seed=1)
        play(learner, mdp, random_losses(mdp.layers, 20, seed=2))
        again = cls.load(learner.save())
        assert again.save() == learner.save()
        assert again.settings == learner.settings


# ---------------------------------------------------------------------- solves that fail

WORLD = worlds.dirichlet([2, 3], 2, np.random.default_rng(0))


def test_a_learner_says_once_that_solves_fail():
    """Weights of 1e-20 beside the losses: float64 cannot tell."""
    learner = OREPS([2, 3], 2, 60, transitions=WORLD.P, rate=1e20, seed=0)
    with pytest.warns(SolverWarning, match="OREPS could not solve 1 of") as seen:
        play(learner, WORLD, np.abs(random_losses(WORLD.layers, 30, seed=1)))
    assert len(seen) == 1
    assert learner.certificate.unsolved > 5
    assert learner.certificate.worst_gap < np.inf
    easy = OREPS([2, 3], 2, 60, transitions=WORLD.P, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        play(easy, WORLD, np.abs(random_losses(WORLD.layers, 30, seed=1)))


def test_a_simulation_says_once_how_many_solves_failed():
    learner = OREPS([2, 3], 2, 400, transitions=WORLD.P, rate=1e20)
    even = simulate_mdp(UniformPolicy([2, 3], 2), WORLD, Stochastic(), 400, 4, seed=1)
    with pytest.warns(SolverWarning) as seen:
        result = simulate_mdp(learner, WORLD, Stochastic(), 400, 4, seed=1)
    assert len(seen) == 1
    counts = f"could not solve {result.unsolved.sum()} of {result.solves.sum()} programs"
    assert counts in str(seen[0].message)
    # What it plays is certified all the same: it follows the leader
    assert result.pseudo_regret[:, -1].mean() < 0.95 * even.pseudo_regret[:, -1].mean()
