"""Bandit algorithms: one file each."""
