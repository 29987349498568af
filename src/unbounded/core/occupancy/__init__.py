"""Layered MDPs, and programs over their occupancy measures.

- The MDP and its policies: `layout`, `mdp` (`from_arrays`).
- What a learner knows of it: `confidence`, `reach`, `upper` (Comp-UOB), `seen`.
- Programs over occupancy measures, solved with certificates: `solver`.
"""
