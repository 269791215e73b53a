"""How does a first `themis.toml` look whose characteristics were guessed? With every guess said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from themis.config.toml_toml_text import spell_key, spell_remark, spell_value
from themis.errors import Mistake, RequestError, SchemaError, suggest
from themis.inputs.characteristics import Value
from themis.inputs.schema import Schema, characteristic_from

_SUBJECT = """\

# The software under test: put your own in the place of this. Paths and modules are relative to the
# folder of this file.
[subject]
kind = "python"                 # a function; or model, command, worker, http
function = "subject:decide"     # module:attribute
"""

_RUN = """\

# How sure, how precise, how expensive.
[run]
confidence = 0.99
error = 0.05
seed = 42
"""


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

    @property
    def used(self) -> list[Draft]:
        """The drafts that became characteristics."""
        return [each for each in self.drafts if not each.left_out]

    def text(self) -> str:
        """The file; it is valid but for the subject, which is only a place to fill."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield from spell_remark(
            f"Written by `themis init` from {self.origin}. What stands here is guessed, and the "
            "comments say how: look it over. `themis validate` checks this file, `themis check` "
            "runs it."
        )
        yield "version = 1"
        yield _SUBJECT.rstrip("\n")
        yield from spell_remark(f"favourable: {self.favourable_remark}")
        shown = [1] if self.favourable is None else list(self.favourable)
        yield f"{'# ' * (self.favourable is None)}favourable = {spell_value(shown)}"
        yield "\n# The characteristics, in the order of the arguments."
        yield "[inputs]"
        for draft in self.drafts:
            yield from draft.lines()
        yield _RUN.rstrip("\n")
        yield from self._checks()

    def _checks(self) -> Iterator[str]:
        used = [each.name for each in self.used if each.name in self.protected]
        if used:
            yield "\n# What `themis check` enforces; choose your own limits."
        for name in used:
            yield f'[[checks]]\nagainst = {spell_value([name])}\nmeasure = "causal"'
            yield "max_score = 0.05\n"


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
