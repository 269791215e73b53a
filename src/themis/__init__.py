"""Themis tests decision software for discrimination: how much, against whom, how reliably.

>>> import themis
>>> schema = themis.Schema(race=["green", "purple"], age=themis.Integers(18, 120))

The names below are imported when they are first used, so that `themis --help` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from themis._version import __version__

if TYPE_CHECKING:
    from themis.audit.audit import Audit
    from themis.audit.model_selection import scorer
    from themis.errors import (
        ColumnsWarning,
        ConfigError,
        DiscriminationError,
        InconclusiveError,
        InconclusiveWarning,
        LimitError,
        Mistake,
        MistakesError,
        RequestError,
        RowsWarning,
        SchemaError,
        SubjectError,
        ThemisError,
    )
    from themis.events import Progress, SearchProgress
    from themis.inputs.characteristics import Integers, Reals, Values
    from themis.inputs.documents import documents, names
    from themis.inputs.following import derived
    from themis.inputs.schema import Schema
    from themis.results.hooks import Plot
    from themis.results.model import CausalScore, ExcessScore, GroupScore, Result, SearchResult
    from themis.results.outcomes import Errors, Outcomes, Proxy
    from themis.results.parts import Group, Harm, Region, TestedSet, Witness
    from themis.results.replays import Replay, ReplayedSet, ReplayedTest
    from themis.results.saved import read_result, to_frame
    from themis.subjects.functions import InputTable
    from themis.subjects.loading import batch, keywords, model
    from themis.subjects.outputs import Output

__all__ = [
    "Audit",
    "CausalScore",
    "ColumnsWarning",
    "ConfigError",
    "DiscriminationError",
    "Errors",
    "ExcessScore",
    "Group",
    "GroupScore",
    "Harm",
    "InconclusiveError",
    "InconclusiveWarning",
    "InputTable",
    "Integers",
    "LimitError",
    "Mistake",
    "MistakesError",
    "Outcomes",
    "Output",
    "Plot",
    "Progress",
    "Proxy",
    "Reals",
    "Region",
    "Replay",
    "ReplayedSet",
    "ReplayedTest",
    "RequestError",
    "Result",
    "RowsWarning",
    "Schema",
    "SchemaError",
    "SearchProgress",
    "SearchResult",
    "SubjectError",
    "TestedSet",
    "ThemisError",
    "Values",
    "Witness",
    "__version__",
    "batch",
    "derived",
    "documents",
    "keywords",
    "model",
    "names",
    "read_result",
    "scorer",
    "to_frame",
]

_HOMES = """
audit.audit: Audit
audit.model_selection: scorer
inputs.characteristics: Integers Reals Values
inputs.following: derived
inputs.documents: documents names
errors: ColumnsWarning ConfigError DiscriminationError InconclusiveError InconclusiveWarning
errors: LimitError Mistake MistakesError RequestError RowsWarning SchemaError SubjectError
errors: ThemisError
events: Progress SearchProgress
subjects.outputs: Output
results.hooks: Plot
results.saved: read_result to_frame
results.replays: Replay ReplayedSet ReplayedTest
results.model: CausalScore ExcessScore GroupScore Result SearchResult TestedSet
results.outcomes: Errors Outcomes Proxy
results.parts: Group Harm Region Witness
inputs.schema: Schema
subjects.functions: InputTable
subjects.loading: batch keywords model
"""
_HOME_OF = {
    name: f"themis.{home}"
    for home, _, names in (line.partition(": ") for line in _HOMES.strip().splitlines())
    for name in names.split()
}


if not TYPE_CHECKING:  # a type checker would take every name as known

    def __getattr__(name: str) -> object:
        """Import a public name when it is used for the first time."""
        if name not in _HOME_OF:
            raise AttributeError(f"module 'themis' has no attribute {name!r}")
        value = getattr(import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
