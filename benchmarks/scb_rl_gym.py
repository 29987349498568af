"""SCB-RL in Gymnasium's FrozenLake 8x8 and CliffWalking with adversarial losses; exact regret.

    python benchmarks/scb_rl_gym.py      # about ten minutes of CPU time

Each step has the environment's own cost, and one of three directions costs more: another one in
each eighth of the episodes. The transitions are the environment's tables, which no learner knows;
some are told which transitions are possible. Regret is exact and against the best fixed policy.
Then the same learner plays through the adapter, for episodes per second. Writes
docs/results/tables/scb-rl-gym-1.csv and its figure.
"""

import time

import gymnasium as gym
import numpy as np
from result_tables import write_tables
from scb_rl_table import RESULTS

from unbounded import (
    SCBRL,
    UOBREPS,
    LayeredMDP,
    PolicyOptimization,
    UniformPolicy,
    simulate_mdp,
)
from unbounded.adapters.gymnasium import Layered, play, tables
from unbounded.adversaries.mdps import MDPReplay

FIGURE = RESULTS / "scb-rl-gym.svg"
T, TOLL, POINTS = 10_000, 0.5, [300, 1000, 2000, 4000, 7000, 10_000]
ENVIRONMENTS = {  # name, settings, horizon, what its costs are multiplied by
    "FrozenLake 8x8": ("FrozenLake-v1", {"map_name": "8x8"}, 16, 1.0),
    "CliffWalking": ("CliffWalking-v1", {}, 14, 0.01),
}
SEEDS, ADAPTER = 1, 1200


def losses(costs, horizon, scale):
    """Of every episode, (T, H, S, A): costs times ``scale``, and the toll on one direction."""
    directions = (8 * np.arange(T) // T) % 3
    tolls = TOLL * (np.arange(costs.shape[1]) == directions[:, None])
    one = np.clip(scale * costs, -1.0, 1.0) + tolls[:, None, :]
    return np.broadcast_to(one[:, None], (T, horizon, *costs.shape))


def never_ending(P, initial, ends, costs, horizon):
    """The same world for a learner that knows no end: one more state, free and never left."""
    n, A = costs.shape
    whole = np.zeros((n + 1, A, n + 1))
    whole[:n, :, :n], whole[:n, :, n], whole[n, :, n] = P, ends, 1.0
    return LayeredMDP.from_arrays(whole, [*initial, 0.0], horizon=horizon)


def measured(name):
    id_, settings, horizon, scale = ENVIRONMENTS[name]
    env = gym.make(id_, **settings)
    P, initial, ends, costs = (np.asarray(part) for part in tables(env))
    mdp = LayeredMDP.from_arrays(P, initial, horizon=horizon, ends=ends)
    endless = never_ending(P, initial, ends, costs, horizon)
    given = losses(costs, horizon, scale)
    free = np.concatenate([given, np.zeros((T, horizon, 1, costs.shape[1]))], axis=2)
    told = {"support": mdp.P > 0}
    between = (min(0.0, given.min()), given.max())
    learners = {
        "SCB-RL, told the support": (SCBRL.for_mdp(mdp, T, known=told), mdp, given),
        "SCB-RL": (SCBRL.for_mdp(mdp, T), mdp, given),
        "policy optimization": (PolicyOptimization.for_mdp(endless), endless, free),
        "UOB-REPS, told range and support": (
            UOBREPS.for_mdp(mdp, T, loss_range=between, **told), mdp, given,
        ),
        "uniform": (UniformPolicy.for_mdp(mdp), mdp, given),
    }  # fmt: skip
    out = {}
    for label, (learner, world, rows) in learners.items():
        simulate_mdp(learner, world, MDPReplay(rows), 2, checkpoints=[2], workers=1)  # compile
        began = time.process_time()
        result = simulate_mdp(
            learner, world, MDPReplay(rows), T, SEEDS, seed=1, checkpoints=POINTS, workers=1
        )
        out[label] = {
            "regret": result.pseudo_regret.mean(axis=0),
            "per_second": SEEDS * T / (time.process_time() - began),
            "explored": int(np.mean(result.explored)),
            "solves": int(np.sum(result.solves)),
            "unsolved": int(np.sum(result.unsolved)),
        }
        print(name, label, out[label], flush=True)
    return mdp, horizon, out, through_adapter(env, mdp, horizon)


def through_adapter(env, mdp, horizon):
    """Episodes per second of CPU time, with the environment's own rewards."""
    learner = SCBRL.for_mdp(mdp, ADAPTER, known={"support": mdp.P > 0}, seed=1)
    began = time.process_time()
    play(learner, Layered(env, horizon), ADAPTER, seed=2)
    assert learner.certificate.unsolved == 0
    return ADAPTER / (time.process_time() - began)


def main():
    lines = [
        "# SCB-RL in Gymnasium's grids",
        "",
        "Made by `python benchmarks/scb_rl_gym.py`; do not edit. Besides the environment's own",
        "costs (FrozenLake's as they are, CliffWalking's divided by 100) every move in one of",
        f"three directions costs {TOLL}, another direction in each eighth of the {T:,} episodes.",
        f"Expected regret against the best fixed policy, exact, {SEEDS} run. The",
        "transitions are unknown to all learners; where it says so, a learner is told which of",
        "them are possible. UOB-REPS is told the range of the losses, too; policy optimization",
        "plays the same world with the end as a state like others. Episodes per second of CPU",
        "time in simulations, the exact regret included.",
        "",
    ]
    figures = {}
    for name in ENVIRONMENTS:
        mdp, horizon, out, played = measured(name)
        states = sum(mdp.layers.sizes)
        possible = f"{np.mean(mdp.P > 0):.1%} of {mdp.P.size:,} transitions possible"
        title = f"## {name}, {horizon} steps"
        lines += [title, "", f"{states:,} states in {horizon} layers, {possible}.", ""]
        last = ["explored", "episodes/s", "solves", "unsolved"]
        head = ["episodes", *(f"{t:,}" for t in POINTS), *last]
        lines += ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
        for label, one in out.items():
            numbers = [f"{r:,.1f}" for r in one["regret"]]
            rest = [f"{one[k]:,.0f}" for k in ("explored", "per_second", "solves", "unsolved")]
            lines.append("| " + " | ".join([label, *numbers, *rest]) + " |")
        lines += [
            "",
            "Through the adapter, with ask and tell and the environment's own rewards: "
            f"{played:,.0f} episodes per second (SCB-RL told the support, T = {ADAPTER:,}).",
            "",
        ]
        figures[name] = out
    lines += [f"![Regret]({FIGURE.name})", ""]
    write_tables("scb-rl-gym", "\n".join(lines))
    draw(figures)


def draw(figures):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "grids"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(figures), figsize=(9, 3.6), layout="constrained")
    for (name, out), axis in zip(figures.items(), axes, strict=True):
        for label, one in out.items():
            style = "o--" if label == "uniform" else "o-"
            axis.plot(POINTS, one["regret"], style, label=label, markersize=3)
        axis.set(xlabel="episodes", ylabel="regret", title=name)
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3, fontsize="small")
    figure.savefig(FIGURE, metadata={"Date": None})
    FIGURE.write_text("\n".join(line.rstrip() for line in FIGURE.read_text().splitlines()) + "\n")
    pyplot.close(figure)


if __name__ == "__main__":
    main()
