"""Losses from a matrix or a file."""

import math

import numpy as np
import pytest

from loss_helpers import losses_of
from unbounded import Uniform, simulate
from unbounded.adversaries import Replay


def test_starts_again_after_the_last_row():
    matrix = np.random.default_rng(0).normal(size=(3, 4))
    assert np.array_equal(losses_of(Replay(matrix), rounds=7), matrix[[0, 1, 2, 0, 1, 2, 0]])


def test_csv(tmp_path):
    path = tmp_path / "losses.csv"
    path.write_text("day,a,b\n1,0.5,-2\n2,1e3,4\n")
    replay = Replay.from_file(path, columns=["b", "a"], scale=2.0, repeat=True)
    assert losses_of(replay, n=2, rounds=3).tolist() == [[-4.0, 1.0], [8.0, 2000.0], [-4.0, 1.0]]
    assert losses_of(Replay.from_file(path), n=3, rounds=1).tolist() == [[1.0, 0.5, -2.0]]
    with pytest.raises(ValueError, match="has no column 'c'; it has day, a, b"):
        Replay.from_file(path, columns=["c"])
    path.write_text("a,b\n1,2\n3,\n")
    with pytest.raises(ValueError, match="line 3 has no number in column 'b'"):
        Replay.from_file(path)
    path.write_text("a,b\n")
    with pytest.raises(ValueError, match=r"losses.csv must have a row .* got shape \(0, 2\)"):
        Replay.from_file(path)


def test_parquet(tmp_path):
    polars = pytest.importorskip("polars")
    path = tmp_path / "losses.parquet"
    polars.DataFrame({"a": [1, 2], "b": [0.5, -7.0]}).write_parquet(path)
    assert losses_of(Replay.from_file(path), n=2, rounds=2).tolist() == [[1.0, 0.5], [2.0, -7.0]]
    picked = Replay.from_file(path, columns=["b"])
    result = simulate(Uniform(1), picked, 2, seed=0, checkpoints=[2])
    assert (result.low[0, -1], result.high[0, -1]) == (-7.0, 0.5)


def test_columns_of_equal_names_are_all_read(tmp_path):
    path = tmp_path / "losses.csv"
    path.write_text("a,a\n1,2\n")
    assert losses_of(Replay.from_file(path), n=2, rounds=1).tolist() == [[1.0, 2.0]]


def test_errors():
    with pytest.raises(ValueError, match="row 0, column 1"):
        Replay([[1.0, math.inf]])
    with pytest.raises(ValueError, match=r"shape \(rounds, n_arms\), got \(1,\)"):
        Replay([1.0])
    with pytest.raises(ValueError, match="3 columns for 2 arms"):
        Replay([[1.0, 2.0, 3.0]]).begin(2, 10, 0)
