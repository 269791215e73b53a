"""Themis tests decision software for discrimination: how much, against whom, and how sure.

>>> import themis
>>> schema = themis.Schema(race=["green", "purple"], age=themis.Integers(18, 120))
"""

from themis._version import __version__
from themis.audit import Audit
from themis.characteristics import Integers, Reals, Values
from themis.errors import (
    ConfigError,
    Mistake,
    MistakesError,
    RequestError,
    SchemaError,
    SubjectError,
    ThemisError,
)
from themis.events import Progress
from themis.results import CausalScore, Group, GroupScore, Harm, Result, Witness
from themis.schema import Schema
from themis.subjects.functions import InputTable
from themis.subjects.loading import batch, keywords

__all__ = [
    "Audit",
    "CausalScore",
    "ConfigError",
    "Group",
    "GroupScore",
    "Harm",
    "InputTable",
    "Integers",
    "Mistake",
    "MistakesError",
    "Progress",
    "Reals",
    "RequestError",
    "Result",
    "Schema",
    "SchemaError",
    "SubjectError",
    "ThemisError",
    "Values",
    "Witness",
    "__version__",
    "batch",
    "keywords",
]
