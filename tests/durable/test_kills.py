"""kill -9 at random moments: what was acknowledged is there, once; nothing is lost or doubled."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("killed_workers.py")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are forked")
@pytest.mark.parametrize("kills", [20, pytest.param(1000, marks=pytest.mark.long)])
def test_what_was_acknowledged_survives_kill_9(tmp_path, kills):
    command = [sys.executable, str(SCRIPT), str(tmp_path / "arms.db"), str(kills), "1"]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"UNBOUNDED_JIT": "never"}
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts["told"] > kills  # enough to lose
