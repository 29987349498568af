"""Cells: every combination once, under a key that has all that results depend on."""

from __future__ import annotations

import pytest

pytest.importorskip("msgspec")

import experiment_helpers as helpers
from experiment_helpers import MDP, TEXT
from unbounded.experiments import config, grid, names, task


def test_lists_span_a_grid() -> None:
    e = config.loads(TEXT)
    assert e.arms == (3, 5)
    assert e.learners[0].settings == {"clip": ("scale", "range"), "rate": (2.0,)}
    assert e.learners[1].settings == {"loss_range": ((0.0, 1.0), (-1.0, 1.0))}
    cells = grid.cells(e)
    assert len(cells) == 2 * 2 * (2 + 2) * 2
    assert len({cell.key for cell in cells}) == len(cells)
    assert cells[0].learner_settings == (
        '{"ablation":false,"clip":"scale","mixing":null,"profile":"practical","rate":2.0,'
        '"threshold":"lazy"}'
    )


def test_equal_settings_have_equal_keys_however_they_are_written() -> None:
    def keys(rate: str) -> list[str]:
        return [cell.key for cell in grid.cells(config.loads(TEXT.replace("rate = 2", rate)))]

    assert keys("rate = 1") == keys("rate = 1.0") == keys("rate = [1.0, 1.0]")
    assert keys('threshold = "lazy"') == keys("")
    assert keys("rate = 1") != keys("rate = 2")


@pytest.mark.parametrize(
    ("key", "value"),
    [("seed", 5), ("checkpoints", 3), ("pseudo_regret", False)],
)
def test_everything_that_results_depend_on_is_in_the_key(key: str, value: object) -> None:
    document = config.to_dict(config.loads(TEXT))
    before = {cell.key for cell in grid.cells(config.experiment(document))}
    after = {cell.key for cell in grid.cells(config.experiment(document | {key: value}))}
    assert not before & after


def test_replicates_are_not_in_the_key() -> None:
    document = config.to_dict(config.loads(TEXT))
    more = config.experiment(document | {"replicates": 40})
    assert grid.cells(more) == grid.cells(config.experiment(document))


def test_mdps_span_a_grid() -> None:
    e = config.loads(MDP)
    cells = grid.cells(e)
    assert len({cell.key for cell in cells}) == len(cells) == 2 * 2 * (2 + 1) * 2
    assert cells[0].world_settings == '{"concentration":1.0,"n_actions":2,"seed":0,"sizes":[2,3]}'
    assert cells[0].label.endswith("dirichlet(sizes=[2, 3], n_actions=2, seed=0) · T=100")
    again = config.loads(config.dumps(e))
    assert again == e
    assert grid.cells(again) == cells


def test_the_key_has_the_world_and_its_code() -> None:
    keys = {c.key for c in grid.cells(config.experiment(helpers.WORLDS))}
    other = helpers.WORLDS | {"worlds": [{**helpers.LOCK, "seed": 73}]}
    assert not keys & {c.key for c in grid.cells(config.experiment(other))}
    same = helpers.WORLDS | {"worlds": [{**helpers.LOCK, "slip": 0.0}]}
    assert {c.key for c in grid.cells(config.experiment(same))} < keys
    [settings, *_] = [c.settings for c in grid.cells(config.experiment(helpers.WORLDS))]
    versions = {
        task.code_version(settings._replace(learner=name, adversary="Hide"))
        for name in ("SCBRL", "RFELP")
    }
    assert len(versions) == 2


def test_a_cell_knows_the_size_of_its_world() -> None:
    cells = grid.cells(config.experiment(helpers.WORLDS))
    for cell in cells:
        layers = names.world(cell.settings.world, cell.settings.world_settings).layers
        assert (cell.states, cell.actions) == (sum(layers.sizes), layers.n_actions)
        assert cell.horizon == len(layers.sizes)
    assert {(cell.states, cell.actions, cell.horizon) for cell in cells} == {(5, 2, 3), (5, 2, 2)}
    bandit = grid.cells(config.loads(TEXT))[0]
    assert (bandit.states, bandit.actions, bandit.horizon) == (None, None, None)


def test_an_mdp_is_built_once_for_all_its_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    e = config.experiment(helpers.WORLDS)
    built = []
    world = names.world

    def counted(name: str, settings: object) -> object:
        built.append(name)
        return world(name, settings)

    monkeypatch.setattr(names, "world", counted)
    assert len(grid.cells(e)) > 10
    assert built == ["combination_lock", "dirichlet"]


def test_cells_are_in_the_order_of_the_file() -> None:
    cells = grid.cells(config.loads(TEXT))
    assert [cell.settings.rounds for cell in cells[:4]] == [100, 200, 100, 200]
    assert [cell.settings.arms for cell in cells[:4]] == [3, 3, 5, 5]
    assert [cell.settings.learner for cell in cells[::4]] == [
        "SCB", "SCB", "TsallisINF", "TsallisINF"] * 2  # fmt: skip
    scales = [cell.settings.adversary_settings["scale"] for cell in cells]
    assert scales == [1e-9] * 16 + [1e9] * 16


def test_what_rows_say_of_their_cell() -> None:
    cell = grid.cells(config.loads(MDP))[0]
    columns = cell.columns
    assert (columns["learner"], columns["adversary"]) == ("SCBRL", "Stochastic")
    assert (columns["world"], columns["states"]) == ("dirichlet", 5)
    assert (columns["arms"], columns["rounds"], columns["seed"]) == (None, 100, 0)
    assert columns["world_settings"] == cell.world_settings


def test_long_values_are_cut_in_labels() -> None:
    text = TEXT.replace("StochasticGap", "Replay").replace("  5,\n", "")
    rows = [[0.5, 0.25, 0.125]] * 4
    text = text.replace("scale = [1e-9, 1e9]", f"losses = {rows}")
    label = grid.cells(config.loads(text))[0].label
    assert label.endswith(" · Replay(losses=[[0.5, 0.25, 0.125], ...) · n=3 · T=100")
