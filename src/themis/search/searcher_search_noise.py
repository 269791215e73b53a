"""What is left of a search's answer when the subject does not always decide the same?"""

from __future__ import annotations

from dataclasses import replace

from themis.results.model import CausalScore, Score, SearchResult, TestedSet
from themis.results.verdicts_search_facts import least_listed
from themis.scores.noise import NOISE, NoiseProbe
from themis.search.walk import SEARCH_ASSIGNMENTS
from themis.settings import Settings

NOISY = "the subject does not always decide the same"
AVERAGES = f"{NOISY}; rates are averages over its noise, so that the groups' differences hold"


def weigh_search(
    search: SearchResult, probe: NoiseProbe, settings: Settings, *, may_run: bool = True
) -> SearchResult:
    """The search as it is; where there is noise, without the sets that noise alone may explain.

    Those are undecided. What is still listed has, less all that noise may explain, a score above
    what the search promises of every set listed.
    """
    measured = search.minimal_sets
    found = probe.finds_in(measured[0].output) if measured else probe.found
    if not found or search.stopping == "paper" or settings.probe == 0:
        return search
    if any(note.startswith(NOISY) for note in search.notes):
        return search  # it was weighed before
    if search.measure == "group":
        return replace(search, notes=(*search.notes, AVERAGES))
    scores = [
        probe.weigh(each, settings, most=SEARCH_ASSIGNMENTS, may_run=may_run) for each in measured
    ]
    sure = {each.against for each in scores if each.low > least_listed(search)}
    doubtful = [names for names in search.found if names not in sure]
    reasons = {each.against: _reason(each) for each in scores}
    return replace(
        search,
        minimal_sets=tuple(each for each in scores if each.against in sure),
        found=tuple(names for names in search.found if names in sure),
        undecided=(*search.undecided, *doubtful),
        tested=tuple(
            _doubted(each, reasons.get(each.against, "noise alone may explain it"))
            if each.against in doubtful
            else each
            for each in search.tested
        ),
        stopped=_stopped(search, scores, probe, settings),
        notes=(*search.notes, _note(probe, settings, len(doubtful))),
    )


def _stopped(
    search: SearchResult, scores: list[Score], probe: NoiseProbe, settings: Settings
) -> str:
    noise = probe.noise(settings.confidence)
    too_much = noise is None or noise.high > settings.noise_limit
    too_much = too_much or any(each.stopped == NOISE for each in scores)
    return NOISE if too_much and search.stopped == "done" else search.stopped


def _doubted(tested: TestedSet, reason: str) -> TestedSet:
    return replace(tested, decision="undecided", reason=f"{tested.reason}; {reason}")


def _reason(score: Score) -> str:
    if not isinstance(score, CausalScore) or score.placebo is None:
        return "noise alone may explain it"
    return f"noise alone may explain {100 * score.placebo.high:.1f} points of it"


def _note(probe: NoiseProbe, settings: Settings, doubtful: int) -> str:
    noise = probe.noise(settings.confidence)
    who = "people of the found sets"
    if noise is not None and noise.differing:
        who = f"{noise.differing:,} of {noise.inputs:,} inputs"
    sets = f"; noise alone may explain {doubtful:,} of the sets found" if doubtful else ""
    return f"{NOISY}: {who} got another decision when they were run again{sets}"
