"""How properties are tested: with the same examples for everybody, unless new ones are wanted."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

# No test may depend on how fast the machine is: neither a deadline nor the speed of drawing counts.
UNHURRIED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("steady", derandomize=True, **UNHURRIED)
settings.register_profile("explore", max_examples=300, **UNHURRIED)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "steady")
settings.load_profile(PROFILE)

# What a shell starts in the background ignores Ctrl-C, and so would all that is interrupted here.
signal.signal(signal.SIGINT, signal.default_int_handler)

if PROFILE == "steady" and hasattr(providers, "_get_local_constants"):
    # Hypothesis also tries constants that it finds in the modules loaded so far. Which these are
    # depends on the tests that this process ran before, and so on how busy the others are.
    providers._get_local_constants = lambda: providers._local_constants
