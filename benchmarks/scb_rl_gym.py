"""SCB-RL in Gymnasium's FrozenLake 8x8 and CliffWalking with adversarial losses; exact regret.

    python benchmarks/scb_rl_gym.py

Each step has the environment's own cost, and one direction costs more: another one in each quarter
of the episodes. The transitions are the environment's tables, which the learner does not know; it
is told which transitions are possible in a second run. Regret is exact and against the best fixed
policy. Then the same learner plays through the adapter, for episodes per second. Writes
docs/results/scb-rl-gym.md and its figure.
"""

import time

import gymnasium as gym
import numpy as np
from scb_rl_table import RESULTS

from unbounded import SCBRL, LayeredMDP, UniformPolicy, simulate_mdp
from unbounded.adapters.gymnasium import Layered, play, tables
from unbounded.adversaries.mdps import MDPReplay

PAGE, FIGURE = RESULTS / "scb-rl-gym.md", RESULTS / "scb-rl-gym.svg"
T, TOLL, POINTS = 4000, 0.5, [100, 300, 1000, 2000, 3000, 4000]
ENVIRONMENTS = {
    "FrozenLake 8x8": ("FrozenLake-v1", {"map_name": "8x8"}, 16, 1.0),
    "CliffWalking": ("CliffWalking-v1", {}, 14, 0.01),
}
SEEDS = 1


def losses(costs, horizon, scale):
    """Of every episode, (T, H, S, A): costs times ``scale``, and the toll on one direction."""
    directions = 4 * np.arange(T) // T
    tolls = TOLL * (np.arange(costs.shape[1]) == directions[:, None])
    one = np.clip(scale * costs, -1.0, 1.0) + tolls[:, None, :]
    return np.broadcast_to(one[:, None], (T, horizon, *costs.shape))


def measured(name):
    id_, settings, horizon, scale = ENVIRONMENTS[name]
    env = gym.make(id_, **settings)
    P, initial, ends, costs = tables(env)
    mdp = LayeredMDP.from_arrays(P, initial, horizon=horizon, ends=ends)
    adversary = MDPReplay(losses(np.asarray(costs), horizon, scale))
    learners = {
        "SCB-RL": SCBRL.for_mdp(mdp, T),
        "SCB-RL, told the support": SCBRL.for_mdp(mdp, T, support=mdp.P > 0),
        "uniform": UniformPolicy.for_mdp(mdp),
    }
    out = {}
    for label, learner in learners.items():
        began = time.process_time()
        result = simulate_mdp(
            learner, mdp, adversary, T, SEEDS, seed=1, checkpoints=POINTS, workers=1
        )
        out[label] = {
            "regret": result.pseudo_regret.mean(axis=0),
            "per_second": SEEDS * T / (time.process_time() - began),
            "explored": int(np.mean(result.explored)),
            "unsolved": int(np.sum(result.unsolved)),
        }
        print(name, label, out[label], flush=True)
    learner = SCBRL.for_mdp(mdp, T, seed=1)
    began = time.process_time()
    play(learner, Layered(env, horizon), 500, seed=2)
    played = 500 / (time.process_time() - began)
    return mdp, horizon, out, played


def main():
    lines = [
        "# SCB-RL in Gymnasium's grids",
        "",
        "Made by `python benchmarks/scb_rl_gym.py`; do not edit. Besides the environment's own",
        "costs (FrozenLake's as they are, CliffWalking's by 100) every move in one direction",
        f"costs {TOLL}, another direction in each quarter of the {T:,} episodes. Expected regret",
        f"against the best fixed policy, exact, {SEEDS} run; the transitions are unknown",
        "to all learners, and one is told which of them are possible. Episodes per second of CPU",
        "time in simulations, the exact regret included.",
        "",
    ]
    figures = {}
    for name in ENVIRONMENTS:
        mdp, horizon, out, played = measured(name)
        states = sum(mdp.layers.sizes)
        lines += [f"## {name}, {horizon} steps: {states} states in {horizon} layers", ""]
        head = ["episodes", *(f"{t:,}" for t in POINTS), "explored", "episodes/s", "unsolved"]
        lines += ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
        for label, one in out.items():
            numbers = [f"{r:,.1f}" for r in one["regret"]]
            rest = [f"{one['explored']}", f"{one['per_second']:,.0f}", f"{one['unsolved']}"]
            lines.append("| " + " | ".join([label, *numbers, *rest]) + " |")
        lines += [
            "",
            f"By ask and tell through the adapter: {played:,.0f} episodes per second.",
            "",
        ]
        figures[name] = out
    lines += [f"![Regret]({FIGURE.name})", ""]
    PAGE.write_text("\n".join(lines))
    draw(figures)


def draw(figures):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "grids"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(figures), figsize=(9, 3), layout="constrained")
    for (name, out), axis in zip(figures.items(), axes, strict=True):
        for label, one in out.items():
            style = "o--" if label == "uniform" else "o-"
            axis.plot(POINTS, one["regret"], style, label=label, markersize=3)
        axis.set(xlabel="episodes", ylabel="regret", title=name)
    axes[0].legend(fontsize="small")
    figure.savefig(FIGURE, metadata={"Date": None})
    FIGURE.write_text("\n".join(line.rstrip() for line in FIGURE.read_text().splitlines()) + "\n")
    pyplot.close(figure)


if __name__ == "__main__":
    main()
