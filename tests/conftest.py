"""How properties are tested: with the same examples for everybody, unless new ones are wanted."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers

# No test may depend on how fast the machine is: neither a deadline nor the speed of drawing counts.
UNHURRIED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("steady", derandomize=True, **UNHURRIED)
settings.register_profile("explore", max_examples=300, **UNHURRIED)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "steady")
settings.load_profile(PROFILE)

# What a shell starts in the background ignores Ctrl-C, and so would all that is interrupted here.
signal.signal(signal.SIGINT, signal.default_int_handler)

sys.argv[0] = "themis"  # commands to be copied name it as it was called, not `python -m pytest`

if PROFILE == "steady" and hasattr(providers, "_get_local_constants"):
    # Hypothesis also tries constants that it finds in the modules loaded so far. Which these are
    # depends on the tests that this process ran before, and so on how busy the others are.
    providers._get_local_constants = lambda: providers._local_constants


# Which tests are run, and every how many-th example of a property with them.
CORE, FULL = "not slow", "not long"
SHARES = {CORE: 8, FULL: 3}


@pytest.hookimpl(tryfirst=True)  # before those are left out that are slow
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test with many cases every few-th is quick enough for everybody, the others are slow."""
    share = SHARES.get(config.option.markexpr, 1) if PROFILE == "steady" else 1
    seen: Counter[str] = Counter()
    for item in items:
        test = getattr(item, "obj", None)
        if is_hypothesis_test(test):
            item.add_marker(pytest.mark.property)
            if share > 1:
                few_examples(test, share)
        some = item.get_closest_marker("some_slow")
        if some is not None:
            name = item.nodeid.partition("[")[0]
            for mark, key in ((pytest.mark.slow, "core"), (pytest.mark.long, "full")):
                if seen[name] % some.kwargs.get(key, 1):
                    item.add_marker(mark)
            seen[name] += 1
        if item.get_closest_marker("long") is not None:
            item.add_marker(pytest.mark.slow)


def few_examples(test: Any, share: int) -> None:
    """Let a property be tried with a part of its examples, once."""
    test = getattr(test, "__func__", test)  # of a method its function, which has attributes
    name = "_hypothesis_internal_use_settings"
    whole = getattr(test, name, settings.default)
    if not hasattr(test, "has_few_examples"):
        test.has_few_examples = True
        setattr(test, name, settings(whole, max_examples=max(whole.max_examples // share, 10)))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes a subject and its file into an empty folder, and works there."""
    from tests.projects import enter, write_project

    enter(tmp_path, monkeypatch)
    return partial(write_project, tmp_path)
