"""Algorithm 3 of the paper as printed, with and without its pruning: the baseline of a search."""

from __future__ import annotations

from themis.inputs.streams import Branch
from themis.results.model import SearchResult
from themis.results.notes import Ending, Note
from themis.results.parts import TestedSet
from themis.scores.paper import NOT_CERTIFIED, paper_causal, paper_group
from themis.scores.question import Question, drawing_from, ending_early
from themis.search.deciding import SearchRequest
from themis.search.lattice import Border, Lattice, minimal
from themis.settings import Stopping
from themis.statistics.thresholds import Decision


def paper_search(request: SearchRequest, *, prune: bool) -> SearchResult:
    """All sets by size; supersets of a discriminating one are skipped if `prune`."""
    sampler, settings, schema = request.sampler, request.settings, request.schema
    cost = sampler.runner.metered()
    levels = tuple(schema.characteristics[c].possible_count for c in request.columns)
    lattice = Lattice(levels, request.max_size, cap=1)
    border, tested, scores = Border(), [], {}
    ended = Ending.DONE
    with ending_early(keeps_interrupts=sampler.keep_on_interrupt) as early:
        for mask in lattice.by_size():
            if prune and border.pruned_by(mask) is not None:
                continue
            columns = request.columns_of(mask)
            fresh = drawing_from(sampler, sampler.population, (Branch.PAPER, *columns))
            question = Question(fresh, fresh.assignments(columns), request.measure, settings)
            score = (paper_causal if request.measure == "causal" else paper_group)(question).score
            if not score.conclusive:
                ended = Ending.BUDGET
                break
            decision: Decision = "above" if score.score > request.threshold else "below"
            reason = Note.of("estimated-score", score=score.score)
            tested.append(TestedSet(score.against, decision, (reason,), score.samples, score.score))
            if decision == "above":
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
        executions=cost().executions,
        cache_hits=cost().cache_hits,
        notes=(NOT_CERTIFIED,),
    )
