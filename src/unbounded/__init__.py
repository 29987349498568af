"""Learning when nobody knows the scale of the losses."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from unbounded import adapters as adapters
    from unbounded import adversaries as adversaries
    from unbounded import bandits as bandits
    from unbounded import bounds as bounds
    from unbounded import durable as durable
    from unbounded import experiments as experiments
    from unbounded import extend as extend
    from unbounded import mdps as mdps
    from unbounded import report as report
    from unbounded import settings as settings
    from unbounded import testing as testing
    from unbounded import worlds as worlds
    from unbounded._recommend import Recommendation, recommend
    from unbounded._warm import warm
    from unbounded.advice.cost_exp4 import CostExp4
    from unbounded.advice.per_context import PerContext
    from unbounded.advice.scb_exp4 import SCBExp4
    from unbounded.advice.simulate import AdviceSimulation, simulate_advice
    from unbounded.bandits.ada_inf import AdaINF
    from unbounded.bandits.baselines.ada_ftrl import AdaFTRL
    from unbounded.bandits.baselines.ada_hedge import AdaHedge
    from unbounded.bandits.baselines.ada_tinf import AdaTINF
    from unbounded.bandits.baselines.ahb import AHB
    from unbounded.bandits.baselines.banker import Banker
    from unbounded.bandits.baselines.discounted_thompson import DiscountedThompson
    from unbounded.bandits.baselines.discounted_ucb import DiscountedUCB
    from unbounded.bandits.baselines.doubling_tsallis_inf import DoublingTsallisINF
    from unbounded.bandits.baselines.epsilon_greedy import EpsilonGreedy
    from unbounded.bandits.baselines.exp3 import Exp3
    from unbounded.bandits.baselines.exp3_auer import Exp3Auer
    from unbounded.bandits.baselines.exp3_ix import Exp3IX
    from unbounded.bandits.baselines.exp3_p import Exp3P
    from unbounded.bandits.baselines.exp3_s import Exp3S
    from unbounded.bandits.baselines.fixed_share import FixedShare
    from unbounded.bandits.baselines.ht_inf import HTINF
    from unbounded.bandits.baselines.inf import INF
    from unbounded.bandits.baselines.log_thompson import LogThompson
    from unbounded.bandits.baselines.restarting_cost_scb import RestartingCostSCB
    from unbounded.bandits.baselines.robust_ucb import RobustUCB
    from unbounded.bandits.baselines.sf_mab import SFMAB
    from unbounded.bandits.baselines.sliding_window_ucb import SlidingWindowUCB
    from unbounded.bandits.baselines.solo_ftrl import SOLOFTRL
    from unbounded.bandits.baselines.tsallis_inf import TsallisINF
    from unbounded.bandits.baselines.tsallis_inf_rv import TsallisINFRV
    from unbounded.bandits.baselines.ucb1 import UCB1
    from unbounded.bandits.baselines.umab_g import UMABG
    from unbounded.bandits.baselines.umab_nn import UMABNN
    from unbounded.bandits.baselines.uni_inf import UniINF
    from unbounded.bandits.baselines.uniform import Uniform
    from unbounded.bandits.cost_scb import CostSCB
    from unbounded.bandits.cost_scb_ix import CostSCBIX
    from unbounded.bandits.scb import SCB
    from unbounded.bandits.scb_ix import SCBIX
    from unbounded.core.occupancy.mdp import LayeredMDP
    from unbounded.core.occupancy.solver import SolverWarning
    from unbounded.jit.files import CacheWarning
    from unbounded.learners.bandit import Choice, Learner, ScaleWarning
    from unbounded.learners.by_arm import ByArm
    from unbounded.learners.episodes import Plan
    from unbounded.learners.mdp import MDPLearner
    from unbounded.learners.python.bandit import PythonLearner
    from unbounded.learners.python.mdp import PythonMDPLearner
    from unbounded.mdps.baselines.apo_mvp import APOMVP
    from unbounded.mdps.baselines.explore_then_commit import ExploreThenCommit
    from unbounded.mdps.baselines.independent_scb import IndependentSCB
    from unbounded.mdps.baselines.o_reps import OREPS
    from unbounded.mdps.baselines.uniform_policy import UniformPolicy
    from unbounded.mdps.baselines.uob_reps import UOBREPS
    from unbounded.mdps.cost_policy_optimization import CostPolicyOptimization
    from unbounded.mdps.cost_scb_rl import CostSCBRL
    from unbounded.mdps.mvp import MVP
    from unbounded.mdps.policy_optimization import PolicyOptimization
    from unbounded.mdps.rf_elp import RFELP
    from unbounded.mdps.scb_rl import SCBRL
    from unbounded.mdps.ucbvi import UCBVI
    from unbounded.simulation.adversary import MDPAdversary
    from unbounded.simulation.bandit import Simulation, simulate
    from unbounded.simulation.compare import Comparison, compare, compare_mdp
    from unbounded.simulation.mdp import MDPSimulation, simulate_mdp

# Everything is imported when it is asked for: a program waits for what it uses, and for no more.
_NAMES = {
    "_recommend": "Recommendation, recommend",
    "_warm": "warm",
    "advice.cost_exp4": "CostExp4",
    "advice.per_context": "PerContext",
    "advice.scb_exp4": "SCBExp4",
    "advice.simulate": "AdviceSimulation, simulate_advice",
    "bandits.ada_inf": "AdaINF",
    "bandits.baselines.ada_ftrl": "AdaFTRL",
    "bandits.baselines.ada_hedge": "AdaHedge",
    "bandits.baselines.ada_tinf": "AdaTINF",
    "bandits.baselines.ahb": "AHB",
    "bandits.baselines.banker": "Banker",
    "bandits.baselines.discounted_thompson": "DiscountedThompson",
    "bandits.baselines.discounted_ucb": "DiscountedUCB",
    "bandits.baselines.doubling_tsallis_inf": "DoublingTsallisINF",
    "bandits.baselines.epsilon_greedy": "EpsilonGreedy",
    "bandits.baselines.exp3": "Exp3",
    "bandits.baselines.exp3_auer": "Exp3Auer",
    "bandits.baselines.exp3_ix": "Exp3IX",
    "bandits.baselines.exp3_p": "Exp3P",
    "bandits.baselines.exp3_s": "Exp3S",
    "bandits.baselines.fixed_share": "FixedShare",
    "bandits.baselines.ht_inf": "HTINF",
    "bandits.baselines.inf": "INF",
    "bandits.baselines.log_thompson": "LogThompson",
    "bandits.baselines.restarting_cost_scb": "RestartingCostSCB",
    "bandits.baselines.robust_ucb": "RobustUCB",
    "bandits.baselines.sf_mab": "SFMAB",
    "bandits.baselines.sliding_window_ucb": "SlidingWindowUCB",
    "bandits.baselines.solo_ftrl": "SOLOFTRL",
    "bandits.baselines.tsallis_inf": "TsallisINF",
    "bandits.baselines.tsallis_inf_rv": "TsallisINFRV",
    "bandits.baselines.ucb1": "UCB1",
    "bandits.baselines.umab_g": "UMABG",
    "bandits.baselines.umab_nn": "UMABNN",
    "bandits.baselines.uni_inf": "UniINF",
    "bandits.baselines.uniform": "Uniform",
    "bandits.cost_scb": "CostSCB",
    "bandits.cost_scb_ix": "CostSCBIX",
    "bandits.scb": "SCB",
    "bandits.scb_ix": "SCBIX",
    "core.occupancy.mdp": "LayeredMDP",
    "core.occupancy.solver": "SolverWarning",
    "jit.files": "CacheWarning",
    "learners.bandit": "Choice, Learner, ScaleWarning",
    "learners.by_arm": "ByArm",
    "learners.episodes": "Plan",
    "learners.mdp": "MDPLearner",
    "learners.python.bandit": "PythonLearner",
    "learners.python.mdp": "PythonMDPLearner",
    "mdps.baselines.apo_mvp": "APOMVP",
    "mdps.baselines.explore_then_commit": "ExploreThenCommit",
    "mdps.baselines.independent_scb": "IndependentSCB",
    "mdps.baselines.o_reps": "OREPS",
    "mdps.baselines.uniform_policy": "UniformPolicy",
    "mdps.baselines.uob_reps": "UOBREPS",
    "mdps.cost_policy_optimization": "CostPolicyOptimization",
    "mdps.cost_scb_rl": "CostSCBRL",
    "mdps.mvp": "MVP",
    "mdps.policy_optimization": "PolicyOptimization",
    "mdps.rf_elp": "RFELP",
    "mdps.scb_rl": "SCBRL",
    "mdps.ucbvi": "UCBVI",
    "simulation.adversary": "MDPAdversary",
    "simulation.bandit": "Simulation, simulate",
    "simulation.compare": "Comparison, compare, compare_mdp",
    "simulation.mdp": "MDPSimulation, simulate_mdp",
}
_WHERE = {name: module for module, names in _NAMES.items() for name in names.split(", ")}

# So are the modules that people know by name: `unbounded.experiments` needs no import of its own.
_MODULES = (
    "adapters", "adversaries", "bandits", "bounds", "durable", "experiments", "extend", "mdps",
    "report", "settings", "testing", "worlds",
)  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _WHERE:
        globals()[name] = found = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
        return found
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    own = ("__version__", "__doc__", "__file__", "__name__", "__path__")
    return sorted([*__all__, *_MODULES, *own])


__all__ = [
    "AHB", "APOMVP", "HTINF", "INF", "MVP", "OREPS", "RFELP", "SCB", "SCBIX", "SCBRL", "SFMAB",
    "SOLOFTRL", "UCB1", "UCBVI", "UMABG", "UMABNN", "UOBREPS", "AdaFTRL", "AdaHedge", "AdaINF",
    "AdaTINF", "AdviceSimulation", "Banker", "ByArm", "CacheWarning", "Choice", "Comparison",
    "CostExp4", "CostPolicyOptimization", "CostSCB", "CostSCBIX", "CostSCBRL", "DiscountedThompson",
    "DiscountedUCB", "DoublingTsallisINF", "EpsilonGreedy", "Exp3", "Exp3Auer", "Exp3IX", "Exp3P",
    "Exp3S", "ExploreThenCommit", "FixedShare", "IndependentSCB", "LayeredMDP", "Learner",
    "LogThompson", "MDPAdversary", "MDPLearner", "MDPSimulation", "PerContext", "Plan",
    "PolicyOptimization", "PythonLearner", "PythonMDPLearner", "Recommendation",
    "RestartingCostSCB", "RobustUCB", "SCBExp4", "ScaleWarning", "Simulation", "SlidingWindowUCB",
    "SolverWarning", "TsallisINF", "TsallisINFRV", "UniINF", "Uniform", "UniformPolicy", "compare",
    "compare_mdp", "recommend", "simulate", "simulate_advice", "simulate_mdp", "warm",
]  # fmt: skip
