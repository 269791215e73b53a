"""What does `themis init` write from nothing? A commented file, and the example it describes."""

from __future__ import annotations

SUBJECT_FILE_NAME = "loan.py"

_CONFIG = """\
# What Themis tests, and how. `themis validate` checks this file, `themis check` runs it.
version = 1

# The software under test. Paths and modules are relative to the folder of this file.
[subject]
kind = "python"             # a function; or a trained model: kind = "model"
function = "loan:decide"    # module:attribute; a model has object = "loan:model" instead
call = "row"                # row: one dict · keywords: decide(sex=…, age=…) · batch: a table
favourable = [1]            # the outputs that count as the favourable decision
# version = "2024-06"       # free text; results of another version are not used again
# max_failures = 0.01       # the fraction of executions that may fail; 0 unless you say so
# repeats = 5               # for a subject that flips coins: the majority of five runs

# Every characteristic that the subject reads, in the order of its arguments.
[inputs]
sex = { values = ["female", "male"], protected = true }
race = { values = ["green", "purple"], protected = true }
age = { min = 18, max = 80, bins = [30, 60] }               # both ends included; bins: 18 to 29, …
income = { min = 0.0, max = 100000.0, step = 1000.0 }       # with a point: numbers in steps
employed = [true, false]
city = { values = ["north", "south"], weights = [0.7, 0.3] }  # weights: how often each occurs

# Conditions that every real input meets; others are never tried.
[constraints]
income_has_a_source = "employed or income <= 50000"

# How sure, how precise, how expensive.
[run]
confidence = 0.99           # the chance that the stated intervals hold
error = 0.05                # their half width
seed = 42                   # the same seed gives the same result
stopping = "certified"      # or "paper", the rule of the 2017 paper, for comparison
# max_executions = 1_000_000
# max_seconds = 600
# max_assignments = 1_000   # sets with more are only sampled, and give a lower bound
# probe = 300               # inputs run again to look for noise; 0: none
# max_noise = 0.02          # a score that noise alone may explain by more is inconclusive

# What `themis check` enforces: it fails when a score is above its limit.
[[checks]]
against = ["race"]          # one set of characteristics
measure = "causal"          # causal: changing only this changes the decision · group: rates differ
max_score = 0.05

[[checks]]
against = ["sex"]
measure = "group"
max_score = 0.05

# [[checks]]
# search = true             # all sets of characteristics
# measure = "causal"
# max_score = 0.10
"""

_SUBJECT = '''\
"""An example of decision software: who gets a loan? Put your own in its place."""


def decide(applicant):
    """1 to grant the loan, 0 to refuse it."""
    needed = 30_000 if applicant["employed"] else 45_000
    if applicant["sex"] == "female" and applicant["age"] < 40:
        needed += 15_000  # the kind of rule that Themis finds
    return 1 if applicant["income"] >= needed else 0
'''


def starter_text() -> str:
    """A `themis.toml` with a comment on every key, valid as it stands."""
    return _CONFIG


def starter_subject_text() -> str:
    """The Python module that the file describes, for SUBJECT_FILE_NAME beside it.

    It treats young women worse, so that a first `themis check` has something to find.
    """
    return _SUBJECT
