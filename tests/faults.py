"""Faults put in by hand, two per important file: which tests find them?

    python tests/faults.py              # all: each in a copy of the tree, nearby tests first
    python tests/faults.py --only 7 12  # some, by their numbers
    python tests/faults.py --all        # where `make test` finds nothing, `make test-all` too
    python tests/faults.py --near       # nearby tests only

They were chosen by reading the source, not the tests. A fault that no test finds is a test to write.
"""

# ruff: noqa: E501  # a line per bug

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).resolve().parents[1]
_COPIED = ("src", "tests", "docs", "examples", "experiments", "benchmarks")
_FILES = ("pyproject.toml", "README.md", "CHANGELOG.md", "Makefile", "CONTRIBUTING.md")


class Fault(NamedTuple):
    """Replace ``old``, which occurs once in ``path``, by ``new``; ``near`` are tests to begin with."""

    path: str
    old: str
    new: str
    near: str


_PLAYS = "tests/test_unchanged.py -k"
_TWINS = "tests/bandits/test_slow_twins.py -k"

FAULTS = [
    # ------------------------------------------------------------------ core
    Fault("core/clipping.py", "l_plus = max(-C, min(C, value)) + C", "l_plus = max(-C, min(C, value)) - C",
          "tests/core/test_clipping.py"),
    Fault("core/clipping.py", "return l_plus, window.low <= window.high, Window(W, e, low, high)",
          "return l_plus, True, Window(W, e, low, high)", "tests/core/test_clipping.py"),
    Fault("core/clipping.py", "W, exponent = math.frexp(math.ldexp(high, -unit) - math.ldexp(low, -unit))",
          "W, exponent = math.frexp(math.ldexp(high - low, -unit))", "tests/core/test_clipping.py"),
    Fault("core/ceiling.py", "if C > 0.0 and (C_max == 0.0 or exponent > e):", "if C > 0.0 and exponent > e:",
          "tests/core/test_ceiling.py"),
    Fault("core/ceiling.py", "while k > 0 and largest[k - 1] < loss:", "while k > 1 and largest[k - 1] < loss:",
          "tests/core/test_ceiling.py"),
    Fault("core/random.py", "np.uint64(k + 1) * _GOLDEN", "np.uint64(k) * _GOLDEN", "tests/core/test_random.py"),
    Fault("core/scaled.py", "return total, top + more", "return total, top", "tests/core/test_scaled.py"),
    Fault("core/simplex/sampling.py", "if u < cumulative:", "if u <= cumulative:", "tests/core/simplex"),
    Fault("core/simplex/sampling.py", "lane_sums[i - whole] += value", "lane_sums[0] += value", "tests/core/simplex"),
    Fault("core/simplex/ftrl.py", "anchor.S3 + (new * new * new - old * old * old),",
          "anchor.S3 + (new * new * new + old * old * old),", "tests/core/simplex/test_ftrl.py"),
    Fault("core/simplex/ftrl.py", "p[i] = math.exp(-eta * (L[i] - smallest))", "p[i] = math.exp(-eta * L[i])",
          "tests/core/simplex/test_ftrl.py"),
    Fault("core/simplex/ftrl.py", "step = max(step, 1.0 - lam)", "step = max(step, 0.0)", "tests/core/simplex/test_ftrl.py"),
    Fault("core/simplex/tsallis_arms.py", "picture[lazy.CHANGES] += 1.0", "picture[lazy.CHANGES] += 0.0",
          "tests/bandits/test_many_arms.py -k changes_since"),
    Fault("core/simplex/tsallis_arms.py", "u = picture[GAP] / (before - picture[CENTER])",
          "u = picture[GAP] / (after - picture[CENTER])", "tests/core/simplex"),
    Fault("core/occupancy/confidence.py", "d = max(1.0, N - 1.0)", "d = max(1.0, N)", "tests/core/occupancy/test_confidence.py"),
    Fault("core/occupancy/confidence.py", "if N[p] >= max(1.0, 2.0 * N_before[p]):\n            due = True",
          "if N[p] > max(1.0, 2.0 * N_before[p]):\n            due = True", "tests/core/occupancy/test_confidence.py"),
    Fault("core/occupancy/confidence.py", "if lowest > 1.0 or highest < 1.0:", "if lowest > 1.0:",
          "tests/core/occupancy/test_confidence.py"),
    Fault("core/occupancy/upper.py", "r += lo1[i] - P0", "r += lo0[i] - P0", "tests/core/occupancy"),
    Fault("core/occupancy/upper.py", "return float(min(f[0], 1.0))", "return float(f[0])", "tests/core/occupancy"),
    Fault("core/occupancy/layout.py", "pi[p + a] = q[p + a] / total if total > 0.0 else 1.0 / A",
          "pi[p + a] = q[p + a] / total if total > 0.0 else 0.0", "tests/core/occupancy"),
    Fault("core/occupancy/layout.py", "if c < best:", "if c <= best:", "tests/core/occupancy"),
    Fault("core/occupancy/solver/ftrl.py", "w[h] = max(w[h], max(C[h] / eta, least))", "w[h] = max(C[h] / eta, least)",
          "tests/core/occupancy/solver/test_ftrl.py"),
    Fault("core/occupancy/solver/ftrl.py", "shift = int(head[EXPONENT]) - units.e", "shift = units.e - int(head[EXPONENT])",
          "tests/core/occupancy/solver/test_ftrl.py"),
    Fault("core/occupancy/solver/certificate.py", "z[i] += up * (b[i] - y[i]) + down * (y[i] - a[i])",
          "z[i] += up * (b[i] - y[i])", "tests/core/occupancy/solver/test_certificate.py"),
    Fault("core/occupancy/solver/certificate.py", "sum_kl += wh * kl", "sum_kl += kl",
          "tests/core/occupancy/solver/test_certificate.py"),
    # ------------------------------------------------------------------ bandits
    Fault("bandits/scb.py", "beta = params.mixing * n / (2.0 * n + math.sqrt(n * t))",
          "beta = params.mixing * n / (n + math.sqrt(n * t))", f"{_TWINS} 'SCB-0 and not Cost'"),
    Fault("bandits/scb.py", "unit_factor(state.window, window)", "unit_factor(window, state.window)",
          f"{_TWINS} 'SCB-2 and not Cost'"),
    Fault("bandits/scb.py", "if n > 1 and window.W > 0.0:", "if n > 1:", "tests/bandits/test_scb.py"),
    Fault("bandits/scb_ix.py", "iota -= math.log(delta)", "iota += math.log(delta)", f"{_TWINS} SCBIX-3"),
    Fault("bandits/cost_scb.py", "self._watching = outliers != 0", "self._watching = outliers == 0",
          "tests/learners/test_scale_warning.py"),
    Fault("bandits/baselines/exp3.py", "x / p_k", "x", f"{_TWINS} Exp3-0"),
    Fault("bandits/baselines/exp3_ix.py", "p_k + 0.5 * _eta(params, state.t)", "p_k + _eta(params, state.t)", f"{_TWINS} Exp3IX"),
    Fault("bandits/baselines/ucb1.py", "2.0 * math.log(state.t)", "2.0 * math.log(state.t + 1)",
          f"{_TWINS} UCB1"),
    Fault("bandits/baselines/tsallis_inf.py", "state.clipped + clipped", "state.clipped", "tests/bandits/test_every_bandit.py -k outside"),
    # ------------------------------------------------------------------ MDPs
    Fault("mdps/uob_reps_ex.py", "own * (solver.u[lay[STATE, h] + s] * solver.pi[p])", "solver.u[lay[STATE, h] + s] * solver.pi[p]",
          "tests/mdps/test_uob_reps_ex.py"),
    Fault("mdps/uob_reps_ex.py", "state.u_explorers[:] = -1.0\n    return changed", "pass\n    return changed", "tests/mdps/test_uob_reps_ex.py"),
    Fault("mdps/uob_reps_ex.py", "x = uniform(word) - (1.0 - beta)", "x = uniform(word) - beta", "tests/mdps/test_uob_reps_ex.py"),
    Fault("mdps/scb_rl.py", "if not exploring or not params.literal:  # E28", "if not exploring:", "tests/mdps/test_scb_rl.py"),
    Fault("mdps/policy_optimization.py", "dilated = unit * (1.0 + 1.0 / H)", "dilated = unit", "tests/mdps/test_policy_optimization.py"),
    Fault("mdps/policy_optimization.py", "state.v[s] *= factor * factor", "state.v[s] *= factor", "tests/mdps/test_policy_optimization.py"),
    Fault("mdps/mvp.py", "variance = max(0.0, square - mean * mean)", "variance = max(0.0, square)", "tests/mdps/test_mvp.py"),
    Fault("mdps/mvp.py", "model.square[lay[PAIR, h] + i] = 0.0\n", "\n", "tests/mdps/test_mvp.py"),
    Fault("mdps/steps/boxes.py", "    assign(boxes.N_before, boxes.N)\n", "", "tests/mdps"),
    # ------------------------------------------------------------------ learners
    Fault("learners/bandit.py", 'value = -self._checked("reward", reward)', 'value = self._checked("reward", reward)',
          "tests/learners/test_bandit.py"),
    Fault("learners/bandit.py", "            if self._buffer[TOLD + number % RING] != number:\n                self._records[number] = record\n            raise",
          "            raise", "tests/learners"),
    Fault("learners/bandit.py", "documents.whole_number(arm, self.n_arms)", "documents.whole_number(arm, 2**48)", "tests/learners"),
    Fault("learners/base.py", "if number < limit]", "if number <= limit]", "tests/learners/test_base.py"),
    Fault("learners/base.py", "if issuer != self._identity and self._inherited.get(number) != issuer:", "if False:", "tests/learners"),
    Fault("learners/persistence.py", "if document.pop(\"digest\", None) != _digest(json.dumps(document)):",
          "if document.pop(\"digest\", None) == _digest(\"\"):", "tests/learners/test_persistence.py"),
    Fault("learners/persistence.py", "if len(data) != length or not engine.eof or engine.unused_data:", "if len(data) != length:",
          "tests/learners"),
    Fault("learners/persistence.py", "return array if shape else array[()]", "return array", "tests/learners"),
    Fault("learners/seeds.py", "spawn_key=(*root.spawn_key, _LEARNERS)", "spawn_key=root.spawn_key", "tests/learners/test_seeds.py"),
    Fault("learners/tickets.py", "return (self.id, self._learner) == (other.id, other._learner)", "return self.id == other.id",
          "tests/learners"),
    # ------------------------------------------------------------------ simulation, results
    Fault("simulation/ledger.py", "book[PLAYED] *= _SMALL_UNIT\n", "\n", "tests/simulation/test_ledger.py"),
    Fault("simulation/ledger.py", "for i in range(n - n % 4, n):", "for i in range(n - n % 4 + 1, n):", "tests/simulation/test_ledger.py"),
    Fault("simulation/bandit_loops.py", "book[PLAYED], cumulative.min(), 2.0 * book[EXPECTED]", "book[PLAYED], cumulative.min(), book[EXPECTED]",
          "tests/simulation/test_bandit.py"),
    Fault("simulation/episode.py", "sums[PAID] *= ratio", "sums[PAID] *= 1.0", "tests/simulation/test_episode.py"),
    Fault("simulation/episode.py", "largest = max(largest, -book.low[h - 1], book.high[h - 1])", "largest = max(largest, book.high[h - 1])",
          "tests/simulation"),
    Fault("results/intervals.py", "std(ddof=1)", "std(ddof=0)", "tests/results"),
    Fault("results/intervals.py", "middle = (1.0 - deltas) * count", "middle = (1.0 - deltas) * (count - 1)", "tests/results"),
    Fault("results/summary.py", "better = int((own < less).sum())", "better = int((own > less).sum())", "tests/simulation/test_compare.py"),
    # ------------------------------------------------------------------ files, validation
    Fault("io.py", "                os.fsync(file.fileno())\n", "                pass\n", "tests/test_io.py"),
    Fault("io.py", "        with suppress(OSError):\n            os.unlink(part)\n        raise", "        raise", "tests/test_io.py"),
    Fault("io.py", "getattr(os, \"O_NONBLOCK\", 0) | ", "", "tests/test_io.py"),
    Fault("validation.py", "lambda x: 0.0 < x <= 1.0", "lambda x: 0.0 <= x <= 1.0", "tests/test_validation.py"),
    Fault("validation.py", "low < high):", "low <= high):", "tests/test_validation.py"),
    Fault("validation.py", "np.any(numbers >= np.array(limits))", "np.any(numbers > np.array(limits))", "tests/test_validation.py"),
    # ------------------------------------------------------------------ compiled code
    Fault("jit/files.py", "if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not writable_by_others:",
          "if found.st_mode & stat.S_IWOTH and not writable_by_others:", "tests/jit/test_files.py"),
    Fault("jit/files.py", "if hashlib.sha256(data[_SUM:]).digest() == data[:_SUM]:", "if data:", "tests/jit/test_files.py tests/jit/test_cache.py"),
    Fault("jit/key.py", "parts = [text.hash, self.of(function.__defaults__)]", "parts = [text.hash]", "tests/jit/test_key.py"),
    Fault("jit/key.py", "return _mix(name, *sorted(parts))", "return _mix(name, *parts)", "tests/jit/test_key.py"),
    # ------------------------------------------------------------------ durable
    Fault("durable/rows.py", "if not right or row.digest != row.digest_after(chain):", "if not right:",
          "tests/durable/test_store.py tests/durable/test_damage.py"),
    Fault("durable/rows.py", "cls(n, text, hashlib.sha256(f\"{n}|{text}\"", "cls(n, text, hashlib.sha256(f\"{n}\"", "tests/durable/test_contexts.py"),
    Fault("durable/rows.py", "hashlib.sha256(chain + self.content)", "hashlib.sha256(self.content)",
          "tests/durable/test_store.py tests/durable/test_damage.py"),
    Fault("durable/session.py", "self._replica = replica  # what it has learned is in the file", "pass", "tests/durable/test_learner.py"),
    Fault("durable/replica.py", " and self.names[row.arm : row.arm + 1] == [row.name]", "", "tests/durable/test_postgres.py tests/durable/test_server_errors.py"),
    Fault("durable/database.py", "self._until(files.take_turn)", "files.take_turn()", "tests/durable/test_sharing.py tests/durable/test_files.py"),
    Fault("durable/offpolicy.py", "ratio[t] = pi[name] / rounds.p[t]", "ratio[t] = pi[name]", "tests/durable/test_offpolicy.py"),
    # ------------------------------------------------------------------ experiments, report, adapters
    Fault("experiments/store.py", "if _hash(name[1].encode(), content) != name[2]:", "if False:", "tests/experiments/test_store.py"),
    Fault("experiments/store.py", ".lt(replicates)", ".le(replicates)", "tests/experiments/test_store.py"),
    Fault("experiments/grid.py", "e.dynamic, e.switches, e.seed, code,", "e.dynamic, e.switches, code,",
          "tests/experiments/test_grid.py"),
    Fault("experiments/runner.py", "self._queue.extend(spans)  # also after an error", "_error_of(future) or self._queue.extend(spans)  # also after an error",
          "tests/experiments/test_runner.py"),
    Fault("report/comparisons.py", "common = rows.join(met.filter(pl.col(\"met\") == learners)", "common = rows.join(met.filter(pl.col(\"met\") >= 1)",
          "tests/report/test_ranking.py tests/report/test_comparisons.py"),
    Fault("report/comparisons.py", "return mean - low > math.hypot(high - low, mean - other)", "return other > high",
          "tests/report/test_ranking.py tests/report/test_comparisons.py"),
    Fault("adapters/river.py", "return value if less_is_better else -value", "return -value", "tests/adapters/test_river.py"),
    Fault("adapters/gymnasium.py", "return observation, -loss, over, False,", "return observation, loss, over, False,", "tests/adapters/test_gymnasium.py"),
    Fault("worlds.py", "last[s, a] *= 1.0 - reach\n", "\n", "tests/test_worlds.py"),
    Fault("bounds.py", "if n < 2 or self.rounds not in (None, T):", "if n < 2:", "tests/test_bounds.py"),
]  # fmt: skip


def copied(to: Path) -> None:
    """Copy what the tests need."""
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc", "kernels")
    for name in _COPIED:
        shutil.copytree(_ROOT / name, to / name, ignore=ignored)
    for name in _FILES:
        if (_ROOT / name).exists():
            shutil.copy(_ROOT / name, to / name)


def tests_pass(tree: Path, arguments: str, log: Path, jit: str | None) -> bool:
    """Run tests in a tree until the first failure; none selected counts as passed."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    if jit:
        environment["UNBOUNDED_JIT"] = jit
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    with log.open("a", encoding="utf-8") as file:
        done = subprocess.run(
            [*command, *shlex.split(arguments)], cwd=tree, env=environment, stdout=file,
            stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    return done.returncode in (0, 5)


def verdict(fault: Fault, tree: Path, log: Path, arguments: argparse.Namespace) -> str:
    """Return who finds a fault."""
    path = tree / "src" / "unbounded" / fault.path
    sound = path.read_text(encoding="utf-8") if path.exists() else ""
    if sound.count(fault.old) != 1:
        return f"DOES NOT APPLY ({sound.count(fault.old)} times)"
    path.write_text(sound.replace(fault.old, fault.new), encoding="utf-8")
    try:
        if not tests_pass(tree, fault.near, log, arguments.jit):
            return "nearby tests"
        if arguments.near:
            return "NOT by nearby tests"
        if not tests_pass(tree, f"-n {arguments.workers}", log, None):
            return "make test"
        if arguments.all and not tests_pass(tree, f"-n {arguments.workers} -m long", log, None):
            return "make test-all"
        return "NOBODY"
    finally:
        path.write_text(sound, encoding="utf-8")


def main() -> int:
    """Try faults, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", type=int, nargs="+", help="the numbers of some")
    parser.add_argument("--near", action="store_true", help="nearby tests only")
    parser.add_argument("--all", action="store_true", help="long tests too")
    parser.add_argument("--jit", choices=["always", "never"], help="for nearby tests")
    parser.add_argument("--workers", default="auto")
    parser.add_argument("--log", type=Path, default=Path(tempfile.gettempdir(), "faults.log"))
    arguments = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory, "tree")
        tree.mkdir()
        copied(tree)
        for number in arguments.only or range(len(FAULTS)):
            started, fault = time.monotonic(), FAULTS[number]
            found = verdict(fault, tree, arguments.log, arguments)
            missed += found == found.upper() or found.startswith("NOT")
            seconds = time.monotonic() - started
            print(
                f"{number:3} {seconds:6.0f} s  {fault.path}: {fault.old!r} -> {found}", flush=True
            )
    print(f"{missed} were missed")
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())
