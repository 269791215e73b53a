"""Algorithm 3 of the paper as printed, with and without its pruning: the baseline of a search."""

from __future__ import annotations

from themis.engine.sampler import Cost, Sampler
from themis.inputs.streams import Branch
from themis.results.model import Score, SearchResult
from themis.results.notes import Ending, Note
from themis.results.parts import TestedSet
from themis.scores.paper import NOT_CERTIFIED, paper_causal, paper_group
from themis.scores.question import Question, drawing_from, ending_early
from themis.search.deciding import SearchRequest
from themis.search.lattice import Border, Lattice, members, minimal
from themis.settings import Settings, Stopping


def paper_search(
    sampler: Sampler, request: SearchRequest, settings: Settings, *, prune: bool
) -> SearchResult:
    """All sets by size; supersets of a discriminating one are skipped if `prune`."""
    schema = sampler.population.schema
    cost = Cost(sampler.runner)
    levels = tuple(schema.characteristics[c].possible_count for c in request.columns)
    lattice = Lattice(levels, request.max_size, cap=1)
    border, tested, scores = Border(), [], {}
    ended = Ending.DONE
    with ending_early(keeps_interrupts=sampler.keep_on_interrupt) as early:
        for mask in lattice.by_size():
            if prune and border.pruned_by(mask) is not None:
                continue
            columns = tuple(request.columns[place] for place in members(mask))
            fresh = drawing_from(sampler, sampler.population, (Branch.PAPER, *columns))
            score = _score(fresh, columns, request, settings)
            if not score.conclusive:
                ended = Ending.BUDGET
                break
            above = score.score > request.threshold
            tested.append(
                TestedSet(
                    score.against,
                    "above" if above else "below",
                    (Note.of("estimated-score", score=score.score),),
                    score.samples,
                    score.score,
                )
            )
            if above:
                scores[mask] = score
                if border.pruned_by(mask) is None:
                    border.add_above(mask)
    ended = early.ending or ended
    found = minimal(scores)
    pruned = lattice.total - len(tested) if ended is Ending.DONE else 0
    return SearchResult(
        measure=request.measure,
        threshold=request.threshold,
        confidence=settings.confidence,
        error=settings.error,
        minimal_sets=tuple(scores[mask] for mask in found),
        found=tuple(scores[mask].against for mask in found),
        undecided=(),
        tested=tuple(tested),
        sets_total=lattice.total,
        sets_tested=len(tested),
        sets_pruned=pruned,
        sets_open=lattice.total - len(tested) - pruned,
        among=tuple(schema.names[column] for column in request.columns),
        max_size=request.max_size,
        method="sampled",
        stopped=ended,
        stopping=Stopping.PAPER,
        executions=cost.executions,
        cache_hits=cost.cache_hits,
        notes=(NOT_CERTIFIED,),
    )


def _score(
    sampler: Sampler, columns: tuple[int, ...], request: SearchRequest, settings: Settings
) -> Score:
    procedure = paper_causal if request.measure == "causal" else paper_group
    assignments = sampler.assignments(columns)
    return procedure(Question(sampler, assignments, request.measure, settings)).score
