"""Results for the tests of reports: real ones, made once, and others that a run seldom gives."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace
from functools import cache
from typing import Any

import themis
from themis.cli.demo import SETS, demo_audit
from themis.results.model import (
    CausalScore,
    CheckResult,
    ExcessScore,
    GroupScore,
    Result,
    Score,
    SearchResult,
)
from themis.results.notes import Ending, Note
from themis.results.outcomes import Category, CategoryTable, Observed
from themis.results.parts import (
    Group,
    Harm,
    Naming,
    Noise,
    Placebo,
    Region,
    Reruns,
    Share,
    TestedSet,
    Witness,
)
from themis.results.saved import result_from_dict
from themis.settings import Stopping

COMMON: dict[str, Any] = {
    "confidence": 0.99,
    "error": 0.05,
    "method": "sampled",
    "samples": 702,
    "stopped": Ending.ERROR_REACHED,
    "stopping": Stopping.CERTIFIED,
    "executions": 1404,
    "cache_hits": 0,
    "reruns": Reruns(100, 0, 0.0),
}
HOSTILE = (
    '<script>window.pwned = 1; alert("x")</script>',
    "\"><img src=x onerror='window.pwned = 2'>",
    "</style></title><svg onload=alert(1)>",
    "javascript:alert(1)//'\"`&lt;",
    "مرحبا بالعالم",
    "\u202eright to left\u202c",
    "x" * 5_000,
    "no-break\u00a0" * 200,
    "a\nb\x00\x1b[31m",
    "\ud800",
    "",
    "日本語の名前" * 30,
)


def plain(page: str) -> str:
    """The text of a page with ordinary spaces, also between numbers and their units."""
    return page.replace("\u00a0", " ")


def notes(*texts: str) -> tuple[Note, ...]:
    """Notes that say just this."""
    return tuple(Note(text) for text in texts)


def saved(result: Result) -> Result:
    """The result as it is read back from its file."""
    return result_from_dict(json.loads(json.dumps(result.to_dict())))


@cache
def demo() -> Result:
    """The scores of the built-in example."""
    return saved(demo_audit(error=0.03).score(SETS, command="demo"))


def _pay(person: Any) -> int:
    needed = 30 + 30 * (person["race"] == "green" and person["sex"] == "f")
    return int(person["income"] + 10 * person["children"] >= needed)


@cache
def small_search() -> Result:
    """Both searches of a program that is unfair to two characteristics together."""
    schema = themis.Schema(
        race=themis.Values(["green", "purple"], protected=True),
        sex=themis.Values(["f", "m"], protected=True),
        children=themis.Integers(0, 3),
        city=["A", "B"],
        income=themis.Integers(0, 90, step=10),
    )
    audit = themis.Audit(_pay, schema, seed=3)
    return saved(audit.search_all(0.2, ("causal", "group"), ["race", "sex", "children", "city"]))


def _crossed(person: Any) -> str:
    unfair = person["sex"] == "female" and person["race"] == "purple"
    return "approved" if person["income"] >= (60 if unfair else 40) else "refused"


def _crossed_audit(**settings: Any) -> themis.Audit:
    schema = themis.Schema(
        sex=themis.Values(["female", "male"], protected=True),
        race=themis.Values(["green", "purple"], protected=True),
        income=range(100),
        savings=themis.Integers(0, 99_999),
    )
    audit = themis.Audit(_crossed, schema, favourable=["approved"], **settings)
    audit.naming = Naming(name="Loan screen", people="applicants", decision="approval")
    return audit


@cache
def audit() -> Result:
    """A whole audit of a program that is unfair to two characteristics together."""
    return saved(_crossed_audit(family=True, error=0.1).everything())


@cache
def apparent() -> Result:
    """Scores of rows beside those of all inputs."""
    chance = random.Random(3)
    rows = [
        {
            "sex": chance.choice(["female", "male"]),
            "race": chance.choice(["green", "green", "purple"]),
            "income": chance.randrange(20, 80),
            "savings": chance.randrange(5),
        }
        for _ in range(300)
    ]
    return saved(_crossed_audit(error=0.1).apparent(rows, ["sex", ["sex", "race"]]))


def _bank(person: Any) -> dict[str, Any]:
    hotels = ["Ibis", "Mercure", "Ritz"]
    turned = person["race"] == "green" and person["income"] >= 75
    return {
        "granted": "yes" if person["income"] >= 30 else "no",
        "limit": 40 * person["income"] + (500 if person["race"] == "green" else 0),
        "offers": hotels[::-1] if turned else hotels,
    }


@cache
def outputs() -> Result:
    """Scores of a program that answers with several things, one of them a number."""
    audit = themis.Audit(
        _bank,
        themis.Schema(race=["green", "purple"], income=themis.Integers(0, 99)),
        outputs=[
            themis.Output(name="granted", at="/granted", favourable=("yes",)),
            themis.Output(name="limit", at="/limit", min=0, max=5000, distance="relational"),
            themis.Output(name="offers", at="/offers", distance="ranking"),
        ],
    )
    return saved(audit.score([["race"]]))


def checked(result: Result) -> Result:
    """A result with a verdict of each kind."""
    first = result.scores[0]
    common: dict[str, Any] = {"measure": "causal", "confidence": 0.99}
    one = {"against": first.against, "search": False, "score": first.score, "low": first.low}
    return replace(
        result,
        command="check",
        checks=(
            CheckResult(name="causal race at most 0.05", max_score=0.05, verdict="violated",
                        high=first.high, **one, **common),
            CheckResult(name="causal race at most 0.9", max_score=0.9, verdict="holds",
                        high=first.high, **one, **common),
            CheckResult(name="causal search at most 0.2", against=None, search=True, max_score=0.2,
                        verdict="not enough evidence", reasons=notes("2 sets are undecided"),
                        **common),
        ),
    )  # fmt: skip


def causal(**changes: Any) -> CausalScore:
    """A causal score; `changes` override its fields."""
    people = ({"race": "green", "age": 30}, {"race": "purple", "age": 30})
    harm = Harm({"race": "green"}, {"race": "purple"}, lost=0.066, gained=0.01, contexts=106)
    fields: dict[str, Any] = {
        **COMMON,
        "against": ("race",),
        "score": 0.113,
        "low": 0.063,
        "high": 0.163,
        "witnesses": (Witness(people, ("1", "0"), ("loan green 30", "loan purple 30")),),
        "flip_rate": 0.11,
        "direction": (harm,),
        **changes,
    }
    return CausalScore(measure="causal", **fields)


def group(**changes: Any) -> GroupScore:
    """A group score; `changes` override its fields."""
    fields: dict[str, Any] = {
        **COMMON,
        "against": ("race",),
        "score": 0.2,
        "low": 0.15,
        "high": 0.25,
        "groups": (
            Group({"race": "green"}, 0.5, 0.45, 0.55, 700),
            Group({"race": "purple"}, 0.3, 0.25, 0.35, 700),
        ),
        "impact_ratio": 0.6,
        "impact_ratio_low": 0.45,
        "impact_ratio_high": 0.78,
        **changes,
    }
    return GroupScore(measure="group", **fields)


def excess(**changes: Any) -> ExcessScore:
    """An excess; `changes` override its fields."""
    fields: dict[str, Any] = {
        **COMMON,
        "against": ("race",),
        "score": 0.07,
        "low": 0.04,
        "high": 0.1,
        "pair": ({"race": "green"}, {"race": "purple"}),
        "within": Share(0.12, 0.1, 0.14),
        "across": Share(0.19, 0.16, 0.22),
        "gap": Share(-0.11, -0.14, -0.08),
        **changes,
    }
    return ExcessScore(measure="excess", **fields)


def result(*scores: Score, **changes: Any) -> Result:
    """A result with these scores; `changes` override its fields."""
    fields: dict[str, Any] = {
        "command": "score",
        "seed": 42,
        "subject": {"kind": "command", "fingerprint": "b03f6199494d8611"},
        "schema": {"inputs": {"race": {"values": ["green", "purple"], "protected": True},
                              "age": {"min": 18, "max": 77, "bins": [30, 50]}},
                   "constraints": {}},
        "executions": 1404,
        "cache_hits": 96,
        "stopped": Ending.DONE,
        "failures": {},
        "timing": {"started": "2026-03-01T12:00:00+00:00", "seconds": 0.8,
                   "versions": {"themis": "0.1.0", "python": "3.12.1"}},
        **changes,
    }  # fmt: skip
    return Result(scores=scores, **fields)


def observed(*tables: tuple[tuple[str, ...], list[tuple[Any, ...]]], **changes: Any) -> Observed:
    """Observed rates of these sets and the values of their categories."""
    made = []
    for against, values in tables:
        own = [dict(zip(against, each, strict=True)) for each in values]
        categories = (
            Category(each, 100, 50, 2, 0.5, 0.51, 0.4, 0.6, 1.0, 0.7, 1.0) for each in own
        )
        made.append(CategoryTable(against, tuple(categories)))
    fields: dict[str, Any] = {"population": "inputs", "whole": False, "inputs": 200,
                              "favourable": 100, "undecided": 4, "confidence": 0.99}  # fmt: skip
    return Observed(**{**fields, **changes}, tables=tuple(made))


def all_facts() -> Result:
    """A result that uses every optional field, and in which everything went wrong."""
    region = Region(("income > 40", "employment = none"), 0.6, 0.5, 0.7, 0.2, 3.0, 140)
    few = Group({"race": "red"}, 0.0, 0.0, 0.6, 4, few=True)
    groups = group()
    return result(
        causal(regions=(region,), placebo=Placebo(0.04, 0.02, 0.07), stopped=Ending.NOISE,
               population="rows", counterfactuals="within", output="risk",
               notes=notes("the subject does not always give the same decision")),
        replace(groups, groups=(*groups.groups, few), population="profile"),
        group(against=("age",), statistic="mean", scale=(300.0, 850.0), output="score",
              impact_ratio=None, impact_ratio_low=None, impact_ratio_high=None,
              groups=(Group({"age": "18 to 29"}, 0.4, 0.35, 0.45, 90),
                      Group({"age": "30 to 77"}, 0.6, 0.55, 0.65, 90))),
        causal(against=("race", "age"), stopped=Ending.BUDGET, stopping=Stopping.PAPER,
               distance="threshold 5", lower_bound=True, high=1.0),
        noise=Noise(300, 7, 0.023, 0.01, 0.05, 0.99),
        data={"file": "people.csv", "rows": 1000, "used": 950, "dropped": 50},
        source={"file": "themis.toml", "command": "themis score --against race"},
        stopped=Ending.BUDGET,
        failures={"crash": {"count": 3, "input": {"race": "green", "age": 30},
                            "message": "ValueError: no\nage", "reproduce": "loan green 30"}},
        notes=notes("the subject gave the same output, '1', in all 1,404 executions"),
        observed=(observed((("race",), [("green",), ("red",), (None,)]), whole=True, weighted=True,
                           population="profile", too_many=(("race", "age"),), confidence=None),
                  observed((("age",), [("18 to 29",), ("30 to 77",)]), statistic="mean",
                           output="score", noisy=True, confidence=None)),
    )  # fmt: skip


@cache
def hostile() -> Result:
    """Names, values, outputs and messages that try to break out of the page."""
    scores: list[CausalScore | GroupScore] = []
    for first, second in itertools.pairwise(HOSTILE):
        people = ({first: first, "age": second}, {first: second, "age": second})
        pair = Witness(people, (first, second), (first, second))
        harm = Harm({first: first}, {first: second}, 0.5, 0.1, 10)
        region = Region((first, second), 0.6, 0.5, 0.7, 0.2, 3.0, 140)
        scores.append(causal(against=(first,), witnesses=(pair, replace(pair, reproduce=())),
                             direction=(harm,), regions=(region,), notes=notes(first)))  # fmt: skip
        groups = tuple(Group({first: each}, 0.5, 0.4, 0.6, 10) for each in (first, second))
        scores.append(group(against=(first,), groups=groups, output=second))
    tables = ((names, [(each,) for each in HOSTILE]) for names in ((e,) for e in HOSTILE))
    bad = {"count": 3, "input": {HOSTILE[0]: HOSTILE[1]}, "message": HOSTILE[2],
           "reproduce": HOSTILE[0]}  # fmt: skip
    tested = tuple(TestedSet((each,), "above", notes(each), 3, 0.5) for each in HOSTILE if each)
    found = SearchResult(
        measure="causal", threshold=0.1, confidence=0.99, error=0.05, minimal_sets=(),
        found=tuple(each.against for each in tested), undecided=(), tested=tested,
        sets_total=len(tested), sets_tested=len(tested), sets_pruned=0, sets_open=0,
        among=tuple(each.against[0] for each in tested), max_size=1, method="sampled",
        stopped=Ending.DONE, stopping=Stopping.CERTIFIED, executions=3, cache_hits=0,
        notes=notes(*HOSTILE),
    )  # fmt: skip
    check = CheckResult(name=HOSTILE[0], measure="causal", against=(HOSTILE[0],), search=False,
                        max_score=0.1, confidence=0.99, verdict="violated", score=0.2, low=0.15,
                        high=0.25, reasons=notes(HOSTILE[1]))  # fmt: skip
    inputs: dict[str, Any] = {each: [each, "b"] for each in HOSTILE}
    return result(
        *scores,
        searches=(found,),
        checks=(check,),
        observed=(observed(*tables, output=HOSTILE[0], too_many=(HOSTILE,)),),
        notes=notes(*HOSTILE),
        failures={HOSTILE[0]: bad},
        schema={"inputs": inputs, "constraints": {each: each for each in HOSTILE}},
        subject={"kind": HOSTILE[0], "fingerprint": HOSTILE[1]},
        timing={"started": HOSTILE[0], "seconds": 1.0, "executor": HOSTILE[1],
                "versions": {HOSTILE[0]: HOSTILE[1]}},
        data={HOSTILE[0]: HOSTILE[1]},
        source={"file": HOSTILE[1], "command": HOSTILE[0]},
    )  # fmt: skip


@cache
def wide_search(characteristics: int = 20, size: int = 4) -> Result:
    """A search over many characteristics with thousands of tested sets."""
    drawn = random.Random(7)
    names = tuple(f"characteristic_number_{n}" for n in range(characteristics))
    found: list[tuple[str, ...]] = []
    tested = []
    for number in range(1, size + 1):
        for each in itertools.combinations(names, number):
            if any(set(minimal) <= set(each) for minimal in found):
                continue
            chance = drawn.random()
            decision = "above" if chance < 0.004 else "undecided" if chance < 0.006 else "below"
            hits = {"above": 80, "undecided": 50}.get(decision, drawn.randrange(40))
            reason = Note.of("inputs-flip", flips=hits, inputs=500)
            tested.append(TestedSet(each, decision, (reason,), 500, hits / 500))  # type: ignore[arg-type]
            if decision == "above":
                found.append(each)
    total = 2**characteristics - 1
    search = SearchResult(
        measure="causal", threshold=0.1, confidence=0.99, error=0.02, minimal_sets=(),
        found=tuple(found), undecided=tuple(t.against for t in tested if t.decision == "undecided"),
        tested=tuple(tested), sets_total=total, sets_tested=len(tested),
        sets_pruned=total - len(tested), sets_open=0, among=names, max_size=characteristics,
        method="sampled", stopped=Ending.DONE, stopping=Stopping.CERTIFIED, executions=3_000_000,
        cache_hits=0,
    )  # fmt: skip
    pairs = [dict.fromkeys(names, "a"), dict.fromkeys(names, "b")]
    scores = [
        causal(
            against=each,
            score=0.15 + place / 1000,
            low=0.12,
            high=0.2,
            witnesses=(Witness((pairs[0], pairs[0] | dict.fromkeys(each, "b")), ("yes", "no")),),
            direction=(),
        )
        for place, each in enumerate(found)
    ]
    inputs = {name: ["a", "b", "c"] for name in names}
    return result(*scores, command="search", searches=(search,),
                  schema={"inputs": inputs, "constraints": {}})  # fmt: skip


@cache
def many_groups(number: int = 1_500) -> Result:
    """Group scores of a set with very many assignments."""
    groups = tuple(
        Group({"age": n % 90, "postcode": f"postcode {n}"}, n / number, n / number, n / number, 50)
        for n in range(number)
    )
    scores = [group(against=("age", "postcode", f"z{n}"), groups=groups) for n in range(4)]
    values = [[(n, f"postcode {n} {which}") for n in range(200)] for which in range(30)]
    tables = ((("age", f"postcode{n}"), each) for n, each in enumerate(values))
    return result(*scores, observed=(observed(*tables),))


@cache
def known_outcomes() -> Result:
    """Of people whose outcomes are known, with what may stand in for their sex."""
    schema = themis.Schema(
        sex=["female", "male"], income=range(100), neighbourhood=["north", "south"]
    )
    rows = {
        "sex": ["female", "male", "male"] * 120,
        "income": [7 * number % 100 for number in range(360)],
        "neighbourhood": ["north", "north", "south", "south"] * 90,
        "repaid": [number % 3 > 0 for number in range(360)],
    }
    audit = themis.Audit(lambda person: person["income"] > 20 + 20 * (person["sex"] == "male"),
                         schema)  # fmt: skip
    return audit.apparent(rows, "sex", label="repaid", proxies=True)


SAMPLES = {
    "demo": demo,
    "small search": small_search,
    "outputs": outputs,
    "check": lambda: checked(demo()),
    "everything": all_facts,
    "hostile": hostile,
    "wide search": wide_search,
    "many groups": many_groups,
    "nothing": lambda: result(),
    "audit": audit,
    "apparent": apparent,
    "outcomes": known_outcomes,
}
