"""How are properties tested? With the same examples for everybody, unless new ones are wanted."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

# Nothing of it depends on the clock, so that a busy machine sees the same examples.
settings.register_profile(
    "steady",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", deadline=None, max_examples=300)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "steady")
settings.load_profile(PROFILE)

if PROFILE == "steady":
    # Hypothesis also tries constants from the modules that happen to be loaded, so that examples
    # would depend on which tests the same process ran before. test_examples.py holds it to this.
    providers._get_local_constants = lambda: providers._local_constants
