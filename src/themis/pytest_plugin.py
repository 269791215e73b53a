"""The pytest plugin under its documented name."""

from themis.testing.plugin import *  # noqa: F403
