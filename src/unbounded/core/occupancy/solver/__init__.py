"""Solve the two programs over occupancy measures, with certificates.

- The program of FTRL: `ftrl`, by `newton` on its smoothed `dual` if warm, by `interior_point`
  (`elimination`) if cold, over `sparse` lists where few transitions are possible.
- The program of mirror descent: `kl`.
- What both share: `work`, `certificate`, `linear_algebra`; what they return: `outcome`. As values
  for kernels: `programs`.
"""
