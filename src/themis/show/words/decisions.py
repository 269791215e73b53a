"""What a search decided of a set, in words that claim no more than is proven."""

from __future__ import annotations

from themis.results.model import SearchResult
from themis.results.parts import TestedSet
from themis.results.verdicts import largest_missed, least_listed
from themis.results.withheld import withheld
from themis.settings import Stopping
from themis.show.words.searches import amount


def listed_words(search: SearchResult, names: tuple[str, ...]) -> str:
    """Where the score of a found set lies, and no more than is proven: `above 10 %`."""
    if names in search.ties:
        return f"exactly {amount(search.threshold, search)}"
    least = least_listed(search)
    return f"{'at' if least == 1 else 'above'} {amount(least, search)}"


def unlisted_words(search: SearchResult) -> str:
    """Where the score of a set lies that was decided not to be: `not above 20 %`.

    A sample proves threshold + error; where every input was run, or the paper's rule compares what
    it estimated, it is below the threshold itself.
    """
    most = largest_missed(search)
    if search.stopping is Stopping.PAPER:
        return f"below {amount(search.threshold, search)}"
    is_less = most == 1 or (search.method == "exact" and search.threshold > 0)
    return f"{'below' if is_less else 'not above'} {amount(most, search)}"


def decision_words(search: SearchResult, tested: TestedSet) -> str:
    """What was decided of a set: `above 5 %`, `not above 15 %`, `undecided`."""
    threshold = amount(search.threshold, search)
    if tested.is_tie:
        return f"exactly {threshold}"
    if tested.decision == "above":
        if tested.is_exact or search.stopping is Stopping.PAPER:
            return f"above {threshold}"
        return listed_words(search, tested.against)
    if tested.decision == "below":
        exactly = tested.is_exact and search.threshold > 0
        return f"below {threshold}" if exactly else unlisted_words(search)
    return "undecided"


def why(search: SearchResult, *against: str) -> str:
    """Why a set is in or out of the answer."""
    names = {name for part in against for name in part.split(",")}
    for each in withheld(search).tested:
        if set(each.against) == names:
            return f"{decision_words(search, each)}: {each.reason}"
    for found in search.found:
        if names > set(found):
            is_at = "a tie" if found in search.ties else listed_words(search, found)
            return f"follows: it contains {','.join(found)}, which is {is_at}"
    return "not searched" if not names <= set(search.among) else "open: the budget ended before"
