"""Learners for MDPs: plans, what is refused, saving and loading, growing."""

from fractions import Fraction

import numpy as np
import pytest

from mdp_play import grouped, play, random_losses, walk
from saved_helpers import buffer_of, changed, fields_of, with_buffer
from unbounded import APOMVP, RFELP, SCBRL, MDPLearner, UniformPolicy, simulate_mdp, worlds
from unbounded.adversaries.mdps import Stochastic
from unbounded.core.occupancy.layout import Layers
from unbounded.learners import persistence as saved
from unbounded.learners.mdp import checked_layers

MDP = worlds.dirichlet([2, 3, 2], 2, np.random.default_rng(0))
LAYERS = MDP.layers
GOOD = ([0, 0, 0], [0, 0, 0], [0.0, 0.0, 0.0])


def make(T=300, seed=1, **settings):
    return SCBRL(LAYERS.sizes, LAYERS.n_actions, T, seed=seed, **grouped(settings))


@pytest.mark.parametrize("at", [5, 150, 299])
def test_a_saved_learner_resumes_exactly(at, tmp_path):
    losses = random_losses(LAYERS, 300, seed=29)
    whole, first = make(), make()
    policies, told = play(whole, MDP, losses, seed=30)
    play(first, MDP, losses[:at], seed=30)
    plan = first.ask()
    second = SCBRL.load(first.save(tmp_path / "learner.json"))
    from_file = SCBRL.load(tmp_path / "learner.json")
    assert np.array_equal(second.outstanding[plan.id].policy[1], plan.policy[1])
    for learner in (first, second, from_file):
        for t in range(at, 300):
            plan = next(iter(learner.outstanding.values()), None) or learner.ask()
            assert np.array_equal(LAYERS.pack_pairs(plan.policy, first=1.0), policies[t])
            learner.tell(plan, *told[t][1:])
        assert np.array_equal(learner.policy().pi, whole.policy().pi)
    assert second.save() == first.save() == from_file.save()


def test_what_no_saved_learner_can_have():
    text = make().save()
    buffer = buffer_of(text)
    for damaged, message in [
        (saved.written("MVP", fields_of(text)), "use MVP.load"),
        (changed(text, asked=1, outstanding={"x": [[0, 1, 2]]}), "outstanding plan does not fit"),
        (changed(text, asked=1, outstanding={"x": [[0, 1, 2, 3, 2**64]]}), "not an integer"),
        (changed(text, outstanding={"x": [[0, 1, 2, 3, 4]]}), "not an integer below 0"),
        (with_buffer(text, buffer[:-1]), "does not fit"),
        (with_buffer(text, np.full_like(buffer, np.nan)), "fit"),
    ]:
        with pytest.raises(ValueError, match=message):
            SCBRL.load(damaged)
    uniform = UniformPolicy([1], 2).save()
    buffer = buffer_of(uniform)
    buffer[-2:] = [0.25, 0.5]  # the policy
    with pytest.raises(ValueError, match="they must be >= 0 and sum to 1"):
        UniformPolicy.load(with_buffer(uniform, buffer))


def test_an_action_that_the_plan_never_takes_is_rejected():
    learner = make()
    plan = learner.ask()
    while all((table > 0.0).all() for table in plan.policy):  # until a later layer is explored
        learner.tell(plan, *GOOD)
        plan = learner.ask()
    before = learner.save()
    h = next(h for h, table in enumerate(plan.policy) if (table[0] == 0.0).any())
    never = int(np.flatnonzero(plan.policy[h][0] == 0.0)[0])
    actions = [int(np.argmax(table[0])) for table in plan.policy]
    with pytest.raises(ValueError, match=f"never takes action {never} in state 0 of layer {h}"):
        learner.tell(plan, [0, 0, 0], [*actions[:h], never, *actions[h + 1 :]], [1.0, 2.0, 3.0])
    assert learner.save() == before
    learner.tell(plan, [0, 0, 0], actions, [1.0, 2.0, 3.0])


def test_a_plan_can_be_told_to_a_restored_learner():
    learner = make()
    plan = learner.ask()
    restored = SCBRL.load(learner.save())
    restored.tell(plan, [0, 0, 0], [0, 0, 0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="not outstanding"):
        restored.tell(plan, [0, 0, 0], [0, 0, 0], [1.0, 2.0, 3.0])
    learner.tell(plan, [0, 0, 0], [0, 0, 0], [1.0, 2.0, 3.0])
    assert restored.save() == learner.save()


def test_plans_are_numbered():
    """By how often was asked, also where a plan was forgotten, also after loading."""
    learner = UniformPolicy([1], 2, seed=0)
    numbers = []
    for t in range(6):
        plan = learner.ask()
        numbers.append(plan.id)
        if t % 2:
            learner.forget(plan)
        else:
            learner.tell(plan, [0], [0], [0.0])
        learner = UniformPolicy.load(learner.save())
    assert numbers == [0, 1, 2, 3, 4, 5]
    assert learner.episodes_told == 3


def test_more_episodes_than_it_was_made_for_are_remarked_upon(recwarn):
    mdp = worlds.dirichlet([2], 2, np.random.default_rng(33))
    learner = SCBRL([2], 2, 5, seed=34)
    play(learner, mdp, random_losses(mdp.layers, 5, seed=35))
    simulate_mdp(learner, mdp, Stochastic(), 5)
    assert not recwarn.list
    with pytest.warns(UserWarning, match="SCBRL was made for 5 episodes"):
        learner.ask()
    with pytest.warns(UserWarning, match="made for 5 episodes"):
        simulate_mdp(learner, mdp, Stochastic(), 6)


def test_who_may_go_on_for_ever(recwarn):
    seeker = RFELP([1], 2, 2, seed=0)
    assert seeker.made_for == 2
    for learner in (seeker, UniformPolicy([1], 2, seed=0)):
        for _ in range(5):
            learner.tell(learner.ask(), [0], [0], [0.0])
        assert learner.episodes_told == 5
    assert not recwarn.list


def test_errors_change_nothing():
    learner = make()
    plan = learner.ask()
    before = learner.save()
    for k, bad, message in [
        (0, [0, 3, 0], "states must be integers"),
        (0, [0, 0], "shape"),
        (0, [0, 0.5, 0], "states must be integers"),
        (0, [0, np.nan, 0], "states must be integers"),
        (0, [0, np.inf, 0], "states must be integers"),
        (0, ["a", "b", "c"], "integers, not of type"),
        (0, [True, False, True], "integers, not of type"),
        (0, [None, 0, 0], "integers, not of type"),
        (1, [0, 0, 2], "actions must be integers"),
        (2, [0.0, np.nan, 0.0], r"losses\[1\] must be finite"),
        (2, [0.0, 0.0], "losses must have shape"),
        (2, [True, False, True], "must be a real number"),
        (2, None, "either losses= or rewards="),
    ]:
        arguments = [bad if i == k else x for i, x in enumerate(GOOD)]
        with pytest.raises((ValueError, TypeError), match=message):
            learner.tell(plan, *arguments)
    with pytest.raises(TypeError, match="either losses= or rewards="):
        learner.tell(plan, *GOOD, rewards=[0.0, 0.0, 0.0])
    with pytest.raises(RuntimeError, match=r"tell\(\) or forget\(\) it first"):
        learner.ask()
    with pytest.raises(ValueError, match="another learner"):
        make().tell(plan, *GOOD)
    with pytest.raises(TypeError, match="what ask"):
        learner.tell(3, *GOOD)
    assert learner.save() == before
    learner.tell(plan, *GOOD)
    with pytest.raises(ValueError, match="not outstanding"):
        learner.tell(plan, *GOOD)
    learner.forget(learner.ask())
    assert learner.episodes_told == 1


def test_full_information_is_told_as_tables_and_errors_change_nothing():
    learner = APOMVP(LAYERS.sizes, 2, seed=0)
    plan = learner.ask()
    before = learner.save()
    good = [np.zeros((n, 2)) for n in LAYERS.sizes]
    unknown = [*good[:2], np.array([[0.0, 1.0], [np.nan, 0.0]])]
    for bad, error, message in [
        ([0.0, 0.0, 0.0], ValueError, r"APOMVP learns from the losses of all states and actions: "
         r"tell losses= as one table per layer, of shapes \[\(2, 2\), \(3, 2\), \(2, 2\)\]"),
        (good[:2], ValueError, "one table per layer"),
        ([*good, good[0]], ValueError, "one table per layer"),
        (3.0, ValueError, "one table per layer"),
        ("abc", ValueError, "one table per layer"),
        ([good[0], good[0], good[2]], ValueError, r"losses\[1\] must have shape \(3, 2\)"),
        ([good[0], good[1].T, good[2]], ValueError, r"losses\[1\] must have shape \(3, 2\)"),
        ([good[0], [[0.0, 1.0], [0.0]], good[2]], ValueError, "one table per layer"),
        (unknown, ValueError, r"losses\[2\]\[1, 0\] must be finite, got nan"),
        ([*good[:2], good[2] + np.inf], ValueError, r"losses\[2\]\[0, 0\] must be finite"),
        ([*good[:2], [["a", "b"], ["c", "d"]]], TypeError, r"losses\[2\]\[0, 0\] must be a real"),
        ([*good[:2], np.zeros((2, 2), bool)], TypeError, "must be a real number"),
        (None, TypeError, "either losses= or rewards="),
    ]:  # fmt: skip
        with pytest.raises(error, match=message):
            learner.tell(plan, [0, 0, 0], [0, 0, 0], bad)
    with pytest.raises(ValueError, match=r"rewards= as one table per layer"):
        learner.tell(plan, [0, 0, 0], [0, 0, 0], rewards=[0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="states must be integers"):
        learner.tell(plan, [0, 3, 0], [0, 0, 0], good)
    with pytest.raises(ValueError, match=r"shape \(3,\).*got \(2,\).*ends=True"):
        learner.tell(plan, [0, 0], [0, 0], good)
    assert learner.save() == before
    learner.tell(plan, [0, 0, 0], [0, 0, 0], good)
    assert learner.episodes_told == 1


def test_who_learns_from_what_was_paid_rejects_tables():
    learner = make()
    plan = learner.ask()
    before = learner.save()
    tables = [np.zeros((n, 2)) for n in LAYERS.sizes]
    for given in ({"losses": tables}, {"rewards": tables}, {"losses": np.zeros((3, 2, 2))}):
        with pytest.raises(TypeError, match=r"SCBRL learns from the .* of the pairs that were"):
            learner.tell(plan, [0, 0, 0], [0, 0, 0], **given)
    assert learner.save() == before


def test_tables_of_every_kind_are_fine():
    """Rewards are minus losses; the tables that were given are not changed or kept."""
    one, other = (APOMVP([1, 2], 2, bonus=0.1, seed=0) for _ in range(2))
    rng = np.random.default_rng(0)
    for t in range(30):
        tables = [rng.integers(-4, 4, size=(n, 2)) for n in (1, 2)]
        plan, twin = one.ask(), other.ask()
        states = [0, t % 2]
        actions = [plan.act(h, s) for h, s in enumerate(states)]
        one.tell(plan, states, actions, [tables[0].tolist(), tables[1].astype(np.float32)])
        rewards = [[[Fraction(-int(x)) for x in row] for row in table] for table in tables]
        other.tell(twin, states, actions, rewards=rewards)
    assert np.array_equal(one._buffer, other._buffer)
    assert one.policy().pi.std() > 0.1


def test_rewards_are_minus_losses():
    losses = random_losses(LAYERS, 60, seed=3)
    one, other = make(T=60), make(T=60)
    _, told = play(one, MDP, losses, seed=4)
    for _, states, actions, seen in told:
        other.tell(other.ask(), states, actions, rewards=-seen)
    assert np.array_equal(one.policy().pi, other.policy().pi)
    assert np.array_equal(one.thresholds, other.thresholds)


def test_numbers_of_every_kind_are_fine():
    learner = make()
    learner.tell(learner.ask(), (0, 1, 1), np.array([0.0, 1.0, 0.0]), [1, -2, 3])
    learner.tell(learner.ask(), np.uint8([0, 1, 1]), [0, 0, 0], np.float32([0.5, 0.5, 0.5]))
    assert learner.episodes_told == 2


def test_what_it_says_before_it_was_asked():
    learner = UniformPolicy([2, 3], 2, seed=0)
    assert learner.episodes_told == learner.episodes_explored == learner.clipped == 0
    assert learner.explorers() == {}
    assert learner.certificate == (0, 0.0, 0, 0, 0)
    assert learner.layers == Layers([2, 3], 2)
    assert learner.made_for is None
    with pytest.raises(TypeError, match="MDPLearner is the base of the learners"):
        MDPLearner()


def test_a_state_that_does_not_grow_says_so():
    with pytest.raises(ValueError, match="the state of UniformPolicy does not grow"):
        UniformPolicy([1], 2)._grow()


def test_a_learner_that_grew_is_loaded_with_its_room():
    mdp = worlds.dirichlet([3, 3], 4, np.random.default_rng(7))
    learner = RFELP([3, 3], 4, 400, share_counts=False, bonus=0.05, seed=3)
    small, rng = len(learner.save()), np.random.default_rng(8)
    while not learner.done:
        plan = learner.ask()
        states, actions = walk(mdp, plan, rng.random(2))
        learner.tell(plan, states, actions, [0.0, 0.0])
    assert len(learner.save()) > small
    assert RFELP.load(learner.save()).save() == learner.save()


@pytest.mark.parametrize(
    ("layers", "n_actions", "error", "message"),
    [
        (3, 2, TypeError, "layers must be integers, one per layer; got 3"),
        (["a"], 2, TypeError, r"layers\[0\] must be an integer"),
        ([1, 2.0], 2, TypeError, r"layers\[1\] must be an integer"),
        ([True, 2], 2, TypeError, r"layers\[0\] must be an integer"),
        ([2], 2.0, TypeError, "n_actions must be an integer"),
        ([2], True, TypeError, "n_actions must be an integer"),
        ([0], 2, ValueError, r"layers\[0\] must be at least 1"),
        ([], 2, ValueError, "at least one layer"),
        ([2], 0, ValueError, "n_actions must be at least 1"),
    ],
)
def test_shapes_are_checked(layers, n_actions, error, message):
    with pytest.raises(error, match=message):
        checked_layers(layers, n_actions)


def test_shapes_of_every_kind_are_fine():
    for layers in ([2, 3], (2, 3), np.array([2, 3]), [2, np.int8(3)]):
        assert checked_layers(layers, np.int64(2)) == Layers([2, 3], 2)
