"""SCB-RL: scale-freeness, a slow implementation, special cases, invariants, options."""

import numpy as np
import pytest

from mdp_play import play, random_losses
from slow_scb_rl import SlowSCBRL
from unbounded import worlds
from unbounded.core.occupancy.layout import PAIR, STATE
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.core.occupancy.policies import Markov, Mixture, occupancy
from unbounded.mdps.scb_rl import SCBRL

MDP = worlds.dirichlet([2, 3, 2], 2, np.random.default_rng(0))
LAYERS = MDP.layers


def make(T=300, seed=1, **settings):
    return SCBRL(LAYERS.sizes, LAYERS.n_actions, T, seed=seed, **settings)


@pytest.mark.parametrize("profile", ["practical", "theory"])
@pytest.mark.parametrize("clip", ["range", "scale"])
def test_strongly_scale_free(profile, clip):
    """Whole runs, bit for bit, under powers of two (E29: one factor for all layers)."""
    losses = random_losses(LAYERS, 300, seed=2)
    losses[:20] = 0.0  # thresholds are 0 at first
    width = 0.1 if profile == "theory" else None  # at the paper's width nothing binds so soon
    reference = make(profile=profile, clip=clip, width_factor=width)
    policies, _ = play(reference, MDP, losses, seed=3)
    assert reference.phase == "playing"
    assert reference.certificate.newton_steps > 0
    for k in (-300, -101, -7, 13, 300):
        learner = make(profile=profile, clip=clip, width_factor=width)
        scaled, _ = play(learner, MDP, np.ldexp(losses, k), seed=3)
        assert np.array_equal(scaled, policies), k
        assert np.array_equal(learner.thresholds, np.ldexp(reference.thresholds, k))
        assert learner.certificate == reference.certificate


@pytest.mark.parametrize(
    ("settings", "factors"),
    [
        ({"profile": "theory"}, (1, 1, 1, 1)),
        ({"profile": "theory", "width_factor": 0.05}, (1, 1, 1, 0.05)),
        ({"profile": "practical"}, (0.35, 0.3, 1, 0.2)),
        ({"profile": "practical", "skip": 0.0, "width_factor": 0.05}, (0.35, 0.3, 1, 0.05)),
        ({"profile": "theory", "estimator": "ftrl_only", "width_factor": 0.05}, (1, 1, 1, 0.05)),
    ],
    ids=["theory", "narrow", "practical", "always", "ftrl_only"],
)
def test_agrees_with_a_slow_implementation(settings, factors):
    T = 200
    mdp = worlds.dirichlet([2, 2], 2, np.random.default_rng(4))
    learner = SCBRL(
        [2, 2], 2, T, explorer="oracle", transitions=mdp.P, tolerance=1e-13, seed=5, **settings
    )
    explorers = [
        (weight / 4, policy.tables)
        for mixture in learner.explorers().values()
        for weight, policy in zip(mixture.weights, mixture.policies, strict=True)
    ]
    slow = SlowSCBRL(
        mdp.layers, T, 0.05, factors, "scale" if settings["profile"] == "theory" else "range",
        settings.get("estimator") != "ftrl_only", learner.settings["skip"], explorers=explorers,
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
        due = slow.learn(learner.policy().tables, plan._component, states, actions, seen)
        solves += due

    play(learner, mdp, losses, seed=7, before=before)
    for h, L in enumerate(mdp.layers.unpack_pairs(learner._state.L_hat)):
        unit = 2.0 ** learner._state.head[10]
        assert np.allclose(L * unit, slow.L[h], rtol=1e-9)
    assert np.allclose(learner._state.w * unit, slow.w, rtol=1e-12)
    assert compared > 12
    assert worst <= 1e-6
    assert solves < 150 if settings["profile"] == "practical" and "skip" not in settings else True
    assert np.any(learner._state.hi < 1.0) or factors[3] == 1


@pytest.mark.parametrize("clip", ["range", "scale"])
def test_one_state_is_the_shannon_bandit(clip):
    """H = 1, one state: exponential weights with the same eta, gamma, beta and clipping."""
    T, A = 400, 4
    mdp = LayeredMDP([1.0], [], n_actions=A)
    learner = SCBRL([1], A, T, clip=clip, skip=0.0, tolerance=1e-12, seed=0)
    losses = random_losses(mdp.layers, T, seed=1, shift=3.0)
    eta, gamma, beta = learner._params.eta, learner._params.gamma, learner._params.beta
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


def test_upper_bounds_hold_while_the_transitions_are_in_the_set():
    """u_t >= q_t on every visited pair, for the mixture that is played (E12)."""
    learner = make(T=1500, profile="theory", xi_factor=0.1, width_factor=0.1)
    checked = narrow = 0

    def before(learner, plan, states, actions, seen):
        nonlocal checked, narrow
        state, beta = learner._state, learner._params.beta
        if learner.phase != "playing" or learner.episodes_told % 15:
            return
        assert np.all(state.lo - 1e-12 <= MDP.P)
        assert np.all(state.hi + 1e-12 >= MDP.P)
        mixtures = learner.explorers().values()
        weights = np.array([(1 - beta), *[beta / 7] * 7])
        parts = [learner.policy(), *mixtures]
        q = sum(w * occupancy(MDP, part) for w, part in zip(weights, parts, strict=True))
        from unbounded.mdps.uob_reps_ex import _bounds

        _bounds(LAYERS.table, learner._params, state, states)
        for h in range(1, 4):
            p = LAYERS.index(h, int(states[h - 1]), int(actions[h - 1]))
            at = LAYERS.table[STATE, h] + states[h - 1]
            u = (1 - beta) * state.u_main[at] * state.pi[p] + beta * state.u_explorers[p]
            assert u >= q[p] - 1e-12
            narrow += u < 0.9  # a bound that says something
        checked += 1

    play(learner, MDP, random_losses(LAYERS, 1500, seed=8), seed=9, before=before)
    assert checked > 60
    assert narrow > checked
    assert np.mean(learner._state.hi - learner._state.lo) < 0.6


@pytest.mark.parametrize("settings", [{}, {"profile": "theory"}, {"literal": True}])
def test_thresholds_and_certificates(settings):
    losses = random_losses(LAYERS, 1000, seed=10)
    losses[500:] *= 1000.0
    learner = make(T=1000, **settings)
    play(learner, MDP, losses, seed=11)
    for h in range(3):
        seen = losses[:, LAYERS.table[PAIR, h + 1] : LAYERS.table[PAIR, h + 2]]
        limit = 2 * np.abs(seen).max() if learner._params.clip == 0 else np.ptp(seen)
        assert 0 < learner.thresholds[h] <= limit
    certificate = learner.certificate
    assert certificate.solves > 100
    assert certificate.unsolved == 0
    assert certificate.worst_gap <= 1.1e-8
    assert np.all(learner._state.w > 0)


def test_literal_forgets_what_exploration_saw():
    learner = make(T=200, profile="theory", literal=True)
    kept = make(T=200, profile="theory")
    losses = random_losses(LAYERS, 200, seed=12)
    told = {}

    def before(learner, plan, states, actions, seen):
        if learner.phase == "exploring":
            told[id(learner)] = (learner.thresholds.max(), learner._state.N.sum())

    play(learner, MDP, losses, seed=13, before=before)
    play(kept, MDP, losses, seed=13, before=before)
    assert told[id(learner)] == (0.0, 0.0)
    assert told[id(kept)][0] > 0
    assert told[id(kept)][1] > 0


def test_learns_at_any_scale():
    """The better action of each state is found, with losses of size 1e-200 or 1e200."""
    for scale in (1e-200, 1e200):
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
    for settings in ({}, {"profile": "theory"}):
        learner = SCBRL(sizes, n_actions, 60, seed=19, **settings)
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


def test_extreme_losses():
    """Any finite float64: the largest, the smallest, both signs, jumps between them."""
    mdp = worlds.dirichlet([2, 2], 2, np.random.default_rng(25))
    rng = np.random.default_rng(26)
    sizes = np.array([0.0, 5e-324, 1e-300, 1.0, 1e300, np.finfo(float).max])
    for clip in ("range", "scale"):
        learner = SCBRL([2, 2], 2, 200, clip=clip, seed=27)
        losses = rng.choice(sizes, (200, 9)) * rng.choice([-1.0, 1.0], (200, 9))
        play(learner, mdp, losses, seed=28)
        assert np.all(np.isfinite(learner.policy().pi))
        assert learner.certificate.unsolved == 0


def test_options_do_what_they_say():
    tight, usual = (make(T=10_000, profile="theory", tight=t).exploration for t in (True, False))
    assert tight["per_state"] == np.ceil(np.sqrt(3 * 2 * 10_000))  # E24: the widest layer
    assert usual["per_state"] == min(np.ceil(np.sqrt(7 * 2 * 10_000)), 5000 // 7)
    losses = random_losses(LAYERS, 300, seed=36)
    for threshold in ("lazy", "largest"):
        learner = make(clip="scale", threshold=threshold)
        _, told = play(learner, MDP, losses, seed=37)
        C = np.zeros(3)
        for _, _, _, seen in told:
            grows = np.abs(seen) > C if threshold == "lazy" else 2 * np.abs(seen) > C
            C = np.where(grows, 2 * np.abs(seen), C)
        assert np.allclose(learner.thresholds, C, rtol=1e-15)
    learner = make(T=1000, explorer="ucbvi")
    play(learner, MDP, random_losses(LAYERS, 1000, seed=38), seed=39)
    assert learner.phase == "playing"
    assert make(explorer="ucbvi", bonus="paper")._params.bonus.c1 == 7.0
    assert make(bonus="paper")._params.bonus.c1 == pytest.approx(460 / 9)


def test_ablation_and_policies_are_what_they_say():
    learner = make(beta_factor=0.0, allow_no_exploration=True)
    assert learner._params.beta == 0.0
    play(learner, MDP, random_losses(LAYERS, 300, seed=31), seed=32)
    assert all(isinstance(m, Mixture) for m in learner.explorers().values())
    assert isinstance(learner.policy(), Markov)
