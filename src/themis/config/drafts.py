"""First drafts of a `themis.toml`: the commented example, and files whose every guess is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import TYPE_CHECKING

from themis.config.toml import spell_key, spell_remark, spell_value
from themis.errors import Mistake, RequestError, SchemaError, suggest
from themis.inputs.characteristics import Value
from themis.inputs.columns import SHARED
from themis.inputs.guesses import Guess
from themis.inputs.schema import Schema, characteristic_from
from themis.results.notes import Note

if TYPE_CHECKING:
    from themis.subjects.trained import Trained

SUBJECT_FILE_NAME = "loan.py"


def starter_text() -> str:
    """A `themis.toml` with a comment on every key, valid as it stands."""
    return _starter("themis.toml")


def starter_subject_text() -> str:
    """The Python module that the file describes, for SUBJECT_FILE_NAME beside it.

    It treats young women worse, so that a first `themis check` has something to find.
    """
    return _starter(f"{SUBJECT_FILE_NAME}.txt")


def _starter(name: str) -> str:
    return files("themis.config").joinpath("starter", name).read_text(encoding="utf-8")


_UNKNOWN_SUBJECT = """
# The software under test: put your own in the place of this. Paths and modules are relative to the
# folder of this file.
[subject]
kind = "python"                 # a function; or model, command, worker, http
function = "subject:decide"     # module:attribute"""

_RUN = """
# Confidence, precision and cost.
[run]
confidence = 0.99
seed = 12
# error = 0.01  # half the width of intervals; without it, what takes seconds, at most 0.05"""


_PROFILE = """
# Inputs are drawn from these rows as they occur, so that scores are about people like these.
# Without this table inputs are generated, by the weights above.
[profile]"""


class Draft(Guess):
    """What was guessed about one characteristic, as it stands in a file."""

    @property
    def title(self) -> str:
        """What it is called where it is talked about: an index often has no name."""
        return self.name.encode(errors="replace").decode() or "the column without a name"

    def checked(self) -> Draft:
        """The same, left out when it breaks a rule of schemas."""
        if self.left_out:
            return self
        try:
            Schema({self.name: [0]})  # the name alone
            characteristic_from(self.spec)
            self._text().encode()
        except SchemaError as error:
            return replace(self, left_out=f"{error.mistakes[0].problem}")
        except UnicodeEncodeError:
            return replace(self, spec=None, left_out="contains what is no Unicode text")
        return self

    def lines(self) -> Iterator[str]:
        """The draft as it stands in the file."""
        remarks = "; ".join(self.remarks)
        if self.left_out:
            yield from spell_remark(
                f"{self.title}: left out: {self.left_out}{'; ' * bool(remarks)}{remarks}"
            )
            if self.spec is not None:
                yield f"# {self._text()}"
            return
        if remarks:
            yield from spell_remark(f"{self.title}: {remarks}")
        yield self._text()

    def _text(self) -> str:
        return f"{spell_key(self.name)} = {spell_value(self.spec)}"


UNTRIED = "the model was not tried on the rows; it answers with a number, a probability or a logit"


@dataclass(frozen=True)
class ModelFacts:
    """The columns and classes of a model, and its file as a themis.toml names it; empty of none."""

    file: str = ""
    names: Sequence[str] | None = None
    needed: Sequence[str] | None = None  # those of them that it looks at
    count: int | None = None  # of its columns, where it does not know their names
    classes: tuple[Value, ...] | None = None
    categories: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    spelled: Callable[[str], str] = str  # how it writes the name of a column
    target: str | None = None  # the column that it predicts
    cut: float | None = None  # from where on its answer is usually a yes
    module: str | None = None  # whose weights are in the file, as module:Class
    cut_reason: str = UNTRIED
    class_: Value = None  # whose probability it answers with, where it has classes and a cut
    answers_numbers: bool = False
    dtypes: Mapping[str, str] = field(default_factory=dict)  # of dates that it takes as such
    echoed: Sequence[str] = ()  # columns that its answers nearly always equal
    failed: int = 0  # of the rows that it was tried on
    failure: str = ""  # how most of these fail
    order: Note | None = None  # of its columns, where it does not know their names
    trained: Trained | None = None  # to be tried

    @property
    def wanted_cut(self) -> float | None:
        """The cut, unless its classes decide."""
        return None if self.classes and self.class_ is None else self.cut


NO_MODEL = ModelFacts()


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
    subject: Sequence[str] = (_UNKNOWN_SUBJECT,)  # the lines of its table
    output: tuple[str, float, float] | None = None  # the column of a number, and its range
    model: ModelFacts = NO_MODEL
    rare: Sequence[str] = ()  # characteristics that list texts of fewer than SHARED rows
    asked: Sequence[str] = ()  # characteristics that are called like a decision

    @property
    def is_complete(self) -> bool:
        """Whether the subject is known."""
        return self.subject != (_UNKNOWN_SUBJECT,)

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
        yield from self.subject
        yield from self._decision()
        yield "\n# The characteristics, in the order of the arguments."
        yield "[inputs]"
        for draft in self.drafts:
            yield from draft.lines()
        if self.profile is not None:
            yield _PROFILE
            yield f"data = {spell_value(self.profile)}"
        yield _RUN
        yield from self._checks()

    def _decision(self) -> Iterator[str]:
        """What counts as the favourable decision."""
        if (cut := self.model.wanted_cut) is not None:
            yield from spell_remark(
                f"cut: a guess: {self.model.cut_reason}. From this number on the decision is "
                "favourable: is what it predicts something that people want?"
            )
            if self.model.class_ is not None:
                yield f"class = {spell_value(self.model.class_)}"
            yield f"cut = {spell_value(cut)}"
            return
        if self.output is not None:
            name, low, high = self.output
            yield ""
            yield from spell_remark(
                f"{name}: a number, in a range wider than that of the rows; an answer outside is a "
                "failure. Higher counts as favourable. With cut = … rates of those above it "
                "are compared instead of means."
            )
            yield "[outputs]"
            scale = {"min": low, "max": high, "distance": "relational"}
            yield f"{spell_key(name)} = {spell_value(scale)}"
            return
        yield from spell_remark(f"favourable: {self.favourable_remark}")
        shown = [self.example] if self.favourable is None else list(self.favourable)
        yield f"{'# ' * (self.favourable is None)}favourable = {spell_value(shown)}"

    def _checks(self) -> Iterator[str]:
        used = [each.name for each in self.used if each.name in self.protected]
        specs = ((each.name, each.spec) for each in self.used if isinstance(each.spec, dict))
        known_only = {name for name, spec in specs if spec.get("role") == "group"}
        if used:
            yield "\n# What `themis check` enforces; choose your own limits."
        for name in used:
            measure = "group" if name in known_only else "causal"
            yield f'[[checks]]\nagainst = {spell_value([name])}\nmeasure = "{measure}"'
            yield "max_score = 0.05\n"


def rare_remark(names: Sequence[str]) -> str:
    """What to look over where a file lists texts that are perhaps one person's."""
    shown = ", ".join(names[:5]) + f" and {len(names) - 5} more" * (len(names) > 5)
    return (
        f"Personal data? Fewer than {SHARED} rows have some of the texts that are listed for "
        f"{shown}: look them over. Reports may name what this file lists. A text can be removed: "
        "its rows are still run as they are, and it is tried for nobody else."
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
        reasons = "; ".join(f"{each.title}: {each.left_out}" for each in drafts[:5])
        said = f"{problem} ({reasons or 'there is none'})"
        raise RequestError([Mistake("source", source, said, remedy)])
