"""Learners for layered MDPs: one algorithm, one file (SCB-RL: one idea, one file)."""
