"""New epochs: other arms, the same scale."""

import numpy as np
import pytest

import unbounded
from unbounded import AHB, SCB, SCBIX, AdaHedge, CostSCB, CostSCBIX, Exp3, bandits, recommend
from unbounded.durable import Durable, learner
from unbounded.durable.feedback import Feedback
from unbounded.durable.replica import next_learner


def played(learner, rounds=50, size=3e6):
    rng = np.random.default_rng(2)
    for _ in range(rounds):
        learner.tell(learner.ask(), size * (0.1 + rng.random()))
    return learner


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch):
    """A few rounds of every bandit: to compile them all would take minutes."""
    monkeypatch.setattr(unbounded.settings, "jit", "never")


@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        (SCB, {}),
        (SCB, {"clip": "range"}),
        (SCBIX, {}),
        (CostSCB, {}),
        (CostSCB, {"outliers": 2}),
        (CostSCB, {"half_life": 10}),
        (CostSCBIX, {"half_life": 7, "outliers": 2}),
        (Exp3, {"rounds": 100, "loss_range": (0.0, 1e7)}),
    ],
)
def test_the_scale_is_kept_and_nothing_else(cls, settings):
    old = played(cls(3, **settings, seed=0))
    new = next_learner(old, 5, 1)
    assert new.scale == old.scale > 0.0
    assert (new.n_arms, new.rounds, new.clipped, len(new.outstanding)) == (5, 0, 0, 0)
    np.testing.assert_allclose(new.probabilities(), 0.2)
    # A loss of the old size is not clipped, as it would be by a learner that knows nothing.
    new.tell(new.ask(), 0.5 * old.scale)
    fresh = type(old)(**{**old.settings, "n_arms": 5}, seed=0)
    fresh.tell(fresh.ask(), 0.5 * old.scale)
    assert new.clipped == 0
    assert fresh.clipped == (0 if isinstance(old, Exp3) else 1) or old.settings["clip"] == "range"
    played(new, 200)
    assert type(new).load(new.save()).rounds == 201


def test_the_new_play_follows_from_the_old_one():
    first, second = (next_learner(played(SCB(3, seed=0)), 4, 1) for _ in range(2))
    other = next_learner(played(SCB(3, seed=0)), 4, 2)
    plays = [[learner.ask().arm for _ in range(40)] for learner in (first, second, other)]
    assert plays[0] == plays[1] != plays[2]


@pytest.mark.parametrize(("cls", "settings"), [(AHB, {}), (CostSCB, {"outliers": "sqrt"})])
def test_a_learner_that_cannot_keep_its_scale_says_so(cls, settings):
    with pytest.raises(ValueError, match="cannot begin again at the scale of"):
        next_learner(played(cls(3, **settings, seed=0)), 4, 1)
    assert next_learner(cls(3, **settings), 4, 1).n_arms == 4  # nothing to keep


@pytest.mark.parametrize(
    "name", [name for name, cls in bandits.algorithms().items() if cls.spec.feedback != "full"]
)
def test_every_bandit_keeps_its_scale_or_says_that_it_cannot(name):
    cls = bandits.algorithms()[name]
    for example in cls.spec.examples:
        old = played(cls(**{"n_arms": 3, **example}, seed=0), 20, size=0.5)
        try:
            new = next_learner(old, 4, 1)
        except ValueError:
            continue
        assert new.scale == old.scale
        played(new, 20, size=0.5)


def test_arms_come_and_go_in_all_processes(tmp_path):
    path = tmp_path / "arms.db"
    arms = Durable(path, SCB(n_arms=2, seed=0), arms=["a", "b"])
    other = Durable(path)
    for _ in range(30):
        choice = arms.ask()
        arms.tell(choice.id, loss=100.0 * (1 + choice.arm))
    old = [arms.ask(key=f"old {i}") for i in range(2)]
    scale = arms.status().scale
    arms.add_arm("c")
    assert other.status().arms == ("a", "b", "c")
    assert (other.status().epoch, other.status().rounds, other.status().scale) == (1, 0, scale)
    # What was asked before is written down and not learned from; its key still gives it.
    assert other.ask(key="old 0") == old[0]
    assert other.tell(old[0].id, loss=1e9)
    assert (arms.status().scale, arms.status().rounds) == (scale, 0)
    with pytest.raises(ValueError, match="told or has expired"):
        arms.tell(old[0].id, loss=1.0)
    seen = {other.ask().name for _ in range(60)}
    assert seen == {"a", "b", "c"}
    other.retire_arm("a")
    assert arms.status().arms == ("b", "c")
    choice = arms.ask()
    assert choice.name == ("b", "c")[choice.arm]
    for call, match in [
        (lambda: arms.add_arm("b"), "two arms 'b'"),
        (lambda: arms.add_arm(""), "name of an arm"),
        (lambda: arms.retire_arm("a"), "there is no arm 'a'"),
    ]:
        with pytest.raises(ValueError, match=match):
            call()
    arms.retire_arm("b")
    with pytest.raises(ValueError, match="last arm"):
        arms.retire_arm("c")
    log = arms.log()
    assert log.filter(key="old 0")["loss"].item() == 1e9
    assert sorted(log["epoch"].unique()) == [0, 1, 2]
    assert arms.verify() == arms.status().rows
    assert Durable(path).status() == arms.status()
    with pytest.raises(ValueError, match=r"n_arms=1, and not 2"):
        Durable(path, SCB(n_arms=2), arms=["a", "b"])


@pytest.mark.parametrize("given", [{"loss": np.nan}, {"loss": np.inf}, {"reward": -np.inf}])
def test_a_ticket_of_an_old_epoch_is_checked_like_any_other(tmp_path, given):
    path = tmp_path / "arms.db"
    with Durable(path, SCB(n_arms=2, seed=0)) as arms:
        choice = arms.ask()
        arms.add_arm("c")
        with pytest.raises(ValueError, match="must be finite"):
            arms.tell(choice.id, **given)
        with pytest.raises(TypeError, match="loss"):
            arms.tell(choice.id, loss="1.0")
        assert arms.outstanding() == [choice.id]
        assert arms.tell(choice.id, loss=np.float32(1.0))
    with Durable(path) as arms:
        assert arms.verify() == 3


def test_all_losses_of_an_old_epoch_are_those_of_its_arms(tmp_path):
    with Durable(tmp_path / "arms.db", AdaHedge(n_arms=2, seed=0)) as arms:
        choice = arms.ask()
        arms.add_arm("c")
        with pytest.raises(ValueError, match=r"shape \(2,\)"):
            arms.tell(choice.id, losses=[1.0, 2.0, 3.0])
        assert arms.tell(choice.id, losses=[1.0, 2.0])
        with pytest.raises(ValueError, match=r"shape \(3,\)"):
            arms.tell(arms.ask(), losses=[1.0, 2.0])
        assert arms.verify() == 4


@pytest.mark.parametrize("loss", [np.nan, -0.0])
def test_a_row_that_does_not_read_as_it_was_written_cannot_exist(tmp_path, monkeypatch, loss):
    """Should a check be missing: SQLite keeps NaN as NULL, and -0.0 as 0.0."""
    arms = Durable(tmp_path / "arms.db", SCB(n_arms=2, seed=0))
    choice = arms.ask()
    arms.add_arm("c")
    monkeypatch.setattr(learner, "checked_feedback", lambda *_: Feedback(loss))
    with pytest.raises(ValueError, match="cannot be kept"):
        arms.tell(choice.id, loss=loss)
    monkeypatch.undo()
    assert arms.tell(choice.id, loss=1.0)
    assert Durable(tmp_path / "arms.db").verify() == 3


def test_a_key_of_an_old_epoch_gives_the_arm_among_those_of_now(tmp_path):
    names = ["a", "b", "c"]
    arms = Durable(tmp_path / "arms.db", SCB(n_arms=3, seed=0), arms=names)
    asked = {(choice := arms.ask(key=str(i))).name: (str(i), choice) for i in range(40)}
    arms.retire_arm("a")
    now = arms.status().arms
    for name in ("b", "c"):
        key, before = asked[name]
        again = arms.ask(key=key)
        assert (again.id, again.name, now[again]) == (before.id, name, name)
    key, before = asked["a"]
    again = arms.ask(key=key)
    assert (again.id, again.name, again.arm) == (before.id, "a", None)
    with pytest.raises(IndexError, match="'a' was retired"):
        names[again]
    assert arms.tell(again.id, loss=1.0)


def test_an_epoch_adds_one_name_to_the_file_and_not_all_of_them(tmp_path):
    names = [f"arm {k:04}" for k in range(2000)]
    arms = Durable(tmp_path / "arms.db", SCB(n_arms=2000, seed=0), arms=names)
    arms.add_arm("more")
    arms.retire_arm("arm 0007")
    rows = arms._session.look(lambda: arms._session.store.rows(1))
    assert sum(len(repr(row)) for row in rows) < 1000
    assert Durable(tmp_path / "arms.db").status().arms == (*names[:7], *names[8:], "more")


@pytest.mark.parametrize(
    "made",
    [
        recommend(lower=0.0), recommend(lower=0.0, outliers=True), recommend(),
        recommend(lower=0.0, changing=1000), recommend(changing=1000),
        recommend(lower=0.0, high_probability=True),
    ],
    ids=str,
)  # fmt: skip
def test_what_recommend_gives_keeps_what_it_knows_over_many_changes(tmp_path, made):
    path = tmp_path / "arms.db"
    names = ["good", "bad 0", "bad 1"]
    arms, other = Durable(path, made.learner(n_arms=3, seed=0), arms=names), Durable(path)
    rng, waiting = np.random.default_rng(0), []
    for change in range(12):
        for _ in range(40):
            choice = other.ask()
            mean = 0.1 if choice.name == "good" else 0.8
            waiting.append((choice.id, float(rng.random() < mean)))
            if len(waiting) > 3:  # some are told after their arm has gone
                ticket, loss = waiting.pop(0)
                arms.tell(ticket, loss=loss)
        rounds = arms.status().rounds
        arms.add_arm(f"bad {change + 2}")
        other.retire_arm(f"bad {change}")
        assert arms.status().rounds == rounds == 40 * (change + 1) - 3
    status = arms.status()
    assert status.arms == ("good", "bad 12", "bad 13")
    assert dict(zip(status.arms, status.probabilities, strict=True))["good"] > 0.5
    assert (status.epoch, status.outstanding) == (24, 3)
    assert other.verify() == status.rows
    other.close()
    assert Durable(path).status() == status


def test_the_others_forget_and_say_so():  # the control
    new = next_learner(played(CostSCB(3, seed=0)), 4, 1)
    assert new.rounds == 0
