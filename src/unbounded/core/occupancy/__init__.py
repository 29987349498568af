"""Layered MDPs, and the two programs over their occupancy measures, solved with certificates.

- The MDP: `layout`, `mdp`, `policies`. What is known of it: `confidence`, `upper` (Comp-UOB).
- The program of FTRL: `ftrl`, by `ssn` if warm (`dual`, `projection`), by `ipm` if cold (`iterate`,
  `elimination`). That of mirror descent: `kl` (`kl_dual`).
- What both share: `certificate`, `incumbent`, `ascent`, `units`, `work`, `blocktri`; what they
  return: `outcome`. As values for kernels: `programs`.
"""
