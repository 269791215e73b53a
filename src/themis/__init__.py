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

_HOMES = {
    "themis.audit.audit": ("Audit",),
    "themis.audit.model_selection": ("scorer",),
    "themis.inputs.characteristics": ("Integers", "Reals", "Values"),
    "themis.inputs.following": ("derived",),
    "themis.inputs.documents": ("documents", "names"),
    "themis.errors": (
        "ColumnsWarning",
        "ConfigError",
        "DiscriminationError",
        "InconclusiveError",
        "InconclusiveWarning",
        "LimitError",
        "Mistake",
        "MistakesError",
        "RequestError",
        "RowsWarning",
        "SchemaError",
        "SubjectError",
        "ThemisError",
    ),
    "themis.events": ("Progress", "SearchProgress"),
    "themis.subjects.outputs": ("Output",),
    "themis.results.hooks": ("Plot",),
    "themis.results.saved": ("read_result", "to_frame"),
    "themis.results.replays": ("Replay", "ReplayedSet", "ReplayedTest"),
    "themis.results.model": (
        "CausalScore",
        "ExcessScore",
        "GroupScore",
        "Result",
        "SearchResult",
        "TestedSet",
    ),
    "themis.results.outcomes": ("Errors", "Outcomes", "Proxy"),
    "themis.results.parts": ("Group", "Harm", "Region", "Witness"),
    "themis.inputs.schema": ("Schema",),
    "themis.subjects.functions": ("InputTable",),
    "themis.subjects.loading": ("batch", "keywords", "model"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


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
