"""An excess in words: how often decisions differ when asked again, and with the change."""

from __future__ import annotations

from collections.abc import Iterator

from themis.results.model import ExcessScore
from themis.results.parts import Share
from themis.show.words.naming import output_words, plain_set
from themis.show.words.values import percent, points, with_followers
from themis.show.words.wording import Wording


def asked_again(score: ExcessScore, words: Wording) -> str:
    """`asked twice, the decision differs for 12 % of test inputs; with another sex, for 19 %`."""
    within, across = (0.0 if e is None else e.score for e in (score.within, score.across))
    whom = words.whom(score.population)
    return (
        f"asked twice, {output_words(score)} differs for {percent(within)} of {whom}; "
        f"with another {plain_set(score)}{with_followers(score.against, score.followed)}, for "
        f"{percent(across)}"
    )


def gap_text(score: ExcessScore, words: Wording) -> str:
    """Whom the pair's change favours, if that is sure: `male is favoured 12.1 points more …`."""
    if score.gap is None or score.pair is None:
        return ""
    if score.gap.low <= 0 <= score.gap.high:
        one, other = _labels(score, words)
        return f"neither {one} nor {other} is clearly favoured"
    return _favour(score, words)


def _favour(score: ExcessScore, words: Wording) -> str:
    assert score.gap is not None
    ahead, behind = _labels(score, words)[:: 1 if score.gap.score >= 0 else -1]
    return f"{ahead} is favoured {points(abs(score.gap.score))} more often than {behind}"


def _labels(score: ExcessScore, words: Wording) -> list[str]:
    return [words.label(each) for each in score.pair or ()]


def excess_sentences(score: ExcessScore, words: Wording) -> Iterator[str]:
    """What an excess is the difference of, each with its ends, and how often inputs were asked."""
    if score.pair is None or score.within is None or score.across is None:
        return
    pair = " and ".join(words.label(each) for each in score.pair)
    yield (
        f"asked again, {output_words(score)} differs for {_with_ends(score.within)}; "
        f"between {pair}, for {_with_ends(score.across)}"
    )
    if score.gap is not None:
        sign = 1 if score.gap.score >= 0 else -1
        low, high = sorted((sign * score.gap.low, sign * score.gap.high))
        ends = f"{points(low, 'down').removesuffix(' points')} to {points(high, 'up')}"
        yield f"{_favour(score, words)} ({ends})".replace("(-", "(−")
    yield f"each input was asked {score.times} times"


def _with_ends(share: Share) -> str:
    ends = f"{percent(share.low, 'down').removesuffix(' %')} – {percent(share.high, 'up')}"
    return f"{percent(share.score)} ({ends})"
