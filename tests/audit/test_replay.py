"""Does a replay say what became of saved tests when the subject or the schema has changed?"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import themis
from tests.engine.test_suites import read
from tests.external import DECIDE, ran, write_command
from tests.projects import enter, run, write_project
from tests.worlds import Case, cases, hash_of
from themis.results.notes import Note

SCHEMA = themis.Schema(
    race=["green", "purple", "blue"], sex=["f", "m"], income=themis.Integers(0, 99_999)
)


def old(person: dict[str, Any]) -> int:
    return int(person["income"] >= (30_000 if person["race"] == "green" else 60_000))


def fair(person: dict[str, Any]) -> int:
    return int(person["income"] >= 30_000)


def worse(person: dict[str, Any]) -> int:
    """Fair to races above 50,000, and newly unfair to the blue below 20,000."""
    if person["income"] < 20_000:
        return int(person["race"] == "blue")
    return old(person) if person["income"] < 50_000 else 1


def write_suite(path: Path, subject: Any = old, schema: themis.Schema = SCHEMA) -> themis.Audit:
    with themis.Audit(subject, schema, seed=1, suite=path) as audit:
        audit.causal("race")
        audit.causal("sex")
    return audit


def test_a_suite_that_a_spreadsheet_saved_is_read(tmp_path: Path) -> None:
    schema = themis.Schema(sex=["f", "m"], employed=[True, False], income=range(100))

    def decide(person: dict[str, Any]) -> bool:
        return bool(person["employed"] and person["income"] > (30 if person["sex"] == "f" else 20))

    path = tmp_path / "suite.csv"
    with themis.Audit(decide, schema, seed=1, favourable=[True], suite=path) as audit:
        audit.causal("sex")
    path.write_text(path.read_text().replace("true", "TRUE").replace("false", "FALSE"))
    saved = audit.replay(path)
    assert states_of(saved) == {"sex": {"still": 10, "same": 190}}
    assert (saved.changed, saved.unknown_rows) == (0, {})


def expected_states(rows: list[dict[str, Any]], now: Any, names: Any) -> dict[str, Counter[str]]:
    """What became of each test, set by set, by the definition of the states."""
    tests = defaultdict(list)
    for row in rows:
        if row["test"] is not None:
            tests[row["against"], row["test"]].append(row)
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for (against, _), members in tests.items():
        did = len({row["output"] for row in members if row["failure"] is None}) > 1
        outputs = [now({name: row[name] for name in names}) for row in members]
        does = len({each for each in outputs if each is not None}) > 1
        if len(members) > 1:
            state = ("still" if did else "new") if does else ("fixed" if did else "same")
            if None in outputs and not does:
                state = "failed"
            found[against][state] += 1
    return found


def states_of(replay: themis.Replay) -> dict[str, dict[str, int]]:
    return {",".join(each.against): dict(each.states) for each in replay.sets}


# --- what became of the tests ---------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_tests_that_discriminated_are_still_there_fixed_or_new(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"suite{suffix}"
    suite = write_suite(path).suite
    assert suite is not None
    unchanged, mended, broken = (
        themis.Audit(each, SCHEMA).replay(path) for each in (old, fair, worse)
    )
    assert unchanged.count("new", "fixed", "failed", "unknown", "not run") == 0
    assert (unchanged.tests, unchanged.changed) == (suite.tests, 0)
    assert mended.count("fixed") == unchanged.count("still") > 0
    assert mended.count("still", "new") == 0
    assert mended.changed > 0
    assert all(broken.count(each) > 0 for each in ("new", "still", "fixed"))
    assert broken.count("still", "fixed") == unchanged.count("still")
    assert [each.state for each in broken.examples][:5] == ["new"] * 5
    for each in broken.examples:
        first, second = each.inputs
        assert [name for name in first if first[name] != second[name]] == ["race"]
        assert tuple(map(int, each.before)) == (old(first), old(second))
        assert each.now == (worse(first), worse(second))
        assert (each.before[0] != each.before[1]) == (each.state != "new")
        assert (each.now[0] != each.now[1]) == (each.state != "fixed")


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    case=cases(most=3),
    suffix=st.sampled_from([".csv", ".jsonl", ".parquet"]),
    salt=st.integers(0, 99),
    failing=st.booleans(),
)
@pytest.mark.slow
def test_every_state_is_what_its_definition_says(
    tmp_path_factory: pytest.TempPathFactory, case: Case, suffix: str, salt: int, failing: bool
) -> None:
    folder = tmp_path_factory.mktemp("replay")
    options: dict[str, Any] = {"favourable": case.world.favourable, "error": 0.2}
    for name in ("suite.jsonl", f"again{suffix}"):
        with themis.Audit(case.decide, case.schema, suite=folder / name, **options) as audit:
            audit.score([case.names])

    def now(row: dict[str, Any]) -> Any:
        chance = np.random.default_rng([salt, *(hash_of(value) for value in row.values())]).random()
        if failing and chance > 0.9:
            return None
        return case.decide(row) if chance > 0.3 else case.world.favourable[0]

    def subject(row: dict[str, Any]) -> Any:
        decision = now(row)
        if decision is None:
            raise ValueError
        return decision

    again = themis.Audit(subject, case.schema, max_failures=1.0, **options)
    rows = read(folder / "suite.jsonl")
    expected = expected_states(rows, now, case.schema.names)
    if not expected:  # no two inputs belong together
        with pytest.raises(themis.RequestError, match="holds no tests"):
            again.replay(folder / f"again{suffix}")
        return
    replay = again.replay(folder / f"again{suffix}")
    assert states_of(replay) == expected
    different = {tuple(row[name] for name in case.schema.names) for row in rows}
    assert replay.inputs == len(different)
    most = 10 * len(different)  # what fails is run again; where few share no input, nine times
    assert len(different) <= replay.executions <= most


def test_every_input_is_run_once_and_really_run(tmp_path: Path) -> None:
    schema = themis.Schema(race=["green", "purple"], income=range(0, 100))
    asked: list[Any] = []
    limit = {"green": 30, "purple": 60}

    def decide(person: dict[str, Any]) -> bool:
        asked.append(tuple(person.values()))
        return bool(person["income"] > limit[person["race"]])

    audit = themis.Audit(decide, schema, suite=tmp_path / "suite.csv")
    assert audit.causal("race").score == 0.3
    audit.close()
    limit["purple"] = 30  # the same object, which remembers what it ran, has changed
    asked.clear()
    replay = audit.replay(tmp_path / "suite.csv")
    assert states_of(replay) == {"race": {"fixed": 30, "same": 70}}
    assert len(asked) == len(set(asked)) == replay.executions == 200


def test_the_witnesses_of_a_result_are_replayed(tmp_path: Path) -> None:
    result = themis.Audit(old, SCHEMA).score([["race"], ["sex"]])
    count = len(result.scores[0].witnesses)
    assert count > 0
    (tmp_path / "result.json").write_text(json.dumps(result.to_dict()))
    for source in (result, tmp_path / "result.json", str(tmp_path / "result.json")):
        again, mended = (themis.Audit(each, SCHEMA).replay(source) for each in (old, fair))
        assert states_of(again) == {"race": {"still": count}}
        assert "the subject is the one that the result is of" in " ".join(map(str, again.notes))
        assert states_of(mended) == {"race": {"fixed": count}}
        assert not mended.notes


def test_failed_executions_never_count_as_fixed(tmp_path: Path) -> None:
    write_suite(tmp_path / "suite.jsonl")

    def decide(person: dict[str, Any]) -> int:
        if person["race"] != "green":
            raise ValueError("no")
        return old(person)

    replay = themis.Audit(decide, SCHEMA, max_failures=1.0).replay(tmp_path / "suite.jsonl")
    assert replay.count("fixed", "still", "new") == 0
    assert states_of(replay)["race"] == {"failed": sum(states_of(replay)["race"].values())}
    assert not replay.conclusive
    with pytest.raises(themis.SubjectError) as caught:
        themis.Audit(decide, SCHEMA).replay(tmp_path / "suite.jsonl")
    assert isinstance(caught.value.result, themis.Replay)


def offer(person: dict[str, Any], bonus: int = 100) -> dict[str, Any]:
    """A limit that differs a little by race, and offers in an order that does not."""
    limit = person["income"] / 10 + (bonus if person["race"] == "green" else 0)
    return {"granted": old(person), "limit": limit, "offers": ["Ibis", "Ritz"]}


def outputs(tolerance: float = 50) -> list[themis.Output]:
    limit: Any = {"at": "/limit", "min": 0, "max": 20_000, "tolerance": tolerance}
    return [
        themis.Output(name="limit", distance="threshold", **limit),
        themis.Output(name="offers", at="/offers", distance="ranking"),
    ]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_declared_outputs_are_compared_by_their_distances(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"suite{suffix}"
    with themis.Audit(offer, SCHEMA, outputs=outputs(), error=0.2, suite=path) as audit:
        result = audit.score([["race"], ["sex"]])

    def less(person: dict[str, Any]) -> dict[str, Any]:
        return offer(person, 20)

    def shuffle(person: dict[str, Any]) -> dict[str, Any]:
        offers = ["Ritz", "Ibis"] if person["sex"] == "f" else ["Ibis", "Ritz"]
        return {**offer(person), "offers": offers}

    for subject, tolerance, race, sex in (
        (offer, 50, "still", "same"),
        (offer, 200, "same", "same"),
        (less, 50, "fixed", "same"),
        (shuffle, 50, "still", "new"),
    ):
        replay = themis.Audit(subject, SCHEMA, outputs=outputs(tolerance)).replay(path)
        assert states_of(replay).keys() == {"race", "sex"}
        assert {*states_of(replay)["race"]} == {race}
        assert {*states_of(replay)["sex"]} == {sex}
        assert (replay.changed > 0) == (subject is not offer)
    example = next(each for each in replay.examples if each.state == "new")
    assert {tuple(each["offers"]) for each in example.now} == {("Ibis", "Ritz"), ("Ritz", "Ibis")}
    assert all(each["offers"] == ["Ibis", "Ritz"] for each in example.before)
    witnessed = themis.Audit(less, SCHEMA, outputs=outputs()).replay(result)
    assert {*states_of(witnessed)["race"]} == {"fixed"}
    more = themis.Audit(offer, SCHEMA, outputs=[*outputs(), themis.Output(name="o", at="/granted")])
    with pytest.raises(themis.RequestError, match=r"it has no column 'output.o'"):
        more.replay(path)


# --- the schema has changed -----------------------------------------------------------------


def replay_with(schema: themis.Schema, path: Path) -> themis.Replay:
    return themis.Audit(old, schema).replay(path)


def test_rows_that_the_schema_no_longer_allows_are_unknown_and_not_fixed(tmp_path: Path) -> None:
    path = tmp_path / "suite.jsonl"
    write_suite(path)
    rows, before = read(path), replay_with(SCHEMA, path)
    high = [row for row in rows if row["income"] >= 90_000]
    races = ["green", "purple", "blue"]
    fewer = themis.Schema(race=races[1:], sex=["f", "m"], income=range(100_000))
    replay = replay_with(fewer, path)
    assert replay.count("fixed", "new") == 0
    assert replay.count("unknown") >= before.count("still")
    assert list(map(str, replay.unknown_rows)) == ["race has no value like 'green'"]
    assert not replay.conclusive
    narrow = replay_with(themis.Schema(race=races, sex=["f", "m"], income=range(90_000)), path)
    assert sum(narrow.unknown_rows.values()) == len(high)
    forbidden = replay_with(SCHEMA.where("income < 90000 or sex == 'f'"), path)
    men = sum(row["sex"] == "m" for row in high)
    assert forbidden.unknown_rows == {Note.of("forbidden-by-constraint"): men}


def test_a_characteristic_that_is_gone_is_not_used_and_one_that_is_new_is_a_mistake(
    tmp_path: Path,
) -> None:
    path = tmp_path / "suite.csv"
    write_suite(path)
    without = themis.Schema(race=["green", "purple", "blue"], income=range(0, 100_000))
    replay = replay_with(without, path)
    (note,) = replay.notes
    assert str(note) == "the column 'sex' is no characteristic: it is not used"
    assert set(states_of(replay)["sex"]) == {"unknown"}
    assert states_of(replay)["race"]["still"] > 0
    more = themis.Schema({**{each.name: each for each in SCHEMA}, "incom": range(3), "job": [1, 2]})
    with pytest.raises(themis.RequestError) as caught:
        replay_with(more, path)
    assert [mistake.remedy for mistake in caught.value.mistakes] == [
        "did you mean 'income'?",
        "choose from: race, sex, income",
    ]


# --- the command ----------------------------------------------------------------------------


def test_a_changed_program_is_run_again_whatever_the_cache_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(tmp_path, monkeypatch)
    write_command(tmp_path, run="error = 0.2")
    wanted = ("--against", "race", "--measure", "causal", "-o", "result.json")
    result = run("score", *wanted, "--suite", "suite.jsonl")
    assert result.exit_code == 0, result.output
    executed = len(ran(tmp_path))
    again = run("replay", "suite.jsonl", "--json")
    assert again.exit_code == 1
    replay = json.loads(again.output)
    assert replay["still"] > 0
    assert replay["new"] == replay["fixed"] == 0
    assert replay["inputs"] < replay["executions"] <= 2 * replay["inputs"]  # what fails, twice
    assert len(ran(tmp_path)) - executed > replay["inputs"]
    assert run("replay", "result.json").exit_code == 1
    assert run("replay", "result.json", "--fail-on", "new").exit_code == 0
    write_command(tmp_path, decide=DECIDE.replace('-o "$3" -ge 60', '-o "$3" -ge 30'))
    mended = run("replay", "suite.jsonl", "-o", "replay.json")
    assert mended.exit_code == run("replay", "result.json").exit_code == 0, mended.output
    assert json.loads((tmp_path / "replay.json").read_text())["fixed"] == replay["still"]
    for command in ("report replay.json", "diff result.json replay.json", "replay replay.json"):
        refused = run(*command.split())
        assert refused.exit_code == 2
        assert "error[result]: replay.json: is a replay, which says what became" in refused.output
    (tmp_path / "loan.sh").write_text("exit 1\n")
    failed = run("replay", "suite.jsonl")
    assert (failed.exit_code, "the subject failed" in failed.output) == (3, True)


def cut_short(suite: Path, calls: int, ended: str) -> themis.Replay:
    """What a replay learned that was interrupted, failed too often, or had no more calls."""
    called = 0

    def ends(person: dict[str, Any]) -> int:
        nonlocal called
        called += 1
        if called > calls and ended != "budget":
            raise KeyboardInterrupt if ended == "interrupted" else ValueError
        return old(person)

    budget = calls if ended == "budget" else None
    audit = themis.Audit(ends, SCHEMA, max_executions=budget, max_failures=0.01)
    audit.sampler.keep_on_interrupt = True
    found: Any
    try:
        found = audit.replay(suite)
    except themis.SubjectError as error:
        found = error.result
    replay: themis.Replay = found
    return replay


@pytest.mark.parametrize("ended", ["interrupted", "failed", "budget"])
def test_no_test_of_a_replay_that_ends_early_fails_without_being_run_again(
    ended: str, tmp_path: Path
) -> None:
    path = tmp_path / "suite.csv"
    write_suite(path)
    whole, early = themis.Audit(old, SCHEMA).replay(path), cut_short(path, 60, ended)
    assert early.count("unconfirmed", "not run") > 0
    assert early.count("unclear") == 0  # nothing gave two answers
    assert early.count("still", "new") == 0
    late = cut_short(path, whole.inputs + 10, ended)  # while tests are run again
    assert late.inputs == whole.inputs
    assert late.count("unconfirmed") == whole.count("still")
    assert late.count("same") == whole.count("same")
    assert (early.stopped, late.stopped) == (ended, ended)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none.csv", "there is no such file"),
        ("none.json", "there is no such file"),
        ("other.csv", "is no suite of this subject: it has no column 'test', 'against', 'output'"),
        ("other.json", "is no result of Themis"),
        ("other.txt", "is neither a suite nor a result"),
        ("bare.csv", "bare.csv: holds no tests"),
        ("fair.json", "fair.json: has no witnesses: there is nothing to run again"),
    ],
)
def test_files_without_tests_are_mistakes(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(tmp_path, monkeypatch)
    write_project(tmp_path, "return 1")
    (tmp_path / "other.csv").write_text("race,sex\ngreen,f\n")
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "other.txt").write_text("hello")
    scored = run("score", "--suite", "bare.csv", "-o", "fair.json", "--measure", "causal")
    assert scored.exit_code == 0
    header, *_ = (tmp_path / "bare.csv").read_text().splitlines()
    (tmp_path / "bare.csv").write_text(f"{header}\n")
    result = run("replay", name)
    assert result.exit_code == 2
    assert words in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_values_of_all_kinds_find_their_codes_again(suffix: str, tmp_path: Path) -> None:
    """Although columns stand in another order, and one is called like one of the suite's own."""
    inputs: dict[str, Any] = {
        "mixed": [1, "one", 2.5],
        "output": [True, False],
        "empty": ["", "full"],
        "rate": themis.Reals(0, 1, step=0.1),
        "level": themis.Integers(-5, 5),
    }
    path = tmp_path / f"suite{suffix}"
    subject: Any = lambda person: person["output"]  # noqa: E731
    with themis.Audit(subject, themis.Schema(inputs), seed=1, suite=path) as audit:
        audit.causal("output")
    others = {**dict(reversed(inputs.items())), "output": [False, True]}
    replay = themis.Audit(subject, themis.Schema(others)).replay(path)
    assert replay.unknown_rows == {}
    assert {*states_of(replay)["output"]} == {"still"}
