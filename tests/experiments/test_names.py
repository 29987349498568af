"""What can be named: everything that the package has, with the settings of its signature."""

from __future__ import annotations

import itertools
import re
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pytest

import unbounded.adversaries.bandits
import unbounded.adversaries.mdps  # noqa: F401
from unbounded import adversaries, bandits, mdps, worlds
from unbounded.experiments import names
from unbounded.experiments.names import FAMILIES, SET_ABOVE, known, nearest
from unbounded.experiments.registered import REQUIRED

PAIRS = [(kind, field) for kind, fields in FAMILIES.items() for field in fields]


def test_every_algorithm_adversary_and_world_is_known() -> None:
    assert set(known("bandits", "learners")) == set(bandits.algorithms())
    assert set(known("MDPs", "learners")) == set(mdps.algorithms())
    assert set(known("bandits", "adversaries")) == set(adversaries.bandits.adversaries())
    assert set(known("MDPs", "adversaries")) == set(adversaries.mdps.adversaries())
    assert set(known("MDPs", "worlds")) >= {"dirichlet", "combination_lock"}
    assert all(hasattr(worlds, name) for name in known("MDPs", "worlds"))


def test_a_name_may_be_that_of_an_adversary_of_either_kind() -> None:
    of_bandits, of_mdps = (known(kind, "adversaries")["Switch"] for kind in FAMILIES)
    assert of_bandits.cls is adversaries.Switch
    assert of_mdps.cls is adversaries.mdps.Switch


def literals(annotation: Any) -> tuple[Any, ...]:
    """What of an annotation is a closed list."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(one for part in get_args(annotation) for one in literals(part))


@pytest.mark.parametrize(("kind", "field"), PAIRS)
def test_closed_lists_are_types(kind: names.Kind, field: names.Field) -> None:
    """An editor, a type checker and the reader of experiments know what the docstring lists."""
    for name, entry in known(kind, field).items():
        for parameter in entry.parameters.values():
            where = name, parameter.name
            listed = re.findall(r'"([^"]*)"', parameter.text) if parameter.text[0] == "{" else ()
            assert literals(parameter.annotation) == parameter.options == tuple(listed), where


@pytest.mark.parametrize(("kind", "field"), PAIRS)
def test_every_entry_says_what_it_is(kind: names.Kind, field: names.Field) -> None:
    for name, entry in known(kind, field).items():
        assert entry.name == name
        assert entry.summary
        for parameter in entry.parameters.values():
            assert parameter.text, (name, parameter.name)
        if field == "learners":
            assert entry.reference == entry.cls.spec.reference
    assert list(known(kind, field)) == sorted(known(kind, field))


def test_what_the_experiment_says_is_not_a_setting() -> None:
    for kind in FAMILIES:
        for name, learner in known(kind, "learners").items():
            # Those for one state; those that rates are tuned for.
            own = {"episodes"} if name in ("RFELP", "CostSCBRL") else set()
            assert set(learner.parameters) & set(SET_ABOVE) == own, name
    assert "n_actions" in known("MDPs", "worlds")["dirichlet"].parameters


def test_parameters_are_read_off_signature_and_docstring() -> None:
    scb = known("bandits", "learners")["SCB"]
    clip = scb.parameters["clip"]
    assert (clip.default, clip.options, clip.depth) == (None, ("range", "scale", "none"), 0)
    assert scb.parameters["profile"].options == ("practical", "paper")
    assert "Multiplies the paper's learning rate" in scb.parameters["rate"].description
    assert scb.parameters["rate"].annotation == (float | None)
    assert scb.defaults["profile"] == "practical"
    tsallis = known("bandits", "learners")["TsallisINF"]
    assert tsallis.parameters["loss_range"].depth == 1
    replay = known("bandits", "adversaries")["Replay"]
    assert replay.parameters["losses"].depth == 2
    program = known("bandits", "adversaries")["Program"]
    assert program.parameters["phases"].default is REQUIRED
    assert "phases" not in program.defaults
    assert known("MDPs", "worlds")["dirichlet"].parameters["sizes"].depth == 1


def test_an_mdp_is_that_of_its_seed() -> None:
    settings = {"sizes": [2, 3], "n_actions": 2}
    for seed in (0, 5):
        expected = worlds.dirichlet([2, 3], 2, np.random.default_rng(seed)).P
        assert np.array_equal(names.world("dirichlet", {**settings, "seed": seed}).P, expected)
    first = names.world("dirichlet", settings).P
    assert np.array_equal(first, names.world("dirichlet", {**settings, "seed": 0}).P)
    assert not np.array_equal(first, names.world("dirichlet", {**settings, "seed": 5}).P)


def test_a_learner_is_told_what_the_experiment_says() -> None:
    mdp = names.world("combination_lock", {"horizon": 3, "n_actions": 2, "seed": 1})
    for name, settings in (
        ("OREPS", {}),
        ("SCBRL", {"explorer": "oracle"}),
        ("SCBRL", {"explorer": "mvp"}),
        ("UOBREPS", {"loss_range": [0.0, 1.0]}),
    ):
        learner = names.mdp_learner(name, settings, mdp, 100)
        assert learner.settings["layers"] == [1, 2, 2]
        assert learner.settings["n_actions"] == 2
        assert learner.settings["episodes"] == 100
        told = learner.settings.get("known", learner.settings).get("transitions")
        knows = name == "OREPS" or settings.get("explorer") == "oracle"
        assert (told is not None) == knows, (name, settings)
        if knows:
            assert np.array_equal(told, mdp.P)
    explorer = names.mdp_learner("RFELP", {"episodes": 7}, mdp, 100)
    assert explorer.settings["episodes"] == 7
    assert names.mdp_learner("CostSCBRL", {}, mdp, 100).made_for is None
    assert names.mdp_learner("CostSCBRL", {"episodes": 100}, mdp, 100).made_for == 100


def test_arguments_are_checked_without_a_start() -> None:
    mdp = names.world("combination_lock", {"horizon": 3, "n_actions": 2})
    learner = names.mdp_learner("SCBRL", {}, mdp, 100, start=False)
    assert learner.spec.name == "SCBRL"
    with pytest.raises(ValueError, match="episodes must exceed the 5 states"):
        names.mdp_learner("SCBRL", {}, mdp, 5, start=False)


def test_the_true_range_is_filled_in() -> None:
    assert names.without_true({"loss_range": "true"}) == {"loss_range": (0.0, 1.0)}
    assert names.without_true({"loss_range": "true"}, [(0, 2)]) == {"loss_range": [(0, 2)]}
    assert names.without_true({"loss_range": (1.0, 2.0)}) == {"loss_range": (1.0, 2.0)}


def test_titles_tell_families_apart() -> None:
    titles = list(itertools.starmap(names.title, PAIRS))
    assert titles == [
        "learners", "adversaries", "learners for MDPs", "adversaries for MDPs", "worlds",
    ]  # fmt: skip


def test_nearest() -> None:
    assert nearest("SBC", ["SCB", "AHB"]) == "the nearest valid one is 'SCB' (valid: SCB, AHB)"
    assert nearest("scb", ["AHB", "SCB"]).startswith("the nearest valid one is 'SCB'")
    assert nearest(None, ["SCB"]) == "(valid: SCB)"
    assert nearest("x", []) == "it has no settings"


def test_settings_that_are_documented_elsewhere_are_explained_here() -> None:
    for kind, fields in names.FAMILIES.items():
        for field in fields:
            for entry in names.known(kind, field).ours.values():
                for parameter in entry.parameters.values():
                    assert "see `" not in parameter.text, f"{entry.name}.{parameter.name}"
