"""What explains a causal score? People who are plainly affected, and where most of them are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from themis.engine.sampler import Sampler
from themis.errors import SubjectError
from themis.results.model import CausalScore, Region
from themis.scores.witnesses import FlipPool
from themis.scores.witnesses_shrinking import plain_witnesses


def explained(
    score: CausalScore,
    pool: FlipPool,
    sampler: Sampler,
    regions: Callable[[], tuple[Region, ...]],
    *,
    known: bool = False,
) -> CausalScore:
    """The score with shrunk witnesses and the regions of its flips; its numbers stay as they are.

    What was interrupted is not explained, nor where explaining it makes the subject fail. `known`
    says that every output is remembered.
    """
    if score.stopped == "interrupted" or not score.witnesses:
        return score
    columns = pool.schema.columns_of(score.against)
    try:
        where = regions()
        people = plain_witnesses(pool, sampler, columns, known=known)
    except SubjectError:
        return score
    except KeyboardInterrupt:
        if not sampler.keep_on_interrupt:
            raise
        return replace(score, stopped="interrupted")
    return replace(score, witnesses=people, regions=where)
