"""Learning when nobody knows the scale of the losses."""

from importlib import import_module
from typing import TYPE_CHECKING

from unbounded._jit_files import CacheWarning
from unbounded._version import __version__ as __version__
from unbounded.bandits.ada_ftrl import AdaFTRL
from unbounded.bandits.ada_hedge import AdaHedge
from unbounded.bandits.ada_inf import AdaINF
from unbounded.bandits.ada_tinf import AdaTINF
from unbounded.bandits.ahb import AHB
from unbounded.bandits.banker import Banker
from unbounded.bandits.cost_scb import CostSCB
from unbounded.bandits.cost_scb_ix import CostSCBIX
from unbounded.bandits.doubling_tsallis_inf import DoublingTsallisINF
from unbounded.bandits.epsilon_greedy import EpsilonGreedy
from unbounded.bandits.exp3 import Exp3
from unbounded.bandits.exp3_auer import Exp3Auer
from unbounded.bandits.exp3_ix import Exp3IX
from unbounded.bandits.exp3_p import Exp3P
from unbounded.bandits.exp3_s import Exp3S
from unbounded.bandits.ht_inf import HTINF
from unbounded.bandits.inf import INF
from unbounded.bandits.log_thompson import LogThompson
from unbounded.bandits.robust_ucb import RobustUCB
from unbounded.bandits.scb import SCB
from unbounded.bandits.scb_ix import SCBIX
from unbounded.bandits.sf_mab import SFMAB
from unbounded.bandits.solo_ftrl import SOLOFTRL
from unbounded.bandits.tsallis_inf import TsallisINF
from unbounded.bandits.tsallis_inf_rv import TsallisINFRV
from unbounded.bandits.ucb1 import UCB1
from unbounded.bandits.umab_g import UMABG
from unbounded.bandits.umab_nn import UMABNN
from unbounded.bandits.uni_inf import UniINF
from unbounded.bandits.uniform import Uniform
from unbounded.play.bandit_learner import Choice, Learner
from unbounded.play.python_learner import PythonLearner
from unbounded.play.scale_warning import ScaleWarning
from unbounded.play.simulate import Simulation, simulate

if TYPE_CHECKING:
    from unbounded._recommend import Recommendation, recommend
    from unbounded._warm import warm
    from unbounded.core.occupancy.mdp import LayeredMDP
    from unbounded.core.occupancy.outcome import SolverWarning
    from unbounded.mdps.apo_mvp import APOMVP
    from unbounded.mdps.cost_scb_rl import CostSCBRL
    from unbounded.mdps.explore_then_commit import ExploreThenCommit
    from unbounded.mdps.independent_scb import IndependentSCB
    from unbounded.mdps.mvp import MVP
    from unbounded.mdps.o_reps import OREPS
    from unbounded.mdps.policy_optimisation import PolicyOptimisation
    from unbounded.mdps.rf_elp import RFELP
    from unbounded.mdps.scb_rl import SCBRL
    from unbounded.mdps.ucbvi import UCBVI
    from unbounded.mdps.uniform_policy import UniformPolicy
    from unbounded.mdps.uob_reps import UOBREPS
    from unbounded.play.adversary import MDPAdversary
    from unbounded.play.compare import Comparison, compare, compare_mdp
    from unbounded.play.mdp_learner import MDPLearner
    from unbounded.play.plan import Plan
    from unbounded.play.python_mdp_learner import PythonMDPLearner
    from unbounded.play.simulate_mdp import MDPSimulation, simulate_mdp

# The learners for MDPs are imported when they are asked for: a bandit should not wait for them.
_LATER = {
    "APOMVP": "unbounded.mdps.apo_mvp",
    "Comparison": "unbounded.play.compare",
    "CostSCBRL": "unbounded.mdps.cost_scb_rl",
    "ExploreThenCommit": "unbounded.mdps.explore_then_commit",
    "IndependentSCB": "unbounded.mdps.independent_scb",
    "LayeredMDP": "unbounded.core.occupancy.mdp",
    "MDPAdversary": "unbounded.play.adversary",
    "MDPLearner": "unbounded.play.mdp_learner",
    "MDPSimulation": "unbounded.play.simulate_mdp",
    "MVP": "unbounded.mdps.mvp",
    "OREPS": "unbounded.mdps.o_reps",
    "Plan": "unbounded.play.plan",
    "PythonMDPLearner": "unbounded.play.python_mdp_learner",
    "PolicyOptimisation": "unbounded.mdps.policy_optimisation",
    "RFELP": "unbounded.mdps.rf_elp",
    "Recommendation": "unbounded._recommend",
    "SCBRL": "unbounded.mdps.scb_rl",
    "SolverWarning": "unbounded.core.occupancy.outcome",
    "UCBVI": "unbounded.mdps.ucbvi",
    "UOBREPS": "unbounded.mdps.uob_reps",
    "UniformPolicy": "unbounded.mdps.uniform_policy",
    "compare": "unbounded.play.compare",
    "compare_mdp": "unbounded.play.compare",
    "recommend": "unbounded._recommend",
    "simulate_mdp": "unbounded.play.simulate_mdp",
    "warm": "unbounded._warm",
}


# So are the rooms that people enter by name: `unbounded.lab` needs no import of its own.
_ROOMS = (
    "adapters", "adversaries", "bounds", "durable", "extend", "lab", "report", "settings", "worlds",
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
    "AHB",
    "APOMVP",
    "HTINF",
    "INF",
    "MVP",
    "OREPS",
    "RFELP",
    "SCB",
    "SCBIX",
    "SCBRL",
    "SFMAB",
    "SOLOFTRL",
    "UCB1",
    "UCBVI",
    "UMABG",
    "UMABNN",
    "UOBREPS",
    "AdaFTRL",
    "AdaHedge",
    "AdaINF",
    "AdaTINF",
    "Banker",
    "CacheWarning",
    "Choice",
    "Comparison",
    "CostSCB",
    "CostSCBIX",
    "CostSCBRL",
    "DoublingTsallisINF",
    "EpsilonGreedy",
    "Exp3",
    "Exp3Auer",
    "Exp3IX",
    "Exp3P",
    "Exp3S",
    "ExploreThenCommit",
    "IndependentSCB",
    "LayeredMDP",
    "Learner",
    "LogThompson",
    "MDPAdversary",
    "MDPLearner",
    "MDPSimulation",
    "Plan",
    "PolicyOptimisation",
    "PythonLearner",
    "PythonMDPLearner",
    "Recommendation",
    "RobustUCB",
    "ScaleWarning",
    "Simulation",
    "SolverWarning",
    "TsallisINF",
    "TsallisINFRV",
    "UniINF",
    "Uniform",
    "UniformPolicy",
    "compare",
    "compare_mdp",
    "recommend",
    "simulate",
    "simulate_mdp",
    "warm",
]
