"""Learners whose steps are Python methods of the user."""
