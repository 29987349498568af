"""Learners for layered MDPs to compare with: one file each."""
