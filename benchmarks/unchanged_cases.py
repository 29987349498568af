"""Short plays that reach every line of every kernel, for `unchanged.py`.

Data only: nothing is imported from the package. Learners and settings have the names of before, to
which the section "names" of `unchanged.py` finds those of today.
"""

from __future__ import annotations

from typing import Any

Settings = dict[str, Any]

# In settings of learners for MDPs:
HIDDEN = "hidden"  # what is possible, as if only the last state of the last layer were there
TRUE = "true"  # the world's own transitions
POSSIBLE = "possible"  # which of its transitions are possible
LIKELY = "likely"  # which of its transitions are likely, told as if no others were possible

# ---------------------------------------------------------------------- bandits

T = {"rounds": 2000}
COSTS = {"tune": "scale", "implicit": 0.0}
PAPER = {"profile": "paper"}
BANDITS: dict[str, list[Settings]] = {  # all that are not here play with {}
    "AHB": [{}, {"gamma_const": 0.5}],
    "AdaFTRL": [{}, {"strength": 0.3}],
    "AdaINF": [
        {}, {"robust": False}, {"robust": False, "exploration": 1.0}, {"trim": 2},
        {"exploration": 1e-300}, {"robust": False, "trim": 1},
    ],
    "AdaTINF": [T],
    "Banker": [T],
    "CostSCB": [
        {}, COSTS, {"outliers": 3}, {"outliers": "sqrt"},
        {"outliers": "sqrt", "tune": "scale", "rate": 1.0}, {"lower": -1e3}, {"best_reward": 5.0},
        {**COSTS, "late": "proved"}, {**COSTS, "late": "proved", "outliers": 2, "rate": 1.0},
    ],
    "CostSCBIX": [{}, {"outliers": 3}, {"delta": 0.01}, {"lower": -2.0}, {"best_reward": 1e10}],
    "DiscountedThompson": [{"half_life": 7}, {"half_life": 300}],
    "DiscountedUCB": [{"half_life": 7}],
    "EpsilonGreedy": [{}, {"epsilon": 0.1}, {"epsilon": 0.1, "step": 0.25}],
    "Exp3": [{}, T, {"loss_range": (-2.0, 3.0)}],
    "Exp3Auer": [T, {"gamma": 0.1}, {"gamma": 1.0}],
    "Exp3IX": [{}, T, {**T, "delta": 0.05}],
    "Exp3P": [{**T, "form": form} for form in ("bubeck", "auer", "audibert")],
    "Exp3S": [T, {**T, "switches": 3}],
    "FixedShare": [
        {"window": 7}, {"window": 50, "outliers": 2, "rate": 2.0}, {"window": 20, "lower": -2.0},
    ],
    "HTINF": [{}, {"sigma": 0.5, "order": 1.5}],
    "INF": [T],
    "LogThompson": [{}, {"stream": 3}],
    "RestartingCostSCB": [
        {"every": 7}, {"detect": "page-hinkley", "threshold": 1.0, "samples": 3},
        {"every": 100, "detect": "cusum", "threshold": 1.0, "samples": 3, "lower": -2.0},
    ],
    "RobustUCB": [{**T, "moment": 1e-4}, {"rounds": 50, "moment": 1e-3, "order": 1.5}],
    "SCB": [
        {}, {"mixing": 1.0}, PAPER, {**PAPER, "clip": "range"}, {**PAPER, "threshold": "largest"},
        {**PAPER, "mixing": 0.0}, {**PAPER, "clip": "none", "ablation": True}, {"rate": 0.1},
        {"clip": "scale", "threshold": "largest"},
    ],
    "SCBIX": [
        {}, {"mixing": 1.0}, PAPER, {**PAPER, "beta_cap": 0.5, "delta": 0.01},
        {**PAPER, "threshold": "largest"}, {**PAPER, "mixing": 0.0},
        {**PAPER, "clip": "none", "ablation": True},
    ],
    "SFMAB": [{}, {"exploration": "adaptive"}],
    "SlidingWindowUCB": [{"window": 7}],
    "TsallisINF": [{}, {"loss_range": (-2.0, 3.0)}],
    "UMABG": [{}, *({"exploration": how, **T} for how in ("fixed", "capped"))],
    "UniINF": [T],
}  # fmt: skip
STREAMS = ("mixed", "hostile", "rising", "falling")  # of losses, see `stream` of `unchanged.py`
FEW = (1, 2, 5)  # arms
MANY = (70, 130)  # learners are lazy
ROUNDS = {"few": 60, "many": 120}

# More rounds, other arms: (learner, settings, arms, stream, rounds)
MORE_BANDITS: list[tuple[str, Settings, int, str, int]] = []

# ---------------------------------------------------------------------- MDPs

MDPS: dict[str, list[Settings]] = {  # all that are not here play with {}
    "APOMVP": [{}, {"bonus": 0.1, "restart": False}],
    "CostSCBRL": [
        {}, {"profile": "theory"}, {"outliers": 2}, {"rate": 2.0, "implicit": 0.5},
        {"centre": 0.0, "implicit": 0.3}, {"episodes": None}, {"skip": 0.0, "width": 0.01},
        {"lower": -3.0}, {"best_reward": 2.0}, {"support": POSSIBLE},
    ],
    "ExploreThenCommit": [{}, {"explore": 10}],
    "IndependentSCB": [{}, {"clip": "range"}],
    "MVP": [{}, {"constants": "paper"}, {"bonus": 0.05, "total": 2.0}],
    "OREPS": [{"transitions": TRUE}, {"transitions": TRUE, "loss_range": (-2.0, 3.0)}],
    "PolicyOptimisation": [
        {}, {"clip": "scale", "rate": 1.0, "implicit": 1.0, "bonus": 1.0, "mixing": 2.0},
    ],
    "RFELP": [
        {}, {"early_stop": 5}, {"share_counts": False}, {"constants": "paper"},
        {"explorer": "ucbvi", "early_stop": 2}, {"support": POSSIBLE},
    ],
    "SCBRL": [
        {}, {"episodes": None}, {"profile": "theory"}, {"profile": "theory", "episodes": None},
        {"clip": "scale", "estimator": "ftrl_only"}, {"clip": "scale", "threshold": "largest"},
        {"explorer": "ucbvi"}, {"explorer": "ucbvi", "bonus": "paper"},
        {"explorer": "oracle", "transitions": TRUE},
        {"explorer": "oracle", "transitions": TRUE, "episodes": None},
        {"profile": "theory", "explorer": "oracle", "transitions": TRUE},
        {"literal": True, "tight": True}, {"skip": 0.0, "width": 0.01},
        {"early_stop": 0}, {"early_stop": 3, "exploration_cap": 0.2}, {"share_counts": False},
        {"mixing": 0.0, "ablation": True}, {"centre": 0.0}, {"few": False}, {"renewal": "lazy"},
        {"renewal": "lazy", "few": False, "centre": 0.0}, {"renewal": "lazy", "episodes": None},
        {"renewal": "lazy", "estimator": "ftrl_only"},
        {"few": False, "episodes": None, "early_stop": 0},
        {"support": POSSIBLE}, {"support": POSSIBLE, "renewal": "lazy"},
        {"support": POSSIBLE, "episodes": None}, {"support": POSSIBLE, "few": False},
        {"support": POSSIBLE, "profile": "theory"}, {"kappa": 0.1, "tolerance": 1e-3},
    ],
    "UCBVI": [{}, {"constants": "paper"}],
    "UOBREPS": [
        {}, {"loss_range": (-2.0, 3.0), "eta_factor": 3.0, "width_factor": 0.02},
        {"support": POSSIBLE},
    ],
}  # fmt: skip
EPISODES = 150
MDP_STREAMS = {"mixed": "dirichlet", "hostile": "lock that slips"}  # and in which worlds

# Other worlds and lengths: (learner, settings, world, stream, episodes)
MORE_MDPS: list[tuple[str, Settings, str, str, int]] = [
    ("SCBRL", {}, "few successors", "mixed", 60),
    ("SCBRL", {"support": POSSIBLE}, "few successors", "mixed", 60),
    ("SCBRL", {"support": POSSIBLE, "renewal": "lazy"}, "few successors", "mixed", 60),
    ("SCBRL", {"support": POSSIBLE, "few": False}, "few successors", "hostile", 60),
    ("SCBRL", {"explorer": "oracle", "transitions": TRUE}, "few successors", "mixed", 60),
    ("CostSCBRL", {"support": POSSIBLE}, "few successors", "mixed", 60),
    ("UOBREPS", {"support": POSSIBLE}, "few successors", "mixed", 60),
    ("OREPS", {"transitions": TRUE}, "few successors", "mixed", 60),
    *((name, {}, "ends", "mixed", 100) for name in (
        "APOMVP", "CostSCBRL", "ExploreThenCommit", "IndependentSCB", "MVP",
        "RFELP", "SCBRL", "UCBVI", "UOBREPS", "UniformPolicy",
    )),
    ("OREPS", {"transitions": TRUE}, "ends", "mixed", 100),
    ("SCBRL", {"few": False}, "ends", "mixed", 100),
    ("SCBRL", {}, "one state", "mixed", 60),
    ("SCBRL", {"support": LIKELY}, "dirichlet", "mixed", 100),
    ("SCBRL", {"support": LIKELY, "renewal": "lazy"}, "dirichlet", "mixed", 100),
    ("SCBRL", {"support": LIKELY}, "few successors", "mixed", 60),
    ("SCBRL", {"support": HIDDEN}, "lock of three", "mixed", 150),
]  # fmt: skip

# ---------------------------------------------------------------------- simulations

SIMULATED = 40  # rounds or episodes
AGAINST = (("SCB", 40), ("Uniform", 6))  # every adversary for bandits: learner, arms
MORE_AGAINST = (("OutsideWindow", "SCB", 6), ("OutsideWindow", "EpsilonGreedy", 6))
REACT = {"trigger": 0.0, "spike_rate": 0.5, "noise": 0.5}
ADVERSARIES: list[tuple[str, Settings]] = [  # beside their defaults
    ("Latencies", {"rate": 0.3}),
    ("Outliers", {"count": 0}),
    ("Program", {"phases": [
        {"end": 0.3, "reaction": 1, "spike": 0, **REACT},
        {"end": 0.6, "reaction": 2, "spike": 1, "margin": 2.0, **REACT},
        {"reaction": 3, "spike": 2, "margin": 2.0, "growth": 10.0, **REACT},
    ]}),
    ("Spikes", {"rate": 0.5, "sign": "both"}),
    ("StochasticGap", {"scale": 3.0, "shift": -2.0}),
    ("StochasticGap", {"scale": 1e305}),
]  # fmt: skip
SIMULATIONS = (  # every adversary for MDPs: learner, world
    ("UniformPolicy", "lock that slips"), ("SCBRL", "dirichlet"),
)  # fmt: skip
MORE_SIMULATIONS: list[tuple[str, float, str, Settings, str]] = [
    ("stochastic", 1.0, "MVP", {}, "dirichlet"),  # which takes rewards only
    ("stochastic", 1.0, "RFELP", {"episodes": 2}, "dirichlet"),  # all is explored soon
    ("stochastic", 1.0, "SCBRL", {}, "ends"),
]

# ---------------------------------------------------------------------- programs over occupancy

# Method, world, width of the boxes, decades of losses, solves, decades of weights, and whether
# boxes hold only what is possible
SOLVES: list[tuple[str, str, float, *tuple[int, ...]]] = [
    *((method, "dirichlet", width, 1, 4, 1) for method in ("ftrl", "kl")
      for width in (0.0, 0.02, 0.3, 1.0)),
    *((method, "tiny", width, decades, 2, of_weights) for method in ("ftrl", "kl")
      for width in (0.0, 0.02, 0.3) for decades, of_weights in ((20, 20), (30, 0))),
    *(("ftrl", "dirichlet", width, decades, 3, of_weights) for width in (0.0, 0.02, 0.3)
      for decades, of_weights in ((30, 0), (4, 8), (100, 1), (15, 15))),
    *(("ftrl", "hard to reach", 0.02, decades, 3, 0) for decades in (30, 60)),
    *(("ftrl", "lock that slips", width, 30, 3, 0) for width in (0.02, 0.3)),
    *(("ftrl", "dirichlet, larger", 0.02, *numbers) for numbers in ((30, 3, 0), (4, 3, 8))),
    *(("ftrl", "few of twenty", 0.3, decades, 3, of_weights, True)
      for decades, of_weights in ((1, 1), (30, 0))),
    ("ftrl", "few successors", 0.0, 1, 3, 1),
    ("kl", "hard to reach", 0.3, 5, 8, 2),
]  # fmt: skip
BOUNDS = ("dirichlet", "lock that slips", "ends")  # worlds

# ---------------------------------------------------------------------- what is not reached

_COMPILED = "only compiled play calls a pointer from Python: learners in Python, in recordings"
_CONCAVE = (
    "a step along a direction of ascent is taken at last, by Armijo's condition or by Wolfe's: no "
    "arguments are known for which forty tries fail, of any size that floats have"
)
_LONG = "the other end of a box is 1 to rounding only after some million visits: tests of the box"
UNREACHED: dict[str, str] = {
    "confidence._about: break": _LONG,
    "kl._line_search: return trial, False": _CONCAVE,
    "kl._ascend: steps = limit  # nothing more to gain: certify what there is": _CONCAVE,
    "kl._ascend: assign(v, W.v_old)": _CONCAVE,
    "kl._ascend: value = evaluate(lay, lo, hi, v, ln_P, theta, W) (2)": _CONCAVE,
    "bandit_loops._fill: losses_of(params, state, t, last_arm, q, out)": _COMPILED,
    "mdp_loops._fill: losses_of(params, t, q, lay, out)": _COMPILED,
}
"""Lines that no play reaches, by kernel and text, and why."""
