"""What every learner shares: tickets, settings, save and load."""

import json
import os
import tracemalloc

import numpy as np
import pytest

from saved_helpers import buffer_of, changed, fields_of, with_buffer
from unbounded import AHB, SCB, IndependentSCB, TsallisINF, UniformPolicy
from unbounded.learners import persistence as saved
from unbounded.learners.tickets import Ticket


def bandit():
    return SCB(3, rate=0.5, seed=0)


def player():
    return IndependentSCB([1, 2], 2, clip="range", seed=0)


def tell(learner, ticket, loss=1.0):
    if isinstance(learner, SCB):
        learner.tell(ticket, loss)
    else:
        learner.tell(ticket, [0, 1], [0, 0], [loss, -loss])


@pytest.fixture(params=[bandit, player])
def make(request):
    return request.param


def test_a_ticket_is_told_once(make):
    learner, other = make(), make()
    mine, theirs = learner.ask(), other.ask()
    assert isinstance(mine, Ticket)
    with pytest.raises(ValueError, match="was issued by another learner"):
        tell(learner, theirs)
    tell(learner, mine)
    with pytest.raises(ValueError, match=r"not outstanding: it was told or forgotten before; ask"):
        tell(learner, mine)
    forgotten = learner.ask()
    learner.forget(forgotten)
    for again in (tell, lambda learner, ticket: learner.forget(ticket)):
        with pytest.raises(ValueError, match="told or forgotten"):
            again(learner, forgotten)
    for wrong in (0, "0", None, 1.5):
        with pytest.raises(TypeError, match=r"what ask\(\) returned"):
            tell(learner, wrong)
    assert not learner.outstanding


def test_outstanding_tickets_are_found_by_number(make):
    learner = make()
    ticket = learner.ask()
    assert dict(learner.outstanding) == {ticket.id: ticket}
    with pytest.raises(TypeError):
        learner.outstanding[7] = ticket
    learner.forget(ticket)
    assert learner.outstanding == {}
    assert learner.ask().id == ticket.id + 1


def test_a_second_ask_where_one_must_wait():
    for learner in (AHB(3, seed=0), player()):
        ticket = learner.ask()
        before = learner.save()
        with pytest.raises(RuntimeError, match=r"before it can choose again: tell\(\) or forget"):
            learner.ask()
        assert learner.save() == before
        learner.forget(ticket)
        learner.ask()


def test_settings_make_an_equal_learner(make):
    learner = make()
    again = type(learner)(**learner.settings, seed=0)
    assert again.settings == learner.settings
    assert again.ask().id == learner.ask().id
    with pytest.raises(TypeError):
        learner.settings["seed"] = 1
    assert "seed" not in learner.settings


def test_settings_are_plain():
    """Whatever was given: JSON knows neither tuples nor NumPy's numbers."""
    learner = TsallisINF(np.int64(3), loss_range=(np.float64(-1.0), 2), seed=0)
    assert learner.settings == {"n_arms": 3, "loss_range": [-1.0, 2.0]}
    assert all(type(x) in (int, float) for x in learner.settings["loss_range"])
    assert UniformPolicy(np.array([1, 2]), np.int32(2)).settings == {
        "layers": [1, 2],
        "n_actions": 2,
        "allowed": None,
        "ends": False,
    }
    for made in (learner, UniformPolicy(np.array([1, 2]), 2)):
        assert type(made).load(made.save()).settings == made.settings


def test_a_subclass_has_the_settings_of_its_algorithm():
    class Watched(SCB):
        def __init__(self, *args, **settings):
            super().__init__(*args, **settings)

    learner = Watched(3, clip="range", seed=0)
    assert learner.settings == SCB(3, clip="range").settings
    assert isinstance(Watched.load(learner.save()), Watched)


def test_it_says_what_it_is():
    assert repr(player()) == "IndependentSCB(layers=[1, 2], n_actions=2, clip='range')"
    assert repr(SCB(2)) == "SCB(n_arms=2)"
    learner = SCB(2, rate=1, seed=0)
    learner.tell(learner.ask(), 1.0)
    assert (
        repr(learner) == repr(SCB.load(learner.save())) == "SCB(n_arms=2, rate=1.0) after 1 round"
    )


def play_on(learner, rounds=20):
    """What is asked, as numbers."""
    seen = []
    for t in range(rounds):
        ticket = learner.ask()
        action = ticket.arm if isinstance(learner, SCB) else ticket.act(1, 1)
        seen.append((ticket.id, action))
        tell(learner, ticket, 1.0 + action + t % 3)
    return seen


def test_a_restored_learner_goes_on_as_the_saved_one(make, tmp_path):
    learner = make()
    play_on(learner)
    learner.forget(learner.ask())
    path = tmp_path / "learner.json"
    ticket = learner.ask()
    text = learner.save(path)
    assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]  # and no half-written file
    restored = [type(learner).load(saved) for saved in (text, path, str(path))]
    expected = None
    for one in (learner, *restored):
        assert list(one.outstanding) == [ticket.id]
        tell(one, ticket)  # the old ticket itself, which all of them know
        with pytest.raises(ValueError, match="told or forgotten"):
            tell(one, ticket)
        expected = expected or play_on(one)
        if one is not learner:
            assert play_on(one) == expected
        assert one.clipped == learner.clipped
    assert {one.save() for one in restored} == {learner.save()}


def test_a_ticket_by_its_number(make):
    learner = make()
    ticket = learner.ask()
    restored = type(learner).load(learner.save())
    same = restored.outstanding[ticket.id]
    assert repr(same) == repr(ticket)
    tell(restored, same)
    tell(learner, ticket)
    assert restored.save() == learner.save()


def test_what_cannot_be_loaded(make, tmp_path):
    learner = make()
    learner.ask()
    good = learner.save()
    load, buffer = type(learner).load, buffer_of(good)
    name = learner.spec.name
    for text, words in [
        (json.dumps(json.loads(good) | {"format": "x"}), "it is something else"),
        (json.dumps(json.loads(good) | {"version": 99}), "its version is 99"),
        (json.dumps(json.loads(good) | {"spawned": 1}), "its digest does not fit"),
        (saved.written("AHB", fields_of(good)), "it holds a AHB: use AHB.load"),
        (changed(good, buffer="AAAA"), "buffer"),
        (changed(good, buffer="*"), "its buffer cannot be read"),
        (changed(good, buffer=3), "its buffer is not text"),
        (with_buffer(good, buffer[:0]), "does not fit"),
        (with_buffer(good, np.zeros_like(buffer)), "does not fit its settings"),
        (changed(good, settings={"nonsense": 1}), "it has no"),
        (changed(good, settings=fields_of(good)["settings"] | {"nonsense": 1}), "nonsense"),
        (changed(good, generator={}), "it has no 'state'"),
        (changed(good, generator={"state": "1", "inc": "2"}), "no such state"),
        (changed(good, generator={"state": str(2**128), "inc": "1"}), "no such state"),
        (changed(good, generator={"state": "-1", "inc": "1"}), "cannot be read"),
        (changed(good, asked=0), "issued|not an integer"),
        (changed(good, asked=2**60), "not an integer"),
        (changed(good, spawned=-1), "not an integer"),
    ]:
        with pytest.raises(ValueError, match=f"this is not a saved {name}: .*({words})"):
            load(text)
    for key in fields_of(good):
        with pytest.raises(ValueError, match=f"not a saved {name}: it has no '{key}'"):
            load(changed(good, **{key: None}))
    for text in (good[: len(good) // 2], "{" * 100_000, "[]"):
        path = tmp_path / "damaged.json"
        path.write_text(text)
        with pytest.raises(ValueError, match="not a saved"):
            load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.json")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(ValueError, match="not a regular file"):
            load(path)


def test_a_learner_of_another_size_is_rejected_before_it_is_made(make):
    """Nothing of the size that a file claims is allocated."""
    learner = make()
    settings = fields_of(learner.save())["settings"]
    huge = {"n_arms": 10**9} if "n_arms" in settings else {"layers": [10**9, 10**9]}
    tracemalloc.start()
    with pytest.raises(ValueError, match="does not fit its settings"):
        type(learner).load(changed(learner.save(), settings=settings | huge))
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_what_is_told_is_what_was_kept(make):
    """A ticket in the user's hands may be changed as it likes."""
    learner, twin = make(), make()
    mine, its = learner.ask(), twin.ask()
    for field in ("arm", "probability", "_ask_info", "_pi"):
        if hasattr(mine, field):
            setattr(mine, field, 10**9)
    tell(learner, mine)
    tell(twin, its)
    assert learner.save() == twin.save()


def test_old_tickets_expire(make):
    learner = make()
    if isinstance(learner, SCB):
        tickets = [learner.ask() for _ in range(5)]
        assert learner.expire(older_than=2) == 3
        assert list(learner.outstanding) == [3, 4]
        tell(learner, tickets[3])
        with pytest.raises(ValueError, match="not outstanding"):
            tell(learner, tickets[0])
        assert learner.expire(older_than=0) == 1
    else:
        learner.ask()
        assert learner.expire(1) == 0
        assert learner.expire(0) == 1
    assert not learner.outstanding
    assert learner.expire(0) == 0
    for wrong in (-1, 1.5, None):
        with pytest.raises((TypeError, ValueError), match="older_than"):
            learner.expire(wrong)
    type(learner).load(learner.save()).ask()


def test_saving_over_a_file_replaces_it_as_a_whole(make, tmp_path):
    path = tmp_path / "learner.json"
    learner = make()
    learner.save(path)
    play_on(learner)
    learner.save(path)
    assert type(learner).load(path).save() == learner.save()
    with pytest.raises(FileNotFoundError):
        learner.save(tmp_path / "no such folder" / "learner.json")


def test_a_file_keeps_its_link_and_its_mode(make, tmp_path):
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    learner = make()
    learner.save(target)
    target.chmod(0o640)
    link.symlink_to(target)
    play_on(learner)
    learner.save(link)
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert type(learner).load(target).save() == learner.save()
    learner.save(tmp_path / ("x" * 250))
    assert len(list(tmp_path.iterdir())) == 3


def test_settings_cannot_be_changed_through_their_parts():
    learner = TsallisINF(3, loss_range=(0.0, 1.0))
    learner.settings["loss_range"][0] = 7.0
    assert learner.settings["loss_range"] == [0.0, 1.0]
