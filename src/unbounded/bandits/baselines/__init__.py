"""Bandit algorithms to compare with: one file each."""
