"""The tables of what benchmarks/policy_optimization.py has measured."""

import json
from collections import defaultdict
from pathlib import Path
from textwrap import fill

import numpy as np
from scb_rl_table import ADVERSARIES

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
DATA = RESULTS / "data" / "policy_optimization"
FIGURE = RESULTS / "policy-optimization-taxi.svg"
OURS, THEIRS = "policy optimization", "SCB-RL practical"
APO = {
    "APO-MVP": {},
    "bonus 0.1": {"bonus": 0.1},
    "no restart": {"restart": False},
    "bonus 0.1, no restart": {"bonus": 0.1, "restart": False},
}
# What of the table of SCB-RL is shown beside them.
BESIDE = (THEIRS, "UOB-REPS, true range", "UOB-REPS, true range, practical", "uniform")
ROUNDING = 0.005  # figures are given to two decimals

HEAD = "# Policy optimization: what was measured\n"
CHOICES = """## What was tried on the way

The calibration worlds above, T = 10,000, 2 seeds; variants of the code, not options of the class.
Mean over oblivious adversaries, mean over adaptive ones:

| | oblivious | adaptive |
|---|---|---|
| rate 1, implicit 1, bonus 1; Q from the losses of the rest of the episode, as in the paper | 0.06 | 0.37 |
| the same, Q through the model | 0.02 | 0.29 |
| rate 0.5, implicit 0.3, bonus 1, Q through the model | 0.01 | 0.20 |
| the same, losses centred by the control variate | -0.04 | 0.13 |
"""  # noqa: E501
REGRET = "## Regret beside SCB-RL\n"
FULL = "## Beside a learner that sees everything\n"
LARGE = "## Regret at 500 states\n"
SPEED = "## Time per episode\n"
AGAINST = """Beside SCB-RL at 500 states (practical, T = 1,000; told the support where there are 5
successors), an episode of each in turn, mean CPU time in ms, and the ratio. While SCB-RL explores
it is fast; *all* is the mean over T episodes, if the others take as long as those that were played.
*Before* is SCB-RL before it kept few exploration policies, renewed its bounds lazily and solved
over lists of possible transitions, as it was measured then while playing:
"""
BEFORE = {0: 41.6, 5: 85.8}  # ms an episode, docs/guide/scb-rl.md

CONSTANTS = "## Constants\n"


def page(cells):
    """The whole page, as far as there are data."""
    parts = [HEAD, *regret(cells), *full_information(cells)]
    for name, write in (
        ("large", large),
        ("sizes", speed),
        ("against", against),
        ("taxi", taxi),
        ("calibrate", calibration),
    ):
        path = DATA / f"{name}.json"
        if path.exists():
            parts.append(write(json.loads(path.read_text())))
    return "\n".join([*parts, CHOICES])


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def regret(cells):
    """Of both learners, in the cells and seeds that both have played; worlds as they come there."""
    both = defaultdict(lambda: ([], []))
    for (learner, *place, seed), value in cells.items():
        other = (THEIRS, *place, seed)
        if learner == OURS and other in cells:
            mine, its = both[tuple(place)]
            mine.append(value)
            its.append(cells[other])
    yield REGRET
    sizes = sorted({(int(T), world): None for world, _, T in both}, key=lambda place: place[0])
    rows, exceptions = [], []
    for T, world in sizes:
        places = [(world, against, str(T)) for against in ADVERSARIES]
        means = {p[1]: [np.mean(v) for v in both[p]] for p in places if p in both}
        entries = []
        for looks in (False, True):
            some = [v for k, v in means.items() if ADVERSARIES[k].looks == looks]
            entries += [f"{np.mean([v[i] for v in some]):.2f}" for i in (0, 1)]
            entries += [f"{max(v[i] for v in some):.2f}" for i in (0, 1)]
        above = [k for k, v in means.items() if v[0] > max(v[1], 1.3 * v[1]) + ROUNDING]
        exceptions += [(T, world, k, *means[k]) for k in above]
        share = f"{len(means) - len(above)} of {len(means)}"
        rows.append([f"{T:,}", world, str(len(both[places[0]][0])), *entries, share])
    yield table(
        ["T", "world", "seeds", "oblivious, mean: ours", "SCB-RL", "worst: ours", "SCB-RL",
         "adaptive, mean: ours", "SCB-RL", "worst: ours", "SCB-RL", "at most 1.3 times"], rows,
    )  # fmt: skip
    if exceptions:
        played = sum(len({k for w, k, t in both if (int(t), w) == place}) for place in sizes)
        below = sum(a < 0 and b < 0 for *_, a, b in exceptions)
        yield (
            f"Of {played} cells {len(exceptions)} are above that; in {below} of them both have a "
            "regret below 0, and ours is nearer to it:\n"
        )
        yield table(
            ["T", "world", "adversary", "ours", "SCB-RL"],
            [[f"{T:,}", w, k, f"{a:.3f}", f"{b:.3f}"] for T, w, k, a, b in exceptions],
        )
    last = max(T for T, _ in sizes if T <= 10_000)
    yield f"Every cell at T = {last:,}, ours / SCB-RL; a star is for adversaries that watch:\n"
    names = [world for T, world in sizes if last == T]
    yield table(
        ["", *names],
        [
            [k + ("*" if ADVERSARIES[k].looks else "")]
            + [" / ".join(f"{np.mean(v):.2f}" for v in both[w, k, str(last)]) for w in names]
            for k in ADVERSARIES
        ],
    )


def full_information(cells):
    """APO-MVP beside those who see only what they pay, in the cells and seeds that all have."""
    names = [*APO, OURS, *BESIDE]
    found = defaultdict(lambda: defaultdict(list))
    for learner, *place, seed in cells:
        everybody = [(name, *place, seed) for name in names]
        if learner in APO and all(one in cells for one in everybody):
            found[tuple(place)][learner].append(seed)
    means = {
        place: [np.mean([cells[name, *place, seed] for seed in learners["APO-MVP"]])
                for name in names]
        for place, learners in found.items() if "APO-MVP" in learners
    }  # fmt: skip
    if not means:
        return
    counts = {len(learners["APO-MVP"]) for learners in found.values()}
    yield FULL.format(seeds=" or ".join(map(str, sorted(counts))))
    rows = []
    for T, world in sorted({(int(T), world): None for world, _, T in means}, key=lambda x: x[0]):
        for looks in (False, True):
            some = [v for (w, k, t), v in means.items()
                    if (w, t) == (world, str(T)) and ADVERSARIES[k].looks == looks]  # fmt: skip
            kind = "adaptive" if looks else "oblivious"
            rows.append([f"{T:,}", world, kind, *[f"{x:.3f}" for x in np.mean(some, axis=0)]])
    yield table(["T", "world", "adversaries", *names], rows)
    theirs = names.index(THEIRS)
    for name in APO:
        mine = names.index(name)
        above = [place for place, v in means.items() if v[mine] > v[theirs] + ROUNDING]
        worst = max(means, key=lambda place: means[place][mine])
        yield (
            f"- {name}: above SCB-RL (plus {ROUNDING}) in {len(above)} of {len(means)} cells; its "
            f"worst cell {means[worst][mine]:.2f} ({worst[0]}, {worst[1]}, T = {int(worst[2]):,})"
        )
    yield ""


def large(data):
    rows = defaultdict(dict)
    for key, (early, late) in data.items():
        against, name = key.split("|")
        rows[against][name] = f"{early:.4f}, {late:.4f}"
    names = list(next(iter(rows.values())))
    lines = [[k, *[v[n] for n in names]] for k, v in rows.items()]
    return LARGE + "\n" + table(["", *names], lines)


def successors(row):
    return str(row["successors"] or "any")


def speed(data):
    rows = [
        [
            f"{d['S']:,}", successors(d), f"{1e3 * d['first']:.3f}", f"{1e3 * d['last']:.3f}",
            f"{1 / d['last']:,.0f}", f"{d['seen']:,}", f"{d['bytes'] / 1e6:.2f}",
            f"{d['saved'] / 1e6:.2f}",
        ]
        for d in data
    ]  # fmt: skip
    head = ["states", "successors", "ms early", "ms late", "episodes/s late", "transitions seen"]
    return SPEED + "\n" + table([*head, "MB in memory", "MB saved"], rows)


def against(data):
    lines = []
    for d in data:
        counts = {"exploring": d["explored"], "playing": d["T"] - d["explored"]}
        times = {k: (d[k], d["ours " + k]) for k in counts}
        both = [[counts[k] * time / d["T"] for time in times[k]] for k in counts]
        times["all"] = tuple(np.sum(both, axis=0))
        measured = {"exploring": d["explored"], "playing": d["played"], "all": d["T"]}
        for phase, (a, b) in times.items():
            numbers = [f"{1e3 * a:.1f}", f"{1e3 * b:.2f}", f"{a / b:,.0f}"]
            old = BEFORE[d["successors"]]
            then = [f"{old:.1f}", f"{old / (1e3 * b):,.0f}"] if phase == "playing" else ["", ""]
            lines.append([successors(d), phase, str(measured[phase]), *numbers, *then])
    head = [
        "successors",
        "SCB-RL's phase",
        "episodes",
        "SCB-RL",
        "ours",
        "ratio",
        "before",
        "ratio",
    ]
    return AGAINST + "\n" + table(head, lines)


def taxi(data):
    draw(data)
    H, T = data["horizon"], data["episodes"]
    about = fill(
        f"Gymnasium's Taxi-v4 (500 states, 6 actions), horizon {H}: {sum(data['layers']):,} states "
        f"in {H} layers. Besides its own rewards every move in one direction costs "
        f"{data['toll']:g}, another direction in each quarter of the {T:,} episodes. Played "
        "through `unbounded.adapters.gymnasium`; expected regret against the best fixed policy, "
        "exact.",
        100,
    )
    rows = [
        [f"{t:,}", f"{a:,.0f}", f"{b:,.0f}", f"{a / b:.2f}"]
        for t, a, b in zip(data["points"], data["ours"], data["uniform"], strict=True)
    ]
    after = fill(
        f"{data['per_second']:,.0f} episodes per second of CPU time, the environment included; "
        f"{data['seen']:,} different transitions seen. Mean return of the first tenth of the "
        f"episodes {data['first']:.1f}, of the last {data['last']:.1f}.",
        100,
    )
    figures = table(["episodes", "ours", "uniform", "ratio"], rows)
    return f"## Taxi\n\n{about}\n\n{figures}\n{after}\n\n![Regret in Taxi]({FIGURE.name})\n"


def draw(data):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "taxi"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5, 3), layout="constrained")
    axes.plot(data["points"], data["uniform"], "o--", label="uniform")
    axes.plot(data["points"], data["ours"], "o-", label="PolicyOptimization")
    axes.set(xlabel="episodes", ylabel="regret", title=f"Taxi with tolls, {data['horizon']} steps")
    axes.legend()
    figure.savefig(FIGURE, metadata={"Date": None})
    FIGURE.write_text("\n".join(line.rstrip() for line in FIGURE.read_text().splitlines()) + "\n")
    pyplot.close(figure)


def calibration(data):
    rows = []
    for name, kinds in data.items():
        row = [name]
        for some in kinds.values():
            worst = max(some, key=some.get)
            row.append(f"{np.mean(list(some.values())):.3f}, {some[worst]:.2f} ({worst})")
        rows.append(row)
    return CONSTANTS + "\n" + table(["", "oblivious", "adaptive"], rows)
