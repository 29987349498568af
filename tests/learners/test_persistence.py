"""A learner as a document: what is read is checked, index by index."""

import base64

import numpy as np
import pytest

from bandit_examples import EXAMPLES
from mdp_play import tell_firsts
from saved_helpers import buffer_of, changed, fields_of, with_buffer
from tiers import tiered
from unbounded import (
    RFELP,
    SCB,
    SCBIX,
    SCBRL,
    UCB1,
    UMABG,
    UOBREPS,
    AdaINF,
    MDPLearner,
    TsallisINF,
    settings,
)
from unbounded.core.occupancy.layout import Layers
from unbounded.core.simplex.lazy import ALIAS, BETA, CUT, ETA_S, LOSS, MOMENTS, RECORD, WEIGHT
from unbounded.core.simplex.signed_picture import COUNT, GAP, LIST
from unbounded.learners import persistence as saved
from unbounded.learners.persistence import from_json, to_json


def played(learner, rounds=40):
    for t in range(rounds):
        if isinstance(learner, MDPLearner):
            tell_firsts(learner, [1.0 + t % 3, -2.0])
        else:
            choice = learner.ask()
            learner.tell(choice, 1.0 + choice.arm % 5 + t % 3)
    return learner


def damaged(learner, field, index, value):
    """The save of a learner with one number changed."""
    packing, text = learner.spec.packing, learner.save()
    buffer = buffer_of(text)
    if index is None:
        buffer[packing.slot(field)] = value
    else:
        begin = packing._vectors[f"state.{field}"]
        buffer[int(buffer[begin]) + index] = value
    return with_buffer(text, buffer)


def ada_inf():
    return AdaINF(130, seed=0)


def rf_elp():
    return RFELP([2, 2], 2, episodes=30, seed=0)


def scb_rl():
    return SCBRL([2, 2], 2, episodes=3000, seed=0)


def uob_reps():
    return UOBREPS([2, 2], 2, episodes=100, loss_range=(-2, 3), seed=0)


@pytest.mark.parametrize(
    ("make", "field", "index", "values"),
    [
        (lambda: SCB(70, seed=0), "arms.table", RECORD * 3 + ALIAS, [-1.0, 70.0, 1e9, 0.5, 1e300]),
        (lambda: SCB(70, seed=0), "arms.table", RECORD * 3 + CUT, [-0.1, 1.1, 0.123]),
        (lambda: SCB(70, seed=0), "arms.table", RECORD * 3 + WEIGHT, [0.0, 2.0, 1e-300]),
        (lambda: SCB(70, seed=0), "arms.table", RECORD * 3 + LOSS, [-1e9, 1e9]),
        (lambda: SCB(70, seed=0), "arms.picture", MOMENTS, [0.0, 1e3]),
        (lambda: SCB(70, seed=0), "arms.picture", BETA, [-1.0, 2.0]),
        (lambda: SCB(70, seed=0), "arms.picture", ETA_S, [-1.0, 0.0, 1e3]),
        (lambda: SCBIX(30, seed=0), "arms.table", RECORD * 3 + ALIAS, [30.0, -1.0]),
        (lambda: SCBIX(30, seed=0), "arms.picture", MOMENTS + 1, [-1.0, 1e3]),
        (ada_inf, "arms.tree", 133, [0.0, 0.5, 1e9, 1e300]),
        (ada_inf, "arms.tree", 263, [-1e3, 1e3]),
        (ada_inf, "arms.M", 5, [-1e9, 1e9]),
        (ada_inf, "arms.picture", COUNT, [-1.0, 0.5, 66.0, 1e9]),
        (ada_inf, "arms.picture", LIST, [-1.0, 130.0, 0.5, 1e9]),
        (ada_inf, "arms.picture", GAP, [-1.0, 0.0, 1e300]),
        (lambda: SCB(5, seed=0), "arms.law.q", 2, [-0.1, 0.9]),
        (lambda: SCB(5, seed=0), "arms.anchor.x", None, [1e3]),
        (lambda: TsallisINF(60, loss_range=(0, 9), seed=0), "arms.law.lane_sums", 1, [0.5]),
        (lambda: UCB1(4, loss_range=(0, 9)), "best", None, [4.0, -1.0, 1e9]),
        (lambda: UCB1(4, loss_range=(0, 9)), "plays", 1, [-1.0, 1e9]),
        (lambda: UMABG(4, seed=0), "top", None, [4.0, -1.0]),
        (rf_elp, "progress.current", None, [-1.0, 10.0, 1e9]),
        (rf_elp, "progress.target", None, [-1.0, 5.0, 1e9]),
        (rf_elp, "progress.size", None, [0.0, 31.0, 1e9]),
        (rf_elp, "library.size", None, [0.0, 31.0, 1e9]),
        (rf_elp, "library.target", 0, [-1.0, 4.0, 0.5]),
        (rf_elp, "library.choice", 1, [-1.0, 2.0]),
        (rf_elp, "model.choice", 1, [-1.0, 2.0, 0.5]),
        (scb_rl, "search.progress.current", None, [-1.0, 10.0, 1e9]),
        (scb_rl, "search.progress.target", None, [-1.0, 5.0, 1e9]),
        (scb_rl, "play.estimates.unit", None, [1e6, -1e6]),
        (scb_rl, "play.boxes.hi", 0, [-0.5, 1.5]),
        (scb_rl, "windows.W", 0, [0.3, 1.5]),
        (uob_reps, "ln_q", 1, [1e9, 0.1, -1e9]),
        (uob_reps, "ln_P", 1, [1e9, 0.1, -1e9]),
    ],
)
def test_impossible_numbers_are_rejected(make, field, index, values):
    learner = played(make())
    type(learner).load(learner.save())  # the control
    for value in values:
        with pytest.raises(ValueError, match=f"this is not a saved {learner.spec.name}"):
            type(learner).load(damaged(learner, field, index, value))


def test_sums_that_all_grew_too_far_are_rejected():
    learner = played(SCB(30, seed=0))
    text = learner.save()
    packing, buffer = learner.spec.packing, buffer_of(text)
    begin = packing._vectors["state.arms.L"]
    buffer[int(buffer[begin]) : int(buffer[begin + 1])] = 1e200
    buffer[packing.slot("arms.anchor.S2")] = 0.0
    with pytest.raises(ValueError, match="nothing was learned yet"):
        SCB.load(with_buffer(text, buffer))


@pytest.mark.parametrize("example", tiered(EXAMPLES))
def test_one_arm_played_for_long_is_saved(example):
    """There is nothing to learn, and what is not solved for must not be refused either."""
    losses = np.random.default_rng(0).random((1000, 1))
    learner = example.make(1)
    example.play(learner, losses)
    copy = type(learner).load(learner.save())
    assert example.play(copy, losses)[0] == example.play(learner, losses)[0]


def test_a_buffer_survives():
    words = np.random.default_rng(0).integers(2**64, size=1000, dtype=np.uint64)
    assert np.array_equal(
        saved.decoded(saved.encoded(words.view(np.float64))).view(np.uint64), words
    )


def long_buffer():
    """Zeros, and 1,000 numbers that nothing can be made shorter of."""
    buffer = np.zeros(8000)
    buffer[::8] = np.random.default_rng(0).integers(2**64, size=1000, dtype=np.uint64).view(float)
    return buffer


def test_a_long_buffer_survives_and_is_short():
    buffer = long_buffer()
    kept = saved.encoded(buffer)
    assert np.array_equal(saved.decoded(kept).view(np.uint64), buffer.view(np.uint64))
    assert len(kept["zlib"]) < 8 * buffer.size / 4
    assert isinstance(saved.encoded(buffer[:1000]), str)  # what is short is as it was


def test_a_long_buffer_of_before_is_read():
    buffer = long_buffer()
    plain = base64.b64encode(buffer.tobytes()).decode()
    assert np.array_equal(saved.decoded(plain).view(np.uint64), buffer.view(np.uint64))


@pytest.mark.parametrize(
    "damage",
    [
        lambda kept: kept | {"bytes": kept["bytes"] + 8},
        lambda kept: kept | {"bytes": kept["bytes"] - 8},
        lambda kept: kept | {"bytes": -1},
        lambda kept: kept | {"bytes": 2**60},
        lambda kept: kept | {"bytes": float(kept["bytes"])},
        lambda kept: kept | {"zlib": kept["zlib"][:-8]},
        lambda kept: kept | {"zlib": kept["zlib"][:-2] + "AA"},
        lambda kept: kept | {"zlib": kept["zlib"][:400] + "AAAA" + kept["zlib"][404:]},
        lambda kept: kept | {"zlib": base64.b64encode(bytes(8000)).decode()},
        lambda kept: kept | {"zlib": "no base64!"},
        lambda kept: {
            "zlib": base64.b64encode(base64.b64decode(kept["zlib"]) + b"more").decode(),
            "bytes": kept["bytes"],
        },
    ],
)
def test_what_is_compressed_is_not_trusted(damage):
    kept = saved.encoded(long_buffer())
    saved.decoded(kept)  # the control
    with pytest.raises(ValueError, match="its buffer cannot be read"):
        saved.decoded(damage(kept))


def test_a_large_mdp_is_saved_small(monkeypatch):
    """402 states made 26 MB; here are 101, and a support, which has an entry for each triple."""
    monkeypatch.setattr(settings, "jit", "never")
    sizes, n_actions = [1, 50, 50], 5
    support = np.random.default_rng(0).random(Layers(sizes, n_actions).n_transitions) < 0.5
    support[0] = True
    learner = SCBRL(sizes, n_actions, episodes=250, known={"support": support}, seed=0)
    for _ in range(2):
        tell_firsts(learner, [3.0, -2.0, 1e9])
    learner.ask()
    text = learner.save()
    fields = fields_of(text)
    assert len(text) < 64_000
    assert saved.lengthened(fields["settings"])["known"]["support"] == support.tolist()
    # As it was kept before, it is read as well, and is 20 times as long at least.
    plain = base64.b64encode(buffer_of(text).tobytes()).decode()
    before = changed(text, settings=saved.lengthened(fields["settings"]), buffer=plain)
    assert len(before) > 20 * len(text)
    copies = [SCBRL.load(text), SCBRL.load(before)]
    for copy in copies:
        assert np.array_equal(copy._buffer, SCBRL.load(text)._buffer)
    for player in (learner, *copies):
        player.forget(*player.outstanding.values())
        tell_firsts(player, [3.0, -2.0, 0.5])
    assert copies[0].save() == copies[1].save() == learner.save()
    for wrong in (b"[1]", b"{", b'{"layers": 1}'):
        with pytest.raises(ValueError, match="this is not a saved SCBRL"):
            SCBRL.load(changed(text, settings=saved._compressed(wrong)))


def test_values_of_python_learners_come_back_as_they_were():
    value = {"L": np.array([1, 2]), "window": (0.5, None), "k": np.float32(0.1)}
    found = from_json(to_json(value, "state"))
    assert found["window"] == (0.5, None)
    assert (found["L"].tolist(), found["L"].dtype) == ([1, 2], value["L"].dtype)
    assert type(found["k"]) is np.float32
    assert found["k"] == value["k"]
    with pytest.raises(TypeError, match=r"state\['seen'\] is of type set"):
        to_json({"seen": {1, 2}}, "state")
