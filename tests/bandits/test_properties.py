"""What must hold whatever finite losses come, and in whatever order one asks and tells."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from unbounded import AHB, SCB, SCBIX, AdaINF, Learner

finite = st.floats(allow_nan=False, allow_infinity=False)
extreme = st.sampled_from(
    [0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1e308, 1.0]
)
losses = st.one_of(finite, extreme, st.floats(-1.0, 1.0))

LEARNERS = [
    lambda n, seed: SCB(n, seed=seed),
    lambda n, seed: SCB(n, profile="paper", seed=seed),
    lambda n, seed: SCB(n, profile="paper", threshold="largest", seed=seed),
    lambda n, seed: SCBIX(n, profile="paper", seed=seed),
    lambda n, seed: SCBIX(n, delta=0.01, seed=seed),
    lambda n, seed: AdaINF(n, seed=seed),
    lambda n, seed: AdaINF(n, robust=False, seed=seed),
    lambda n, seed: AdaINF(n, trim=1, seed=seed),
    lambda n, seed: AdaINF(127 + n, robust=False, seed=seed),  # of which few are touched
]


def floor(learner: Learner) -> float:
    """beta_t / n, the least probability of an arm."""
    n, t = learner.n_arms, learner.rounds + 1
    if isinstance(learner, AdaINF):
        return 1.0 / (2 * n + 2 * (n - 1) / n * math.sqrt(n * t)) if n > 1 else 1.0
    mixing = learner.settings["mixing"]
    if isinstance(learner, SCB):
        return mixing / (2 * n + math.sqrt(n * t))
    delta = learner.settings["delta"]
    iota = math.log(n) if delta is None else math.log(n / delta)
    cap = 0.5 if learner.settings["clip"] == "range" else 1.0
    return mixing * min(cap, math.sqrt(n * iota / (n * iota + t))) / n if n > 1 else 1.0


class AskAndTell(RuleBasedStateMachine):
    """Any interleaving of ask, tell, forget, save and load, beside a twin that is never saved."""

    @initialize(make=st.sampled_from(LEARNERS), n=st.integers(1, 7), seed=st.integers(0, 2**63))
    def start(self, make, n, seed):
        self.learner, self.twin = make(n, seed), make(n, seed)
        self.tickets = []

    @rule()
    def ask(self):
        mine, twin = self.learner.ask(), self.twin.ask()
        assert (mine.arm, mine.probability, mine.id) == (twin.arm, twin.probability, twin.id)
        self.tickets.append((mine, twin))

    @rule(loss=losses, which=st.integers(0, 100))
    def tell(self, loss, which):
        if self.tickets:
            mine, twin = self.tickets.pop(which % len(self.tickets))
            self.learner.tell(mine, loss)
            self.twin.tell(twin, loss)

    @rule(which=st.integers(0, 100))
    def forget(self, which):
        if self.tickets:
            mine, twin = self.tickets.pop(which % len(self.tickets))
            self.learner.forget(mine)
            self.twin.forget(twin)

    @rule()
    def save_and_load(self):
        self.learner = type(self.learner).load(self.learner.save())

    @rule(bad=st.sampled_from([math.nan, math.inf, True, "1"]))
    def bad_loss(self, bad):
        if self.tickets:
            with pytest.raises((TypeError, ValueError)):
                self.learner.tell(self.tickets[0][0], bad)

    @invariant()
    def sound(self):
        if not hasattr(self, "learner"):
            return
        q = self.learner.probabilities()
        assert np.isfinite(q).all()
        assert abs(q.sum() - 1.0) <= 1e-12
        assert q.min() >= floor(self.learner) * (1 - 1e-14)
        assert np.array_equal(q, self.twin.probabilities())
        assert len(self.learner.outstanding) == len(self.tickets)
        assert self.learner.scale >= 0.0


AskAndTell.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
TestAskAndTell = AskAndTell.TestCase


@settings(deadline=None, max_examples=80)
@given(st.lists(losses, min_size=1, max_size=40), st.integers(1, 6), st.integers(0, 9))
def test_any_losses_leave_a_distribution(values, n, which):
    makers = [*LEARNERS, lambda n, seed: AHB(n, seed=seed)]
    learner = makers[which](n, 0)
    for loss in values:
        learner.tell(learner.ask(), loss)
        q = learner.probabilities()
        assert np.isfinite(q).all()
        assert (q >= 0.0).all()
        assert abs(q.sum() - 1.0) <= 1e-12


normal = st.floats(-1e6, 1e6).map(lambda x: math.ldexp(round(math.ldexp(x, 30)), -30))


@settings(deadline=None, max_examples=80)
@given(st.lists(normal, min_size=1, max_size=40), st.integers(-900, 900), st.integers(0, 9))
def test_powers_of_two_change_nothing(values, k, which):
    """Strong scale-freeness bit for bit, for any losses that stay normal floats."""
    makers = [*LEARNERS, lambda n, seed: AHB(n, seed=seed)]
    one, other = makers[which](4, 9), makers[which](4, 9)
    for loss in values:
        a, b = one.ask(), other.ask()
        assert (a.arm, a.probability) == (b.arm, b.probability)
        one.tell(a, loss)
        other.tell(b, math.ldexp(loss, k))
    assert np.array_equal(one.probabilities(), other.probabilities())
