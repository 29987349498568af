"""UOB-REPS-EX, as SCB-RL plays it when an oracle has found the exploration policies."""

import math
from itertools import pairwise

import numpy as np
import pytest

from mdp_play import (
    constants_of,
    grouped,
    params_of,
    play,
    random_losses,
    rates_of,
    state_of,
    tell_firsts,
    walk,
)
from occupancy_facades import known, upper_occupancy
from occupancy_work import Case
from slow_scb_rl import SlowSCBRL
from unbounded import SCBRL, worlds
from unbounded.core.clipping import LAZY, RANGE, SCALE, clip_each, empty_windows
from unbounded.core.occupancy.confidence import rebuild
from unbounded.core.occupancy.layout import PAIR, STATE
from unbounded.core.occupancy.mdp import Markov, Mixture, occupancy
from unbounded.core.occupancy.solver.ftrl import EXPONENT
from unbounded.core.occupancy.upper import spare_mass
from unbounded.learners.mdp_steps import OWN
from unbounded.mdps import practical_scb_rl, uob_reps_ex

MDP = worlds.dirichlet([2, 3, 2], 2, np.random.default_rng(0))
LAYERS = MDP.layers


def make(T=300, seed=1, mdp=MDP, **settings):
    sizes, A = mdp.layers.sizes, mdp.layers.n_actions
    return SCBRL(
        sizes, A, T, explorer="oracle", known={"transitions": mdp.P}, seed=seed, **grouped(settings)
    )


def weights(learner):
    """w_h, in the unit of the losses."""
    state = state_of(learner).play
    return np.ldexp(state.estimates.w, state.estimates.unit)


@pytest.mark.parametrize(
    ("settings", "factors"),
    [
        ({"profile": "paper"}, (1, 1, 1, 1)),
        ({"profile": "paper", "width": 0.05}, (1, 1, 1, 0.05)),
        ({"profile": "practical"}, (0.5, 0.3, 1, 0.2)),
        ({"profile": "practical", "skip": 0.0, "width": 0.05}, (0.5, 0.3, 1, 0.05)),
        ({"profile": "practical", "center": 0.0, "rate": 0.35}, (0.35, 0.3, 1, 0.2)),
        ({"profile": "paper", "estimator": "ftrl_only", "width": 0.05}, (1, 1, 1, 0.05)),
    ],
    ids=["paper", "narrow", "practical", "always", "not centered", "ftrl_only"],
)
def test_agrees_with_a_slow_implementation(settings, factors):
    T = 200
    mdp = worlds.dirichlet([2, 2], 2, np.random.default_rng(4))
    learner = make(T, seed=5, mdp=mdp, tolerance=1e-13, **settings)
    explorers = [
        (weight / 4, policy.tables)
        for mixture in learner.explorers().values()
        for weight, policy in zip(mixture.weights, mixture.policies, strict=True)
    ]
    slow = SlowSCBRL(
        mdp.layers, T, 0.05, factors, "scale" if settings["profile"] == "paper" else "range",
        settings.get("estimator") != "ftrl_only", constants_of(learner)["skip"],
        explorers=explorers, center=constants_of(learner)["center"],
    )  # fmt: skip
    losses = random_losses(mdp.layers, T, seed=6)
    losses[:3] = 0.0
    losses[120:] *= 5.0
    worst, compared, due, solves = 0.0, 0, True, 1

    def before(learner, plan, states, actions, seen):
        nonlocal worst, compared, due, solves
        t = learner.episodes_told
        assert learner.certificate.solves == solves
        if due and (t % 7 == 0 or t < 12):
            q = slow.solve()
            worst = max(worst, np.max(np.abs(q - learner.occupancy()[1:])))
            compared += 1
        q = mdp.layers.unpack_pairs(learner.occupancy())
        due = slow.learn(learner.policy().tables, plan.component, states, actions, seen, q)
        solves += due

    play(learner, mdp, losses, seed=7, before=before)
    state = state_of(learner).play
    for h, L in enumerate(mdp.layers.unpack_pairs(state.estimates.L_hat)):
        assert np.allclose(np.ldexp(L, state.estimates.unit), slow.L[h], rtol=1e-9)
    assert np.allclose(weights(learner), slow.w, rtol=1e-12)
    assert compared > 12
    assert worst <= 1e-6
    assert solves < 150 if settings["profile"] == "practical" and "skip" not in settings else True
    assert np.any(state.boxes.hi < 1.0) or factors[3] == 1


def mean_bound(parts, lo, hi):
    """The mean of the upper occupancy bounds of some mixtures."""
    return np.mean([upper_occupancy(part, lo, hi) for part in parts], axis=0)


def test_e12_upper_bounds_are_the_mixtures_and_hold():
    """u is the bound of (1 - beta) pi~ + beta mean(pi^s), by its boxes as they are now; and u >= q
    on every visited pair while the transitions are in the set."""
    learner = make(T=900, profile="paper", width=0.1)
    beta = rates_of(learner).beta
    explorers = list(learner.explorers().values())
    mean_q = np.mean([occupancy(MDP, part) for part in explorers], axis=0)
    checked = narrow = epochs = 0

    def before(learner, plan, states, actions, seen):
        nonlocal checked, narrow, epochs
        if learner.episodes_told % 15:
            return
        state = state_of(learner)
        lo, hi = state.play.boxes.lo, state.play.boxes.hi
        assert np.all(lo - 1e-12 <= MDP.P)
        assert np.all(hi + 1e-12 >= MDP.P)
        uob_reps_ex.bound_visited(
            LAYERS.table, params_of(learner).play, state.play, state.search.library, states
        )
        own = upper_occupancy(learner.policy(), lo, hi)
        q = (1 - beta) * occupancy(MDP, learner.policy()) + beta * mean_q
        other = mean_bound(explorers, lo, hi)
        for h in range(1, 4):
            p = LAYERS.index(h, int(states[h - 1]), int(actions[h - 1]))
            at = LAYERS.table[STATE, h] + states[h - 1]
            u_own = state.play.solver.u[at] * state.play.solver.pi[p]
            assert u_own == pytest.approx(own[p], rel=1e-12)
            assert state.play.u_explorers[p] == pytest.approx(other[p], rel=1e-12)
            u = (1 - beta) * u_own + beta * state.play.u_explorers[p]
            assert u >= q[p] - 1e-12
            narrow += u < 0.9  # a bound that says something
        checked += 1
        epochs = state.play.epoch

    play(learner, MDP, random_losses(LAYERS, 900, seed=8), seed=9, before=before)
    assert checked == 60
    assert narrow > checked
    assert epochs > 20
    assert np.mean(state_of(learner).play.boxes.hi - state_of(learner).play.boxes.lo) < 0.7


@pytest.mark.parametrize("estimator", ["mixture", "ftrl_only"])
def test_e12_estimates(estimator):
    """mixture: l+/(u + gamma) with the mixture's u, whoever played; ftrl_only: with the share of
    pi~ alone, and nothing is learned of losses from an explorer's episode."""
    learner = make(T=400, profile="paper", width=0.05, estimator=estimator)
    losses = random_losses(LAYERS, 400, seed=10)
    play(learner, MDP, losses[:300], seed=11)
    p, explorers = rates_of(learner), list(learner.explorers().values())
    rng, checked = np.random.default_rng(12), {True: 0, False: 0}
    for row in losses[300:]:
        state = state_of(learner).play
        C, L = learner.thresholds, state.estimates.L_hat.copy()
        own = upper_occupancy(learner.policy(), state.boxes.lo, state.boxes.hi)
        other = mean_bound(explorers, state.boxes.lo, state.boxes.hi)
        unit = state.estimates.unit
        plan = learner.ask()
        states, actions = walk(MDP, plan, rng.random(3))
        visited = LAYERS.table[PAIR, 1:-1] + 2 * states + actions
        learner.tell(plan, states, actions, row[visited])
        state = state_of(learner).play
        if state.estimates.unit != unit:
            continue
        l_plus = np.clip(row[visited], -C, C) + C
        if estimator == "mixture":
            expected = l_plus / ((1 - p.beta) * own[visited] + p.beta * other[visited] + p.gamma)
        else:
            expected = l_plus / ((1 - p.beta) * own[visited] + p.gamma)
            expected *= plan.component is None
        added = np.ldexp(state.estimates.L_hat - L, unit)
        assert added[visited] == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert np.count_nonzero(added) == np.count_nonzero(expected)
        checked[plan.component is None] += 1
    assert checked[True] > 50
    assert checked[False] > 5


def test_e12_one_policy_is_drawn_for_the_whole_episode():
    """With the share 1 - beta the learner's own, else a state's explorer, S of them evenly."""
    learner = make(T=20, seed=2)
    beta = rates_of(learner).beta
    assert beta == 0.5
    own = learner.policy().tables
    found = {k: m.policies[0].tables for k, m in enumerate(learner.explorers().values())}
    drawn = []
    for _ in range(1000):
        plan = learner.ask()
        drawn.append(plan.component)
        tables = own if plan.component is None else found[plan.component]
        assert all(map(np.array_equal, plan.policy, tables))
        learner.forget(plan)
    assert abs(np.mean([k is None for k in drawn]) - 0.5) < 5 * 0.5 / math.sqrt(1000)
    shares = np.bincount([k for k in drawn if k is not None], minlength=7) / 1000
    assert np.all(np.abs(shares - 0.5 / 7) < 5 * math.sqrt(0.5 / 7 / 1000))


def test_e12_mixing_action_by_action_would_not_explore():
    """An explorer of share beta would be followed to layer H with probability beta^(H - 1)."""
    lock = worlds.combination_lock(5, 3, np.random.default_rng(2))
    found = make(T=100, mdp=lock).explorers()
    good = found[4, 0].policies[0]
    others = np.roll(good.pi[1:].reshape(-1, 3), 1, axis=1).ravel()  # never the good action
    wrong = Markov(lock.layers, [1.0, *others])
    beta = 0.1
    at = lock.layers.index(5, 0)
    reach = occupancy(lock, good)[at : at + 3].sum()
    once = occupancy(lock, Mixture([1 - beta, beta], [wrong, good]))[at : at + 3].sum()
    each = Markov(lock.layers, (1 - beta) * wrong.pi + beta * good.pi)
    step_by_step = occupancy(lock, each)[at : at + 3].sum()
    assert once >= beta * reach
    assert step_by_step <= 1.01 * beta**4 * reach


def test_e13_boxes_are_nested():
    """FTRL needs sets that shrink; boxes from the counts alone do not."""
    learner = make(T=600, width=0.1)
    p, state, rates = params_of(learner).play, state_of(learner).play, rates_of(learner)
    lo, hi = state.boxes.lo.copy(), state.boxes.hi.copy()
    plain = [np.zeros_like(lo), np.ones_like(hi)]
    epoch, shrank = state.epoch, []

    def before(learner, plan, states, actions, seen):
        nonlocal lo, hi, epoch, plain
        state = state_of(learner).play
        if state.epoch == epoch:
            return
        assert np.all(state.boxes.lo >= lo)
        assert np.all(state.boxes.hi <= hi)
        lo, hi, epoch = state.boxes.lo.copy(), state.boxes.hi.copy(), state.epoch
        new = [np.empty_like(lo), np.empty_like(hi)]
        rebuild(LAYERS.table, state.boxes.N, state.boxes.M, rates.log_term, *p.width, False, *new)
        shrank.append(np.all(new[0] >= plain[0]) and np.all(new[1] <= plain[1]))
        plain = new

    play(learner, MDP, random_losses(LAYERS, 600, seed=13), seed=14, before=before)
    assert len(shrank) > 20
    assert not all(shrank)
    assert np.mean(hi - lo) < 0.7


def objective(learner, q, sign=1.0):
    """<q, L_hat> + sum_h w_h sum q ln q, or minus the entropy with ``sign`` = -1."""
    state, total = state_of(learner).play, 0.0
    for h in range(1, 4):
        at = slice(LAYERS.table[PAIR, h], LAYERS.table[PAIR, h + 1])
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = np.where(q[at] > 0, q[at] * np.log(q[at]), 0.0).sum()
        total += q[at] @ state.estimates.L_hat[at] + sign * state.estimates.w[h - 1] * entropy
    return total


def test_e14_the_regularizer_is_convex():
    """q~ has the least value among all that one can play in the set; with the printed sign,
    sum q ln(1/q), playing deterministically would have less."""
    learner = make(T=300)
    assert np.allclose(learner.occupancy()[1:], [1 / 4] * 4 + [1 / 6] * 6 + [1 / 4] * 4)
    play(learner, MDP, random_losses(LAYERS, 60, seed=15), seed=16)
    q = learner.occupancy()
    rng = np.random.default_rng(17)
    best = {1.0: math.inf, -1.0: math.inf}
    for concentration in [0.05] * 200 + [1.0] * 200:
        tables = [rng.dirichlet([concentration] * 2, size=n) for n in LAYERS.sizes]
        other = occupancy(MDP, Markov.from_tables(LAYERS, tables))  # P is in the set
        for sign in best:
            best[sign] = min(best[sign], objective(learner, other, sign))
    assert objective(learner, q) <= best[1.0]
    assert objective(learner, q, -1.0) > best[-1.0]


def test_e15_the_weight_has_the_next_threshold():
    """w of q~_{t+1} is C_{t+1}/eta, so that l+ <= 2 C is at most 2 eta w in every episode. The
    printed C_t/eta does not keep up with a jump of the losses."""
    learner = make(profile="paper")
    eta = rates_of(learner).eta
    tell_firsts(learner, [1.0, 1.0, 1.0])
    assert weights(learner) * eta == pytest.approx([2.0, 2.0, 2.0], rel=1e-14)
    tell_firsts(learner, [100.0, 1.0, -1.0])
    assert learner.thresholds.tolist() == [200.0, 2.0, 2.0]
    assert weights(learner) * eta == pytest.approx([200.0, 2.0, 2.0], rel=1e-14)

    printed, jumps = None, 0
    losses = random_losses(LAYERS, 200, seed=18) * 1.1 ** np.arange(200)[:, None]

    def before(learner, plan, states, actions, seen):
        nonlocal printed, jumps
        assert np.all(learner.thresholds <= eta * weights(learner) * (1 + 1e-12))
        if printed is not None:
            jumps += bool(np.any(learner.thresholds > 1.9 * eta * printed))
        printed = weights(learner)

    play(learner, MDP, losses, seed=19, before=before)
    assert jumps > 5


@pytest.mark.parametrize("kappa", [1e-3, 0.1])
def test_e16_a_layer_without_losses_has_a_weight(kappa):
    """kappa times the mean of C/eta; nothing while nothing was seen; never less than before."""
    learner = make(profile="paper", kappa=kappa)
    eta = rates_of(learner).eta
    assert weights(learner).tolist() == [0.0, 0.0, 0.0]
    tell_firsts(learner, [0.0, 0.0, 0.0])
    assert weights(learner).tolist() == [0.0, 0.0, 0.0]  # the placeholder leaves no trace
    tell_firsts(learner, [3.0, 1.5, 0.0])
    assert learner.thresholds.tolist() == [6.0, 3.0, 0.0]
    assert weights(learner) * eta == pytest.approx([6.0, 3.0, kappa * 3.0], rel=1e-14)
    tell_firsts(learner, [0.0, 0.0, 1e-9])
    assert weights(learner) * eta == pytest.approx([6.0, 3.0, kappa * (3 + 2e-9 / 3)], rel=1e-14)
    assert learner.certificate.unsolved == 0


def test_e19_the_distribution_of_the_first_state_is_learned():
    """Layer 0 is one state with one action: it is counted, and its box shrinks around it."""
    learner = make(T=600, width=0.2)
    play(learner, MDP, random_losses(LAYERS, 600, seed=20), seed=21)
    state = state_of(learner).play
    assert state.boxes.N[0] == 600
    assert state.boxes.M[:2].sum() == 600
    assert np.all(state.boxes.hi[:2] - state.boxes.lo[:2] < 0.5)
    assert np.all((state.boxes.lo[:2] <= MDP.initial) & (MDP.initial <= state.boxes.hi[:2]))
    assert learner.occupancy()[0] == 1.0


def test_e20_the_first_policy_is_mixed_like_all_others():
    learner = make(T=20, seed=3)
    first = []
    for _ in range(300):
        plan = learner.ask()
        first.append(plan.component is not None)
        learner.forget(plan)
    assert learner.episodes_told == 0
    assert abs(np.mean(first) - 0.5) < 5 * 0.5 / math.sqrt(300)


def test_e34_layer_0_has_the_weight_of_layer_1():
    """Else its part of the minimiser would not be unique."""
    for seed in range(3):
        work = Case(seed).W
        assert work.w[0] == work.w[1] > 0


def test_skip_says_how_old_the_policy_may_get():
    solves = {}
    for skip in (0.0, 0.75, 1e9):
        learner = make(T=300, skip=skip, width=1.0)
        seen = []

        def before(learner, plan, states, actions, losses, seen=seen):
            seen.append((state_of(learner).play.epoch, *learner.thresholds))

        play(learner, MDP, random_losses(LAYERS, 300, seed=22), seed=23, before=before)
        seen.append((state_of(learner).play.epoch, *learner.thresholds))
        solves[skip] = learner.certificate.solves
        if skip == 1e9:  # at the beginning, and only when a weight or the boxes changed
            assert solves[skip] == 1 + sum(a != b for a, b in pairwise(seen))
    assert solves[0.0] > 290
    assert solves[1e9] < solves[0.75] < 0.8 * solves[0.0]


def test_a_new_unit_changes_no_value():
    """L_hat, what was added since, weights and the solver's memory are all in units of 2^unit."""
    learner = make()
    p, rates = params_of(learner).play, rates_of(learner)
    state, windows = uob_reps_ex.init(LAYERS, p), empty_windows(3)
    clip_each(windows, SCALE, LAZY, np.array([1.0, 0.0, 0.5]))
    estimates, moved = uob_reps_ex.weigh(p, rates, state, windows)
    assert (estimates.unit, moved) == (3, True)  # W = 4 = 0.5 x 2^3
    state = state._replace(estimates=estimates)
    rng = np.random.default_rng(24)
    state.estimates.L_hat[:], state.estimates.since[:] = (
        rng.random(LAYERS.n_pairs),
        rng.random(LAYERS.n_pairs),
    )
    before = [x.copy() for x in (state.estimates.L_hat, state.estimates.since, state.estimates.w)]
    again, moved = uob_reps_ex.weigh(p, rates, state, windows)
    assert (again.unit, moved) == (3, False)
    for x, y in zip(
        (state.estimates.L_hat, state.estimates.since, state.estimates.w), before, strict=True
    ):
        assert np.array_equal(x, y)
    clip_each(windows, SCALE, LAZY, np.array([3.0, 0.0, 1000.0]))
    estimates, moved = uob_reps_ex.weigh(p, rates, state, windows)
    assert (estimates.unit, moved) == (12, True)
    for x, y in zip((state.estimates.L_hat, state.estimates.since), before, strict=False):
        assert np.array_equal(np.ldexp(x, 12), np.ldexp(y, 3))
    assert state.solver.memory.head[EXPONENT] == 3 - 12
    assert np.ldexp(state.estimates.w, 12)[2] * rates.eta == pytest.approx(2000.0, rel=1e-14)
    assert np.all(np.ldexp(state.estimates.w, 12) >= np.ldexp(before[2], 3))


def test_a_new_epoch_forgets_the_explorers_bounds():
    learner = make(T=100, width=0.2)
    play(learner, MDP, random_losses(LAYERS, 40, seed=25), seed=26)
    p, rates, state = params_of(learner).play, rates_of(learner), state_of(learner).play
    uob_reps_ex.new_epoch(LAYERS.table, p, rates, state)  # what was counted by now
    state.u_explorers[:] = 0.5
    assert not uob_reps_ex.new_epoch(LAYERS.table, p, rates, state)
    assert np.all(state.u_explorers == 0.5)  # nothing changed
    state.boxes.N[0] += 500
    state.boxes.M[0] += 500
    assert uob_reps_ex.new_epoch(LAYERS.table, p, rates, state)
    assert np.all(state.u_explorers == -1.0)
    assert np.array_equal(state.boxes.N_before, state.boxes.N)
    sums = state.boxes.lo[:2].sum()
    assert state.boxes.spare[0] == pytest.approx(1 - sums, abs=1e-15)


@pytest.mark.parametrize(("share", "mixing"), [(0.2, 0.0), (0.5, 0.0), (0.8, 0.0), (0.2, 1.0)])
def test_centered_estimates_have_the_mean_of_the_others(share, mixing):
    """But for one constant c per layer, where the bounds are exact (lo = hi = P) and no explorers
    are mixed in; c is the mean of the losses before, ``share`` of the range, or half the range if
    that is less. Pairs that explorers visit more often than q~ lose up to c more."""
    means = {}
    for center in (0.0, 1.0):
        learner = make(T=400, center=center, mixing=mixing, ablation=True)
        params, whole, p = params_of(learner), state_of(learner), rates_of(learner)
        state, library = whole.play, whole.search.library
        state.boxes.lo[:], state.boxes.hi[:] = known(MDP)
        spare_mass(LAYERS.table, state.boxes.lo, state.boxes.spare)
        own = occupancy(MDP, learner.policy())
        q_explorers = np.mean([occupancy(MDP, one) for one in learner.explorers().values()], axis=0)
        q = (1 - p.beta) * own + p.beta * q_explorers
        state.solver.q[:] = own
        mean = np.zeros(LAYERS.n_pairs)
        windows = empty_windows(3)
        for losses in ([0.0, 0.0, 0.0], [1.0, 4.0, 0.5]):
            clip_each(windows, RANGE, LAZY, np.array(losses))
        estimates, _ = uob_reps_ex.weigh(params.play, p, state, windows)
        state, unit = state._replace(estimates=estimates), estimates.unit
        told = np.array([0.75, 1.0, 0.25])
        for h in range(1, 4):
            for s in range(LAYERS.sizes[h - 1]):
                for a in range(2):
                    at = LAYERS.index(h, s, a)
                    states, actions = np.zeros(3, int), np.zeros(3, int)
                    states[h - 1], actions[h - 1] = s, a
                    state.estimates.L_hat[:] = 0.0
                    whole.means.paid[:], whole.means.times[:] = 3.0 * share - 0.5, 2.0
                    again = windows._replace(**{f: v.copy() for f, v in windows._asdict().items()})
                    clip_each(again, RANGE, LAZY, told)
                    state.solver.u[:] = -1.0
                    practical_scb_rl.center(
                        params.center, whole.means, state.C, state.estimates.unit, again, state.c
                    )
                    uob_reps_ex.bound_visited(LAYERS.table, params.play, state, library, states)
                    uob_reps_ex.estimate(
                        LAYERS.table, params.play, p, state, OWN, states, actions, again
                    )
                    layer = slice(LAYERS.table[PAIR, h], LAYERS.table[PAIR, h + 1])
                    mean[layer] += q[at] * np.ldexp(state.estimates.L_hat[layer], unit)
        means[center] = mean
    more = p.gamma / ((1 - p.beta) * own + p.gamma) - p.gamma / (q + p.gamma)
    for h, width in ((1, 1.0), (2, 4.0), (3, 0.5)):
        layer = slice(LAYERS.table[PAIR, h], LAYERS.table[PAIR, h + 1])
        difference = means[1.0][layer] - means[0.0][layer]
        assert difference == pytest.approx(-min(share, 0.5) * width * (1 + more[layer]), rel=1e-12)
        assert np.all(np.abs(more[layer]) < 1e-15) if mixing == 0.0 else np.all(more[layer] > 1e-3)
        assert np.ptp(means[0.0][layer]) > 1e-3  # the control: they are not constants


def test_the_mean_begins_anew_with_the_window():
    learner = make(T=400)

    def told(losses):
        tell_firsts(learner, losses)
        play = state_of(learner).play
        return np.ldexp(play.c, play.estimates.unit).tolist()

    assert told([5.0, 5.0, 5.0]) == [0.0, 0.0, 0.0]  # no range yet
    assert told([6.0, 9.0, 5.0]) == [0.0, 0.0, 0.0]
    assert told([5.0, 9.0, 5.0]) == [0.5, 2.0, 0.0]  # the middle
    # a half and nothing; a half and a whole, cut at the middle
    assert told([5.0, 9.0, 5.0]) == [0.25, 2.0, 0.0]
    unit = state_of(learner).play.estimates.unit
    told([5.0, 1.0, 5.0])
    play, means = state_of(learner).play, state_of(learner).means
    centers = np.ldexp(play.c, unit)  # in the unit of before the window grew
    assert centers == pytest.approx([1 / 6, 2.0, 0.0], rel=1e-15)
    assert (means.paid.tolist(), means.times.tolist()) == ([0.0, 0.0, 0.0], [3.0, 0.0, 0.0])
    assert told([5.0, 1.0, 5.0]) == [0.125, 4.0, 0.0]  # the second window knows no mean


def test_lazy_bounds_are_bounds_and_boxes_follow_their_own_visits():
    """Nested boxes make old bounds larger than need be, never wrong; "epoch" has the newest."""
    older = {}
    for renewal in ("epoch", "lazy"):
        learner = make(T=900, width=0.1, renewal=renewal, skip=0.75)
        explorers = list(learner.explorers().values())
        mean_q = np.mean([occupancy(MDP, part) for part in explorers], axis=0)
        older[renewal] = checked = 0

        def before(learner, plan, states, actions, seen, renewal=renewal, mean_q=mean_q):
            nonlocal checked
            state, p = state_of(learner), params_of(learner).play
            if learner.episodes_told % 15:
                return
            assert np.all(state.play.boxes.lo - 1e-12 <= MDP.P)
            assert np.all(state.play.boxes.hi + 1e-12 >= MDP.P)
            uob_reps_ex.bound_visited(LAYERS.table, p, state.play, state.search.library, states)
            newest = mean_bound(
                list(learner.explorers().values()), state.play.boxes.lo, state.play.boxes.hi
            )
            for h in range(1, 4):
                k = LAYERS.index(h, int(states[h - 1]), int(actions[h - 1]))
                assert state.play.u_explorers[k] >= newest[k] * (1 - 1e-12)
                assert state.play.u_explorers[k] >= mean_q[k] - 1e-12
                older[renewal] += state.play.u_explorers[k] > newest[k] * (1 + 1e-9)
            n, made_from = state.play.boxes.N, state.play.boxes.N_before
            assert renewal == "epoch" or np.all(n <= np.maximum(1.0, 2.0 * made_from))
            checked += 1

        play(learner, MDP, random_losses(LAYERS, 900, seed=31), seed=32, before=before)
        assert checked > 30
    assert older["epoch"] == 0
    assert older["lazy"] > 10


def test_the_explorers_bounds_are_renewed_four_times_while_the_episodes_double():
    times = [t for t in range(1, 257) if practical_scb_rl.late(t)]
    assert times[-9:] == [64, 80, 96, 112, 128, 160, 192, 224, 256]
    assert len(times) < 30
