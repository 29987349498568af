"""Algorithms 1 to 6 in plain Python (tests/paper) against the compiled learners, and their page."""

import inspect
import math
import re
from pathlib import Path

import numpy as np
import pytest

from mdp_play import paid, random_losses, walk
from paper.mvp import paper_bonus
from paper.rf_elp import rf_elp, rf_elp_es
from paper.scb import scb
from paper.scb_ix import scb_ix
from paper.scb_rl import scb_rl
from paper.uob_reps_ex import uob_reps_ex
from unbounded import RFELP, SCB, SCBIX, SCBRL, worlds

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/theory/algorithms.md").read_text("utf-8")


@pytest.mark.parametrize("n", [1, 2, 6])
@pytest.mark.parametrize(("twin", "learner"), [(scb, SCB), (scb_ix, SCBIX)])
def test_algorithms_1_and_2(twin, learner, n):
    rng = np.random.default_rng(12)
    losses = rng.normal(size=(300, n)) - 0.7 * (np.arange(n) == 1)
    losses[100:] *= 3.7
    losses[:4] = 0.0
    play, algorithm = learner(n, profile="paper", seed=4), twin(n)
    q = next(algorithm)
    for row in losses:
        np.testing.assert_allclose(play.probabilities(), q, rtol=0.0, atol=1e-9)
        choice = play.ask()
        play.tell(choice, row[choice.arm])
        q = algorithm.send((choice.arm, row[choice.arm]))


def follow(learner, mdp, algorithm, losses, compare, seed=7):
    """Send ``algorithm`` the episodes that ``learner`` plays; return what it returns in the end."""
    rng = np.random.default_rng(seed)
    pi = next(algorithm)
    for row in losses:
        plan = learner.ask()
        compare(plan, pi)
        states, actions = walk(mdp, plan, rng.random(mdp.layers.horizon))
        seen = paid(mdp.layers, row, states, actions)
        learner.tell(plan, states, actions, seen)
        try:
            pi = algorithm.send([np.concatenate([[0], x]) for x in (states, actions, seen)])
        except StopIteration as stop:
            return stop.value
    raise AssertionError(f"it goes on after {len(losses)} episodes")


def same_policy(tables, pi):
    return len(pi) == 1 + len(tables) and all(map(np.array_equal, tables, pi[1:]))


def compare_mixtures(ours, theirs):
    """Weights and policies of two mixtures, in any order."""
    weights = {}
    for weight, policy in zip(ours.weights, ours.policies, strict=True):
        weights[tuple(np.concatenate([t.ravel() for t in policy.tables]))] = weight
    found = {tuple(np.concatenate([t.ravel() for t in pi[1:]])): x for x, pi in theirs}
    assert weights == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize("constants", ["paper", "practical"])
@pytest.mark.parametrize("early_stop", [0, 7])
def test_algorithms_3_and_6(constants, early_stop):
    N, delta, sizes, A = 120, 0.1, [2, 3, 3], 2
    S = sum(sizes)
    mdp = worlds.dirichlet(sizes, A, np.random.default_rng(3))
    learner = RFELP(
        sizes, A, N, delta, early_stop=early_stop, share_counts=False, constants=constants,
        bonus=0.02, seed=1,
    )  # fmt: skip
    bonus = paper_bonus(sizes, A, N, delta / S)
    if constants == "practical":
        bonus = 0.02, 0.02, math.log(2 * S * A * N * S / delta)
    episodes = []

    def compare(plan, pi):
        assert same_policy(plan.policy, pi)
        episodes.append(learner.exploring)

    losses = np.zeros((N, mdp.layers.n_pairs))
    for h in range(1, 4):
        for s in range(sizes[h - 1]):
            before = len(episodes)
            search = (sizes, A, h, s, N, bonus)
            if early_stop:
                algorithm = rf_elp_es(*search, early_stop)
                mixture, spent = follow(learner, mdp, algorithm, losses, compare, (h, s))
                assert spent == len(episodes) - before
            else:
                mixture = follow(learner, mdp, rf_elp(*search), losses, compare, (h, s))
            assert set(episodes[before:]) == {(h - 1, s)}
            compare_mixtures(learner.explorers()[h - 1, s], mixture)
    assert learner.done
    assert early_stop == 0 or len(episodes) < N * S / 2


@pytest.mark.parametrize("narrow", [False, True], ids=["paper", "narrow"])
def test_algorithms_4_and_5(narrow):
    """``narrow``: with constants for which boxes and values are not trivial after 200 episodes."""
    T, delta, sizes, A = 200, 0.05, [2, 2], 2
    mdp = worlds.dirichlet(sizes, A, np.random.default_rng(4))
    N, iota = 25, math.log(2 * 4 * A * 25 * 4 / delta)
    constants = {"width": 0.05, "bonus": 0.05} if narrow else {}
    learner = SCBRL(
        sizes, A, T, delta, profile="paper", constants=constants, reading={"literal": True},
        tolerance=1e-13, seed=5,
    )  # fmt: skip
    algorithm = scb_rl(sizes, A, T, delta, *([(0.05, 0.05, iota), 0.05] if narrow else []))
    losses = random_losses(mdp.layers, T, seed=6)
    losses[:110] = 0.0
    losses[150:] *= 5.0
    phases = []

    def compare(plan, pi):
        phases.append(learner.phase)
        if learner.phase == "exploring":
            assert same_policy(plan.policy, pi)
            return
        own, *explorers = pi
        for ours, theirs in zip(learner.policy().tables, own[1][1:], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-5)
        if plan.component is not None:
            assert any(same_policy(plan.policy, part) for _, part in explorers)

    follow(learner, mdp, algorithm, losses, compare)
    assert phases == ["exploring"] * 4 * N + ["playing"] * (T - 4 * N)
    assert np.ptp(learner.policy().tables[0]) > 0.05


ALGORITHMS = {1: scb, 2: scb_ix, 3: rf_elp, 4: scb_rl, 5: uob_reps_ex, 6: rf_elp_es}


def section(number):
    """The page's section about an algorithm."""
    return re.search(rf"^## Algorithm {number}: .*?(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[0]


def commented(source):
    """Lines of the pseudo-code, and errata, that comments of ``source`` name."""
    comments = " ".join(re.findall(r"#.*", source))
    lines = set()
    for some in re.findall(r"lines? ([\d ,andto]+)", comments):
        numbers = [int(x) for x in re.findall(r"\d+", some)]
        lines |= set(range(numbers[0], numbers[1] + 1)) if "to" in some else set(numbers)
    return lines, set(re.findall(r"\bE\d+\b", comments))


@pytest.mark.parametrize("number", ALGORITHMS)
def test_the_page_shows_what_is_tested(number):
    """The file above is included; each line, and each erratum of the Python, is on both sides."""
    twin, text = ALGORITHMS[number], section(number)
    path = f"../../tests/paper/{Path(inspect.getfile(twin)).name}"
    assert f"```{{literalinclude}} {path}\n:pyobject: {twin.__name__}\n```" in text
    pseudocode = [int(x) for x in re.findall(r"^(\d+)\. ", text, re.MULTILINE)]
    lines, errata = commented(inspect.getsource(twin))
    assert pseudocode == list(range(1, len(pseudocode) + 1))
    assert lines == set(pseudocode)
    assert errata <= set(re.findall(r"\[(E\d+)\]", text))


def test_the_page_shows_all_of_it():
    """Every function of tests/paper is on the page, by its name or in a range of its file."""
    for path in sorted((ROOT / "tests/paper").glob("[!_]*.py")):
        source = path.read_text()
        functions = set(re.findall(r"^def (\w+)", source, re.MULTILINE))
        shown = set()
        for options in re.findall(rf"literalinclude}} \S*/{path.name}\n(.*?)```", PAGE, re.DOTALL):
            option = dict(re.findall(r"^:([\w-]+): (.*)$", options, re.MULTILINE))
            if "pyobject" in option:
                shown.add(option["pyobject"])
                continue
            part = source[source.index(option["start-at"]) :]
            part = part[: part.find(option["end-before"])] if "end-before" in option else part
            shown |= set(re.findall(r"^def (\w+)", part, re.MULTILINE))
        assert shown == functions
