"""Names of arms in memory: one place gives them to every learner, and they change no bit."""

import copy
import pickle

import numpy as np
import pytest

from unbounded import (
    AdaINF,
    ByArm,
    CostExp4,
    CostSCB,
    PerContext,
    advice,
    bandits,
    simulate,
)
from unbounded.adversaries import StochasticGap
from unbounded.durable import Durable
from unbounded.extend import PythonLearner

NAMES = ["eu-1", "eu-2", "us ☃"]


class Mine(PythonLearner):
    def __init__(self, n_arms, *, explore=0.1, seed=None):
        super().__init__(n_arms, seed=seed)
        self.L = np.zeros(n_arms)

    def distribution(self):
        return np.full(self.n_arms, 1.0 / self.n_arms)

    def update(self, arm, probability, loss):
        self.L[arm] += loss / probability


def made(cls, arms):
    given = dict(getattr(cls.spec, "examples", ({},))[0])
    if cls.__name__ in advice.algorithms():
        given["n_experts"] = 2
    return cls(arms, **given, seed=0)


ALL = [*bandits.algorithms().values(), *advice.algorithms().values(), Mine]


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_every_learner_takes_names_and_keeps_them(cls):
    named, plain = made(cls, NAMES), made(cls, 3)
    assert named.arm_names == tuple(NAMES)
    assert plain.arm_names == ("0", "1", "2")
    assert named.n_arms == plain.n_arms == 3
    assert named.settings == plain.settings
    assert repr(NAMES)[:12] in repr(named)
    kept = [cls.load(named.save()), copy.deepcopy(named), named.clone(), named.spawn(1)[0]]
    assert [one.arm_names for one in kept] == [tuple(NAMES)] * 4
    assert "names" not in plain.save()
    assert np.array_equal(named._buffer, plain._buffer)


@pytest.mark.parametrize("cls", [CostSCB, Mine, AdaINF])
def test_play_is_the_same_to_the_last_bit(cls):
    named, plain = made(cls, np.array(NAMES)), made(cls, 3)
    for t in range(50):
        mine, its = named.ask(), plain.ask()
        assert (mine.arm, mine.probability) == (its.arm, its.probability)
        assert (mine.name, its.name) == (NAMES[mine.arm], str(its.arm))
        named.tell(mine, 0.1 * (t % 7))
        plain.tell(its, 0.1 * (t % 7))
        if t == 25:
            waiting = named.ask()
            plain.ask()
            assert pickle.loads(pickle.dumps(waiting)).name == waiting.name
            named = cls.load(named.save())
            assert named.outstanding[waiting.id].name == waiting.name
            named.tell(waiting, 1.0)
            plain.tell(plain.outstanding[waiting.id], 1.0)
    assert np.array_equal(named.probabilities(), plain.probabilities())
    chances = named.probabilities(named=True)
    assert list(chances) == NAMES
    assert list(chances.values()) == plain.probabilities().tolist()
    assert list(plain.probabilities(named=True)) == ["0", "1", "2"]


def test_a_choice_shows_its_name():
    choice = CostSCB(NAMES, seed=0).ask(available=["us ☃"])
    assert repr(choice) == "Choice(arm=2, name='us ☃', probability=1, id=0)"
    assert {"us ☃": 1}[choice.name] == 1
    assert NAMES[choice] == choice.name


@pytest.mark.parametrize(
    ("arms", "what"),
    [([], "at least 1"), (["a", "a"], "two arms 'a'"), (["a", ""], "text"), ([1, 2], "text"),
     (["a", "\ud800"], "text"), ("ab", "n_arms"), ({"a": 1}, "n_arms"), (b"ab", "n_arms"),
     ({"a", "b"}, "n_arms")],
)  # fmt: skip
def test_what_are_no_names_is_rejected(arms, what):
    for cls in (CostSCB, Mine):
        with pytest.raises((TypeError, ValueError), match=what):
            cls(arms)


def test_masks_logs_and_queues_take_names():
    learner, plain = CostSCB(NAMES, seed=0), CostSCB(3, seed=0)
    learner.learn_from("eu-2", 0.5, 1.0)
    plain.learn_from(1, 0.5, 1.0)
    learner.learn_from({"arm": ["us ☃", "eu-1"], "probability": [0.5, 0.5], "loss": [1.0, 0.0]})
    plain.learn_from({"arm": [2, 0], "probability": [0.5, 0.5], "loss": [1.0, 0.0]})
    assert np.array_equal(learner.probabilities(), plain.probabilities())
    two = learner.probabilities(available=["eu-1", "us ☃"])
    assert np.array_equal(two, plain.probabilities(available=[0, 2]))
    queue = ByArm(learner)
    name = queue.ask().name
    assert queue.waiting(name) == 1
    assert queue.tell(name, 1.0)
    for call in (
        lambda: learner.ask(available=["nobody"]),
        lambda: learner.learn_from("nobody", 0.5, 1.0),
        lambda: plain.learn_from("0", 0.5, 1.0),
        lambda: queue.tell("nobody", 1.0),
    ):
        before = learner.save()
        with pytest.raises(ValueError, match=r"nobody|arm"):
            call()
        assert learner.save() == before


def test_experts_and_contexts_have_named_arms():
    experts = CostExp4(NAMES, 2, seed=0)
    assert experts.ask([1, 1]).name == "eu-2"
    assert experts.ask([1, 1], available=["us ☃"]).name == "us ☃"
    assert experts.probabilities([0, 0], named=True)["eu-1"] == 1.0
    servers = PerContext(AdaINF(NAMES), ["region"], seed=0)
    choice = servers.ask({"region": "eu"}, available=["us ☃"])
    assert choice.name == "us ☃"
    again = PerContext.load(servers.save())
    assert again.ask({"region": "eu"}, available=["eu-2"]).name == "eu-2"


def test_arms_come_and_go_by_name():
    learner = CostSCB(NAMES, seed=0)
    for _ in range(300):
        choice = learner.ask()
        learner.tell(choice, loss={"eu-1": 3.0, "eu-2": 1.0, "us ☃": 2.0}[choice.name])
    waiting = learner.ask(available=["eu-1"])
    plain = CostSCB.load(learner.save())
    plain._name_arms(None)
    later = learner.with_arms(["us ☃", "new", "eu-2"])
    assert later.arm_names == ("us ☃", "new", "eu-2")
    plain = plain.with_arms([2, None, 1])
    assert np.array_equal(later.probabilities(), plain.probabilities())
    assert later.probabilities(named=True)["eu-2"] > 0.6
    assert later.outstanding[waiting.id].name == ""  # it has gone
    assert waiting.name == "eu-1"
    later.tell(waiting, 5.0)
    assert later.with_arms([2, 0]).arm_names == ("eu-2", "us ☃")
    for arms in ([0, None], ["eu-2", "eu-2"], ["nobody"], [7], [""]):
        with pytest.raises(ValueError, match="arm"):
            later.with_arms(arms)
    with pytest.raises(TypeError, match="arms"):
        plain.with_arms(["eu-2"])


def test_a_forged_file_is_rejected():
    from unbounded.learners.persistence import read, written

    fields = read(CostSCB(NAMES, seed=0).save(), "CostSCB")
    for names in (["a"], ["a", "a", "b"], [1, 2, 3], "abc", None, ["a", "b", ""]):
        given = {
            key: fields[key] for key in fields if key not in ("format", "version", "algorithm")
        }
        with pytest.raises(ValueError, match="not a saved CostSCB"):
            CostSCB.load(written("CostSCB", given | {"names": names}))


def test_simulations_take_named_learners():
    one, other = (simulate(CostSCB(a), StochasticGap(), 200, 2, seed=0) for a in (NAMES, 3))
    assert np.array_equal(one.regret, other.regret)


def test_a_durable_learner_has_the_names_of_its_learner(tmp_path):
    path = tmp_path / "arms.db"
    with Durable(path, CostSCB(NAMES, seed=0)) as arms:
        assert arms.status().arms == tuple(NAMES)
        assert arms.tell(arms.ask(available=["us ☃"]), loss=1.0)
        copied = arms.learner()
        assert copied.arm_names == tuple(NAMES)
        assert copied.ask().name in NAMES
        arms.add_arm("new")
        assert arms.learner().arm_names == (*NAMES, "new")
        arms.retire_arm("new")
        assert arms.verify() == 4
    for arms in (["a", "b", "c"], ["eu-1", "eu-2"]):
        with pytest.raises(ValueError, match="arms"):
            Durable(path, CostSCB(NAMES, seed=0), arms=arms)
    with pytest.raises(ValueError, match="has the arms"):
        Durable(path, CostSCB(["a", "b", "c"], seed=0))
    assert Durable(path, CostSCB(3)).status().arms == tuple(NAMES)
    assert Durable(path, CostSCB(NAMES), arms=NAMES).learner().arm_names == tuple(NAMES)
    with Durable(tmp_path / "plain.db", CostSCB(3, seed=0)) as arms:
        assert arms.learner()._arm_names is None


def test_notebooks_show_names():
    assert "eu-2" in CostSCB(NAMES, seed=0)._repr_html_()
