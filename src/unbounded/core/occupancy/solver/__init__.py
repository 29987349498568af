"""Solve the two programs over occupancy measures, with certificates."""
