"""Simulations of verdicts: subjects whose truth is known, and how often Themis convicts them.

`benchmarks/verdicts.py` runs all of it and prints the tables of the page beside it; the tests run
a fast part. Everything is drawn from fixed seeds and no clock is looked at, so that a simulation
gives the same counts on every machine.
"""
