"""Learners in plain Python do what built-in ones do, and survive what their authors write."""

from __future__ import annotations

import copy
import os
import pickle
import sys
import threading

import numpy as np
import pytest

import unbounded.settings
from saved_helpers import changed, fields_of
from unbounded import PythonLearner, Uniform, simulate
from unbounded.adversaries import Adversary, Chaser, StochasticGap
from unbounded.core.simplex.sampling import blend, new_law
from unbounded.durable import Durable
from unbounded.jit.interpreter import quietly
from unbounded.learners.python.steps import checked_table
from unbounded.learners.seeds import replicate_key, root_of


@pytest.fixture(autouse=True)
def _nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unbounded.settings, "jit", "never")


class Leader(PythonLearner):
    """Follows the leader, and keeps all sorts of things."""

    def __init__(self, n_arms, *, explore=0.1, names=("a", "b"), seed=None):
        self._before_super = 1
        super().__init__(n_arms, seed=seed)
        self.n_arms = n_arms
        self.explore, self.names = explore, names
        self._L = np.zeros(n_arms)
        self.told = []
        self.fail = 0

    def distribution(self):
        best = self._L.min() >= self._L
        return self.explore / self.n_arms + (1 - self.explore) * best / best.sum()

    def update(self, arm, probability, loss):
        self.told.append((arm, probability, loss))
        self._L[arm] += loss / probability
        self.clipped += loss > 100
        self.scale = max(self.scale, abs(loss))
        self.late = arm  # made by the first update
        if self.fail == len(self.told):
            raise ZeroDivisionError("as wanted")


class Even(PythonLearner):
    def distribution(self):
        return np.full(self.n_arms, 1 / self.n_arms)

    def update(self, arm, probability, loss):
        pass


def test_it_plays_what_it_says_and_learns_what_it_is_told() -> None:
    learner = Leader(3, seed=5)
    first, second = learner.ask(), learner.ask()
    assert first.probability == second.probability == learner.probabilities()[first.arm]
    learner.tell(second, 0.5)  # late and out of order
    q = learner.probabilities()
    learner.tell(first, reward=-0.25)
    assert learner.told == [(second.arm, 1 / 3, 0.5), (first.arm, 1 / 3, 0.25)]
    assert q[second.arm] == pytest.approx(0.1 / 3)
    assert (learner.rounds, learner.clipped, learner.scale) == (2, 0, 0.5)
    assert dict(learner.settings) == {"n_arms": 3, "explore": 0.1, "names": ["a", "b"]}
    with pytest.raises(ValueError, match="not outstanding"):
        learner.tell(first, 1.0)


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 100])
def test_an_arm_is_drawn_as_built_in_learners_draw_it(n: int) -> None:
    ours, theirs = Uniform(n, seed=7), Even(n, seed=7)
    assert [ours.ask().arm for _ in range(600)] == [theirs.ask().arm for _ in range(600)]


@pytest.mark.parametrize("n", [31, 32, 63, 64, 100, 1000])
def test_sums_of_lanes_are_those_of_the_kernel(n: int) -> None:
    class Random(PythonLearner):
        def distribution(self):
            return weights

        def update(self, arm, probability, loss):
            pass

    weights = np.random.default_rng(n).random(n)
    weights /= weights.sum()
    law = new_law(n)
    law.q[:] = weights
    blend(law, 1.0, 0.0)
    found = Random(n)._law(Random(n)._buffer)
    assert np.array_equal(found.q, law.q)
    assert np.array_equal(found.lane_sums, law.lane_sums)


def test_a_saved_learner_goes_on_bit_for_bit() -> None:
    learner = Leader(4, explore=0.3, seed=1)
    play(learner, 300)
    open_choice = learner.ask()
    twin = Leader.load(learner.save())
    assert vars(twin)["told"] == learner.told
    assert type(twin._L) is np.ndarray
    assert type(twin.told[0]) is tuple
    twin.tell(twin.outstanding[open_choice.id], 2.0)
    learner.tell(open_choice, 2.0)
    assert play(learner, 300) == play(twin, 300)
    assert np.array_equal(learner.probabilities(), twin.probabilities())
    assert "pickle" not in learner.save()


def play(learner, rounds):
    arms = []
    for _ in range(rounds):
        choice = learner.ask()
        arms.append(choice.arm)
        learner.tell(choice, float(choice.arm) + 0.5)
    return arms


def test_copies_have_the_same_future_and_spawned_ones_their_own() -> None:
    learner = Leader(5, seed=2)
    play(learner, 20)
    for twin in (copy.copy(learner), copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        assert play(twin, 50) == play(Leader.load(learner.save()), 50)
    a, b = learner.spawn(2)
    assert a.told == learner.told
    assert a.told is not b.told
    assert [a.ask().arm for _ in range(60)] != [b.ask().arm for _ in range(60)]


def test_own_state_and_restore_are_used() -> None:
    class Own(Leader):
        def state(self):
            return {"L": self._L, "told": len(self.told)}

        def restore(self, state):
            self._L, self.told = state["L"], [None] * state["told"]

    learner = Own(3, seed=0)
    play(learner, 10)
    assert fields_of(learner.save())["state"]["told"] == 10
    twin = Own.load(learner.save())
    assert twin.told == [None] * 10
    assert play(twin, 20) == play(learner, 20)


def test_a_state_that_forgets_something_is_found_out() -> None:
    class Forgetful(Leader):
        def state(self):
            return {"told": self.told}

    learner = Forgetful(3, seed=0)
    play(learner, 5)
    with pytest.raises(ValueError, match=r"Forgetful would not play what it played .* state\(\)"):
        Forgetful.load(learner.save())


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"_buffer": 1}, "not an attribute of its own"),
        ({"ask": 1}, "not an attribute of its own"),
        ([], "not a dict"),
        ({"_L": {"__array__": "|O8", "shape": [3], "data": ""}}, "no such type"),
        ({"_L": {"__array__": "<f8", "shape": [4], "data": ""}}, "not of its shape"),
        ({"_L": "text"}, "this is not a saved Leader"),
        (None, "it has no 'state'"),
    ],
)
def test_a_state_that_somebody_changed_is_rejected(state: object, message: str) -> None:
    text = Leader(3, seed=0).save()
    with pytest.raises(ValueError, match=message):
        Leader.load(changed(text, state=state))


def test_what_cannot_be_kept_is_named() -> None:
    learner = Leader(3)
    learner.cache = {1, 2}
    with pytest.raises(TypeError, match=r"Leader.state\(\)\['cache'\] is of type set"):
        learner.save()


# ------------------------------------------------------------------ errors in update


def test_an_error_in_update_leaves_a_learner_that_was_not_told() -> None:
    learner, twin = Leader(3, seed=4), Leader(3, seed=4)
    play(learner, 4), play(twin, 4)
    learner.fail = 5
    choice = learner.ask()
    before, q = learner.save(), learner.probabilities()
    with pytest.raises(ZeroDivisionError, match="as wanted") as caught:
        learner.tell(choice, 9.0)
    assert caught.value.__notes__ == ["This came from Leader.update()."]
    assert fields_of(learner.save()) == fields_of(before)
    assert len(learner.told) == 4
    assert np.array_equal(learner.probabilities(), q)
    learner.fail = 0  # mended: nothing was lost
    learner.tell(choice, 9.0)
    twin.tell(twin.ask(), 9.0)
    assert play(learner, 30) == play(twin, 30)


def test_an_attribute_that_a_failed_update_made_is_gone() -> None:
    learner = Leader(3, seed=0)
    learner.fail = 1
    with pytest.raises(ZeroDivisionError):
        learner.tell(learner.ask(), 1.0)
    assert not hasattr(learner, "late")


def test_a_bad_distribution_after_update_is_not_learned_from() -> None:
    learner = Leader(3, seed=0)
    choice = learner.ask()
    learner.explore = float("nan")
    with pytest.raises(ValueError, match=r"Leader.distribution\(\) must be finite"):
        learner.tell(choice, 1.0)
    assert learner.rounds == 0
    assert choice.id in learner.outstanding


def test_an_interrupt_anywhere_in_tell_loses_nothing() -> None:
    """A trace raises KeyboardInterrupt at the k-th line that `tell` runs, for all k."""
    here = os.path.dirname(unbounded.__file__)
    ended = False
    k = 0
    while not ended:
        k += 1
        learner = Leader(3, seed=k)
        play(learner, 2)
        choice, lines = learner.ask(), 0

        def trace(frame, event, arg):
            nonlocal lines
            file = frame.f_code.co_filename
            if file == __file__ or file.startswith(here) or "copy.py" in file:
                if event == "line":
                    lines += 1
                    if lines == k:  # noqa: B023
                        raise KeyboardInterrupt
                return trace
            return None

        sys.settrace(trace)
        try:
            learner.tell(choice, 3.0)
            ended = True
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        assert learner.rounds == len(learner.told)
        if choice.id in learner.outstanding:
            assert learner.rounds == 2
            learner.tell(choice, 3.0)
        assert learner.told[-1][2] == 3.0
        assert Leader.load(learner.save()).told == learner.told
    assert k > 60


def test_a_handler_may_save_while_update_runs() -> None:
    class Saved(Leader):
        def update(self, arm, probability, loss):
            super().update(arm, probability, loss)
            if len(self.told) == 3:
                texts.append(self.save())  # as a signal handler would

    texts: list[str] = []
    learner = Saved(3, seed=0)
    play(learner, 2)
    choice = learner.ask()
    learner.tell(choice, 1.0)
    twin = Saved.load(texts[0])
    assert twin.told == learner.told[:2]
    assert twin.rounds == 2
    twin.tell(twin.outstanding[choice.id], 1.0)
    assert play(twin, 20) == play(learner, 20)


def test_threads_may_share_one() -> None:
    learner = Leader(3, seed=0)

    def work() -> None:
        for _ in range(100):
            learner.tell(learner.ask(), 1.0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert learner.rounds == len(learner.told) == 400
    assert not learner.outstanding


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_one_rejects_to_play() -> None:
    learner = Leader(3, seed=0)
    child = os.fork()
    if child == 0:
        try:
            learner.ask()
        except RuntimeError as error:
            os._exit(0 if "came here by a fork" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_it_may_be_durable(tmp_path) -> None:
    file = tmp_path / "learner.db"
    with Durable(file, Leader(3, seed=0)) as durable:
        for _ in range(5):
            durable.tell(durable.ask(), 1.0)
    with Durable(file, Leader(3, seed=0)) as durable:
        choice = durable.ask()
        assert durable.tell(choice, 2.0)
        assert durable.verify() > 0
    with pytest.raises(Exception, match="give Durable such a learner"):
        Durable(file)


# ------------------------------------------------------------------ errors of other kinds


def with_update(parameters):
    return lambda: exec(
        f"class Mine(PythonLearner):\n    def update({parameters}):\n        pass\n",
        {"PythonLearner": PythonLearner},
    )


def with_init(body, parameters="self, n_arms, *, seed=None"):
    def make():
        space = {"PythonLearner": PythonLearner, "np": np}
        source = f"class Mine(PythonLearner):\n    def __init__({parameters}):\n        {body}\n"
        source += (
            "    def distribution(self):\n        return np.full(self.n_arms, 1 / self.n_arms)\n"
        )
        source += "    def update(self, arm, probability, loss):\n        pass\n"
        exec(source, space)
        return space["Mine"](3)

    return make


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (with_init("pass"), r"Mine.__init__ must call super\(\).__init__\(n_arms, seed=seed\)"),
        (with_init("super().__init__(n_arms + 1)"), "Mine was made with n_arms=3 and passes on 4"),
        (with_init("super().__init__(n_arms); self._lock = 3"), "Mine sets self._lock, a name"),
        (with_init("self._lock = 3; super().__init__(n_arms)"), "Mine sets self._lock, a name"),
        (with_init("super().__init__(n_arms); self.state = 3"), "Mine sets self.state, a name"),
        (with_init("super().__init__(n_arms); self.rounds = 3"), "Mine sets self.rounds, a name"),
        (with_init("super().__init__(n_arms)", "self, n_arms"), r"Mine.__init__ must take \(self"),
        (with_init("super().__init__(K)", "self, K, seed=None"), r"Mine.__init__ must take \(self"),
        (
            with_init("super().__init__(n_arms)", "self, n_arms, *rest, seed=None"),
            "Mine.__init__ must name all its settings",
        ),
        (with_update("self, arm, loss"), r"Mine.update must take \(self, arm, probability, loss\)"),
        (with_update("self, arm, q, loss, extra"), r"Mine.update must take \(self, arm, proba"),
        (lambda: Leader(), "Leader: missing a required argument: 'n_arms'"),
        (lambda: Leader(3, rate=2), "Leader: got an unexpected keyword argument 'rate'"),
        (lambda: Leader(3, explore=np.ones(2)), r"the setting explore must be .* \.tolist\(\)"),
        (lambda: Leader(3, explore=object()), "Leader: the setting explore must be a number"),
        (lambda: PythonLearner(3), r"PythonLearner must define distribution\(\) and update\(\)"),
    ],
)
def test_what_is_wrong_with_a_class_is_one_sentence(make, message: str) -> None:
    with pytest.raises(TypeError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["_low", "_records", "save", "_state"])
def test_an_update_must_not_set_what_is_ours(name: str) -> None:
    class Sets(Even):
        def update(self, arm, probability, loss):
            setattr(self, name, 5)

    learner = Sets(3, seed=0)
    choice = learner.ask()
    with pytest.raises(TypeError, match=f"Sets sets self.{name}, a name that every learner uses"):
        learner.tell(choice, 1.0)
    assert list(learner.outstanding) == [choice.id]
    with pytest.raises(TypeError, match=f"Sets sets self.{name}"):
        simulate(Sets(3), StochasticGap(), 10)


def test_other_names_and_more_that_is_optional_will_do() -> None:
    class Own(Even):
        def update(self, k, *rest, note=""):
            self.last = k

    simulate(Own(3), StochasticGap(), 10)


def test_a_class_without_a_method_says_which() -> None:
    class Half(PythonLearner):
        def distribution(self):
            return [1.0]

    with pytest.raises(TypeError, match=r"Half must define update\(\)"):
        Half(1)


def test_a_method_of_ours_is_not_replaced_by_accident() -> None:
    with pytest.raises(TypeError, match=r"Mine\.ask would replace what every learner has"):
        type("Mine", (PythonLearner,), {"ask": lambda self: 0})


@pytest.mark.parametrize(
    ("q", "message"),
    [
        ([0.5, 0.5], r"Given.distribution\(\) must have shape \(3,\), got \(2,\)"),
        (np.eye(3), r"must have shape \(3,\), got \(3, 3\)"),
        ("abc", r"Given.distribution\(\) must return probabilities, got 'abc'"),
        (None, r"must have shape|must return probabilities"),
        ([0.5, 0.5, 1e-8], "which add up to 1.00000001"),
        ([1.5, -0.5, 0.0], "at least 0"),
        ([np.nan, 0.5, 0.5], "must be finite"),
        ([np.inf, 0.0, 0.0], "must be finite"),
        ([0.5j, 0.5, 0.5], "must return probabilities"),
    ],
)
def test_what_is_not_a_distribution_is_rejected(q: object, message: str) -> None:
    class Given(PythonLearner):
        def distribution(self):
            return q

        def update(self, arm, probability, loss):
            pass

    with pytest.raises((TypeError, ValueError), match=message):
        Given(3)


def test_rounding_is_corrected_and_nothing_else() -> None:
    assert checked_table("q", [1.0 + 1e-15, -1e-15, 0.0], (3,)).tolist() == [1.0, 0.0, 0.0]
    q = np.array([0.2, 0.3, 0.5 + 1e-12])
    assert np.array_equal(checked_table("q", q, (3,)), q)  # not normalised
    for bad in ([1.0 + 2e-9, -2e-9, 0.0], [0.2, 0.3, 0.5 + 2e-9]):
        with pytest.raises(ValueError, match="add up to 1 within 1e-09"):
            checked_table("q", bad, (3,))


# ------------------------------------------------------------------ simulations


@pytest.mark.parametrize("adversary", [StochasticGap(), Chaser()])
def test_a_simulation_is_repeated_by_ask_and_tell(adversary: Adversary) -> None:
    result = simulate(Leader(3), adversary, 60, 2, seed=1, checkpoints=[1, 7, 60])
    again = simulate(Leader(3), adversary, 60, 1, seed=1, first_replicate=1, checkpoints=[60])
    assert again.regret[0, -1] == result.regret[1, -1]
    assert again.pseudo_regret[0, -1] == result.pseudo_regret[1, -1]
    many = simulate(Leader(3), adversary, 60, 2, seed=1, checkpoints=[1, 7, 60], workers=4)
    assert np.array_equal(many.regret, result.regret)
    # The learner outside, against the losses that `fill` makes.
    learner = Leader(3, seed=result.seed(1))
    params, state = adversary.begin(3, 60, replicate_key(root_of(1), 1))
    fill, row, last, paid, sums = quietly(adversary.rows().kernel), np.empty((1, 3)), -1, 0, 0
    for t in range(1, 61):
        fill(params, state, t, last, learner.probabilities(), row)
        choice = learner.ask()
        last = choice.arm
        paid, sums = paid + row[0, last], sums + row[0]
        learner.tell(choice, float(row[0, last]))
    assert paid - sums.min() == pytest.approx(result.regret[1, -1], rel=1e-12)


@pytest.mark.parametrize("adversary", [StochasticGap(scale=3.0, shift=-1.0), Chaser()])
def test_regret_is_that_of_an_equal_built_in_learner(adversary: Adversary) -> None:
    ours = simulate(Uniform(3), adversary, 300, 2, seed=3)
    theirs = simulate(Even(3), adversary, 300, 2, seed=3)
    assert np.array_equal(ours.regret, theirs.regret)
    assert np.array_equal(ours.pseudo_regret, theirs.pseudo_regret)
    other = simulate(Even(3), adversary, 300, 2, seed=4)
    assert not np.array_equal(other.regret, theirs.regret)


def test_an_adversary_in_python_meets_a_learner_in_python() -> None:
    def unfair(t, last_arm, q, rng):
        return np.arange(3.0)

    result = simulate(Leader(3), unfair, 200, 2, seed=0)
    assert (result.pseudo_regret[:, -1] < 60).all()
    assert result.threshold[0, -1] == 2.0


def test_an_error_in_a_simulation_names_the_class() -> None:
    class Bad(Leader):
        def update(self, arm, probability, loss):
            raise KeyError("x")

    with pytest.raises(KeyError) as caught:
        simulate(Bad(3), StochasticGap(), 10)
    assert caught.value.__notes__ == ["This came from Bad.update()."]


def test_comparators_are_rejected() -> None:
    with pytest.raises(TypeError, match="Leader is in Python"):
        simulate(Leader(3), StochasticGap(), 10, comparators=[0])


def test_full_information_gets_all_losses() -> None:
    class Hedge(PythonLearner):
        feedback = "full"

        def distribution(self):
            w = np.exp(-getattr(self, "L", np.zeros(self.n_arms)))
            return w / w.sum()

        def update(self, arm, probability, losses):
            self.L = getattr(self, "L", 0.0) + losses

    learner = Hedge(3, seed=0)
    learner.tell(learner.ask(), losses=[0, 1, 2])
    assert learner.probabilities().argmax() == 0
    with pytest.raises(TypeError, match="pass losses=vector"):
        learner.tell(learner.ask(), 1.0)
    assert simulate(Hedge(3), StochasticGap(), 50, seed=0).regret.shape[0] == 1


def test_one_that_cannot_wait_says_so() -> None:
    class Impatient(Even):
        delayed = False

    learner = Impatient(2, seed=0)
    learner.ask()
    with pytest.raises(RuntimeError, match="Impatient needs to know of"):
        learner.ask()


@pytest.mark.parametrize("name", ["ask", "save", "distribution", "spawn"])
def test_a_setting_cannot_hide_a_method(name):
    """When the class is made, and not when the first learner is."""
    with pytest.raises(TypeError, match=f"{name} cannot be a setting of Mine: .*{name} is used"):
        exec(  # the name is a parameter
            "class Mine(PythonLearner):\n"
            f"    def __init__(self, n_arms, *, {name}=0.5, seed=None):\n"
            "        super().__init__(n_arms, seed=seed)\n",
            {"PythonLearner": PythonLearner},
        )
