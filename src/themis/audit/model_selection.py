"""A scorer for scikit-learn: how much a candidate discriminates, where models are selected."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, get_args

from themis.audit.audit import Audit
from themis.errors import RequestError, suggest
from themis.inputs.characteristics import Value
from themis.inputs.schema import Schema
from themis.results.model import Measure
from themis.subjects.decisions import DEFAULT_FAVOURABLE
from themis.subjects.loading import model
from themis.subjects.outputs import Output


@dataclass(frozen=True)
class scorer:  # noqa: N801 - reads as what it is: scoring=themis.scorer("sex")
    """A scorer for `GridSearchCV` and `cross_validate`: minus the score of the rows that it gets.

    `against` is one set. The `schema` may be a table, of which one is guessed; without it each
    split is guessed by itself, and values that it lacks are not tried there. `cut` and `class_` are
    those of `themis.model`, `favourable` and `outputs` those of `themis.Audit`. Where there is
    nothing to compare, or the score may not be shown, it is not a number.
    """

    against: str | Sequence[str]
    _: KW_ONLY
    measure: Measure = "causal"
    schema: Any = None
    cut: float | None = None
    class_: Value = None
    favourable: Iterable[Value] = DEFAULT_FAVOURABLE
    outputs: Output | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.measure not in (known := get_args(Measure)):
            problem = f"there is no measure {self.measure!r}"
            raise RequestError.one("measure", "measure", problem, suggest(self.measure, known))
        if self.schema is not None and not isinstance(self.schema, Schema):
            object.__setattr__(self, "schema", Schema.from_frame(self.schema))

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:  # noqa: N803 - its name there
        """Minus the score: the larger, the less it discriminates."""
        schema = Schema.from_frame(X) if self.schema is None else self.schema
        subject = model(estimator, cut=self.cut, class_=self.class_)
        audit = Audit(
            subject, schema, seed=self.seed, favourable=self.favourable, outputs=self.outputs,
            deterministic=True,
        )  # fmt: skip
        names = [self.against] if isinstance(self.against, str) else list(self.against)
        result = audit.apparent(
            X if hasattr(X, "columns") else dict(zip(schema.names, X.T, strict=True)),
            [names],
            measures=[self.measure],
            counterfactuals="generated",
            only_data=True,
        )
        scores = (each for name, each in result.to_metrics().items() if name.endswith("/score"))
        return -next(scores, math.nan)
