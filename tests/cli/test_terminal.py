"""Text from files is shown on terminals, and never obeyed by them."""

import io
import json
from pathlib import Path

import pytest

pytest.importorskip("polars")
pytest.importorskip("rich")

from rich.console import Console

import unbounded
from unbounded import SCB, Simulation, experiments, simulate
from unbounded.cli.app import main
from unbounded.durable import Durable
from unbounded.experiments import config, grid
from unbounded.experiments.progress import Progress, render
from unbounded.experiments.task import Span
from unbounded.io import printable
from unbounded.report import pivot

EVIL = "\x1b]0;title\x07\x1b[2J\x9b31m\r\x08\u202egnol\u2066\u200b\u2028\nforged"
DIRECT = EVIL.replace("\n", "")
TOML = """
arms = 2
rounds = 10
replicates = 2
learners = [{name = "Uniform"}]
adversaries = [{name = "StochasticGap"}]
"""


def harmless(text: str) -> bool:
    return all(letter.isprintable() or letter == "\n" for letter in text)


def seen(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    text = out + err
    assert harmless(text), repr(text)
    assert "\nforged" not in text
    return text


def test_printable() -> None:
    assert printable("Σℓ∞ ± 1 ▁█ ü") == "Σℓ∞ ± 1 ▁█ ü"
    assert harmless(printable(EVIL))
    assert printable("\udc80\x1b\n") == "\\udc80\\x1b\\n"


def test_arms_of_a_durable_learner(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Durable(tmp_path / "arms.db", SCB(2, seed=0), arms=[EVIL, "plain"]) as arms:
        for _ in range(4):
            arms.tell(arms.ask().id, 1.0)
    assert main(["inspect", str(tmp_path / "arms.db")]) == 0
    assert "title" in seen(capsys)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    file = tmp_path / "one.toml"
    file.write_text(TOML)
    experiments.run(file, out=tmp_path / "out", engine="serial")
    return tmp_path / "out"


def test_failures_and_what_was_set_aside(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = {
        "cell": "0", "label": EVIL, "first": 0, "count": 1, "error": EVIL, "traceback": "",
        "settings": {}, "code": "", "versions": "", "finished": "",
    }  # fmt: skip
    (out / "failed" / "x.json").write_text(json.dumps(record))
    (out / "results" / DIRECT).write_text("")
    assert main(["show", str(out)]) == 0
    text = seen(capsys)
    assert "failed: " in text
    assert "not used: " in text
    with pytest.warns(RuntimeWarning, match="was set aside") as caught:
        experiments.run(config.loads(TOML), out=out, engine="serial")
    assert all(harmless(str(one.message)) for one in caught)


def test_errors_and_docstrings_of_plugins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("evil_import.py").write_text(f"raise ValueError({EVIL!r})\n")
    Path("evil_doc.py").write_text(
        "from unbounded import PythonLearner\n"
        f"class Mine(PythonLearner):\n    __doc__ = {EVIL!r}\n"
        f"    def __init__(self, n_arms, *, note={EVIL!r}, seed=None):\n"
        "        super().__init__(n_arms, seed=seed)\n"
        "    def distribution(self): return [1.0, 0.0]\n"
        "    def update(self, arm, probability, loss): pass\n"
    )
    Path("e.toml").write_text(TOML.replace("Uniform", "evil_import:Mine"))
    assert main(["run", "e.toml"]) == 2
    assert "does not import" in seen(capsys)
    assert main(["list", "evil_doc:Mine"]) == 0
    assert "title" in seen(capsys)


def test_tables_and_the_display() -> None:
    file = io.StringIO()
    console = Console(file=file, width=300)
    pivot.print_pivots(console, [pivot.Pivot(EVIL, [EVIL], {EVIL: ["1"]})])
    e = config.loads(TOML)
    [cell] = grid.cells(e)
    evil = cell._replace(settings=cell.settings._replace(adversary_settings={"note": EVIL}))
    console.print(pivot.cell_table(e, [evil], {}))
    progress = Progress([evil], [Span(0, 0, 2)], [Span(0, 0, 2)])
    progress.running[0], progress.latest, progress.compiling = 1, 0, [EVIL]
    console.print(render(progress))
    text = file.getvalue()
    assert harmless(text), repr(text)
    assert "\nforged" not in text


def test_results_that_were_loaded(tmp_path: Path) -> None:
    compared = unbounded.compare({EVIL: SCB(2), "b": SCB(2)}, lambda *_: [0.0, 1.0], 10, 2, seed=1)
    compared.save(tmp_path / "both.parquet")
    again = unbounded.Comparison.load(tmp_path / "both.parquet")
    for text in (repr(again), str(again.summary())):
        assert harmless(text), repr(text)
    with pytest.raises(ValueError, match="holds a Comparison"):
        Simulation.load(tmp_path / "both.parquet")
    assert simulate(SCB(2), lambda *_: [0.0, 1.0], 10, seed=1).learner == "SCB"
