"""Labels: which texts mean the same decision, and what is left open without them."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import themis
from themis.config.reader import read_config
from themis.show.words.headlines import headline
from themis.subjects.labels import bare_text
from themis.subjects.outputs import Meanings

LABELS = {"approved": ["approved*", "yes", "1", "true"], "refused": ["denied*", "no", "0", "FALSE"]}
SCHEMA = themis.Schema(sex=["f", "m"], race=["a", "b", "c"], age=range(18, 90), income=range(200))
SMALL = themis.Schema(sex=["f", "m"], race=["a", "b", "c"], age=range(18, 40))


def approve_all(person: dict[str, Any]) -> str:
    return "Approved." if person["sex"] == "f" else "Approved\n"


def silent(person: dict[str, Any]) -> str:
    return "Hm." if person["sex"] == "f" and person["age"] < 30 else "approved"


class TestMeanings:
    @pytest.mark.parametrize(
        ("output", "label"),
        [
            ("Approved.", ("approved",)),
            ("  APPROVED\n", ("approved",)),
            ("approved: welcome\nto us", ("approved",)),
            ("Yes", ("approved",)),
            ("yes!", ()),
            ("disapproved", ()),
            ("", ()),
            (" ", ()),
            (1.0, ("approved",)),
            (True, ("approved",)),
            (0, ("refused",)),
            (0.73, ()),
            (None, ()),
        ],
    )
    def test_text_fits_its_label(self, output: Any, label: tuple[str, ...]) -> None:
        assert Meanings(LABELS).matching(output) == label

    @pytest.mark.parametrize(
        ("pattern", "text"),
        [("*not*approved*because*", "not approved " * 5_000), ("*yes*approved*", "yes" * 170_000)],
    )
    def test_a_long_answer_is_read_once_for_each_star(self, pattern: str, text: str) -> None:
        meanings = Meanings({"a": [pattern], "b": ["*d", "*s"]})
        assert meanings.matching(text) == ("b",)

    def test_all_mistakes_are_told_at_once(self) -> None:
        labels = {"a": ["x*", "", 3], "b": [], "c": ["X* ", "y"]}
        with pytest.raises(themis.RequestError) as caught:
            Meanings(labels)
        places = [each.where.removeprefix("labels.") for each in caught.value.mistakes]
        assert places == ["a[1]", "a[2]", "a[3]", "b", "c[1]"]

    def test_a_text_may_fit_two_labels(self) -> None:
        assert Meanings({"one": ["a*"], "other": ["*b"]}).matching("ab") == ("one", "other")


FILE = """\
version = 1
[subject]
kind = "python"
function = "a:b"
favourable = ["aproved", "refused"]
[subject.labels]
approved = ["approved*", "yes"]
refused = []
other = [
  "YES ",
  "fine",
]
third = "text"
[inputs]
sex = ["f", "m"]
"""


class TestFile:
    def test_all_mistakes_have_their_lines(self, tmp_path: Path) -> None:
        path = tmp_path / "themis.toml"
        path.write_text(FILE)
        with pytest.raises(themis.ConfigError) as caught:
            read_config(path)
        found = [(each.line, each.where) for each in caught.value.mistakes]
        assert found == [
            (5, "subject.favourable"),
            (7, "subject.labels.approved[2]"),
            (8, "subject.labels.refused"),
            (9, "subject.labels.other[1]"),
            (13, "subject.labels.third"),
        ]
        assert caught.value.mistakes[0].remedy == "did you mean 'approved'?"

    def test_outputs_have_labels_of_their_own(self, tmp_path: Path) -> None:
        path = tmp_path / "themis.toml"
        text = FILE[: FILE.index("favourable")] + FILE[FILE.index("[inputs]") :]
        path.write_text(f'{text}[outputs.x]\nfavourable = ["y"]\n[outputs.x.labels]\ny = ["y*"]\n')
        assert read_config(path).outputs[0].labels == {"y": ["y*"]}
        path.write_text(f'{text}[outputs.x]\nfavourable = ["z"]\n[outputs.x.labels]\ny = ["", 1]\n')
        with pytest.raises(themis.ConfigError) as caught:
            read_config(path)
        found = [(each.line, each.where) for each in caught.value.mistakes]
        assert found == [
            (8, "outputs.x.favourable"),
            (10, "outputs.x.labels.y[2]"),
            (10, "outputs.x.labels.y[1]"),
        ]


DECIDED: dict[str, Any] = {"labels": LABELS, "favourable": ["approved"]}


class TestAudit:
    def test_texts_of_one_label_are_one_decision(self) -> None:
        audit = themis.Audit(approve_all, SMALL, **DECIDED)
        causal, group = audit.causal("sex"), audit.group("sex")
        assert (causal.score, causal.high, group.score, group.high) == (0, 0, 0, 0)
        assert [each.rate for each in group.groups] == [1, 1]

    def test_favourable_must_name_a_label(self) -> None:
        with pytest.raises(themis.RequestError, match="did you mean 'approved'"):
            themis.Audit(approve_all, SMALL, labels=LABELS, favourable=["Approved"])

    @pytest.mark.parametrize(
        ("labels", "said"),
        [
            (LABELS, r"no decision in \d+ of .*'Hm.' \(fits no label\).*max_undecided"),
            ({"yes": ["h*"], "no": ["*."]}, "fits both labels 'yes' and 'no'"),
        ],
    )
    def test_what_fits_no_label_or_two_is_a_failure_with_an_example(
        self, labels: dict[str, list[str]], said: str
    ) -> None:
        audit = themis.Audit(silent, SMALL, labels=labels, max_failures=1.0)
        with pytest.raises(themis.SubjectError, match=said):
            audit.causal("sex")

    def test_so_many_as_are_allowed_leave_an_interval(self) -> None:
        score = themis.Audit(silent, SMALL, max_undecided=1.0, **DECIDED).causal("sex")
        assert (score.score, score.unknown) == (0, 36)
        assert score.high == pytest.approx(36 / 66)

    def test_more_texts_than_labels_are_allowed(self) -> None:
        def decide(person: dict[str, Any]) -> str:
            return f"approved no. {person['income']}"

        assert themis.Audit(decide, SCHEMA, **DECIDED).causal("income").high < 0.1
        with pytest.raises(themis.SubjectError, match="more than 100"):
            themis.Audit(decide, SCHEMA).causal("income")


class TestUndecidedByGroup:
    def test_exact_rates_that_differ_are_a_finding(self) -> None:
        (note,) = themis.Audit(silent, SMALL, max_undecided=1.0, **DECIDED).group("sex").notes
        assert note.code == "no-decision-apart"
        assert note.values["apart"] == pytest.approx(12 / 22)
        counts = [(each["undecided"], each["samples"]) for each in note.values["groups"]]
        assert counts == [(36, 66), (0, 66)]
        assert "sex f: 36 of 66; sex m: 0 of 66" in str(note)

    def test_sampled_rates_have_intervals(self) -> None:
        score = themis.Audit(silent, SCHEMA, max_undecided=1.0, **DECIDED).group("sex")
        assert score.method == "sampled"
        (note,) = (each for each in score.notes if each.code == "no-decision-apart")
        women, men = note.values["groups"]
        assert women["low"] < 12 / 72 < women["high"] < 0.4
        assert men["low"] == 0 == men["undecided"] < men["high"]
        assert 0 < note.values["apart"] < 12 / 72
        assert "99 % confidence, both intervals together" in str(note)


class TestSimilarTexts:
    def test_signs_within_a_text_make_another_decision(self) -> None:
        texts = [">50K", "<=50K", "A+", "A-", "A", "1.5", "15", "-1", "1", "95%", "95", "...", "👍"]
        assert len(set(map(bare_text, texts))) == len(texts)

    def test_case_space_and_final_punctuation_make_none(self) -> None:
        texts = ["Approved.", "approved", " APPROVED\n", "Approved!", "Ａpproved . "]
        assert set(map(bare_text, texts)) == {"approved"}

    @pytest.mark.parametrize("schema", [SCHEMA, SMALL], ids=["sampled", "exact"])
    @pytest.mark.parametrize("stopping", ["certified", "paper"])
    def test_they_are_the_same_and_the_result_says_so(
        self, schema: themis.Schema, stopping: Any
    ) -> None:
        audit = themis.Audit(approve_all, schema, favourable=["approved"], stopping=stopping)
        result = audit.score("sex")
        causal, group = result.scores
        assert (causal.score, group.score) == (0, 0)
        assert [each.rate for each in group.groups] == [1, 1]
        (note,) = (each for each in result.notes if each.code == "merged-texts")
        assert note.values["texts"] == [["Approved\n", "Approved.", "approved"]]
        assert "equal-but-for-spelling" in [each.code for each in causal.notes]
        assert "texts that differ only in spelling count as the same" in headline(causal)
        apart = themis.Audit(approve_all, schema, stopping=stopping, similar_texts="different")
        assert apart.causal("sex").score == 1
        output = themis.Output(favourable=["Approved."], similar_texts="different")
        assert themis.Audit(approve_all, schema, outputs=output).group("sex").score == 1

    def test_what_changes_as_well_is_found_all_the_same(self) -> None:
        def decide(person: dict[str, Any]) -> str:
            if person["age"] < (30 if person["sex"] == "f" else 35):
                return "Denied"
            return "Approved" if person["race"] == "a" else "approved."

        audit = themis.Audit(decide, SMALL, favourable=["Approved"])
        both, race = audit.causal("sex", "race"), audit.causal("race")
        assert (both.low, both.high, race.high) == pytest.approx((5 / 22, 5 / 22, 0))
        assert {each.outputs for each in both.witnesses} == {("Approved", "Denied")}
        assert set(audit.search(0.1).found) == {("sex",), ("age",)}


class TestReplay:
    def test_saved_labels_are_read_as_labels(self, tmp_path: Path) -> None:
        def decide(person: dict[str, Any]) -> dict[str, str]:
            return {"word": "Denied." if person["sex"] == "f" else "yes"}

        output = themis.Output(name="word", at="/word", labels=LABELS, favourable=["approved"])
        path = tmp_path / "suite.csv"
        with themis.Audit(decide, SMALL, outputs=output, suite=path) as audit:
            audit.causal("sex")
        replay = themis.Audit(decide, SMALL, outputs=output).replay(path)
        assert (replay.count("still"), replay.count("new"), replay.count("fixed")) == (66, 0, 0)

    def test_other_spelling_is_no_new_discrimination(self, tmp_path: Path) -> None:
        path = tmp_path / "suite.csv"
        with themis.Audit(lambda person: "Approved.", SMALL, suite=path) as audit:
            audit.causal("sex")
        replay = themis.Audit(approve_all, SMALL).replay(path)
        assert (replay.count("still"), replay.count("new")) == (0, 0)


@pytest.mark.parametrize("declared", ["subject", "output"])
def test_a_subject_with_labels_is_not_taken_for_noisy(declared: str) -> None:
    labels = {"yes": ["approved*"], "no": ["denied*"]}
    options: dict[str, Any] = {"labels": labels, "favourable": ["yes"]}
    if declared == "output":
        options = {"outputs": [themis.Output(name="answer", **options)]}

    def decide(person: dict[str, Any]) -> str:
        approved = person["income"] > (20 if person["sex"] == "m" else 25)
        return f"Approved, {person['income']}" if approved else "Denied!"

    schema = themis.Schema(sex=["f", "m"], income=range(40))
    result = themis.Audit(decide, schema, **options).score("sex")
    assert [each.low for each in result.scores] == [each.high for each in result.scores]
    assert [round(each.score, 3) for each in result.scores] == [0.125, 0.125]
    assert not result.notes
    assert result.scores[0].witnesses[0].outputs == ("yes", "no")


@given(st.text("ab?*", min_size=1, max_size=8), st.text("ab\n", min_size=1, max_size=8))
def test_a_pattern_fits_as_in_file_names(pattern: str, text: str) -> None:
    fits = bool(text.strip()) and fnmatchcase(text.strip(), pattern)
    assert Meanings({"a": [pattern]}).matching(text) == ("a",) * fits
