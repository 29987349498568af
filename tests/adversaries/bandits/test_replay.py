"""Losses from a matrix or a file."""

import math
import subprocess
import sys

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
    replay = Replay(path=str(path), columns=["b", "a"], scale=2.0, repeat=True)
    assert losses_of(replay, n=2, rounds=3).tolist() == [[-4.0, 1.0], [8.0, 2000.0], [-4.0, 1.0]]
    assert losses_of(Replay(path=str(path)), n=3, rounds=1).tolist() == [[1.0, 0.5, -2.0]]
    with pytest.raises(ValueError, match="has no column 'c'; it has day, a, b"):
        Replay(path=str(path), columns=["c"])
    path.write_text("a,b\n1,2\n3,\n")
    with pytest.raises(ValueError, match="line 3 has no number in column 'b'"):
        Replay(path=str(path))
    path.write_text("a,b\n")
    with pytest.raises(ValueError, match=r"losses.csv must have a row .* got shape \(0, 2\)"):
        Replay(path=str(path))


def test_parquet(tmp_path):
    polars = pytest.importorskip("polars")
    path = tmp_path / "losses.parquet"
    polars.DataFrame({"a": [1, 2], "b": [0.5, -7.0]}).write_parquet(path)
    assert losses_of(Replay(path=str(path)), n=2, rounds=2).tolist() == [[1.0, 0.5], [2.0, -7.0]]
    picked = Replay(path=str(path), columns=["b"])
    result = simulate(Uniform(1), picked, 2, seed=0, checkpoints=[2])
    assert (result.low[0, -1], result.high[0, -1]) == (-7.0, 0.5)


def test_columns_of_equal_names_are_all_read(tmp_path):
    path = tmp_path / "losses.csv"
    path.write_text("a,a\n1,2\n")
    assert losses_of(Replay(path=str(path)), n=2, rounds=1).tolist() == [[1.0, 2.0]]


def test_errors():
    with pytest.raises(ValueError, match="row 0, column 1"):
        Replay([[1.0, math.inf]])
    with pytest.raises(ValueError, match=r"shape \(rounds, n_arms\), got \(1,\)"):
        Replay([1.0])
    with pytest.raises(ValueError, match="3 columns for 2 arms"):
        Replay([[1.0, 2.0, 3.0]]).begin(2, 10, 0)


def test_npy_is_mapped_and_gives_what_the_array_gives(tmp_path):
    matrix = np.random.default_rng(0).normal(size=(50, 4))
    path = tmp_path / "losses.npy"
    np.save(path, matrix)
    mapped = np.load(path, mmap_mode="r")
    for replay in (Replay(path=str(path), scale=2.0), Replay(mapped, scale=2.0, repeat=False)):
        assert replay._recorded._file is not None
        assert np.array_equal(losses_of(replay, rounds=50), 2.0 * matrix)
    before = path.read_bytes()
    result, plain = (
        simulate(Uniform(4), one, 50, replicates=3, seed=1, checkpoints=[50])
        for one in (Replay(path=str(path)), Replay(matrix))
    )
    assert np.array_equal(result.regret, plain.regret)
    assert path.read_bytes() == before  # what is written is a private copy
    for other in (matrix.astype(np.float32), np.asfortranarray(matrix), matrix.astype(">f8")):
        np.save(path, other)
        assert np.array_equal(losses_of(Replay(path=str(path)), rounds=50), other)
    np.save(path, matrix + 1.0)  # the file may change, and is then another one
    assert np.array_equal(losses_of(Replay(path=str(path)), rounds=50), matrix + 1.0)


def test_files_are_not_read_as_a_whole(tmp_path):
    """80 MB of rows take hardly more memory than 16 MB did, which the process read before."""
    polars = pytest.importorskip("polars")
    short, long = 200_000, 1_000_000
    for count in (short, long):
        np.lib.format.open_memmap(
            tmp_path / f"{count}.npy", mode="w+", dtype=np.float64, shape=(count, 10)
        )[-1, -1] = 0.25
        column = np.full(count, 0.25)
        frame = polars.DataFrame({f"c{k}": column for k in range(10)})
        frame.write_parquet(tmp_path / f"{count}.parquet")
    program = (
        "import sys, pathlib, numpy as np\n"
        "from unbounded.adversaries import Replay\n"
        "def anonymous():\n"
        "    text = pathlib.Path('/proc/self/status').read_text()\n"
        "    return int(text.split('RssAnon:')[1].split()[0]) // 1024\n"
        "def read(path):\n"
        "    if sys.argv[3] == 'mapped':\n"
        "        return Replay(path=path)\n"
        "    return Replay(np.load(path.replace('.parquet', '.npy')))\n"
        "kept = read(sys.argv[1]).begin(10, 1000, 0)\n"
        "before = anonymous()\n"
        "params, _ = read(sys.argv[2]).begin(10, 1000, 0)\n"
        f"assert params[0] == 1.0 and params[-1] == 0.25 and params.size == {10 * long + 2}\n"
        "print(anonymous() - before)\n"
    )

    def grown(suffix: str, how: str) -> int:  # MB
        files = [str(tmp_path / f"{count}{suffix}") for count in (short, long)]
        command = [sys.executable, "-c", program, *files, how]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    assert grown(".npy", "mapped") < 25
    assert grown(".parquet", "mapped") < 25
    assert grown(".npy", "in memory") > 60


def test_too_short_a_file_is_an_error(tmp_path):
    matrix = np.arange(6.0).reshape(3, 2)
    path = tmp_path / "losses.npy"
    np.save(path, matrix)
    polars = pytest.importorskip("polars")
    table = tmp_path / "losses.parquet"
    polars.DataFrame(matrix, schema=["a", "b"]).write_parquet(table)
    for file in (path, table):
        with pytest.raises(
            ValueError, match="has 3 rows, and 4 rounds are to be played: play fewer"
        ):
            simulate(Uniform(2), Replay(path=str(file)), 4)
        again = losses_of(Replay(path=str(file), repeat=True), n=2, rounds=4)
        assert np.array_equal(again, matrix[[0, 1, 2, 0]])
    with pytest.raises(ValueError, match="has 3 rows"):
        simulate(Uniform(2), Replay(matrix, repeat=False), 4)


def test_files_that_cannot_be_replayed(tmp_path):
    path = tmp_path / "losses.npy"
    for content, said in [
        (None, "cannot be read .*give the path of a file"),
        (b"nonsense", "cannot be read as an array"),
    ]:
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(ValueError, match=said):
            Replay(path=str(path))
    np.save(path, np.ones((100, 3)))
    whole = path.read_bytes()
    path.write_bytes(whole[:-8])  # shorter than its header says
    with pytest.raises(ValueError, match="cannot be read as an array"):
        Replay(path=str(path))
    np.save(path, np.array([["a"]]))
    with pytest.raises(ValueError, match="not numbers"):
        Replay(path=str(path))
    np.save(path, np.array([[1.0, np.nan]]))
    with pytest.raises(ValueError, match="must be finite, got nan in row 0, column 1"):
        Replay(path=str(path))
    np.save(path, np.ones(3))
    with pytest.raises(ValueError, match=r"got shape \(3,\)"):
        Replay(path=str(path))
    np.save(path, np.ones((0, 3)))
    with pytest.raises(ValueError, match=r"got shape \(0, 3\)|cannot be read"):
        Replay(path=str(path))
    (tmp_path / "losses.parquet").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        Replay(path=str(tmp_path / "losses.parquet"))
    with pytest.raises(ValueError, match=r"path must be a file .npy, .parquet, .csv, got"):
        Replay(path="losses.txt")
    with pytest.raises(ValueError, match=r"a .npy file has none"):
        Replay(path=str(path), columns=["a"])
    with pytest.raises(TypeError, match="needs losses, or the path of a file"):
        Replay()
    with pytest.raises(TypeError, match="needs losses, or the path of a file"):
        Replay([[1.0]], path=str(path))
