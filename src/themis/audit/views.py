"""Views: the outputs of one audit, each with its scores and searches, on the same executions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from themis.audit.notes import odd_outputs
from themis.engine.sampler import Sampler
from themis.errors import Mistake, RequestError, suggest
from themis.inputs.characteristics import Value
from themis.inputs.people import People
from themis.results.model import Measure
from themis.results.notes import Note
from themis.scores.privacy import shared_outputs
from themis.scores.scorer import Scorer
from themis.subjects.outputs import Output, Statistic
from themis.subjects.readings import Reading

if TYPE_CHECKING:
    from themis.scores.domain import Domain
    from themis.scores.people import PeopleRun
    from themis.search.searcher import Searcher


@dataclass
class View:
    """One output as it is measured."""

    scorer: Scorer

    @property
    def sampler(self) -> Sampler:
        """The run, seen through this output."""
        return self.scorer.sampler

    @cached_property
    def searcher(self) -> Searcher:
        """Searches for sets that change this output."""
        from themis.search.searcher import Searcher

        return Searcher(self.sampler, self.scorer)

    @property
    def lacks_favourable(self) -> bool:
        """Whether there are outputs, and none so far was one that `favourable` names."""
        reading = self.sampler.reading
        seen = len(reading.labels.labels) > 0
        return seen and reading.has_favourable and not reading.labels.favourable.any()


class Views:
    """The outputs of an audit; without declared ones, the decision is the only one."""

    def __init__(
        self, sampler: Sampler, outputs: Sequence[Output], people: People | None = None
    ) -> None:
        self.outputs = outputs
        self._scorer = Scorer(sampler, people)
        self._known: dict[tuple[int, Statistic], View] = {}

    @property
    def whole(self) -> Sampler:
        """A run that draws from all inputs, also where this one draws from a profile."""
        return self._scorer.whole

    def of(self, name: str | None, statistic: Statistic | None = None) -> View:
        """The output of this name; the first one if none is given."""
        place = self._place(name)
        chosen = statistic or "rate"
        if (place, chosen) not in self._known:
            reading = Reading(self._scorer.sampler.runner.labels, place, chosen)
            self._known[place, chosen] = View(self._scorer.reading_as(reading))
        return self._known[place, chosen]

    def named(self, name: str | None) -> Output:
        """The declared output of this name; the first one if none is given."""
        return self.outputs[self._place(name)]

    def for_groups(self, name: str | None, statistic: Statistic | None = None) -> View:
        """The output for a group score: of its mean, unless its rate is asked for or all it has."""
        if not self.outputs:
            return self.of(None)
        output = self.named(name)
        if statistic is None:
            statistic = next(iter(output.statistics), None)
        if statistic is None or statistic not in output.statistics:
            raise RequestError([no_groups(output)])
        return self.of(output.name, statistic)

    def searched(self, name: str | None, measures: Sequence[Measure]) -> View:
        """The output for a search; group scores are of rates where there are some."""
        if "group" not in measures or not self.outputs:
            return self.of(name)
        output = self.named(name)
        return self.for_groups(name, "rate" if "rate" in output.statistics else None)

    def searchable(self, measures: Sequence[Measure]) -> tuple[Measure, ...]:
        """Those of these measures that the first output has."""
        has_groups = not self.outputs or bool(self.outputs[0].statistics)
        return tuple(each for each in measures if each != "group" or has_groups)

    def measured(
        self, measures: Sequence[Measure], only: str | None = None
    ) -> Iterator[tuple[Measure, View]]:
        """Every score that a set gets: of each output, by each measure it has; or of one only."""
        if only is not None:
            for measure in measures:
                yield measure, self.searched(only, [measure])
            return
        for output in self.outputs or (None,):
            name = None if output is None else output.name
            for measure in measures:
                if measure != "group" or output is None:
                    yield measure, self.of(name)
                else:
                    for statistic in output.statistics:
                        yield measure, self.of(name, statistic)

    def notes(self, favourable: Iterable[Value]) -> Iterator[Note]:
        """What is odd about the outputs."""
        runner = self._scorer.sampler.runner
        wanted = tuple(favourable)
        for output in self.outputs or (None,):
            reading = self.of(None if output is None else output.name).sampler.reading
            own = wanted if output is None else (output.favourable or wanted)
            about = None if len(self.outputs) < 2 or output is None else output.name
            yield from odd_outputs(runner, reading, own, about)

    @property
    def people_run(self) -> PeopleRun | None:
        """The people of the profile that inputs are drawn from, if there is one."""
        return self._scorer.people_run

    @property
    def whole_domain(self) -> Domain | None:
        """Every input that occurs, where all of them were run and held."""
        return self._scorer.whole_domain

    def shared_outputs(self, run: PeopleRun) -> set[Value]:
        """The outputs of these people that name nobody."""
        names = [each.name for each in self.outputs]
        readings = [self.of(name).sampler.reading for name in names or (None,)]
        return set[Value]().union(*(shared_outputs(run, each) for each in readings))

    def _place(self, name: str | None) -> int:
        names = [each.name for each in self.outputs]
        if name is None:
            return 0
        if name not in names:
            remedy = suggest(name, names) if names else "declare it: Audit(…, outputs=[…])"
            raise RequestError(
                [Mistake("unknown-output", "output", f"there is no output {name!r}", remedy)]
            )
        return names.index(name)


def no_groups(output: Output) -> Mistake:
    """That nothing says which values of an output are favourable."""
    return Mistake(
        "no-group-score",
        f"outputs.{output.name}",
        "nothing says which outputs are favourable, and it is no number with a scale",
        "give it favourable = [...], a cut, or min and max",
    )
