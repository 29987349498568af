"""SCB-RL without a number of episodes: blocks, and what they carry over."""

import warnings
from operator import attrgetter

import numpy as np
import pytest

from mdp_play import constants_of, grouped, params_of, play, random_losses, state_of
from slow_scb_rl import SlowSCBRL
from unbounded import SCBRL, worlds
from unbounded.mdps.steps.profiles import spans_of

MDP = worlds.dirichlet([2, 3, 2], 2, np.random.default_rng(0))
LAYERS = MDP.layers
HARD = worlds.hard_to_reach([2, 3, 3], 2, np.random.default_rng(73), reach=1e-2)


def make(episodes=None, seed=1, mdp=MDP, **settings):
    return SCBRL(mdp.layers.sizes, mdp.layers.n_actions, episodes, seed=seed, **grouped(settings))


def test_each_block_has_the_constants_of_its_last_episode():
    blocks = params_of(make(delta=0.1)).blocks
    assert blocks.last[:3].tolist() == [64, 128, 256]
    for k in (0, 1, 7, 20):
        told = params_of(make(64 << k, delta=0.1 / 2 ** (k + 1)))
        assert blocks.last[k] == 64 << k
        for name in ("eta", "gamma", "beta", "skip", "log_term"):
            assert getattr(blocks, name)[k] == getattr(told.blocks, name)[-1]
        assert blocks.budget[k] == told.blocks.budget[-1]
        assert blocks.N[k] == told.blocks.N[-1]
        assert blocks.log_bonus[k] == told.blocks.log_bonus[-1]
    # If the number was told, rates are for it, and the search goes on after each block.
    blocks = params_of(make(300)).blocks
    assert blocks.last.tolist() == [64, 128, 256, 300]
    assert set(blocks.eta.tolist()) == {blocks.eta[0]}
    assert blocks.budget.tolist() == [1, 3, 7, 9]
    assert params_of(make(300, few=False)).blocks.last.tolist() == [300]


def test_the_first_block_is_that_of_a_learner_who_was_told():
    losses = random_losses(LAYERS, 64, seed=4)
    unknown, told, other = make(), make(64, delta=0.025), make(64, delta=0.05)
    policies = [play(learner, MDP, losses, seed=5)[0] for learner in (unknown, told, other)]
    assert np.array_equal(policies[0], policies[1])
    assert not np.array_equal(policies[0], policies[2])


def test_agrees_with_a_slow_implementation():
    """Over four blocks; the explorers are given, so that all episodes play."""
    mdp = worlds.dirichlet([2, 2], 2, np.random.default_rng(4))
    learner = make(None, 5, mdp, tolerance=1e-13, explorer="oracle", transitions=mdp.P)
    explorers = [(0.25, part.policies[0].tables) for part in learner.explorers().values()]
    slow = SlowSCBRL(
        mdp.layers, 64, 0.025, (0.5, 0.3, 1, 0.2), "range", True, constants_of(learner)["skip"],
        explorers=explorers, center=1.0,
    )  # fmt: skip
    losses = random_losses(mdp.layers, 300, seed=6)
    losses[120:] *= 5.0
    worst, compared, due, solves = 0.0, 0, True, 1

    def before(learner, plan, states, actions, seen):
        nonlocal worst, compared, due, solves
        t = learner.episodes_told
        if t in (64, 128, 256):  # a block begins
            slow.rates_for(2 * t, 0.05 * 16 / t)  # delta / 4, / 8, / 16
            slow.new_epoch()
            slow.weigh()
            slow.since = [np.zeros_like(part) for part in slow.since]
            due, solves = True, solves + 1
        assert learner.certificate.solves == solves
        if due and (t % 7 == 0 or t < 12 or t in (64, 128, 256)):
            worst = max(worst, np.max(np.abs(slow.solve() - learner.occupancy()[1:])))
            compared += 1
        q = mdp.layers.unpack_pairs(learner.occupancy())
        due = slow.learn(learner.policy().tables, plan.component, states, actions, seen, q)
        solves += due

    play(learner, mdp, losses, seed=7, before=before)
    state = state_of(learner).play
    for h, L in enumerate(mdp.layers.unpack_pairs(state.estimates.L_hat)):
        assert np.allclose(np.ldexp(L, state.estimates.unit), slow.L[h], rtol=1e-9)
    assert np.allclose(np.ldexp(state.estimates.w, state.estimates.unit), slow.w, rtol=1e-12)
    assert compared > 12
    assert worst <= 1e-6


def test_what_a_block_carries_over():
    """Counts, boxes and estimates; states that were not met are sought again."""
    learner = make(mdp=HARD, center=0.0)
    layers = HARD.layers
    ends, explored, again = [64 << k for k in range(6)], 0, 0
    rng = np.random.default_rng(8)
    for t, row in enumerate(random_losses(layers, 2100, seed=9), start=1):
        exploring, old = learner.phase == "exploring", state_of(learner).play
        names = ("estimates.unit", "estimates.L_hat", "boxes.N", "boxes.lo", "boxes.hi")
        old = {name.split(".")[1]: np.copy(attrgetter(name)(old)) for name in names}
        seed = int(rng.integers(1 << 32))
        _, [(_, states, actions, _)] = play(learner, HARD, row[None], seed)
        explored += exploring
        assert learner.episodes_explored == explored
        assert explored <= max(1, 0.03 * max(64, 1 << (t - 1).bit_length()))
        if t not in ends:
            continue
        new = state_of(learner).play
        others = np.ones(new.boxes.N.size, dtype=bool)
        pairs = enumerate(zip(states, actions, strict=True), start=1)
        others[[layers.index(h, s) + a for h, (s, a) in pairs]] = False
        assert new.estimates.unit == old["unit"]
        assert np.array_equal(new.estimates.L_hat[others], old["L_hat"][others])
        assert new.boxes.N.sum() == old["N"].sum() + 1 + layers.horizon
        assert np.all(new.boxes.lo >= old["lo"])
        assert np.all(new.boxes.hi <= old["hi"])
        search = state_of(learner).search
        visits = new.boxes.N[1:].reshape(-1, 2).sum(axis=1)
        tried = state_of(learner).few.tried < params_of(learner).blocks.N[ends.index(t) + 1]
        sought = np.flatnonzero((visits < 2) & tried)
        assert (learner.phase == "exploring") == bool(sought.size)
        if sought.size:
            assert search.progress.target == sought[0]
            again += 1
    assert again >= 1
    assert np.any(state_of(learner).play.estimates.L_hat != 0.0)


def test_the_papers_constants_explore_again_in_each_block():
    learner = make(profile="paper")
    explored = []

    def before(learner, plan, states, actions, seen):
        explored.append(learner.phase == "exploring")

    play(learner, MDP, random_losses(LAYERS, 256, seed=4), seed=5, before=before)
    for first, last in ((0, 64), (64, 128), (128, 256)):
        count = sum(explored[first:last])
        assert explored[first : first + count] == [True] * count  # at the beginning of the block
        assert 7 <= count <= (last - first) / 2
        assert count % 7 == 0  # so many for each state


@pytest.mark.parametrize(("sizes", "A"), [([1], 1), ([2, 3, 2], 2), ([10] * 4, 3), ([1, 60], 5)])
def test_the_sums_of_the_proof(sizes, A):
    """Proposition 6 of docs/theory/range-clipping.md: rates over the blocks of the theory."""
    blocks = params_of(SCBRL(sizes, A, profile="paper", delta=0.1)).blocks
    S, H, last = sum(sizes), len(sizes), blocks.last
    new = np.diff(last, prepend=0.0)
    for rates in (blocks.eta, blocks.gamma, blocks.beta):
        assert np.all(np.diff(rates) <= 0.0)
    most = (2.0 + np.sqrt(2.0)) * np.sqrt(last)
    iota = np.log(S * A * last * 2.0 ** np.arange(1, last.size + 1) / 0.1)
    long = last >= 16 * S * (S**2 * A + 1)
    long[0] = False
    wanted = np.ceil(np.sqrt(S * A * last))
    ratios = [
        np.cumsum(new * blocks.beta) / (np.sqrt(S * A) * most),
        np.cumsum(new * blocks.eta) / (np.sqrt(H * iota / (S * A)) * most),
        np.cumsum(S * wanted - S) / (S * np.sqrt(S * A) * most),
        2.0 * S * A / blocks.beta / (2.0 * np.sqrt(S * A * last) + 4.0 * S * A),
    ]
    assert np.array_equal(blocks.N[long], wanted[long])
    assert np.all(wanted >= blocks.N)
    limited = np.any(blocks.N[~long] < wanted[~long])
    assert limited or S == 1  # else the condition would say nothing
    for ratio in ratios:
        assert np.all(ratio <= 1.0 + 1e-12)
        assert np.max(ratio) > 0.4  # so much of each is reached
    assert last[0] <= max(64, 2 * S)
    assert max(last[0], 16 * S * (S**2 * A + 1)) <= max(64, 32 * S**3 * A)


def test_any_number_of_episodes_is_expected():
    learner = make()
    assert learner.made_for is None
    assert learner.settings["episodes"] is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        play(learner, MDP, random_losses(LAYERS, 140, seed=4), seed=5)
    assert learner.explored.episodes == learner.episodes_explored
    assert learner.explored.per_state == params_of(learner).blocks.N[2]  # the third block


@pytest.mark.parametrize("states", [1, 63, 64, 1000])
def test_the_first_block_has_more_episodes_than_states(states):
    first, *_, last = spans_of(None, 0.05, states, few=True)
    assert first.last == first.new > states
    assert last.last <= 2**53  # integers that float64 has
    spans = spans_of(None, 0.05, states, few=True)
    assert sum(span.delta for span in spans) <= 0.05
    assert np.cumsum([span.new for span in spans]).tolist() == [span.last for span in spans]


@pytest.mark.parametrize("settings", [{}, {"episodes": 400}, {"few": False}, {"literal": True}])
def test_restored_where_a_state_was_never_met(settings):
    """After later explorations, estimates go on from windows that were weighed long before."""

    def plans(restored_at):
        learner, rng = SCBRL([1, 4], 2, seed=0, **grouped(settings)), np.random.default_rng(0)
        for t in range(140):
            plan, states = learner.ask(), [0, int(rng.integers(3))]
            yield plan._pi.tobytes()
            actions = [plan.act(h, states[h]) for h in range(2)]
            learner.tell(plan, states, actions, rng.random(2))
            if t in restored_at:
                learner = SCBRL.load(learner.save())

    expected = list(plans([]))
    for restored_at in ([10], [64], [100], range(140)):
        assert list(plans(restored_at)) == expected
    assert len(set(expected)) > 20  # the control: it does learn
