"""Algorithms 1 to 6 of Chen & Zhang (2024) in plain Python.

docs/theory/algorithms.md shows these files beside the pseudo-code, and
tests/test_paper.py compares them with the compiled learners; they use
nothing of the library. Each algorithm is a generator: it yields what it
plays next and receives what it observes. Comments give the lines of the
pseudo-code and the errata of docs/theory/errata.md.
"""
