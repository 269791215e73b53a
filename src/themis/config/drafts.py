"""First drafts of a `themis.toml`: the commented example, and files whose every guess is said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from themis.config.toml import spell_key, spell_remark, spell_value
from themis.errors import Mistake, RequestError, SchemaError, suggest
from themis.inputs.characteristics import Value
from themis.inputs.personal import SHARED
from themis.inputs.schema import Schema, characteristic_from

SUBJECT_FILE_NAME = "loan.py"
NAMED = 5  # characteristics in a remark

_CONFIG = """\
# What Themis tests, and how. `themis validate` checks this file, `themis check` runs it.
version = 1

# The software under test. Paths and modules are relative to the folder of this file.
[subject]
kind = "python"             # a function; or a trained model: kind = "model"
function = "loan:decide"    # module:attribute; a model has object = "loan:model" instead
call = "row"                # row: one dict · keywords: decide(sex=…, age=…) · batch: a table
favourable = [1]            # the outputs that count as the favourable decision
# labels = { yes = ["approved*", "ok"], no = ["refused*"] }  # texts; favourable then names labels
# version = "2024-06"       # free text; results of another version are not used again
# max_failures = 0.01       # the fraction of executions that may fail; 0 unless you say so
# max_undecided = 0.01      # the fraction whose answer may fit no label; 0 unless you say so
# deterministic = true      # your word that it always decides the same: nothing is run again
# cost = "executions"       # what takes its time; "calls": few large ones, as tables and models get
# repeats = 5               # for a program that is not deterministic: the majority of five runs

# Every characteristic that the subject reads, in the order of its arguments.
[inputs]
sex = { values = ["female", "male"], protected = true }
race = { values = ["green", "purple"], protected = true }
age = { min = 18, max = 80, bins = [30, 60] }               # both ends included; bins: 18 to 29, …
income = { min = 0.0, max = 100000.0, step = 1000.0 }       # with a point: numbers in steps
employed = [true, false]
city = { values = ["north", "south"], weights = [0.7, 0.3] }  # weights: how often each occurs
# debts = { min = 0, max = 9, missing = 0.05, missing_as_counterfactual = true }  # some unknown

# Conditions that every real input meets; others are never tried.
[constraints]
income_has_a_source = "employed or income <= 50000"

# Confidence, precision and cost.
[run]
# against = [["sex"], ["sex", "race"]]  # the sets that `themis score` measures; else each protected
confidence = 0.99           # confidence level of the intervals
# family = true             # the confidence is that of all scores, or checks, of a command together
error = 0.05                # their half width
seed = 12                   # the same seed gives the same result
stopping = "certified"      # or "paper", the rule of the 2017 paper, for comparison
# exact = true              # run every input, however many: a score without an interval
# max_executions = 1_000_000
# max_seconds = 600
# max_assignments = 1_000   # sets with more are only sampled, and give a lower bound
# probe = 300               # inputs repeated to check consistency; 0: none
# max_noise = 0.02          # a score that noise alone may explain by more is inconclusive
# ahead = false             # idle slots of a program or service run nothing before it is needed

# What reports call things; without it "test inputs", and the values as they are.
# [report]
# name = "Loan screen"      # also version, owner, purpose and auditor
# people = "applicants"     # sentences are about test applicants
# decision = "approval"     # and about approval rates
# values = { sex = { female = "women", male = "men" } }

# What `themis check` enforces: it fails when a score is above its limit.
[[checks]]
against = ["race"]          # one set of characteristics
measure = "causal"          # causal: changing only this changes the decision · group: rates differ
max_score = 0.05

[[checks]]
against = ["sex"]
measure = "group"
max_score = 0.05

# [[checks]]
# search = true             # all sets of characteristics
# measure = "causal"
# max_score = 0.10
"""

_SUBJECT = '''\
"""An example of decision software: who gets a loan? Put your own in its place."""


def decide(applicant):
    """1 to grant the loan, 0 to refuse it."""
    needed = 30_000 if applicant["employed"] else 45_000
    if applicant["sex"] == "female" and applicant["age"] < 40:
        needed += 15_000  # the kind of rule that Themis finds
    return 1 if applicant["income"] >= needed else 0
'''


def starter_text() -> str:
    """A `themis.toml` with a comment on every key, valid as it stands."""
    return _CONFIG


def starter_subject_text() -> str:
    """The Python module that the file describes, for SUBJECT_FILE_NAME beside it.

    It treats young women worse, so that a first `themis check` has something to find.
    """
    return _SUBJECT


_UNKNOWN_SUBJECT = """\

# The software under test: put your own in the place of this. Paths and modules are relative to the
# folder of this file.
[subject]
kind = "python"                 # a function; or model, command, worker, http
function = "subject:decide"     # module:attribute
"""

_RUN = """\

# Confidence, precision and cost.
[run]
confidence = 0.99
error = 0.05
seed = 12
"""


_PROFILE = """
# Inputs are drawn from these rows as they occur, so that scores are about people like these.
# Without this table inputs are generated, by the weights above.
[profile]"""


def _subject(file: str, module: str | None) -> str:
    """The table of a model."""
    return (
        "\n# The software under test; its path is relative to the folder of this file.\n"
        f'[subject]\nkind = "model"\nfile = {spell_value(file)}'
        + ("" if module is None else f"\nobject = {spell_value(module)}")
    )


@dataclass(frozen=True)
class Draft:
    """What was guessed about one characteristic.

    Where there is a reason to leave it out, the spec is only shown as a proposal.
    """

    name: str
    spec: Any  # as in the file; None where there is nothing to propose
    remarks: tuple[str, ...] = ()
    left_out: str = ""  # the reason

    def checked(self) -> Draft:
        """The same, left out when it breaks a rule of schemas."""
        if self.left_out:
            return self
        try:
            Schema({self.name: characteristic_from(self.spec)})
            self._text().encode()
        except SchemaError as error:
            return replace(self, left_out=f"{error.mistakes[0].problem}")
        except UnicodeEncodeError:
            return replace(self, spec=None, left_out="contains what is no Unicode text")
        return self

    def lines(self) -> Iterator[str]:
        """The draft as it stands in the file."""
        name = self.name.encode(errors="replace").decode()
        remarks = "; ".join(self.remarks)
        if self.left_out:
            yield from spell_remark(
                f"{name}: left out: {self.left_out}{'; ' * bool(remarks)}{remarks}"
            )
            if self.spec is not None:
                yield f"# {self._text()}"
            return
        if remarks:
            yield from spell_remark(f"{name}: {remarks}")
        yield self._text()

    def _text(self) -> str:
        return f"{spell_key(self.name)} = {spell_value(self.spec)}"


@dataclass(frozen=True)
class DraftFile:
    """A whole file: where it comes from, what decides favourably, who is protected."""

    origin: str
    drafts: Sequence[Draft]
    protected: Sequence[str]
    favourable: Sequence[Value] | None = None  # None: not known
    favourable_remark: str = "the outputs that count as the favourable decision"
    example: Value = 1  # a favourable output to show where none is known
    profile: str | None = None  # the rows that inputs are drawn from
    model: str | None = None  # the file of the model under test
    module: str | None = None  # whose weights are in it
    subject: Sequence[str] = ()  # the lines of its table, where they are known otherwise
    cut: float | None = None  # of a model that answers with a number
    cut_reason: str = ""
    rare: Sequence[str] = ()  # characteristics that list texts of fewer than SHARED rows

    @property
    def is_complete(self) -> bool:
        """Whether the subject is known."""
        return self.model is not None or bool(self.subject)

    @property
    def used(self) -> list[Draft]:
        """The drafts that became characteristics."""
        return [each for each in self.drafts if not each.left_out]

    def text(self) -> str:
        """The file; without a model it is valid but for the subject, a place to fill."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield from spell_remark(
            f"Written by `themis init` from {self.origin}. What is here is guessed, and the "
            "comments say how: look it over. `themis validate` checks this file, `themis check` "
            "runs it."
        )
        if self.rare:
            yield from spell_remark(rare_remark(self.rare))
        yield "version = 1"
        if self.subject:
            yield from self.subject
        else:
            yield (
                _UNKNOWN_SUBJECT.rstrip("\n")
                if self.model is None
                else _subject(self.model, self.module)
            )
        yield from self._decision()
        yield "\n# The characteristics, in the order of the arguments."
        yield "[inputs]"
        for draft in self.drafts:
            yield from draft.lines()
        if self.profile is not None:
            yield _PROFILE
            yield f"data = {spell_value(self.profile)}"
        yield _RUN.rstrip("\n")
        yield from self._checks()

    def _decision(self) -> Iterator[str]:
        """What counts as the favourable decision."""
        if self.cut is not None:
            yield from spell_remark(
                f"cut: a guess: {self.cut_reason}. From this number on the decision is favourable: "
                "is what it predicts something that people want?"
            )
            yield f"cut = {spell_value(self.cut)}"
            return
        yield from spell_remark(f"favourable: {self.favourable_remark}")
        shown = [self.example] if self.favourable is None else list(self.favourable)
        yield f"{'# ' * (self.favourable is None)}favourable = {spell_value(shown)}"

    def _checks(self) -> Iterator[str]:
        used = [each.name for each in self.used if each.name in self.protected]
        if used:
            yield "\n# What `themis check` enforces; choose your own limits."
        for name in used:
            yield f'[[checks]]\nagainst = {spell_value([name])}\nmeasure = "causal"'
            yield "max_score = 0.05\n"


def rare_remark(names: Sequence[str]) -> str:
    """What to look over where a file lists texts that are perhaps one person's."""
    shown = ", ".join(names[:NAMED]) + f" and {len(names) - NAMED} more" * (len(names) > NAMED)
    return (
        f"Personal data? Fewer than {SHARED} rows have some of the texts that are listed for "
        f"{shown}: look them over. Reports may name what this file lists. A text can be removed: "
        "its rows are run as they are all the same, and it is tried for nobody else."
    )


def check_names(known: Sequence[str], protected: Sequence[str], target: str | None = None) -> None:
    """Raise RequestError for names that are not there, or that make no sense together."""
    mistakes = [
        Mistake("unknown-name", where, f"there is no column {name!r}", suggest(name, known))
        for where, names in (("--protected", protected), ("--target", [target] if target else []))
        for name in names
        if name not in known
    ]
    if target in protected:
        problem = f"{target!r} is what is decided, it can't be protected"
        mistakes.append(Mistake("protected-target", "--protected", problem, "name another"))
    if mistakes:
        raise RequestError(mistakes)


def check_some_used(drafts: Sequence[Draft], source: str, problem: str, remedy: str) -> None:
    """Raise RequestError with the first reasons where everything is left out."""
    if all(each.left_out for each in drafts):
        reasons = "; ".join(f"{each.name}: {each.left_out}" for each in drafts[:5])
        said = f"{problem} ({reasons or 'there is none'})"
        raise RequestError([Mistake("source", source, said, remedy)])
