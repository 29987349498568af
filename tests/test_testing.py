"""The checks for other people's learners find each kind of fault, and pass what has none."""

# ruff: noqa: N805  # `fill` is a kernel

import threading
from dataclasses import replace

import numpy as np
import pytest

import unbounded.settings
from unbounded import SCB, CostSCBRL, Exp3, PythonLearner, PythonMDPLearner
from unbounded.adversaries import MovesAway, StochasticGap
from unbounded.adversaries.mdps import Punish
from unbounded.extend import Adversary, MDPAdversary, stream_of, uniform_at
from unbounded.testing import (
    check_adversary,
    check_learner,
    check_mdp_learner,
    learner_checks,
    mdp_learner_checks,
)


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.setattr(unbounded.settings, "jit", "never")


class Sound(PythonLearner):
    """Exponential weights of signs, which no loss can overflow."""

    def __init__(self, n_arms, *, rate=0.1, seed=None):
        super().__init__(n_arms, seed=seed)
        self.rate, self.L = rate, np.zeros(n_arms)

    def distribution(self):
        w = np.exp(-self.rate * (self.L - self.L.min()))
        return w / w.sum()

    def update(self, arm, probability, loss):
        self.L[arm] += np.sign(loss) / probability


class SoundMDP(PythonMDPLearner):
    """The same in every state."""

    def __init__(self, layers, n_actions, *, seed=None):
        super().__init__(layers, n_actions, seed=seed)
        self.L = [np.zeros((n, n_actions)) for n in layers]

    def policy(self):
        ws = [np.exp(-0.1 * (L - L.min(axis=1, keepdims=True))) for L in self.L]
        return [w / w.sum(axis=1, keepdims=True) for w in ws]

    def update(self, states, actions, losses):
        for L, s, a, loss in zip(self.L, states, actions, losses, strict=True):
            L[s, a] += np.sign(loss)


class InTurn(Adversary):
    def fill(params, state, t, last_arm, q, out):
        out[:] = 0.0
        out[t % out.size] = uniform_at(stream_of(int(state[0]), t), 0)


class InTurnMDP(MDPAdversary):
    def fill(params, t, q, lay, out):
        out[:] = 0.0
        out[1 + t % (out.size - 1)] = params[0]


def test_sound_classes_pass():
    check_learner(Sound)
    check_learner(Sound, rate=0.5)
    check_mdp_learner(SoundMDP)
    for adversary in (InTurn(), InTurn(scale=-3.0, shift=2.0), InTurnMDP(scale=2.0)):
        check_adversary(adversary)


@pytest.mark.parametrize("check", learner_checks(SCB), ids=lambda check: check.name)
def test_scb(check):
    check()


@pytest.mark.parametrize("check", mdp_learner_checks(CostSCBRL), ids=lambda check: check.name)
def test_cost_scb_rl(check):
    if check.name != "compiled":  # tests of it do that
        check()


@pytest.mark.parametrize("adversary", [StochasticGap(), MovesAway(window=3), Punish(scale=0.5)])
def test_adversaries(adversary):
    check_adversary(adversary)


# ------------------------------------------------------------------ planted faults

_SEEN = []  # what a fault of state outside of the learner is kept in


class NoSum(Sound):
    def distribution(self):
        return 0.5 * super().distribution()


class OwnRandom(Sound):
    def update(self, arm, probability, loss):
        self.L[arm] += np.random.random()  # noqa: NPY002 # the fault


class Shared(Sound):
    def update(self, arm, probability, loss):
        _SEEN.append(loss)
        self.L[arm] += len(_SEEN) % 7


class Looks(Sound):
    def __repr__(self):
        self.L[0] += 1.0
        return super().__repr__()


class Drops(Sound):
    def state(self):
        return {"L": np.round(self.L).tolist()}

    def restore(self, state):
        self.L = np.array(state["L"])


class OneByOne(Sound):
    def update(self, arm, probability, loss):
        if probability != self.distribution()[arm]:
            raise RuntimeError("another choice was made since")
        super().update(arm, probability, loss)


class Lenient(SCB):
    def tell(self, choice, loss=None, **more):
        super().tell(choice, 0.0 if not np.isfinite(loss) else loss, **more)


class Overflows(Sound):
    def update(self, arm, probability, loss):
        self.L[arm] += loss / probability


class Misreports(Exp3):
    def ask(self):
        choice = super().ask()
        choice.probability *= 0.5
        return choice


class MindsThreads(Sound):
    def update(self, arm, probability, loss):
        self.L[arm] += threading.current_thread() is threading.main_thread()


class MindsCompilers(Exp3):
    def probabilities(self):
        q = super().probabilities()
        return q if unbounded.settings.jit == "never" else q[::-1].copy()


FAULTS = [
    (NoSum, "distribution"), (OwnRandom, "same_seed"), (Shared, "same_seed"), (Looks, "looking"),
    (Drops, "save_and_load"), (OneByOne, "delayed_feedback"), (Lenient, "wrong_feedback"),
    (Overflows, "any_finite_loss"), (Misreports, "probability"), (MindsThreads, "simulation"),
    (MindsCompilers, "compiled"),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "name"), FAULTS, ids=lambda x: getattr(x, "__name__", x))
def test_a_planted_bug_is_found(cls, name):
    with pytest.raises(AssertionError, match=rf"^{cls.__name__}, {name}: .+\. .+"):  # a remedy
        check_learner(cls)


class NotScaleFree(Exp3):
    spec = replace(Exp3.spec, scale_free=True)


class NotTranslationInvariant(Exp3):
    spec = replace(Exp3.spec, translation_invariant=True)


@pytest.mark.parametrize(
    ("cls", "name"),
    [(NotScaleFree, "scale_free"), (NotTranslationInvariant, "translation_invariant")],
)
def test_a_false_claim_is_found(cls, name):
    with pytest.raises(AssertionError, match=f"^{cls.__name__}, {name}: .+"):
        check_learner(cls, rounds=60, loss_range=(-9.0, 9.0))


class NoSumMDP(SoundMDP):
    def policy(self):
        return [0.5 * table for table in super().policy()]


class OwnRandomMDP(SoundMDP):
    def update(self, states, actions, losses):
        self.L[0][states[0], 0] += np.random.random()  # noqa: NPY002 # the fault


class LooksMDP(SoundMDP):
    def __repr__(self):
        self.L[0][0, 0] += 1.0
        return super().__repr__()


class DropsMDP(SoundMDP):
    def state(self):
        return {"L": [(L // 2.0).tolist() for L in self.L]}

    def restore(self, state):
        self.L = [np.array(L) for L in state["L"]]


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        (NoSumMDP, "distribution"), (OwnRandomMDP, "same_seed"), (LooksMDP, "looking"),
        (DropsMDP, "save_and_load"),
    ],
)  # fmt: skip
def test_a_planted_bug_of_an_mdp_learner_is_found(cls, name):
    with pytest.raises(AssertionError, match=f"^{cls.__name__}, {name}: .+"):
        check_mdp_learner(cls)


class Bounded(Overflows):
    largest_loss = 1e100


def test_an_overflow_names_its_losses_and_the_remedy():
    with pytest.raises(AssertionError, match=r"losses of 1\.\S*e\+308.* largest_loss = 1e100"):
        check_learner(Overflows)
    [check] = [one for one in learner_checks(Bounded) if one.name == "any_finite_loss"]
    check()


class Unwritten(Adversary):
    def fill(params, state, t, last_arm, q, out):
        out[: out.size // 2] = 1.0


class Drawn(Adversary):
    def fill(params, state, t, last_arm, q, out):
        out[:] = np.random.random()  # noqa: NPY002 # the fault


class Sees(Adversary):
    def fill(params, state, t, last_arm, q, out):
        out[:] = q


class OtherEntry(InTurn):
    def entry(params, state, t, k):
        return float(k)


class NoScale(InTurn):
    def expected(params, state, t, out):
        out[:] = 0.5
        return 0.0


class ChangesState(InTurn):
    def expected(params, state, t, out):
        out[:] = 0.5
        state[0] += 1.0
        return 1.0


class UnwrittenMDP(MDPAdversary):
    def fill(params, t, q, lay, out):
        out[1:] = 1.0


class DrawnMDP(MDPAdversary):
    def fill(params, t, q, lay, out):
        out[:] = np.random.random()  # noqa: NPY002 # the fault
        out[0] = 0.0


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        (Unwritten, "finite"), (Drawn, "same_key"), (Sees, "looks"), (OtherEntry, "entry"),
        (NoScale, "expected"), (ChangesState, "expected"),
        (UnwrittenMDP, "finite"), (DrawnMDP, "same_key"),
    ],
)  # fmt: skip
def test_a_planted_bug_of_an_adversary_is_found(cls, name):
    with pytest.raises(AssertionError, match=f"^{cls.__name__}, {name}: .+"):
        check_adversary(cls())
