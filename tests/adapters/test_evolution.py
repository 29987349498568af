"""Adapters for evolutionary search, on recorded interfaces; `tests/evolution.py` runs the rest."""

import itertools
import random
from collections import Counter, deque

import golem
import numpy as np
import pytest
import shinka

from evolution_stub import ExperienceBuffer
from unbounded import SCB, AdaHedge
from unbounded.adapters.golem import ScaleFreeAgent
from unbounded.adapters.shinka import ScaleFreeModels

pytestmark = pytest.mark.skipif(
    hasattr(shinka, "__file__") or hasattr(golem, "__file__"), reason="these are the libraries"
)
MODELS = ["small", "large", "odd"]


def evolved(unit=1.0, rounds=300, late=4, between=None, **given):
    """Play as ShinkaEvolve's runner does: reports come late, and not of all."""
    models, rng = ScaleFreeModels(MODELS, **{"seed": 1} | given), random.Random(2)
    models.set_baseline_score(unit)
    chosen, running = [], deque()
    for t in range(rounds):
        one_hot, q = models.select_llm()
        assert one_hot.sum() == 1.0
        assert q.sum() == pytest.approx(1.0)
        chosen.append(MODELS[int(one_hot.argmax())])
        models.update_submitted(chosen[-1])
        if rng.random() < 0.8:  # else there is no program
            running.append(chosen[-1])
        while len(running) > late:
            name = running.popleft()
            gain = rng.expovariate(1.0) * {"small": 0.2, "large": 1.0, "odd": 0.5}[name]
            score = None if rng.random() < 0.1 else unit * (4.0 + gain)
            models.update(arm=name, reward=score, baseline=unit * 4.0)
            models.update_cost(arm=name, cost=0.01)
        if between is not None and t == rounds // 2:
            models = between(models)
    return models, chosen


def test_models_that_gain_more_are_selected_in_any_unit():
    models, chosen = evolved()
    counts = Counter(chosen[-150:])
    assert counts["large"] > counts["odd"] > counts["small"] / 2
    assert counts["large"] > 75
    assert models.learner.rounds > 200
    other, same = evolved(2.0**500)
    assert same == chosen
    assert other.learner.scale == models.learner.scale * 2.0**500
    assert evolved(seed=2)[1] != chosen  # the control


def test_a_gain_is_above_the_parent_and_the_first_program():
    models = ScaleFreeModels(MODELS, SCB, settings={}, seed=0)
    models.set_baseline_score(10.0)
    waiting = iter(np.argmax([models.select_llm()[0] for _ in range(6)], axis=1).tolist())
    assert models.update(next(waiting), 13.0, 12.0) == (1.0, 12.0)
    assert models.update(next(waiting), 13.0, 2.0) == (3.0, 10.0)
    assert models.update(next(waiting), 9.0) == (0.0, 10.0)
    assert models.update(next(waiting), None, 12.0) == (0.0, 12.0)
    assert models.update(next(waiting), 1.7e308, -1.7e308)[0] == 1.7e308
    rounds = models.learner.rounds
    for wrong in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="must be finite"):
            models.update(0, wrong, 1.0)
        with pytest.raises(ValueError, match="must be finite"):
            models.update(0, 1.0, wrong)
    with pytest.raises(ValueError, match="unknown arm"):
        models.update("none", 1.0, 1.0)
    assert models.learner.rounds == rounds == 5
    models.update(next(waiting), 11.0)
    models.update(0, 11.0)  # nobody waits for it
    assert models.learner.rounds == 6


def test_a_run_that_is_resumed_goes_on_as_if_it_had_not_stopped(tmp_path, capsys):
    def resumed(models):
        models.save_state(tmp_path / "state")
        again = ScaleFreeModels(MODELS)
        again.set_baseline_score(1.0)
        again.load_state(tmp_path / "state")
        return again

    models, chosen = evolved(between=resumed)
    assert chosen == evolved()[1]
    models.print_summary()
    assert "large (" in capsys.readouterr().out
    more = ScaleFreeModels(["large", "new", "small"])
    more.load_state(tmp_path / "state")
    old = dict(zip(MODELS, resumed(models).posterior(), strict=True))
    q = more.posterior()
    assert q[0] > q[2]
    assert old["large"] > old["small"]
    assert more.learner.n_arms == 3
    with pytest.raises(ValueError, match="AdaHedge"):
        ScaleFreeModels(MODELS, AdaHedge, settings={})


def test_some_models_only():
    models = ScaleFreeModels(MODELS, seed=0)
    for _ in range(20):
        one_hot, q = models.select_llm(subset=["small", "odd"])
        assert q[1] == one_hot[1] == 0.0
    assert models.posterior(["large"]).tolist() == [0.0, 1.0, 0.0]


def grow():
    """A mutation."""


ACTIONS = [grow, "shrink", "swap"]


def bred(unit=1.0, generations=40, seed=1, **given):
    """Play as GOLEM's optimizer does: some mutations are not applied, or give nothing valid."""
    agent, rng = ScaleFreeAgent(ACTIONS, seed=seed, **given), random.Random(3)
    buffer, chosen = ExperienceBuffer(), []
    for _ in range(generations):
        for _ in range(10):
            action = agent.choose_action(None)
            chosen.append(action)
            if rng.random() < 0.8:
                gain = rng.gauss({grow: 0.3, "shrink": 0.0, "swap": 0.1}[action], 0.1)
                buffer.collect_experience(None, action, gain * unit)
        agent.partial_fit(buffer)
    return agent, chosen


def test_mutations_that_help_are_chosen_in_any_unit():
    agent, chosen = bred()
    assert Counter(chosen[-100:])[grow] > 60
    assert 250 < agent.learner.rounds < len(chosen) == 400
    assert not agent.learner.outstanding
    assert bred(2.0**300)[1] == chosen
    assert bred(seed=2)[1] != chosen  # the control
    assert agent.get_action_probs(None) == agent.get_action_values(None)
    assert sum(agent.get_action_probs()) == pytest.approx(1.0)


def test_what_an_agent_rejects_or_leaves_out():
    agent = ScaleFreeAgent(ACTIONS, seed=0)
    buffer = ExperienceBuffer()
    for _ in range(3):
        buffer.collect_experience(None, agent.choose_action(None), float("nan"))
    agent.partial_fit(buffer)
    assert agent.learner.rounds == 0
    assert not agent.learner.outstanding
    with pytest.raises(ValueError, match="window_size is 5"):
        agent.partial_fit(ExperienceBuffer(window_size=5))
    with pytest.raises(ValueError, match="names of their own"):
        ScaleFreeAgent([grow, "grow"])


def test_nodes_are_chosen_all_alike():
    agent, graph = ScaleFreeAgent(ACTIONS, seed=0), type("Graph", (), {"nodes": list("abc")})()
    random.seed(0)
    found = Counter(agent.choose_nodes(graph) for _ in range(300))
    assert min(found.values()) > 60
    assert {len(set(agent.choose_nodes(graph, 2))) for _ in itertools.repeat(None, 20)} == {2}
