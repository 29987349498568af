"""Adversaries found by search."""

from __future__ import annotations

from unbounded.adversaries.program import Program


def worst_cases() -> dict[str, tuple[Program, tuple[float, float]]]:
    """By name, each with the range of its losses."""
    return {}
