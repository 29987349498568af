"""Every learner plays what it played when tests/data/plays.json was written.

Arms and actions are held exactly, probabilities to 1e-12, as another processor or another version
of NumPy may round differently. `benchmarks/unchanged.py` compares two checkouts bit for bit on one
machine. After a change that is *meant* to change the play, write the file again and say so:

    python tests/test_unchanged.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unbounded import bandits, mdps, worlds
from unbounded.experiments.names import mdp_learner

_FILE = Path(__file__).parent / "data" / "plays.json"
_ROUNDS, _EPISODES = 80, 60
_WORLD = worlds.dirichlet([2, 3, 2], 2, np.random.default_rng(11))


def _losses(rows: int, columns: int) -> np.ndarray:
    """Of several signs and sizes, with zeros and ties; multiples of 1/8, hence exact anywhere."""
    rng = np.random.default_rng(5)
    sizes = 8.0 ** rng.integers(-1, 3, size=(rows, 1))
    return rng.integers(-4, 12, size=(rows, columns)) * sizes


def play_bandit(cls: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Arms, and probabilities every 20 rounds and at the end."""
    learner, arms, looks = cls(5, **settings, seed=3), [], []
    for t, losses in enumerate(_losses(_ROUNDS, 5)):
        if t % 20 == 0:
            looks.append(learner.probabilities().tolist())
        choice = learner.ask()
        arms.append(choice.arm)
        if cls.spec.feedback == "full":
            learner.tell(choice, losses=losses)
        else:
            learner.tell(choice, float(losses[choice]))
    looks.append(learner.probabilities().tolist())
    return {"played": arms, "probabilities": looks}


def play_mdp(cls: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Actions, and the policies of every tenth episode."""
    learner = mdp_learner(cls.spec.name, settings, _WORLD, _EPISODES)
    rng, H = np.random.default_rng(8), _WORLD.layers.horizon
    losses = np.abs(_losses(_EPISODES, H)) / 2048.0 - 1.0 / H  # rewards that MVP takes, too
    if "lower" in learner.settings:
        losses += 1.0 / H
    layers = _WORLD.layers
    tables = [layers.unpack_pairs(pairs) for pairs in _losses(_EPISODES, layers.n_pairs)]
    actions, looks = [], []
    for t, row in enumerate(losses):
        plan = learner.ask()
        if t % 10 == 0:
            looks.append([p for table in plan.policy for p in table.ravel().tolist()])
        states, taken, distribution = [], [], _WORLD.initial
        for h in range(H):
            states.append(int((np.cumsum(distribution) > rng.random()).argmax()))
            taken.append(plan.act(h, states[h]))
            if h + 1 < H:
                distribution = _WORLD.transitions[h][states[h], taken[h]]
        told = row if "lower" in learner.settings else np.minimum(row, 0.0)
        if cls.spec.feedback == "full":
            told = tables[t]
        learner.tell(plan, states, taken, told)
        actions.append(taken)
    return {"played": actions, "probabilities": looks}


CASES = {
    f"{name} {json.dumps(settings)}": (play, cls, dict(settings))
    for play, found in ((play_bandit, bandits.algorithms()), (play_mdp, mdps.algorithms()))
    for name, cls in found.items()
    for settings in cls.spec.examples
}


@pytest.mark.parametrize("case", CASES)
def test_the_play_is_what_it_was(case: str) -> None:
    play, cls, settings = CASES[case]
    kept = json.loads(_FILE.read_text()).get(case)
    assert kept is not None, f"{case} is new: python {Path(__file__).name} adds it to {_FILE.name}"
    now = play(cls, settings)
    assert now["played"] == kept["played"]
    np.testing.assert_allclose(now["probabilities"], kept["probabilities"], rtol=0, atol=1e-12)


def test_nothing_is_kept_of_what_is_gone() -> None:
    assert set(json.loads(_FILE.read_text())) == set(CASES)


def test_other_losses_give_another_play(monkeypatch: pytest.MonkeyPatch) -> None:
    play, cls, settings = CASES["SCB {}"]
    kept = play(cls, settings)
    before = _losses(_ROUNDS, 5)
    monkeypatch.setitem(globals(), "_losses", lambda *shape: -before)
    assert play(cls, settings) != kept


if __name__ == "__main__":
    plays = {case: play(cls, settings) for case, (play, cls, settings) in CASES.items()}
    lines = ",\n".join(f"{json.dumps(case)}: {json.dumps(play)}" for case, play in plays.items())
    _FILE.write_text(f"{{\n{lines}\n}}\n")
