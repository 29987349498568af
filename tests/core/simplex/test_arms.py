"""`tsallis_arms` and `shannon_arms`, and behind them `lazy`.

Arms are played in a compiled loop with importance-weighted losses, rates that fall and changes of
the unit, and what they say is compared with a solve of their cumulative losses alone.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import Any

import numba
import numpy as np
import pytest
from scipy import stats

from tiers import first_only
from unbounded.core.simplex import lazy, shannon_arms, signed_arms, tsallis_arms

GAP, SWITCH, GROWTH = range(3)  # the losses: one arm is better; another one is, later; they grow


@numba.njit
def loss_of(story, t, k, word):
    noise = 0.2 * (float(word % 1024) / 1024.0)
    best = 0 if story != SWITCH or t % 3000 < 1000 else 1
    return noise + (0.2 if k == best else 0.6)


@numba.njit
def halving(story, t):
    """Whether the unit of the losses doubles in round t."""
    return story == GROWTH and t % 977 == 0


@numba.njit
def eta_tsallis(n, t):
    return 1.0 / math.sqrt(t)


@numba.njit
def eta_shannon(n, t):
    return math.sqrt(math.log(n) / (n * t))


@numba.njit
def beta_of(n, t, mixing):
    return mixing * n / (2.0 * n + math.sqrt(n * t))


@numba.njit
def play_tsallis(arms, L, t, words, story, mixing):
    for word in words:
        k, q_k = tsallis_arms.draw(arms, word)
        amount = loss_of(story, t, k, word) / q_k
        L[k] += amount
        arms = tsallis_arms.add(arms, k, amount)
        t += 1
        if halving(story, t):
            L *= 0.5
            arms = tsallis_arms.rescale(arms, 0.5)
        arms = tsallis_arms.solve(arms, eta_tsallis(L.size, t), beta_of(L.size, t, mixing))
    return arms


@numba.njit
def play_shannon(arms, L, t, words, story, mixing):
    for word in words:
        k, q_k = shannon_arms.draw(arms, word)
        amount = loss_of(story, t, k, word) / q_k
        L[k] += amount
        shannon_arms.add(arms, k, amount)
        t += 1
        if halving(story, t):
            L *= 0.5
            shannon_arms.rescale(arms, 0.5)
        shannon_arms.solve(arms, eta_shannon(L.size, t), beta_of(L.size, t, mixing))
    return arms


class Game:
    """Arms of one kind in play, and their cumulative losses beside them."""

    def __init__(self, module: Any, n: int, story: int = GAP, mixing: float = 1.0, **how: Any):
        self.module, self.story, self.mixing, self.t = module, story, mixing, 1
        self.tsallis = module is tsallis_arms
        self.arms, self.L = module.new_arms(n, **how), np.zeros(n)
        self.bits = np.random.PCG64(n)

    def play(self, rounds: int) -> None:
        run = play_tsallis if self.tsallis else play_shannon
        words = self.bits.random_raw(rounds)
        self.arms = run(self.arms, self.L, self.t, words, self.story, self.mixing)
        self.t += rounds

    @property
    def q(self) -> np.ndarray:
        q = np.empty(self.L.size)
        self.module.fill(self.arms, q)
        return q

    @property
    def anchors(self) -> int:
        return int(self.arms.picture[lazy.ANCHORS])

    def solved(self) -> np.ndarray:
        """q from the cumulative losses alone, in extended precision."""
        n, t = self.L.size, self.t
        eta = (eta_tsallis if self.tsallis else eta_shannon)(n, t)
        return solved(self.tsallis, self.L, eta, beta_of(n, t, self.mixing))

    def copy(self) -> Game:
        other = object.__new__(Game)
        vars(other).update(vars(self))
        vectors = {name: getattr(self.arms, name) for name in ("L", "picture", "table")}
        copies = {name: one.copy() for name, one in vectors.items() if one is not None}
        law = type(self.arms.law)(*map(np.copy, self.arms.law))
        other.arms, other.L = self.arms._replace(**copies, law=law), self.L.copy()
        other.bits = np.random.PCG64()
        other.bits.state = self.bits.state
        return other


def solved(tsallis: bool, L: np.ndarray, eta: float, beta: float) -> np.ndarray:
    """Bisection, or a softmax."""
    L = L.astype(np.longdouble) - L.min()
    if tsallis:
        low, high = -2.0 * np.sqrt(np.longdouble(L.size)) / eta, np.longdouble(0.0)
        for _ in range(90):
            x = 0.5 * (low + high)
            if (4.0 / (eta * (L - x)) ** 2).sum() > 1.0:
                high = x
            else:
                low = x
        p = 4.0 / (eta * (L - low)) ** 2
    else:
        p = np.exp(-eta * L)
    return ((1.0 - beta) * p / p.sum() + beta / L.size).astype(np.float64)


@pytest.fixture(params=[tsallis_arms, shannon_arms], ids=["tsallis", "shannon"])
def module(request, monkeypatch):
    """Lazy from the first arm on, where estimates grow."""
    monkeypatch.setattr(request.param, "MANY_ARMS", 1)
    return request.param


# ---------------------------------------------------------------------------------- exactness


@pytest.mark.parametrize("mixing", [1.0, 0.0])
@pytest.mark.parametrize("story", [GAP, SWITCH, GROWTH])
@pytest.mark.parametrize(
    "n", [7, 130, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 64, 1000))]
)
@pytest.mark.parametrize("growing", [True, False])
def test_exact_at_random_times(module, n, story, mixing, growing):
    game = Game(module, n, story, mixing, growing=growing)
    assert np.array_equal(game.q, np.full(n, 1.0 / n))
    steps = np.random.default_rng(n).integers(1, 300, 30)
    for step in [1, 1, 1, 1, *steps]:
        game.play(int(step))
        np.testing.assert_allclose(game.q, game.solved(), rtol=1e-11)
    assert not growing or 2 < game.anchors < game.t / 4


@pytest.mark.parametrize("story", [GAP, SWITCH, GROWTH])
def test_exact_in_a_long_run(module, story):
    """Longer than 65536 changes, whose rounding errors an anchor throws away."""
    game = Game(module, 2000, story)
    for step in np.random.default_rng(0).integers(1, 40_000, 12).tolist():
        game.play(step)
        np.testing.assert_allclose(game.q, game.solved(), rtol=1e-11)


@pytest.mark.long
@pytest.mark.parametrize("n", [100, 10_000, 1_000_000])
@pytest.mark.parametrize("story", [GAP, SWITCH, GROWTH])
def test_exact_in_a_very_long_run(module, story, n):
    game = Game(module, n, story)
    for step in np.random.default_rng(n).integers(1, 700_000, 8).tolist():
        game.play(step)
        np.testing.assert_allclose(game.q, game.solved(), rtol=1e-11)


@pytest.mark.parametrize("n", [4, 40])
def test_losses_may_be_negative_where_every_arm_is_touched(module, n):
    """Far below what any other arm has, too."""
    arms, L, rng = module.new_arms(n, growing=False), np.zeros(n), np.random.default_rng(1)
    assert arms.table is None
    q = np.empty(n)
    for t in range(1, 300):
        k, amount = int(rng.integers(n)), float(rng.standard_cauchy() * 3.0)
        L[k] += amount
        arms = module.add(arms, k, amount) or arms
        arms = module.solve(arms, 1.0 / math.sqrt(t), 0.1) or arms
        module.fill(arms, q)
        wanted = solved(module is tsallis_arms, L, 1.0 / math.sqrt(t), 0.1)
        np.testing.assert_allclose(q, wanted, rtol=1e-10)


@pytest.mark.parametrize("growing", [True, False])
def test_a_factor_of_one_changes_nothing(module, growing):
    game = Game(module, 50, growing=growing)
    game.play(400)
    other = game.copy()
    other.arms = module.rescale(other.arms, 1.0) or other.arms
    for each in (game, other):
        each.play(1)
    assert np.array_equal(game.q, other.q)


def test_few_arms_are_touched_every_round_and_many_are_not():
    for each in (tsallis_arms, shannon_arms, signed_arms):
        assert each.new_arms(each.MANY_ARMS - 1).picture is None
        assert each.new_arms(each.MANY_ARMS).picture.size > 0


DRAWS = """
import sys
import numpy as np
from unbounded.core.simplex import shannon_arms, signed_arms, tsallis_arms
for module in (shannon_arms, signed_arms, tsallis_arms):
    module.draw(module.new_arms(int(sys.argv[1])), np.uint64(5))
"""


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.long
def test_few_arms_compile_nothing_of_what_many_need(tmp_path):
    """By the files that are kept; what many compile is the control."""

    def kept(n):
        directory = tmp_path / str(n)
        directory.mkdir()
        environment = os.environ | {"UNBOUNDED_CACHE_DIR": str(directory)}
        subprocess.run([sys.executable, "-c", DRAWS, str(n)], env=environment, check=True)
        files = [file.name for file in directory.glob("*.nbc")]
        choosers = [name for name in files if "drawn_by" in name]  # both have these
        assert choosers
        return {name.partition("-")[0] for name in files if name not in choosers}

    few, many = kept(3), kept(200)
    assert "core_simplex_sampling" in few
    assert {f"core_simplex_{name}" for name in ("tree", "lazy", "lazy_signed")} <= many
    assert not any("lazy" in name or "tree" in name for name in few)


def test_six_floats_per_arm(module):
    def floats(n):
        arms = module.new_arms(n)
        vectors = (arms.L, *arms.law, arms.picture, arms.table)
        return sum(vector.size for vector in vectors)

    assert floats(2000) - floats(1000) == 6000


def test_a_rate_that_falls_all_the_time_does_not_cost_an_anchor_each(module):
    arms, t = module.new_arms(50), 5000
    for s in range(t):
        arms = module.add(arms, s % 50, 0.01) or arms
        arms = module.solve(arms, 1.001**-s, 0.1) or arms
    assert 3 < arms.picture[lazy.ANCHORS] < 100


# ------------------------------------------------------------------------------------ the law


def drawn(game: Game, draws: int, seed: int) -> np.ndarray:
    """How often each arm is drawn from one state."""
    draw = game.module.draw

    @numba.njit
    def count(arms, words, found):
        for word in words:
            found[draw(arms, word)[0]] += 1

    found = np.zeros(game.L.size, dtype=np.int64)
    count(game.arms, np.random.PCG64(seed).random_raw(draws), found)
    return found


def p_value(found: np.ndarray, q: np.ndarray) -> float:
    """Chi-square, with arms of small expectation put together."""
    expected = q * found.sum()
    small = expected < 10.0
    groups = np.append(found[~small], found[small].sum())
    wanted = np.append(expected[~small], expected[small].sum())
    if wanted[-1] < 10.0:
        groups[-2], wanted[-2] = groups[-2:].sum(), wanted[-2:].sum()
        groups, wanted = groups[:-1], wanted[:-1]
    return float(stats.chisquare(groups, wanted * (groups.sum() / wanted.sum())).pvalue)


@pytest.mark.parametrize("mixing", first_only([1.0, 0.0]))
def test_arms_are_drawn_from_q(module, mixing):
    """A million draws from each of several states: around anchors, around a change of the unit."""
    game, states = Game(module, 150, GROWTH, mixing), []
    for start in (30, 1200):  # while the normaliser falls, and when it follows the best arm up
        game.play(start - game.t)
        known = game.anchors
        while game.anchors == known:  # before an anchor, and after it
            before = game.copy()
            game.play(1)
        states += [before, game.copy()]
    game.play(977 - (game.t % 977) - 1)  # before a change of the unit, and after it
    states.append(game.copy())
    game.play(1)
    states.append(game.copy())
    game.play(20)
    states.append(game)
    for seed, state in enumerate(states):
        assert p_value(drawn(state, 1_000_000, seed), state.solved()) > 1e-3


def test_a_wrong_law_would_be_noticed(module):
    game = Game(module, 150)
    game.play(1000)
    q, found = game.q, drawn(game, 1_000_000, 0)
    wrong = q * np.where(np.arange(150) % 2, 1.03, 1.0)
    assert p_value(found, wrong / wrong.sum()) < 1e-4 < p_value(found, q)


@pytest.mark.parametrize("growing", [True, False])
def test_the_probability_of_an_arm_is_told_with_it(module, growing):
    game = Game(module, 90, growing=growing)
    for _ in range(50):
        game.play(7)
        q = game.q
        for word in np.random.PCG64(game.t).random_raw(10):
            k, q_k = module.draw(game.arms, word)
            assert q_k == q[k] > 0.0
