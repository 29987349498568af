"""Losses of MDPs from arrays and files."""

from __future__ import annotations

import numpy as np
import pytest

from loss_helpers import filled
from unbounded import LayeredMDP, UniformPolicy, simulate_mdp, worlds
from unbounded.adapters.gymnasium import LayeredEnv
from unbounded.adversaries.mdps import MDPReplay

T, H, S, A = 7, 3, 2, 2
RNG = np.random.default_rng(0)
PLAIN = LayeredMDP.from_arrays(RNG.dirichlet([1, 1], size=(S, A)), [0.5, 0.5], H)
ENDING = LayeredMDP.from_arrays(np.full((S, A, S), 0.4), [0.5, 0.5], H, ends=np.full((S, A), 0.2))
LOSSES = RNG.normal(size=(T, H, S, A))


def played(adversary, mdp, episodes=T):
    q = np.zeros(mdp.layers.n_pairs)
    return np.array([filled(adversary, mdp, episodes, t, q, 0) for t in range(1, episodes + 1)])


def flat(mdp, losses):
    """Of every episode, over the pairs of an MDP; the end costs nothing."""
    rows = []
    for tables in losses:
        sizes = zip(tables, mdp.layers.sizes, strict=True)
        whole = [np.concatenate([table, np.zeros((n - S, A))]) for table, n in sizes]
        rows.append(mdp.layers.pack_pairs(whole))
    return np.array(rows)


@pytest.mark.parametrize("mdp", [PLAIN, ENDING], ids=["plain", "ending"])
def test_every_form_is_the_same(mdp, tmp_path):
    expected = flat(mdp, LOSSES)
    path = tmp_path / "losses.npy"
    np.save(path, LOSSES)
    np.save(tmp_path / "flat.npy", LOSSES.reshape(T, -1))
    forms = [
        MDPReplay(LOSSES),
        MDPReplay(LOSSES.tolist()),
        MDPReplay([LOSSES[:, h] for h in range(H)]),
        MDPReplay(LOSSES.reshape(T, -1)),
        MDPReplay(expected[:, 1:]),  # with the end, if there is one
        MDPReplay(np.load(path, mmap_mode="r")),
        MDPReplay(path=str(path)),
        MDPReplay(path=str(tmp_path / "flat.npy")),
    ]
    polars = pytest.importorskip("polars")
    names = [f"{h} {s} {a}" for h in range(H) for s in range(S) for a in range(A)]
    polars.DataFrame(LOSSES.reshape(T, -1), schema=names).write_parquet(tmp_path / "l.parquet")
    forms.append(MDPReplay(path=str(tmp_path / "l.parquet")))
    forms.append(MDPReplay(path=str(tmp_path / "l.parquet"), columns=names))
    for form in forms:
        assert np.array_equal(played(form, mdp), expected)
    assert forms[5]._recorded._file is not None
    assert forms[6]._recorded._file is not None
    assert np.array_equal(played(MDPReplay(LOSSES, scale=-4.0), mdp), -4.0 * expected)
    again = played(MDPReplay(path=str(path), repeat=True), mdp, 10)
    assert np.array_equal(again, expected[[0, 1, 2, 3, 4, 5, 6, 0, 1, 2]])
    env = LayeredEnv(mdp, MDPReplay(path=str(path)), episodes=T)
    _, info = env.reset(seed=0)
    assert env.step(1)[4]["loss"] == LOSSES[0, 0, info["state"], 1]


def test_layers_of_their_own_sizes():
    mdp = worlds.dirichlet([1, 3, 2], 2, np.random.default_rng(0))
    tables = [np.random.default_rng(n).normal(size=(T, n, 2)) for n in (1, 3, 2)]
    expected = np.array([mdp.layers.pack_pairs([table[t] for table in tables]) for t in range(T)])
    assert np.array_equal(played(MDPReplay(tables), mdp), expected)
    rows = np.concatenate([table.reshape(T, -1) for table in tables], axis=1)
    assert np.array_equal(played(MDPReplay(rows), mdp), expected)


def test_workers_share_a_file(tmp_path):
    np.save(tmp_path / "losses.npy", LOSSES)
    learner = UniformPolicy.for_mdp(ENDING)
    one, other = (
        simulate_mdp(learner, ENDING, adversary, T, replicates=4, seed=1, workers=workers)
        for adversary, workers in (
            (MDPReplay(LOSSES), 1),
            (MDPReplay(path=str(tmp_path / "losses.npy")), 4),
        )
    )
    assert np.array_equal(one.regret, other.regret)
    assert len(set(one.regret[:, -1])) == 4  # replicates walk elsewhere, at the same losses
    assert np.ptp(one.pseudo_regret[:, -1]) == 0.0


def test_what_is_not_allowed_may_be_anything():
    mdp = LayeredMDP.from_arrays(
        np.full((S, A, S), 0.5), [0.5, 0.5], H, allowed=[[True, False], [True, True]]
    )
    losses = LOSSES.copy()
    losses[:, :, 0, 1] = np.nan
    learner = UniformPolicy.for_mdp(mdp)
    result = simulate_mdp(learner, mdp, MDPReplay(losses), T, seed=0)
    assert np.isfinite(result.pseudo_regret).all()
    losses[3, 2, 1, 0] = np.inf
    with pytest.raises(ValueError, match="got inf in episode 3, layer 2, state 1, action 0"):
        simulate_mdp(learner, mdp, MDPReplay(losses), T, seed=0)


def test_too_short_or_of_another_shape_is_said_before_anything_is_played(tmp_path):
    learner = UniformPolicy.for_mdp(PLAIN)
    np.save(tmp_path / "losses.npy", LOSSES)
    done = []
    for losses, said in [
        ({"path": str(tmp_path / "losses.npy")}, "losses.npy has 7 rows, and 8 episodes are to be"),
        ({"losses": LOSSES[:, :2]}, r"losses of \[2, 2, 2\] states with 2 actions, 12 in each"),
        ({"losses": LOSSES[:, :, :1]}, r"got \[1, 1, 1\] states in \(7, 3, 1, 2\)"),
        ({"losses": LOSSES[..., :1]}, "2 actions"),
        ({"losses": LOSSES.reshape(T, -1)[:, :5]}, r"12 in each episode; got shape \(7, 5\)"),
    ]:
        with pytest.raises(ValueError, match=said):
            simulate_mdp(
                learner, PLAIN, MDPReplay(**losses), 8, progress=lambda *now: done.append(now)
            )
    assert not done
    for losses, error, said in [
        (None, TypeError, "needs losses, or the path of a file"),
        (LOSSES[0], ValueError, "losses must have shape"),
        ("abc", TypeError, "losses must be numbers"),
        ([LOSSES[:, 0], LOSSES[:3, 1]], ValueError, "with one T and one A; got"),
    ]:
        with pytest.raises(error, match=said):
            MDPReplay(losses)
    with pytest.raises(ValueError, match=r"path must be a file .npy, .parquet, got"):
        MDPReplay(path="losses.csv")
    with pytest.raises(ValueError, match="must be finite"):
        MDPReplay(LOSSES, scale=1e308)
