"""Run the adapters for evolutionary search under the other library's own runner.

    python tests/evolution.py           # in environments of their own: .venv/shinka, .venv/golem
    python tests/evolution.py --shinka  # in this environment
    python tests/evolution.py --golem

ShinkaEvolve evolves a number with stub models, which gain more or less; nothing goes over a
network. GOLEM looks for the formula of a curve. GOLEM 0.5 needs NumPy 1 below Python 3.13, so that
its environment needs 3.13. Each check has a control that must fail.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from typing import Any

import numpy as np

from environments import run_in
from interpreters import interpreters

UNIT = "UNBOUNDED_TEST_UNIT"
MODELS = {
    f"local/{name}@http://localhost:9": gain
    for name, gain in (("large", 3.0), ("small", 0.5), ("odd", 1.0))
}
ODD = 0.2  # of the answers of "odd" have no program
FIRST = "# EVOLVE-BLOCK-START\nVALUE = 1.0\n# EVOLVE-BLOCK-END\n"
EVALUATE = f"""
import argparse, json, os, re
parser = argparse.ArgumentParser()
parser.add_argument("--program_path"), parser.add_argument("--results_dir")
given = parser.parse_args()
value = float(re.search("VALUE = (.*)", open(given.program_path).read())[1])
os.makedirs(given.results_dir, exist_ok=True)
metrics = dict(combined_score=value * float(os.environ["{UNIT}"]), public=dict(), private=dict())
json.dump(metrics, open(given.results_dir + "/metrics.json", "w"))
json.dump(dict(correct=value == value, error=None), open(given.results_dir + "/correct.json", "w"))
"""


def evolved(unit: float, generations: int = 30, selection: Any = None, seed: int = 1) -> Any:
    """Return the selector after a run, the models that it chose, and the best score."""
    from shinka.core import EvolutionConfig, ShinkaEvolveRunner
    from shinka.database import DatabaseConfig
    from shinka.launch import LocalJobConfig
    from shinka.llm.providers.result import QueryResult

    from unbounded.adapters.shinka import ScaleFreeModels

    os.environ[UNIT], os.environ["OPENAI_API_KEY"] = repr(unit), "none"
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the library draws from it
    chance = random.Random(seed)
    chosen: list[str] = []
    selection = selection or ScaleFreeModels(list(MODELS), seed=seed)

    async def query(msg: str, system_msg: str, **given: Any) -> QueryResult:
        name = list(MODELS)[int(np.argmax(given["model_sample_probs"]))]
        chosen.append(name)
        value = float(re.findall(r"VALUE = (\S+)", msg)[-1])
        value += MODELS[name] * chance.choice([0.0, 1.0, 2.0]) - 0.5
        text = FIRST.replace("1.0", repr(value))
        code = f"<NAME>n</NAME><DESCRIPTION>d</DESCRIPTION><CODE>\n```python\n{text}```\n</CODE>"
        content = "no" if "odd" in name and chance.random() < ODD else code
        return QueryResult(content, msg, system_msg, [], name, {}, 1, 1, cost=0.0)

    with tempfile.TemporaryDirectory() as folder:
        runner = ShinkaEvolveRunner(
            EvolutionConfig(
                num_generations=generations, llm_models=list(MODELS), patch_types=["full"],
                patch_type_probs=[1.0], llm_dynamic_selection=selection, embedding_model=None,
                meta_rec_interval=None, results_dir=folder, max_patch_resamples=1,
                max_novelty_attempts=1,
            ),
            LocalJobConfig(eval_program_path=f"{folder}/evaluate.py"),
            DatabaseConfig(num_islands=1, parent_selection_strategy="power_law"),
            max_evaluation_jobs=1, max_proposal_jobs=1, verbose=False, banner_style="minimal",
            init_program_str=FIRST, evaluate_str=EVALUATE,
        )  # fmt: skip
        runner.llm.query = query
        with contextlib.redirect_stdout(io.StringIO()):
            asyncio.run(runner.run_async())
        best = runner.db.get_best_program().combined_score
        again = ScaleFreeModels(list(MODELS))
        if isinstance(selection, ScaleFreeModels):
            again.load_state(f"{folder}/bandit_state.pkl")
            assert again.learner.rounds == selection.learner.rounds
    return selection, chosen, best


def shinka() -> None:
    from shinka.llm import AsymmetricUCB

    start = time.monotonic()
    selection, chosen, best = evolved(1.0)
    told = selection.learner.rounds
    counts = Counter(chosen)
    assert told >= 0.6 * len(chosen), (told, counts)
    waiting = sum(selection.update_submitted(k) for k in range(3))
    print(
        f"  {dict(counts)}; {told} scores learned, {waiting:g} proposals without; best {best:.4g}"
    )
    for unit in (2.0**-30, 2.0**40):
        other, same, scaled = evolved(unit)
        assert same == chosen, (unit, same, chosen)
        assert scaled == best * unit
        assert other.learner.scale == selection.learner.scale * unit
    _, different, _ = evolved(1.0, seed=2)
    assert different != chosen  # the control
    theirs = {
        unit: evolved(unit, selection=AsymmetricUCB(arm_names=list(MODELS), seed=1))[1]
        for unit in (1.0, 2.0**-10)
    }
    print(f"  the same in units 2^-30 and 2^40; theirs: {theirs[1.0] == theirs[2.0**-10]}")
    print(f"  {time.monotonic() - start:.0f} s")


UNITS = 2.0**20, 2.0**40, 2.0**60  # GOLEM rounds a fitness to eight decimals
LEAVES, FUNCTIONS = ("x", "one"), ("add", "mul", "sin")
X = np.linspace(-2.0, 2.0, 40)
CURVE = X * np.sin(X) + X + 1.0


def value(node: Any, known: dict[int, Any]) -> Any:
    """Return what a formula is at X: a graph, whose parts may be shared."""
    if id(node) not in known:
        found = [value(child, known) for child in node.nodes_from]
        name = node.content["name"]
        if not found:
            known[id(node)] = np.ones_like(X) if name == "one" else X
        elif name == "mul":
            known[id(node)] = np.prod(found, axis=0)
        else:
            total = np.sum(found, axis=0)
            known[id(node)] = np.sin(total) if name == "sin" else total
    return known[id(node)]


def optimized(unit: float, agent: Any, seed: int = 1, generations: int = 15) -> tuple[Any, float]:
    """Return the actions of a run of GOLEM's optimizer, and the best error in unit 1."""
    from golem.core.dag.verification_rules import DEFAULT_DAG_RULES
    from golem.core.optimisers.genetic.gp_optimizer import EvoGraphOptimizer
    from golem.core.optimisers.genetic.gp_params import GPAlgorithmParameters
    from golem.core.optimisers.genetic.operators.crossover import CrossoverTypesEnum
    from golem.core.optimisers.graph import OptGraph, OptNode
    from golem.core.optimisers.objective import Objective, ObjectiveEvaluate
    from golem.core.optimisers.optimization_parameters import GraphRequirements
    from golem.core.optimisers.optimizer import GraphGenerationParams

    def error(graph: Any) -> float:
        with np.errstate(all="ignore"):
            found = float(np.mean((value(graph.root_node, {}) - CURVE) ** 2))
        return unit * min(found, 1e30) if found == found else unit * 1e30

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the library draws from it
    first = [OptGraph(OptNode("add", [OptNode("x"), OptNode("one")]))]
    objective = Objective({"error": error})
    parameters = GPAlgorithmParameters(
        pop_size=20, max_pop_size=20, adaptive_mutation_type=agent, mutation_types=mutations(),
        crossover_types=[CrossoverTypesEnum.none],
    )  # fmt: skip
    optimizer = EvoGraphOptimizer(
        objective, first,
        GraphRequirements(num_of_generations=generations, timeout=None, n_jobs=1, max_depth=6,
                          show_progress=False, early_stopping_iterations=None,
                          early_stopping_timeout=None, keep_history=False),
        GraphGenerationParams(rules_for_constraint=DEFAULT_DAG_RULES,
                              available_node_types=[*LEAVES, *FUNCTIONS]),
        parameters,
    )  # fmt: skip
    used, choose = [], optimizer.mutation.agent.choose_action

    def noted(obs: Any) -> Any:
        used.append(choose(obs))
        return used[-1]

    optimizer.mutation.agent.choose_action = noted
    best = optimizer.optimise(ObjectiveEvaluate(objective))[0]
    return used, error(best) / unit


def mutations() -> list[Any]:
    from golem.core.optimisers.genetic.operators.base_mutations import MutationTypesEnum as Kind

    return [Kind.single_add, Kind.single_change, Kind.single_drop, Kind.single_edge, Kind.growth]


def golem() -> None:
    from golem.core.log import Log
    from golem.core.optimisers.adaptive.operator_agent import MutationAgentTypeEnum

    from unbounded.adapters.golem import ScaleFreeAgent

    def agent(seed: int = 1) -> Any:
        return ScaleFreeAgent(mutations(), seed=seed, enable_logging=False)

    Log().reset_logging_level(50)
    gc.collect()
    gc.freeze()  # GOLEM collects garbage at each evaluation
    start, ours = time.monotonic(), agent()
    used, best = optimized(UNITS[0], ours)
    told = ours.learner.rounds
    counts = Counter(str(one) for one in used)
    print(f"  {len(used)} mutations, {told} learned: {dict(counts)}")
    assert 50 < told <= len(used)
    assert not ours.learner.outstanding
    for unit in UNITS[1:]:
        assert optimized(unit, agent()) == (used, best), unit
    assert optimized(UNITS[0], agent(2), seed=2)[0] != used  # the control
    errors = {}
    for name in ("ours", "random", "bandit"):
        found = []
        for seed in range(10):
            given = agent(seed) if name == "ours" else MutationAgentTypeEnum(name)
            found.append(optimized(1.0, given, seed=seed)[1])
        errors[name] = float(np.median(found))
    print(f"  the same in units 2^20, 2^40 and 2^60; median error of ten runs: {errors}")
    print(f"  {time.monotonic() - start:.0f} s")


def main() -> None:
    for name, check in (("shinka", shinka), ("golem", golem)):
        if f"--{name}" in sys.argv:
            print(name)
            check()
            return
    newest = [path for version, path in interpreters().items() if version >= (3, 13)]
    if not newest:
        raise SystemExit("GOLEM 0.5 needs NumPy 1 below Python 3.13, and there is no newer one")
    codes = [
        run_in("shinka", ["shinka-evolve==0.0.7"], [__file__, "--shinka"]),
        run_in("golem", ["thegolem==0.5.0"], [__file__, "--golem"], str(newest[0])),
    ]
    raise SystemExit(max(codes))


if __name__ == "__main__":
    main()
