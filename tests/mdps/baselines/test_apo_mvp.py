"""APOMVP: against a slow implementation, by brute force, and what is special about it."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from mdp_play import play, random_losses, state_of, walk
from saved_helpers import with_buffer
from slow_apo_mvp import SlowAPOMVP
from unbounded import APOMVP, LayeredMDP, UniformPolicy, simulate_mdp, worlds
from unbounded.adversaries.mdps import MDPReplay, Stochastic
from unbounded.core.occupancy.mdp import Markov, best_policy, occupancy
from unbounded.extend import kernel

MDP = worlds.dirichlet([2, 3, 2], 2, np.random.default_rng(0))
SETTINGS = [{}, {"bonus": 0.1}, {"restart": False}, {"bonus": 0.3, "delta": 0.5, "restart": False}]


def slow_of(learner, **changes):
    given, layers = learner.settings, learner.layers
    names = ("delta", "bonus", "restart")
    return SlowAPOMVP(
        layers.sizes, layers.n_actions, **{name: given[name] for name in names},
        allowed=layers.allowed, ends=layers.ends, **changes,
    )  # fmt: skip


def largest_difference(learner, slow):
    tables = learner.policy().tables
    return max(float(np.max(np.abs(a - b))) for a, b in zip(tables, slow.pi, strict=True))


def replayed(learner, mdp, losses, slow, exact=True):
    """Play, and let the slow one learn the same; the largest difference of a policy."""
    worst = [0.0]

    def before(learner, plan, states, actions, told):
        worst.append(largest_difference(learner, slow))
        assert not exact or worst[-1] <= 1e-9
        slow.learn(states, actions, told)

    play(learner, mdp, losses, seed=3, before=before)
    assert not exact or learner.epochs == slow.epochs
    return max(*worst, largest_difference(learner, slow))


@pytest.mark.parametrize("settings", SETTINGS)
def test_agrees_with_a_slow_implementation(settings):
    learner = APOMVP(MDP.layers.sizes, 2, seed=1, **settings)
    losses = random_losses(MDP.layers, 120, seed=2)
    losses[:3] = 0.0
    losses[60:] *= 50.0
    replayed(learner, MDP, losses, slow_of(learner))
    assert learner.epochs > 20
    assert np.ptp(learner.policy().pi[1:]) > 0.2  # something was learned


@pytest.mark.parametrize(
    "change", [{"sign": -1}, {"bonus": 1.01}, {"restart": True}, {"delta": 0.06}]
)
def test_the_slow_implementation_notices_a_change(change):
    learner = APOMVP(MDP.layers.sizes, 2, bonus=0.2, restart=False, seed=1)
    slow = slow_of(learner)
    for name, value in change.items():
        setattr(slow, name, value)
    assert replayed(learner, MDP, random_losses(MDP.layers, 60, 2), slow, exact=False) > 1e-5


def with_masks():
    rng = np.random.default_rng(7)
    P = rng.dirichlet(np.ones(3), size=(2, 2, 3))
    allowed = np.array([[[1, 1, 0], [1, 1, 1]], [[0, 1, 1], [1, 0, 1]], [[1, 1, 1], [0, 0, 1]]])
    return LayeredMDP.from_arrays(
        np.where(allowed[:-1, ..., None], P[..., :2], 0.0), [0.5, 0.5], 3,
        ends=np.where(allowed[:-1], P[..., 2], 0.0), allowed=allowed,
    )  # fmt: skip


WORLDS = {
    "one state": LayeredMDP([1.0], [], n_actions=3),
    "one action": worlds.dirichlet([2, 2, 3], 1, np.random.default_rng(1)),
    "one state per layer": worlds.dirichlet([1, 1, 1], 3, np.random.default_rng(2)),
    "unreachable": worlds.combination_lock(4, 2, np.random.default_rng(3)),
    "masks and early ends": with_masks(),
    "a narrow layer": worlds.dirichlet([3, 1, 3], 2, np.random.default_rng(4)),
}


@pytest.mark.parametrize("restart", [True, False])
@pytest.mark.parametrize("world", WORLDS)
def test_agrees_with_it_in_degenerate_mdps(world, restart):
    mdp = WORLDS[world]
    learner = APOMVP.for_mdp(mdp, restart=restart, bonus=0.5, seed=4)
    losses = random_losses(mdp.layers, 80, seed=5)
    losses[:, mdp.layers.free] = 0.0
    losses[10:15] = 0.0
    replayed(learner, mdp, losses, slow_of(learner))
    if world in ("one state", "one state per layer"):
        assert learner.epochs == 0  # it is certain where everything leads


def test_agrees_with_it_where_losses_are_equal():
    """Zeros for ever, and ties: dyadic numbers, and transitions that are certain."""
    mdp = worlds.dirichlet([1, 1], 3, np.random.default_rng(2))
    rng = np.random.default_rng(6)
    for losses in (np.zeros((40, 7)), rng.integers(0, 2, (40, 7)) * 0.25, np.full((40, 7), -3.5)):
        learner = APOMVP.for_mdp(mdp, seed=1)
        replayed(learner, mdp, losses.astype(float), slow_of(learner))
    learner = APOMVP(MDP.layers.sizes, 2, seed=1)
    policies, _ = play(learner, MDP, np.zeros((40, MDP.layers.n_pairs)), seed=2)
    assert np.array_equal(policies, np.tile(MDP.layers.even, (40, 1)))


# ---------------------------------------------------------------------- Q and V


def enumerated(learner, ranges, losses):
    """Q of every pair before ``losses`` are told: all ways on, one by one, under P and pi."""
    layers, pi = learner.layers, learner.policy().tables
    P = layers.unpack_transitions(state_of(learner).P)[1]
    widths = [max(w, np.ptp(table)) for w, table in zip(ranges, losses, strict=True)]
    bonuses = layers.unpack_pairs(state_of(learner).b)
    cost = [losses[h] - b * sum(widths[h + 1 :]) for h, b in enumerate(bonuses)]
    found = [np.zeros_like(table) for table in losses]
    pairs = [list(itertools.product(range(n), range(layers.n_actions))) for n in layers.sizes]
    for h, table in enumerate(found):
        for pair in pairs[h]:
            for way in itertools.product(*pairs[h + 1 :]):
                chance, total, at = 1.0, cost[h][pair], pair
                for k, after in enumerate(way, start=h + 1):
                    chance *= P[k - 1][at][after[0]] * pi[k][after]
                    total += cost[k][after]
                    at = after
                table[pair] += chance * total
    return found


@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e300])
def test_losses_to_go_are_those_of_an_enumeration(scale):
    learner = APOMVP(MDP.layers.sizes, 2, bonus=0.2, restart=False, seed=1)
    losses = random_losses(MDP.layers, 60, seed=2)
    play(learner, MDP, scale * losses[:-1], seed=3)
    assert 0.0 < np.min(state_of(learner).b[1:9]) < 1.0
    tables = MDP.layers.unpack_pairs(losses[-1])
    expected = enumerated(learner, learner.ranges / scale, tables)
    plan = learner.ask()
    states, actions = walk(MDP, plan, [0.3, 0.6, 0.9])
    learner.tell(plan, states, actions, [scale * table for table in tables])
    state = state_of(learner)
    for h, (Q, want) in enumerate(zip(MDP.layers.unpack_pairs(state.Q), expected, strict=True)):
        got = np.ldexp(Q, int(state.e[h]) - math.frexp(scale)[1]) / math.frexp(scale)[0]
        moved = got - want
        assert np.ptp(want) > 0.1
        assert np.ptp(moved) <= 1e-9  # by a constant of the layer: its least losses
        assert np.ptp(got - tables[h]) > 1e-3 or h == 2  # the control: losses alone are others


def test_an_epoch_ends_when_visits_reach_a_power_of_two():
    """In a world where one pair is visited again and again."""
    learner = APOMVP([1, 2], 1, seed=0)
    ended = []
    for t in range(1, 40):
        before = learner.epochs
        learner.tell(learner.ask(), [0, t % 2], [0, 0], [[[0.0]], [[1.0], [2.0]]])
        ended += [t] if learner.epochs > before else []
    assert ended == [1, 2, 4, 8, 16, 32]
    P = learner.layers.unpack_transitions(state_of(learner).P)[1][0]
    assert P[0, 0].tolist() == [0.5, 0.5]  # of 32 visits
    b = state_of(learner).b[1]
    assert b == pytest.approx(min(1.0, math.sqrt(2 * math.log(3 * 33**2 / 0.05) / 32)))


# ---------------------------------------------------------------------- what it is free of


@pytest.mark.parametrize("k", [-1000, 1, 1000])
def test_powers_of_two_change_nothing(k):
    """Bit for bit, what it keeps included, but for units and ranges."""
    losses = random_losses(MDP.layers, 80, seed=2)
    one, other = (APOMVP(MDP.layers.sizes, 2, bonus=0.2, seed=1) for _ in range(2))
    play(one, MDP, losses, seed=3)
    play(other, MDP, np.ldexp(losses, k), seed=3)
    for name in ("L", "D", "pi", "W", "P", "b", "Q"):
        assert np.array_equal(getattr(state_of(one), name), getattr(state_of(other), name))
    assert np.array_equal(state_of(one).e + k, state_of(other).e)


def test_constants_of_a_layer_change_nothing():
    """Another one in each episode; a constant of one state is no such thing."""
    rng = np.random.default_rng(8)
    losses = rng.integers(-(2**20), 2**20, (80, MDP.layers.n_pairs)) / 2.0**20
    moved, uneven = losses.copy(), losses.copy()
    for h in range(3):
        first, last = MDP.layers.index(h + 1, 0), MDP.layers.table[3, h + 2]
        moved[:, first:last] += rng.integers(-1000, 1000, (80, 1))
    uneven[:, MDP.layers.index(2, 0) : MDP.layers.index(2, 1)] += 0.5
    played = [
        play(APOMVP(MDP.layers.sizes, 2, bonus=0.2, seed=1), MDP, rows, seed=3)[0]
        for rows in (losses, moved, uneven)
    ]
    assert np.array_equal(played[0], played[1])
    assert not np.array_equal(played[0], played[2])


def test_every_float_is_a_loss():
    sizes = np.array([0.0, 5e-324, 2e-308, 1e-200, 1.0, 1e200, np.finfo(float).max])
    rng = np.random.default_rng(9)
    for settings in SETTINGS:
        learner = APOMVP(MDP.layers.sizes, 2, seed=1, **settings)
        shape = (150, MDP.layers.n_pairs)
        losses = rng.choice(sizes, shape) * rng.choice([-1.0, 1.0], shape)
        losses[:20] = np.minimum(np.abs(losses[:20]), 5e-324)  # it begins with the least ones
        policies, _ = play(learner, MDP, losses, seed=3)
        assert np.all(np.isfinite(policies))
        assert all(np.all(np.isfinite(vector)) for vector in state_of(learner)[4:14])
        again = APOMVP.load(learner.save())
        assert np.array_equal(again.policy().pi, learner.policy().pi)


def test_losses_far_from_zero_lose_nothing():
    """A layer of 1e15 + {0, 1} is a layer of {0, 1}."""
    rng = np.random.default_rng(10)
    losses = rng.integers(0, 2, (60, MDP.layers.n_pairs)).astype(float)
    plain, far = (
        play(APOMVP(MDP.layers.sizes, 2, bonus=0.2, seed=1), MDP, rows, seed=3)[0]
        for rows in (losses, losses + 1e15)
    )
    assert np.array_equal(plain, far)


# ---------------------------------------------------------------------- it learns


def value(mdp, policy, losses):
    return float(occupancy(mdp, policy) @ losses)


def test_where_transitions_are_known_it_finds_the_best_policy():
    losses = np.append(0.0, np.random.default_rng(11).random(MDP.layers.n_pairs - 1))
    learner = APOMVP(MDP.layers.sizes, 2, seed=1)
    state = state_of(learner)
    state.P[:] = MDP.P
    state.b[:] = 0.0  # certain
    play(learner, MDP, np.tile(losses, (300, 1)), seed=3)
    best = best_policy(MDP, losses)[0]
    assert learner.epochs == 0
    assert value(MDP, learner.policy(), losses) <= best + 1e-3
    assert value(MDP, Markov.uniform(MDP.layers), losses) > best + 0.1  # the control


def test_regret_is_far_below_that_of_the_uniform_policy():
    T = 4000
    regret = {}
    for name, learner in {
        "theory": APOMVP(MDP.layers.sizes, 2),
        "small bonus": APOMVP(MDP.layers.sizes, 2, bonus=0.1),
        "small bonus, no restart": APOMVP(MDP.layers.sizes, 2, bonus=0.1, restart=False),
        "uniform": UniformPolicy(MDP.layers.sizes, 2),
    }.items():
        result = simulate_mdp(learner, MDP, Stochastic(), T, 4, seed=5, checkpoints=[T])
        regret[name] = result.pseudo_regret.mean()
    assert regret["theory"] < 0.6 * regret["uniform"]
    assert regret["small bonus"] < 0.5 * regret["theory"]
    assert regret["small bonus, no restart"] < regret["small bonus"]


@pytest.mark.long
def test_the_bonus_leads_to_what_is_not_known():
    """In a lock the right way costs, and pays at its end; the control has the bonus' opposite."""
    lock = worlds.combination_lock(5, 3, np.random.default_rng(3))
    losses = [np.full((n, 3), [[0.1]] + [[0.0]] * (n - 1)) for n in lock.layers.sizes]
    losses[-1][0] = -2.0
    flat, regret = lock.layers.pack_pairs(losses), []
    for sign in (1, -1):
        slow = SlowAPOMVP(lock.layers.sizes, 3, bonus=0.2, restart=False, sign=sign)
        rng, expected = np.random.default_rng(0), []
        for _ in range(200):
            expected.append(value(lock, Markov.from_tables(lock.layers, slow.pi), flat))
            states, actions, p = [], [], lock.initial
            for h in range(5):
                states.append(int(rng.choice(p.size, p=p)))
                actions.append(int(rng.choice(3, p=slow.pi[h][states[h]])))
                p = lock.transitions[h][states[h], actions[h]] if h < 4 else p
            slow.learn(states, actions, losses)
        regret.append(np.mean(expected) - best_policy(lock, flat)[0])
    assert regret[0] < 0.4 * regret[1]


def test_an_adversary_in_python_and_a_recorded_one_are_the_same():
    T = 60
    losses = random_losses(MDP.layers, T, seed=12)
    tables = [MDP.layers.unpack_pairs(row) for row in losses]
    recorded = [np.array([row[h] for row in tables]) for h in range(3)]
    learner = APOMVP(MDP.layers.sizes, 2, bonus=0.1)
    results = [
        simulate_mdp(learner, MDP, adversary, T, 2, seed=6)
        for adversary in (lambda t, last, q, rng: tables[t - 1], MDPReplay(recorded))
    ]
    assert np.array_equal(results[0].pseudo_regret, results[1].pseudo_regret)
    assert np.array_equal(results[0].regret, results[1].regret)


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("name", "value"),
    [("bonus", 0.0), ("bonus", 1e7), ("bonus", float("nan")), ("delta", 0.0), ("delta", 1.0),
     ("restart", 1)],
)  # fmt: skip
def test_settings_that_are_rejected(name, value):
    with pytest.raises((ValueError, TypeError), match=name):
        APOMVP([2, 2], 2, **{name: value})


def test_damaged_saves_are_rejected():
    learner = APOMVP(MDP.layers.sizes, 2, seed=1)
    play(learner, MDP, random_losses(MDP.layers, 30, seed=2), seed=3)
    packing, text = learner.spec.packing, learner.save()
    for name, at, bad in [
        ("W", 0, 0.25),
        ("e_W", 0, 5000.0),
        ("e", 1, 40.0),
        ("D", 1, -1.0),
        ("L", 1, -1e250),
        ("N", 1, 3.5),
        ("N", 1, 30.0),
        ("M", 3, 29.0),
        ("P", 3, 2.0),
        ("P", 3, 0.999),
        ("b", 1, 1.5),
    ]:
        buffer = learner._buffer.copy()
        packing._vector(buffer, f"state.{name}")[at] = bad
        with pytest.raises(ValueError, match="this is not a saved APOMVP"):
            APOMVP.load(with_buffer(text, buffer))
    assert APOMVP.load(text).epochs == learner.epochs
    fresh = APOMVP(MDP.layers.sizes, 2, seed=1)
    for name in ("L", "D"):
        buffer = fresh._buffer.copy()
        packing._vector(buffer, f"state.{name}")[1] = 1e150
        with pytest.raises(ValueError, match="this is not a saved APOMVP"):
            APOMVP.load(with_buffer(fresh.save(), buffer))


def test_losses_that_a_learner_does_not_take_are_rejected_by_the_simulator():
    """The simulator says what `tell` says, or that there is something, and does not go on."""

    class Small(APOMVP):
        spec = replace(APOMVP.spec, takes=at_most_one)

        def _checked_tables(self, name, values):
            flat = super()._checked_tables(name, values)
            if np.max(flat) > 1.0:
                raise ValueError("at most one")
            return flat

    class Silent(APOMVP):
        spec = replace(APOMVP.spec, takes=at_most_one)

    rows = np.array([0.2, 0.5, 1.0, 1.7, 2.6])
    recorded = MDPReplay([rows[:, None, None] * np.ones((n, 2)) for n in MDP.layers.sizes])
    for cls, said in ((Small, "at most one"), (Silent, "does not take the losses of episode 4")):
        for adversary in (growing, recorded):
            with pytest.raises(ValueError, match=said):
                simulate_mdp(cls(MDP.layers.sizes, 2), MDP, adversary, 5)


def growing(t, last, q, rng):
    return [np.full(table.shape, (t * t + 1) / 10) for table in q]


@kernel
def at_most_one(params, losses):
    return losses.max() <= 1.0


def test_tables_are_of_numbers_where_they_count():
    learner = APOMVP([1, 2], 2, allowed=[[[True, True]], [[True, False], [True, True]]], seed=0)
    plan = learner.ask()
    before = learner.save()
    for first, words in [
        ([[True, 1.0]], "real number"),
        ([[None, 1.0]], "real number"),
        ([["1", 1.0]], "real number"),
        ([[np.nan, 1.0]], "finite"),
        (np.ma.masked_array([[1.0, 2.0]], [[True, False]]), "real number"),
    ]:
        with pytest.raises((TypeError, ValueError), match=rf"losses\[0\]\[0, 0\].*{words}"):
            learner.tell(plan, [0, 0], [0, 0], losses=[first, [[1.0, 2.0], [3.0, 4.0]]])
        assert learner.save() == before
    for nothing in (np.nan, None, np.inf):  # of what is not allowed
        table = [[Fraction(1, 3), nothing], [3.0, 4.0]]
        learner.tell(plan, [0, 0], [0, 0], losses=[[[1.0, 2.0]], table])
        plan = learner.ask()
    assert learner.episodes_told == 3
