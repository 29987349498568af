"""Learning when nobody knows the scale of the losses."""

from importlib import import_module
from typing import TYPE_CHECKING

from unbounded.bandits.ada_inf import AdaINF
from unbounded.bandits.baselines.ada_ftrl import AdaFTRL
from unbounded.bandits.baselines.ada_hedge import AdaHedge
from unbounded.bandits.baselines.ada_tinf import AdaTINF
from unbounded.bandits.baselines.ahb import AHB
from unbounded.bandits.baselines.banker import Banker
from unbounded.bandits.baselines.doubling_tsallis_inf import DoublingTsallisINF
from unbounded.bandits.baselines.epsilon_greedy import EpsilonGreedy
from unbounded.bandits.baselines.exp3 import Exp3
from unbounded.bandits.baselines.exp3_auer import Exp3Auer
from unbounded.bandits.baselines.exp3_ix import Exp3IX
from unbounded.bandits.baselines.exp3_p import Exp3P
from unbounded.bandits.baselines.exp3_s import Exp3S
from unbounded.bandits.baselines.ht_inf import HTINF
from unbounded.bandits.baselines.inf import INF
from unbounded.bandits.baselines.log_thompson import LogThompson
from unbounded.bandits.baselines.robust_ucb import RobustUCB
from unbounded.bandits.baselines.sf_mab import SFMAB
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
from unbounded.jit.files import CacheWarning
from unbounded.learners.bandit import Choice, Learner, ScaleWarning
from unbounded.learners.python.bandit import PythonLearner
from unbounded.simulation.bandit import Simulation, simulate

__version__ = "0.1.0"

if TYPE_CHECKING:
    from unbounded._recommend import Recommendation, recommend
    from unbounded._warm import warm
    from unbounded.core.occupancy.mdp import LayeredMDP
    from unbounded.core.occupancy.solver.outcome import SolverWarning
    from unbounded.learners.episodes import Plan
    from unbounded.learners.mdp import MDPLearner
    from unbounded.learners.python.mdp import PythonMDPLearner
    from unbounded.mdps.baselines.apo_mvp import APOMVP
    from unbounded.mdps.baselines.explore_then_commit import ExploreThenCommit
    from unbounded.mdps.baselines.independent_scb import IndependentSCB
    from unbounded.mdps.baselines.o_reps import OREPS
    from unbounded.mdps.baselines.uniform_policy import UniformPolicy
    from unbounded.mdps.baselines.uob_reps import UOBREPS
    from unbounded.mdps.cost_scb_rl import CostSCBRL
    from unbounded.mdps.mvp import MVP
    from unbounded.mdps.policy_optimization import PolicyOptimization
    from unbounded.mdps.rf_elp import RFELP
    from unbounded.mdps.scb_rl import SCBRL
    from unbounded.mdps.ucbvi import UCBVI
    from unbounded.simulation.adversary import MDPAdversary
    from unbounded.simulation.compare import Comparison, compare, compare_mdp
    from unbounded.simulation.mdp import MDPSimulation, simulate_mdp

# The learners for MDPs are imported when they are asked for: a bandit should not wait for them.
_LATER = {
    "APOMVP": "unbounded.mdps.baselines.apo_mvp",
    "Comparison": "unbounded.simulation.compare",
    "CostSCBRL": "unbounded.mdps.cost_scb_rl",
    "ExploreThenCommit": "unbounded.mdps.baselines.explore_then_commit",
    "IndependentSCB": "unbounded.mdps.baselines.independent_scb",
    "LayeredMDP": "unbounded.core.occupancy.mdp",
    "MDPAdversary": "unbounded.simulation.adversary",
    "MDPLearner": "unbounded.learners.mdp",
    "MDPSimulation": "unbounded.simulation.mdp",
    "MVP": "unbounded.mdps.mvp",
    "OREPS": "unbounded.mdps.baselines.o_reps",
    "Plan": "unbounded.learners.episodes",
    "PythonMDPLearner": "unbounded.learners.python.mdp",
    "PolicyOptimization": "unbounded.mdps.policy_optimization",
    "RFELP": "unbounded.mdps.rf_elp",
    "Recommendation": "unbounded._recommend",
    "SCBRL": "unbounded.mdps.scb_rl",
    "SolverWarning": "unbounded.core.occupancy.solver.outcome",
    "UCBVI": "unbounded.mdps.ucbvi",
    "UOBREPS": "unbounded.mdps.baselines.uob_reps",
    "UniformPolicy": "unbounded.mdps.baselines.uniform_policy",
    "compare": "unbounded.simulation.compare",
    "compare_mdp": "unbounded.simulation.compare",
    "recommend": "unbounded._recommend",
    "simulate_mdp": "unbounded.simulation.mdp",
    "warm": "unbounded._warm",
}


# So are the rooms that people enter by name: `unbounded.experiments` needs no import of its own.
_ROOMS = (
    "adapters", "adversaries", "bounds", "durable", "experiments", "extend", "report", "settings",
    "worlds",
)  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS, "__version__", "__doc__", "__file__", "__name__", "__path__"])


__all__ = [
    "AHB", "APOMVP", "HTINF", "INF", "MVP", "OREPS", "RFELP", "SCB", "SCBIX", "SCBRL", "SFMAB",
    "SOLOFTRL", "UCB1", "UCBVI", "UMABG", "UMABNN", "UOBREPS", "AdaFTRL", "AdaHedge", "AdaINF",
    "AdaTINF", "Banker", "CacheWarning", "Choice", "Comparison", "CostSCB", "CostSCBIX",
    "CostSCBRL", "DoublingTsallisINF", "EpsilonGreedy", "Exp3", "Exp3Auer", "Exp3IX", "Exp3P",
    "Exp3S", "ExploreThenCommit", "IndependentSCB", "LayeredMDP", "Learner", "LogThompson",
    "MDPAdversary", "MDPLearner", "MDPSimulation", "Plan", "PolicyOptimization", "PythonLearner",
    "PythonMDPLearner", "Recommendation", "RobustUCB", "ScaleWarning", "Simulation",
    "SolverWarning", "TsallisINF", "TsallisINFRV", "UniINF", "Uniform", "UniformPolicy", "compare",
    "compare_mdp", "recommend", "simulate", "simulate_mdp", "warm",
]  # fmt: skip
