"""Every learner where some actions are not allowed and episodes end early."""

from __future__ import annotations

import itertools
from inspect import signature

import numpy as np
import pytest

from mdp_examples import SEEKERS
from mdp_play import walk_of
from saved_helpers import with_buffer
from unbounded import (
    OREPS,
    UOBREPS,
    CostSCBRL,
    LayeredMDP,
    MDPLearner,
    UniformPolicy,
    simulate_mdp,
)
from unbounded.adversaries.mdps import Hide, Lure, MDPReplay
from unbounded.learners.seeds import replicate_key, root_of
from unbounded.mdps import algorithms

N, A, H, T = 2, 3, 3, 60
RNG = np.random.default_rng(4)
WHOLE = RNG.dirichlet(np.full(N + 1, 0.7), size=(H - 1, N, A))
ALLOWED = np.array([[[1, 1, 0], [0, 1, 0]], [[0, 1, 1], [1, 0, 1]], [[1, 1, 1], [0, 0, 1]]], bool)
WHOLE[~ALLOWED[:-1]] = 0.0
P, ENDS, INITIAL = WHOLE[..., :-1], WHOLE[..., -1], np.array([0.75, 0.25])
MDP = LayeredMDP.from_arrays(P, INITIAL, H, ends=ENDS, allowed=ALLOWED)
LOSSES = np.random.default_rng(5).random((T, H, N, A)) - np.linspace(0, 0.5, A)


def losses_for(name: str) -> np.ndarray:
    """Losses that a learner takes."""
    if name in SEEKERS:
        return -np.abs(LOSSES) / H
    return LOSSES


TAKES = [
    name
    for name, cls in algorithms().items()
    if {"allowed", "known"} & {*signature(cls).parameters}
]


def test_who_knows_of_no_ends_says_so():
    others = set(algorithms()) - set(TAKES)
    assert others == {"CostPolicyOptimization", "PolicyOptimization"}
    for name in others:
        with pytest.raises(
            TypeError, match=f"{name} takes no (allowed|ends)=, .*choose one that .* CostSCBRL"
        ):
            algorithms()[name].for_mdp(MDP, T)


@pytest.fixture(params=TAKES)
def cls(request):
    return algorithms()[request.param]


def made(cls, seed=0, **settings):
    if cls is CostSCBRL:
        settings.setdefault("lower", -1.0)
    elif cls in (UOBREPS, OREPS):
        settings.setdefault("loss_range", (-1.0, 1.0))
    episodes = 4 if cls.spec.per_state else T
    return cls.for_mdp(MDP, episodes, seed=seed, **settings)


def before_the_end(states: np.ndarray) -> int:
    """How many steps an episode had."""
    over = [h for h, s in enumerate(states) if h > 0 and s == N]
    return over[0] if over else H


def play(learner, losses, key, short=True, first=1, scale=1.0):
    """Episodes as a simulation of this key walks them; the policies, and what was paid."""
    policies, lost = [], []
    for t, tables in enumerate(losses, start=first):
        plan = learner.ask()
        states, actions = walk_of(MDP, plan, key, t)
        steps = before_the_end(states)
        seen = np.zeros(H)
        seen[:steps] = [tables[h, states[h], actions[h]] for h in range(steps)]
        many = steps if short else H
        said = scale * seen[:many]
        if learner.spec.feedback == "full":
            said = scale * tables if short else with_rows_of_the_end(scale * tables)
        learner.tell(plan, states[:many], actions[:many], said)
        for h in range(steps):
            assert ALLOWED[h, states[h], actions[h]]
        policies.append(plan.policy)
        lost.append(seen.sum())
    return policies, np.array(lost)


def with_rows_of_the_end(tables) -> list[np.ndarray]:
    """The same with a row for the end, which nobody reads, and with what is not allowed unknown."""
    known = np.where(ALLOWED, tables, np.nan)
    return [known[0], *(np.vstack([table, np.full(A, np.inf)]) for table in known[1:])]


def value(policy, losses) -> float:
    """The expected loss of a policy, from the tables that were given: no layers, no end."""
    mass, total = INITIAL, 0.0
    for h in range(H):
        q = mass[:, None] * policy[h][:N]
        total += float((q * losses[h]).sum())
        if h < H - 1:
            mass = np.einsum("sa,sat->t", q, P[h])
    return total


def least(losses, allowed=ALLOWED) -> float:
    """The least expected loss of a deterministic policy of allowed actions: all are tried."""
    places = list(itertools.product(range(H), range(N)))
    best = np.inf
    for actions in itertools.product(*(np.flatnonzero(allowed[place]) for place in places)):
        policy = np.zeros((H, N, A))
        for place, a in zip(places, actions, strict=True):
            policy[place][a] = 1.0
        best = min(best, value(policy, losses))
    return best


BEST = {False: least(LOSSES.sum(axis=0)), True: least(losses_for("MVP").sum(axis=0))}


def test_regret_is_that_against_all_policies_that_are_allowed(cls):
    name, losses = cls.spec.name, losses_for(cls.spec.name)
    result = simulate_mdp(made(cls), MDP, MDPReplay(losses), T, seed=3, checkpoints=[T])
    learner = made(cls, seed=result.seed(0))
    policies, paid = play(learner, losses, replicate_key(root_of(3), 0))
    best = BEST[name in SEEKERS]
    assert result.regret[0, 0] == pytest.approx(paid.sum() - best, abs=1e-9)
    for policy in policies:
        for h, table in enumerate(policy):
            assert not table[:N][~ALLOWED[h]].any()
            assert np.allclose(table.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    if name not in ("SCBRL", "RFELP"):  # whose plans are drawn from a mixture
        expected = sum(map(value, policies, losses))
        assert result.pseudo_regret[0, 0] == pytest.approx(expected - best, abs=1e-9)
    assert not result.unsolved.any()


def test_the_mask_matters():
    """A comparator that ignores it is another one: what the test above would see."""
    assert least(LOSSES.sum(axis=0), np.ones_like(ALLOWED)) < BEST[False] - 1.0


def test_telling_the_end_or_not_is_the_same(cls):
    one, other = (made(cls, seed=1) for _ in range(2))
    losses = losses_for(cls.spec.name)[:40]
    for learner, short in ((one, True), (other, False)):
        play(learner, losses, 77, short=short)
    assert np.array_equal(one._buffer, other._buffer, equal_nan=True)
    assert one._bits.state == other._bits.state


def test_saved_and_restored_in_the_middle(cls):
    losses = losses_for(cls.spec.name)[:40]
    whole, saved = (made(cls, seed=2) for _ in range(2))
    policies, _ = play(whole, losses, 5)
    play(saved, losses[:15], 5)
    again = cls.load(saved.save())
    assert again.layers == MDP.layers
    for name in {"layers", "n_actions", "allowed", "ends", "known"} & {*saved.settings}:
        assert again.settings[name] == saved.settings[name]
    rest, _ = play(again, losses[15:], 5, first=16)
    for one, other in zip(rest, policies[15:], strict=True):
        assert all(map(np.array_equal, one, other))


@pytest.mark.parametrize("k", [-900, 64])
@pytest.mark.parametrize(
    "cls", [cls for cls in map(algorithms().get, TAKES) if cls.spec.scale_free]
)
def test_powers_of_two_change_nothing_where_scale_freeness_is_claimed(cls, k):
    settings = {"lower": np.ldexp(-1.0, k)} if cls is CostSCBRL else {}
    one, _ = play(made(cls, seed=3), LOSSES, 9)
    other, _ = play(made(cls, seed=3, **settings), LOSSES, 9, scale=2.0**k)
    assert all(
        np.array_equal(a, b)
        for x, y in zip(one, other, strict=True)
        for a, b in zip(x, y, strict=True)
    )


def test_what_is_not_allowed_stays_so_in_a_forged_file(cls):
    """The digest is right: somebody made it so."""
    learner = made(cls)
    play(learner, losses_for(cls.spec.name)[:5], 5)
    pair = MDP.layers.forbidden[0]
    text = learner.save()
    for name in cls.spec.infinite:
        vector = learner._buffer.copy()
        learner.spec.packing._vector(vector, f"state.{name}")[pair] = 0.0
        with pytest.raises(ValueError, match="actions that are not allowed"):
            cls.load(with_buffer(text, vector))
    assert cls.spec.infinite or cls is UniformPolicy


# ---------------------------------------------------------------------- what is told


def test_errors_of_tell():
    learner = UniformPolicy.for_mdp(MDP, seed=0)
    plan = learner.ask()
    before = learner.save()
    a = [plan.act(0, 0), plan.act(1, 0), plan.act(2, 1)]
    for states, actions, losses, said in [
        ([0, 0], a, [1.0, 1.0], "as many states as actions and losses.* got 2, 3 and 2"),
        ([], [], [], "an episode has 1 to 3 steps, got 0"),
        ([0] * 4, [0] * 4, [0.0] * 4, "an episode has 1 to 3 steps, got 4"),
        (
            [0, 2, 1],
            [a[0], 0, a[2]],
            [0.0] * 3,
            "state 1 of layer 2 follows the end, .* state 2 of",
        ),
        ([0, 2, 2], [a[0], 0, 0], [0.0, 1.0, 0.0], "the end, state 2, costs nothing"),
        ([0, 0], [2, a[1]], [0.0, 1.0], "the plan never takes action 2 in state 0 of layer 0"),
        ([0, np.nan], a[:2], [0.0, 1.0], "states must be integers"),
        ([0, 0], a[:2], [0.0, np.inf], r"losses\[1\] must be finite"),
    ]:
        with pytest.raises(ValueError, match=said):
            learner.tell(plan, states, actions, losses)
        assert learner.save() == before
    for states, actions, losses in [
        ([0], [0], b"7"),
        ([0], [0], {3.5: None}),
        ([0], [0], {3.5}),
        ([True], [0], [1.0]),
        ([0], [True], [1.0]),
        (None, [0], [1.0]),
        ([0], None, [1.0]),
        ([0], [0], [[1.0], [2.0, 3.0]]),
    ]:
        with pytest.raises((TypeError, ValueError), match=r"states|actions|losses"):
            learner.tell(plan, states, actions, losses)
        assert learner.save() == before
    learner.tell(plan, [0], a[:1], rewards=[1.0])
    assert learner.episodes_told == 1
    plain = UniformPolicy([2, 3, 3], 3, seed=0)
    with pytest.raises(ValueError, match=r"shape \(3,\).*got \(2,\).*ends=True"):
        plain.tell(plain.ask(), [0, 0], [0, 0], [0.0, 0.0])


def test_what_the_end_costs_must_be_possible():
    for cls, settings in ((UOBREPS, {"loss_range": (1, 2)}), (OREPS, {"loss_range": (-2, -1)})):
        with pytest.raises(ValueError, match="loss_range must have 0 in it"):
            cls.for_mdp(MDP, T, **settings)
    with pytest.raises(ValueError, match="cannot be above 0"):
        CostSCBRL.for_mdp(MDP, lower=1.0)
    with pytest.raises(ValueError, match="cannot be above 0"):
        CostSCBRL.for_mdp(MDP, best_reward=-1.0)


def test_learners_for_another_mdp_are_rejected():
    with pytest.raises(ValueError, match=r"make it by UniformPolicy.for_mdp\(mdp, \.\.\.\)"):
        simulate_mdp(UniformPolicy([2, 3, 3], 3), MDP, Hide(), 5)


def test_a_learner_that_knows_no_masks_is_rejected():
    class Plain(MDPLearner):
        def __init__(self, layers, n_actions, *, seed=None):
            pass

    with pytest.raises(TypeError, match=r"Plain takes no allowed=.*choose one that .* CostSCBRL"):
        Plain.for_mdp(MDP)


def test_it_says_what_it_is():
    assert repr(UniformPolicy.for_mdp(MDP)) == (
        "UniformPolicy(layers=[2, 3, 3], n_actions=3, 7 not allowed, ends=True)"
    )


def test_adversaries_hide_nothing_where_nobody_can_go():
    learner = UniformPolicy.for_mdp(MDP)
    result = simulate_mdp(learner, MDP, Hide(height=4.0), 200, seed=0)
    assert result.low.min() == -4.0
    assert result.pseudo_regret[0, -1] > 0.0
    result = simulate_mdp(learner, MDP, Lure(height=32.0), 200, seed=1)
    assert result.low.min() == -32.0


def test_losses_of_what_does_not_count_are_not_seen():
    def loud(t, last, q, rng):
        return [np.where(table > 0.0, 1.0, 1e9) for table in q]

    result = simulate_mdp(UniformPolicy.for_mdp(MDP), MDP, loud, 20, seed=0)
    assert result.high.max() == 1.0
    assert result.low[0, -1].tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("P", "initial", "horizon", "ends"),
    [
        (np.ones((1, 1, 1)), [1.0], 3, None),  # one state, one action
        (np.zeros((1, 2, 1)), [1.0], 3, np.ones((1, 2))),  # all end at once
        (np.zeros((2, 1, 2)), [1.0, 0.0], 2, np.ones((2, 1))),  # nothing else is reached
        (np.ones((1, 1, 1)), [1.0], 1, np.zeros((1, 1))),  # there is no step to end before
    ],
)
def test_degenerate_mdps(cls, P, initial, horizon, ends):
    mdp = LayeredMDP.from_arrays(P, initial, horizon, ends=ends)
    learner = cls.for_mdp(mdp, 30, seed=0)
    adversary = MDPReplay(-np.ones((40, horizon, P.shape[0], P.shape[1])) / 10)
    if cls in (CostSCBRL, UOBREPS, OREPS):
        adversary = MDPReplay(np.ones((40, horizon, P.shape[0], P.shape[1])) / 10)
    result = simulate_mdp(learner, mdp, adversary, 30, seed=0)
    assert abs(result.pseudo_regret[0, -1]) <= 1e-9
    assert not result.unsolved.any()
