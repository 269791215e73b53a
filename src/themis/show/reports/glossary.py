"""The glossary at the end of a report: what its words mean, and what the field calls them."""

from __future__ import annotations

from themis.results.model import Result
from themis.show.html import Html, tag
from themis.show.reports.document import Room, section

GLOSSARY = {
    "Causal score (counterfactual flip rate)": "The share of inputs for which the decision changes "
    "when only the named characteristics are changed; of numbers that are compared by degrees, by "
    "how much of their scale they change on average.",
    "Group score (statistical parity difference)": "The largest difference between the groups’ "
    "rates of favourable decisions, in percentage points; of numbers, between their means.",
    "Impact ratio (disparate impact)": "The lowest rate of favourable decisions divided by the "
    "highest. The four-fifths rule asks for at least 0.80; it is a rule of thumb, not a law.",
    "Test inputs": "Inputs that Themis generated from the description of the program’s inputs. "
    "They are not people; only rows that were given are.",
    "Confidence interval": "Where the true score lies. Of 100 runs with other seeds, at least as "
    "many as the confidence says give an interval that contains it.",
    "Exact": "Every input was run, so that nothing is estimated.",
    "Set": "Characteristics that are changed, or compared, together. It is minimal if no part of "
    "it is above the threshold by itself.",
    "Not covered": "Whether decisions are correct: error rates of groups need known outcomes. "
    "Whether a difference is lawful is not a question of measurement.",
}
OUTCOMES = {
    "Selection rate": "The share of a group that gets the favourable decision. The difference "
    "between groups is demographic parity difference (AIF360: statistical parity difference), the "
    "ratio demographic parity ratio (AIF360: disparate impact).",
    "True positive rate": "Of those whose known outcome is favourable, the share that gets the "
    "favourable decision. The difference between groups is equal opportunity difference.",
    "False positive rate": "The same share of those whose known outcome is not favourable.",
    "Equalised odds difference": "The larger of the differences in true and in false positive "
    "rate.",
    "Precision, accuracy": "Of those who get the favourable decision, the share whose outcome is "
    "favourable; and the share of all whose decision and outcome agree.",
}


def glossary_section(result: Result, room: Room) -> Html:
    """The words of the report, folded."""
    words = {**GLOSSARY, **OUTCOMES} if result.outcomes else GLOSSARY
    items = (tag("div", tag("dt", word), tag("dd", meaning)) for word, meaning in words.items())
    return section("glossary", "Glossary", tag("dl", *items, class_="facts"), fold=True)
